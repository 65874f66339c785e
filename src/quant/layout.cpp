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

// What a block of a format looks like to the planar layout: its codes, unsigned; its sub-scale dwords; its f16 scales.
template <class F>
struct Planar {
  static constexpr bool kExists = false;
};

template <class F, int CodeBits>
struct PlanarFloat {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{CodeBits, 0, 0, PlanarScale::kNone};
};
template <>
struct Planar<F32> : PlanarFloat<F32, 32> {};
template <>
struct Planar<F16> : PlanarFloat<F16, 16> {};
template <>
struct Planar<BF16> : PlanarFloat<BF16, 16> {};

// Blocks of 32 with the element halves in the low and high nibbles.
template <class F>
void nibble_codes(const typename F::Block& b, uint8_t* codes) {
  for (int j = 0; j < 16; ++j) {
    codes[j] = b.qs[j] & 15;
    codes[j + 16] = b.qs[j] >> 4;
  }
}
template <class F>
void five_bit_codes(const typename F::Block& b, uint8_t* codes) {
  nibble_codes<F>(b, codes);
  uint32_t qh = b.qh.get();
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(codes[i] | ((qh >> i) & 1u) << 4);
}

template <>
struct Planar<Q8_0> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{8, 0, 128, PlanarScale::kHalf};
  static void codes(const Q8_0::Block& b, uint8_t* out) {
    for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(b.qs[i] + 128);
  }
};
template <>
struct Planar<Q4_0> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 0, 8, PlanarScale::kHalf};
  static void codes(const Q4_0::Block& b, uint8_t* out) { nibble_codes<Q4_0>(b, out); }
};
template <>
struct Planar<Q4_1> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 0, 0, PlanarScale::kHalfMin};
  static void codes(const Q4_1::Block& b, uint8_t* out) { nibble_codes<Q4_1>(b, out); }
};
template <>
struct Planar<Q5_0> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 1, 16, PlanarScale::kHalf};
  static void codes(const Q5_0::Block& b, uint8_t* out) { five_bit_codes<Q5_0>(b, out); }
};
template <>
struct Planar<Q5_1> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 1, 0, PlanarScale::kHalfMin};
  static void codes(const Q5_1::Block& b, uint8_t* out) { five_bit_codes<Q5_1>(b, out); }
};
template <class F, int HighBits>
struct PlanarSixBit {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, HighBits, 0, PlanarScale::kSixBit};
  static void codes(const typename F::Block& b, uint8_t* out) {
    for (int i = 0; i < 256; ++i) out[i] = static_cast<uint8_t>(F::code(b, i));
  }
};
template <>
struct Planar<Q4_K> : PlanarSixBit<Q4_K, 0> {};
template <>
struct Planar<Q5_K> : PlanarSixBit<Q5_K, 1> {};
template <>
struct Planar<Q6_K> {
  static constexpr bool kExists = true;
  static constexpr PlanarFormat kFormat{4, 2, 32, PlanarScale::kByte};
  static void codes(const Q6_K::Block& b, uint8_t* out) {
    for (int i = 0; i < 256; ++i) out[i] = static_cast<uint8_t>(Q6_K::code(b, i));
  }
};

int64_t scale_block(PlanarScale scale) {
  return scale == PlanarScale::kSixBit || scale == PlanarScale::kByte ? 256 : 32;
}

// f16 per row in the scales plane, for each scale block.
size_t halves_per_block(PlanarScale scale) {
  switch (scale) {
    case PlanarScale::kNone:
      return 0;
    case PlanarScale::kHalf:
    case PlanarScale::kByte:
      return 1;
    case PlanarScale::kHalfMin:
    case PlanarScale::kSixBit:
      return 2;
  }
  return 0;
}

// Lines of the sub-scale plane, for each 256 elements.
size_t sub_lines_per_block(PlanarScale scale) {
  return scale == PlanarScale::kSixBit ? 3 : scale == PlanarScale::kByte ? 4 : 0;
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
float half_at(const std::byte* plane, size_t index, int64_t row) {
  LeHalf half;
  std::memcpy(&half, reinterpret_cast<const uint8_t*>(plane) + index * kHalvesBytes + static_cast<size_t>(row) * 2, 2);
  return half.get();
}

// Packs the codes of one block of one row; `elems` is a multiple of 32.
void write_codes(const PlanarFormat& format, const uint8_t* codes, int64_t first, int64_t elems, int64_t row,
                 std::byte* code_plane, std::byte* high_plane) {
  if (format.code_bits == 8) {
    for (int64_t i = 0; i < elems; i += 4) {
      std::memcpy(cell(code_plane, static_cast<size_t>((first + i) / 4), row), codes + i, 4);
    }
    return;
  }
  for (int64_t i = 0; i < elems; i += 8) {
    uint8_t* dword = cell(code_plane, static_cast<size_t>((first + i) / 8), row);
    for (int b = 0; b < 4; ++b) dword[b] = static_cast<uint8_t>((codes[i + b] & 15) | (codes[i + 4 + b] & 15) << 4);
  }
  if (format.high_bits == 0) return;
  int64_t line_elems = 32 / format.high_bits;
  for (int64_t i = 0; i < elems; i += line_elems) {
    uint8_t* dword = cell(high_plane, static_cast<size_t>((first + i) / line_elems), row);
    std::memset(dword, 0, 4);
    for (int64_t quad = 0; quad < line_elems / 4; ++quad) {
      for (int b = 0; b < 4; ++b) {
        dword[b] = static_cast<uint8_t>(dword[b] | (codes[i + 4 * quad + b] >> 4) << (format.high_bits * quad));
      }
    }
  }
}

uint8_t read_code(const PlanarFormat& format, const std::byte* code_plane, const std::byte* high_plane, int64_t row,
                  int64_t i) {
  if (format.code_bits == 8) return cell(code_plane, static_cast<size_t>(i / 4), row)[i % 4];
  uint8_t byte = cell(code_plane, static_cast<size_t>(i / 8), row)[i % 4];
  int code = i & 4 ? byte >> 4 : byte & 15;
  if (format.high_bits) {
    int64_t line_elems = 32 / format.high_bits;
    uint8_t high = cell(high_plane, static_cast<size_t>(i / line_elems), row)[i % 4];
    int64_t quad = i % line_elems / 4;
    code |= ((high >> (format.high_bits * quad)) & ((1 << format.high_bits) - 1)) << 4;
  }
  return static_cast<uint8_t>(code);
}

template <class F>
void write_block(const typename F::Block& block, int64_t index, int64_t row, std::byte* panel, const PlanarPanel& at) {
  constexpr PlanarFormat kFormat = Planar<F>::kFormat;
  constexpr int64_t kElems = F::kInfo.block_elems;
  auto i = static_cast<size_t>(index);
  uint8_t codes[kElems];
  Planar<F>::codes(block, codes);
  write_codes(kFormat, codes, index * kElems, kElems, row, panel + at.codes, panel + at.high);
  if constexpr (kFormat.scale == PlanarScale::kSixBit) {
    for (size_t k = 0; k < 3; ++k) std::memcpy(cell(panel + at.sub_scales, 3 * i + k, row), block.scales + 4 * k, 4);
    std::memcpy(half_cell(panel + at.scales, 2 * i, row), &block.d, 2);
    std::memcpy(half_cell(panel + at.scales, 2 * i + 1, row), &block.dmin, 2);
  } else if constexpr (kFormat.scale == PlanarScale::kByte) {
    for (size_t k = 0; k < 4; ++k) std::memcpy(cell(panel + at.sub_scales, 4 * i + k, row), block.scales + 4 * k, 4);
    std::memcpy(half_cell(panel + at.scales, i, row), &block.d, 2);
  } else if constexpr (kFormat.scale == PlanarScale::kHalfMin) {
    std::memcpy(half_cell(panel + at.scales, 2 * i, row), &block.d, 2);
    std::memcpy(half_cell(panel + at.scales, 2 * i + 1, row), &block.m, 2);
  } else {
    std::memcpy(half_cell(panel + at.scales, i, row), &block.d, 2);
  }
}

// The whole row of a float format; elements are `bytes` wide.
void write_floats(const std::byte* native, int64_t cols, size_t bytes, int64_t row, std::byte* plane) {
  auto per_line = static_cast<int64_t>(4 / bytes);
  for (int64_t i = 0; i < cols; ++i) {
    std::memcpy(cell(plane, static_cast<size_t>(i / per_line), row) + static_cast<size_t>(i % per_line) * bytes,
                native + static_cast<size_t>(i) * bytes, bytes);
  }
}

struct ScaleMin {
  float scale;
  float min;
};

// Scale and minimum of element i. Of the formats without minimum, `min` is not to be added: -0 + 0 is another zero.
ScaleMin scale_of(PlanarScale kind, const std::byte* sub_scales, const std::byte* scales, int64_t row, int64_t i) {
  auto block = static_cast<size_t>(i / scale_block(kind));
  switch (kind) {
    case PlanarScale::kNone:
      break;
    case PlanarScale::kHalf:
      return {half_at(scales, block, row), 0.0f};
    case PlanarScale::kHalfMin:
      return {half_at(scales, 2 * block, row), half_at(scales, 2 * block + 1, row)};
    case PlanarScale::kByte: {
      auto group = static_cast<size_t>(i % 256 / 16);
      auto sub = static_cast<int8_t>(cell(sub_scales, 4 * block + group / 4, row)[group % 4]);
      return {half_at(scales, block, row) * static_cast<float>(sub), 0.0f};
    }
    case PlanarScale::kSixBit: {
      auto group = static_cast<size_t>(i % 256 / 32);
      uint8_t s0 = cell(sub_scales, 3 * block, row)[group % 4];
      uint8_t s1 = cell(sub_scales, 3 * block + 1, row)[group % 4];
      uint8_t s2 = cell(sub_scales, 3 * block + 2, row)[group % 4];
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
  size_t blocks = n / static_cast<size_t>(scale_block(format->scale));
  at.scales = at.sub_scales + plane(blocks * sub_lines_per_block(format->scale) * kLineBytes);
  at.panel_bytes = at.scales + plane(blocks * halves_per_block(format->scale) * kHalvesBytes);
  return at;
}

size_t planar_size_bytes(FormatId id, int64_t rows, int64_t cols) {
  return planar_panel(id, cols).panel_bytes * static_cast<size_t>(ceil_div(rows, kPanelRows));
}

void to_planar(FormatId id, int64_t rows, int64_t cols, const std::byte* native, std::byte* planar) {
  PlanarPanel at = planar_panel(id, cols);
  size_t native_row = row_bytes(id, cols);
  for (int64_t first = 0; first < rows; first += kPanelRows, planar += at.panel_bytes) {
    std::memset(planar, 0, at.panel_bytes);
    for (int64_t r = 0; r < std::min(kPanelRows, rows - first); ++r, native += native_row) {
      with_format(id, [&]<class F>() {
        if constexpr (Planar<F>::kExists) {
          if constexpr (Planar<F>::kFormat.scale == PlanarScale::kNone) {
            write_floats(native, cols, F::kInfo.block_bytes, r, planar);
          } else {
            auto* blocks = reinterpret_cast<const typename F::Block*>(native);
            for (int64_t i = 0; i < cols / F::kInfo.block_elems; ++i) write_block<F>(blocks[i], i, r, planar, at);
          }
        }
      });
    }
  }
}

void planar_row_decode(FormatId id, int64_t cols, const std::byte* planar, int64_t row, std::span<float> out) {
  HEARTH_CHECK(static_cast<int64_t>(out.size()) == cols, "{} values for {} columns", out.size(), cols);
  PlanarPanel at = planar_panel(id, cols);
  const PlanarFormat& format = *planar_format(id);
  const std::byte* panel = planar + static_cast<size_t>(row / kPanelRows) * at.panel_bytes;
  int64_t r = row % kPanelRows;
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
    int code = read_code(format, panel + at.codes, panel + at.high, r, i) - format.zero;
    ScaleMin s = scale_of(format.scale, panel + at.sub_scales, panel + at.scales, r, i);
    bool has_min = format.scale == PlanarScale::kHalfMin || format.scale == PlanarScale::kSixBit;
    y = s.scale * static_cast<float>(code);
    if (has_min) y += s.min;
  }
}

}  // namespace hearth
