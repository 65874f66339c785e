#include "memory/kv_cache.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace hearth {
namespace {

// Worth keeping at once are sequences of at least 1/8 of all pages, which are expensive to compute again, and those
// that go on from something kept that is as long as what they add: the next turn of a conversation.
bool worth_keeping(int64_t pages, int64_t kept, int64_t all) { return pages * 8 >= all || kept * 2 >= pages; }

int64_t most_pages(std::span<const KvGroupPages> groups) {
  int64_t most = 0;
  for (const KvGroupPages& group : groups) most = std::max(most, group.pages);
  return most;
}

}  // namespace

int64_t pages_needed(int64_t tokens, int64_t window, int64_t rows, int64_t page_tokens) {
  const int64_t all = ceil_div(tokens, page_tokens);
  // The window can begin inside a page.
  return window == 0 ? all : std::min(all, ceil_div(window + rows, page_tokens) + 1);
}

// A node without any page is of use only above nodes that have some (sliding windows), so that four nodes for each page
// of the largest group are plenty.
KvCache::KvCache(std::span<const KvGroupPages> groups, int64_t page_tokens, bool keep_prefixes)
    : page_tokens_(page_tokens),
      keep_prefixes_(keep_prefixes),
      most_pages_(most_pages(groups)),
      tree_(page_tokens, static_cast<int64_t>(groups.size()), keep_prefixes ? 4 * most_pages_ : 0),
      run_(groups.size()),
      gone_(static_cast<size_t>(keep_prefixes ? 4 * most_pages_ : 0)) {
  for (const KvGroupPages& group : groups) groups_.push_back({PagePool(group.pages), group.window});
  path_.reserve(static_cast<size_t>(tree_.max_nodes()));
}

PageTable KvCache::make_table(int64_t max_tokens) const {
  PageTable table;
  table.pages.resize(groups_.size());
  for (auto& pages : table.pages) pages.reserve(static_cast<size_t>(ceil_div(max_tokens, page_tokens_)));
  table.dropped.resize(groups_.size());
  return table;
}

int64_t KvCache::first_visible_page(const Group& group, int64_t position) const {
  if (group.window == 0) return 0;
  return std::max<int64_t>(0, position - group.window + 1) / page_tokens_;
}

int64_t KvCache::find_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid) {
  HEARTH_CHECK(grid % page_tokens_ == 0, "grid {}, page {}", grid, page_tokens_);
  const int64_t most = std::min<int64_t>(limit, static_cast<int64_t>(tokens.size())) / page_tokens_;
  path_.clear();
  std::ranges::fill(run_, 0);
  int64_t usable = 0;  // pages
  PrefixTree::Node node = PrefixTree::kRoot;
  for (int64_t i = 0; i < most; ++i) {
    node = tree_.find(node, tokens.subspan(static_cast<size_t>(i * page_tokens_), static_cast<size_t>(page_tokens_)));
    if (node == PrefixTree::kNone) break;
    path_.push_back(node);
    bool complete = ((i + 1) * page_tokens_) % grid == 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      run_[g] = tree_.pages(node)[g] >= 0 ? run_[g] + 1 : 0;
      if (run_[g] < i + 1 - first_visible_page(groups_[g], (i + 1) * page_tokens_)) complete = false;
    }
    if (complete) usable = i + 1;
  }
  return usable;
}

int64_t KvCache::adopt_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid, PageTable& table) {
  const int64_t usable = find_prefix(tokens, limit, grid);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int64_t first = std::min(usable, first_visible_page(groups_[g], usable * page_tokens_));
    table.pages[g].assign(static_cast<size_t>(first), -1);
    table.dropped[g] = first;
    for (int64_t i = first; i < usable; ++i) {
      const int32_t page = tree_.pages(path_[static_cast<size_t>(i)])[g];
      groups_[g].pool.use(page);
      table.pages[g].push_back(page);
    }
  }
  if (usable > 0) tree_.touch(path_[static_cast<size_t>(usable - 1)], /*keep=*/true);
  return usable * page_tokens_;
}

KvCache::Miss KvCache::explain_miss(std::span<const int32_t> tokens, int64_t limit, int64_t grid) const {
  if (!keep_prefixes_) return {.reason = CacheMiss::kUnused};
  const int64_t most = std::min<int64_t>(limit, static_cast<int64_t>(tokens.size())) / grid * grid / page_tokens_;
  PrefixTree::Node node = PrefixTree::kRoot;
  for (int64_t i = 0; i < most; ++i) {
    const int64_t position = i * page_tokens_;
    const auto page = tokens.subspan(static_cast<size_t>(position), static_cast<size_t>(page_tokens_));
    const PrefixTree::Node child = tree_.find(node, page);
    if (child == PrefixTree::kNone) {
      const uint64_t path = tree_.path_of(node, page);
      const Gone& gone = gone_[path % gone_.size()];
      if (gone.why != CacheMiss::kNone && gone.path == path) return {.reason = gone.why, .position = position};
      const int64_t common = tree_.longest_beginning(node, page);
      const CacheMiss other = common > 0 || (node != PrefixTree::kRoot && !tree_.is_leaf(node)) ? CacheMiss::kChanged
                              : node == PrefixTree::kRoot                                       ? CacheMiss::kNew
                                                                                                : CacheMiss::kLonger;
      return {.reason = other, .position = position + common};
    }
    node = child;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const bool seen = i >= first_visible_page(groups_[g], most * page_tokens_);
      if (seen && tree_.pages(node)[g] < 0) return {.reason = CacheMiss::kEvicted, .position = position};
    }
  }
  return {.position = most * page_tokens_};
}

bool KvCache::extend(PageTable& table, int64_t tokens) {
  const auto wanted = static_cast<size_t>(ceil_div(tokens, page_tokens_));
  for (size_t g = 0; g < groups_.size(); ++g) {
    while (table.pages[g].size() < wanted) {
      std::optional<int32_t> page = groups_[g].pool.allocate();
      if (!page) {
        if (!evict_page(static_cast<int64_t>(g))) return false;
        page = groups_[g].pool.allocate();
      }
      table.pages[g].push_back(*page);
    }
  }
  return true;
}

void KvCache::drop_behind(PageTable& table, int64_t position) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int64_t end =
        std::min<int64_t>(first_visible_page(groups_[g], position), static_cast<int64_t>(table.pages[g].size()));
    for (int64_t& i = table.dropped[g]; i < end; ++i) {
      int32_t& page = table.pages[g][static_cast<size_t>(i)];
      groups_[g].pool.unuse(page);
      page = -1;
    }
  }
}

void KvCache::truncate(PageTable& table, int64_t tokens) {
  const auto wanted = static_cast<size_t>(ceil_div(tokens, page_tokens_));
  for (size_t g = 0; g < groups_.size(); ++g) {
    while (table.pages[g].size() > wanted) {
      if (table.pages[g].back() >= 0) groups_[g].pool.unuse(table.pages[g].back());
      table.pages[g].pop_back();
    }
    table.dropped[g] = std::min(table.dropped[g], static_cast<int64_t>(table.pages[g].size()));
  }
}

void KvCache::release(PageTable& table) { truncate(table, 0); }

void KvCache::insert(std::span<const int32_t> tokens, int64_t grid, PageTable& table, bool whole) {
  if (!keep_prefixes_) return;
  const int64_t pages = static_cast<int64_t>(tokens.size()) / grid * grid / page_tokens_;
  PrefixTree::Node node = PrefixTree::kRoot;
  int64_t kept = 0;
  for (int64_t i = 0; i < pages; ++i) {
    const auto page_tokens = tokens.subspan(static_cast<size_t>(i * page_tokens_), static_cast<size_t>(page_tokens_));
    PrefixTree::Node child = tree_.find(node, page_tokens);
    if (child == PrefixTree::kNone) {
      if (tree_.size() == tree_.max_nodes() && !evict_leaf(node)) break;
      child = tree_.add(node, page_tokens);
    }
    node = child;
    if (tree_.kept(node)) ++kept;
    const std::span<int32_t> cached = tree_.pages(node);
    for (size_t g = 0; g < groups_.size(); ++g) {
      PagePool& pool = groups_[g].pool;
      int32_t& own = table.pages[g][static_cast<size_t>(i)];
      if (own < 0 || own == cached[g]) continue;
      if (cached[g] < 0) {
        pool.cache(own);
        cached[g] = own;
        ++inserted_pages_;
      } else {
        pool.use(cached[g]);
        pool.unuse(own);
        own = cached[g];
      }
    }
  }
  if (node != PrefixTree::kRoot) tree_.touch(node, whole && worth_keeping(pages, kept, most_pages_));
}

bool KvCache::in_use(PrefixTree::Node node) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int32_t page = tree_.pages(node)[g];
    if (page >= 0 && groups_[g].pool.users(page) > 0) return true;
  }
  return false;
}

// Any place will do: which reason a log names is no matter of life.
void KvCache::remember_gone(uint64_t path, CacheMiss why) { gone_[path % gone_.size()] = {.path = path, .why = why}; }

void KvCache::remove_node(PrefixTree::Node node, CacheMiss why) {
  remember_gone(tree_.path(node), why);
  const std::span<int32_t> pages = tree_.pages(node);
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (pages[g] >= 0) groups_[g].pool.uncache(pages[g]);
    pages[g] = -1;
  }
  tree_.remove(node);
}

bool KvCache::evict_page(int64_t group) {
  Group& g = groups_[static_cast<size_t>(group)];
  for (auto node = tree_.first_to_go(); node != PrefixTree::kNone; node = tree_.next_to_go(node)) {
    int32_t& page = tree_.pages(node)[static_cast<size_t>(group)];
    if (page < 0 || g.pool.users(page) > 0) continue;
    if (tree_.is_leaf(node)) {
      remove_node(node, CacheMiss::kEvicted);
      return true;
    }
    // Below it are nodes that others use, or that have no page of this group themselves: only windows leave those.
    g.pool.uncache(page);
    page = -1;
    return true;
  }
  return false;
}

bool KvCache::evict_leaf(PrefixTree::Node except) {
  for (auto node = tree_.first_to_go(); node != PrefixTree::kNone; node = tree_.next_to_go(node)) {
    if (node == except || !tree_.is_leaf(node) || in_use(node)) continue;
    remove_node(node, CacheMiss::kEvicted);
    return true;
  }
  return false;
}

std::vector<PrefixTree::Node> KvCache::nodes() const {
  std::vector<PrefixTree::Node> nodes;
  for (auto node = tree_.first_to_go(); node != PrefixTree::kNone; node = tree_.next_to_go(node)) nodes.push_back(node);
  std::ranges::reverse(nodes);
  return nodes;
}

PrefixTree::Node KvCache::restore(PrefixTree::Node parent, std::span<const int32_t> tokens, bool keep,
                                  const std::vector<bool>& groups) {
  if (!keep_prefixes_ || tree_.size() == tree_.max_nodes()) return PrefixTree::kNone;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups[g] && groups_[g].pool.free() == 0) return PrefixTree::kNone;
  }
  const PrefixTree::Node node = tree_.add(parent, tokens, keep && (parent == PrefixTree::kRoot || tree_.kept(parent)));
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (!groups[g]) continue;
    const int32_t page = *groups_[g].pool.allocate();
    groups_[g].pool.cache(page);
    groups_[g].pool.unuse(page);
    tree_.pages(node)[g] = page;
  }
  return node;
}

void KvCache::clear() {
  // Nodes go before their ancestors, so one walk meets every node after its children.
  for (auto node = tree_.first_to_go(); node != PrefixTree::kNone;) {
    const auto next = tree_.next_to_go(node);
    if (tree_.is_leaf(node) && !in_use(node)) {
      remove_node(node, CacheMiss::kCleared);
    } else {
      for (size_t g = 0; g < groups_.size(); ++g) {
        int32_t& page = tree_.pages(node)[g];
        if (page < 0 || groups_[g].pool.users(page) > 0) continue;
        groups_[g].pool.uncache(page);
        page = -1;
      }
    }
    node = next;
  }
}

int64_t KvCache::available(int64_t group) const {
  const PagePool& pool = groups_[static_cast<size_t>(group)].pool;
  return pool.free() + pool.cached();
}

int64_t KvCache::pages_needed(int64_t group, int64_t tokens, int64_t rows) const {
  return hearth::pages_needed(tokens, groups_[static_cast<size_t>(group)].window, rows, page_tokens_);
}

KvCacheStats KvCache::stats() const {
  KvCacheStats stats;
  for (const Group& group : groups_) {
    stats.total += group.pool.total();
    stats.in_use += group.pool.in_use();
    stats.cached += group.pool.cached();
  }
  return stats;
}

void KvCache::check(std::span<const PageTable* const> tables) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const PagePool& pool = groups_[g].pool;
    pool.check();
    std::vector<int64_t> users(static_cast<size_t>(pool.total()));
    std::vector<bool> cached(static_cast<size_t>(pool.total()));
    for (const PageTable* table : tables) {
      for (int32_t page : table->pages[g]) {
        if (page >= 0) ++users[static_cast<size_t>(page)];
      }
    }
    for (auto node = tree_.first_to_go(); node != PrefixTree::kNone; node = tree_.next_to_go(node)) {
      const int32_t page = tree_.pages(node)[g];
      if (page < 0) continue;
      HEARTH_CHECK(!cached[static_cast<size_t>(page)], "group {}: page {} is in two nodes", g, page);
      cached[static_cast<size_t>(page)] = true;
    }
    for (int32_t page = 0; page < pool.total(); ++page) {
      HEARTH_CHECK(pool.users(page) == users[static_cast<size_t>(page)] &&
                       pool.is_cached(page) == cached[static_cast<size_t>(page)],
                   "group {} page {}: users {} (counted {}), cached {} (counted {})", g, page, pool.users(page),
                   users[static_cast<size_t>(page)], pool.is_cached(page), bool{cached[static_cast<size_t>(page)]});
    }
  }
}

}  // namespace hearth
