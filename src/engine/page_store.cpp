#include "engine/page_store.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace hearth {
namespace {

// Pinning memory takes some tenths of a millisecond for each MiB, between two steps: not more at a time than nobody
// notices.
constexpr size_t kBlockBytes = size_t{16} << 20;

}  // namespace

PageStore::PageStore(DeviceModel& device, std::span<const int64_t> device_pages, size_t host_bytes) : device_(device) {
  double device_bytes = 0;
  for (size_t g = 0; g < device_pages.size(); ++g) {
    Group& group = groups_.emplace_back(
        Group{.page_bytes = device.page_bytes(static_cast<int32_t>(g)), .device_pages = device_pages[g]});
    device_bytes += static_cast<double>(group.page_bytes) * static_cast<double>(group.device_pages);
  }
  for (Group& group : groups_) {
    const double share = static_cast<double>(host_bytes) / device_bytes * static_cast<double>(group.device_pages);
    group.host_pages = static_cast<int64_t>(std::min(share, static_cast<double>(kMostHostPages)));
    group.block_pages = std::max<int64_t>(1, static_cast<int64_t>(kBlockBytes / group.page_bytes));
    group.blocks.resize(static_cast<size_t>(ceil_div(group.host_pages, group.block_pages)));
  }
}

std::byte* PageStore::host_page(int64_t group, int32_t page) const {
  const Group& g = groups_[static_cast<size_t>(group)];
  const int64_t index = page - g.device_pages;
  HEARTH_CHECK(index >= 0 && index < g.host_pages, "host page {} of {}", index, g.host_pages);
  const auto& block = g.blocks[static_cast<size_t>(index / g.block_pages)];
  return block ? block.get() + static_cast<size_t>(index % g.block_pages) * g.page_bytes : nullptr;
}

std::byte* PageStore::take_host_page(int64_t group, int32_t page) {
  if (std::byte* bytes = host_page(group, page)) return bytes;
  Group& g = groups_[static_cast<size_t>(group)];
  const int64_t block = (page - g.device_pages) / g.block_pages;
  const int64_t pages = std::min(g.block_pages, g.host_pages - block * g.block_pages);
  g.blocks[static_cast<size_t>(block)] = device_.host_memory(static_cast<size_t>(pages) * g.page_bytes);
  return host_page(group, page);
}

bool PageStore::to_host(std::span<const PageMove> moves) {
  copies_.clear();
  for (const PageMove& move : moves) {
    std::byte* bytes = take_host_page(move.group, move.host_page);
    if (bytes == nullptr) return false;
    copies_.push_back({.group = move.group, .page = move.device_page, .bytes = bytes});
  }
  return static_cast<bool>(device_.read_pages(copies_));
}

bool PageStore::to_device(std::span<const PageMove> moves) {
  copies_.clear();
  for (const PageMove& move : moves) {
    copies_.push_back({.group = move.group, .page = move.device_page, .bytes = host_page(move.group, move.host_page)});
  }
  return static_cast<bool>(device_.write_pages(copies_));
}

Result<void> PageStore::read(int64_t group, int32_t page, std::span<std::byte> to) const {
  if (page >= groups_[static_cast<size_t>(group)].device_pages) {
    std::copy_n(host_page(group, page), to.size(), to.begin());
    return {};
  }
  const PageCopy copy{.group = static_cast<int32_t>(group), .page = page, .bytes = to.data()};
  return device_.read_pages(std::span(&copy, 1));
}

Result<void> PageStore::write(int64_t group, int32_t page, std::span<const std::byte> from) {
  if (page >= groups_[static_cast<size_t>(group)].device_pages) {
    std::byte* bytes = take_host_page(group, page);
    if (bytes == nullptr) {
      return fail(ErrorCode::kOutOfMemory, "there is no memory for {} KiB of the prefix cache", from.size() >> 10);
    }
    std::ranges::copy(from, bytes);
    return {};
  }
  // The device only reads them.
  const PageCopy copy{.group = static_cast<int32_t>(group), .page = page, .bytes = const_cast<std::byte*>(from.data())};
  return device_.write_pages(std::span(&copy, 1));
}

}  // namespace hearth
