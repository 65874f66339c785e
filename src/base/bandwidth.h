// The speed at which this machine's memory can be read: the ceiling that decode speed is compared with.
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace hearth {

// Threads that read buffers of their own, far larger than the caches together.
class ReadMeter {
 public:
  // Threads that the system refuses are missing, and so are buffers.
  explicit ReadMeter(int64_t threads, size_t bytes_per_thread = size_t{256} << 20);
  ~ReadMeter();
  ReadMeter(const ReadMeter&) = delete;
  ReadMeter& operator=(const ReadMeter&) = delete;

  // Reads all buffers again and again for about `seconds`; returns the best pass in bytes per second, 0 without
  // buffers.
  double measure(double seconds);

 private:
  using Clock = std::chrono::steady_clock;
  // When a thread began and ended its part of a pass: it may have waited for a core.
  struct Pass {
    Clock::time_point begin, end;
  };
  void work(Pass& pass);

  size_t bytes_per_thread_;
  std::barrier<> barrier_;
  std::atomic<bool> more_ = true;
  std::atomic<size_t> bytes_ = 0;   // of all buffers
  std::atomic<uint64_t> sink_ = 0;  // what was read is used
  std::vector<Pass> passes_;        // of each thread; those without a buffer have none
  std::vector<std::thread> workers_;
};

// Reads a buffer far larger than the caches with `threads` threads for about `seconds`, several passes; returns the
// best pass in bytes per second.
double measure_read_bandwidth(int64_t threads, double seconds = 0.3);

}  // namespace hearth
