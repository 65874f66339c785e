// Counter-based random numbers: a draw depends on its key and counter alone, so that no state has to be kept, copied or
// rolled back. Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace hearth {

constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// What a draw is for. Draws for different purposes at one position are independent.
enum class RandomStream : uint32_t { kToken = 0, kXtc = 1, kAllowedToken = 2 };

// Uniform in [0, 1) with 53 bits.
constexpr double uniform(uint64_t seed, int64_t position, RandomStream stream) {
  const auto p = static_cast<uint64_t>(position);
  const auto words =
      philox4x32({static_cast<uint32_t>(p), static_cast<uint32_t>(p >> 32), static_cast<uint32_t>(stream), 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace hearth
