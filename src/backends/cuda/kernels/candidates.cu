// The largest logits of each row, and what sampling needs to know of the others. Reads the logits once, from the cache
// that the product before left them in; everything after is on the few keys that may be among the best.
#include "backends/cuda/kernels/candidates.h"

#include <cfloat>

#include "backends/cuda/kernels/device.cuh"

namespace hearth::cuda {

// Larger is better: the order of the logit above, that of the token, turned round, below. No two are equal but 0, which
// is no key.
using Key = uint64_t;

HEARTH_DEVICE Key make_key(float logit, int token) {
  const uint32_t bits = __float_as_uint(logit + 0.0f);  // -0 is 0
  const uint32_t order = bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
  return static_cast<Key>(order) << 32 | ~static_cast<uint32_t>(token);
}
HEARTH_DEVICE float logit_of(Key key) {
  const auto order = static_cast<uint32_t>(key >> 32);
  return __uint_as_float(order ^ (order >> 31 != 0 ? 0x80000000u : 0xffffffffu));
}
HEARTH_DEVICE int32_t token_of(Key key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }

struct SelectMemory {
  Key exchange[kCandidateThreads];
  Key found[kCandidateCount * kCandidateKeys];
  Key best[kCandidateCount];  // the result
  Key threshold;
  int count;
};

// Sorts one key of each thread: afterwards the first thread has the largest. A bitonic network; steps inside a warp
// need no barrier.
HEARTH_DEVICE Key sort(Key key, Key* exchange) {
  const unsigned i = threadIdx.x;
#pragma unroll
  for (unsigned size = 2; size <= kCandidateThreads; size *= 2) {
#pragma unroll
    for (unsigned stride = size / 2; stride > 0; stride /= 2) {
      Key other;
      if (stride < 32) {
        other = __shfl_xor_sync(~0u, key, stride);
      } else {
        __syncthreads();
        exchange[i] = key;
        __syncthreads();
        other = exchange[i ^ stride];
      }
      const bool falling = (i & size) == 0, first = (i & stride) == 0;
      key = (key > other) == (falling == first) ? key : other;
    }
  }
  return key;
}

// The best of all keys of the block, in order, to m.best. The 64th of the threads' largest keys is a bound that at
// least 64 keys reach, and none but those of 64 threads: usually some 70, in the worst case 1024. Ends with a barrier.
HEARTH_DEVICE void select(const Key (&keys)[kCandidateKeys], SelectMemory& m) {
  Key largest = 0;
#pragma unroll
  for (int i = 0; i < kCandidateKeys; ++i) largest = keys[i] > largest ? keys[i] : largest;
  const Key sorted = sort(largest, m.exchange);
  if (threadIdx.x == kCandidateCount - 1) m.threshold = sorted != 0 ? sorted : 1;
  if (threadIdx.x == 0) m.count = 0;
  __syncthreads();
  const Key threshold = m.threshold;
#pragma unroll
  for (int i = 0; i < kCandidateKeys; ++i) {
    if (keys[i] >= threshold) m.found[atomicAdd(&m.count, 1)] = keys[i];
  }
  __syncthreads();
  // In whatever order they came in, sorted they are the same.
  const int count = m.count;
  Key key = sort(threadIdx.x < count ? m.found[threadIdx.x] : 0, m.exchange);
  for (int next = kCandidateThreads; next < count; next += kCandidateThreads - kCandidateCount) {
    const int at = next + static_cast<int>(threadIdx.x) - kCandidateCount;
    if (at >= next) key = at < count ? m.found[at] : 0;
    key = sort(key, m.exchange);
  }
  if (threadIdx.x < kCandidateCount) m.best[threadIdx.x] = key;
  __syncthreads();
}

// Block: a slice of a row; the last block of a row to be done merges what all found.
extern "C" __global__ void __launch_bounds__(kCandidateThreads) candidates(const __grid_constant__ CandidateParams p) {
  __shared__ SelectMemory m;
  __shared__ float scratch[32];
  __shared__ bool last;
  grid_wait();
  grid_launch_next();
  const int row = blockIdx.y, thread = threadIdx.x;
  if (row >= p.step.header->logit_rows) return;
  const StepRequest request = p.step.requests[row];
  const float* logits = p.logits + static_cast<size_t>(row) * p.vocab;
  Key* row_keys = p.keys + static_cast<size_t>(row) * p.slices * kCandidateCount;
  SliceSums* row_sums = p.sums + static_cast<size_t>(row) * p.slices;

  Key keys[kCandidateKeys];
  bool finite = true;
#pragma unroll
  for (int i = 0; i < kCandidateKeys; ++i) {
    const int token = blockIdx.x * kSliceCols + i * kCandidateThreads + thread;
    keys[i] = 0;
    if (token >= p.vocab) continue;
    const float logit = logits[token];
    finite = finite && fabsf(logit) <= FLT_MAX;
    keys[i] = make_key(logit, token);
  }
  select(keys, m);
  float largest = logit_of(m.best[0]), sum = 0, tempered_sum = 0;
#pragma unroll
  for (int i = 0; i < kCandidateKeys; ++i) {
    if (keys[i] == 0) continue;
    const float below = logit_of(keys[i]) - largest;
    sum += expf(below);
    tempered_sum += expf(below / request.temperature);
  }
  sum = block_sum(sum, scratch);
  tempered_sum = block_sum(tempered_sum, scratch);
  finite = __syncthreads_and(finite);
  if (thread < kCandidateCount) row_keys[thread * p.slices + blockIdx.x] = m.best[thread];
  if (thread == 0) row_sums[blockIdx.x] = {sum, tempered_sum, largest, finite ? 1.0f : 0.0f};
  if (!is_last_block(p.counters + row, static_cast<uint32_t>(p.slices), last)) return;

  // The first key of a thread is what was best so far; the others are new.
  const int count = p.slices * kCandidateCount;
  keys[0] = 0;
  for (int from = 0; from < count; from += (kCandidateKeys - 1) * kCandidateThreads) {
#pragma unroll
    for (int i = 1; i < kCandidateKeys; ++i) {
      const int at = from + (i - 1) * kCandidateThreads + thread;
      keys[i] = at < count ? __ldcg(reinterpret_cast<const unsigned long long*>(row_keys) + at) : 0;
    }
    select(keys, m);
    keys[0] = thread < kCandidateCount ? m.best[thread] : 0;
  }
  largest = logit_of(m.best[0]), sum = 0, tempered_sum = 0, finite = true;
  for (int s = thread; s < p.slices; s += kCandidateThreads) {
    const float4 v = __ldcg(reinterpret_cast<const float4*>(row_sums) + s);  // as SliceSums has it
    sum += v.x * expf(v.z - largest);
    tempered_sum += v.y * expf((v.z - largest) / request.temperature);
    finite = finite && v.w != 0;
  }
  sum = block_sum(sum, scratch);
  tempered_sum = block_sum(tempered_sum, scratch);
  finite = __syncthreads_and(finite);
  FoundRow& found = p.found[row];
  if (thread == 0) found.sum = sum, found.tempered_sum = tempered_sum, found.finite = finite;
  if (thread < kCandidateCount) {
    found.tokens[thread] = token_of(m.best[thread]);
    found.logits[thread] = logit_of(m.best[thread]);
  }
  for (int i = thread; i < request.wanted; i += kCandidateThreads) {
    found.wanted[i] = logits[p.step.header->wanted[request.first + i]];
  }
}

}  // namespace hearth::cuda
