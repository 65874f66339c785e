#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hearth {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  std::fprintf(stderr, "hearth: bug: %s:%d: %s does not hold: %s\n", file, line, condition, detail.c_str());
  std::abort();
}

}  // namespace hearth
