// Integer codes as fours of bytes, for instructions that sum the products of four bytes. Part of kernels.cpp.
//
// dot_int of NEON is made of SDOT. It multiplies bytes only, so an activation is two of them (Digits). Instructions for
// one row times a line of 4-bit codes (8 elements of 16 rows): 4 loads, 8 to part the nibbles, 16 SDOT, 2.5 for the
// digits: 31. As pairs of 16 bits (dot_halves): 4 loads, 24 to part the codes, 16 to part their halves, 12 for the
// activations, 32 SMLAL: 88. Rejected: SMMLA (i8mm), whose two columns could be the digits. It halves the SDOT of a
// line to 8, but wants 8 bytes of two rows in a register: 8 instructions to bring them there. It begins to pay with
// four rows.
#pragma once

#include "backends/cpu/kernels/planar.h"

namespace hearth::cpu {
namespace {

// Whether a format's integers fit a byte: all but codebooks of 16 bits.
template <class F>
constexpr bool kFitsBytes = [] {
  if constexpr (F::kCodebook) return sizeof(F::kIntegers) == 16;
  return true;
}();

// Whether dot_int takes a format as quads, and whether its integers, which use all eight bits, then come without their
// zero, which makes them signed.
#if defined(__ARM_FEATURE_DOTPROD)
template <class F>
constexpr bool kAsQuads = kFitsBytes<F>;
template <class F>
constexpr bool kSignedQuads = F::kZero == 128;
#else
template <class F>
constexpr bool kAsQuads = false;
template <class F>
constexpr bool kSignedQuads = false;
#endif

#if defined(__ARM_FEATURE_DOTPROD) || defined(__AVX2__)

// f.template operator()<i>(integers): for the 4 quads of 16 elements; a byte of each lane is the integer of an element,
// in their order. `Half` as in each_pair16.
template <class F, int Half, class Fn>
HEARTH_INLINE void each_quad16(const uint8_t* lines, I32x16 high, Fn&& f) {
  constexpr int kBits = F::kCodeBits, kQuadsOfLine = 8 / kBits;
  constexpr uint32_t kBytes = 0x01010101;
  unrolled<4 / kQuadsOfLine>([&]<int L>() __attribute__((always_inline)) {
    I32x16 x = load(lines + 64 * L);
    unrolled<kQuadsOfLine>([&]<int I>() __attribute__((always_inline)) {
      constexpr int kQuad = L * kQuadsOfLine + I;
      constexpr uint32_t kMask = kBytes * ((1 << kBits) - 1);
      I32x16 codes = shift_bytes<kBits * I>(x);
      if constexpr (F::kCodebook) {
        codes = lookup(F::kIntegers, codes);
      } else if constexpr (kBits * (I + 1) < 8) {
        codes = bit_and(codes, set1(static_cast<int32_t>(kMask)));
      }
      if constexpr (F::kHighBits > 0) {
        codes = bit_or(codes, high_bits<F, kFirstQuad<F, Half> + kQuad, 0, kBytes>(high));
      }
      if constexpr (kSignedQuads<F>) codes = bit_xor(codes, set1(static_cast<int32_t>(kBytes * 128)));
      f.template operator()<kQuad>(codes);
    });
  });
}

#endif

}  // namespace
}  // namespace hearth::cpu
