// What a quantized (or plain) tensor format is called and how big its blocks are, and decoding of whole rows by id.
// Formats themselves are in quant/formats/, their one list in quant/formats.h; layouts in memory are quant/layout.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace hearth {

// In the order of FormatList (quant/formats.h), which is the order of the file format's own ids; NF4, which GGUF lacks,
// comes last.
enum class FormatId : uint8_t {
  kF32,
  kF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ3_XXS,
  kIQ1_S,
  kIQ4_NL,
  kIQ3_S,
  kIQ2_S,
  kIQ4_XS,
  kI8,
  kI16,
  kI32,
  kI64,
  kF64,
  kIQ1_M,
  kBF16,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
  kQ1_0,
  kQ2_0,
  kNF4,
};

// What a format unpacks to; matrix kernels exist per group.
enum class CanonicalGroup : uint8_t {
  kFloat,     // f32, f16, bf16
  kAffine32,  // per 32 elements: integer codes, scale, optional minimum
  kAffine16,  // the same per 16 elements
  kCodebook,  // 4-bit index into 16 values, scale per 16, 32 or 64 elements
  kOther,     // everything that only scalar decode reads
};

struct FormatInfo {
  std::string_view name;  // as tools print it: "Q4_K"
  uint32_t ggml_type;     // the id in GGUF files
  int64_t block_elems;
  size_t block_bytes;
  CanonicalGroup group;

  double bits_per_weight() const { return 8.0 * static_cast<double>(block_bytes) / static_cast<double>(block_elems); }
};

const FormatInfo& format_info(FormatId id);
// All formats, in the order of FormatId.
std::span<const FormatId> all_formats();

// A GGUF tensor type -> format. Fails with kUnsupported and names the type: removed types, types of activations only,
// types of ik_llama.cpp only, ids nobody knows.
Result<FormatId> format_from_ggml(uint32_t ggml_type);
// By name, case-insensitive. Fails with kUsage and lists the names.
Result<FormatId> format_from_name(std::string_view name);

// Bytes of a native row of n elements; n must be a multiple of block_elems and the result must fit (both checked).
size_t row_bytes(FormatId id, int64_t n);

// Decodes one native row, out.size() elements, a multiple of block_elems (checked). `row` needs no alignment.
void decode_row(FormatId id, const std::byte* row, std::span<float> out);

}  // namespace hearth
