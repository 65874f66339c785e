// hearth eval: how exact a model runs here: logits of a text, perplexity, divergence from a reference.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/command.h"
#include "cli/flags.h"
#include "hearth/text.h"

namespace hearth::cli {
namespace {

struct EvalFlags {
  ModelFlags model;
  std::string text_file;
  std::string reference;
  int64_t max_tokens = 512;
  int32_t top = 64;
  bool json = false;
};

// Least tokens of a text: a position has logits, and from the second on a token that was to be expected.
constexpr int64_t kLeastPositions = 1, kLeastPredicted = 2;

// What is kept of one position: log-sum-exp of its logits and, when asked for, its best log-probabilities.
struct Position {
  double lse = 0;
  std::vector<TokenLogprob> top;  // best first
  std::vector<float> logprobs;    // [vocab], only when kept
};

double log_sum_exp(std::span<const float> logits) {
  float most = *std::ranges::max_element(logits);
  double sum = 0;
  for (float l : logits) sum += std::exp(static_cast<double>(l) - most);
  return most + std::log(sum);
}

// Hands each position's logits, [vocab], to `take`, in order.
Result<void> for_each_position(Engine& engine, std::vector<int32_t> ids, int64_t vocab,
                               const std::function<void(int64_t position, std::span<const float>)>& take) {
  Request request{.prompt = std::move(ids), .max_tokens = 1, .prompt_logits = true};
  HEARTH_ASSIGN(Generation generation, engine.submit(std::move(request)));
  while (std::optional<Event> event = generation.next()) {
    if (auto* block = std::get_if<PromptLogits>(&*event)) {
      for (int64_t r = 0; r < block->rows; ++r) {
        take(block->position + r,
             std::span(block->logits).subspan(static_cast<size_t>(r * vocab), static_cast<size_t>(vocab)));
      }
    }
    if (auto* failed = std::get_if<Failed>(&*event)) return std::move(failed->error);
  }
  return {};
}

struct Loaded {
  std::shared_ptr<Model> model;
  std::unique_ptr<Engine> engine;
};

Result<Loaded> load(const ModelFlags& flags) {
  Loaded loaded;
  HEARTH_ASSIGN(loaded.model, open_model(flags));
  HEARTH_ASSIGN(loaded.engine, Engine::create(loaded.model, flags.engine));
  return loaded;
}

// The first ids of the text, as the model tokenizes it; at least so many.
Result<std::vector<int32_t>> text_ids(const EvalFlags& flags, const Model& model, int64_t least) {
  HEARTH_ASSIGN(std::string text, read_text(flags.text_file));
  HEARTH_TRY(check_utf8(flags.text_file, text));
  HEARTH_ASSIGN(std::vector<int32_t> ids, model.text().tokenize(text, /*special=*/false, /*add_special=*/true));
  if (std::ssize(ids) > flags.max_tokens) ids.resize(static_cast<size_t>(flags.max_tokens));
  if (std::ssize(ids) < least) {
    return fail(ErrorCode::kUsage, "{} has {}; {} or more would work", flags.text_file,
                counted(std::ssize(ids), "token"), least);
  }
  return ids;
}

std::vector<TokenLogprob> best_logprobs(std::span<const float> logits, double lse, int32_t count) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  auto end = order.begin() + std::min<ptrdiff_t>(count, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] != logits[static_cast<size_t>(b)]
               ? logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]
               : a < b;
  });
  std::vector<TokenLogprob> best;
  for (auto it = order.begin(); it != end; ++it) {
    best.push_back({*it, static_cast<float>(logits[static_cast<size_t>(*it)] - lse)});
  }
  return best;
}

Result<void> eval_logits(EvalFlags& flags) {
  HEARTH_ASSIGN(Loaded loaded, load(flags.model));
  HEARTH_ASSIGN(std::vector<int32_t> ids, text_ids(flags, *loaded.model, kLeastPositions));
  nlohmann::ordered_json document = {{"ids", ids}, {"rows", nlohmann::ordered_json::array()}};
  HEARTH_TRY(for_each_position(*loaded.engine, ids, loaded.model->info().vocab_size,
                               [&](int64_t, std::span<const float> logits) {
                                 double lse = log_sum_exp(logits);
                                 nlohmann::ordered_json top = nlohmann::ordered_json::array();
                                 for (const TokenLogprob& entry : best_logprobs(logits, lse, flags.top))
                                   top.push_back({entry.token, entry.logprob});
                                 document["rows"].push_back({{"lse", lse}, {"top", std::move(top)}});
                               }));
  print("{}\n", document.dump());
  return {};
}

Result<void> eval_ppl(EvalFlags& flags) {
  HEARTH_ASSIGN(Loaded loaded, load(flags.model));
  HEARTH_ASSIGN(std::vector<int32_t> ids, text_ids(flags, *loaded.model, kLeastPredicted));
  double sum = 0;
  HEARTH_TRY(for_each_position(*loaded.engine, ids, loaded.model->info().vocab_size,
                               [&](int64_t position, std::span<const float> logits) {
                                 auto next = static_cast<size_t>(position) + 1;
                                 if (next < ids.size())
                                   sum += log_sum_exp(logits) - logits[static_cast<size_t>(ids[next])];
                               }));
  double nll = sum / static_cast<double>(ids.size() - 1);
  if (flags.json) {
    print("{}\n",
          nlohmann::ordered_json{{"tokens", ids.size() - 1}, {"nll", nll}, {"perplexity", std::exp(nll)}}.dump());
  } else {
    print("{}, {:.5f} nats a token, perplexity {:.4f}\n", counted(std::ssize(ids) - 1, "token"), nll, std::exp(nll));
  }
  return {};
}

// KL(reference || here) per position over the whole vocabulary. The reference is the same file on the reference device,
// or another file (a less quantized one) on this device.
Result<void> eval_kl(EvalFlags& flags) {
  ModelFlags reference_flags = flags.model;
  if (flags.reference.empty()) {
    reference_flags.model.device = "reference";
    reference_flags.model.kv_type = "f32";
    reference_flags.model.activations = "default";
  } else {
    reference_flags.path = flags.reference;
  }
  auto check_vocabularies = [](int64_t expected, int64_t here) -> Result<void> {
    if (expected == here) return {};
    return fail(ErrorCode::kUsage, "the models have vocabularies of {} and {} tokens and cannot be compared", expected,
                here);
  };
  if (!flags.reference.empty()) {  // before the long part, what can be known without weights
    HEARTH_ASSIGN(std::shared_ptr<const Text> expected, open_text(flags.reference));
    HEARTH_ASSIGN(std::shared_ptr<const Text> here, open_text(flags.model.path));
    HEARTH_TRY(check_vocabularies(expected->vocab_size(), here->vocab_size()));
  }
  std::vector<Position> reference;
  std::vector<int32_t> ids;
  {
    HEARTH_ASSIGN(Loaded loaded, load(reference_flags));
    HEARTH_ASSIGN(ids, text_ids(flags, *loaded.model, kLeastPositions));
    HEARTH_TRY(for_each_position(*loaded.engine, ids, loaded.model->info().vocab_size,
                                 [&](int64_t, std::span<const float> logits) {
                                   Position position{.lse = log_sum_exp(logits)};
                                   for (float l : logits)
                                     position.logprobs.push_back(static_cast<float>(l - position.lse));
                                   reference.push_back(std::move(position));
                                 }));
  }
  HEARTH_ASSIGN(Loaded loaded, load(flags.model));
  HEARTH_TRY(check_vocabularies(std::ssize(reference[0].logprobs), loaded.model->info().vocab_size));
  std::vector<double> divergence;
  int64_t agree = 0;
  HEARTH_TRY(for_each_position(
      *loaded.engine, ids, loaded.model->info().vocab_size, [&](int64_t position, std::span<const float> logits) {
        const std::vector<float>& expected = reference[static_cast<size_t>(position)].logprobs;
        double lse = log_sum_exp(logits);
        double kl = 0;
        for (size_t v = 0; v < expected.size(); ++v) {
          kl += std::exp(static_cast<double>(expected[v])) * (expected[v] - (static_cast<double>(logits[v]) - lse));
        }
        divergence.push_back(kl);
        agree +=
            std::ranges::max_element(expected) - expected.begin() == std::ranges::max_element(logits) - logits.begin();
      }));
  double mean = std::accumulate(divergence.begin(), divergence.end(), 0.0) / static_cast<double>(divergence.size());
  std::ranges::sort(divergence);
  double p99 = divergence[static_cast<size_t>(std::ceil(0.99 * static_cast<double>(divergence.size()))) - 1];
  double agreement = static_cast<double>(agree) / static_cast<double>(divergence.size());
  if (flags.json) {
    print("{}\n", nlohmann::ordered_json{{"positions", divergence.size()},
                                         {"mean_kl", mean},
                                         {"p99_kl", p99},
                                         {"max_kl", divergence.back()},
                                         {"top1_agreement", agreement}}
                      .dump());
  } else {
    print("{}: mean KL {:.3e}, p99 {:.3e}, max {:.3e}, best token agrees {:.2f} %\n",
          counted(std::ssize(divergence), "position"), mean, p99, divergence.back(), 100 * agreement);
  }
  return {};
}

}  // namespace

void add_eval(CLI::App& app, Body& chosen) {
  CLI::App* eval = app.add_subcommand("eval", "Measure how exact a model runs here");
  eval->require_subcommand(1);
  auto add = [&](const char* name, const char* what, Result<void> (*body)(EvalFlags&), int64_t least) {
    auto flags = std::make_shared<EvalFlags>();
    CLI::App* command = add_command(*eval, name, what, chosen, [flags, body] { return body(*flags); });
    add_model_flags(*command, flags->model);
    command->add_option("-f,--file", flags->text_file, "The text; -: stdin")->required();
    command->add_option("--tokens", flags->max_tokens, "Use at most this many tokens of it")
        ->transform(whole_number<int64_t>(least, 1 << 20));
    return std::pair(command, flags);
  };
  auto [logits, logits_flags] = add("logits", "Print each position's log-sum-exp and best log-probabilities as JSON",
                                    eval_logits, kLeastPositions);
  logits->add_option("--top", logits_flags->top, "How many of the best")->transform(whole_number<int32_t>(1, 1 << 20));
  auto [ppl, ppl_flags] = add("ppl", "Perplexity of a text", eval_ppl, kLeastPredicted);
  ppl->add_flag("--json", ppl_flags->json, "Print one JSON object");
  auto [kl, kl_flags] =
      add("kl", "Divergence from the reference device, or from another file", eval_kl, kLeastPositions);
  kl->add_option("--reference", kl_flags->reference, "A GGUF file to compare with instead");
  kl->add_flag("--json", kl_flags->json, "Print one JSON object");
}

}  // namespace hearth::cli
