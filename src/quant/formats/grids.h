// The vector codebooks of the IQ1, IQ2 and IQ3 formats. They were found by optimization, so they are data: the numbers
// are those of ggml (see grids.cpp for its notice), packed with a few bits per element.
#pragma once

#include <cstdint>

namespace hearth {

// Two bits per element, eight elements per entry, element k in bits 2k and 2k + 1: level 0, 1 or 2.
extern const uint16_t kIq2XxsGrid[256];
extern const uint16_t kIq2XsGrid[512];
extern const uint16_t kIq2SGrid[1024];
extern const uint16_t kIq1Grid[2048];
// Three bits per element, four elements per entry: level 0 .. 7.
extern const uint16_t kIq3XxsGrid[256];
extern const uint16_t kIq3SGrid[512];

inline constexpr int kIq2Levels[4] = {8, 25, 43, 0};  // level 3 does not occur
inline constexpr int kIq3XxsLevels[8] = {4, 12, 20, 28, 36, 44, 52, 62};

constexpr int iq2_value(uint16_t entry, int k) { return kIq2Levels[(entry >> (2 * k)) & 3]; }
constexpr int iq1_value(uint16_t entry, int k) { return ((entry >> (2 * k)) & 3) - 1; }
constexpr int iq3_xxs_value(uint16_t entry, int k) { return kIq3XxsLevels[(entry >> (3 * k)) & 7]; }
constexpr int iq3_s_value(uint16_t entry, int k) { return 2 * ((entry >> (3 * k)) & 7) + 1; }

// Sign byte of a seven-bit index: bit 7 makes the number of minus signs even.
constexpr uint8_t even_signs(uint32_t index) {
  uint32_t parity = index ^ (index >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return static_cast<uint8_t>((index & 127) | (parity & 1) << 7);
}

}  // namespace hearth
