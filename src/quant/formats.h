// The one list of formats. Tables, dispatch, tests and documentation are generated from it; a new format is a header in
// quant/formats/, an enumerator in FormatId and an entry here.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

#include "base/check.h"
#include "quant/format.h"
#include "quant/formats/fp4.h"
#include "quant/formats/iq1.h"
#include "quant/formats/iq2.h"
#include "quant/formats/iq3.h"
#include "quant/formats/iq4.h"
#include "quant/formats/nf4.h"
#include "quant/formats/plain.h"
#include "quant/formats/q2_k.h"
#include "quant/formats/q3_k.h"
#include "quant/formats/q4_0.h"
#include "quant/formats/q4_1.h"
#include "quant/formats/q4_k.h"
#include "quant/formats/q5_0.h"
#include "quant/formats/q5_1.h"
#include "quant/formats/q5_k.h"
#include "quant/formats/q6_k.h"
#include "quant/formats/q8_0.h"
#include "quant/formats/ternary.h"

namespace hearth {

// F::Block is the layout (alignment 1), F::decode its meaning.
template <class F>
concept QuantFormat = requires(const typename F::Block& block, std::span<float, F::kInfo.block_elems> out) {
  { F::kId } -> std::convertible_to<FormatId>;
  F::decode(block, out);
  requires sizeof(typename F::Block) == F::kInfo.block_bytes;
  requires alignof(typename F::Block) == 1;
};

template <QuantFormat... F>
struct TypeList {
  static constexpr size_t kSize = sizeof...(F);
};

// In the order of FormatId.
using FormatList = TypeList<F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS,
                            IQ3_XXS, IQ1_S, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, I8, I16, I32, I64, F64, IQ1_M, BF16, TQ1_0,
                            TQ2_0, MXFP4, NVFP4, Q1_0, Q2_0, NF4>;

// f.template operator()<F>() for every format F.
template <class Fn, class... F>
void each_format(Fn&& f, TypeList<F...>) {
  (f.template operator()<F>(), ...);
}
template <class Fn>
void each_format(Fn&& f) {
  each_format(f, FormatList{});
}

namespace detail {
template <class R, class Fn, class F, class... Rest>
R with_format(FormatId id, Fn& f, TypeList<F, Rest...>) {
  if (id == F::kId) return f.template operator()<F>();
  if constexpr (sizeof...(Rest) > 0) {
    return with_format<R>(id, f, TypeList<Rest...>{});
  } else {
    check_failed(__FILE__, __LINE__, "id is a format", std::to_string(static_cast<int>(id)));
  }
}
}  // namespace detail

// Calls f.template operator()<F>() for the format with this id: with_format(id, [&]<class F>() { ... }). All instances
// must return the same type.
template <class Fn>
decltype(auto) with_format(FormatId id, Fn&& f) {
  using R = decltype(f.template operator()<F32>());
  return detail::with_format<R>(id, f, FormatList{});
}

}  // namespace hearth
