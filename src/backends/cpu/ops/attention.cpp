// Appends keys and values to their pages, then attends: per query in decode plans, per block of queries in prefill
// plans. Norms of heads and rotations that passes fold into the op are done on the way.
#include <cmath>

#include "backends/cpu/step.h"
#include "base/checked_math.h"

namespace hearth::cpu {
namespace {

class AttentionStep : public CpuStep {
 public:
  AttentionStep(const AttentionOp& op, PrepareContext& context)
      : kernels_(context.kernels),
        kv_(context.kv),
        group_(op.kv_group),
        layer_(op.kv_layer),
        q_(context.value(op.q)),
        k_(context.value(op.k)),
        v_(context.value(op.v)),
        out_(context.value(op.out)),
        heads_(op.heads),
        scale_(op.scale),
        soft_cap_(op.soft_cap) {
    const KvGroup& group = context.kv.group(op.kv_group);
    kv_heads_ = group.kv_heads;
    head_dim_ = group.head_dim;
    v_stride_ = round_up<int64_t>(head_dim_, 16);
    window_ = group.window;
    share_ = heads_ / kv_heads_;
    chunk_ = std::min(share_, kMaxHeadGroup);
    chunks_ = ceil_div(share_, chunk_);
    if (op.sinks) sinks_ = context.weights.vector(op.sinks);
    if (op.q_norm) q_norm_ = context.weights.vector(op.q_norm->weight), q_eps_ = op.q_norm->eps;
    if (op.k_norm) k_norm_ = context.weights.vector(op.k_norm->weight), k_eps_ = op.k_norm->eps;
    if (op.rope) rope_ = context.ropes[static_cast<size_t>(*op.rope)];
  }

 protected:
  const int32_t* pages(const Launch& launch, int32_t sequence) const {
    return launch.sequences[static_cast<size_t>(sequence)].pages[static_cast<size_t>(group_)].data();
  }

  void rotate(float* x, int64_t row) const {
    if (!rope_.rope) return;
    int64_t pairs = rope_.pairs();
    kernels_.rope(x, rope_.cos + row * pairs, rope_.sin + row * pairs, rope_.rope->dims,
                  rope_.rope->pairing == RopePairing::kHalf);
  }

  // `temp`: head_dim floats.
  void append(const Launch& launch, int64_t row, int64_t kv_head, float* temp) const {
    RowInfo info = launch.row[row];
    const float* k = k_ + (row * kv_heads_ + kv_head) * head_dim_;
    if (k_norm_) {
      kernels_.rms_norm(k, k_norm_, head_dim_, k_eps_, temp);
    } else {
      std::copy_n(k, head_dim_, temp);
    }
    rotate(temp, row);
    kernels_.kv_append(kv_.view(group_, layer_, kv_head, pages(launch, info.sequence)), info.position, temp,
                       v_ + (row * kv_heads_ + kv_head) * head_dim_);
  }

  // Query head `head` of `row`, normalized, rotated and scaled.
  void query(int64_t row, int64_t head, float* to) const {
    const float* q = q_ + (row * heads_ + head) * head_dim_;
    if (q_norm_) {
      kernels_.rms_norm(q, q_norm_, head_dim_, q_eps_, to);
    } else {
      std::copy_n(q, head_dim_, to);
    }
    rotate(to, row);
    for (int64_t d = 0; d < head_dim_; ++d) to[d] *= scale_;
  }

  const KernelTable& kernels_;
  const KvPools& kv_;
  int32_t group_;
  int64_t layer_;
  const float *q_, *k_, *v_;
  float* out_;
  int64_t heads_, kv_heads_, head_dim_, v_stride_, window_;
  float scale_, soft_cap_;
  const float* sinks_ = nullptr;  // [heads]
  int64_t share_;                 // query heads of a kv head
  int64_t chunk_, chunks_;        // taken so many at a time
  const float *q_norm_ = nullptr, *k_norm_ = nullptr;
  float q_eps_ = 0, k_eps_ = 0;
  RopeTable rope_;
};

// A task is a row and a chunk of the query heads of one kv head. Keys are taken in splits of kKeySplit positions that
// are merged in order, by one worker or, when there are fewer tasks than workers, by several: the sums are the same.
class DecodeAttentionStep : public AttentionStep {
 public:
  DecodeAttentionStep(const AttentionOp& op, PrepareContext& context) : AttentionStep(op, context) {
    few_tasks_ = int64_t{context.workers} * 2;
    max_splits_ = ceil_div(context.kv.capacity_tokens(op.kv_group), kKeySplit);
    Pieces worker;
    temp_ = worker.take<float>(head_dim_);
    queries_ = worker.take<float>(chunk_ * head_dim_);
    scores_ = worker.take<float>(chunk_ * kKeySplit);
    total_ = worker.take<float>(partial_floats());
    part_ = worker.take<float>(partial_floats());
    context.worker_bytes = std::max(context.worker_bytes, worker.used_bytes());
    size_t shared =
        context.workers > 1 ? static_cast<size_t>(few_tasks_ * max_splits_ * partial_floats()) * sizeof(float) : 0;
    context.shared_bytes = std::max(context.shared_bytes, shared);
  }

  void run(const Launch& launch, const Worker& worker) const override {
    int64_t tasks = launch.rows * kv_heads_ * chunks_;
    int64_t splits = 1;
    for (int64_t r = 0; r < launch.rows; ++r) splits = std::max(splits, split_count(launch.row[r].position));
    bool divide = worker.count() > 1 && tasks < few_tasks_ && splits > 1;
    // One row of a sequence is appended by the task that reads it; several must all be there first.
    bool append_first = divide || chunks_ > 1 || launch.rows != static_cast<int64_t>(launch.sequences.size());
    if (append_first) {
      worker.each_tile(launch.rows * kv_heads_, [&](int64_t t) {
        append(launch, t / kv_heads_, t % kv_heads_, at<float>(worker.scratch, temp_));
      });
      worker.barrier();
    }
    if (!divide) {
      worker.each_tile(tasks, [&](int64_t t) {
        Task task = task_of(t);
        if (!append_first) append(launch, task.row, task.kv_head, at<float>(worker.scratch, temp_));
        queries(task, worker);
        Partial total = partial(at<float>(worker.scratch, total_)), part = partial(at<float>(worker.scratch, part_));
        int64_t n = split_count(launch.row[task.row].position);
        attend(launch, task, 0, worker, total);
        for (int64_t s = 1; s < n; ++s) {
          attend(launch, task, s, worker, part);
          merge(task, total, part);
        }
        write(task, total);
      });
      return;
    }
    auto* partials = at<float>(worker.shared, 0);
    worker.each_tile(tasks * splits, [&](int64_t t) {
      Task task = task_of(t / splits);
      int64_t split = t % splits;
      if (split >= split_count(launch.row[task.row].position)) return;
      queries(task, worker);
      attend(launch, task, split, worker, partial(partials + t * partial_floats()));
    });
    worker.barrier();
    worker.each_tile(tasks, [&](int64_t t) {
      Task task = task_of(t);
      Partial total = partial(partials + t * splits * partial_floats());
      int64_t n = split_count(launch.row[task.row].position);
      for (int64_t s = 1; s < n; ++s) merge(task, total, partial(partials + (t * splits + s) * partial_floats()));
      write(task, total);
    });
  }

 private:
  struct Task {
    int64_t row, kv_head, first_head, heads;
  };
  struct Partial {
    float *max, *sum, *out;  // [chunk], [chunk], [chunk][v_stride]
  };

  int64_t partial_floats() const { return 2 * kMaxHeadGroup + chunk_ * v_stride_; }
  Partial partial(float* p) const { return {p, p + kMaxHeadGroup, p + 2 * kMaxHeadGroup}; }

  Task task_of(int64_t t) const {
    int64_t chunk = t % chunks_, head = t / chunks_ % kv_heads_;
    return {t / chunks_ / kv_heads_, head, head * share_ + chunk * chunk_, std::min(chunk_, share_ - chunk * chunk_)};
  }
  int64_t first_key(int64_t position) const { return window_ > 0 ? std::max<int64_t>(0, position - window_ + 1) : 0; }
  int64_t split_count(int64_t position) const { return position / kKeySplit - first_key(position) / kKeySplit + 1; }

  void queries(const Task& task, const Worker& worker) const {
    for (int64_t h = 0; h < task.heads; ++h) {
      query(task.row, task.first_head + h, at<float>(worker.scratch, queries_) + h * head_dim_);
    }
  }

  void attend(const Launch& launch, const Task& task, int64_t split, const Worker& worker, const Partial& to) const {
    RowInfo info = launch.row[task.row];
    int64_t first = first_key(info.position), from = (first / kKeySplit + split) * kKeySplit;
    kernels_.attend_decode({.kv = kv_.view(group_, layer_, task.kv_head, pages(launch, info.sequence)),
                            .q = at<float>(worker.scratch, queries_),
                            .heads = task.heads,
                            .begin = std::max(first, from),
                            .end = std::min<int64_t>(info.position + 1, from + kKeySplit),
                            .soft_cap = soft_cap_,
                            .scratch = at<float>(worker.scratch, scores_),
                            .max = to.max,
                            .sum = to.sum,
                            .out = to.out});
  }
  void merge(const Task& task, const Partial& to, const Partial& part) const {
    for (int64_t h = 0; h < task.heads; ++h) {
      kernels_.merge_split(to.max + h, to.sum + h, to.out + h * v_stride_, part.max[h], part.sum[h],
                           part.out + h * v_stride_, v_stride_);
    }
  }
  void write(const Task& task, const Partial& total) const {
    for (int64_t h = 0; h < task.heads; ++h) {
      float* to = out_ + (task.row * heads_ + task.first_head + h) * head_dim_;
      float sum = total.sum[h];
      if (sinks_) sum += std::exp(sinks_[task.first_head + h] - total.max[h]);  // infinite: no value has any weight
      float inverse = 1.0f / sum;
      for (int64_t d = 0; d < head_dim_; ++d) to[d] = total.out[h * v_stride_ + d] * inverse;
    }
  }

  int64_t few_tasks_, max_splits_;
  size_t temp_, queries_, scores_, total_, part_;  // in the worker's scratch
};

class PrefillAttentionStep : public AttentionStep {
 public:
  PrefillAttentionStep(const AttentionOp& op, PrepareContext& context)
      : AttentionStep(op, context),
        // Whoever keeps f32 wants f32 products.
        amx_(kernels_.prefill_amx.attend && context.kv.format(op.kv_group) != KvFormat::kF32),
        prefill_(amx_ ? kernels_.prefill_amx : kernels_.prefill_f32) {
    queries_ = std::max<int64_t>(1, prefill_.rows / chunk_);
    Pieces worker;
    rows_ = worker.take<float>(kMaxQueryRows * head_dim_);
    scratch_ = worker.take<float>(prefill_scratch_floats(v_stride_));
    result_ = worker.take<float>(kMaxQueryRows * v_stride_);
    context.worker_bytes = std::max(context.worker_bytes, worker.used_bytes());
  }

  std::string_view kernel() const override { return amx_ ? "attention:prefill_amx" : "attention:prefill_f32"; }

  void run(const Launch& launch, const Worker& worker) const override {
    worker.each_tile(ceil_div(launch.rows, kLanes), [&](int64_t t) {
      int64_t end = std::min(launch.rows, (t + 1) * kLanes);
      for (int64_t row = t * kLanes; row < end; ++row) {
        for (int64_t h = 0; h < kv_heads_; ++h) append(launch, row, h, at<float>(worker.scratch, rows_));
      }
    });
    worker.barrier();
    int64_t blocks = 0;
    for (const StepSequence& s : launch.sequences) blocks += ceil_div<int64_t>(s.rows, queries_);
    int64_t per_block = kv_heads_ * chunks_;
    worker.each_tile(blocks * per_block, [&](int64_t t) {
      // Later queries see more keys: the longest tiles first.
      int64_t block = blocks - 1 - t / per_block, head = t % per_block;
      size_t s = 0;
      for (; block >= ceil_div<int64_t>(launch.sequences[s].rows, queries_); ++s) {
        block -= ceil_div<int64_t>(launch.sequences[s].rows, queries_);
      }
      tile(launch, launch.sequences[s], block * queries_, head / chunks_, head % chunks_, worker);
    });
  }

 private:
  void tile(const Launch& launch, const StepSequence& sequence, int64_t first, int64_t kv_head, int64_t chunk,
            const Worker& worker) const {
    int64_t queries = std::min(queries_, sequence.rows - first);
    int64_t first_head = kv_head * share_ + chunk * chunk_, heads = std::min(chunk_, share_ - chunk * chunk_);
    int64_t rows = queries * heads, row0 = sequence.first_row + first;
    float* q = at<float>(worker.scratch, rows_);
    for (int64_t r = 0; r < rows; ++r) query(row0 + r / heads, first_head + r % heads, q + r * head_dim_);
    float* result = at<float>(worker.scratch, result_);
    prefill_.attend({.kv = kv_.view(group_, layer_, kv_head, sequence.pages[static_cast<size_t>(group_)].data()),
                     .q = q,
                     .heads = heads,
                     .queries = queries,
                     .position = launch.row[row0].position,
                     .window = window_,
                     .soft_cap = soft_cap_,
                     .sinks = sinks_ ? sinks_ + first_head : nullptr,
                     .scratch = at<float>(worker.scratch, scratch_),
                     .out = result});
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(result + r * v_stride_, head_dim_,
                  out_ + ((row0 + r / heads) * heads_ + first_head + r % heads) * head_dim_);
    }
  }

  bool amx_;
  const PrefillKernel& prefill_;
  int64_t queries_;                 // of a tile
  size_t rows_, scratch_, result_;  // in the worker's scratch
};

}  // namespace

std::unique_ptr<CpuStep> prepare(const AttentionOp& op, PrepareContext& context) {
  if (context.plan.bucket.kind == PlanKind::kDecode) return std::make_unique<DecodeAttentionStep>(op, context);
  return std::make_unique<PrefillAttentionStep>(op, context);
}

}  // namespace hearth::cpu
