#include "cli/flags.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>

#include "cli/command.h"
#include "hearth/text.h"

namespace hearth::cli {

CLI::Validator number() {
  auto check = [](std::string& text) -> std::string {
    float value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return "";
    return fmt::format("expected a number, found \"{}\"", text);
  };
  return {check, ""};
}

CLI::Validator byte_size() {
  auto check = [](std::string& text) -> std::string {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    constexpr std::pair<std::string_view, int> kUnits[] = {{"", 20},  {"M", 20},   {"MiB", 20}, {"K", 10},  {"KiB", 10},
                                                           {"G", 30}, {"GiB", 30}, {"T", 40},   {"TiB", 40}};
    const auto known = std::ranges::find(kUnits, unit, &std::pair<std::string_view, int>::first);
    const bool is_size = error == std::errc() && known != std::end(kUnits) && value >= 0;
    const double bytes = is_size ? std::ldexp(value, known->second) : 0;
    if (!is_size || bytes > 0x1p60) {
      return fmt::format("expected a size such as 4GiB, 512MiB or 0, found \"{}\"", text);
    }
    text = fmt::format("{}", static_cast<uint64_t>(bytes));
    return "";
  };
  return {check, ""};
}

static std::string list(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

static std::string not_one_of(const std::string& choices, const std::string& text) {
  return fmt::format("expected one of {}, found \"{}\"", choices, text);
}

CLI::Validator one_of(std::vector<std::string_view> names) {
  auto check = [names = std::move(names)](std::string& text) -> std::string {
    if (std::ranges::find(names, text) != names.end()) return "";
    return not_one_of(list(names), text);
  };
  return {check, ""};
}

static std::string devices() { return list(option_names().devices) + ", or cuda:1 and so on for one of several GPUs"; }

// Numbers of GPUs are for the machine to judge.
static CLI::Validator device() {
  auto check = [](std::string& text) -> std::string {
    const std::vector<std::string_view>& names = option_names().devices;
    const bool known = text.starts_with("cuda:") || std::ranges::find(names, text) != names.end();
    return known ? "" : not_one_of(devices(), text);
  };
  return {check, ""};
}

static CLI::Validator isa() {
  auto check = [named = one_of(option_names().isas)](std::string& text) { return text.empty() ? "" : named(text); };
  return {check, ""};
}

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  command.add_option("MODEL", flags.path, "A GGUF file (any part of a split one)")->required();
  command
      .add_option("-c,--context", flags.model.context_tokens,
                  "Tokens of KV memory, rounded up to a multiple of 16; 0: as the model was made for, up to 32768 and "
                  "half of the free memory")
      ->transform(whole_number<int64_t>(0, kMaxContextTokens));
  command
      .add_option(
          "--cache-ram", flags.model.host_cache_bytes,
          "Host memory for conversations that a GPU has no room for, such as 4GiB; without it up to 8GiB, and a "
          "quarter of what is available; where the model runs in host memory, 0")
      ->type_name("SIZE")
      ->transform(byte_size());
  command
      .add_option("-t,--threads", flags.model.threads, "Worker threads; 0: as many as cores, affinity and quota allow")
      ->transform(whole_number<int64_t>(0, kMaxThreads));
  const OptionNames& names = option_names();
  command
      .add_option("--device", flags.model.device,
                  fmt::format("What runs the model: {}; auto: a GPU if there is one and the model fits, else the CPU",
                              devices()))
      ->check(device());
  command
      .add_option("--isa", flags.model.isa,
                  fmt::format("CPU instructions to use: {}; empty: the best there is", list(names.isas)))
      ->check(isa());
  command.add_option("--kv-type", flags.model.kv_type, "Type of cached keys and values: " + list(names.kv_types))
      ->check(one_of(names.kv_types));
  command
      .add_option("--activations", flags.model.activations,
                  "default: exact; int8: prompts are read faster, answers are less exact")
      ->check(one_of(names.activations));
  command
      .add_option("--layout", flags.model.layout,
                  "Weights in memory: auto, native (as in the file), planar (repacked at load)")
      ->check(one_of(names.layouts));
  command
      .add_option("--no-pass", flags.model.disabled_passes, "Switch a graph fusion off by name: " + list(names.passes))
      ->allow_extra_args(false)
      ->check(one_of(names.passes));
  add_chat_template_flag(command, flags.chat_template_file);
  command.add_option("--prefill-rows", flags.engine.prefill_rows, "Most prompt tokens in one step")
      ->transform(whole_number<int64_t>(1, kMaxPrefillRows));
  command.add_flag("--deterministic", flags.engine.deterministic,
                   "Output that is bit-equal whatever else runs or is cached; slower");
}

CLI::Option* add_chat_template_flag(CLI::App& command, std::string& path) {
  auto not_empty = [](const std::string& text) {
    return text.empty() ? "expected the name of a file, found \"\"" : "";
  };
  return command.add_option("--chat-template", path, "A Jinja file to use instead of the model's chat template")
      ->check(CLI::Validator(not_empty, ""));
}

Result<std::string> read_chat_template(const std::string& path) {
  if (path.empty()) return std::string();
  HEARTH_ASSIGN(std::string source, read_text(path));
  if (source.empty()) return fail(ErrorCode::kInvalidInput, "the chat template {} is empty", path);
  return source;
}

std::string path_of_the_box() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  // Installed beside the program's prefix, or in the source tree above the build folder.
  for (const char* folder : {"../share/hearth/models", "../../models"}) {
    fs::path path = program / folder / "pocket-dense.gguf";
    if (fs::exists(path, error)) return fs::weakly_canonical(path, error).string();
  }
  return "";
}

Result<std::string> model_in_the_box() {
  std::string path = path_of_the_box();
  if (path.empty()) {
    return fail(
        ErrorCode::kNotFound,
        "no model was given and the one in the box (share/hearth/models/pocket-dense.gguf) is not installed; give "
        "the path of a GGUF file");
  }
  note(
      "Using the small model in the box, which tells simple stories and knows little. A bigger one:\n"
      "  curl -LO https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf\n");
  return path;
}

void note_long_context(const ModelInfo& info) {
  if (info.context_tokens - info.sequence_tokens < 256 || info.trained_context == 0) return;
  note(
      "hearth: note: the KV memory has room for {} tokens, but the model was trained for {}: that is the most that a "
      "conversation may have, the rest keeps more of them at the same time\n",
      info.context_tokens, info.trained_context);
}

Result<std::shared_ptr<Model>> open_model(const ModelFlags& flags) {
  ModelOptions options = flags.model;
  HEARTH_ASSIGN(options.chat_template, read_chat_template(flags.chat_template_file));
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  ProgressLine progress;
  options.progress = [&](size_t done, size_t total) {
    if (Clock::now() - start < std::chrono::milliseconds(500)) return;
    progress.show(
        fmt::format("Loading {} of {}", bytes_text(static_cast<double>(done)), bytes_text(static_cast<double>(total))));
  };
  Result<std::shared_ptr<Model>> model = Model::open(flags.path, options);
  progress.clear();
  if (model) {
    for (const std::string& text : (*model)->info().notes) note("hearth: note: {}\n", text);
    for (const std::string& warning : (*model)->text().warnings()) note("hearth: note: {}\n", warning);
  }
  return model;
}

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
  auto add = [&](const char* name, std::optional<float>& value, const char* what) {
    command.add_option(name, value, what)->group("Sampling")->transform(number());
  };
  auto add_count = [&](const char* name, std::optional<int32_t>& value, const char* what, int32_t least) {
    command.add_option(name, value, what)->group("Sampling")->transform(whole_number(least, kMaxSamplingCount));
  };
  command.add_option("-n,--max-tokens", flags.max_tokens, "Most tokens to generate; -1: until the context is full")
      ->group("Sampling")
      ->transform(whole_number<int64_t>(-1));
  add("--temperature,--temp", flags.temperature, "0: always the most likely token");
  add_count("--top-k", flags.top_k, "Keep the k most likely; 0: off", 0);
  add("--top-p", flags.top_p, "Keep the smallest set with this much probability; 1: off");
  add("--min-p", flags.min_p, "Drop what is less likely than this times the best; 0: off");
  add("--typical-p", flags.typical_p, "Keep what is closest to the expected surprise; 1: off");
  add("--repetition-penalty", flags.repetition_penalty, "Divides logits of recent tokens; 1: off");
  add("--presence-penalty", flags.presence_penalty, "Subtracted once from recent tokens; 0: off");
  add("--frequency-penalty", flags.frequency_penalty, "Subtracted for each recent occurrence; 0: off");
  add_count("--penalty-last-n", flags.penalty_last_n, "How many tokens count as recent; -1: all", -1);
  add("--dry-multiplier", flags.dry_multiplier, "Strength of the DRY repetition penalty; 0: off");
  add("--dry-base", flags.dry_base, "Growth of the DRY penalty with length");
  add_count("--dry-allowed-length", flags.dry_allowed_length, "Longest repetition that DRY allows", 1);
  add_count("--dry-last-n", flags.dry_last_n, "Tokens that DRY looks back; -1: all", -1);
  add("--xtc-probability", flags.xtc_probability, "Chance that top choices are excluded; 0: off");
  add("--xtc-threshold", flags.xtc_threshold, "What counts as a top choice for XTC");
  command.add_option("--seed", flags.seed, "Seed of the random stream; without it a new one each time")
      ->group("Sampling")
      ->transform(whole_number<uint64_t>());
  command.add_option("--logit-bias", flags.logit_bias, "ID=VALUE added to a token's logit; -inf forbids it")
      ->group("Sampling")
      ->allow_extra_args(false);
  command.add_option("--stop", flags.stop, "Text that ends the answer and is not part of it")
      ->group("Sampling")
      ->allow_extra_args(false);
}

void add_thinking_flags(CLI::App& command, std::optional<bool>& thinking) {
  CLI::Option* think = command.add_flag_callback(
      "--think", [&] { thinking = true; }, "Let the model think first");
  command
      .add_flag_callback(
          "--no-think", [&] { thinking = false; }, "Answer without thinking")
      ->excludes(think);
}

static Result<std::pair<int32_t, float>> parse_bias(const std::string& text) {
  size_t equals = text.find('=');
  int32_t id = 0;
  const char* id_end = text.data() + (equals == std::string::npos ? 0 : equals);
  auto [read_end, read_error] = std::from_chars(text.data(), id_end, id);
  if (read_error == std::errc() && read_end == id_end && id >= 0) {
    char* end = nullptr;
    float value = std::strtof(text.c_str() + equals + 1, &end);
    if (end != text.c_str() + equals + 1 && *end == '\0' && !std::isnan(value)) return std::pair{id, value};
  }
  return fail(ErrorCode::kUsage, "--logit-bias {}: expected ID=VALUE such as 1234=-5.0 or 1234=-inf", text);
}

Result<void> apply(const SamplingFlags& flags, const Model& model, Request& request) {
  SamplingOptions& s = request.sampling;
  s = model.info().default_sampling;
  auto set = [](auto& field, const auto& flag) {
    if (flag) field = *flag;
  };
  set(s.temperature, flags.temperature);
  set(s.top_k, flags.top_k);
  set(s.top_p, flags.top_p);
  set(s.min_p, flags.min_p);
  set(s.typical_p, flags.typical_p);
  set(s.repetition_penalty, flags.repetition_penalty);
  set(s.presence_penalty, flags.presence_penalty);
  set(s.frequency_penalty, flags.frequency_penalty);
  set(s.penalty_last_n, flags.penalty_last_n);
  set(s.dry_multiplier, flags.dry_multiplier);
  set(s.dry_base, flags.dry_base);
  set(s.dry_allowed_length, flags.dry_allowed_length);
  set(s.dry_last_n, flags.dry_last_n);
  set(s.xtc_probability, flags.xtc_probability);
  set(s.xtc_threshold, flags.xtc_threshold);
  s.seed = flags.seed ? *flags.seed : std::random_device{}();
  for (const std::string& text : flags.logit_bias) {
    HEARTH_ASSIGN(auto bias, parse_bias(text));
    s.logit_bias.push_back(bias);
  }
  request.stop_strings = flags.stop;
  request.max_tokens = flags.max_tokens;
  return {};
}

}  // namespace hearth::cli
