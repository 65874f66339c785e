// Products with matrices of integer codes, one file of code for each format (HEARTH_FORMAT).
#include "backends/cuda/kernels/embed.cuh"
#include "backends/cuda/kernels/gemm.cuh"
#include "backends/cuda/kernels/gemv_int.cuh"

namespace hearth::cuda {

using Format = HEARTH_FORMAT;

extern "C" __global__ void embed(const __grid_constant__ LinearParams p) { embed_int<Format>(p); }

extern "C" __global__ void __launch_bounds__(kGemvThreads, 2) gemv_1_fused(const __grid_constant__ LinearParams p) {
  gemv_int<Format, 1, 1, true>(p);
}
extern "C" __global__ void __launch_bounds__(kGemvThreads, 2) gemv_1(const __grid_constant__ LinearParams p) {
  gemv_int<Format, 1, 1, false>(p);
}
extern "C" __global__ void __launch_bounds__(kGemvThreads, 1) gemv_2(const __grid_constant__ LinearParams p) {
  gemv_int<Format, 2, 1, false>(p);
}
extern "C" __global__ void __launch_bounds__(kGemvThreads, 1) gemv_4(const __grid_constant__ LinearParams p) {
  gemv_int<Format, 4, 1, false>(p);
}
extern "C" __global__ void __launch_bounds__(kGemvThreads, 1) gemv_8(const __grid_constant__ LinearParams p) {
  gemv_int<Format, 4, 2, false>(p);
}
extern "C" __global__ void __launch_bounds__(32 * kGemmMostWarps) gemm_16(const __grid_constant__ LinearParams p) {
  gemm<Format, 16>(p);
}
extern "C" __global__ void __launch_bounds__(32 * kGemmMostWarps) gemm_64(const __grid_constant__ LinearParams p) {
  gemm<Format, 64>(p);
}
extern "C" __global__ void __launch_bounds__(32 * kGemmMostWarps, 1) gemm_128(const __grid_constant__ LinearParams p) {
  if constexpr (gemm_most_tokens(kCompiledFor) >= 128) gemm<Format, 128>(p);
}

}  // namespace hearth::cuda
