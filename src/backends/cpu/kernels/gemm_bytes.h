// Many rows times panels with integer codes of a byte; activations are int8 with a scale for each 32, which is less
// exact than gemm_int and takes half of its multiply-adds (--activations int8). Sums of a group of weights are exact.
// Part of kernels.cpp.
//
// A group of kIntRows packed rows: codes as quads [cols / 4][rows][4]; then in f32 the scales [cols / 32][rows] and the
// sums of activations [cols / 16][rows] of each 16 and [cols / 32][rows] of each 32 columns, in their own units.
#pragma once

#include "backends/cpu/kernels/gemm_int.h"
#include "backends/cpu/kernels/quads.h"

namespace hearth::cpu {
namespace {

#if defined(__AVX2__)

#if defined(__AVX512F__) || defined(__AVXVNNI__)
constexpr bool kSumsBytes = true;  // an instruction sums four products in 32 bits
#else
constexpr bool kSumsBytes = false;  // it sums two in 16 bits
#endif
constexpr int32_t kByteLimit = 127;

template <class F>
constexpr int kLargestInteger = [] {
  if constexpr (!F::kCodebook) {
    return (1 << (F::kCodeBits + F::kHighBits)) - 1;
  } else if constexpr (kFitsBytes<F>) {
    int largest = 0;
    for (uint8_t x : F::kIntegers) largest = x > largest ? x : largest;
    return largest;
  } else {
    return 1 << 15;  // not a byte
  }
}();
// Whether 16 bits hold the sum of that many products.
template <class F, int Products>
constexpr bool kSumFits16 = Products* kLargestInteger<F>* kByteLimit <= 32767;
// Without kSumsBytes, wide codes would want signs and more instructions than in 16 bits.
template <class F>
constexpr bool kAsBytes = kSumsBytes ? kFitsBytes<F> : kSumFits16<F, 4>;

template <class F>
void unpack_byte_block(const PanelView& p, int64_t k0, int64_t kn, void* to_block) {
  auto& out = *static_cast<ByteBlock*>(to_block);
  out.group = F::kGroup;
  out.sums_fit_16 = kSumsBytes || kSumFits16<F, F::kGroup / 2>;
  auto codes16 = [&]<int Half>(int64_t e) {
    uint8_t* to = out.codes[(e - k0) / 4][0];
    each_quad16<F, Half>(p.codes + e / F::kLineElems * 64, high_line<F>(p, e),
                         [&]<int I>(I32x16 quad) { store(to + I * 4 * kLanes, quad); });
  };
  for (int64_t e = k0; e < k0 + kn; e += 32) codes16.template operator()<0>(e), codes16.template operator()<1>(e + 16);
  each_scale<F>(p, k0, kn, [&]<int>(int64_t e, F32x16 scale, F32x16 min) {
    if constexpr (F::kUnit != 1) scale = mul(scale, set1(F::kUnit));
    store(out.scales[(e - k0) / F::kGroup], scale);
    F32x16 offset = F::kMin ? min : zero_f();
    if constexpr (F::kZero != 0) offset = fma(scale, set1(static_cast<float>(-F::kZero)), offset);
    store(out.offsets[(e - k0) / F::kGroup], offset);
  });
}
struct ByteGroup : PackedGroup {
  explicit ByteGroup(int64_t cols) : PackedGroup(cols, 1, kActBlock) {}
};

size_t byte_group_bytes(int64_t cols) { return static_cast<size_t>(ByteGroup(cols).bytes); }

void pack_bytes(const float* x, int64_t stride, int64_t rows, int64_t cols, int64_t group, int64_t, std::byte* out) {
  const ByteGroup at(cols);
  out += group * at.bytes;
  auto* codes = reinterpret_cast<int8_t*>(out);
  auto* scales = reinterpret_cast<float*>(out + at.scales);
  auto* sums16 = reinterpret_cast<float*>(out + at.sums16);
  auto* sums32 = reinterpret_cast<float*>(out + at.sums32);
  if (rows < kIntRows) memset(out, 0, static_cast<size_t>(at.bytes));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t block = 0; block < cols / kActBlock; ++block) {
      F32x16 halves[2];
      for (int h = 0; h < 2; ++h) halves[h] = load(x + r * stride + block * kActBlock + 16 * h);
      float largest = largest_magnitude(halves[0], halves[1]), scale = largest / kByteLimit;
      bool usable = scale > 1.2e-38f;  // as in quantize
      F32x16 inverse = set1(usable ? 1.0f / scale : 0.0f);
      scale = largest == largest ? (usable ? scale : 0.0f) : largest;
      scales[block * kIntRows + r] = scale;
      float sum32 = 0;
      for (int h = 0; h < 2; ++h) {
        I32x16 code = round_to_int(mul(halves[h], inverse));
        int8_t bytes[16];
        store_i8(bytes, code);
        for (int i = 0; i < 4; ++i) memcpy(codes + ((block * 8 + h * 4 + i) * kIntRows + r) * 4, bytes + 4 * i, 4);
        float sum = scale * static_cast<float>(sum_lanes(code));
        sums16[(2 * block + h) * kIntRows + r] = sum;
        sum32 += sum;
      }
      sums32[block * kIntRows + r] = sum32;
    }
  }
}

// acc[row][panel] = the sums of products of the group of weights from line `quad` of the blocks on.
#if defined(__AVX512F__) || defined(__AVXVNNI__)
template <int Panels, int Group, bool Fits16>
HEARTH_INLINE void sum_group(const ByteBlock* const (&b)[Panels], int64_t quad, const int8_t* x,
                             I32x16 (&acc)[kIntRows][Panels]) {
  for (auto& row : acc) {
    for (I32x16& sum : row) sum = zero_i();
  }
  unrolled<Group / 4>([&]<int I>() {
    I32x16 w[Panels];
    unrolled<Panels>([&]<int P>() { w[P] = load(b[P]->codes[quad + I][0]); });
    unrolled<kIntRows>([&]<int R>() {
      I32x16 four = broadcast_bits(x + 4 * (I * kIntRows + R));
      unrolled<Panels>([&]<int P>() { acc[R][P] = dot_bytes(acc[R][P], w[P], four); });
    });
  });
}
#else
template <int Panels, int Group, bool Fits16>
HEARTH_INLINE void sum_group(const ByteBlock* const (&b)[Panels], int64_t quad, const int8_t* x,
                             I32x16 (&acc)[kIntRows][Panels]) {
  static_assert(Panels == 1);
  if constexpr (Fits16) {
    sum_lines<true>(b[0]->codes[quad], x, Group / 4, reinterpret_cast<I32x16(&)[kIntRows]>(acc));
    unrolled<kIntRows>([&]<int R>() { acc[R][0] = sum_halves(acc[R][0]); });
  } else {
    for (auto& row : acc) row[0] = zero_i();
    unrolled<Group / 8>([&]<int I>() {
      I32x16 w0 = load(b[0]->codes[quad + 2 * I][0]), w1 = load(b[0]->codes[quad + 2 * I + 1][0]);
      unrolled<kIntRows>([&]<int R>() {
        I32x16 x0 = broadcast_bits(x + 4 * (2 * I * kIntRows + R));
        I32x16 x1 = broadcast_bits(x + 4 * ((2 * I + 1) * kIntRows + R));
        acc[R][0] = add(acc[R][0], sum_halves(add_halves(dot_byte_pairs(w0, x0), dot_byte_pairs(w1, x1))));
      });
    });
  }
}
#endif

// A micro-tile: kIntRows rows x Panels panels over one block of columns.
template <int Panels, int Group, bool Fits16>
HEARTH_INLINE void byte_tile(const std::byte* a, const ByteGroup& at, const ByteBlock* const (&b)[Panels], int64_t k0,
                             int64_t kn, float* c, int64_t c_panel_stride) {
  const auto* codes = reinterpret_cast<const int8_t*>(a) + k0 * kIntRows;
  const auto* scales = reinterpret_cast<const float*>(a + at.scales) + k0 / kActBlock * kIntRows;
  const auto* sums = reinterpret_cast<const float*>(a + (Group == 16 ? at.sums16 : at.sums32)) + k0 / Group * kIntRows;
  auto each_sum = [](auto&& f) {
    unrolled<kIntRows>([&]<int R>() { unrolled<Panels>([&]<int P>() { f.template operator()<R, P>(); }); });
  };
  float total[kIntRows * Panels * kLanes] = {};
  for (int64_t g = 0; g < kn / Group; ++g) {
    I32x16 acc[kIntRows][Panels];
    sum_group<Panels, Group, Fits16>(b, g * Group / 4, codes + g * Group * kIntRows, acc);
    F32x16 scale[Panels], offset[Panels];
    unrolled<Panels>([&]<int P>() { scale[P] = load(b[P]->scales[g]), offset[P] = load(b[P]->offsets[g]); });
    each_sum([&]<int R, int P>() {
      float* to = total + (R * Panels + P) * kLanes;
      F32x16 both = mul(scale[P], set1(scales[g * Group / kActBlock * kIntRows + R]));
      F32x16 before = fma(offset[P], set1(sums[g * kIntRows + R]), load(to));
      store(to, fma(both, to_f32(acc[R][P]), before));
    });
  }
  for (int r = 0; r < kIntRows; ++r) {
    for (int p = 0; p < Panels; ++p) {
      float* to = c + p * c_panel_stride + r * kLanes;
      F32x16 sum = load(total + (r * Panels + p) * kLanes);
      store(to, k0 > 0 ? add(load(to), sum) : sum);
    }
  }
}

struct ByteCodes {
  using Block = ByteBlock;
  static bool alike(const ByteBlock& a, const ByteBlock& b) {
    return a.group == b.group && a.sums_fit_16 == b.sums_fit_16;
  }
  template <int Group, bool Fits16, int Panels>
  static void tiles_of(const GemmTile& t, const ByteBlock* const (&b)[Panels], int64_t k0, int64_t kn, float* out) {
    const ByteGroup at(t.cols);
    int64_t tiles = (t.rows + kIntRows - 1) / kIntRows;
    for (int64_t i = 0; i < tiles; ++i) {
      byte_tile<Panels, Group, Fits16>(t.a + i * at.bytes, at, b, k0, kn, out + i * kIntRows * kLanes,
                                       tiles * kIntRows * kLanes);
    }
  }
  template <int Panels>
  static void tiles(const GemmTile& t, const ByteBlock* const (&b)[Panels], int64_t k0, int64_t kn, float* out) {
    if (b[0]->group == 16) {
      b[0]->sums_fit_16 ? tiles_of<16, true>(t, b, k0, kn, out) : tiles_of<16, kSumsBytes>(t, b, k0, kn, out);
    } else {
      b[0]->sums_fit_16 ? tiles_of<32, true>(t, b, k0, kn, out) : tiles_of<32, kSumsBytes>(t, b, k0, kn, out);
    }
  }
};

constexpr Gemm kGemmBytes = [] {
  Gemm gemm = codes_gemm<ByteCodes>(byte_group_bytes, pack_bytes);
  each_code_format([&]<class F>(PlanarKind kind) {
    if constexpr (kAsBytes<F>) gemm.unpack[static_cast<int>(kind)] = unpack_byte_block<F>;
  });
  return gemm;
}();

#else

constexpr Gemm kGemmBytes = {};

#endif

}  // namespace
}  // namespace hearth::cpu
