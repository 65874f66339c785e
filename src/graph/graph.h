// The model as coarse semantic ops over values. Built once by a model family; it knows no device, no batch size and
// no sequence length. Every value is a row-major f32 matrix whose row count is decided by each step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "files/catalog.h"

namespace hearth {

// Index of a value in Graph::values. Default: none.
struct ValueId {
  int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const ValueId&) const = default;
};

// Index of a weight in Graph::weights. Default: none.
struct WeightId {
  int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const WeightId&) const = default;
};

enum class RowKind {
  kToken,  // one row for each token of the step
  kLogit,  // one row for each token whose logits the step was asked for
};

struct Value {
  std::string name;
  RowKind rows = RowKind::kToken;
  int64_t cols = 0;
};

// A tensor of the catalog, as a matrix [rows, cols]; a vector is [1, cols]. The catalog outlives the graph.
struct Weight {
  const TensorEntry* tensor = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
};

// RMSNorm: y = weight * x / sqrt(mean(x^2) + eps).
struct Norm {
  WeightId weight;
  float eps = 0;
};

enum class Activation { kSilu, kGeluTanh };

enum class RopePairing {
  kInterleaved,  // pair j is (2j, 2j + 1)
  kHalf,         // pair j is (j, j + dims / 2)
};

// Rotation of the first `dims` entries of a head. Pair j of a row at position p turns by p * frequency[j] radians and
// is multiplied by `magnitude`. Base, scaling (linear, llama3, YaRN) and factor tensors are folded into the
// frequencies.
struct Rope {
  RopePairing pairing = RopePairing::kHalf;
  int64_t dims = 0;
  std::vector<double> frequency;  // [dims / 2]
  float magnitude = 1;
};

// Layers that share one page table because they agree in window, dimensions and type.
struct KvGroup {
  int64_t layers = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  // a query at position i sees keys j with i - window < j <= i; 0: all j <= i
};

// ---- ops. `out` names the value that an op writes; a value is written by exactly one op. ----

// out[r] = row tokens[r] of table [vocab, n].
struct EmbedOp {
  WeightId table;
  ValueId out;
};

// Normalizes each run of `norm.weight` columns of x on its own: the whole row, or every head of it.
struct RmsNormOp {
  ValueId x;
  Norm norm;
  ValueId out;
};

// out = x W^T + bias for each part. The later fields are set by passes only.
struct LinearOp {
  struct Part {
    WeightId weight;  // [out cols, in cols]
    WeightId bias;    // [1, out cols] or none
    ValueId out;
  };
  ValueId x;
  std::vector<Part> parts;        // one as built; merge_linears groups those that share x
  std::optional<Norm> norm;       // fold_norm: x is normalized first
  std::optional<Activation> glu;  // fold_glu: parts are gate and up; only parts[0].out is written, act(gate) * up
  ValueId residual;               // fold_residual: parts[0].out = residual + x W^T + bias
};

struct RopeOp {
  ValueId x;  // [rows, heads * head_dim]
  int64_t head_dim = 0;
  int32_t rope = 0;  // index in Graph::ropes
  ValueId out;
};

// Appends k and v to the sequence's pages, then out = softmax(cap(scale * q k^T), causal, within the group's window) v,
// where cap(s) = soft_cap * tanh(s / soft_cap). Query head h uses kv head h / (heads / kv_heads). Its sink is one more
// score in the softmax of each of its rows, neither scaled nor capped, without a value: it takes weight from the keys.
struct AttentionOp {
  ValueId q;             // [rows, heads * head_dim]
  ValueId k;             // [rows, kv_heads * head_dim]
  ValueId v;             // [rows, kv_heads * head_dim]
  int32_t kv_group = 0;  // index in Graph::kv_groups
  int64_t kv_layer = 0;  // layer within that group
  int64_t heads = 0;
  float scale = 0;
  float soft_cap = 0;  // 0: cap(s) = s
  WeightId sinks;      // [1, heads] or none
  ValueId out;         // [rows, heads * head_dim]
  // fold_rope: done to q and k before they are used, in this order: norm of each head, rotation.
  std::optional<Norm> q_norm;
  std::optional<Norm> k_norm;
  std::optional<int32_t> rope;
};

// out = act(gate) * up
struct GluOp {
  ValueId gate;
  ValueId up;
  Activation activation = Activation::kSilu;
  ValueId out;
};

// out = a + b
struct AddOp {
  ValueId a;
  ValueId b;
  ValueId out;
};

// The rows of x whose logits are wanted: RowKind::kToken -> RowKind::kLogit.
struct GatherRowsOp {
  ValueId x;
  ValueId out;
};

using Op = std::variant<EmbedOp, RmsNormOp, LinearOp, RopeOp, AttentionOp, GluOp, AddOp, GatherRowsOp>;

struct Node {
  std::string name;  // as the checkpoint calls it: "blk.3.attn_q"
  Op op;
};

// The state after the last layer. It leaves the graph as the logits do; its norm makes embeddings of it.
struct HiddenState {
  ValueId value;  // [logit rows, width]
  Norm norm;      // over the whole row: the head multiplies what it gives
};

struct Graph {
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<Rope> ropes;
  std::vector<KvGroup> kv_groups;
  std::vector<Node> nodes;            // in execution order
  ValueId logits;                     // [logit rows, vocab]
  std::optional<HiddenState> hidden;  // none: no embeddings

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id.index)]; }
  const Weight& weight(WeightId id) const { return weights[static_cast<size_t>(id.index)]; }
};

// A visitor made of one function for each op: an op that one of them lacks does not compile.
template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overload(Fs...) -> Overload<Fs...>;

// Calls f(ValueId) for each value that the op reads, in the order of its fields.
template <class F>
void for_each_input(const Op& op, F&& f) {
  std::visit(Overload{[&](const EmbedOp&) {},  //
                      [&](const RmsNormOp& o) { f(o.x); },
                      [&](const LinearOp& o) {
                        f(o.x);
                        if (o.residual) f(o.residual);
                      },
                      [&](const RopeOp& o) { f(o.x); }, [&](const AttentionOp& o) { f(o.q), f(o.k), f(o.v); },
                      [&](const GluOp& o) { f(o.gate), f(o.up); }, [&](const AddOp& o) { f(o.a), f(o.b); },
                      [&](const GatherRowsOp& o) { f(o.x); }},
             op);
}

// Calls f(ValueId) for each value that the op writes.
template <class F>
void for_each_output(const Op& op, F&& f) {
  std::visit(Overload{[&](const EmbedOp& o) { f(o.out); }, [&](const RmsNormOp& o) { f(o.out); },
                      [&](const LinearOp& o) {
                        for (size_t i = 0; i < (o.glu ? 1 : o.parts.size()); ++i) f(o.parts[i].out);
                      },
                      [&](const RopeOp& o) { f(o.out); }, [&](const AttentionOp& o) { f(o.out); },
                      [&](const GluOp& o) { f(o.out); }, [&](const AddOp& o) { f(o.out); },
                      [&](const GatherRowsOp& o) { f(o.out); }},
             op);
}

enum class WeightUse {
  kGathered,  // rows are picked from it
  kMatrix,    // a product reads all of it
  kVector,    // a norm, a bias or sinks, read whole
};

// Calls f(WeightId, WeightUse) for each weight that the op reads.
template <class F>
void for_each_weight(const Op& op, F&& f) {
  auto norm = [&](const std::optional<Norm>& n) {
    if (n) f(n->weight, WeightUse::kVector);
  };
  std::visit(Overload{[&](const EmbedOp& o) { f(o.table, WeightUse::kGathered); },
                      [&](const RmsNormOp& o) { f(o.norm.weight, WeightUse::kVector); },
                      [&](const LinearOp& o) {
                        for (const LinearOp::Part& part : o.parts) {
                          f(part.weight, WeightUse::kMatrix);
                          if (part.bias) f(part.bias, WeightUse::kVector);
                        }
                        norm(o.norm);
                      },
                      [&](const RopeOp&) {},
                      [&](const AttentionOp& o) {
                        norm(o.q_norm), norm(o.k_norm);
                        if (o.sinks) f(o.sinks, WeightUse::kVector);
                      },
                      [&](const GluOp&) {}, [&](const AddOp&) {}, [&](const GatherRowsOp&) {}},
             op);
}

// What the graph does with each weight, by WeightId. kGathered: nothing else.
std::vector<WeightUse> weight_uses(const Graph& graph);

// Checks what every graph must satisfy: values written once and before they are read, shapes that fit the weights,
// head counts that divide, logit rows of `logits` and `hidden`. An error is a bug of a model family or of a pass.
Result<void> verify(const Graph& graph);

}  // namespace hearth
