// The vector codebooks of the IQ1, IQ2 and IQ3 formats, and their signs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth {

template <size_t Entries, size_t Length>
struct VectorCodebook {
  int8_t entry[Entries][Length];
};

extern const VectorCodebook<256, 8> kIq2XxsGrid;  // elements 8, 25 or 43
extern const VectorCodebook<512, 8> kIq2XsGrid;
extern const VectorCodebook<1024, 8> kIq2SGrid;
extern const VectorCodebook<2048, 8> kIq1Grid;    // -1, 0 or 1
extern const VectorCodebook<256, 4> kIq3XxsGrid;  // 4, 12, 20, 28, 36, 44, 52 or 62
extern const VectorCodebook<512, 4> kIq3SGrid;    // 1, 3 .. 15

// 1 or -1, where bit k of the index is set; of an index of seven bits, bit 7 makes the number of minus signs even.
extern const VectorCodebook<256, 8> kSigns;
extern const VectorCodebook<128, 8> kEvenSigns;

// scale * entry * sign. Without branches, which signs would mislead half of the time.
template <size_t Length>
inline void decode_vector(float scale, const int8_t (&entry)[Length], const int8_t* signs, float* out) {
  int values[Length];  // apart, because `out` might overlap the tables for all that a compiler knows
  for (size_t k = 0; k < Length; ++k) values[k] = entry[k] * signs[k];
  for (size_t k = 0; k < Length; ++k) out[k] = scale * static_cast<float>(values[k]);
}

}  // namespace hearth
