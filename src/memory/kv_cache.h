// The KV pages of all sequences: page tables, the pool of each KV group and the prefix tree over them. It decides who
// holds which physical page; what is in a page is the device's business.
//
// Pages that the device has no room for can go on in the host's memory. A page of a group is a number: below the pages
// of the device one of these, from there on one of the host's. Sequences hold pages of the device only; a node of the
// tree has, for each group, a page in either place or none. Pages move, so that none is in both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hearth/engine.h"
#include "memory/page_pool.h"
#include "memory/prefix_tree.h"

namespace hearth {

struct KvGroupPages {
  int64_t pages = 0;       // physical pages of the group on the device
  int64_t window = 0;      // a query at position i sees keys j with i - window < j <= i; 0: all j <= i
  int64_t host_pages = 0;  // and in the host's memory
};

struct PageMove {
  int32_t group = 0;
  int32_t device_page = 0;
  int32_t host_page = 0;  // not below the group's pages on the device
};

// Copies what is in pages of one group. False: not all is copied, and the targets hold anything.
class PageMover {
 public:
  virtual ~PageMover() = default;
  [[nodiscard]] virtual bool to_host(std::span<const PageMove> moves) = 0;
  [[nodiscard]] virtual bool to_device(std::span<const PageMove> moves) = 0;
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
  int64_t total = 0;        // pages of the device over all groups
  int64_t in_use = 0;       // by live sequences
  int64_t cached = 0;       // by the prefix tree alone
  int64_t host_total = 0;   // pages in the host's memory over all groups
  int64_t host_cached = 0;  // of them, those that the prefix tree holds
};

class KvCache {
 public:
  // `keep_prefixes`: false switches the prefix tree off. `mover` outlives the cache; nullptr: there are no host pages.
  KvCache(std::span<const KvGroupPages> groups, int64_t page_tokens, bool keep_prefixes, PageMover* mover = nullptr);

  // An empty table with room for `max_tokens`, so that it never allocates.
  PageTable make_table(int64_t max_tokens) const;

  // Gives an empty table the pages of the longest usable cached prefix: whole multiples of `grid` tokens (itself whole
  // pages), at most `limit` tokens. Returns its length in tokens. A prefix is usable when every page that the next
  // position can see is there, on the device or in the host's memory. What is in the host's memory is moved to the
  // device, and other pages out of its way, which is two copies a page when the device is full; the prefix ends where
  // live sequences leave no room for it, or where copying fails: those pages are lost.
  int64_t adopt_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid, PageTable& table);

  // The length of the prefix that adopt_prefix() would find.
  int64_t cached_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid) {
    return find_prefix(tokens, limit, grid) * page_tokens_;
  }
  // For each group, how many pages of that prefix live sequences use already: it costs no room to adopt these.
  std::vector<int64_t> shared_pages(std::span<const int32_t> tokens, int64_t limit, int64_t grid);
  // Why that prefix is no longer, and the first token that it misses.
  struct Miss {
    CacheMiss reason = CacheMiss::kNone;
    int64_t position = 0;
  };
  Miss explain_miss(std::span<const int32_t> tokens, int64_t limit, int64_t grid) const;

  // Adds pages until positions [0, tokens) have one, taking back cached pages that nobody uses: those of short prompts
  // that were used once before those of long or repeated ones, so that small unrelated requests leave conversations
  // alone. What they hold moves to the host's memory, as many pages as are wanted here and no more; when that is full,
  // the first to go in both places is lost. False when there are not enough; the table keeps what it got.
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
  // Tokens of all adopted prefixes that had a page in the host's memory.
  int64_t returned_tokens() const { return returned_tokens_; }
  // Gives back all pages.
  void release(PageTable& table);

  // Pages that extend() could hand out in this group.
  int64_t available(int64_t group) const;
  int64_t pages_needed(int64_t group, int64_t tokens, int64_t rows) const;
  int64_t groups() const { return static_cast<int64_t>(groups_.size()); }

  // For files: the nodes of the prefix tree, parents before their children and the last to go first.
  std::vector<PrefixTree::Node> nodes() const;
  const PrefixTree& tree() const { return tree_; }
  // Adds a node below `parent` with a page that was free for each group in `groups`, the device's first, and makes it
  // the first to go of its kind. kNone when there is no room; what is there is never pushed out.
  PrefixTree::Node restore(PrefixTree::Node parent, std::span<const int32_t> tokens, bool keep,
                           const std::vector<bool>& groups);
  // Takes back what restore() gave, whose content could not be had.
  void forget(PrefixTree::Node leaf) { remove_node(leaf, CacheMiss::kEvicted); }

  // Drops every cached page that no live sequence uses.
  void clear();
  KvCacheStats stats() const;
  // Pages of the group that the prefix tree holds in the host's memory.
  int64_t host_cached(int64_t group) const;
  // Recounts pools and tree; aborts on a disagreement. `tables`: those of all live sequences.
  void check(std::span<const PageTable* const> tables) const;

 private:
  struct Group {
    PagePool pool;
    int64_t window;
    int64_t host_pages;
    std::vector<int32_t> free_host;  // the one to take next is the last

    bool in_host(int32_t page) const { return page >= pool.total(); }
    bool used(int32_t page) const { return page >= 0 && !in_host(page) && pool.users(page) > 0; }
    bool idle(int32_t page) const { return page >= 0 && !in_host(page) && pool.users(page) == 0; }
  };
  // Pages of the longest usable prefix, at most `limit` tokens; its nodes are the first of path_.
  int64_t find_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid);
  // First logical page that a query at `position` can see.
  int64_t first_visible_page(const Group& group, int64_t position) const;
  // First logical page of a prefix of so many pages that the position behind it can see.
  int64_t first_wanted(const Group& group, int64_t pages) const;
  // How many pages that prefix is too long for the room on the device, at least; its nodes are the first of path_.
  int64_t lacking_pages(int64_t pages) const;
  // Gives the table that prefix. False when something could not be copied, and is lost.
  bool take_prefix(int64_t pages, PageTable& table);
  bool move_to_device(int64_t group, int64_t pages, PageTable& table);
  // Takes `count` pages of the device from the nodes that go first, if so many are idle. The host's pages of path_ up
  // to `guard`, whose nodes are the last to go, are left alone; kNone: nothing is.
  void make_room(int64_t group, int64_t count, PrefixTree::Node guard);
  // A page of the host for a node: a free one, or that of a node which goes before it; -1: there is none.
  int32_t take_host_page(int64_t group, PrefixTree::Node node, PrefixTree::Node guard);
  // Takes the node's page of a group back, and with it the node when nothing below needs it.
  void drop_page(PrefixTree::Node node, int64_t group);
  // Of the prefix tree.
  void give_back(int64_t group, int32_t& page);
  // Removes the oldest leaf that no live sequence uses and that is not `except`.
  bool evict_leaf(PrefixTree::Node except);
  bool in_use(PrefixTree::Node node) const;
  void remove_node(PrefixTree::Node node, CacheMiss why);
  void remember_gone(uint64_t path, CacheMiss why);

  std::vector<Group> groups_;
  int64_t page_tokens_;
  bool keep_prefixes_;
  PageMover* mover_;
  int64_t most_pages_;  // of a group on the device
  PrefixTree tree_;
  std::vector<PrefixTree::Node> path_;  // scratch
  std::vector<int64_t> run_;            // scratch
  // Scratch of move_to_device() and make_room(): the moves, and for each its place in the path, or its node.
  std::vector<PageMove> in_, out_;
  std::vector<int64_t> in_places_;
  std::vector<PrefixTree::Node> out_nodes_;
  int64_t inserted_pages_ = 0;
  int64_t returned_tokens_ = 0;

  // What was in the tree and is not any longer, by the hash of its path: the latest of those that share a place.
  struct Gone {
    uint64_t path = 0;
    CacheMiss why = CacheMiss::kNone;
  };
  std::vector<Gone> gone_;
};

}  // namespace hearth
