// What is in the pages of KV, wherever they are: on the device, or in the host's memory. Which page is where, and
// whose, is KvCache's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "memory/kv_cache.h"

namespace hearth {

class PageStore final : public PageMover {
 public:
  // `device_pages`: of each KV group, as they were allocated. The host gets at most `host_bytes`, divided among the
  // groups as the device's memory is, and at most kMostHostPages of each. They are taken in blocks when pages in them
  // are first used, and kept from then on. The device outlives the store.
  PageStore(DeviceModel& device, std::span<const int64_t> device_pages, size_t host_bytes);

  int64_t host_pages(int64_t group) const { return groups_[static_cast<size_t>(group)].host_pages; }
  size_t page_bytes(int64_t group) const { return groups_[static_cast<size_t>(group)].page_bytes; }

  // False also when the host has no memory for a page.
  [[nodiscard]] bool to_host(std::span<const PageMove> moves) override;
  [[nodiscard]] bool to_device(std::span<const PageMove> moves) override;

  // Of any page, page_bytes() of it. kOutOfMemory: the host has no memory for the page.
  Result<void> read(int64_t group, int32_t page, std::span<std::byte> to) const;
  Result<void> write(int64_t group, int32_t page, std::span<const std::byte> from);

 private:
  struct Group {
    size_t page_bytes = 0;
    int64_t device_pages = 0;
    int64_t host_pages = 0;
    int64_t block_pages = 0;                                // in each block but the last
    std::vector<std::shared_ptr<std::byte[]>> blocks = {};  // nullptr: not taken yet
  };
  // Where a page of the host is; nullptr: nowhere.
  std::byte* host_page(int64_t group, int32_t page) const;
  // The same, and takes memory for it; nullptr: there is none.
  std::byte* take_host_page(int64_t group, int32_t page);

  DeviceModel& device_;
  std::vector<Group> groups_;
  std::vector<PageCopy> copies_;  // scratch
};

// A million tokens: more than anybody's conversations, and few enough that the tree over them is small.
inline constexpr int64_t kMostHostPages = 1 << 16;

}  // namespace hearth
