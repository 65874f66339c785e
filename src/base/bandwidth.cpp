#include "base/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace hearth {
namespace {

constexpr size_t kBytesPerThread = size_t{256} << 20;

// Sums 64-byte lines; eight accumulators keep enough loads in flight.
uint64_t read_all(const uint64_t* data, size_t words) {
  uint64_t sum[8] = {};
  for (size_t i = 0; i + 64 <= words; i += 64) {
    for (size_t line = 0; line < 8; ++line) {
      uint64_t line_sum = 0;
      for (size_t w = 0; w < 8; ++w) line_sum += data[i + 8 * line + w];
      sum[line] += line_sum;
    }
  }
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

}  // namespace

double measure_read_bandwidth(int64_t threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  threads = std::max<int64_t>(1, threads);
  constexpr size_t kWords = kBytesPerThread / sizeof(uint64_t);
  std::barrier barrier(static_cast<ptrdiff_t>(threads) + 1);
  std::atomic<bool> more = true;
  std::atomic<uint64_t> sink = 0;
  std::vector<std::thread> workers;
  for (int64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      std::unique_ptr<uint64_t[]> data(new uint64_t[kWords]);
      std::memset(data.get(), 1, kBytesPerThread);  // the pages exist and lie near this thread
      while (true) {
        barrier.arrive_and_wait();
        if (!more) return;
        sink += read_all(data.get(), kWords);
        barrier.arrive_and_wait();
      }
    });
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
