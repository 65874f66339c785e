// All kernels, compiled once per instruction set: HEARTH_CPU_ISA names the table, the flags come from CMake. Includes
// no C++ library header: its inline functions would be compiled for this ISA and might be linked into code that must
// run anywhere.
#include "backends/cpu/kernels.h"

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/attention_prefill.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/gemm_amx.h"
#include "backends/cpu/kernels/gemm_bytes.h"
#include "backends/cpu/kernels/gemm_int.h"
#include "backends/cpu/kernels/gemv.h"
#include "backends/cpu/kernels/rows.h"
#include "backends/cpu/kernels/unpack.h"

namespace hearth::cpu {
namespace {

constexpr KernelTable kTable = [] {
  KernelTable table = {
      .name = HEARTH_CPU_ISA_NAME,
      .title = HEARTH_CPU_ISA_TITLE,
      .rms_norm = rms_norm,
      .add = add_rows,
      .silu_mul = silu_mul,
      .gelu_mul = gelu_mul,
      .rope = rope,
      .quantize = quantize,
      .dot_float = dot_float,
      .gemm_f32 = kGemmF32,
      .gemm_int = kGemmInt,
      .gemm_bytes = kGemmBytes,
      .gemm_bf16 = kGemmBf16,
      .gemm_amx = kGemmAmx,
      .kv_append = kv_append,
      .attend_decode = attend_decode,
      .merge_split = merge_split,
      .prefill_f32 = kPrefillF32,
      .prefill_amx = kPrefillAmx,
  };
  auto unpack = [&](PlanarKind kind) -> auto& { return table.unpack[static_cast<int>(kind)]; };
  unpack(PlanarKind::kF32) = unpack_f32;
  unpack(PlanarKind::kF16) = unpack_half<false>;
  unpack(PlanarKind::kBF16) = unpack_half<true>;
  each_code_format([&]<class F>(PlanarKind kind) {
    unpack(kind) = unpack_int<F>;
    table.dot_int[static_cast<int>(kind)] = dot_int<F>;
  });
  return table;
}();

}  // namespace

const KernelTable& HEARTH_CPU_ISA_TABLE() { return kTable; }

}  // namespace hearth::cpu
