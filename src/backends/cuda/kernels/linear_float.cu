// Products with matrices of floats, one file of code for each format (HEARTH_FORMAT).
#include "backends/cuda/kernels/embed.cuh"
#include "backends/cuda/kernels/gemm.cuh"
#include "backends/cuda/kernels/gemv_float.cuh"

namespace hearth::cuda {

#define HEARTH_CONCAT_(a, b) a##b
#define HEARTH_CONCAT(a, b) HEARTH_CONCAT_(a, b)

extern "C" __global__ void embed(const __grid_constant__ LinearParams p) {
  embed_float<HEARTH_CONCAT(Float, HEARTH_FORMAT)>(p);
}
extern "C" __global__ void __launch_bounds__(kFloatThreads) gemv_1(const __grid_constant__ LinearParams p) {
  gemv_float<HEARTH_CONCAT(Float, HEARTH_FORMAT), 1>(p);
}
extern "C" __global__ void __launch_bounds__(kFloatThreads) gemv_8(const __grid_constant__ LinearParams p) {
  gemv_float<HEARTH_CONCAT(Float, HEARTH_FORMAT), 8>(p);
}
#ifdef HEARTH_GEMM
extern "C" __global__ void __launch_bounds__(32 * kGemmMostWarps) gemm_16(const __grid_constant__ LinearParams p) {
  gemm<HEARTH_FORMAT, 16>(p);
}
extern "C" __global__ void __launch_bounds__(32 * kGemmMostWarps) gemm_64(const __grid_constant__ LinearParams p) {
  gemm<HEARTH_FORMAT, 64>(p);
}
extern "C" __global__ void __launch_bounds__(32 * kGemmMostWarps, 1) gemm_128(const __grid_constant__ LinearParams p) {
  if constexpr (gemm_most_tokens(kCompiledFor) >= 128) gemm<HEARTH_FORMAT, 128>(p);
}
#endif

}  // namespace hearth::cuda
