// Many rows times panels on the matrix unit (AMX), summed in f32 in the unit's tiles. gemm_amx: each factor is a sum of
// two bf16, x = hi + lo with 16 significant bits; a product is hi*hi + hi*lo + lo*hi, and what is left out, lo*lo, is
// 2^-16 of it. gemm_bf16: hi alone, 8 significant bits, a third of the products. Part of kernels.cpp.
//
// Packed rows: [ceil(cols / kAmxBlock)][groups of 32 rows][kAmxBlock / 32][2 tiles][Parts][16 rows][32 columns] bf16,
// so that what a block of columns needs of all rows lies together; columns past the end are zeros. A block of a panel:
// [kAmxBlock / 32][Parts][16 pairs of columns][16 lanes][2] bf16. The parts are hi and, where there are two, lo. Every
// [16][64 bytes] is a tile of the unit.
#pragma once

#include "backends/cpu/kernels/gemm.h"

namespace hearth::cpu {
namespace {

#if defined(__AMX_BF16__)

constexpr int64_t kAmxRows = 32, kAmxCols = 32;
constexpr int64_t kAmxTileBytes = 1024;
constexpr int64_t kAmxBlock = 1024;  // columns, a multiple of kKBlock

HEARTH_INLINE __m512 bf16_high_half(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
}
HEARTH_INLINE __m512 bf16_low_half(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
// 32 values as bf16, first those of a.
HEARTH_INLINE __m512i to_bf16(__m512 a, __m512 b) { return (__m512i)_mm512_cvtne2ps_pbh(b, a); }

// The unit's configuration: eight tiles of 16 rows of 64 bytes.
struct alignas(64) AmxConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Parts: how many bf16 a factor is, 1 or 2.
template <int Parts>
struct Amx {
  static constexpr int64_t kXStepBytes = 2 * Parts * kAmxTileBytes;       // 32 columns of a group
  static constexpr int64_t kXBytes = kAmxBlock / kAmxCols * kXStepBytes;  // a block of a group
  static constexpr int64_t kWStepBytes = Parts * kAmxTileBytes;           // 32 columns of a panel
  static constexpr int64_t kWBytes = kAmxBlock / kAmxCols * kWStepBytes;

  static size_t group_bytes(int64_t cols) { return static_cast<size_t>((cols + kAmxBlock - 1) / kAmxBlock * kXBytes); }

  // Rows [0, rows) of up to kAmxBlock columns, for one group.
  static HEARTH_INLINE void pack_block(const float* x, int64_t stride, int64_t rows, int64_t cols, std::byte* out) {
    const int64_t steps = (cols + kAmxCols - 1) / kAmxCols;
    if (rows < kAmxRows) memset(out, 0, static_cast<size_t>(steps * kXStepBytes));
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = x + r * stride;
      std::byte* to = out + r / 16 * Parts * kAmxTileBytes + r % 16 * 64;
      for (int64_t k = 0; k < cols; k += kAmxCols, to += kXStepBytes) {
        int64_t n = cols - k;
        F32x16 a = n >= 16 ? load(row + k) : load_part(row + k, n);
        F32x16 b = n >= 32 ? load(row + k + 16) : n > 16 ? load_part(row + k + 16, n - 16) : zero_f();
        __m512i hi = to_bf16(a.v, b.v);
        _mm512_storeu_si512(to, hi);
        if constexpr (Parts == 2) {
          auto widen = [](__m256i half) {
            return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
          };
          __m512 ha = widen(_mm512_castsi512_si256(hi)), hb = widen(_mm512_extracti64x4_epi64(hi, 1));
          _mm512_storeu_si512(to + kAmxTileBytes, to_bf16(_mm512_sub_ps(a.v, ha), _mm512_sub_ps(b.v, hb)));
        }
      }
    }
  }

  static void pack(const float* x, int64_t stride, int64_t rows, int64_t cols, int64_t group, int64_t groups,
                   std::byte* out) {
    for (int64_t k = 0; k < cols; k += kAmxBlock) {
      pack_block(x + k, stride, rows, cols - k < kAmxBlock ? cols - k : kAmxBlock,
                 out + (k / kAmxBlock * groups + group) * kXBytes);
    }
  }

  // [kn][16] f32 -> the block of a panel.
  static HEARTH_INLINE void split_panel(const float* weights, int64_t kn, std::byte* out) {
    // Lane i of both halves beside each other.
    const __m512i zip = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int64_t k = 0; k < (kn + kAmxCols - 1) / kAmxCols * kAmxCols; k += 2) {
      __m512 a = k < kn ? _mm512_loadu_ps(weights + k * kLanes) : _mm512_setzero_ps();
      __m512 b = k + 1 < kn ? _mm512_loadu_ps(weights + (k + 1) * kLanes) : _mm512_setzero_ps();
      __m512i hi = _mm512_permutexvar_epi16(zip, to_bf16(a, b));
      std::byte* to = out + k / kAmxCols * kWStepBytes + k % kAmxCols / 2 * 64;
      _mm512_storeu_si512(to, hi);
      if constexpr (Parts == 2) {
        __m512i lo = to_bf16(_mm512_sub_ps(a, bf16_low_half(hi)), _mm512_sub_ps(b, bf16_high_half(hi)));
        _mm512_storeu_si512(to + kAmxTileBytes, _mm512_permutexvar_epi16(zip, lo));
      }
    }
  }

  // 32 rows x Panels panels (+)= over `steps` times 32 columns; strides of b in bytes, of c in floats. Sums are tiles 0
  // to 3, [row tile][panel]. `next`: a quarter of each step's worth of bytes there is fetched meanwhile, unless
  // nullptr.
  template <int Panels>
  static HEARTH_INLINE void tile(const std::byte* a, const std::byte* b, int64_t b_panel_stride, int64_t steps,
                                 bool accumulate, float* c, int64_t c_stride, int64_t c_panel_stride,
                                 const std::byte* next) {
    constexpr int64_t kLine = 64;
    float* c2 = c + 16 * c_stride;
    const int64_t c_line = c_stride * 4;
    if (accumulate) {
      _tile_loadd(0, c, c_line);
      _tile_loadd(2, c2, c_line);
      if constexpr (Panels == 2) {
        _tile_loadd(1, c + c_panel_stride, c_line);
        _tile_loadd(3, c2 + c_panel_stride, c_line);
      }
    } else {
      _tile_zero(0);
      _tile_zero(2);
      if constexpr (Panels == 2) {
        _tile_zero(1);
        _tile_zero(3);
      }
    }
    auto dot = [] {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (Panels == 2) {
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
      }
    };
    for (int64_t s = 0; s < steps; ++s, a += kXStepBytes, b += kWStepBytes) {
      for (int64_t i = 0; next && i < kXStepBytes / 4; i += 64) _mm_prefetch(next + s * kXStepBytes + i, _MM_HINT_T1);
      // hi x lo, hi x hi, lo x hi: each change replaces one factor.
      _tile_loadd(4, a, kLine);
      _tile_loadd(5, a + Parts * kAmxTileBytes, kLine);
      if constexpr (Parts == 2) {
        _tile_loadd(6, b + kAmxTileBytes, kLine);
        if constexpr (Panels == 2) _tile_loadd(7, b + b_panel_stride + kAmxTileBytes, kLine);
        dot();
      }
      _tile_loadd(6, b, kLine);
      if constexpr (Panels == 2) _tile_loadd(7, b + b_panel_stride, kLine);
      dot();
      if constexpr (Parts == 2) {
        _tile_loadd(4, a + kAmxTileBytes, kLine);
        _tile_loadd(5, a + 3 * kAmxTileBytes, kLine);
        dot();
      }
    }
    _tile_stored(0, c, c_line);
    _tile_stored(2, c2, c_line);
    if constexpr (Panels == 2) {
      _tile_stored(1, c + c_panel_stride, c_line);
      _tile_stored(3, c2 + c_panel_stride, c_line);
    }
  }

  static void multiply(const GemmTile& t) {
    const AmxConfig config;
    _tile_loadconfig(&config);
    auto* weights = reinterpret_cast<float*>(t.scratch);
    std::byte* panels = t.scratch + kKBlock * kLanes * sizeof(float);
    const int64_t groups = (t.rows + kAmxRows - 1) / kAmxRows;
    const int64_t panel_stride = groups * kAmxRows * kLanes;
    for (int64_t k0 = 0; k0 < t.cols; k0 += kAmxBlock) {
      const int64_t end = t.cols - k0 < kAmxBlock ? t.cols : k0 + kAmxBlock;
      const int64_t steps = (end - k0 + kAmxCols - 1) / kAmxCols;
      for (int64_t p = 0; p < t.panels; ++p) {
        for (int64_t k = k0; k < end; k += kKBlock) {
          const int64_t kn = end - k < kKBlock ? end - k : kKBlock;
          t.read[p].run(t.read[p].context, t.read[p].panel, k, kn, weights);
          split_panel(weights, kn, panels + p * kWBytes + (k - k0) / kAmxCols * kWStepBytes);
        }
      }
      for (int64_t g = 0; g < groups; ++g) {
        const std::byte* a = t.a + (k0 / kAmxBlock * groups + g) * kXBytes;
        float* c = t.out + g * kAmxRows * kLanes;
        const std::byte* next = a + kXBytes;  // the next group; behind the last one prefetches do no harm
        for (int64_t p = 0; p < t.panels; p += 2, next += kXStepBytes / 4) {
          const std::byte* b = panels + p * kWBytes;
          float* to = c + p * panel_stride;
          if (p + 1 < t.panels) {
            tile<2>(a, b, kWBytes, steps, k0 > 0, to, kLanes, panel_stride, next);
          } else {
            tile<1>(a, b, kWBytes, steps, k0 > 0, to, kLanes, panel_stride, next);
          }
        }
      }
    }
    _tile_release();
  }

  static constexpr Gemm kGemm = {
      .rows = kAmxRows,
      .panels = kMaxTilePanels,
      .scratch_bytes = kKBlock * kLanes * sizeof(float) + kMaxTilePanels * static_cast<size_t>(kWBytes),
      .group_bytes = group_bytes,
      .pack = pack,
      .multiply = multiply};
};

using AmxFull = Amx<2>;
constexpr Gemm kGemmAmx = AmxFull::kGemm;
constexpr Gemm kGemmBf16 = Amx<1>::kGemm;

#else

constexpr Gemm kGemmAmx = {}, kGemmBf16 = {};

#endif

}  // namespace
}  // namespace hearth::cpu
