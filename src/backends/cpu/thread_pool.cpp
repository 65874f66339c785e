#include "backends/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <system_error>
#include <utility>

namespace hearth::cpu {
namespace {

// Waking a sleeping thread costs tens of microseconds; the gaps inside a step are shorter, those between steps longer.
constexpr auto kSpin = std::chrono::microseconds(50);

constexpr uint32_t kClosed = uint32_t{1} << 31;

uint64_t first_tile_of(uint32_t phase) { return uint64_t{phase} << 32; }

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns when `value` is no longer `old`.
void wait_while(const std::atomic<uint32_t>& value, uint32_t old) {
  auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

void pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // failing only costs speed
}

// Pins the calling thread and gives it back its own affinity at the end: the thread is the caller's.
class ScopedPin {
 public:
  explicit ScopedPin(int cpu) {
    if (cpu < 0) return;
    saved_ = pthread_getaffinity_np(pthread_self(), sizeof set_, &set_) == 0;
    if (saved_) pin(cpu);
  }
  ~ScopedPin() {
    if (saved_) pthread_setaffinity_np(pthread_self(), sizeof set_, &set_);
  }
  ScopedPin(const ScopedPin&) = delete;
  ScopedPin& operator=(const ScopedPin&) = delete;

 private:
  cpu_set_t set_;
  bool saved_ = false;
};

}  // namespace

ThreadPool::ThreadPool(std::vector<int> cpus) : cpus_(std::move(cpus)), inside_(kClosed) {
  if (cpus_.empty()) cpus_.push_back(-1);
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::start(std::vector<int> cpus) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool(std::move(cpus)));
  for (int worker = 1; worker < pool->workers(); ++worker) {
    try {
      pool->threads_.emplace_back([p = pool.get(), worker] { p->worker_loop(worker); });
    } catch (const std::system_error& error) {
      return fail(ErrorCode::kIo, "cannot start thread {} of {}: {}; fewer threads (-t) would work", worker + 1,
                  pool->workers(), error.code().message());
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(void (*job)(void*, Worker&), void* context) {
  ScopedPin pinned(cpus_[0]);
  job_ = job;
  context_ = context;
  first_phase_ = phase_.load(std::memory_order_relaxed);
  inside_.store(0, std::memory_order_release);
  // Sequentially consistent, here and below: notify_all() looks for sleepers after the store, not before.
  epoch_.fetch_add(1);
  epoch_.notify_all();
  Worker self(*this, 0, first_phase_);
  job(context, self);
  self.barrier();
  inside_.fetch_or(kClosed);
  for (uint32_t inside = inside_.load(); inside != kClosed; inside = inside_.load()) wait_while(inside_, inside);
}

void ThreadPool::worker_loop(int index) {
  pin(cpus_[static_cast<size_t>(index)]);
  for (uint32_t seen = 0;;) {
    wait_while(epoch_, seen);
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_) return;
    if (!enter()) continue;
    Worker self(*this, index, first_phase_);
    job_(context_, self);
    self.barrier();
    leave();
  }
}

// False when the job is over: others did all of it.
bool ThreadPool::enter() {
  uint32_t inside = inside_.load(std::memory_order_relaxed);
  do {
    if (inside & kClosed) return false;
  } while (!inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire, std::memory_order_relaxed));
  return true;
}

void ThreadPool::leave() {
  if (inside_.fetch_sub(1) == (kClosed | 1)) inside_.notify_all();
}

void ThreadPool::advance(uint32_t phase) {
  done_.store(0, std::memory_order_relaxed);
  work_.store(first_tile_of(phase + 1), std::memory_order_release);
  phase_.store(phase + 1);
  phase_.notify_all();
}

int64_t ThreadPool::Worker::claim(int64_t tiles) {
  uint64_t work = pool_.work_.load(std::memory_order_relaxed);
  do {
    if (static_cast<uint32_t>(work >> 32) != phase_) return -1;
    if (static_cast<int64_t>(work & 0xffffffff) >= tiles) return -1;
  } while (!pool_.work_.compare_exchange_weak(work, work + 1, std::memory_order_acquire, std::memory_order_relaxed));
  return static_cast<int64_t>(work & 0xffffffff);
}

void ThreadPool::Worker::finish(int64_t done, int64_t tiles) {
  tiled_ = tiles > 0;
  if (done > 0 && pool_.done_.fetch_add(done, std::memory_order_acq_rel) + done == tiles) pool_.advance(phase_);
}

void ThreadPool::Worker::barrier() {
  if (!tiled_) {
    // A phase without tiles: whoever is first ends it.
    uint64_t work = first_tile_of(phase_);
    if (pool_.work_.compare_exchange_strong(work, work + 1, std::memory_order_acq_rel)) pool_.advance(phase_);
  }
  tiled_ = false;
  wait_while(pool_.phase_, phase_);
  ++phase_;
}

}  // namespace hearth::cpu
