#include "memory/page_pool.h"

#include "base/check.h"

namespace hearth {

PagePool::PagePool(int64_t pages) : pages_(static_cast<size_t>(pages)) {
  free_.reserve(pages_.size());
  for (int64_t i = pages - 1; i >= 0; --i) free_.push_back(static_cast<int32_t>(i));
}

PagePool::Page& PagePool::at(int32_t page) {
  HEARTH_CHECK(page >= 0 && page < total(), "page {} of {}", page, total());
  return pages_[static_cast<size_t>(page)];
}

std::optional<int32_t> PagePool::allocate() {
  if (free_.empty()) return std::nullopt;
  const int32_t page = free_.back();
  free_.pop_back();
  at(page).users = 1;
  ++in_use_;
  return page;
}

void PagePool::use(int32_t page) {
  Page& p = at(page);
  HEARTH_CHECK(p.users > 0 || p.cached, "page {} is free", page);
  if (p.users++ == 0) {
    ++in_use_;
    --cached_;
  }
}

void PagePool::unuse(int32_t page) {
  Page& p = at(page);
  HEARTH_CHECK(p.users > 0, "page {} is not in use", page);
  if (--p.users > 0) return;
  --in_use_;
  if (p.cached) ++cached_;
  free_if_unused(page);
}

void PagePool::cache(int32_t page) {
  Page& p = at(page);
  HEARTH_CHECK(p.users > 0 && !p.cached, "page {}: users {}, cached {}", page, p.users, p.cached);
  p.cached = true;
}

void PagePool::uncache(int32_t page) {
  Page& p = at(page);
  HEARTH_CHECK(p.cached, "page {} is not cached", page);
  p.cached = false;
  if (p.users == 0) --cached_;
  free_if_unused(page);
}

void PagePool::free_if_unused(int32_t page) {
  const Page& p = at(page);
  if (p.users == 0 && !p.cached) free_.push_back(page);
}

void PagePool::check() const {
  std::vector<bool> is_free(pages_.size(), false);
  for (int32_t page : free_) {
    const Page& p = pages_[static_cast<size_t>(page)];
    HEARTH_CHECK(!is_free[static_cast<size_t>(page)], "page {} is twice in the free list", page);
    HEARTH_CHECK(p.users == 0 && !p.cached, "free page {}: users {}, cached {}", page, p.users, p.cached);
    is_free[static_cast<size_t>(page)] = true;
  }
  int64_t in_use = 0;
  int64_t cached = 0;
  for (const Page& p : pages_) {
    if (p.users > 0) ++in_use;
    if (p.users == 0 && p.cached) ++cached;
  }
  HEARTH_CHECK(in_use == in_use_ && cached == cached_ && free() + in_use + cached == total(),
               "free {}, in use {} (counted {}), cached {} (counted {}), total {}", free(), in_use_, in_use, cached_,
               cached, total());
}

}  // namespace hearth
