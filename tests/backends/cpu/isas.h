// The instruction sets of this architecture, the best last, whether or not this machine has them.
#pragma once

#include <string>
#include <vector>

namespace hearth::cpu {

inline std::vector<std::string> isa_names() {
#if defined(__x86_64__)
  return {"portable", "avx2", "avxvnni", "avx512", "amx"};
#elif defined(__aarch64__)
  return {"portable", "neon"};
#else
  return {"portable"};
#endif
}

}  // namespace hearth::cpu
