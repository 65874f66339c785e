// The CPU's workers: the calling thread is worker 0; all run the same job and meet at barriers inside it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"

namespace hearth::cpu {

class ThreadPool {
 public:
  // One worker for each entry: the CPU it is pinned to, or -1. Worker 0 is whoever calls run(), pinned only meanwhile.
  // Fails with kIo when the system grants fewer threads; those that had started have ended then.
  static Result<std::unique_ptr<ThreadPool>> start(std::vector<int> cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const { return static_cast<int>(cpus_.size()); }

  // Calls job(context, worker) on every worker and returns when all have returned. One caller at a time.
  void run(void (*job)(void* context, int worker), void* context);

  // Inside a job. barrier(): returns when all workers are there; next_tile() starts at 0 again after it.
  void barrier();
  // 0, 1, 2 ... each handed out once.
  int64_t next_tile() { return next_tile_.fetch_add(1, std::memory_order_relaxed); }

 private:
  explicit ThreadPool(std::vector<int> cpus);
  void worker_loop(int worker);

  std::vector<int> cpus_;
  std::vector<std::thread> threads_;
  void (*job_)(void*, int) = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  // Each on a cache line of its own.
  alignas(64) std::atomic<uint32_t> epoch_{0};    // raised to start a job
  alignas(64) std::atomic<uint32_t> arrived_{0};  // at the current barrier
  alignas(64) std::atomic<uint32_t> barrier_{0};  // raised when all have arrived
  alignas(64) std::atomic<int64_t> next_tile_{0};
};

}  // namespace hearth::cpu
