// What is wrong with a checkpoint must be said in one clear message.
#include <gtest/gtest.h>

#include "files/gguf.h"
#include "support/tiny_file.h"

namespace hearth::testing {
namespace {

struct Damage {
  const char* name;
  void (*make)(TinyFile&);
  ErrorCode code;
  std::vector<const char*> message;  // parts that it must have
};

constexpr auto kInvalid = ErrorCode::kInvalidInput;

TEST(BuildGraph, SaysWhatIsWrongWithACheckpoint) {
  const Damage damages[] = {
      {"no architecture", [](TinyFile& f) { f.remove("general.architecture"); }, kInvalid, {"general.architecture"}},
      {"architecture of a wrong type",
       [](TinyFile& f) { f.set("general.architecture", int64_t{3}); },
       kInvalid,
       {"general.architecture", "string", "integer"}},
      {"unknown architecture",
       [](TinyFile& f) { f.set("general.architecture", "llama5"); },
       ErrorCode::kUnsupported,
       {"llama5", "llama, mistral, qwen2, qwen3"}},
      {"no layers", [](TinyFile& f) { f.remove("llama.block_count"); }, kInvalid, {"llama.block_count"}},
      {"zero layers",
       [](TinyFile& f) { f.set("llama.block_count", int64_t{0}); },
       kInvalid,
       {"llama.block_count", "0"}},
      {"too many layers",
       [](TinyFile& f) { f.set("llama.block_count", int64_t{1} << 40); },
       kInvalid,
       {"llama.block_count"}},
      {"layers as text",
       [](TinyFile& f) { f.set("llama.block_count", "two"); },
       kInvalid,
       {"llama.block_count", "integer", "string"}},
      {"no width", [](TinyFile& f) { f.remove("llama.embedding_length"); }, kInvalid, {"llama.embedding_length"}},
      {"no heads", [](TinyFile& f) { f.remove("llama.attention.head_count"); }, kInvalid, {"attention.head_count"}},
      {"heads do not share",
       [](TinyFile& f) { f.set("llama.attention.head_count_kv", int64_t{3}); },
       kInvalid,
       {"4 query heads", "3 KV heads"}},
      {"values of another width",
       [](TinyFile& f) { f.set("llama.attention.value_length", int64_t{8}); },
       ErrorCode::kUnsupported,
       {"16", "8"}},
      {"negative heads",
       [](TinyFile& f) { f.set("llama.attention.head_count", int64_t{-4}); },
       kInvalid,
       {"attention.head_count", "-4"}},
      {"epsilon of zero",
       [](TinyFile& f) { f.set("llama.attention.layer_norm_rms_epsilon", 0.0); },
       kInvalid,
       {"layer_norm_rms_epsilon", "positive"}},
      {"epsilon not a number",
       [](TinyFile& f) { f.set("llama.attention.layer_norm_rms_epsilon", std::nan("")); },
       kInvalid,
       {"layer_norm_rms_epsilon", "nan"}},
      {"no context", [](TinyFile& f) { f.remove("llama.context_length"); }, kInvalid, {"llama.context_length"}},
      {"negative theta", [](TinyFile& f) { f.set("llama.rope.freq_base", -1.0); }, kInvalid, {"rope.freq_base", "-1"}},
      {"odd rope", [](TinyFile& f) { f.set("llama.rope.dimension_count", int64_t{15}); }, kInvalid, {"15", "odd"}},
      {"rope wider than a head",
       [](TinyFile& f) { f.set("llama.rope.dimension_count", int64_t{32}); },
       kInvalid,
       {"rope.dimension_count", "32"}},
      {"rope scaling unknown",
       [](TinyFile& f) { f.set("llama.rope.scaling.type", "longrope"); },
       ErrorCode::kUnsupported,
       {"longrope", "yarn"}},
      {"rope factor infinite",
       [](TinyFile& f) { f.set("llama.rope.scaling.factor", INFINITY); },
       kInvalid,
       {"rope.scaling.factor", "inf"}},
      {"window negative",
       [](TinyFile& f) { f.set("llama.attention.sliding_window", int64_t{-1}); },
       kInvalid,
       {"sliding_window", "-1"}},
      {"no embedding", [](TinyFile& f) { f.remove_tensor("token_embd.weight"); }, kInvalid, {"token_embd.weight"}},
      {"missing tensor",
       [](TinyFile& f) { f.remove_tensor("blk.1.ffn_up.weight"); },
       kInvalid,
       {"blk.1.ffn_up.weight", "missing"}},
      {"missing norm", [](TinyFile& f) { f.remove_tensor("output_norm.weight"); }, kInvalid, {"output_norm.weight"}},
      {"wrong shape",
       [](TinyFile& f) {
         TinyFile::Tensor& t = f.tensor("blk.0.attn_k.weight");
         t.shape = {64, 32};
       },
       kInvalid,
       {"blk.0.attn_k.weight", "[32, 64]", "[64, 32]"}},
      {"wrong rank",
       [](TinyFile& f) {
         f.tensor("blk.0.attn_norm.weight").shape = {1, 64};
       },
       kInvalid,
       {"blk.0.attn_norm.weight", "[64]", "[1, 64]"}},
      {"embedding of another width",
       [](TinyFile& f) {
         f.tensor("token_embd.weight").shape = {600, 32};
       },
       kInvalid,
       {"token_embd.weight", "[600, 64]", "[600, 32]"}},
      {"tensor left over",
       [](TinyFile& f) {
         f.tensors.push_back({.name = "blk.0.attn_sinks.weight", .shape = {4}, .values = {1, 2, 3, 4}});
       },
       ErrorCode::kUnsupported,
       {"1 tensors", "llama", "blk.0.attn_sinks.weight"}},
      {"a layer too many in the file",
       [](TinyFile& f) { f.set("llama.block_count", int64_t{1}); },
       ErrorCode::kUnsupported,
       {"9 tensors", "blk.1."}},
      {"a layer too few in the file",
       [](TinyFile& f) { f.set("llama.block_count", int64_t{3}); },
       kInvalid,
       {"blk.2.attn_norm.weight", "missing"}},
      {"rope factors of a wrong length",
       [](TinyFile& f) {
         f.tensors.push_back({.name = "rope_freqs.weight", .shape = {3}, .values = {1, 1, 1}});
       },
       kInvalid,
       {"rope_freqs.weight", "[8]", "[3]"}},
      {"rope factors of zero",
       [](TinyFile& f) {
         f.tensors.push_back({.name = "rope_freqs.weight", .shape = {8}, .values = std::vector<float>(8, 0.0f)});
       },
       kInvalid,
       {"rope_freqs.weight", "positive"}},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    TinyFile file = tiny_file({});
    damage.make(file);
    TempFile temp;
    file.write(temp.path());
    auto catalog = open_gguf(temp.path());
    ASSERT_TRUE(catalog) << catalog.error().message;
    auto model = build_graph(*catalog);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, damage.code) << model.error().message;
    EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
    for (const char* part : damage.message) {
      EXPECT_NE(model.error().message.find(part), std::string::npos) << part << " is not in: " << model.error().message;
    }
  }
}

TEST(BuildGraph, EveryFamilyBuilds) {
  for (const Family& family : all_families()) {
    TinyModel tiny = make_tiny_model({.architecture = std::string(family.architecture), .layers = 3});
    EXPECT_EQ(tiny.model.architecture, family.architecture);
    EXPECT_EQ(tiny.model.vocab_size, 300);
    EXPECT_EQ(tiny.model.context_length, 512);
    ASSERT_EQ(tiny.model.graph.kv_groups.size(), 1u);
    EXPECT_EQ(tiny.model.graph.kv_groups[0].layers, 3);
    EXPECT_EQ(tiny.model.graph.ropes[0].pairing,
              family.architecture.starts_with("qwen") ? RopePairing::kHalf : RopePairing::kInterleaved);
  }
}

TEST(BuildGraph, WindowsCountOrAreRefused) {
  for (const char* architecture : {"llama", "mistral", "qwen2", "qwen3"}) {
    bool supports = !std::string_view(architecture).starts_with("qwen");
    for (int64_t window : {0, 511, 512}) {
      TempFile temp;
      tiny_file({.architecture = architecture, .window = window, .context = 512}).write(temp.path());
      auto catalog = open_gguf(temp.path());
      ASSERT_TRUE(catalog);
      auto model = build_graph(*catalog);
      bool refused = !supports && window == 511;  // one that the context never reaches changes nothing
      ASSERT_EQ(model.has_value(), !refused) << architecture << " " << window;
      if (refused) {
        EXPECT_EQ(model.error().code, ErrorCode::kUnsupported);
        EXPECT_NE(model.error().message.find("attention.sliding_window: a window of 511"), std::string::npos);
      } else {
        EXPECT_EQ(model->graph.kv_groups[0].window, supports ? window : 0);
      }
    }
  }
}

TEST(BuildGraph, TiedOutputUsesTheEmbedding) {
  TinyModel tied = make_tiny_model({.tied = true});
  const auto& head = std::get<LinearOp>(tied.model.graph.nodes.back().op);
  EXPECT_EQ(head.parts[0].weight, std::get<EmbedOp>(tied.model.graph.nodes.front().op).table);
}

TEST(BuildGraph, OptionalKeysHaveDefaults) {
  TinyFile file = tiny_file({.heads = 4, .kv_heads = 4});
  for (const char* key : {"attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.freq_base",
                          "rope.dimension_count"}) {
    file.remove(std::string("llama.") + key);
  }
  TempFile temp;
  file.write(temp.path());
  auto catalog = open_gguf(temp.path());
  ASSERT_TRUE(catalog);
  auto model = build_graph(*catalog);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->graph.kv_groups[0].kv_heads, 4);
  EXPECT_EQ(model->graph.kv_groups[0].head_dim, 16);
  EXPECT_EQ(model->graph.kv_groups[0].window, 0);
  EXPECT_NEAR(model->graph.ropes[0].frequency[1], std::pow(10000.0, -2.0 / 16), 1e-12);
}

}  // namespace
}  // namespace hearth::testing
