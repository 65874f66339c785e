// What the kernels of one instruction set offer: plain functions over plain pointers, in a table per ISA. They are
// compiled once per ISA from kernels.cpp; nothing here may bring code that a linker could merge across flag sets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

inline constexpr int64_t kLanes = 16;      // rows of a weight panel, tokens of a KV page: lanes of every kernel
inline constexpr int64_t kActBlock = 32;   // activations that share a scale
inline constexpr int64_t kKBlock = 256;    // columns of a panel that are unpacked at a time; a multiple of all blocks
inline constexpr int64_t kKeyBlock = 64;   // keys per softmax update in prefill attention
inline constexpr int64_t kKeySplit = 512;  // keys per softmax update in decode attention
inline constexpr int64_t kMaxTilePanels = 8;   // panels that a product of many rows takes at a time
inline constexpr int64_t kMaxQueryRows = 192;  // rows (queries x heads) of a prefill attention tile
inline constexpr int64_t kMaxHeadGroup = 16;   // most query heads of a tile that share a kv head

// Formats with a planar layout (quant/layout.h), in the order of the kernel tables.
enum class PlanarKind : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ2_K,
  kQ3_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kNVFP4,
  kNF4,
};
inline constexpr int kPlanarKinds = 18;

// One planar panel: 16 rows.
struct PanelView {
  const uint8_t* codes;
  const uint8_t* high;
  const uint8_t* sub_scales;
  const uint16_t* scales;
  int64_t cols;
  int64_t next_bytes;  // to the matrix's next panel, when this worker will read it; else 0
};

// Rows of activations as integers, for formats with integer codes: x = scale * code, a scale per kActBlock. Within
// each four, codes lie in the order 0, 2, 1, 3: `(line >> s) & 0x00ff00ff` takes every second byte of planar codes.
struct IntRows {
  int16_t* codes;   // [rows][code_stride]
  float* scales;    // [rows][scale_stride]
  int32_t* sums16;  // [rows][2 * scale_stride]: of the codes of each 16
  int32_t* sums32;  // [rows][scale_stride]: of the codes of each 32
  float* totals;    // [rows][scale_stride]: scale * sum of the codes of each 32
  int64_t code_stride;
  int64_t scale_stride;
};

// Columns [k0, k0 + kn) of a panel, as a product of many rows reads them. kn <= kKBlock; k0 is a multiple of kKBlock.
// `out` is float [kn][16], or what Gemm::unpack writes.
struct PanelReader {
  void (*run)(const void* context, int64_t panel, int64_t k0, int64_t kn, void* out);
  const void* context;
  int64_t panel;
};

// Up to kKBlock columns of a panel with integer codes: value = scale of its group * code + minimum of its group.
struct IntBlock {
  int16_t codes[kKBlock / 2][kLanes][2];  // signed; pairs in the order of IntRows
  float scales[kKBlock / 16][kLanes];
  float mins[kKBlock / 16][kLanes];  // when has_min
  int64_t group;                     // 16 or 32 elements
  bool has_min;
};

// Up to kKBlock columns of a panel with codes of a byte: value = scale of its group * code + offset of its group.
struct ByteBlock {
  uint8_t codes[kKBlock / 4][kLanes][4];
  float scales[kKBlock / 16][kLanes];
  float offsets[kKBlock / 16][kLanes];
  int64_t group;     // 16 or 32 elements
  bool sums_fit_16;  // those of products with every second activation of a group, or the kernel needs not ask
};

// Columns [k0, k0 + kn) of a panel with integer codes, as `out` an IntBlock or a ByteBlock.
using UnpackCodes = void (*)(const PanelView& panel, int64_t k0, int64_t kn, void* out);

// out[panel][row][lane] = packed rows x panels, in f32.
struct GemmTile {
  const std::byte* a;  // all rows, as Gemm::pack writes them
  int64_t rows;
  int64_t cols;
  int64_t panels;  // <= kMaxTilePanels
  const PanelReader* read;
  std::byte* scratch;  // Gemm::scratch_bytes
  float* out;          // [panels][rows rounded up to whole groups][16]
};

// One way to multiply many rows with panels. All of them read `cols` columns in blocks of kKBlock.
struct Gemm {
  int64_t rows;    // of a packed group
  int64_t panels;  // that a tile takes best, <= kMaxTilePanels
  size_t scratch_bytes;
  size_t (*group_bytes)(int64_t cols);
  // Group `group` of `groups` becomes rows [0, rows) of x, rows <= Gemm::rows; missing rows are zeros. `out`: of all
  // groups, groups * group_bytes.
  void (*pack)(const float* x, int64_t stride, int64_t rows, int64_t cols, int64_t group, int64_t groups,
               std::byte* out);
  void (*multiply)(const GemmTile& tile);  // nullptr: this instruction set has no such kernel
  // What this product reads of panels, where it reads integer codes; nullptr for formats that it does not take.
  UnpackCodes unpack[kPlanarKinds];
};

enum class KvFormat : uint8_t { kF32, kF16, kQ8 };

// The pages of one kv head in one layer. A page holds K as [head_dim][16 tokens], then V as [16 tokens][v_stride].
// kQ8: codes are int8, an entry is scale * code; after the codes of K and after those of V follow their scales, f16
// [kv_scale_blocks][16 tokens], one for each kKvBlock entries of a token (the last block may be shorter).
struct KvView {
  uint8_t* base;  // of page 0
  size_t page_stride_bytes;
  size_t v_offset_bytes;
  const int32_t* pages;  // of the sequence
  int64_t head_dim;
  int64_t v_stride;  // head_dim rounded up to 16
  KvFormat format;
};

// Partial softmax of `heads` query heads over keys [begin, end), which lie in one split of kKeySplit.
struct DecodeAttention {
  KvView kv;
  const float* q;  // [heads][head_dim], scaled
  int64_t heads;   // <= kMaxHeadGroup
  int64_t begin;
  int64_t end;
  float soft_cap;  // 0: none
  float* scratch;  // [heads][kKeySplit]
  float* max;      // [heads]
  float* sum;      // [heads]
  float* out;      // [heads][v_stride], not yet divided by the sum
};

// Causal attention of `rows` = queries x heads rows, row q * heads + h, against all their visible keys.
struct PrefillAttention {
  KvView kv;
  const float* q;      // [rows][head_dim], scaled
  int64_t heads;       // <= kMaxHeadGroup
  int64_t queries;     // queries * heads <= PrefillKernel::rows
  int64_t position;    // of the first query
  int64_t window;      // 0: none
  float soft_cap;      // 0: none
  const float* sinks;  // [heads]; nullptr: none
  float* scratch;      // prefill_scratch_floats(v_stride), aligned to 64 bytes
  float* out;          // [kMaxQueryRows][v_stride]; rows of it, divided by the sum
};

struct PrefillKernel {
  int64_t rows;                               // queries x heads, that a tile takes best, <= kMaxQueryRows
  void (*attend)(const PrefillAttention& a);  // nullptr: this instruction set has no such kernel
};

inline constexpr int64_t prefill_scratch_floats(int64_t v_stride) {
  int64_t wide = (v_stride + 31) / 32 * 32, panel = wide > kKeyBlock ? wide : kKeyBlock;
  return kLanes * panel + kMaxQueryRows * wide + 2 * kKeyBlock * wide + 2 * kMaxQueryRows * kKeyBlock +
         2 * kMaxQueryRows;
}

inline constexpr int64_t kKvBlock = 32;  // entries of a head that share a scale
inline constexpr int64_t kv_scale_blocks(int64_t head_dim) { return (head_dim + kKvBlock - 1) / kKvBlock; }

struct KernelTable {
  const char* name;   // "avx2"
  const char* title;  // "AVX2"

  // Rows of n floats.
  void (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* out);
  void (*add)(const float* a, const float* b, int64_t n, float* out);
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* out);
  void (*gelu_mul)(const float* gate, const float* up, int64_t n, float* out);
  // First `dims` of x [head_dim]; cos and sin [dims / 2]; half: pairs (j, j + dims / 2), else (2j, 2j + 1).
  void (*rope)(float* x, const float* cos, const float* sin, int64_t dims, bool half);

  // Row `row` of `out` becomes x [n], n a multiple of kActBlock, in integers of magnitude <= limit.
  void (*quantize)(const float* x, int64_t n, int32_t limit, const IntRows& out, int64_t row);
  // out[row][lane] for rows [0, rows) of integer activations; formats with integer codes.
  void (*dot_int[kPlanarKinds])(const PanelView& panel, const IntRows& a, int64_t rows, float* out);
  // out[row][lane] (+)= columns [0, n) of float rows times unpacked weights [n][16].
  void (*dot_float)(const float* weights, int64_t n, const float* a, int64_t stride, int64_t rows, bool add,
                    float* out);
  // Columns [k0, k0 + kn) of a panel as f32 [kn][16], bit-equal to decode_row.
  void (*unpack[kPlanarKinds])(const PanelView& panel, int64_t k0, int64_t kn, float* out);

  Gemm gemm_f32;    // any format, in f32
  Gemm gemm_int;    // integer codes times int16 activations, exact within a group
  Gemm gemm_bytes;  // the same times int8 activations
  Gemm gemm_bf16;   // any format: both factors rounded to bf16, on the matrix unit
  Gemm gemm_amx;    // any format: both factors as sums of two bf16, three products on the matrix unit

  // Writes the key and value of one token (position within the sequence) for one kv head.
  void (*kv_append)(const KvView& kv, int64_t position, const float* k, const float* v);
  void (*attend_decode)(const DecodeAttention& a);
  // (max, sum, out) of a head becomes the softmax over both its keys and those of the other triple.
  void (*merge_split)(float* max, float* sum, float* out, float other_max, float other_sum, const float* other,
                      int64_t n);
  PrefillKernel prefill_f32;
  PrefillKernel prefill_amx;  // factors as sums of two bf16
};

const KernelTable& portable_kernels();
const KernelTable& avx2_kernels();
const KernelTable& avxvnni_kernels();
const KernelTable& avx512_kernels();
const KernelTable& amx_kernels();
const KernelTable& neon_kernels();

}  // namespace hearth::cpu
