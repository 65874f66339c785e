// Plain numbers, one per "block": F32, F16, BF16, F64 and the integer types, which hold no weights but may be in files.
#pragma once

#include <cstring>
#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

struct F32 {
  static constexpr FormatId kId = FormatId::kF32;
  static constexpr FormatInfo kInfo{"F32", 0, 1, 4, CanonicalGroup::kFloat};
  struct Block {
    LeU32 bits;  // IEEE binary32
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);
  static void decode(const Block& b, std::span<float, 1> out) { out[0] = std::bit_cast<float>(b.bits.get()); }
};

struct F16 {
  static constexpr FormatId kId = FormatId::kF16;
  static constexpr FormatInfo kInfo{"F16", 1, 1, 2, CanonicalGroup::kFloat};
  struct Block {
    LeHalf value;  // IEEE binary16, subnormals count
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);
  static void decode(const Block& b, std::span<float, 1> out) { out[0] = b.value.get(); }
};

struct BF16 {
  static constexpr FormatId kId = FormatId::kBF16;
  static constexpr FormatInfo kInfo{"BF16", 30, 1, 2, CanonicalGroup::kFloat};
  struct Block {
    LeU16 bits;  // upper half of a binary32
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);
  static void decode(const Block& b, std::span<float, 1> out) { out[0] = bf16_to_f32(b.bits.get()); }
};

// The others decode by conversion to f32 (round to nearest), which loses digits of wide integers and F64.
template <class T, FormatId Id>
struct PlainNumber {
  static constexpr FormatId kId = Id;
  struct Block {
    uint8_t byte[sizeof(T)];  // little-endian
  };
  static void decode(const Block& b, std::span<float, 1> out) {
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i) bits |= static_cast<uint64_t>(b.byte[i]) << (8 * i);
    T value;
    std::memcpy(&value, &bits, sizeof(T));  // low bytes first on every machine Hearth runs on
    out[0] = static_cast<float>(value);
  }
};

struct I8 : PlainNumber<int8_t, FormatId::kI8> {
  static constexpr FormatInfo kInfo{"I8", 24, 1, 1, CanonicalGroup::kOther};
};
struct I16 : PlainNumber<int16_t, FormatId::kI16> {
  static constexpr FormatInfo kInfo{"I16", 25, 1, 2, CanonicalGroup::kOther};
};
struct I32 : PlainNumber<int32_t, FormatId::kI32> {
  static constexpr FormatInfo kInfo{"I32", 26, 1, 4, CanonicalGroup::kOther};
};
struct I64 : PlainNumber<int64_t, FormatId::kI64> {
  static constexpr FormatInfo kInfo{"I64", 27, 1, 8, CanonicalGroup::kOther};
};
struct F64 : PlainNumber<double, FormatId::kF64> {
  static constexpr FormatInfo kInfo{"F64", 28, 1, 8, CanonicalGroup::kOther};
};

}  // namespace hearth
