// Many rows times panels with integer codes. Activations are int16 with a scale per 256 columns; the products of a
// group of weights are summed exactly in int32 (32 * 32767 * 2047 < 2^31), so a multiply-add of 16-bit pairs does the
// work of two in f32. Part of kernels.cpp.
//
// A group of kIntRows packed rows: codes as pairs [cols / 2][rows][2]; then in f32 the scales [ceil(cols / 256)][rows]
// and the sums of codes [cols / 16][rows] of each 16 and [cols / 32][rows] of each 32 columns.
#pragma once

#include "backends/cpu/kernels/gemm.h"

namespace hearth::cpu {
namespace {

#if defined(__AVX2__)

constexpr int kIntRows = kTileRows;

#if !defined(__AVX512F__) && !defined(__AVXVNNI__)
// sums[row] = for `lines` lines of 16 lanes of weights, the sum of their products with the row's 32 bits of
// activations: pairs of 16-bit numbers in 32 bits, or (Bytes) fours of bytes, those of weights unsigned, in 16. In
// assembly because it takes all 16 registers: g++ computes the products of several rows first and keeps the sums in
// memory.
template <bool Bytes>
HEARTH_INLINE void sum_lines(const void* weights, const void* activations, int64_t lines, I32x16 (&sums)[kIntRows]) {
  static_assert(kIntRows == 6);
  asm volatile(
      ".macro hearth_row row, low, high\n"
      "vpbroadcastd 4*\\row(%[x]), %%ymm14\n"
      ".if %c[bytes]\n"
      "vpmaddubsw %%ymm14, %%ymm12, %%ymm15\n"
      "vpmaddubsw %%ymm14, %%ymm13, %%ymm14\n"
      "vpaddw %%ymm15, %%ymm\\low, %%ymm\\low\n"
      "vpaddw %%ymm14, %%ymm\\high, %%ymm\\high\n"
      ".else\n"
      "vpmaddwd %%ymm14, %%ymm12, %%ymm15\n"
      "vpmaddwd %%ymm14, %%ymm13, %%ymm14\n"
      "vpaddd %%ymm15, %%ymm\\low, %%ymm\\low\n"
      "vpaddd %%ymm14, %%ymm\\high, %%ymm\\high\n"
      ".endif\n"
      ".endm\n"
      ".irp sum, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n"
      "vpxor %%xmm\\sum, %%xmm\\sum, %%xmm\\sum\n"
      ".endr\n"
      "1:\n"
      "vmovdqu (%[w]), %%ymm12\n"
      "vmovdqu 32(%[w]), %%ymm13\n"
      "hearth_row 0, 0, 1\n"
      "hearth_row 1, 2, 3\n"
      "hearth_row 2, 4, 5\n"
      "hearth_row 3, 6, 7\n"
      "hearth_row 4, 8, 9\n"
      "hearth_row 5, 10, 11\n"
      "add $64, %[w]\n"
      "add $24, %[x]\n"
      "dec %[lines]\n"
      "jnz 1b\n"
      ".irp sum, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n"
      "vmovdqu %%ymm\\sum, 32*\\sum(%[sums])\n"
      ".endr\n"
      ".purgem hearth_row\n"
      : [w] "+&r"(weights), [x] "+&r"(activations), [lines] "+&r"(lines)
      : [sums] "r"(sums), [bytes] "i"(Bytes)
      : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#endif

template <class F>
void unpack_int_block(const PanelView& p, int64_t k0, int64_t kn, void* to_block) {
  auto& out = *static_cast<IntBlock*>(to_block);
  out.group = F::kGroup;
  out.has_min = F::kMin;
  auto codes16 = [&]<int Half>(int64_t e) {
    int16_t* to = out.codes[(e - k0) / 2][0];
    each_pair16<F, Half>(p.codes + e / F::kLineElems * 64, high_line<F>(p, e), [&]<int I>(I32x16 pair) {
      if constexpr (F::kZero != 0) pair = sub_halves(pair, set1(F::kZero * 0x10001));
      store(to + I * 2 * kLanes, pair);
    });
  };
  for (int64_t e = k0; e < k0 + kn; e += 32) codes16.template operator()<0>(e), codes16.template operator()<1>(e + 16);
  each_scale<F>(p, k0, kn, [&]<int>(int64_t e, F32x16 scale, F32x16 min) {
    if constexpr (F::kUnit != 1) scale = mul(scale, set1(F::kUnit));
    store(out.scales[(e - k0) / F::kGroup], scale);
    if constexpr (F::kMin) store(out.mins[(e - k0) / F::kGroup], min);
  });
}

// Where the parts of a group of packed rows begin, in bytes.
struct PackedGroup {
  PackedGroup(int64_t cols, int64_t code_bytes, int64_t scale_cols)
      : scales(cols * kIntRows * code_bytes),
        sums16(scales + (cols + scale_cols - 1) / scale_cols * kIntRows * 4),
        sums32(sums16 + cols / 16 * kIntRows * 4),
        bytes((sums32 + cols / 32 * kIntRows * 4 + 63) / 64 * 64) {}
  int64_t scales, sums16, sums32, bytes;
};
struct IntGroup : PackedGroup {
  explicit IntGroup(int64_t cols) : PackedGroup(cols, 2, kKBlock) {}
};

size_t int_group_bytes(int64_t cols) { return static_cast<size_t>(IntGroup(cols).bytes); }

void pack_int(const float* x, int64_t stride, int64_t rows, int64_t cols, int64_t group, int64_t, std::byte* out) {
  const IntGroup at(cols);
  out += group * at.bytes;
  auto* codes = reinterpret_cast<int32_t*>(out);  // pairs
  auto* scales = reinterpret_cast<float*>(out + at.scales);
  auto* sums16 = reinterpret_cast<float*>(out + at.sums16);
  auto* sums32 = reinterpret_cast<float*>(out + at.sums32);
  if (rows < kIntRows) memset(out, 0, static_cast<size_t>(at.bytes));
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
    for (int64_t k0 = 0; k0 < cols; k0 += kKBlock) {
      int64_t end = cols - k0 < kKBlock ? cols : k0 + kKBlock;
      F32x16 top = zero_f(), nothing = zero_f();  // NaN when a number is not finite, which max() may pass over
      for (int64_t k = k0; k < end; k += 16) {
        top = max(abs(load(row + k)), top);
        nothing = fma(load(row + k), zero_f(), nothing);
      }
      float largest = max_lanes(top) + sum_lanes(nothing), scale = largest / 32767.0f;
      bool usable = scale > 1.2e-38f;  // as in quantize
      F32x16 inverse = set1(usable ? 1.0f / scale : 0.0f);
      scales[k0 / kKBlock * kIntRows + r] = largest == largest ? (usable ? scale : 0.0f) : largest;
      float half = 0;
      for (int64_t k = k0; k < end; k += 16) {
        I32x16 code = round_to_int(mul(load(row + k), inverse));
        int16_t pairs[16];
        store_i16_interleaved(pairs, code);
        int32_t words[8];
        memcpy(words, pairs, sizeof words);
        for (int64_t i = 0; i < 8; ++i) codes[(k / 2 + i) * kIntRows + r] = words[i];
        auto sum = static_cast<float>(sum_lanes(code));
        sums16[k / 16 * kIntRows + r] = sum;
        if (k % 32 == 16) sums32[k / 32 * kIntRows + r] = half + sum;
        half = sum;
      }
    }
  }
}

// A micro-tile: kIntRows rows x Panels panels over one block of columns.
template <int Panels, int Group, bool Min>
HEARTH_INLINE void int_tile(const std::byte* a, const IntGroup& at, const IntBlock* const (&b)[Panels], int64_t k0,
                            int64_t kn, float* c, int64_t c_panel_stride) {
  const auto* codes = reinterpret_cast<const int16_t*>(a) + k0 * kIntRows;
  const auto* scales = reinterpret_cast<const float*>(a + at.scales) + k0 / kKBlock * kIntRows;
  const auto* sums = reinterpret_cast<const float*>(a + (Group == 16 ? at.sums16 : at.sums32)) + k0 / Group * kIntRows;
  auto each_sum = [](auto&& f) {
    unrolled<kIntRows>([&]<int R>() { unrolled<Panels>([&]<int P>() { f.template operator()<R, P>(); }); });
  };
  float total[kIntRows * Panels * kLanes] = {};  // in units of the activations' scale
  for (int64_t g = 0; g < kn / Group; ++g) {
    I32x16 acc[kIntRows][Panels];
    const int16_t* x = codes + g * Group * kIntRows;
#if !defined(__AVX512F__) && !defined(__AVXVNNI__)
    static_assert(Panels == 1);
    sum_lines<false>(b[0]->codes[g * Group / 2], x, Group / 2, reinterpret_cast<I32x16(&)[kIntRows]>(acc));
#else
    each_sum([&]<int R, int P>() { acc[R][P] = zero_i(); });
    // All of a group at once, because the compiler copies sums that a loop carries.
    unrolled<Group / 2>([&]<int I>() {
      I32x16 w[Panels];
      unrolled<Panels>([&]<int P>() { w[P] = load(reinterpret_cast<const uint8_t*>(b[P]->codes[g * Group / 2 + I])); });
      unrolled<kIntRows>([&]<int R>() {
        I32x16 pair = broadcast_bits(x + 2 * (I * kIntRows + R));
        unrolled<Panels>([&]<int P>() { acc[R][P] = dot_halves(acc[R][P], w[P], pair); });
      });
    });
#endif
    F32x16 scale[Panels], min[Panels];
    unrolled<Panels>([&]<int P>() {
      scale[P] = load(b[P]->scales[g]);
      min[P] = Min ? load(b[P]->mins[g]) : zero_f();
    });
    each_sum([&]<int R, int P>() {
      float* to = total + (R * Panels + P) * kLanes;
      F32x16 before = load(to);
      if constexpr (Min) before = fma(min[P], set1(sums[g * kIntRows + R]), before);
      store(to, fma(scale[P], to_f32(acc[R][P]), before));
    });
  }
  for (int r = 0; r < kIntRows; ++r) {
    F32x16 scale = set1(scales[r]);
    for (int p = 0; p < Panels; ++p) {
      float* to = c + p * c_panel_stride + r * kLanes;
      F32x16 before = zero_f();
      if (k0 > 0) before = load(to);
      store(to, fma(scale, load(total + (r * Panels + p) * kLanes), before));
    }
  }
}

template <int Panels, int Group, bool Min>
void int_tiles_of(const GemmTile& t, const IntBlock* const (&b)[Panels], int64_t k0, int64_t kn, float* out) {
  const IntGroup at(t.cols);
  int64_t tiles = (t.rows + kIntRows - 1) / kIntRows;
  for (int64_t i = 0; i < tiles; ++i) {
    int_tile<Panels, Group, Min>(t.a + i * at.bytes, at, b, k0, kn, out + i * kIntRows * kLanes,
                                 tiles * kIntRows * kLanes);
  }
}

struct Int16Codes {
  using Block = IntBlock;
  static bool alike(const IntBlock& a, const IntBlock& b) { return a.group == b.group && a.has_min == b.has_min; }
  template <int Panels>
  static void tiles(const GemmTile& t, const IntBlock* const (&b)[Panels], int64_t k0, int64_t kn, float* out) {
    if (b[0]->group == 16) {
      b[0]->has_min ? int_tiles_of<Panels, 16, true>(t, b, k0, kn, out)
                    : int_tiles_of<Panels, 16, false>(t, b, k0, kn, out);
    } else {
      b[0]->has_min ? int_tiles_of<Panels, 32, true>(t, b, k0, kn, out)
                    : int_tiles_of<Panels, 32, false>(t, b, k0, kn, out);
    }
  }
};

// Codes: how activations and weights are kept, Int16Codes or ByteCodes.
template <class Codes, int Panels>
void gemm_codes_panels(const GemmTile& t, int64_t first) {
  using Block = typename Codes::Block;
  auto* blocks = reinterpret_cast<Block*>(t.scratch);
  const int64_t panel_floats = (t.rows + kIntRows - 1) / kIntRows * kIntRows * kLanes;
  float* out = t.out + first * panel_floats;
  for (int64_t k0 = 0; k0 < t.cols; k0 += kKBlock) {
    int64_t kn = t.cols - k0 < kKBlock ? t.cols - k0 : kKBlock;
    const Block* b[Panels];
    for (int p = 0; p < Panels; ++p) {
      const PanelReader& read = t.read[first + p];
      read.run(read.context, read.panel, k0, kn, blocks + p);
      b[p] = blocks + p;
    }
    if (Panels == 1 || Codes::alike(*b[0], *b[Panels - 1])) {
      Codes::tiles(t, b, k0, kn, out);
    } else {  // of different formats
      for (int p = 0; p < Panels; ++p) {
        const Block* const one[1] = {b[p]};
        Codes::tiles(t, one, k0, kn, out + p * panel_floats);
      }
    }
  }
}

template <class Codes>
void gemm_codes(const GemmTile& t) {
  int64_t p = 0;
  if constexpr (kTilePanels == 2) {
    for (; p + 2 <= t.panels; p += 2) gemm_codes_panels<Codes, 2>(t, p);
  }
  for (; p < t.panels; ++p) gemm_codes_panels<Codes, 1>(t, p);
}

// Codes: Int16Codes or ByteCodes.
template <class Codes>
constexpr Gemm codes_gemm(size_t (*group_bytes)(int64_t), decltype(Gemm::pack) pack) {
  return {.rows = kIntRows,
          .panels = 2,
          .scratch_bytes = kTilePanels * sizeof(typename Codes::Block),
          .group_bytes = group_bytes,
          .pack = pack,
          .multiply = gemm_codes<Codes>,
          .unpack = {}};
}

constexpr Gemm kGemmInt = [] {
  Gemm gemm = codes_gemm<Int16Codes>(int_group_bytes, pack_int);
  each_code_format([&]<class F>(PlanarKind kind) { gemm.unpack[static_cast<int>(kind)] = unpack_int_block<F>; });
  return gemm;
}();

#else  // On NEON a product of digits (quads.h) would take two thirds of the instructions of f32: not built, not
       // measured.

constexpr Gemm kGemmInt = {};

#endif

}  // namespace
}  // namespace hearth::cpu
