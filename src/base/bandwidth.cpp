#include "base/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace hearth {
namespace {

constexpr size_t kBytesPerThread = size_t{256} << 20;

using Vector = uint64_t __attribute__((vector_size(16)));

// Sums the buffer; eight accumulators of 16 bytes keep enough loads in flight on any x86-64 or AArch64.
uint64_t read_all(const Vector* data, size_t count) {
  Vector sum[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (size_t j = 0; j < 8; ++j) sum[j] += data[i + j];
  }
  Vector total = (sum[0] + sum[1]) + (sum[2] + sum[3]) + (sum[4] + sum[5]) + (sum[6] + sum[7]);
  return total[0] + total[1];
}

}  // namespace

double measure_read_bandwidth(int64_t threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  threads = std::max<int64_t>(1, threads);
  std::barrier barrier(static_cast<ptrdiff_t>(threads) + 1);
  std::atomic<bool> more = true;
  std::atomic<uint64_t> sink = 0;
  auto work = [&] {
    constexpr size_t kHugePage = size_t{2} << 20;
    std::unique_ptr<void, decltype(&std::free)> data(std::aligned_alloc(kHugePage, kBytesPerThread), std::free);
    if (data) {
      // As the weights lie: in huge pages, near the thread that reads them.
      ::madvise(data.get(), kBytesPerThread, MADV_HUGEPAGE);
      std::memset(data.get(), 1, kBytesPerThread);
    }
    while (true) {
      barrier.arrive_and_wait();
      if (!more) return;
      if (data) sink += read_all(static_cast<const Vector*>(data.get()), kBytesPerThread / sizeof(Vector));
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::thread> workers;
  try {
    while (std::ssize(workers) < threads) workers.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads: those that there are tell what they can
    for (int64_t missing = threads - std::ssize(workers); missing > 0; --missing) barrier.arrive_and_drop();
    threads = std::ssize(workers);
  }
  double best = 0;
  Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    barrier.arrive_and_wait();
    Clock::time_point start = Clock::now();
    barrier.arrive_and_wait();
    double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, static_cast<double>(threads) * kBytesPerThread / elapsed);
  } while (Clock::now() < end);
  more = false;
  barrier.arrive_and_wait();
  for (std::thread& worker : workers) worker.join();
  return best;
}

}  // namespace hearth
