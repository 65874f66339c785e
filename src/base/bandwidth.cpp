#include "base/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

namespace hearth {
namespace {

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

ReadMeter::ReadMeter(int64_t threads, size_t bytes_per_thread)
    : bytes_per_thread_(bytes_per_thread), barrier_(static_cast<ptrdiff_t>(std::max<int64_t>(1, threads)) + 1) {
  threads = std::max<int64_t>(1, threads);
  passes_.resize(static_cast<size_t>(threads));
  try {
    while (std::ssize(workers_) < threads) {
      workers_.emplace_back([this, &pass = passes_[workers_.size()]] { work(pass); });
    }
  } catch (const std::system_error&) {  // no more threads: those that there are tell what they can
    for (int64_t missing = threads - std::ssize(workers_); missing > 0; --missing) barrier_.arrive_and_drop();
  }
  barrier_.arrive_and_wait();  // all buffers are written
}

ReadMeter::~ReadMeter() {
  more_ = false;
  barrier_.arrive_and_wait();
  for (std::thread& worker : workers_) worker.join();
}

void ReadMeter::work(Pass& pass) {
  constexpr size_t kHugePage = size_t{2} << 20;
  std::unique_ptr<void, decltype(&std::free)> data(std::aligned_alloc(kHugePage, bytes_per_thread_), std::free);
  if (data) {
    // As the weights lie: in huge pages, near the thread that reads them.
    ::madvise(data.get(), bytes_per_thread_, MADV_HUGEPAGE);
    std::memset(data.get(), 1, bytes_per_thread_);
    bytes_ += bytes_per_thread_;
  }
  barrier_.arrive_and_wait();
  while (true) {
    barrier_.arrive_and_wait();
    if (!more_) return;
    if (data) {
      pass.begin = Clock::now();
      sink_ += read_all(static_cast<const Vector*>(data.get()), bytes_per_thread_ / sizeof(Vector));
      pass.end = Clock::now();
    }
    barrier_.arrive_and_wait();
  }
}

double ReadMeter::measure(double seconds) {
  double best = 0;
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    barrier_.arrive_and_wait();
    barrier_.arrive_and_wait();
    // The threads' own times: this one may be let run late.
    Clock::time_point begin = Clock::time_point::max(), last = Clock::time_point::min();
    for (const Pass& pass : passes_) {
      if (pass.begin == Clock::time_point()) continue;
      begin = std::min(begin, pass.begin);
      last = std::max(last, pass.end);
    }
    if (begin < last)
      best = std::max(best, static_cast<double>(bytes_) / std::chrono::duration<double>(last - begin).count());
  } while (Clock::now() < end);
  return best;
}

double measure_read_bandwidth(int64_t threads, double seconds) { return ReadMeter(threads).measure(seconds); }

}  // namespace hearth
