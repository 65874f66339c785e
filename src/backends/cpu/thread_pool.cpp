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

ThreadPool::ThreadPool(std::vector<int> cpus) : cpus_(std::move(cpus)) {
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

void ThreadPool::run(void (*job)(void*, int), void* context) {
  ScopedPin pinned(cpus_[0]);
  job_ = job;
  context_ = context;
  next_tile_.store(0, std::memory_order_relaxed);
  // Sequentially consistent, here and in barrier(): notify_all() looks for sleepers after the store, not before.
  epoch_.fetch_add(1);
  epoch_.notify_all();
  job(context, 0);
  barrier();
}

void ThreadPool::barrier() {
  if (workers() == 1) {
    next_tile_.store(0, std::memory_order_relaxed);
    return;
  }
  uint32_t round = barrier_.load(std::memory_order_relaxed);  // cannot change before this worker arrives
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(workers())) {
    arrived_.store(0, std::memory_order_relaxed);
    next_tile_.store(0, std::memory_order_relaxed);
    barrier_.store(round + 1);
    barrier_.notify_all();
  } else {
    wait_while(barrier_, round);
  }
}

void ThreadPool::worker_loop(int worker) {
  pin(cpus_[static_cast<size_t>(worker)]);
  for (uint32_t epoch = 0;; ++epoch) {
    wait_while(epoch_, epoch);
    if (stop_) return;
    job_(context_, worker);
    barrier();
  }
}

}  // namespace hearth::cpu
