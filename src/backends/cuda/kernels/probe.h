// What the kernel that measures memory is given.
#pragma once

#include <cstdint>

namespace hearth::cuda {

struct ProbeParams {
  const uint8_t* data;  // of zeros, 16 bytes each
  uint64_t count;
  uint32_t* out;
};
inline constexpr int kProbeThreads = 512;

}  // namespace hearth::cuda
