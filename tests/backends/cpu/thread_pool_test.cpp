#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <numeric>

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
      [](void* context, int) {
        auto& p = *static_cast<Phases*>(context);
        for (int phase = 0; phase < p.phases; ++phase) {
          for (int64_t t = p.pool.next_tile(); t < p.tiles; t = p.pool.next_tile()) {
            // Everything of the phase before must be visible.
            if (phase > 0) {
              const auto& before = p.done[static_cast<size_t>(phase - 1)];
              if (std::accumulate(before.begin(), before.end(), 0) != p.tiles) p.ordered = false;
            }
            ++p.done[static_cast<size_t>(phase)][static_cast<size_t>(t)];
          }
          p.pool.barrier();
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

// The child may map a few stacks more than it has; the parent's limits stay as they are.
TEST(ThreadPool, SaysWhenTheSystemGrantsFewerThreads) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers map more than any limit";
#endif
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    pthread_attr_t attributes;
    size_t stack = 0;
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &stack);
    rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + 4 * stack;
    rlimit limit{most, most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    auto pool = ThreadPool::start(std::vector<int>(16, -1));
    if (pool || pool.error().code != ErrorCode::kIo) _exit(3);
    if (!pool.error().message.starts_with("cannot start thread ")) _exit(4);
    if (pool.error().message.find(" of 16: ") == std::string::npos) _exit(5);
    // What was started has ended: the few that there is room for start again.
    _exit(ThreadPool::start({-1, -1}) ? 0 : 6);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hearth::cpu
