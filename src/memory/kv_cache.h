// The KV pages of all sequences: page tables, the pool of each KV group and the prefix tree over them. It decides who
// holds which physical page; what is in a page is the device's business.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hearth/engine.h"
#include "memory/page_pool.h"
#include "memory/prefix_tree.h"

namespace hearth {

struct KvGroupPages {
  int64_t pages = 0;   // physical pages of the group
  int64_t window = 0;  // a query at position i sees keys j with i - window < j <= i; 0: all j <= i
};

// Pages of a group that a sequence of `tokens` tokens needs when at most `rows` positions are computed between the
// position of a KvCache::drop_behind() and the next. `window`: as above.
int64_t pages_needed(int64_t tokens, int64_t window, int64_t rows, int64_t page_tokens);

// The pages of one sequence.
struct PageTable {
  // [group][logical page]: the physical page; -1: the page lies behind the window and was given back.
  std::vector<std::vector<int32_t>> pages;
  // For each group, how many logical pages from the first on were given back.
  std::vector<int64_t> dropped;
};

struct KvCacheStats {
  int64_t total = 0;   // pages over all groups
  int64_t in_use = 0;  // by live sequences
  int64_t cached = 0;  // by the prefix tree alone
};

class KvCache {
 public:
  // `keep_prefixes`: false switches the prefix tree off.
  KvCache(std::span<const KvGroupPages> groups, int64_t page_tokens, bool keep_prefixes);

  // An empty table with room for `max_tokens`, so that it never allocates.
  PageTable make_table(int64_t max_tokens) const;

  // Gives an empty table the pages of the longest usable cached prefix: whole multiples of `grid` tokens (itself whole
  // pages), at most `limit` tokens. Returns its length in tokens. A prefix is usable when every page that the next
  // position can see is there.
  int64_t adopt_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid, PageTable& table);

  // The length of the prefix that adopt_prefix() would find.
  int64_t cached_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid) {
    return find_prefix(tokens, limit, grid) * page_tokens_;
  }
  // Why that prefix is no longer, and the first token that it misses.
  struct Miss {
    CacheMiss reason = CacheMiss::kNone;
    int64_t position = 0;
  };
  Miss explain_miss(std::span<const int32_t> tokens, int64_t limit, int64_t grid) const;

  // Adds pages until positions [0, tokens) have one, taking back cached pages that nobody uses: those of short prompts
  // that were used once before those of long or repeated ones, so that small unrelated requests leave conversations
  // alone. False
  // when there are not enough; the table keeps what it got.
  bool extend(PageTable& table, int64_t tokens);
  // Gives back pages that no query at or after `position` can see.
  void drop_behind(PageTable& table, int64_t position);
  // Gives back pages beyond the first `tokens` positions.
  void truncate(PageTable& table, int64_t tokens);
  // Puts the whole pages of the table's first tokens.size() positions (down to a multiple of `grid`) into the tree. A
  // page that the tree has already replaces the table's own copy. `whole`: false for a beginning of what will be
  // inserted later; whether it is worth keeping is decided then.
  void insert(std::span<const int32_t> tokens, int64_t grid, PageTable& table, bool whole = true);
  // How many pages insert() has put in so far.
  int64_t inserted_pages() const { return inserted_pages_; }
  // Gives back all pages.
  void release(PageTable& table);

  // Pages that extend() could hand out in this group.
  int64_t available(int64_t group) const;
  int64_t pages_needed(int64_t group, int64_t tokens, int64_t rows) const;
  int64_t groups() const { return static_cast<int64_t>(groups_.size()); }

  // For files: the nodes of the prefix tree, parents before their children and the last to go first.
  std::vector<PrefixTree::Node> nodes() const;
  const PrefixTree& tree() const { return tree_; }
  // Adds a node below `parent` with a page that was free for each group in `groups`, and makes it the first to go of
  // its kind. kNone when there is no room; what is there is never pushed out.
  PrefixTree::Node restore(PrefixTree::Node parent, std::span<const int32_t> tokens, bool keep,
                           const std::vector<bool>& groups);

  // Drops every cached page that no live sequence uses.
  void clear();
  KvCacheStats stats() const;
  // Recounts pools and tree; aborts on a disagreement. `tables`: those of all live sequences.
  void check(std::span<const PageTable* const> tables) const;

 private:
  struct Group {
    PagePool pool;
    int64_t window;
  };
  // Pages of the longest usable prefix, at most `limit` tokens; its nodes are the first of path_.
  int64_t find_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid);
  // First logical page that a query at `position` can see.
  int64_t first_visible_page(const Group& group, int64_t position) const;
  bool evict_page(int64_t group);
  // Removes the oldest leaf that no live sequence uses and that is not `except`.
  bool evict_leaf(PrefixTree::Node except);
  bool in_use(PrefixTree::Node node) const;
  void remove_node(PrefixTree::Node node, CacheMiss why);
  void remember_gone(uint64_t path, CacheMiss why);

  std::vector<Group> groups_;
  int64_t page_tokens_;
  bool keep_prefixes_;
  int64_t most_pages_;  // of a group
  PrefixTree tree_;
  std::vector<PrefixTree::Node> path_;  // scratch
  std::vector<int64_t> run_;            // scratch
  int64_t inserted_pages_ = 0;

  // What was in the tree and is not any longer, by the hash of its path: the latest of those that share a place.
  struct Gone {
    uint64_t path = 0;
    CacheMiss why = CacheMiss::kNone;
  };
  std::vector<Gone> gone_;
};

}  // namespace hearth
