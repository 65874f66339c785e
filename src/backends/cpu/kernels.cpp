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

constexpr KernelTable kTable = {
    .name = HEARTH_CPU_ISA_NAME,
    .title = HEARTH_CPU_ISA_TITLE,
    .rms_norm = rms_norm,
    .add = add_rows,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .rope = rope,
    .quantize = quantize,
    .dot_int = {nullptr, nullptr, nullptr, dot_int<PlanarQ8_0>, dot_int<PlanarQ4_0>, dot_int<PlanarQ4_1>,
                dot_int<PlanarQ5_0>, dot_int<PlanarQ5_1>, dot_int<PlanarQ4_K>, dot_int<PlanarQ5_K>, dot_int<PlanarQ6_K>,
                dot_int<PlanarQ2_K>, dot_int<PlanarQ3_K>, dot_int<PlanarIQ4_NL>, dot_int<PlanarIQ4_XS>,
                dot_int<PlanarMXFP4>, dot_int<PlanarNVFP4>, dot_int<PlanarNF4>},
    .dot_float = dot_float,
    .unpack = {unpack_f32, unpack_half<false>, unpack_half<true>, unpack_int<PlanarQ8_0>, unpack_int<PlanarQ4_0>,
               unpack_int<PlanarQ4_1>, unpack_int<PlanarQ5_0>, unpack_int<PlanarQ5_1>, unpack_int<PlanarQ4_K>,
               unpack_int<PlanarQ5_K>, unpack_int<PlanarQ6_K>, unpack_int<PlanarQ2_K>, unpack_int<PlanarQ3_K>,
               unpack_int<PlanarIQ4_NL>, unpack_int<PlanarIQ4_XS>, unpack_int<PlanarMXFP4>, unpack_int<PlanarNVFP4>,
               unpack_int<PlanarNF4>},
    .gemm_f32 = kGemmF32,
    .gemm_int = kGemmInt,
    .gemm_bytes = kGemmBytes,
    .gemm_amx = kGemmAmx,
    .kv_append = kv_append,
    .attend_decode = attend_decode,
    .merge_split = merge_split,
    .prefill_f32 = kPrefillF32,
    .prefill_amx = kPrefillAmx,
};

}  // namespace

const KernelTable& HEARTH_CPU_ISA_TABLE() { return kTable; }

}  // namespace hearth::cpu
