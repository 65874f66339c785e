#include "quant/layout.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "quant/formats.h"
#include "quant/half.h"

namespace hearth {
namespace {

constexpr size_t kLineBytes = 4 * kPanelRows;    // a dword per row
constexpr size_t kHalvesBytes = 2 * kPanelRows;  // an f16 per row

// One row's dwords in consecutive lines of a plane.
struct Lines {
  uint8_t* first;
  void put(size_t line, uint32_t dword) const {
    LeU32 le;
    le.set(dword);
    std::memcpy(first + line * kLineBytes, &le, 4);
  }
};

uint32_t dword_at(const void* bytes, size_t index) {
  LeU32 le;
  std::memcpy(&le, static_cast<const uint8_t*>(bytes) + index * 4, 4);
  return le.get();
}

// Nibbles of which `Half` bytes hold 2 * Half elements, the first half of them in the low nibbles. Four bits each of
// elements 8i + b and 8i + 4 + b, which lie four bytes apart, become one byte.
template <size_t Half, size_t Bytes>
void put_nibbles(const uint8_t (&qs)[Bytes], Lines codes) {
  constexpr uint32_t kLow = 0x0f0f0f0f;
  for (size_t group = 0; group < Bytes / Half; ++group) {
    for (size_t j = 0; j < Half / 8; ++j) {
      uint32_t a = dword_at(qs + group * Half, 2 * j), b = dword_at(qs + group * Half, 2 * j + 1);
      codes.put(group * Half / 4 + j, (a & kLow) | (b & kLow) << 4);
      codes.put(group * Half / 4 + Half / 8 + j, (a >> 4 & kLow) | (b & ~kLow));
    }
  }
}

// Exchanges the bits selected by `mask` with those `shift` places above.
uint32_t swap_bits(uint32_t x, int shift, uint32_t mask) {
  uint32_t t = (x ^ x >> shift) & mask;
  return x ^ t ^ t << shift;
}
// The same between two dwords: the bits of `b` selected by `mask` with those of `a` that are `shift` places above.
void swap_bits(uint32_t& a, uint32_t& b, int shift, uint32_t mask) {
  uint32_t t = (a >> shift ^ b) & mask;
  b ^= t;
  a ^= t << shift;
}

// Bit 4q + b (q 0..7, b 0..3) becomes bit 8b + q: the five bits of the position turn by two, four exchanges of two.
uint32_t spread_high(uint32_t qh) {
  qh = swap_bits(qh, 14, 0x0000cccc);
  qh = swap_bits(qh, 7, 0x00aa00aa);
  qh = swap_bits(qh, 2, 0x0c0c0c0c);
  return swap_bits(qh, 1, 0x22222222);
}

// Nibbles 0..7 become 0, 4, 1, 5, 2, 6, 3, 7: byte j holds nibble j and, in its high half, nibble 4 + j.
uint32_t interleave_nibbles(uint32_t x) { return swap_bits(swap_bits(x, 8, 0x0000ff00), 4, 0x00f000f0); }

// What a block of a format looks like to the planar layout; put() writes its codes and high bits.
template <class F>
struct Planar {
  static constexpr bool kExists = false;
};

template <int CodeBits>
struct PlanarFloat {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{CodeBits, 0, 0, PlanarScale::kNone};
};
template <>
struct Planar<F32> : PlanarFloat<32> {};
template <>
struct Planar<F16> : PlanarFloat<16> {};
template <>
struct Planar<BF16> : PlanarFloat<16> {};

template <>
struct Planar<Q8_0> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{8, 0, 128, PlanarScale::kHalf};
  static void put(const Q8_0::Block& b, Lines codes, Lines) {
    for (size_t j = 0; j < 8; ++j) codes.put(j, dword_at(b.qs, j) ^ 0x80808080);  // + 128
  }
};

template <class F, int Zero, PlanarScale Scale>
struct PlanarFourBits {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 0, Zero, Scale};
  static void put(const typename F::Block& b, Lines codes, Lines) { put_nibbles<16>(b.qs, codes); }
};
template <>
struct Planar<Q4_0> : PlanarFourBits<Q4_0, 8, PlanarScale::kHalf> {};
template <>
struct Planar<Q4_1> : PlanarFourBits<Q4_1, 0, PlanarScale::kHalfMin> {};

template <class F, int Zero, PlanarScale Scale>
struct PlanarFiveBits {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 1, Zero, Scale};
  static void put(const typename F::Block& b, Lines codes, Lines high) {
    put_nibbles<16>(b.qs, codes);
    high.put(0, spread_high(b.qh.get()));
  }
};
template <>
struct Planar<Q5_0> : PlanarFiveBits<Q5_0, 16, PlanarScale::kHalf> {};
template <>
struct Planar<Q5_1> : PlanarFiveBits<Q5_1, 0, PlanarScale::kHalfMin> {};

// Byte l of 32, bit i: element 32i + l (Q5_K), in dwords q: element 32i + 4q + b. Line i wants it in bit q of byte b:
// 8 x 8 bits, turned.
void put_bits(const uint8_t (&bits)[32], Lines high) {
  uint32_t w[8];
  for (size_t q = 0; q < 8; ++q) w[q] = dword_at(bits, q);
  for (size_t q : {0, 1, 2, 3}) swap_bits(w[q], w[q + 4], 4, 0x0f0f0f0f);
  for (size_t q : {0, 1, 4, 5}) swap_bits(w[q], w[q + 2], 2, 0x33333333);
  for (size_t q : {0, 2, 4, 6}) swap_bits(w[q], w[q + 1], 1, 0x55555555);
  for (size_t i = 0; i < 8; ++i) high.put(i, w[i]);
}

// Byte 32h + l, bits 2g and up: element 128h + 32g + l, in dwords q of 16 bytes: 128h + 32g + 16s + 4q + b. Line
// 8h + 2g + s wants it in bits 2q of byte b: 4 x 4 pairs of bits, turned.
void put_pairs(const uint8_t (&pairs)[64], Lines lines) {
  for (size_t h = 0; h < 2; ++h) {
    for (size_t s = 0; s < 2; ++s) {
      uint32_t w[4];
      for (size_t q = 0; q < 4; ++q) w[q] = dword_at(pairs + 32 * h + 16 * s, q);
      swap_bits(w[0], w[2], 4, 0x0f0f0f0f), swap_bits(w[1], w[3], 4, 0x0f0f0f0f);
      swap_bits(w[0], w[1], 2, 0x33333333), swap_bits(w[2], w[3], 2, 0x33333333);
      for (size_t g = 0; g < 4; ++g) lines.put(8 * h + 2 * g + s, w[g]);
    }
  }
}

template <>
struct Planar<Q2_K> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{2, 0, 0, PlanarScale::kNibble};
  static void put(const Q2_K::Block& b, Lines codes, Lines) { put_pairs(b.qs, codes); }
};
template <>
struct Planar<Q3_K> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{2, 1, 4, PlanarScale::kSix16};
  static void put(const Q3_K::Block& b, Lines codes, Lines high) {
    put_pairs(b.qs, codes);
    put_bits(b.hmask, high);
  }
};
template <>
struct Planar<Q4_K> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 0, 0, PlanarScale::kSixBit};
  static void put(const Q4_K::Block& b, Lines codes, Lines) { put_nibbles<32>(b.qs, codes); }
};
template <>
struct Planar<Q5_K> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 1, 0, PlanarScale::kSixBit};
  static void put(const Q5_K::Block& b, Lines codes, Lines high) {
    put_nibbles<32>(b.qs, codes);
    put_bits(b.qh, high);
  }
};
template <>
struct Planar<Q6_K> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 2, 32, PlanarScale::kByte};
  static void put(const Q6_K::Block& b, Lines codes, Lines high) {
    put_nibbles<64>(b.ql, codes);
    put_pairs(b.qh, high);
  }
};

// Four-bit indices whose values `Table` holds; Half as in put_nibbles.
template <class F, const auto& Table, size_t Half, PlanarScale Scale>
struct PlanarCodebook {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 0, 0, Scale};
  static float value(int code) { return static_cast<float>(Table[code]); }
  static void put(const typename F::Block& b, Lines codes, Lines) { put_nibbles<Half>(b.qs, codes); }
};
template <>
struct Planar<IQ4_NL> : PlanarCodebook<IQ4_NL, kIq4Values, 16, PlanarScale::kHalf> {};
template <>
struct Planar<IQ4_XS> : PlanarCodebook<IQ4_XS, kIq4Values, 16, PlanarScale::kSix32> {};
template <>
struct Planar<MXFP4> : PlanarCodebook<MXFP4, kE2m1Doubled, 16, PlanarScale::kE8M0> {};
template <>
struct Planar<NVFP4> : PlanarCodebook<NVFP4, kE2m1Doubled, 8, PlanarScale::kE4M3> {};
template <>
struct Planar<NF4> : PlanarCodebook<NF4, kNf4Values, 1, PlanarScale::kHalf64> {
  static void put(const NF4::Block& b, Lines codes, Lines) {
    for (size_t j = 0; j < 8; ++j) codes.put(j, interleave_nibbles(dword_at(b.qs, j)));
  }
};

// What the sub-scale and scale planes hold for each `elems` elements.
struct ScaleBlock {
  int64_t elems;
  size_t sub_lines;
  size_t halves;  // f16 per row
};
constexpr ScaleBlock scale_block(PlanarScale scale) {
  switch (scale) {
    case PlanarScale::kNone:
      break;
    case PlanarScale::kHalf:
      return {32, 0, 1};
    case PlanarScale::kHalfMin:
      return {32, 0, 2};
    case PlanarScale::kHalf64:
      return {64, 0, 1};
    case PlanarScale::kSixBit:
      return {256, 3, 2};
    case PlanarScale::kByte:
      return {256, 4, 1};
    case PlanarScale::kNibble:
      return {256, 4, 2};
    case PlanarScale::kSix16:
      return {256, 3, 1};
    case PlanarScale::kSix32:
      return {256, 1, 2};
    case PlanarScale::kE8M0:
      return {128, 1, 0};
    case PlanarScale::kE4M3:
      return {64, 1, 0};
  }
  return {1, 0, 0};
}

uint8_t* cell(std::byte* plane, size_t line, int64_t row) {
  return reinterpret_cast<uint8_t*>(plane) + line * kLineBytes + static_cast<size_t>(row) * 4;
}
const uint8_t* cell(const std::byte* plane, size_t line, int64_t row) {
  return reinterpret_cast<const uint8_t*>(plane) + line * kLineBytes + static_cast<size_t>(row) * 4;
}
// Half number `index` of a row in a scales plane.
uint8_t* half_cell(std::byte* plane, size_t index, int64_t row) {
  return reinterpret_cast<uint8_t*>(plane) + index * kHalvesBytes + static_cast<size_t>(row) * 2;
}
const uint8_t* half_cell(const std::byte* plane, size_t index, int64_t row) {
  return reinterpret_cast<const uint8_t*>(plane) + index * kHalvesBytes + static_cast<size_t>(row) * 2;
}
float half_at(const std::byte* plane, size_t index, int64_t row) {
  LeHalf half;
  std::memcpy(&half, half_cell(plane, index, row), 2);
  return half.get();
}

int read_code(const PlanarFormat& format, const std::byte* code_plane, const std::byte* high_plane, int64_t row,
              int64_t i) {
  if (format.code_bits == 8) return cell(code_plane, static_cast<size_t>(i / 4), row)[i % 4];
  int64_t elems = 32 / format.code_bits;  // of a line
  uint8_t byte = cell(code_plane, static_cast<size_t>(i / elems), row)[i % 4];
  int code = (byte >> (format.code_bits * (i % elems / 4))) & ((1 << format.code_bits) - 1);
  if (format.high_bits) {
    int64_t line_elems = 32 / format.high_bits;
    uint8_t high = cell(high_plane, static_cast<size_t>(i / line_elems), row)[i % 4];
    int64_t quad = i % line_elems / 4;
    code |= ((high >> (format.high_bits * quad)) & ((1 << format.high_bits) - 1)) << format.code_bits;
  }
  return code;
}

// Four E4M3 bytes without the bit that has no meaning; 0x7f, which means 0, becomes 0.
uint32_t clean_e4m3(uint32_t x) {
  x &= 0x7f7f7f7f;
  uint32_t top = (x + 0x01010101) >> 7 & 0x01010101;  // 1 in a byte of 0x7f
  return x & ~(top * 0x7f);
}

// Two-bit fields 0..7 become 0, 4, 2, 6, 1, 5, 3, 7, so that two shifts and masks bring four of them into four bytes.
LeU16 scale_pairs(LeU16 pairs) {
  LeU16 out;
  out.set(static_cast<uint16_t>(swap_bits(pairs.get(), 6, 0x00cc)));
  return out;
}

template <class F>
void write_block(const typename F::Block& block, int64_t index, int64_t row, std::byte* panel, const PlanarPanel& at) {
  constexpr PlanarFormat kFormat = Planar<F>::kFormat;
  auto i = static_cast<size_t>(index);
  constexpr size_t kCodeLines = F::kInfo.block_elems * kFormat.code_bits / 32;
  constexpr size_t kHighLines = F::kInfo.block_elems * kFormat.high_bits / 32;
  constexpr size_t kSubLines = scale_block(kFormat.scale).sub_lines, kHalves = scale_block(kFormat.scale).halves;
  Planar<F>::put(block, {cell(panel + at.codes, kCodeLines * i, row)}, {cell(panel + at.high, kHighLines * i, row)});

  Lines sub_scales{cell(panel + at.sub_scales, kSubLines * i, row)};
  if constexpr (kFormat.scale == PlanarScale::kE8M0) {
    cell(panel + at.sub_scales, i / 4, row)[i % 4] = block.e;
  } else if constexpr (kFormat.scale == PlanarScale::kE4M3) {
    sub_scales.put(0, clean_e4m3(dword_at(block.d, 0)));
  } else if constexpr (kFormat.scale == PlanarScale::kSix32) {
    sub_scales.put(0, interleave_nibbles(dword_at(block.scales_l, 0)));
  } else if constexpr (kSubLines > 0) {
    for (size_t k = 0; k < kSubLines; ++k) sub_scales.put(k, dword_at(block.scales, k));
  }

  if constexpr (kHalves > 0) {
    auto put_half = [&](size_t k, const auto& half) {
      static_assert(sizeof half == 2);
      std::memcpy(half_cell(panel + at.scales, kHalves * i + k, row), &half, 2);
    };
    put_half(0, block.d);
    if constexpr (kFormat.scale == PlanarScale::kSixBit || kFormat.scale == PlanarScale::kNibble) {
      put_half(1, block.dmin);
    } else if constexpr (kFormat.scale == PlanarScale::kHalfMin) {
      put_half(1, block.m);
    } else if constexpr (kFormat.scale == PlanarScale::kSix32) {
      put_half(1, scale_pairs(block.scales_h));
    }
  }
}

// Dwords [first, first + count) of a row of floats.
void write_floats(const std::byte* native, size_t row_bytes, size_t first, size_t count, int64_t row,
                  std::byte* plane) {
  Lines lines{cell(plane, first, row)};
  size_t whole = std::min(count, row_bytes / 4 - first);
  for (size_t i = 0; i < whole; ++i) lines.put(i, dword_at(native, first + i));
  if (whole < count) {  // an odd last half
    LeU16 last;
    std::memcpy(&last, native + row_bytes - 2, 2);
    lines.put(whole, last.get());
  }
}

// Bytes ahead in each row that are fetched: sixteen streams are more than processors follow. +40 % for Q4_K on AMD Zen.
constexpr size_t kPrefetchBytes = 384;

// A panel with `rows` rows. Blocks are the outer loop: the lines that 16 rows write together stay in the L1 cache.
template <class F>
void write_panel(const std::byte* native, int64_t rows, int64_t cols, std::byte* panel, const PlanarPanel& at) {
  size_t native_row = row_bytes(F::kId, cols);
  if constexpr (Planar<F>::kFormat.scale == PlanarScale::kNone) {
    constexpr size_t kRun = 64;
    size_t dwords = ceil_div<size_t>(native_row, 4);
    for (size_t first = 0; first < dwords; first += kRun) {
      for (int64_t r = 0; r < rows; ++r) {
        write_floats(native + static_cast<size_t>(r) * native_row, native_row, first, std::min(kRun, dwords - first), r,
                     panel);
      }
    }
  } else {
    for (int64_t i = 0; i < cols / F::kInfo.block_elems; ++i) {
      for (int64_t r = 0; r < rows; ++r) {
        auto* blocks = reinterpret_cast<const typename F::Block*>(native + static_cast<size_t>(r) * native_row);
        auto* ahead = reinterpret_cast<const std::byte*>(blocks + i) + kPrefetchBytes;
        for (size_t b = 0; b < sizeof(blocks[i]); b += 64) __builtin_prefetch(ahead + b);
        write_block<F>(blocks[i], i, r, panel, at);
      }
    }
  }
}

// The factor of the scale that a code stands for.
template <class F>
float value_of(int code) {
  if constexpr (requires { Planar<F>::value(code); }) {
    return Planar<F>::value(code);
  } else if constexpr (Planar<F>::kExists) {
    return static_cast<float>(code - Planar<F>::kFormat.zero);
  } else {
    return 0.0f;
  }
}

struct ScaleMin {
  float scale;
  float min;
};

// Scale and minimum of element i. Of the formats without minimum, `min` is not to be added: -0 + 0 is another zero.
ScaleMin scale_of(PlanarScale kind, const std::byte* sub_scales, const std::byte* scales, int64_t row, int64_t i) {
  auto block = static_cast<size_t>(i / scale_block(kind).elems);
  auto sub_byte = [&](size_t line, size_t group) { return cell(sub_scales, line, row)[group % 4]; };
  switch (kind) {
    case PlanarScale::kNone:
      break;
    case PlanarScale::kHalf:
      return {half_at(scales, block, row), 0.0f};
    case PlanarScale::kHalfMin:
      return {half_at(scales, 2 * block, row), half_at(scales, 2 * block + 1, row)};
    case PlanarScale::kHalf64:
      return {half_at(scales, block, row), 0.0f};
    case PlanarScale::kByte: {
      auto group = static_cast<size_t>(i % 256 / 16);
      auto sub = static_cast<int8_t>(sub_byte(4 * block + group / 4, group));
      return {half_at(scales, block, row) * static_cast<float>(sub), 0.0f};
    }
    case PlanarScale::kNibble: {
      auto group = static_cast<size_t>(i % 256 / 16);
      uint8_t sub = sub_byte(4 * block + group / 4, group);
      return {half_at(scales, 2 * block, row) * static_cast<float>(sub & 15),
              -(half_at(scales, 2 * block + 1, row) * static_cast<float>(sub >> 4))};
    }
    case PlanarScale::kSix16: {
      auto group = static_cast<size_t>(i % 256 / 16);
      int low = sub_byte(3 * block + group / 4 % 2, group) >> (group < 8 ? 0 : 4) & 15;
      int high = sub_byte(3 * block + 2, group) >> (2 * (group / 4)) & 3;
      return {half_at(scales, block, row) * static_cast<float>((low | high << 4) - 32), 0.0f};
    }
    case PlanarScale::kSix32: {
      auto group = static_cast<size_t>(i % 256 / 32);
      int low = sub_byte(block, group) >> (group < 4 ? 0 : 4) & 15;
      LeU16 pairs;
      std::memcpy(&pairs, half_cell(scales, 2 * block + 1, row), 2);
      int high = pairs.get() >> (group % 2 * 8 + group / 2 % 2 * 4 + group / 4 * 2) & 3;
      return {half_at(scales, 2 * block, row) * static_cast<float>((low | high << 4) - 32), 0.0f};
    }
    case PlanarScale::kE8M0:
      return {e8m0_half(sub_byte(block, static_cast<size_t>(i / 32))), 0.0f};
    case PlanarScale::kE4M3:
      return {0.5f * ue4m3(sub_byte(block, static_cast<size_t>(i / 16))), 0.0f};
    case PlanarScale::kSixBit: {
      auto group = static_cast<size_t>(i % 256 / 32);
      uint8_t s0 = sub_byte(3 * block, group), s1 = sub_byte(3 * block + 1, group), s2 = sub_byte(3 * block + 2, group);
      int sc = group < 4 ? s0 & 63 : (s2 & 15) | ((s0 >> 2) & 0x30);
      int m = group < 4 ? s1 & 63 : (s2 >> 4) | ((s1 >> 2) & 0x30);
      return {half_at(scales, 2 * block, row) * static_cast<float>(sc),
              -(half_at(scales, 2 * block + 1, row) * static_cast<float>(m))};
    }
  }
  return {1.0f, 0.0f};
}

}  // namespace

const PlanarFormat* planar_format(FormatId id) {
  return with_format(id, []<class F>() -> const PlanarFormat* {
    if constexpr (Planar<F>::kExists) {
      return &Planar<F>::kFormat;
    } else {
      return nullptr;
    }
  });
}

PlanarPanel planar_panel(FormatId id, int64_t cols) {
  const FormatInfo& info = format_info(id);
  const PlanarFormat* format = planar_format(id);
  HEARTH_CHECK(format != nullptr, "{} has no planar layout", info.name);
  HEARTH_CHECK(cols >= 0 && cols % info.block_elems == 0, "{} columns in blocks of {}", cols, info.block_elems);
  auto n = static_cast<size_t>(cols);
  auto plane = [](size_t bytes) { return round_up(bytes, kPlanarAlign); };
  PlanarPanel at;
  at.high = at.codes + plane(ceil_div<size_t>(n * static_cast<size_t>(format->code_bits), 32) * kLineBytes);
  at.sub_scales = at.high + plane(n * static_cast<size_t>(format->high_bits) / 32 * kLineBytes);
  ScaleBlock scale = scale_block(format->scale);
  size_t blocks = ceil_div(n, static_cast<size_t>(scale.elems));
  at.scales = at.sub_scales + plane(blocks * scale.sub_lines * kLineBytes);
  at.panel_bytes = at.scales + plane(blocks * scale.halves * kHalvesBytes);
  return at;
}

size_t planar_size_bytes(FormatId id, int64_t rows, int64_t cols) {
  return planar_panel(id, cols).panel_bytes * static_cast<size_t>(ceil_div(rows, kPanelRows));
}

void to_planar(FormatId id, int64_t rows, int64_t cols, const std::byte* native, std::byte* planar) {
  PlanarPanel at = planar_panel(id, cols);
  size_t native_row = row_bytes(id, cols);
  with_format(id, [&]<class F>() {
    if constexpr (Planar<F>::kExists) {
      for (int64_t first = 0; first < rows; first += kPanelRows) {
        int64_t n = std::min(kPanelRows, rows - first);
        // Rows leave nothing of a full panel unwritten but the padding of the last plane.
        size_t clear = n < kPanelRows ? at.panel_bytes : std::min(at.panel_bytes, kPlanarAlign);
        std::memset(planar + at.panel_bytes - clear, 0, clear);
        write_panel<F>(native, n, cols, planar, at);
        native += static_cast<size_t>(n) * native_row;
        planar += at.panel_bytes;
      }
    }
  });
}

void planar_row_decode(FormatId id, int64_t cols, const std::byte* planar, int64_t row, std::span<float> out) {
  HEARTH_CHECK(static_cast<int64_t>(out.size()) == cols, "{} values for {} columns", out.size(), cols);
  PlanarPanel at = planar_panel(id, cols);
  const PlanarFormat& format = *planar_format(id);
  const std::byte* panel = planar + static_cast<size_t>(row / kPanelRows) * at.panel_bytes;
  int64_t r = row % kPanelRows;
  auto value = with_format(id, []<class F>() -> float (*)(int) { return &value_of<F>; });
  bool has_min = format.scale == PlanarScale::kHalfMin || format.scale == PlanarScale::kSixBit ||
                 format.scale == PlanarScale::kNibble;
  for (int64_t i = 0; i < cols; ++i) {
    float& y = out[static_cast<size_t>(i)];
    if (format.scale == PlanarScale::kNone) {
      if (format.code_bits == 32) {
        std::memcpy(&y, cell(panel, static_cast<size_t>(i), r), 4);
      } else {
        LeU16 bits;
        std::memcpy(&bits, cell(panel, static_cast<size_t>(i / 2), r) + 2 * (i % 2), 2);
        y = id == FormatId::kF16 ? f16_to_f32(bits.get()) : bf16_to_f32(bits.get());
      }
      continue;
    }
    ScaleMin s = scale_of(format.scale, panel + at.sub_scales, panel + at.scales, r, i);
    y = s.scale * value(read_code(format, panel + at.codes, panel + at.high, r, i));
    if (has_min) y += s.min;
  }
}

}  // namespace hearth
