// Quantizes rows of f32 weights: for synthetic models, tests and models made here. Rounding with a small search for the
// scales that minimize the squared error; no importance weights.
#pragma once

#include <cstddef>
#include <span>

#include "quant/format.h"

namespace hearth {

// F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4, NVFP4, NF4.
bool can_encode(FormatId id);

// Writes row_bytes(id, values.size()) bytes. The format must be encodable and values.size() a multiple of its block
// (checked). Values must be finite; scales that f16 cannot hold saturate.
void encode_row(FormatId id, std::span<const float> values, std::byte* row);

}  // namespace hearth
