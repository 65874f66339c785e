// The physical pages of one KV group: who uses each, and which are free. It holds no KV itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hearth {

// A page is free, in use (by one or more live sequences), or cached (by the prefix tree alone). The tree may hold a
// page that is also in use. free + in use + cached = total, always.
class PagePool {
 public:
  explicit PagePool(int64_t pages);

  // A free page, now in use by one sequence. The page freed last comes first: its memory is the warmest.
  std::optional<int32_t> allocate();
  // One more live sequence uses the page, or one fewer.
  void use(int32_t page);
  void unuse(int32_t page);
  // The prefix tree takes the page, or gives it up.
  void cache(int32_t page);
  void uncache(int32_t page);

  int64_t users(int32_t page) const { return pages_[static_cast<size_t>(page)].users; }
  bool is_cached(int32_t page) const { return pages_[static_cast<size_t>(page)].cached; }
  int64_t total() const { return static_cast<int64_t>(pages_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t in_use() const { return in_use_; }
  int64_t cached() const { return cached_; }

  // Recounts everything; aborts when the counters or the free list do not agree with the pages.
  void check() const;

 private:
  struct Page {
    int32_t users = 0;
    bool cached = false;
  };
  Page& at(int32_t page);
  void free_if_unused(int32_t page);

  std::vector<Page> pages_;
  std::vector<int32_t> free_;
  int64_t in_use_ = 0;
  int64_t cached_ = 0;
};

}  // namespace hearth
