#include "engine/cache_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/hash.h"
#include "files/replacing_file.h"

namespace hearth {
namespace {

constexpr char kMagic[8] = {'H', 'R', 'T', 'H', 'K', 'V', '0', '1'};
constexpr size_t kMostGroups = 32;
constexpr size_t kMostToldTokens = size_t{4} << 20;  // RestoredCache::sequences

// A node as it stands in the file, in front of its pages.
struct Record {
  uint32_t node, parent, kept, groups;
  int32_t tokens[kPageTokens];
};
static_assert(sizeof(Record) == (4 + kPageTokens) * 4);

std::string header(const std::string& identity, const KvCache& cache, const PageStore& store) {
  std::string bytes(kMagic, sizeof kMagic);
  const auto add = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  add(static_cast<uint32_t>(identity.size()));
  bytes += identity;
  add(static_cast<uint32_t>(cache.groups()));
  for (int64_t g = 0; g < cache.groups(); ++g) add(uint64_t{store.page_bytes(g)});
  return bytes;
}

std::vector<std::vector<std::byte>> page_buffers(const KvCache& cache, const PageStore& store) {
  std::vector<std::vector<std::byte>> pages;
  for (int64_t g = 0; g < cache.groups(); ++g) pages.emplace_back(store.page_bytes(g));
  return pages;
}

uint64_t hash_of(const Record& record, const std::vector<std::vector<std::byte>>& pages) {
  Hasher hash;
  hash.add(std::as_bytes(std::span(&record, 1)));
  for (size_t g = 0; g < pages.size(); ++g) {
    if (record.groups >> g & 1) hash.add(pages[g]);
  }
  return hash.value();
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// A mistyped name must not cost a file, nor another model's cache.
Result<void> check_replaceable(const std::string& path, const std::string& head) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) return {};
  std::string found(head.size(), '\0');
  found.resize(std::fread(found.data(), 1, found.size(), file.get()));
  if (found.empty() || found == head) return {};
  return fail(ErrorCode::kInvalidInput,
              "{} holds something else than a cache of this model, and stays as it is; another name would work", path);
}

}  // namespace

Result<int64_t> write_cache_file(const std::string& path, const std::string& identity, const KvCache& cache,
                                 const PageStore& store, const std::function<void()>& progress) {
  if (cache.groups() > static_cast<int64_t>(kMostGroups)) {
    return fail(ErrorCode::kUnsupported, "{}: cannot save a cache of {} KV groups; up to {} can be", path,
                cache.groups(), kMostGroups);
  }
  const std::string head = header(identity, cache, store);
  HEARTH_TRY(check_replaceable(path, head));
  HEARTH_ASSIGN(ReplacingFile file, ReplacingFile::create(path));
  HEARTH_TRY(file.write(head.data(), head.size()));
  auto pages = page_buffers(cache, store);
  int64_t tokens = 0;
  for (PrefixTree::Node node : cache.nodes()) {
    const PrefixTree& tree = cache.tree();
    Record record{.node = static_cast<uint32_t>(node),
                  .parent = static_cast<uint32_t>(tree.parent(node)),
                  .kept = tree.kept(node)};
    std::ranges::copy(tree.tokens(node), record.tokens);
    for (size_t g = 0; g < pages.size(); ++g) {
      const int32_t page = tree.pages(node)[g];
      if (page < 0) continue;
      record.groups |= uint32_t{1} << g;
      HEARTH_TRY(store.read(static_cast<int64_t>(g), page, pages[g]));
    }
    const uint64_t hash = hash_of(record, pages);
    HEARTH_TRY(file.write(&record, sizeof record));
    HEARTH_TRY(file.write(&hash, sizeof hash));
    for (size_t g = 0; g < pages.size(); ++g) {
      if (record.groups >> g & 1) HEARTH_TRY(file.write(pages[g].data(), pages[g].size()));
    }
    tokens += kPageTokens;
    progress();
  }
  const uint32_t end = 0;
  HEARTH_TRY(file.write(&end, sizeof end));
  HEARTH_TRY(file.commit());
  return tokens;
}

Result<RestoredCache> read_cache_file(const std::string& path, const std::string& identity, KvCache& cache,
                                      PageStore& store, const std::function<void()>& progress) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return fail(code, "cannot restore the cache from {}: {}", path, std::strerror(errno));
  }
  const auto read = [&](void* to, size_t bytes) { return std::fread(to, 1, bytes, file.get()) == bytes; };
  const std::string expected = header(identity, cache, store);
  std::string head(expected.size(), '\0');
  if (!read(head.data(), head.size()) || head != expected) {
    if (!head.starts_with(std::string_view(kMagic, sizeof kMagic))) {
      return fail(ErrorCode::kInvalidInput, "cannot restore the cache from {}: it is no cache file", path);
    }
    return fail(ErrorCode::kInvalidInput,
                "cannot restore the cache from {}: it was saved with another model, KV type or device than this one "
                "({})",
                path, identity);
  }
  const auto damaged = [&] {
    return fail(ErrorCode::kInvalidInput, "{}: the cache file is damaged or incomplete; what it held up to there works",
                path);
  };

  struct Restored {
    PrefixTree::Node node;
    bool leaf = true;
  };
  std::unordered_map<uint32_t, Restored> nodes{{0, {PrefixTree::kRoot, false}}};
  std::vector<uint32_t> order;
  auto pages = page_buffers(cache, store);
  RestoredCache result;
  bool room = true;
  while (room) {
    progress();
    Record record{};
    uint64_t hash = 0;
    if (!read(&record.node, sizeof record.node)) return damaged();
    if (record.node == 0) break;
    if (!read(&record.parent, sizeof record - sizeof record.node) || !read(&hash, sizeof hash)) return damaged();
    if (pages.size() < kMostGroups && record.groups >> pages.size() != 0) return damaged();
    for (size_t g = 0; g < pages.size(); ++g) {
      if ((record.groups >> g & 1) && !read(pages[g].data(), pages[g].size())) return damaged();
    }
    const auto parent = nodes.find(record.parent);
    if (hash != hash_of(record, pages) || parent == nodes.end() || nodes.contains(record.node)) return damaged();
    const PrefixTree::Node above = parent->second.node;
    PrefixTree::Node node = cache.tree().find(above, record.tokens);
    if (node == PrefixTree::kNone) {
      std::vector<bool> groups(pages.size());
      for (size_t g = 0; g < groups.size(); ++g) groups[g] = record.groups >> g & 1;
      node = cache.restore(above, record.tokens, record.kept != 0, groups);
      if (node == PrefixTree::kNone) {
        room = false;
        continue;
      }
      for (size_t g = 0; g < pages.size(); ++g) {
        if (!groups[g]) continue;
        Result<void> written = store.write(static_cast<int64_t>(g), cache.tree().pages(node)[g], pages[g]);
        if (written) continue;
        cache.forget(node);
        return std::move(written).error();
      }
      result.tokens += kPageTokens;
    }
    parent->second.leaf = false;
    nodes[record.node] = {node};
    order.push_back(record.node);
  }
  size_t told = 0;
  for (uint32_t id : order) {
    if (!nodes[id].leaf || told > kMostToldTokens) continue;
    std::vector<int32_t>& tokens = result.sequences.emplace_back();
    for (auto node = nodes[id].node; node != PrefixTree::kRoot; node = cache.tree().parent(node)) {
      const auto part = cache.tree().tokens(node);
      tokens.insert(tokens.end(), part.rbegin(), part.rend());
    }
    std::ranges::reverse(tokens);
    told += tokens.size();
  }
  std::ranges::reverse(result.sequences);  // the one to remember longest comes last
  return result;
}

}  // namespace hearth
