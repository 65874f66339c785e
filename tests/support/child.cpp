#include "support/child.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace hearth::testing {

bool can_limit_address_space() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#endif
#endif
  constexpr size_t kMore = size_t{64} << 20;
  return run_with_address_space(kMore, [] {
           return mmap(nullptr, 2 * kMore, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? 0 : 1;
         }) == 0;
}

int run_with_address_space(size_t more_bytes, const std::function<int()>& body) {
  pid_t child = fork();
  if (child < 0) return 100;
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more_bytes;
    rlimit limit{most, most};
    _exit(setrlimit(RLIMIT_AS, &limit) == 0 ? body() : 100);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 100;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

}  // namespace hearth::testing
