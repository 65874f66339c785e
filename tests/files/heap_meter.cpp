#include "heap_meter.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> current{0};
std::atomic<size_t> peak{0};

void* allocate(size_t size_bytes) {
  void* p = std::malloc(size_bytes ? size_bytes : 1);
  if (!p) std::abort();
  size_t now = current += malloc_usable_size(p);
  size_t seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return p;
}

void release(void* p) {
  if (!p) return;
  current -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace

void* operator new(size_t size_bytes) { return allocate(size_bytes); }
void* operator new[](size_t size_bytes) { return allocate(size_bytes); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, size_t) noexcept { release(p); }
void operator delete[](void* p, size_t) noexcept { release(p); }

namespace hearth {

size_t heap_bytes() { return current; }
size_t heap_peak_bytes() { return peak; }
void reset_heap_peak() { peak = current.load(); }

}  // namespace hearth
