// hearth synth: a model file of a real model's shapes with random weights, for speed tests without a download.
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <random>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "files/gguf_writer.h"
#include "quant/encode.h"

namespace hearth::cli {
namespace {

struct Preset {
  std::string_view name;
  int64_t layers, width, ff_width, heads, kv_heads;
  bool tied;  // the embedding is the output matrix too
};

// Shapes of the released Qwen3 checkpoints; heads are 128 wide, the vocabulary has 151,936 rows.
constexpr Preset kPresets[] = {
    {.name = "qwen3-0.6b", .layers = 28, .width = 1024, .ff_width = 3072, .heads = 16, .kv_heads = 8, .tied = true},
    {.name = "qwen3-1.7b", .layers = 28, .width = 2048, .ff_width = 6144, .heads = 16, .kv_heads = 8, .tied = true},
    {.name = "qwen3-8b", .layers = 36, .width = 4096, .ff_width = 12288, .heads = 32, .kv_heads = 8, .tied = false},
};
constexpr int64_t kHeadDim = 128;
constexpr int64_t kVocab = 151936;

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

struct SynthFlags {
  std::string preset;
  std::string out;
  std::string mix = "q4_k_m";
  uint64_t seed = 1;
};

struct Tensor {
  std::string name;
  FormatId format;
  std::vector<int64_t> shape;
};

// What `--mix` names. Q4_K_M and Q5_K_M as published files have them: Q6_K for the head, and for attn_v and ffn_down in
// the first and last eighth of the layers and every third between. The smaller ones have the head only in Q6_K
// (published ones raise more tensors). Any other mix is the name of one format for all matrices.
struct Mix {
  FormatId base, head, more;
  int64_t layers = 0;

  FormatId more_bits(int64_t layer) const {
    bool raised = layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
    return raised ? more : base;
  }
};
struct NamedMix {
  std::string_view name;
  Mix mix;
};
constexpr NamedMix kMixes[] = {
    {"q2_k", {FormatId::kQ2_K, FormatId::kQ6_K, FormatId::kQ2_K}},
    {"q3_k_m", {FormatId::kQ3_K, FormatId::kQ6_K, FormatId::kQ3_K}},
    {"q4_k_m", {FormatId::kQ4_K, FormatId::kQ6_K, FormatId::kQ6_K}},
    {"q5_k_m", {FormatId::kQ5_K, FormatId::kQ6_K, FormatId::kQ6_K}},
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

Result<Mix> parse_mix(const std::string& mix, int64_t layers) {
  const std::string name = lower_case(mix);
  std::string known;
  for (const NamedMix& named : kMixes) {
    if (named.name == name) return Mix{named.mix.base, named.mix.head, named.mix.more, layers};
    known.append(known.empty() ? "" : ", ").append(named.name);
  }
  auto format = format_from_name(name);
  if (format && can_encode(*format)) return Mix{*format, *format, *format, layers};
  for (FormatId id : all_formats()) {
    if (can_encode(id)) known.append(", ").append(lower_case(format_info(id).name));
  }
  return fail(ErrorCode::kUsage, "--mix: expected one of {}, found \"{}\"", known, mix);
}

std::vector<Tensor> tensor_list(const Preset& p, const Mix& mix) {
  std::vector<Tensor> list = {{"token_embd.weight", p.tied ? mix.head : mix.base, {kVocab, p.width}}};
  for (int64_t i = 0; i < p.layers; ++i) {
    auto add = [&](std::string_view name, FormatId format, std::vector<int64_t> shape) {
      list.push_back({fmt::format("blk.{}.{}.weight", i, name), format, std::move(shape)});
    };
    add("attn_norm", FormatId::kF32, {p.width});
    add("attn_q", mix.base, {p.heads * kHeadDim, p.width});
    add("attn_k", mix.base, {p.kv_heads * kHeadDim, p.width});
    add("attn_v", mix.more_bits(i), {p.kv_heads * kHeadDim, p.width});
    add("attn_q_norm", FormatId::kF32, {kHeadDim});
    add("attn_k_norm", FormatId::kF32, {kHeadDim});
    add("attn_output", mix.base, {p.width, p.heads * kHeadDim});
    add("ffn_norm", FormatId::kF32, {p.width});
    add("ffn_gate", mix.base, {p.ff_width, p.width});
    add("ffn_up", mix.base, {p.ff_width, p.width});
    add("ffn_down", mix.more_bits(i), {p.width, p.ff_width});
  }
  list.push_back({"output_norm.weight", FormatId::kF32, {p.width}});
  if (!p.tied) list.push_back({"output.weight", mix.head, {kVocab, p.width}});
  return list;
}

// Every byte as a token, so that any text tokenizes, a few pairs of them, then fillers up to the vocabulary's size and
// three control tokens.
void add_vocabulary(GgufBuilder& gguf) {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  auto utf8 = [](int code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  };
  // The byte alphabet of byte-level BPE: printable bytes stand for themselves, the others for U+0100 and up.
  int shifted = 0;
  for (int byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    tokens.push_back(utf8(printable ? byte : 0x100 + shifted++));
    types.push_back(1);
  }
  const std::vector<std::string> merges = {"t h", "i n", "e r"};
  for (std::string merged : merges) {
    merged.erase(merged.find(' '), 1);
    tokens.push_back(merged);
    types.push_back(1);
  }
  int64_t control = kVocab - 3;
  while (std::ssize(tokens) < control) {
    tokens.push_back(fmt::format("[PAD{}]", tokens.size()));
    types.push_back(5);
  }
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    tokens.push_back(name);
    types.push_back(3);
  }
  gguf.add("tokenizer.ggml.model", "gpt2");
  gguf.add("tokenizer.ggml.pre", "qwen2");
  gguf.add("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  gguf.add("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  gguf.add("tokenizer.ggml.merges", std::span<const std::string>(merges));
  gguf.add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(kVocab - 1));
  gguf.add("tokenizer.ggml.padding_token_id", static_cast<uint32_t>(kVocab - 3));
  gguf.add("tokenizer.ggml.add_bos_token", false);
  gguf.add("tokenizer.chat_template", kChatTemplate);
}

// Blocks of normally distributed weights, quantized once and then drawn at random: real bit patterns at the speed of a
// copy.
class BlockSource {
 public:
  BlockSource(FormatId format, double deviation, std::mt19937_64& random) : random_(random) {
    const FormatInfo& info = format_info(format);
    block_bytes_ = std::max<size_t>(info.block_bytes, 64 / info.block_bytes * info.block_bytes);
    int64_t elements = static_cast<int64_t>(block_bytes_ / info.block_bytes) * info.block_elems;
    std::normal_distribution<float> normal(0.0f, static_cast<float>(deviation));
    std::vector<float> values(static_cast<size_t>(elements));
    pool_.resize(kPool * block_bytes_);
    for (size_t b = 0; b < kPool; ++b) {
      for (float& v : values) v = normal(random);
      encode_row(format, values, pool_.data() + b * block_bytes_);
    }
  }

  void fill(std::vector<std::byte>& out, size_t bytes) {
    out.resize(bytes);
    for (size_t at = 0; at < bytes; at += block_bytes_) {
      std::memcpy(out.data() + at, pool_.data() + random_() % kPool * block_bytes_, std::min(block_bytes_, bytes - at));
    }
  }

 private:
  static constexpr size_t kPool = 4096;
  std::mt19937_64& random_;
  size_t block_bytes_ = 0;  // of one draw: at least one block
  std::vector<std::byte> pool_;
};

Result<void> synth(const SynthFlags& flags) {
  const Preset* preset = std::ranges::find(kPresets, flags.preset, &Preset::name);
  HEARTH_ASSIGN(Mix mix, parse_mix(flags.mix, preset->layers));
  std::vector<Tensor> tensors = tensor_list(*preset, mix);

  GgufBuilder gguf;
  gguf.add("general.architecture", "qwen3");
  gguf.add("general.name", fmt::format("synthetic {} {}", preset->name, lower_case(flags.mix)));
  gguf.add("qwen3.block_count", static_cast<uint32_t>(preset->layers));
  gguf.add("qwen3.context_length", uint32_t{40960});
  gguf.add("qwen3.embedding_length", static_cast<uint32_t>(preset->width));
  gguf.add("qwen3.feed_forward_length", static_cast<uint32_t>(preset->ff_width));
  gguf.add("qwen3.attention.head_count", static_cast<uint32_t>(preset->heads));
  gguf.add("qwen3.attention.head_count_kv", static_cast<uint32_t>(preset->kv_heads));
  gguf.add("qwen3.attention.key_length", static_cast<uint32_t>(kHeadDim));
  gguf.add("qwen3.attention.value_length", static_cast<uint32_t>(kHeadDim));
  gguf.add("qwen3.attention.layer_norm_rms_epsilon", 1e-6f);
  gguf.add("qwen3.rope.freq_base", 1e6f);
  gguf.add("general.quantization_version", uint32_t{2});
  add_vocabulary(gguf);
  size_t total = 0;
  for (const Tensor& tensor : tensors) {
    gguf.add_tensor(tensor.name, tensor.format, tensor.shape);
    size_t rows = tensor.shape.size() == 2 ? static_cast<size_t>(tensor.shape[0]) : 1;
    total += rows * row_bytes(tensor.format, tensor.shape.back());
  }
  Signals ends({SIGINT, SIGTERM, SIGHUP});  // they take effect after the unfinished file is gone
  HEARTH_ASSIGN(GgufFileWriter writer, GgufFileWriter::create(flags.out, std::move(gguf)));

  std::mt19937_64 random(flags.seed);
  std::vector<std::byte> bytes;
  size_t done = 0;
  ProgressLine progress;
  for (const Tensor& tensor : tensors) {
    if (tensor.shape.size() == 1) {
      std::vector<float> ones(static_cast<size_t>(tensor.shape[0]), 1.0f);
      HEARTH_TRY(writer.write(std::as_bytes(std::span(ones))));
      continue;
    }
    BlockSource source(tensor.format, 1 / std::sqrt(static_cast<double>(tensor.shape[1])), random);
    size_t row = row_bytes(tensor.format, tensor.shape[1]);
    constexpr int64_t kRows = 1024;
    for (int64_t r = 0; r < tensor.shape[0]; r += kRows) {
      source.fill(bytes, static_cast<size_t>(std::min(kRows, tensor.shape[0] - r)) * row);
      HEARTH_TRY(writer.write(bytes));
      if (Signals::waiting()) return fail(ErrorCode::kCancelled, "interrupted");
      done += bytes.size();
    }
    progress.show(
        fmt::format("Writing {} of {}", bytes_text(static_cast<double>(done)), bytes_text(static_cast<double>(total))));
  }
  HEARTH_TRY(writer.finish());
  progress.clear();
  note("{}: {} of random weights; `hearth bench {}` measures it\n", flags.out, bytes_text(static_cast<double>(total)),
       flags.out);
  return {};
}

}  // namespace

void add_synth(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<SynthFlags>();
  CLI::App* command = add_command(app, "synth", "Write a model of real shapes with random weights", chosen,
                                  [flags] { return synth(*flags); });
  std::vector<std::string_view> presets;
  for (const Preset& preset : kPresets) presets.push_back(preset.name);
  command->add_option("PRESET", flags->preset, fmt::format("{}", fmt::join(presets, ", ")))
      ->required()
      ->check(one_of(std::move(presets)));
  command->add_option("OUT", flags->out, "The GGUF file to write")->required();
  command->add_option("--mix", flags->mix,
                      "Formats: q2_k, q3_k_m, q4_k_m, q5_k_m, or one for all matrices (q8_0, iq4_xs, nf4 ...)");
  command->add_option("--seed", flags->seed, "Seed of the weights")->transform(whole_number<uint64_t>());
}

}  // namespace hearth::cli
