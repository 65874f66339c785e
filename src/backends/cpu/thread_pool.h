// The CPU's workers: the calling thread is worker 0. A job is a row of phases; a phase is over when its tiles are done,
// whoever did them.
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
  // One worker's way through a job. Every worker goes through the same phases.
  //
  // Nobody waits for a worker whose core the system gave to something else, as long as it has no tile in its hands:
  // when it comes back it finds its phase over, gets no tile and goes on to the next. So what a worker does outside of
  // its tiles must not touch what tiles write.
  class Worker {
   public:
    int index() const { return index_; }
    int count() const { return pool_.workers(); }

    // Calls f(tile) for the tiles of [0, tiles) that this worker gets. At most once in a phase; `tiles` (below 2^32) is
    // the same for all workers.
    template <class F>
    void each_tile(int64_t tiles, F&& f) {
      int64_t done = 0;
      for (int64_t tile = claim(tiles); tile >= 0; tile = claim(tiles)) {
        f(tile);
        ++done;
      }
      finish(done, tiles);
    }
    // Ends the phase: returns when all of its tiles are done.
    void barrier();

   private:
    friend class ThreadPool;
    Worker(ThreadPool& pool, int index, uint32_t phase) : pool_(pool), index_(index), phase_(phase) {}
    // The next tile of this phase, -1 if there is none left.
    int64_t claim(int64_t tiles);
    void finish(int64_t done, int64_t tiles);

    ThreadPool& pool_;
    int index_;
    uint32_t phase_;
    bool tiled_ = false;  // each_tile() was called in this phase
  };

  // One worker for each entry: the CPU it is pinned to, or -1. Worker 0 is whoever calls run(), pinned only meanwhile.
  // Fails with kIo when the system grants fewer threads; those that had started have ended then.
  static Result<std::unique_ptr<ThreadPool>> start(std::vector<int> cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const { return static_cast<int>(cpus_.size()); }

  // Calls job(context, worker) on every worker that comes in time and returns when the tiles of all phases are done and
  // no worker is inside of it. One caller at a time.
  void run(void (*job)(void* context, Worker& worker), void* context);

 private:
  explicit ThreadPool(std::vector<int> cpus);
  void worker_loop(int index);
  bool enter();
  void leave();
  void advance(uint32_t phase);

  std::vector<int> cpus_;
  std::vector<std::thread> threads_;
  void (*job_)(void*, Worker&) = nullptr;
  void* context_ = nullptr;
  uint32_t first_phase_ = 0;  // of the job
  std::atomic<bool> stop_ = false;
  // Each on a cache line of its own.
  alignas(64) std::atomic<uint32_t> epoch_{0};  // raised to start a job
  alignas(64) std::atomic<uint32_t> inside_;    // workers in the job beside worker 0; kClosed: nobody enters any more
  alignas(64) std::atomic<uint32_t> phase_{0};  // raised when all tiles of it are done; counts on from job to job
  alignas(64) std::atomic<uint64_t> work_{0};   // the phase in the upper half, its next tile in the lower one
  alignas(64) std::atomic<int64_t> done_{0};    // tiles of the phase
};

}  // namespace hearth::cpu
