// What the prefix cache holds, in a file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/page_store.h"
#include "memory/kv_cache.h"

namespace hearth {

// Layout, all integers in the machine's own order:
//   "HRTHKV01", identity (u32 length, bytes), u32 groups, u64 bytes of a page of each group
//   for each node of the prefix tree, parents first and the last to go first:
//     u32 node (not 0), u32 parent (0: the root), u32 kept, u32 groups that have a page (bit mask), i32 tokens[16],
//     u64 hash of the fields above and of the pages, the pages
//   u32 0
// Pages in the host's memory are no different from those of the device here. Returns the number of tokens that were
// written. `identity`: of all that the pages' content depends on. `progress` is called for each node.
Result<int64_t> write_cache_file(const std::string& path, const std::string& identity, const KvCache& cache,
                                 const PageStore& store, const std::function<void()>& progress);

struct RestoredCache {
  int64_t tokens = 0;                           // in new nodes
  std::vector<std::vector<int32_t>> sequences;  // the paths of the file's tree that were taken, whole
};
// Adds what the file holds to the cache, as far as pages are free. kInvalidInput for a file of something else and for a
// damaged one; what was read before the damage is sound and stays.
Result<RestoredCache> read_cache_file(const std::string& path, const std::string& identity, KvCache& cache,
                                      PageStore& store, const std::function<void()>& progress);

}  // namespace hearth
