// hearth bench: prefill and decode speed of a model, beside the memory bandwidth that bounds decode.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "cli/command.h"
#include "cli/flags.h"

namespace hearth::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  std::vector<int64_t> prefill, depths;  // without either: the defaults that the model's context takes, or none
  std::vector<int64_t> first_token;      // prompt lengths
  int64_t prompts = 100;                 // of each of these lengths
  int64_t decode_tokens = 64;
  int64_t sequences = 1;
  int64_t rounds = 3;
  bool json = false;
  std::optional<std::string> compare;  // path of an earlier run's JSON
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  size_t n = values.size();
  return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct Work {
  std::string kind;  // "prefill" or "decode"
  int64_t tokens = 0;
  int64_t depth = 0;
  int64_t sequences = 1;
  bool operator==(const Work&) const = default;

  // "prefill 512", "decode 64 at depth 4096 x8"
  std::string name() const {
    std::string name = fmt::format("{} {}", kind, tokens);
    if (kind == "decode") name += fmt::format(" at depth {}", depth);
    if (sequences > 1) name += fmt::format(" x{}", sequences);
    return name;
  }
};

// One row of the result: a kind of work, its rounds' rates.
struct Row {
  Work work;
  std::vector<double> rates;  // tokens per second
  size_t bytes_per_step = 0;  // decode only: weights once and the KV of every sequence

  double rate() const { return median(rates); }
  double bytes_per_second() const {
    return static_cast<double>(bytes_per_step) * rate() / static_cast<double>(work.sequences);
  }
};

// How long callers wait for the first token of a prompt.
struct FirstToken {
  int64_t tokens = 0;
  std::vector<double> seconds;  // of each prompt, ascending

  // The least that `share` of the prompts do not exceed.
  double quantile(double share) const {
    return seconds[static_cast<size_t>(std::ceil(share * static_cast<double>(seconds.size()))) - 1];
  }
};

// What an earlier run printed with --json.
struct EarlierRun {
  std::string path, model, device;
  double read_bandwidth = 0;  // bytes per second
  struct Figure {
    Work work;
    double rate = 0;  // tokens per second
  };
  std::vector<Figure> figures;
};

Result<EarlierRun> read_earlier_run(const std::string& path) {
  HEARTH_ASSIGN(const std::string text, read_text(path));
  EarlierRun run{.path = path};
  bool good = false;
  try {
    const nlohmann::json document = nlohmann::json::parse(text);
    document.at("model").get_to(run.model);
    document.at("device").get_to(run.device);
    document.at("read_bandwidth").get_to(run.read_bandwidth);
    good = document.at("results").is_array();
    for (const nlohmann::json& row : document.at("results")) {
      EarlierRun::Figure& figure = run.figures.emplace_back();
      row.at("kind").get_to(figure.work.kind);
      row.at("tokens").get_to(figure.work.tokens);
      row.at("depth").get_to(figure.work.depth);
      row.at("sequences").get_to(figure.work.sequences);
      row.at("tokens_per_second").get_to(figure.rate);
      good &= (figure.work.kind == "prefill" || figure.work.kind == "decode") && figure.rate > 0;
    }
  } catch (const nlohmann::json::exception&) {
    good = false;
  }
  if (good) return run;
  return fail(ErrorCode::kInvalidInput, "cannot compare with {}: it is not what `hearth bench --json` prints", path);
}

class Bench {
 public:
  Bench(const BenchFlags& flags, Model& model, Engine& engine) : flags_(flags), model_(model), engine_(engine) {}

  std::vector<int32_t> random_prompt(int64_t tokens, uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::vector<int32_t> prompt(static_cast<size_t>(tokens));
    for (int32_t& id : prompt) id = static_cast<int32_t>(random() % static_cast<uint64_t>(model_.info().vocab_size));
    return prompt;
  }

  // Tokens per second of a prompt that nothing in the cache begins like.
  Result<double> prefill(int64_t tokens, uint64_t seed) {
    HEARTH_ASSIGN(std::vector<Answer> answers, run(random_prompt(tokens, seed), 1, 1));
    const Usage& usage = answers[0].usage;
    return static_cast<double>(tokens - usage.cached_tokens) / usage.prefill_seconds;
  }

  // Tokens per second of all sequences together while all of them decode, each `decode_tokens` after `depth` tokens,
  // the same in each round.
  Result<double> decode(int64_t depth) {
    HEARTH_ASSIGN(std::vector<Answer> answers,
                  run(random_prompt(std::max<int64_t>(depth, 1), 7), flags_.decode_tokens + 1, flags_.sequences));
    Clock::time_point begin = Clock::time_point::min(), end = Clock::time_point::max();
    for (const Answer& answer : answers) {
      begin = std::max(begin, answer.arrived.front());
      end = std::min(end, answer.arrived.back());
    }
    int64_t tokens = 0;
    for (const Answer& answer : answers) {
      tokens += std::ranges::count_if(answer.arrived, [&](Clock::time_point t) { return t > begin && t <= end; });
    }
    // A figure of a few steps is none.
    if (4 * tokens < flags_.sequences * flags_.decode_tokens) {
      return fail(ErrorCode::kUsage,
                  "the {} sequences decoded only {} of their {} tokens while all of them did: reading their prompts "
                  "takes too long beside that; --decode-tokens {} or more would work",
                  flags_.sequences, tokens, flags_.sequences * flags_.decode_tokens, enough_tokens(answers));
    }
    return static_cast<double>(tokens) / std::chrono::duration<double>(end - begin).count();
  }

  // Prompts that nothing in the cache begins like, one after the other.
  Result<FirstToken> first_token(int64_t tokens) {
    FirstToken result{.tokens = tokens};
    for (int64_t i = 0; i < flags_.prompts; ++i) {
      Request request{.prompt = random_prompt(tokens, static_cast<uint64_t>((tokens << 20) + i)), .max_tokens = 1};
      const Clock::time_point submitted = Clock::now();
      HEARTH_ASSIGN(Generation generation, engine_.submit(std::move(request)));
      std::optional<double> first;
      while (std::optional<Event> event = generation.next()) {
        if (!first && std::holds_alternative<TokenEvent>(*event)) {
          first = std::chrono::duration<double>(Clock::now() - submitted).count();
        }
        if (auto* failed = std::get_if<Failed>(&*event)) return std::move(failed->error);
      }
      if (!first) return fail(ErrorCode::kInternal, "a prompt of {} tokens was answered with none", tokens);
      result.seconds.push_back(*first);
    }
    std::ranges::sort(result.seconds);
    return result;
  }

  size_t bytes_per_step(int64_t depth) const {
    return model_.info().bytes_per_token +
           model_.kv_bytes_read(depth + flags_.decode_tokens / 2) * static_cast<size_t>(flags_.sequences);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    Clock::time_point submitted;
    std::vector<Clock::time_point> arrived;  // of each token: when it was drawn, not when this thread was let run
    Usage usage;
  };

  Result<std::vector<Answer>> run(std::vector<int32_t> prompt, int64_t max_tokens, int64_t sequences) {
    std::vector<Generation> generations;
    std::vector<Answer> answers(static_cast<size_t>(sequences));
    for (int64_t s = 0; s < sequences; ++s) {
      Request request{.prompt = prompt, .max_tokens = max_tokens, .ignore_end = true};
      request.sampling.temperature = 0;
      if (s > 0) request.prompt.back() = static_cast<int32_t>((request.prompt.back() + s) % model_.info().vocab_size);
      answers[static_cast<size_t>(s)].submitted = Clock::now();
      HEARTH_ASSIGN(Generation generation, engine_.submit(std::move(request)));
      generations.push_back(std::move(generation));
    }
    for (size_t first = 0; first < generations.size();) {
      // A step hands out the tokens of all sequences at once: waiting for those of one is enough.
      for (size_t i = first; i < generations.size(); ++i) {
        std::optional<Event> event = i == first ? generations[i].next() : generations[i].next_within(0);
        for (; event; event = generations[i].next_within(0)) HEARTH_TRY(take(*event, max_tokens, answers[i]));
      }
      while (first < generations.size() && generations[first].finished()) ++first;
    }
    return answers;
  }

  // Three times the steps in which the prompts of all but the first are read, a chunk of one of them in each: between
  // them are steps without a chunk.
  int64_t enough_tokens(const std::vector<Answer>& answers) const {
    const int64_t chunk = std::min(kLeastChunkRows, flags_.model.engine.prefill_rows);
    int64_t steps = 0, most = 0;
    for (const Answer& answer : answers) {
      const int64_t chunks = (answer.usage.prompt_tokens - answer.usage.cached_tokens + chunk - 1) / chunk;
      steps += chunks;
      most = std::max(most, chunks);
    }
    return 3 * std::max(steps - most, flags_.decode_tokens);
  }

  Result<void> take(Event& event, int64_t max_tokens, Answer& answer) {
    if (const auto* token = std::get_if<TokenEvent>(&event)) {
      const std::chrono::duration<double> after(token->seconds);
      answer.arrived.push_back(answer.submitted + std::chrono::duration_cast<Clock::duration>(after));
    }
    if (auto* failed = std::get_if<Failed>(&event)) return std::move(failed->error);
    auto* done = std::get_if<Done>(&event);
    if (!done) return {};
    answer.usage = done->usage;
    if (done->reason == FinishReason::kLength) return {};
    return fail(ErrorCode::kUsage, "the context of {} tokens ended after {} of {} tokens; a larger one (-c) would work",
                model_.info().sequence_tokens, answer.arrived.size(), max_tokens);
  }

  const BenchFlags& flags_;
  Model& model_;
  Engine& engine_;
};

nlohmann::ordered_json json_of(const std::vector<Row>& rows, const std::vector<FirstToken>& first_tokens,
                               const ModelInfo& info, double peak, int64_t rounds) {
  nlohmann::ordered_json document = {{"model", info.name},
                                     {"path", info.path},
                                     {"device", info.device},
                                     {"activations", info.activations},
                                     {"threads", info.threads},
                                     {"read_bandwidth", peak},
                                     {"bytes_per_token", info.bytes_per_token},
                                     {"rounds", rounds},
                                     {"results", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    document["results"].push_back({{"kind", row.work.kind},
                                   {"tokens", row.work.tokens},
                                   {"depth", row.work.depth},
                                   {"sequences", row.work.sequences},
                                   {"tokens_per_second", row.rate()},
                                   {"rates", row.rates},
                                   {"bytes_per_second", row.bytes_per_second()},
                                   {"share_of_bandwidth", row.bytes_per_second() / peak}});
  }
  for (const FirstToken& first : first_tokens) {
    document["first_token"].push_back({{"tokens", first.tokens},
                                       {"prompts", first.seconds.size()},
                                       {"p50_seconds", first.quantile(0.5)},
                                       {"p99_seconds", first.quantile(0.99)}});
  }
  return document;
}

void print_table(const std::vector<Row>& rows, const std::vector<FirstToken>& first_tokens, const ModelInfo& info,
                 double peak, const EarlierRun* earlier) {
  print("{} ({}) on {}{}\nread bandwidth {:.1f} GB/s, weights read per token {:.3f} GB\n", info.name,
        bytes_text(static_cast<double>(info.file_bytes)), info.device,
        info.activations == "default" ? "" : fmt::format(", {} activations", info.activations), peak / 1e9,
        static_cast<double>(info.bytes_per_token) / 1e9);
  if (earlier) {
    print("compared with {}: read bandwidth {:.1f} GB/s{}{}\n", earlier->path, earlier->read_bandwidth / 1e9,
          earlier->model == info.name ? "" : ", another model",
          earlier->device == info.device ? "" : ", another device");
  }
  print("\n");
  if (!rows.empty() || earlier) {
    print("{:<28} {:>10} {:>10} {:>10} {:>8} {:>8}", "work", "tok/s", "min", "max", "GB/s", "of peak");
    if (earlier) print(" {:>10} {:>8}", "earlier", "ratio");
    print("\n");
  }
  std::vector<EarlierRun::Figure> others;  // of the earlier run, that no row has taken
  if (earlier) others = earlier->figures;
  for (const Row& row : rows) {
    auto [low, high] = std::ranges::minmax(row.rates);
    print("{:<28} {:>10.2f} {:>10.2f} {:>10.2f}", row.work.name(), row.rate(), low, high);
    if (row.bytes_per_step > 0) {
      print(" {:>8.1f} {:>7.0f}%", row.bytes_per_second() / 1e9, 100 * row.bytes_per_second() / peak);
    } else if (earlier) {
      print("{:18}", "");
    }
    if (auto other = std::ranges::find(others, row.work, &EarlierRun::Figure::work); other != others.end()) {
      print(" {:>10.2f} {:>8.2f}", other->rate, row.rate() / other->rate);
      others.erase(other);
    } else if (earlier) {
      print(" only in this run");
    }
    print("\n");
  }
  for (const EarlierRun::Figure& other : others) {
    print("{:<28}{:51} {:>10.2f} only in {}\n", other.work.name(), "", other.rate, earlier->path);
  }
  for (const FirstToken& first : first_tokens) {
    print("first token of a prompt of {}: p50 {:.2f} ms, p99 {:.2f} ms ({})\n", first.tokens, 1e3 * first.quantile(0.5),
          1e3 * first.quantile(0.99), counted(std::ssize(first.seconds), "prompt"));
  }
}

// Keeps the first of equal values: nothing is measured twice.
void drop_repeated(std::vector<int64_t>& values) {
  std::vector<int64_t> kept;
  for (int64_t value : values) {
    if (std::ranges::find(kept, value) == kept.end()) kept.push_back(value);
  }
  values = std::move(kept);
}

Result<void> bench(BenchFlags& flags) {
  if (flags.model.path.empty()) {
    HEARTH_ASSIGN(flags.model.path, model_in_the_box());
  }
  std::optional<EarlierRun> earlier;
  if (flags.compare) {
    HEARTH_ASSIGN(earlier, read_earlier_run(*flags.compare));
  }
  for (std::vector<int64_t>* list : {&flags.prefill, &flags.depths, &flags.first_token}) drop_repeated(*list);
  bool all_prefills = !flags.prefill.empty(), all_depths = !flags.depths.empty();
  const bool only_first_tokens = !flags.first_token.empty() && !all_prefills && !all_depths;
  if (!all_prefills && !only_first_tokens) flags.prefill = {512};
  if (!all_depths && !only_first_tokens) flags.depths = {0, 512, 4096};
  // Tokens of a whole sequence.
  auto prefill_tokens = [](int64_t tokens) { return tokens + 1; };
  auto decode_tokens = [&](int64_t depth) { return std::max<int64_t>(depth, 1) + flags.decode_tokens + 1; };
  if (flags.model.model.context_tokens == 0) {
    int64_t deepest = 0;
    for (const std::vector<int64_t>* list : {&flags.prefill, &flags.depths, &flags.first_token}) {
      for (int64_t tokens : *list) deepest = std::max(deepest, tokens);
    }
    flags.model.model.context_tokens = deepest + 2048 + flags.sequences * (deepest + flags.decode_tokens + 32);
  }
  flags.model.engine.max_sequences = std::max(flags.model.engine.max_sequences, flags.sequences);
  HEARTH_ASSIGN(std::shared_ptr<Model> model, open_model(flags.model));
  int64_t most = model->info().sequence_tokens;
  if (!all_prefills) std::erase_if(flags.prefill, [&](int64_t tokens) { return prefill_tokens(tokens) > most; });
  if (!all_depths) std::erase_if(flags.depths, [&](int64_t depth) { return decode_tokens(depth) > most; });
  int64_t longest = 0;
  for (int64_t tokens : flags.prefill) longest = std::max(longest, prefill_tokens(tokens));
  for (int64_t depth : flags.depths) longest = std::max(longest, decode_tokens(depth));
  for (int64_t tokens : flags.first_token) longest = std::max(longest, prefill_tokens(tokens));
  if (const int64_t trained = model->info().trained_context; trained > 0 && longest > trained) {
    return fail(ErrorCode::kUsage,
                "a sequence of {} tokens was asked for, but the model was made for {}; less of --prefill, --depth or "
                "--first-token would work",
                longest, trained);
  }
  if (longest > most) {
    return fail(ErrorCode::kUsage, "a sequence of {} tokens was asked for, but the context takes {}; -c {} would work",
                longest, most, longest);
  }
  HEARTH_ASSIGN(std::unique_ptr<Engine> engine, Engine::create(model, flags.model.engine));
  Bench bench(flags, *model, *engine);

  std::vector<Row> rows;
  for (int64_t tokens : flags.prefill) rows.push_back({.work = {.kind = "prefill", .tokens = tokens}});
  for (int64_t depth : flags.depths) {
    rows.push_back(
        {.work = {.kind = "decode", .tokens = flags.decode_tokens, .depth = depth, .sequences = flags.sequences},
         .bytes_per_step = bench.bytes_per_step(depth)});
  }
  std::vector<double> bandwidth;
  ProgressLine progress;
  HEARTH_TRY(bench.prefill(16, 1));  // weights are in memory
  for (int64_t round = 0; round < flags.rounds; ++round) {
    HEARTH_ASSIGN(bandwidth.emplace_back(), model->read_bandwidth());
    for (Row& row : rows) {
      const Work& work = row.work;
      Result<double> rate = work.kind == "prefill"
                                ? bench.prefill(work.tokens, static_cast<uint64_t>(work.tokens * 1000 + round))
                                : bench.decode(work.depth);
      if (!rate) return std::move(rate).error();
      row.rates.push_back(*rate);
      progress.show(fmt::format("round {} of {}", round + 1, flags.rounds));
    }
  }
  std::vector<FirstToken> first_tokens;
  for (int64_t tokens : flags.first_token) {
    progress.show(fmt::format("first tokens of prompts of {}", tokens));
    HEARTH_ASSIGN(first_tokens.emplace_back(), bench.first_token(tokens));
  }
  progress.clear();

  double peak = median(bandwidth);
  if (flags.json) {
    print("{}\n", json_of(rows, first_tokens, model->info(), peak, flags.rounds).dump(2));
  } else {
    print_table(rows, first_tokens, model->info(), peak, earlier ? &*earlier : nullptr);
  }
  return {};
}

// Either a model or a command, which CLI11 cannot say.
struct BenchHelp : CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() != "bench") return CLI::Formatter::make_usage(app, std::move(name));
    return "Usage: hearth bench [OPTIONS] [MODEL]\n       hearth bench agent [OPTIONS] TRACE\n";
  }
};

}  // namespace

void add_bench(CLI::App& app, Body& chosen) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode speed");
  command->callback([=, &chosen] {
    if (command->get_subcommands().empty()) chosen = [flags] { return bench(*flags); };
  });
  add_bench_agent(*command, chosen);
  add_model_flags(*command, flags->model);
  command->get_option("MODEL")->required(false);  // `bench agent` takes none
  command->formatter(std::make_shared<BenchHelp>());
  auto list = [&](const char* name, std::vector<int64_t>& values, const char* what, int64_t least) {
    return command->add_option(name, values, what)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->transform(whole_number<int64_t>(least, 1 << 20));
  };
  list("--prefill", flags->prefill, "Prompt lengths to measure, such as 512 or 512,2048; else 512", 1);
  list("--depth", flags->depths, "Context lengths at which decode is measured; else 0,512,4096", 0);
  CLI::Option* first_token = list(
      "--first-token", flags->first_token,
      "Prompt lengths of which the wait for the first token is measured; alone if neither --prefill nor --depth is "
      "given",
      1);
  command->add_option("--prompts", flags->prompts, "With --first-token: prompts of each of these lengths")
      ->needs(first_token)
      ->transform(whole_number<int64_t>(1, 100000));
  command->add_option("--decode-tokens", flags->decode_tokens, "Tokens decoded for each measurement")
      ->transform(whole_number<int64_t>(2, 100000));
  command->add_option("--sequences", flags->sequences, "Sequences that decode at the same time")
      ->transform(whole_number<int64_t>(1, kMaxSequences));
  command->add_option("--rounds", flags->rounds, "Interleaved rounds; medians are shown")
      ->transform(whole_number<int64_t>(1, 1000));
  CLI::Option* json = command->add_flag("--json", flags->json, "Print one JSON object");
  command->add_option("--compare", flags->compare, "Show the figures of an earlier run too, from its --json output")
      ->excludes(json);
}

}  // namespace hearth::cli
