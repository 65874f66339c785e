#include "memory/kv_cache.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace hearth {
namespace {

// Worth keeping at once are sequences of at least 1/8 of all pages, which are expensive to compute again, and those
// that go on from something kept that is as long as what they add: the next turn of a conversation.
bool worth_keeping(int64_t pages, int64_t kept, int64_t all) { return pages * 8 >= all || kept * 2 >= pages; }

// Pages that come back from the host's memory at a time. What they take the place of must be out before they are in, so
// that a host that is full loses as many for good; but a GPU waits once for all, about as long as a third of a page
// takes.
constexpr int64_t kMovedTogether = 8;

int64_t most_pages(std::span<const KvGroupPages> groups) {
  int64_t most = 0;
  for (const KvGroupPages& group : groups) most = std::max(most, group.pages);
  return most;
}

// A node without any page is of use only above nodes that have some (sliding windows), so that four nodes for each page
// of the largest group are plenty. In the host's memory nodes have a page of every group without a window.
int64_t most_nodes(std::span<const KvGroupPages> groups) {
  int64_t host = 0;
  for (const KvGroupPages& group : groups) host = std::max(host, group.host_pages);
  return 4 * most_pages(groups) + host;
}

}  // namespace

int64_t pages_needed(int64_t tokens, int64_t window, int64_t rows, int64_t page_tokens) {
  const int64_t all = ceil_div(tokens, page_tokens);
  // The window can begin inside a page.
  return window == 0 ? all : std::min(all, ceil_div(window + rows, page_tokens) + 1);
}

KvCache::KvCache(std::span<const KvGroupPages> groups, int64_t page_tokens, bool keep_prefixes, PageMover* mover)
    : page_tokens_(page_tokens),
      keep_prefixes_(keep_prefixes),
      mover_(mover),
      most_pages_(most_pages(groups)),
      tree_(page_tokens, static_cast<int64_t>(groups.size()), keep_prefixes ? most_nodes(groups) : 0),
      run_(groups.size()),
      gone_(static_cast<size_t>(keep_prefixes ? most_nodes(groups) : 0)) {
  for (const KvGroupPages& group : groups) {
    HEARTH_CHECK(group.host_pages == 0 || mover != nullptr, "{} host pages and nobody who moves them",
                 group.host_pages);
    // A window of one token keeps two, so that the last page of a prefix is always part of what its user sees.
    groups_.push_back({.pool = PagePool(group.pages),
                       .window = group.window == 1 ? 2 : group.window,
                       .host_pages = group.host_pages,
                       .free_host = {}});
    // The lowest first: memory is taken as they are used.
    for (int64_t i = group.host_pages; i-- > 0;) {
      groups_.back().free_host.push_back(static_cast<int32_t>(group.pages + i));
    }
  }
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

int64_t KvCache::first_wanted(const Group& group, int64_t pages) const {
  return std::min(pages, first_visible_page(group, pages * page_tokens_));
}

int64_t KvCache::adopt_prefix(std::span<const int32_t> tokens, int64_t limit, int64_t grid, PageTable& table) {
  int64_t usable = find_prefix(tokens, limit, grid);
  while (usable > 0) {
    const int64_t lacking = lacking_pages(usable);
    if (lacking == 0 && take_prefix(usable, table)) break;
    usable = find_prefix(tokens, (usable - lacking) * page_tokens_, grid);
  }
  return usable * page_tokens_;
}

std::vector<int64_t> KvCache::shared_pages(std::span<const int32_t> tokens, int64_t limit, int64_t grid) {
  const int64_t usable = find_prefix(tokens, limit, grid);
  std::vector<int64_t> shared(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (int64_t i = first_wanted(groups_[g], usable); i < usable; ++i) {
      if (groups_[g].used(tree_.pages(path_[static_cast<size_t>(i)])[g])) ++shared[g];
    }
  }
  return shared;
}

int64_t KvCache::lacking_pages(int64_t pages) const {
  int64_t lacking = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    int64_t wanted = 0, idle = 0;
    for (int64_t i = first_wanted(group, pages); i < pages; ++i) {
      const int32_t page = tree_.pages(path_[static_cast<size_t>(i)])[g];
      if (group.in_host(page)) ++wanted;
      if (group.idle(page)) ++idle;
    }
    lacking = std::max(lacking, wanted - (group.pool.free() + group.pool.cached() - idle));
  }
  return std::min(lacking, pages);
}

bool KvCache::take_prefix(int64_t pages, PageTable& table) {
  // The last to go from now on. What the table uses stays as well, so that only its host pages need to be guarded.
  tree_.touch(path_[static_cast<size_t>(pages - 1)], /*keep=*/true);
  int64_t returned = 0;
  for (int64_t i = 0; i < pages; ++i) {
    bool moves = false;
    for (size_t g = 0; g < groups_.size(); ++g) {
      Group& group = groups_[g];
      if (i == 0) table.dropped[g] = first_wanted(group, pages);
      const int32_t page = tree_.pages(path_[static_cast<size_t>(i)])[g];
      const bool wanted = i >= table.dropped[g];
      const bool here = wanted && !group.in_host(page);
      if (here) group.pool.use(page);
      table.pages[g].push_back(here ? page : -1);
      moves |= wanted && !here;
    }
    if (moves) ++returned;
  }
  for (size_t g = 0; returned > 0 && g < groups_.size(); ++g) {
    if (move_to_device(static_cast<int64_t>(g), pages, table)) continue;
    release(table);
    return false;
  }
  returned_tokens_ += returned * page_tokens_;
  return true;
}

bool KvCache::move_to_device(int64_t group, int64_t pages, PageTable& table) {
  const auto g = static_cast<size_t>(group);
  PagePool& pool = groups_[g].pool;
  const auto tree_page = [&](int64_t i) -> int32_t& { return tree_.pages(path_[static_cast<size_t>(i)])[g]; };
  for (int64_t next = table.dropped[g]; next < pages;) {
    in_.clear();
    in_places_.clear();
    for (; next < pages && std::ssize(in_) < kMovedTogether; ++next) {
      if (!groups_[g].in_host(tree_page(next))) continue;
      in_.push_back({.group = static_cast<int32_t>(group), .device_page = -1, .host_page = tree_page(next)});
      in_places_.push_back(next);
    }
    if (in_.empty()) break;
    if (const int64_t more = std::ssize(in_) - pool.free(); more > 0) {
      make_room(group, more, path_[static_cast<size_t>(pages - 1)]);
    }
    for (PageMove& move : in_) move.device_page = *pool.allocate();
    const bool moved = mover_->to_device(in_);
    for (size_t m = 0; m < in_.size(); ++m) {
      give_back(group, tree_page(in_places_[m]));
      if (moved) {
        pool.cache(in_[m].device_page);
        tree_page(in_places_[m]) = table.pages[g][static_cast<size_t>(in_places_[m])] = in_[m].device_page;
      } else {
        pool.unuse(in_[m].device_page);
      }
    }
    if (!moved) return false;
  }
  return true;
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
    PagePool& pool = groups_[g].pool;
    const auto missing = static_cast<int64_t>(wanted) - std::ssize(table.pages[g]);
    if (missing > pool.free()) make_room(static_cast<int64_t>(g), missing - pool.free(), PrefixTree::kNone);
    while (table.pages[g].size() < wanted) {
      const std::optional<int32_t> page = pool.allocate();
      if (!page) return false;
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
      if (cached[g] < 0 || groups_[g].in_host(cached[g])) {
        if (cached[g] < 0) ++inserted_pages_;
        give_back(static_cast<int64_t>(g), cached[g]);
        pool.cache(own);
        cached[g] = own;
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
    if (groups_[g].used(tree_.pages(node)[g])) return true;
  }
  return false;
}

// Any place will do: which reason a log names is no matter of life.
void KvCache::remember_gone(uint64_t path, CacheMiss why) { gone_[path % gone_.size()] = {.path = path, .why = why}; }

void KvCache::remove_node(PrefixTree::Node node, CacheMiss why) {
  remember_gone(tree_.path(node), why);
  for (int64_t g = 0; g < groups(); ++g) give_back(g, tree_.pages(node)[static_cast<size_t>(g)]);
  tree_.remove(node);
}

void KvCache::give_back(int64_t group, int32_t& page) {
  Group& g = groups_[static_cast<size_t>(group)];
  if (g.in_host(page)) {
    g.free_host.push_back(page);
  } else if (page >= 0) {
    g.pool.uncache(page);
  }
  page = -1;
}

void KvCache::drop_page(PrefixTree::Node node, int64_t group) {
  if (tree_.is_leaf(node)) return remove_node(node, CacheMiss::kEvicted);
  // Below it are nodes that others use, that have no page of this group themselves (only windows leave those), or whose
  // pages in the host's memory are of no use from now on and go in their turn.
  give_back(group, tree_.pages(node)[static_cast<size_t>(group)]);
}

// A page of Qwen3-0.6B (1.8 MB) takes 0.04 to 0.07 ms to the host's memory at 25 to 50 GB/s, by calculation, and the
// walk over nodes whose pages are there already some ns for each. An answer wants a page in 16 steps, a chunk of 512
// rows 32 of them.
void KvCache::make_room(int64_t group, int64_t count, PrefixTree::Node guard) {
  const auto index = static_cast<size_t>(group);
  Group& g = groups_[index];
  out_.clear();
  out_nodes_.clear();
  for (auto node = tree_.first_to_go(), next = node; node != PrefixTree::kNone && count > 0; node = next) {
    next = tree_.next_to_go(node);
    int32_t& page = tree_.pages(node)[index];
    if (!g.idle(page)) continue;
    --count;
    const int32_t host_page = take_host_page(group, node, guard);
    if (host_page < 0) {
      drop_page(node, group);
      continue;
    }
    out_.push_back({.group = static_cast<int32_t>(group), .device_page = page, .host_page = host_page});
    out_nodes_.push_back(node);
    give_back(group, page);  // nobody takes it before it is copied
    page = host_page;
  }
  // Later ones may have taken the place of earlier ones.
  size_t kept = 0;
  for (size_t m = 0; m < out_.size(); ++m) {
    if (tree_.pages(out_nodes_[m])[index] != out_[m].host_page) continue;
    out_[kept] = out_[m];
    out_nodes_[kept++] = out_nodes_[m];
  }
  if (kept == 0 || mover_->to_host(std::span(out_).first(kept))) return;
  for (size_t m = 0; m < kept; ++m) drop_page(out_nodes_[m], group);
}

int32_t KvCache::take_host_page(int64_t group, PrefixTree::Node node, PrefixTree::Node guard) {
  const auto index = static_cast<size_t>(group);
  Group& g = groups_[index];
  if (g.host_pages == 0) return -1;
  if (g.free_host.empty()) {
    auto other = tree_.first_to_go();
    while (other != node && other != guard && !g.in_host(tree_.pages(other)[index])) other = tree_.next_to_go(other);
    if (other == node || other == guard) return -1;
    drop_page(other, group);
  }
  const int32_t page = g.free_host.back();
  g.free_host.pop_back();
  return page;
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
    if (groups[g] && groups_[g].pool.free() == 0 && groups_[g].free_host.empty()) return PrefixTree::kNone;
  }
  const PrefixTree::Node node = tree_.add(parent, tokens, keep && (parent == PrefixTree::kRoot || tree_.kept(parent)));
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (!groups[g]) continue;
    Group& group = groups_[g];
    if (const std::optional<int32_t> page = group.pool.allocate()) {
      group.pool.cache(*page);
      group.pool.unuse(*page);
      tree_.pages(node)[g] = *page;
    } else {
      tree_.pages(node)[g] = group.free_host.back();
      group.free_host.pop_back();
    }
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
        if (!groups_[g].used(page)) give_back(static_cast<int64_t>(g), page);
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
    stats.host_total += group.host_pages;
  }
  for (int64_t g = 0; g < groups(); ++g) stats.host_cached += host_cached(g);
  return stats;
}

int64_t KvCache::host_cached(int64_t group) const {
  const Group& g = groups_[static_cast<size_t>(group)];
  return g.host_pages - std::ssize(g.free_host);
}

void KvCache::check(std::span<const PageTable* const> tables) const {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const PagePool& pool = groups_[g].pool;
    pool.check();
    const int64_t all = pool.total() + groups_[g].host_pages;
    std::vector<int64_t> users(static_cast<size_t>(pool.total()));
    std::vector<bool> cached(static_cast<size_t>(all));
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
    std::vector<bool> is_free(static_cast<size_t>(all));
    for (int32_t page : groups_[g].free_host) {
      HEARTH_CHECK(groups_[g].in_host(page) && !is_free[static_cast<size_t>(page)],
                   "group {}: host page {} is free twice", g, page);
      is_free[static_cast<size_t>(page)] = true;
    }
    for (int64_t page = pool.total(); page < all; ++page) {
      HEARTH_CHECK(cached[static_cast<size_t>(page)] != is_free[static_cast<size_t>(page)],
                   "group {}: host page {} is in a node and free, or neither", g, page);
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
