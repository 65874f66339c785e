// What kernels are made of: instructions that C++ has no words for, and sums over warps and blocks.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "backends/cuda/kernels/params.h"

namespace hearth::cuda {

#define HEARTH_DEVICE __device__ __forceinline__

inline constexpr int kCompiledFor = __CUDA_ARCH__ / 10;  // 90: compute capability 9.0

// ---- order of kernels: a kernel may start while the one before it drains ----

// Waits until the kernel before this one is complete and what it wrote can be read. Every kernel calls it, with all its
// threads, before it reads or writes memory that other kernels of the plan write.
HEARTH_DEVICE void grid_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The next kernel may be started. It still waits for the end of this one where it calls grid_wait(); called after
// grid_wait(), so that never more than two kernels overlap.
HEARTH_DEVICE void grid_launch_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- memory ----

HEARTH_DEVICE uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// The dynamic shared memory of the block.
HEARTH_DEVICE uint8_t* dynamic_shared() {
  extern __shared__ __align__(128) uint8_t bytes[];
  return bytes;
}

// 16 bytes from global to shared memory without registers; bytes from `valid` (0..16) on become zeros.
HEARTH_DEVICE void copy_async_16(uint32_t to_shared, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to_shared), "l"(from) : "memory");
}
HEARTH_DEVICE void copy_async_16(uint32_t to_shared, const void* from, int valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to_shared), "l"(from), "r"(valid) : "memory");
}
HEARTH_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most N of this thread's committed groups are on their way.
template <int N>
HEARTH_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ---- matrix units: D += A B, one warp. Lane = 4 * g + t holds, of A (16 x k): rows g and g + 8; of B (k x 8): column
// g; of D (16 x 8): d[0], d[1] = row g, columns 2t, 2t + 1; d[2], d[3] = row g + 8. ----

// k = 32. a[0], a[2]: row g, elements 4t .. 4t + 3 and 16 + 4t ..; a[1], a[3]: row g + 8. b[0], b[1]: the same of
// column g.
template <bool kSignedA>
HEARTH_DEVICE void mma_s8(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (kSignedA) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// k = 16, f16. a[0], a[2]: row g, elements 2t, 2t + 1 and 8 + 2t, 9 + 2t; a[1], a[3]: row g + 8. b[0], b[1]: the same
// of column g.
HEARTH_DEVICE void mma_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices of 16-bit elements from shared memory; lane i has the address (shared_address) of 16 bytes, row
// i % 8 of matrix i / 8. Lane 4 * g + t gets of each matrix row g, elements 2t, 2t + 1.
HEARTH_DEVICE void load_matrices(uint32_t (&d)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row));
}
// Transposed: lane 4 * g + t gets of each matrix rows 2t, 2t + 1 of column g.
HEARTH_DEVICE void load_matrices_transposed(uint32_t (&d)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row));
}

// Four bytes of the eight of low and high, those that the low four nibbles of `select` number from 0 to 7; a nibble
// with bit 3 set makes each bit of its byte the sign of the byte that it numbers. (__byte_perm takes a mask first.)
HEARTH_DEVICE uint32_t permute(uint32_t low, uint32_t high, uint32_t select) {
  uint32_t d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(low), "r"(high), "r"(select));
  return d;
}

// A constant that stays in a register. The compiler does not know that threads have no y; constants that it knows it
// fetches anew for each use, which was a third of the instructions that look NF4 codes up.
HEARTH_DEVICE uint32_t in_register(uint32_t constant) { return constant + threadIdx.y; }

// 2^x; relative error 2^-22, 0 for -infinity.
HEARTH_DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---- sums ----

HEARTH_DEVICE float warp_sum(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);
  return v;
}
HEARTH_DEVICE float warp_max(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, step));
  return v;
}
// Of all threads of a block, the same for each; `scratch`: 32 floats of shared memory. Ends and begins with a barrier.
HEARTH_DEVICE float block_sum(float v, float* scratch) {
  v = warp_sum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += scratch[w];
  return sum;
}

// True in all threads of the block that is the last of `count` to call this with `counter`, which is zero before and
// after: what the others wrote to global memory before can be read. `shared`: of the block. Has barriers.
HEARTH_DEVICE bool is_last_block(uint32_t* counter, uint32_t count, bool& shared) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    shared = atomicAdd(counter, 1u) == count - 1;
    if (shared) *counter = 0;
  }
  __syncthreads();
  if (shared) __threadfence();
  return shared;
}

// The pages of the sequence that a row belongs to, in one KV group.
HEARTH_DEVICE const int32_t* pages_of(const StepView& step, int32_t sequence, int32_t group) {
  const StepHeader& h = *step.header;
  return h.pages + h.page_offsets[sequence * h.groups + group];
}

// f(integral constant 0), f(1) ... f(N - 1): loops whose index must be known to the compiler.
template <int I>
struct Index {
  static constexpr int value = I;
};
template <int N, int I = 0, class F>
HEARTH_DEVICE void for_each_index(F&& f) {
  if constexpr (I < N) {
    f(Index<I>{});
    for_each_index<N, I + 1>(f);
  }
}

HEARTH_DEVICE float silu(float x) { return x / (1.0f + __expf(-x)); }
HEARTH_DEVICE float gelu_tanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}
HEARTH_DEVICE float activate(int32_t kind, float x) { return kind == kSiluActivation ? silu(x) : gelu_tanh(x); }

}  // namespace hearth::cuda
