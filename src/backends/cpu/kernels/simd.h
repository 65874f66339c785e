// Sixteen lanes of f32 or int32, the unit of every kernel: one AVX-512 register, two AVX2 registers, four of NEON, or
// plain arrays.
// Part of kernels.cpp; everything is local to the translation unit, because each ISA compiles its own.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define HEARTH_INLINE inline __attribute__((always_inline))

namespace hearth::cpu {
namespace {

// Sixteen 16-bit values, and their two bytes apart.
struct WideTable {
  int16_t words[16];
  uint8_t low[16], high[16];
};

#if defined(__AVX512F__)

struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};

HEARTH_INLINE F32x16 zero_f() { return {_mm512_setzero_ps()}; }
HEARTH_INLINE F32x16 set1(float x) { return {_mm512_set1_ps(x)}; }
HEARTH_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
HEARTH_INLINE void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
HEARTH_INLINE F32x16 load_part(const float* p, int64_t n) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p)};
}
HEARTH_INLINE void store_part(float* p, F32x16 a, int64_t n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), a.v);
}
HEARTH_INLINE F32x16 add(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
HEARTH_INLINE F32x16 sub(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
HEARTH_INLINE F32x16 mul(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
HEARTH_INLINE F32x16 div(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
HEARTH_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
HEARTH_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }
HEARTH_INLINE F32x16 abs(F32x16 a) { return {_mm512_abs_ps(a.v)}; }
HEARTH_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
HEARTH_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
HEARTH_INLINE F32x16 to_f32(I32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
HEARTH_INLINE I32x16 round_to_int(F32x16 a) { return {_mm512_cvtps_epi32(a.v)}; }
HEARTH_INLINE F32x16 bits_to_f32(I32x16 a) { return {_mm512_castsi512_ps(a.v)}; }
// The first n lanes of a, the others of b.
HEARTH_INLINE F32x16 first_lanes(F32x16 a, F32x16 b, int64_t n) {
  return {_mm512_mask_blend_ps(static_cast<__mmask16>((1u << n) - 1), b.v, a.v)};
}
HEARTH_INLINE float sum_lanes(F32x16 a) { return _mm512_reduce_add_ps(a.v); }
HEARTH_INLINE float max_lanes(F32x16 a) { return _mm512_reduce_max_ps(a.v); }

HEARTH_INLINE I32x16 zero_i() { return {_mm512_setzero_si512()}; }
HEARTH_INLINE I32x16 set1(int32_t x) { return {_mm512_set1_epi32(x)}; }
HEARTH_INLINE I32x16 load(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
HEARTH_INLINE void store(int16_t* p, I32x16 a) { _mm512_storeu_si512(p, a.v); }
HEARTH_INLINE void store(uint8_t* p, I32x16 a) { _mm512_storeu_si512(p, a.v); }
HEARTH_INLINE I32x16 add(I32x16 a, I32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
HEARTH_INLINE I32x16 sub(I32x16 a, I32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
HEARTH_INLINE I32x16 bit_and(I32x16 a, I32x16 b) { return {_mm512_and_si512(a.v, b.v)}; }
HEARTH_INLINE I32x16 bit_or(I32x16 a, I32x16 b) { return {_mm512_or_si512(a.v, b.v)}; }
HEARTH_INLINE I32x16 bit_xor(I32x16 a, I32x16 b) { return {_mm512_xor_si512(a.v, b.v)}; }
HEARTH_INLINE I32x16 max(I32x16 a, I32x16 b) { return {_mm512_max_epi32(a.v, b.v)}; }
HEARTH_INLINE int32_t sum_lanes(I32x16 a) { return _mm512_reduce_add_epi32(a.v); }
HEARTH_INLINE I32x16 load_u16(const uint16_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
// Logical shift right; left for negative n.
template <int N>
HEARTH_INLINE I32x16 shift(I32x16 a) {
  if constexpr (N > 0) return {_mm512_srli_epi32(a.v, N)};
  if constexpr (N < 0) return {_mm512_slli_epi32(a.v, -N)};
  return a;
}
template <int N>
HEARTH_INLINE I32x16 shift_signed(I32x16 a) {
  return {_mm512_srai_epi32(a.v, N)};
}
template <int N>
HEARTH_INLINE I32x16 shift_halves(I32x16 a) {  // of each 16-bit half, right
  return {_mm512_srli_epi16(a.v, N)};
}
HEARTH_INLINE I32x16 sub_halves(I32x16 a, I32x16 b) { return {_mm512_sub_epi16(a.v, b.v)}; }
// acc + the products of both 16-bit halves.
HEARTH_INLINE I32x16 dot_halves(I32x16 acc, I32x16 a, I32x16 b) { return {_mm512_dpwssd_epi32(acc.v, a.v, b.v)}; }
template <int N>
HEARTH_INLINE I32x16 shift_bytes(I32x16 a) {  // of each byte, right
  return bit_and(shift<N>(a), set1(static_cast<int32_t>((0xffu >> N) * 0x01010101u)));
}
// acc + the products of all four bytes, those of `a` unsigned.
HEARTH_INLINE I32x16 dot_bytes(I32x16 acc, I32x16 a, I32x16 b) { return {_mm512_dpbusd_epi32(acc.v, a.v, b.v)}; }
HEARTH_INLINE F32x16 load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
HEARTH_INLINE void store_f16(uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
HEARTH_INLINE F32x16 load_i8(const int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
HEARTH_INLINE void store_i8(int8_t* p, I32x16 a) {  // within int8 range
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
HEARTH_INLINE float f16_to_f32(uint16_t h) { return _cvtsh_ss(h); }
HEARTH_INLINE uint16_t f32_to_f16(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }
// Low and high halves of 16 dwords as f16.
HEARTH_INLINE void f16_halves(I32x16 a, F32x16& low, F32x16& high) {
  low = {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(a.v))};
  high = {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(a.v, 16)))};
}
// table[low four bits of each lane]
HEARTH_INLINE F32x16 lookup(const float (&table)[16], I32x16 index) {
  return {_mm512_permutexvar_ps(index.v, _mm512_loadu_ps(table))};
}
// table[low four bits of each byte of each lane]
HEARTH_INLINE I32x16 lookup(const uint8_t (&table)[16], I32x16 index) {
  __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return {_mm512_shuffle_epi8(t, _mm512_and_si512(index.v, _mm512_set1_epi8(15)))};
}
// The same for bytes 0 and 2 (even) and bytes 1 and 3 (odd), as 16-bit halves.
HEARTH_INLINE void lookup(const WideTable& table, I32x16 index, I32x16& even, I32x16& odd) {
  // Five bits choose: the table stands there twice.
  __m512i t = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(table.words)));
  even = {_mm512_permutexvar_epi16(index.v, t)};
  odd = {_mm512_permutexvar_epi16(_mm512_srli_epi16(index.v, 8), t)};
}
// 16 values of int16 range, each four in the order 0, 2, 1, 3.
HEARTH_INLINE void store_i16_interleaved(int16_t* p, I32x16 a) {
  const __m256i order =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_shuffle_epi8(_mm512_cvtepi32_epi16(a.v), order));
}

#elif defined(__AVX2__)

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};

HEARTH_INLINE __m256i lane_mask(int64_t n, int first) {  // lane first + i < n
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n) - first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
HEARTH_INLINE F32x16 zero_f() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
HEARTH_INLINE F32x16 set1(float x) {
  __m256 v = _mm256_set1_ps(x);
  return {v, v};
}
HEARTH_INLINE F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
HEARTH_INLINE void store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
HEARTH_INLINE F32x16 load_part(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, lane_mask(n, 0)), _mm256_maskload_ps(p + 8, lane_mask(n, 8))};
}
HEARTH_INLINE void store_part(float* p, F32x16 a, int64_t n) {
  _mm256_maskstore_ps(p, lane_mask(n, 0), a.lo);
  _mm256_maskstore_ps(p + 8, lane_mask(n, 8), a.hi);
}
HEARTH_INLINE F32x16 add(F32x16 a, F32x16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
HEARTH_INLINE F32x16 sub(F32x16 a, F32x16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
HEARTH_INLINE F32x16 mul(F32x16 a, F32x16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
HEARTH_INLINE F32x16 div(F32x16 a, F32x16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
HEARTH_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
HEARTH_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
HEARTH_INLINE F32x16 abs(F32x16 a) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(a.lo, mask), _mm256_and_ps(a.hi, mask)};
}
HEARTH_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
HEARTH_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
HEARTH_INLINE F32x16 to_f32(I32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
HEARTH_INLINE I32x16 round_to_int(F32x16 a) { return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)}; }
HEARTH_INLINE F32x16 bits_to_f32(I32x16 a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
// The first n lanes of a, the others of b.
HEARTH_INLINE F32x16 first_lanes(F32x16 a, F32x16 b, int64_t n) {
  return {_mm256_blendv_ps(b.lo, a.lo, _mm256_castsi256_ps(lane_mask(n, 0))),
          _mm256_blendv_ps(b.hi, a.hi, _mm256_castsi256_ps(lane_mask(n, 8)))};
}
HEARTH_INLINE float sum_lanes(F32x16 a) {
  __m256 s = _mm256_add_ps(a.lo, a.hi);
  __m128 t = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  t = _mm_add_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_add_ss(t, _mm_movehdup_ps(t)));
}
HEARTH_INLINE float max_lanes(F32x16 a) {
  __m256 s = _mm256_max_ps(a.lo, a.hi);
  __m128 t = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  t = _mm_max_ps(t, _mm_movehl_ps(t, t));
  return _mm_cvtss_f32(_mm_max_ss(t, _mm_movehdup_ps(t)));
}

HEARTH_INLINE I32x16 zero_i() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
HEARTH_INLINE I32x16 set1(int32_t x) {
  __m256i v = _mm256_set1_epi32(x);
  return {v, v};
}
HEARTH_INLINE I32x16 load(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
HEARTH_INLINE void store(uint8_t* p, I32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.hi);
}
HEARTH_INLINE void store(int16_t* p, I32x16 a) { store(reinterpret_cast<uint8_t*>(p), a); }
HEARTH_INLINE I32x16 add(I32x16 a, I32x16 b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
HEARTH_INLINE I32x16 sub(I32x16 a, I32x16 b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
HEARTH_INLINE I32x16 bit_and(I32x16 a, I32x16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
HEARTH_INLINE I32x16 bit_or(I32x16 a, I32x16 b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
HEARTH_INLINE I32x16 bit_xor(I32x16 a, I32x16 b) {
  return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
HEARTH_INLINE I32x16 max(I32x16 a, I32x16 b) { return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)}; }
HEARTH_INLINE I32x16 load_u16(const uint16_t* p) {
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
HEARTH_INLINE int32_t sum_lanes(I32x16 a) {
  __m256i s = _mm256_add_epi32(a.lo, a.hi);
  __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
  t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1)));
}
// Logical shift right; left for negative n.
template <int N>
HEARTH_INLINE I32x16 shift(I32x16 a) {
  if constexpr (N > 0) return {_mm256_srli_epi32(a.lo, N), _mm256_srli_epi32(a.hi, N)};
  if constexpr (N < 0) return {_mm256_slli_epi32(a.lo, -N), _mm256_slli_epi32(a.hi, -N)};
  return a;
}
template <int N>
HEARTH_INLINE I32x16 shift_signed(I32x16 a) {
  return {_mm256_srai_epi32(a.lo, N), _mm256_srai_epi32(a.hi, N)};
}
template <int N>
HEARTH_INLINE I32x16 shift_halves(I32x16 a) {  // of each 16-bit half, right
  return {_mm256_srli_epi16(a.lo, N), _mm256_srli_epi16(a.hi, N)};
}
HEARTH_INLINE I32x16 sub_halves(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi16(a.lo, b.lo), _mm256_sub_epi16(a.hi, b.hi)};
}
// acc + the products of both 16-bit halves.
HEARTH_INLINE I32x16 dot_halves(I32x16 acc, I32x16 a, I32x16 b) {
#if defined(__AVXVNNI__)
  return {_mm256_dpwssd_avx_epi32(acc.lo, a.lo, b.lo), _mm256_dpwssd_avx_epi32(acc.hi, a.hi, b.hi)};
#else
  return {_mm256_add_epi32(acc.lo, _mm256_madd_epi16(a.lo, b.lo)),
          _mm256_add_epi32(acc.hi, _mm256_madd_epi16(a.hi, b.hi))};
#endif
}
template <int N>
HEARTH_INLINE I32x16 shift_bytes(I32x16 a) {  // of each byte, right
  return bit_and(shift<N>(a), set1(static_cast<int32_t>((0xffu >> N) * 0x01010101u)));
}
#if defined(__AVXVNNI__)
// acc + the products of all four bytes, those of `a` unsigned.
HEARTH_INLINE I32x16 dot_bytes(I32x16 acc, I32x16 a, I32x16 b) {
  return {_mm256_dpbusd_avx_epi32(acc.lo, a.lo, b.lo), _mm256_dpbusd_avx_epi32(acc.hi, a.hi, b.hi)};
}
#else
// The products of bytes, those of `a` unsigned, as the sums of two neighbours in each half, which must fit.
HEARTH_INLINE I32x16 dot_byte_pairs(I32x16 a, I32x16 b) {
  return {_mm256_maddubs_epi16(a.lo, b.lo), _mm256_maddubs_epi16(a.hi, b.hi)};
}
HEARTH_INLINE I32x16 add_halves(I32x16 a, I32x16 b) {
  return {_mm256_add_epi16(a.lo, b.lo), _mm256_add_epi16(a.hi, b.hi)};
}
HEARTH_INLINE I32x16 sum_halves(I32x16 a) {  // of each lane
  const __m256i ones = _mm256_set1_epi16(1);
  return {_mm256_madd_epi16(a.lo, ones), _mm256_madd_epi16(a.hi, ones)};
}
#endif
HEARTH_INLINE F32x16 load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
HEARTH_INLINE void store_f16(uint16_t* p, F32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
HEARTH_INLINE F32x16 load_i8(const int8_t* p) {
  __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}
HEARTH_INLINE void store_i8(int8_t* p, I32x16 a) {  // within int8 range
  __m256i halves = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)));
}
HEARTH_INLINE float f16_to_f32(uint16_t h) { return _cvtsh_ss(h); }
HEARTH_INLINE uint16_t f32_to_f16(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }
// Low and high halves of 8 dwords as f16.
HEARTH_INLINE void f16_halves(__m256i a, __m256& low, __m256& high) {
  __m256i both = _mm256_packus_epi32(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32(a, 16));
  both = _mm256_permute4x64_epi64(both, 0xd8);  // packing works within 128 bits
  low = _mm256_cvtph_ps(_mm256_castsi256_si128(both));
  high = _mm256_cvtph_ps(_mm256_extracti128_si256(both, 1));
}
HEARTH_INLINE void f16_halves(I32x16 a, F32x16& low, F32x16& high) {
  f16_halves(a.lo, low.lo, high.lo);
  f16_halves(a.hi, low.hi, high.hi);
}
// table[low four bits of each lane]
HEARTH_INLINE __m256 lookup(const float (&table)[16], __m256i index) {
  __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), index);
  __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), index);
  return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}
HEARTH_INLINE F32x16 lookup(const float (&table)[16], I32x16 index) {
  return {lookup(table, index.lo), lookup(table, index.hi)};
}
// table[low four bits of each byte of each lane]
HEARTH_INLINE __m256i lookup(const uint8_t (&table)[16], __m256i index) {
  __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return _mm256_shuffle_epi8(t, _mm256_and_si256(index, _mm256_set1_epi8(15)));
}
HEARTH_INLINE I32x16 lookup(const uint8_t (&table)[16], I32x16 index) {
  return {lookup(table, index.lo), lookup(table, index.hi)};
}
// The same for bytes 0 and 2 (even) and bytes 1 and 3 (odd), as 16-bit halves.
HEARTH_INLINE void lookup(const WideTable& table, __m256i index, __m256i& even, __m256i& odd) {
  __m256i low = lookup(table.low, index), high = lookup(table.high, index);
  even = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi16(0xff)), _mm256_slli_epi16(high, 8));
  odd = _mm256_or_si256(_mm256_srli_epi16(low, 8), _mm256_andnot_si256(_mm256_set1_epi16(0xff), high));
}
HEARTH_INLINE void lookup(const WideTable& table, I32x16 index, I32x16& even, I32x16& odd) {
  lookup(table, index.lo, even.lo, odd.lo);
  lookup(table, index.hi, even.hi, odd.hi);
}
// 16 values of int16 range, each four in the order 0, 2, 1, 3.
HEARTH_INLINE void store_i16_interleaved(int16_t* p, I32x16 a) {
  const __m256i order =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_shuffle_epi8(packed, order));
}

#elif defined(__aarch64__)

// Four registers each. Not float32x4x4_t, which the compiler wants in four neighbouring ones.
struct F32x16 {
  float32x4_t v[4];
};
struct I32x16 {
  int32x4_t v[4];
};

// Op on each of the four registers.
template <class T, auto Op, class... Args>
HEARTH_INLINE T map(Args... a) {
  return {Op(a.v[0]...), Op(a.v[1]...), Op(a.v[2]...), Op(a.v[3]...)};
}
HEARTH_INLINE uint32x4_t lane_mask(int64_t n, int first) {  // lane first + i < n
  const int32x4_t lane = {0, 1, 2, 3};
  return vcltq_s32(lane, vdupq_n_s32(static_cast<int>(n) - first));
}
HEARTH_INLINE F32x16 set1(float x) {
  float32x4_t v = vdupq_n_f32(x);
  return {v, v, v, v};
}
HEARTH_INLINE F32x16 zero_f() { return set1(0.0f); }
HEARTH_INLINE F32x16 load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
HEARTH_INLINE void store(float* p, F32x16 a) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.v[i]);
}
HEARTH_INLINE F32x16 load_part(const float* p, int64_t n) {  // no masked loads: tails go by way of memory
  if (n >= 16) return load(p);
  float v[16] = {};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return load(v);
}
HEARTH_INLINE void store_part(float* p, F32x16 a, int64_t n) {
  if (n >= 16) return store(p, a);
  float v[16];
  store(v, a);
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
HEARTH_INLINE F32x16 add(F32x16 a, F32x16 b) { return map<F32x16, vaddq_f32>(a, b); }
HEARTH_INLINE F32x16 sub(F32x16 a, F32x16 b) { return map<F32x16, vsubq_f32>(a, b); }
HEARTH_INLINE F32x16 mul(F32x16 a, F32x16 b) { return map<F32x16, vmulq_f32>(a, b); }
HEARTH_INLINE F32x16 div(F32x16 a, F32x16 b) { return map<F32x16, vdivq_f32>(a, b); }
HEARTH_INLINE F32x16 max(F32x16 a, F32x16 b) { return map<F32x16, vmaxq_f32>(a, b); }
HEARTH_INLINE F32x16 min(F32x16 a, F32x16 b) { return map<F32x16, vminq_f32>(a, b); }
HEARTH_INLINE F32x16 abs(F32x16 a) { return map<F32x16, vabsq_f32>(a); }
HEARTH_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return map<F32x16, vfmaq_f32>(c, a, b); }
HEARTH_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) { return map<F32x16, vfmsq_f32>(c, a, b); }
HEARTH_INLINE F32x16 to_f32(I32x16 a) { return map<F32x16, vcvtq_f32_s32>(a); }
HEARTH_INLINE I32x16 round_to_int(F32x16 a) { return map<I32x16, vcvtnq_s32_f32>(a); }
HEARTH_INLINE F32x16 bits_to_f32(I32x16 a) { return map<F32x16, vreinterpretq_f32_s32>(a); }
// The first n lanes of a, the others of b.
HEARTH_INLINE F32x16 first_lanes(F32x16 a, F32x16 b, int64_t n) {
  F32x16 out;
  for (int i = 0; i < 4; ++i) out.v[i] = vbslq_f32(lane_mask(n, 4 * i), a.v[i], b.v[i]);
  return out;
}
HEARTH_INLINE float sum_lanes(F32x16 a) {
  return vaddvq_f32(vaddq_f32(vaddq_f32(a.v[0], a.v[1]), vaddq_f32(a.v[2], a.v[3])));
}
HEARTH_INLINE float max_lanes(F32x16 a) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.v[0], a.v[1]), vmaxq_f32(a.v[2], a.v[3])));
}

HEARTH_INLINE I32x16 set1(int32_t x) {
  int32x4_t v = vdupq_n_s32(x);
  return {v, v, v, v};
}
HEARTH_INLINE I32x16 zero_i() { return set1(int32_t{0}); }
HEARTH_INLINE I32x16 load(const uint8_t* p) {
  I32x16 out;
  for (int i = 0; i < 4; ++i) out.v[i] = vreinterpretq_s32_u8(vld1q_u8(p + 16 * i));
  return out;
}
HEARTH_INLINE I32x16 add(I32x16 a, I32x16 b) { return map<I32x16, vaddq_s32>(a, b); }
HEARTH_INLINE I32x16 sub(I32x16 a, I32x16 b) { return map<I32x16, vsubq_s32>(a, b); }
HEARTH_INLINE I32x16 bit_and(I32x16 a, I32x16 b) { return map<I32x16, vandq_s32>(a, b); }
HEARTH_INLINE I32x16 bit_or(I32x16 a, I32x16 b) { return map<I32x16, vorrq_s32>(a, b); }
HEARTH_INLINE I32x16 max(I32x16 a, I32x16 b) { return map<I32x16, vmaxq_s32>(a, b); }
HEARTH_INLINE I32x16 load_u16(const uint16_t* p) {
  I32x16 out;
  for (int i = 0; i < 4; ++i) out.v[i] = vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p + 4 * i)));
  return out;
}
HEARTH_INLINE int32_t sum_lanes(I32x16 a) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(a.v[0], a.v[1]), vaddq_s32(a.v[2], a.v[3])));
}
// Logical shift right; left for negative n.
template <int N>
HEARTH_INLINE I32x16 shift(I32x16 a) {
  for (int i = 0; i < 4; ++i) {
    if constexpr (N > 0) a.v[i] = vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v[i]), N));
    if constexpr (N < 0) a.v[i] = vshlq_n_s32(a.v[i], -N);
  }
  return a;
}
template <int N>
HEARTH_INLINE I32x16 shift_signed(I32x16 a) {
  for (int i = 0; i < 4; ++i) a.v[i] = vshrq_n_s32(a.v[i], N);
  return a;
}
template <int N>
HEARTH_INLINE I32x16 shift_halves(I32x16 a) {  // of each 16-bit half, right
  for (int i = 0; i < 4; ++i) a.v[i] = vreinterpretq_s32_u16(vshrq_n_u16(vreinterpretq_u16_s32(a.v[i]), N));
  return a;
}
// The low (high) halves of eight dwords.
HEARTH_INLINE int16x8_t low_halves(int32x4_t a, int32x4_t b) {
  return vuzp1q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
}
HEARTH_INLINE int16x8_t high_halves(int32x4_t a, int32x4_t b) {
  return vuzp2q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
}
// acc + the products of both 16-bit halves. Of eight lanes: four multiply-adds, and four instructions that part the
// halves, those of `a` once for all rows, those of a broadcast `b` once for all lanes.
HEARTH_INLINE I32x16 dot_halves(I32x16 acc, I32x16 a, I32x16 b) {
  for (int i = 0; i < 4; i += 2) {
    int16x8_t a0 = low_halves(a.v[i], a.v[i + 1]), a1 = high_halves(a.v[i], a.v[i + 1]);
    int16x8_t b0 = low_halves(b.v[i], b.v[i + 1]), b1 = high_halves(b.v[i], b.v[i + 1]);
    acc.v[i] = vmlal_s16(acc.v[i], vget_low_s16(a0), vget_low_s16(b0));
    acc.v[i] = vmlal_s16(acc.v[i], vget_low_s16(a1), vget_low_s16(b1));
    acc.v[i + 1] = vmlal_high_s16(acc.v[i + 1], a0, b0);
    acc.v[i + 1] = vmlal_high_s16(acc.v[i + 1], a1, b1);
  }
  return acc;
}
#if defined(__ARM_FEATURE_DOTPROD)
HEARTH_INLINE I32x16 bit_xor(I32x16 a, I32x16 b) { return map<I32x16, veorq_s32>(a, b); }
template <int N>
HEARTH_INLINE I32x16 shift_bytes(I32x16 a) {  // of each byte, right
  for (int i = 0; i < 4; ++i) {
    if constexpr (N > 0) a.v[i] = vreinterpretq_s32_u8(vshrq_n_u8(vreinterpretq_u8_s32(a.v[i]), N));
  }
  return a;
}
// 16 integers of magnitude <= kMaxActivation as 256 * high + low.
struct Digits {
  int8x16_t low, high;
};
constexpr int32_t kMaxActivation = 127 * 256 + 127;
// From int16, each four in the order 0, 2, 1, 3, to their own order.
HEARTH_INLINE Digits load_digits(const int16_t* p) {
  const uint8x16_t low_bytes = {0, 4, 2, 6, 8, 12, 10, 14, 16, 20, 18, 22, 24, 28, 26, 30};
  const uint8x16_t high_bytes = {1, 5, 3, 7, 9, 13, 11, 15, 17, 21, 19, 23, 25, 29, 27, 31};
  const auto* bytes = reinterpret_cast<const uint8_t*>(p);
  const uint8x16x2_t both = {vld1q_u8(bytes), vld1q_u8(bytes + 16)};
  uint8x16_t low = vqtbl2q_u8(both, low_bytes), high = vqtbl2q_u8(both, high_bytes);
  high = vsraq_n_u8(high, low, 7);  // the bit of 128 counts as -128 in `low`
  return {vreinterpretq_s8_u8(low), vreinterpretq_s8_u8(high)};
}
// low (high) + the products of the four bytes of each lane with the low (high) digits of integers 4 * Quad and on.
template <int Quad>
HEARTH_INLINE void dot_digits(I32x16& low, I32x16& high, I32x16 bytes, Digits x) {
  for (int i = 0; i < 4; ++i) {
    int8x16_t b = vreinterpretq_s8_s32(bytes.v[i]);
    low.v[i] = vdotq_laneq_s32(low.v[i], b, x.low, Quad);
    high.v[i] = vdotq_laneq_s32(high.v[i], b, x.high, Quad);
  }
}
#endif
HEARTH_INLINE float32x4_t f16_to_f32(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
HEARTH_INLINE F32x16 load_f16(const uint16_t* p) {
  F32x16 out;
  for (int i = 0; i < 4; ++i) out.v[i] = f16_to_f32(vld1_u16(p + 4 * i));
  return out;
}
HEARTH_INLINE void store_f16(uint16_t* p, F32x16 a) {
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(a.v[i])));
}
HEARTH_INLINE F32x16 load_i8(const int8_t* p) {
  int8x16_t x = vld1q_s8(p);
  int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_high_s8(x);
  return to_f32(
      I32x16{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)});
}
HEARTH_INLINE void store_i8(int8_t* p, I32x16 a) {  // within int8 range
  int16x8_t low = low_halves(a.v[0], a.v[1]), high = low_halves(a.v[2], a.v[3]);
  vst1q_s8(p, vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high)));
}
HEARTH_INLINE float f16_to_f32(uint16_t h) { return vgetq_lane_f32(f16_to_f32(vdup_n_u16(h)), 0); }
HEARTH_INLINE uint16_t f32_to_f16(float x) {
  return vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(x))), 0);
}
// Low and high halves of 16 dwords as f16.
HEARTH_INLINE void f16_halves(I32x16 a, F32x16& low, F32x16& high) {
  for (int i = 0; i < 4; ++i) {
    uint32x4_t dwords = vreinterpretq_u32_s32(a.v[i]);
    low.v[i] = f16_to_f32(vmovn_u32(dwords));
    high.v[i] = f16_to_f32(vshrn_n_u32(dwords, 16));
  }
}
// table[low four bits of each lane]
HEARTH_INLINE F32x16 lookup(const float (&table)[16], I32x16 index) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(table);
  const uint8x16x4_t t = {vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)};
  F32x16 out;
  for (int i = 0; i < 4; ++i) {  // the four bytes of an entry: index * 4 + 0 to 3
    uint32x4_t entry = vandq_u32(vreinterpretq_u32_s32(index.v[i]), vdupq_n_u32(15));
    uint32x4_t at = vmlaq_n_u32(vdupq_n_u32(0x03020100), entry, 0x04040404);
    out.v[i] = vreinterpretq_f32_u8(vqtbl4q_u8(t, vreinterpretq_u8_u32(at)));
  }
  return out;
}
// table[low four bits of each byte of each lane]
HEARTH_INLINE uint8x16_t lookup(const uint8_t (&table)[16], int32x4_t index) {
  return vqtbl1q_u8(vld1q_u8(table), vandq_u8(vreinterpretq_u8_s32(index), vdupq_n_u8(15)));
}
HEARTH_INLINE I32x16 lookup(const uint8_t (&table)[16], I32x16 index) {
  for (int i = 0; i < 4; ++i) index.v[i] = vreinterpretq_s32_u8(lookup(table, index.v[i]));
  return index;
}
// The same for bytes 0 and 2 (even) and bytes 1 and 3 (odd), as 16-bit halves.
HEARTH_INLINE void lookup(const WideTable& table, I32x16 index, I32x16& even, I32x16& odd) {
  for (int i = 0; i < 4; ++i) {
    uint8x16_t low = lookup(table.low, index.v[i]), high = lookup(table.high, index.v[i]);
    even.v[i] = vreinterpretq_s32_u8(vtrn1q_u8(low, high));
    odd.v[i] = vreinterpretq_s32_u8(vtrn2q_u8(low, high));
  }
}
// 16 values of int16 range, each four in the order 0, 2, 1, 3.
HEARTH_INLINE void store_i16_interleaved(int16_t* p, I32x16 a) {
  const uint8x16_t order = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
  for (int i = 0; i < 4; i += 2) {
    int8x16_t packed = vreinterpretq_s8_s16(low_halves(a.v[i], a.v[i + 1]));
    vst1q_s16(p + 4 * i, vreinterpretq_s16_s8(vqtbl1q_s8(packed, order)));
  }
}

#else

struct F32x16 {
  float v[16];
};
struct I32x16 {
  int32_t v[16];
};

template <class T, class F>
HEARTH_INLINE T lanes(F f) {
  T out;
  for (int i = 0; i < 16; ++i) out.v[i] = f(i);
  return out;
}
HEARTH_INLINE F32x16 zero_f() { return {}; }
HEARTH_INLINE F32x16 set1(float x) {
  return lanes<F32x16>([=](int) { return x; });
}
HEARTH_INLINE F32x16 load(const float* p) {
  return lanes<F32x16>([=](int i) { return p[i]; });
}
HEARTH_INLINE void store(float* p, F32x16 a) { memcpy(p, a.v, sizeof a.v); }
HEARTH_INLINE F32x16 load_part(const float* p, int64_t n) {
  return lanes<F32x16>([=](int i) { return i < n ? p[i] : 0.0f; });
}
HEARTH_INLINE void store_part(float* p, F32x16 a, int64_t n) {
  for (int64_t i = 0; i < n && i < 16; ++i) p[i] = a.v[i];
}
HEARTH_INLINE F32x16 add(F32x16 a, F32x16 b) {
  return lanes<F32x16>([&](int i) { return a.v[i] + b.v[i]; });
}
HEARTH_INLINE F32x16 sub(F32x16 a, F32x16 b) {
  return lanes<F32x16>([&](int i) { return a.v[i] - b.v[i]; });
}
HEARTH_INLINE F32x16 mul(F32x16 a, F32x16 b) {
  return lanes<F32x16>([&](int i) { return a.v[i] * b.v[i]; });
}
HEARTH_INLINE F32x16 div(F32x16 a, F32x16 b) {
  return lanes<F32x16>([&](int i) { return a.v[i] / b.v[i]; });
}
HEARTH_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return lanes<F32x16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
HEARTH_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return lanes<F32x16>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
HEARTH_INLINE F32x16 abs(F32x16 a) {
  return lanes<F32x16>([&](int i) { return __builtin_fabsf(a.v[i]); });
}
HEARTH_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
#if defined(__FP_FAST_FMAF)
  return lanes<F32x16>([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
#else  // without the instruction fmaf is a library call
  return lanes<F32x16>([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
#endif
}
HEARTH_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) {
  return fma(lanes<F32x16>([&](int i) { return -a.v[i]; }), b, c);
}
HEARTH_INLINE F32x16 to_f32(I32x16 a) {
  return lanes<F32x16>([&](int i) { return static_cast<float>(a.v[i]); });
}
HEARTH_INLINE I32x16 round_to_int(F32x16 a) {
  return lanes<I32x16>([&](int i) { return static_cast<int32_t>(__builtin_rintf(a.v[i])); });
}
HEARTH_INLINE F32x16 bits_to_f32(I32x16 a) {
  F32x16 out;
  memcpy(out.v, a.v, sizeof out.v);
  return out;
}
// The first n lanes of a, the others of b.
HEARTH_INLINE F32x16 first_lanes(F32x16 a, F32x16 b, int64_t n) {
  return lanes<F32x16>([&](int i) { return i < n ? a.v[i] : b.v[i]; });
}
HEARTH_INLINE float sum_lanes(F32x16 a) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.v[i] += a.v[i + width];
  }
  return a.v[0];
}
HEARTH_INLINE float max_lanes(F32x16 a) {
  float best = a.v[0];
  for (int i = 1; i < 16; ++i) best = a.v[i] > best ? a.v[i] : best;
  return best;
}

HEARTH_INLINE I32x16 zero_i() { return {}; }
HEARTH_INLINE I32x16 set1(int32_t x) {
  return lanes<I32x16>([=](int) { return x; });
}
HEARTH_INLINE I32x16 load(const uint8_t* p) {
  I32x16 out;
  memcpy(out.v, p, sizeof out.v);
  return out;
}
HEARTH_INLINE I32x16 add(I32x16 a, I32x16 b) {
  return lanes<I32x16>([&](int i) { return a.v[i] + b.v[i]; });
}
HEARTH_INLINE I32x16 sub(I32x16 a, I32x16 b) {
  return lanes<I32x16>([&](int i) { return a.v[i] - b.v[i]; });
}
HEARTH_INLINE I32x16 bit_and(I32x16 a, I32x16 b) {
  return lanes<I32x16>([&](int i) { return a.v[i] & b.v[i]; });
}
HEARTH_INLINE I32x16 bit_or(I32x16 a, I32x16 b) {
  return lanes<I32x16>([&](int i) { return a.v[i] | b.v[i]; });
}
HEARTH_INLINE I32x16 max(I32x16 a, I32x16 b) {
  return lanes<I32x16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
HEARTH_INLINE I32x16 load_u16(const uint16_t* p) {
  return lanes<I32x16>([=](int i) { return p[i]; });
}
HEARTH_INLINE int32_t sum_lanes(I32x16 a) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += a.v[i];
  return sum;
}
// Logical shift right; left for negative n.
template <int N>
HEARTH_INLINE I32x16 shift(I32x16 a) {
  return lanes<I32x16>([&](int i) {
    auto bits = static_cast<uint32_t>(a.v[i]);
    if constexpr (N >= 0) return static_cast<int32_t>(bits >> N);
    if constexpr (N < 0) return static_cast<int32_t>(bits << -N);
  });
}
template <int N>
HEARTH_INLINE I32x16 shift_signed(I32x16 a) {
  return lanes<I32x16>([&](int i) { return a.v[i] >> N; });
}
template <int N>
HEARTH_INLINE I32x16 shift_halves(I32x16 a) {  // of each 16-bit half, right
  constexpr uint32_t kMask = (0xffffu >> N) * 0x10001u;
  return lanes<I32x16>([&](int i) { return static_cast<int32_t>((static_cast<uint32_t>(a.v[i]) >> N) & kMask); });
}
// acc + the products of both 16-bit halves.
HEARTH_INLINE I32x16 dot_halves(I32x16 acc, I32x16 a, I32x16 b) {
  return lanes<I32x16>([&](int i) {
    int32_t low = static_cast<int16_t>(a.v[i]) * static_cast<int16_t>(b.v[i]);
    return acc.v[i] + low + (a.v[i] >> 16) * (b.v[i] >> 16);
  });
}
HEARTH_INLINE float f16_to_f32(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, rest = h & 0x7fff, bits;
  if (rest >= 0x7c00) {
    bits = sign | 0x7f800000 | rest << 13;
  } else {  // times 2^112 moves the exponent's bias and makes subnormals normal
    uint32_t moved = rest << 13;
    float x;
    memcpy(&x, &moved, sizeof x);
    x *= 0x1p112f;
    memcpy(&bits, &x, sizeof bits);
    bits |= sign;
  }
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}
HEARTH_INLINE uint16_t f32_to_f16(float x) {  // |x| <= 65504
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude < 0x38800000) {  // subnormal or zero: adding 0.5 leaves the rounded code in the low bits
    float y;
    memcpy(&y, &magnitude, sizeof y);
    y += 0.5f;
    memcpy(&magnitude, &y, sizeof magnitude);
    return static_cast<uint16_t>(sign | (magnitude - 0x3f000000));
  }
  magnitude += 0xc8000fff + (magnitude >> 13 & 1);  // the bias, and half a unit: ties to even
  return static_cast<uint16_t>(sign | magnitude >> 13);
}
HEARTH_INLINE F32x16 load_f16(const uint16_t* p) {
  return lanes<F32x16>([=](int i) { return f16_to_f32(p[i]); });
}
HEARTH_INLINE void store_f16(uint16_t* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = f32_to_f16(a.v[i]);
}
HEARTH_INLINE F32x16 load_i8(const int8_t* p) {
  return lanes<F32x16>([=](int i) { return static_cast<float>(p[i]); });
}
HEARTH_INLINE void store_i8(int8_t* p, I32x16 a) {  // within int8 range
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}
// Low and high halves of 16 dwords as f16.
HEARTH_INLINE void f16_halves(I32x16 a, F32x16& low, F32x16& high) {
  low = lanes<F32x16>([&](int i) { return f16_to_f32(static_cast<uint16_t>(a.v[i])); });
  high = lanes<F32x16>([&](int i) { return f16_to_f32(static_cast<uint16_t>(static_cast<uint32_t>(a.v[i]) >> 16)); });
}
// table[low four bits of each lane]
HEARTH_INLINE F32x16 lookup(const float (&table)[16], I32x16 index) {
  return lanes<F32x16>([&](int i) { return table[index.v[i] & 15]; });
}
// table[low four bits of each byte of each lane]
HEARTH_INLINE I32x16 lookup(const uint8_t (&table)[16], I32x16 index) {
  return lanes<I32x16>([&](int i) {
    auto x = static_cast<uint32_t>(index.v[i]), out = uint32_t{0};
    for (int shift = 0; shift < 32; shift += 8) out |= static_cast<uint32_t>(table[x >> shift & 15]) << shift;
    return static_cast<int32_t>(out);
  });
}
// The same for bytes 0 and 2 (even) and bytes 1 and 3 (odd), as 16-bit halves.
HEARTH_INLINE void lookup(const WideTable& table, I32x16 index, I32x16& even, I32x16& odd) {
  auto halves = [&](int shift) {
    return lanes<I32x16>([&](int i) {
      auto x = static_cast<uint32_t>(index.v[i]) >> shift;
      auto low = static_cast<uint16_t>(table.words[x & 15]), high = static_cast<uint16_t>(table.words[x >> 16 & 15]);
      return static_cast<int32_t>(low | static_cast<uint32_t>(high) << 16);
    });
  };
  even = halves(0), odd = halves(8);
}
// 16 values of int16 range, each four in the order 0, 2, 1, 3.
HEARTH_INLINE void store_i16_interleaved(int16_t* p, I32x16 a) {
  for (int i = 0; i < 16; i += 4) {
    p[i] = static_cast<int16_t>(a.v[i]);
    p[i + 1] = static_cast<int16_t>(a.v[i + 2]);
    p[i + 2] = static_cast<int16_t>(a.v[i + 1]);
    p[i + 3] = static_cast<int16_t>(a.v[i + 3]);
  }
}

#endif

// The same for bytes 0 and 2 (even) and bytes 1 and 3 (odd), as 16-bit halves.
HEARTH_INLINE void lookup(const uint8_t (&table)[16], I32x16 index, I32x16& even, I32x16& odd) {
  I32x16 bytes = lookup(table, index);
  even = bit_and(bytes, set1(0x00ff00ff));
  odd = shift_halves<8>(bytes);
}

// The 32 bits at p (two or four small numbers) to all lanes.
HEARTH_INLINE I32x16 broadcast_bits(const void* p) {
  int32_t bits;
  memcpy(&bits, p, sizeof bits);
  return set1(bits);
}

// How far ahead of what is read once memory is fetched, into the L2 cache: the L1 cache waits for too few lines at a
// time, and the processor's own prefetcher stops at page borders.
constexpr int64_t kPrefetchBytes = 16384;

// The largest magnitude of both; NaN when one of them is not finite, which max() may pass over.
HEARTH_INLINE float largest_magnitude(F32x16 a, F32x16 b) {
  return max_lanes(max(abs(a), abs(b))) + sum_lanes(fma(a, zero_f(), mul(b, zero_f())));
}

// e^x to 2 units in the last place; 0 below -87.3, so that a masked score of -inf has no weight.
HEARTH_INLINE F32x16 exp(F32x16 x) {
  const F32x16 lowest = set1(-87.33f);
  F32x16 y = min(max(x, lowest), set1(88.37f));
  I32x16 n = round_to_int(mul(y, set1(1.44269504f)));
  F32x16 nf = to_f32(n);
  F32x16 r = fnma(nf, set1(0.693359375f), y);  // ln 2 in two parts, the first exact in nf * part
  r = fnma(nf, set1(-2.12194440e-4f), r);
  F32x16 p = set1(1.0f / 5040);
  p = fma(p, r, set1(1.0f / 720));
  p = fma(p, r, set1(1.0f / 120));
  p = fma(p, r, set1(1.0f / 24));
  p = fma(p, r, set1(1.0f / 6));
  p = fma(p, r, set1(0.5f));
  p = fma(p, r, set1(1.0f));
  p = fma(p, r, set1(1.0f));
  F32x16 scale = bits_to_f32(shift<-23>(add(n, set1(int32_t{127}))));
#if defined(__AVX512F__)
  return {_mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x.v, lowest.v, _CMP_GE_OQ), p.v, scale.v)};
#elif defined(__AVX2__)
  F32x16 out = mul(p, scale);
  return {_mm256_and_ps(out.lo, _mm256_cmp_ps(x.lo, lowest.lo, _CMP_GE_OQ)),
          _mm256_and_ps(out.hi, _mm256_cmp_ps(x.hi, lowest.hi, _CMP_GE_OQ))};
#elif defined(__aarch64__)
  F32x16 out = mul(p, scale);
  for (int i = 0; i < 4; ++i) {
    uint32x4_t visible = vcgeq_f32(x.v[i], lowest.v[i]);
    out.v[i] = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(out.v[i]), visible));
  }
  return out;
#else
  F32x16 out = mul(p, scale);
  return lanes<F32x16>([&](int i) { return x.v[i] >= lowest.v[i] ? out.v[i] : 0.0f; });
#endif
}

}  // namespace
}  // namespace hearth::cpu
