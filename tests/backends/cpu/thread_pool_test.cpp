#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <numeric>
#include <thread>

#include "support/child.h"

namespace hearth::cpu {
namespace {

struct Phases {
  ThreadPool& pool;
  int phases;
  int64_t tiles;
  std::vector<std::vector<int>> done;  // [phase][tile]
  bool ordered = true;
};

void run_phases(Phases& p) {
  p.pool.run(
      [](void* context, ThreadPool::Worker& worker) {
        auto& p = *static_cast<Phases*>(context);
        for (int phase = 0; phase < p.phases; ++phase) {
          worker.each_tile(p.tiles, [&](int64_t t) {
            // Everything of the phase before must be visible.
            if (phase > 0) {
              const auto& before = p.done[static_cast<size_t>(phase - 1)];
              if (std::accumulate(before.begin(), before.end(), 0) != p.tiles) p.ordered = false;
            }
            ++p.done[static_cast<size_t>(phase)][static_cast<size_t>(t)];
          });
          worker.barrier();
        }
      },
      &p);
}

TEST(ThreadPool, EveryTileOnceAndPhasesInOrder) {
  for (int workers : {1, 2, 3, 5}) {
    auto started = ThreadPool::start(std::vector<int>(static_cast<size_t>(workers), -1));
    ASSERT_TRUE(started);
    ThreadPool& pool = **started;
    EXPECT_EQ(pool.workers(), workers);
    for (int round = 0; round < 20; ++round) {
      Phases p{pool, 8, 13, std::vector(8, std::vector<int>(13, 0))};
      run_phases(p);
      EXPECT_TRUE(p.ordered);
      for (const auto& phase : p.done) EXPECT_EQ(phase, std::vector<int>(13, 1));
    }
  }
}

// One worker comes late, and there are phases without tiles: the others go on, and each tile is done once.
TEST(ThreadPool, NobodyWaitsForAWorkerWithoutATile) {
  auto pool = ThreadPool::start(std::vector<int>(3, -1));
  ASSERT_TRUE(pool);
  struct Job {
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    std::atomic<int> tiles{0};
    double seconds = 1;  // until worker 0 was through
  } job;
  (*pool)->run(
      [](void* context, ThreadPool::Worker& worker) {
        auto& job = *static_cast<Job*>(context);
        if (worker.index() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
        for (int phase = 0; phase < 99; ++phase) {
          if (phase % 3 > 0) worker.each_tile(phase % 3 == 1 ? 5 : 0, [&](int64_t) { ++job.tiles; });
          worker.barrier();
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - job.start;
        if (worker.index() == 0) job.seconds = took.count();
      },
      &job);
  EXPECT_EQ(job.tiles, 33 * 5);
  EXPECT_LT(job.seconds, 0.25);
}

TEST(ThreadPool, SleepsWhenIdle) {
  auto pool = ThreadPool::start(std::vector<int>(3, -1));
  ASSERT_TRUE(pool);
  Phases p{**pool, 1, 4, std::vector(1, std::vector<int>(4, 0))};
  run_phases(p);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // past the spinning
  std::clock_t before = std::clock();                          // CPU time of all threads
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used, 0.02);
  run_phases(p);  // and wakes up again
  EXPECT_EQ(p.done[0], std::vector<int>(4, 2));
}

TEST(ThreadPool, GivesTheCallerItsAffinityBack) {
  cpu_set_t before, after;
  ASSERT_EQ(pthread_getaffinity_np(pthread_self(), sizeof before, &before), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  auto pool = ThreadPool::start({cpu, cpu});
  ASSERT_TRUE(pool);
  Phases p{**pool, 3, 4, std::vector(3, std::vector<int>(4, 0))};
  run_phases(p);
  ASSERT_EQ(pthread_getaffinity_np(pthread_self(), sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ThreadPool, SaysWhenTheSystemGrantsFewerThreads) {
  if (!testing::can_limit_address_space()) GTEST_SKIP();
  pthread_attr_t attributes;
  size_t stack = 0;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_getstacksize(&attributes, &stack), 0);
  EXPECT_EQ(testing::run_with_address_space(4 * stack,  // room for a few threads
                                            [] {
                                              auto pool = ThreadPool::start(std::vector<int>(16, -1));
                                              if (pool || pool.error().code != ErrorCode::kIo) return 1;
                                              const std::string& message = pool.error().message;
                                              if (!message.starts_with("cannot start thread ")) return 2;
                                              if (message.find(" of 16: ") == std::string::npos) return 3;
                                              // What was started has ended: there is room for it again.
                                              return ThreadPool::start({-1, -1}) ? 0 : 4;
                                            }),
            0);
}

}  // namespace
}  // namespace hearth::cpu
