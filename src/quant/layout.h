// How the blocks of a matrix lie in memory: native (as in the file) or planar (what the fast kernels read).
//
// PLANAR. The rows of a matrix [rows, cols] form panels of 16 rows; the last panel is filled up with zero rows. Panels
// follow each other and all have panel_bytes(). A panel consists of planes, each padded to a multiple of 64 bytes, in
// this order: codes, high bits, sub-scales, scales. A plane the format lacks has no bytes.
//
// Except for `scales`, a plane is a sequence of 64-byte *lines*; dword r (little-endian) of a line belongs to row r of
// the panel. One line is one AVX-512 register or two AVX2 registers, so that lane = row and dot products need no
// horizontal sums; on a GPU four rows are one 16-byte load. The dword of line i, by code width:
//
//   f32        element i
//   f16, bf16  elements 2i (low half), 2i+1 (high half); an odd last element is followed by 0
//   8 bits     byte b is the code of element 4i + b
//   4 bits     byte b holds element 8i + b in its low nibble and element 8i + 4 + b in its high nibble
//   2 bits     bits 2q and up of byte b are the code of element 16i + 4q + b (q 0..3)
//   high, 1    bit q of byte b is the code bit above the others of element 32i + 4q + b (q 0..7)
//   high, 2    bits 2q and up of byte b are the two code bits above the others of element 16i + 4q + b (q 0..3)
//
// so after `line >> shift` and one mask every byte of a dword is a code of four consecutive elements. Codes are
// unsigned. The value of an element is  scale * (code - zero) [+ min]  in f32, zero being a constant of the format; a
// codebook format has  scale * table[code]  instead (quant/formats/codebooks.h):
//
//   format   code bits  zero   scale of an element                      min                      bits per weight
//   Q8_0     8          128    d of its 32                              none                     8.5
//   Q4_0     4          8      d of its 32                              none                     4.5
//   Q4_1     4          0      d of its 32                              m of its 32              5
//   Q5_0     4 + 1      16     d of its 32                              none                     5.5
//   Q5_1     4 + 1      0      d of its 32                              m of its 32              6
//   Q2_K     2          0      d of its 256 * four-bit sc of its 16     -(dmin * four-bit m)     2.625
//   Q3_K     2 + 1      4      d of its 256 * (six-bit sc - 32)         none                     3.4375
//   Q4_K     4          0      d of its 256 * six-bit sc of its 32      -(dmin * six-bit m)      4.5
//   Q5_K     4 + 1      0      as Q4_K                                  as Q4_K                  5.5
//   Q6_K     4 + 2      32     d of its 256 * i8 of its 16              none                     6.5625
//   IQ4_NL   4          table  d of its 32                              none                     4.5
//   IQ4_XS   4          table  d of its 256 * (six-bit sc of its 32 - 32)   none                 4.25
//   MXFP4    4          table  2^(e of its 32 - 128)                    none                     4.25
//   NVFP4    4          table  E4M3 of its 16 / 2                       none                     4.5
//   NF4      4          table  d of its 64                              none                     4.25
//
// sub-scales, lines as above:
//   Q2_K        four lines per 256 elements: byte b of line i belongs to 16-element group 4i + b, sc in its low nibble,
//               m in its high nibble
//   Q3_K        three lines per 256 elements, the 12 packed bytes of the file format as dwords s0, s1, s2; byte j of
//               the four below is sc of group 4i + j:
//               sc 0..3  = s0 & 0x0f0f0f0f      | s2 << 4 & 0x30303030
//               sc 4..7  = s1 & 0x0f0f0f0f      | s2 << 2 & 0x30303030
//               sc 8..11 = s0 >> 4 & 0x0f0f0f0f | s2 & 0x30303030
//               sc 12..15 = s1 >> 4 & 0x0f0f0f0f | s2 >> 2 & 0x30303030
//   Q4_K, Q5_K  three lines per 256 elements, the 12 packed bytes of the file format as dwords s0, s1, s2:
//               sc 0..3 = s0 & 0x3f3f3f3f              m 0..3 = s1 & 0x3f3f3f3f
//               sc 4..7 = s2 & 0x0f0f0f0f | s0 >> 2 & 0x30303030
//               m  4..7 = s2 >> 4 & 0x0f0f0f0f | s1 >> 2 & 0x30303030      (byte j of each: group j or 4 + j)
//   Q6_K        four lines per 256 elements: byte b of line i is the i8 scale of 16-element group 4i + b
//   IQ4_XS      one line per 256 elements, four low bits of the scales: byte j has group j in its low nibble, group
//               4 + j in its high nibble. The two high bits are the halves h of the scales plane:
//               sc 0..3 = line & 0x0f0f0f0f      | h << 4 & 0x00003030 | h << 16 & 0x30300000
//               sc 4..7 = line >> 4 & 0x0f0f0f0f | h << 2 & 0x00003030 | h << 14 & 0x30300000
//   MXFP4       one line per 128 elements: byte b of line i is e of 32-element group 4i + b; the last line may have
//   less NVFP4       one line per 64 elements: byte b of line i is the E4M3 of 16-element group 4i + b, its unused bit
//   clear
//               and the code 0x7f, which means 0 in files, replaced by 0
// scales: f16, 16 of them (row 0..15) in 32 bytes; per block of the file format in order: d, or d then m (dmin), or d
// then h.
//
// Rejected: products d*sc stored as f32 (exact, but 2 bits per weight more to read: 6.5 instead of 4.5 for Q4_K) or
// as f16 (not exact). Keeping both factors costs nothing in bytes: planar is as large as native, up to padding, and
// decodes to the same bits, because d*sc and d*sc*code are exact in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/format.h"

namespace hearth {

inline constexpr int64_t kPanelRows = 16;
inline constexpr size_t kPlanarAlign = 64;  // alignment of a planar buffer that kernels may count on

// How elements of a planar format get their scale.
enum class PlanarScale : uint8_t {
  kNone,     // float formats
  kHalf,     // f16 d per 32
  kHalfMin,  // f16 d and m per 32
  kHalf64,   // f16 d per 64
  kSixBit,   // f16 d and dmin per 256, twelve bytes of six-bit sc and m per 32
  kByte,     // f16 d per 256, i8 per 16
  kNibble,   // f16 d and dmin per 256, a byte of four-bit sc and m per 16
  kSix16,    // f16 d per 256, six-bit sc around 32 per 16
  kSix32,    // f16 d per 256, six-bit sc around 32 per 32
  kE8M0,     // a power of two per 32
  kE4M3,     // an unsigned E4M3 per 16
};

struct PlanarFormat {
  int code_bits;  // of the codes plane: 2, 4, 8, 16 or 32
  int high_bits;  // of the high plane: 0, 1 or 2
  int zero;       // value = scale * (code - zero) + min; of no meaning with a codebook
  PlanarScale scale;
};

// nullptr: the format has no planar layout.
const PlanarFormat* planar_format(FormatId id);

// Byte offsets of the planes in one panel, for matrices with `cols` columns (a multiple of the format's block).
struct PlanarPanel {
  size_t codes = 0;  // always 0
  size_t high = 0;
  size_t sub_scales = 0;
  size_t scales = 0;
  size_t panel_bytes = 0;
};
PlanarPanel planar_panel(FormatId id, int64_t cols);

// panel_bytes * ceil(rows / 16).
size_t planar_size_bytes(FormatId id, int64_t rows, int64_t cols);

// Converts rows x cols weights; `native` is rows * row_bytes, `planar` planar_size_bytes, padding is written as zeros.
// [first_row, first_row + rows) of a matrix can be converted alone when first_row is a multiple of 16.
void to_planar(FormatId id, int64_t rows, int64_t cols, const std::byte* native, std::byte* planar);

// Decodes row `row`; out.size() == cols. Bit-equal to decode_row of the native row.
void planar_row_decode(FormatId id, int64_t cols, const std::byte* planar, int64_t row, std::span<float> out);

}  // namespace hearth
