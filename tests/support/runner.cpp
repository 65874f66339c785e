#include "support/runner.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/checked_math.h"

namespace hearth::testing {

std::span<const TestDevice> test_devices() {
  static const TestDevice kDevices[] = {
    {"reference", ""},
    {"cpu", "portable"},
    {"cuda", ""},
#if defined(__x86_64__)
    {"cpu", "avx2"},
    {"cpu", "avxvnni"},
    {"cpu", "avx512"},
    {"cpu", "amx"},
#elif defined(__aarch64__)
    {"cpu", "neon"},
#endif
  };
  return kDevices;
}

std::unique_ptr<Backend> make_test_backend(const TestDevice& device) {
  auto backend = make_backend(device.name, {.threads = 2, .isa = device.isa});
  if (!backend && (backend.error().code == ErrorCode::kUnsupported || backend.error().code == ErrorCode::kNotFound)) {
    return nullptr;
  }
  HEARTH_CHECK(backend, "{}", backend.error().message);
  return std::move(*backend);
}

Runner::Runner(Backend& backend, const Graph& graph, const RunnerOptions& options)
    : graph_(graph), deterministic_(options.deterministic) {
  LoadOptions load{.kv_type = options.kv_type, .activations = options.activations, .layout = options.layout};
  load.kv_pages.assign(graph.kv_groups.size(), options.pages);
  auto model = backend.load(graph, load);
  HEARTH_CHECK(model, "{}", model.error().message);
  model_ = std::move(*model);
  std::mt19937 rng(options.seed);
  for (size_t g = 0; g < graph.kv_groups.size(); ++g) {
    std::vector<int32_t>& pages = free_pages_.emplace_back(static_cast<size_t>(options.pages));
    std::iota(pages.begin(), pages.end(), 0);
    std::ranges::shuffle(pages, rng);
  }
}

int Runner::add_sequence() {
  sequences_[next_id_].pages.resize(graph_.kv_groups.size());
  return next_id_++;
}

void Runner::remove_sequence(int sequence) {
  rewind(sequence, 0);
  sequences_.erase(sequence);
}

void Runner::rewind(int sequence, int64_t length) {
  Sequence& s = sequences_.at(sequence);
  HEARTH_CHECK(length <= s.length, "{} of {}", length, s.length);
  s.length = length;
  for (size_t g = 0; g < s.pages.size(); ++g) {
    while (static_cast<int64_t>(s.pages[g].size()) > ceil_div(length, kPageTokens)) {
      if (s.pages[g].back() >= 0) free_pages_[g].push_back(s.pages[g].back());
      s.pages[g].pop_back();
    }
  }
}

void Runner::make_room(Sequence& s, int64_t rows) {
  for (size_t g = 0; g < s.pages.size(); ++g) {
    int64_t window = graph_.kv_groups[g].window;
    int64_t first_visible = window > 0 ? std::max<int64_t>(0, s.length - window + 1) / kPageTokens : 0;
    for (int64_t p = 0; p < std::min(first_visible, static_cast<int64_t>(s.pages[g].size())); ++p) {
      int32_t& page = s.pages[g][static_cast<size_t>(p)];
      if (page >= 0) free_pages_[g].push_back(std::exchange(page, -1));
    }
    while (static_cast<int64_t>(s.pages[g].size()) < ceil_div(s.length + rows, kPageTokens)) {
      HEARTH_CHECK(!free_pages_[g].empty(), "no free page in KV group {}", g);
      s.pages[g].push_back(free_pages_[g].back());
      free_pages_[g].pop_back();
    }
  }
}

Runner::Recorded& Runner::recorded(Bucket bucket) {
  Recorded& r = recorded_[{bucket.kind, bucket.rows}];
  if (!r.plan) {
    r.plan = std::make_unique<Plan>(make_single_lane_plan(graph_, bucket));
    r.plan->deterministic = deterministic_;
    auto executable = model_->record(*r.plan);
    HEARTH_CHECK(executable, "{}", executable.error().message);
    r.executable = std::move(*executable);
  }
  return r;
}

std::vector<float> Runner::step(std::span<const Part> parts, PlanKind kind, WantLogits want, Output output) {
  std::vector<int32_t> wanted, all_tokens;
  for (const Part& part : parts) {
    make_room(sequences_.at(part.sequence), static_cast<int64_t>(part.tokens.size()));
    for (int32_t token : part.tokens) {
      if (want == WantLogits::kAll) wanted.push_back(static_cast<int32_t>(all_tokens.size()));
      all_tokens.push_back(token);
    }
    if (want == WantLogits::kLast) wanted.push_back(static_cast<int32_t>(all_tokens.size()) - 1);
  }
  Recorded& r = recorded(bucket_for(kind, static_cast<int64_t>(all_tokens.size())));
  const ValueId value = output == Output::kLogits ? graph_.logits : graph_.hidden->value;
  const auto width = static_cast<size_t>(graph_.value(value).cols);
  std::vector<float> result(wanted.size() * width, std::numeric_limits<float>::quiet_NaN());
  // More logit rows than a step can give: the step is repeated, which writes the same keys and values again.
  for (size_t done = 0; done < wanted.size();) {
    size_t count = std::min(wanted.size() - done, static_cast<size_t>(r.plan->logit_rows));
    std::vector<int32_t> tokens = all_tokens;
    std::vector<int32_t> rows(wanted.begin() + static_cast<int64_t>(done),
                              wanted.begin() + static_cast<int64_t>(done + count));
    std::vector<std::vector<std::vector<int32_t>>> pages;
    std::vector<StepSequence> step_sequences;
    int32_t row = 0;
    for (const Part& part : parts) pages.push_back(sequences_.at(part.sequence).pages);
    for (size_t i = 0; i < parts.size(); ++i) {
      StepSequence& s = step_sequences.emplace_back();
      s.first_row = row;
      s.rows = static_cast<int32_t>(parts[i].tokens.size());
      s.position = static_cast<int32_t>(sequences_.at(parts[i].sequence).length);
      for (const auto& table : pages[i]) s.pages.emplace_back(table);
      row += s.rows;
    }
    auto ok = r.executable->launch({.tokens = tokens, .sequences = step_sequences, .logit_rows = rows});
    HEARTH_CHECK(ok, "{}", ok.error().message);
    // Whoever still reads these has kept a pointer.
    constexpr int32_t kPoison = std::numeric_limits<int32_t>::min();
    std::ranges::fill(tokens, kPoison);
    std::ranges::fill(rows, kPoison);
    for (auto& tables : pages) {
      for (auto& table : tables) std::ranges::fill(table, kPoison);
    }
    step_sequences.clear();
    ok = r.executable->wait();
    HEARTH_CHECK(ok, "{}", ok.error().message);
    // In two parts, so that rows behind the first are found too.
    for (auto [first, some] : {std::pair<size_t, size_t>{0, count / 2}, {count / 2, count - count / 2}}) {
      const auto out = std::span(result).subspan((done + first) * width, some * width);
      const auto from = static_cast<int64_t>(first);
      ok = output == Output::kLogits ? r.executable->read_logits(from, out) : r.executable->read_hidden(from, out);
      HEARTH_CHECK(ok, "{}", ok.error().message);
    }
    done += count;
  }
  for (const Part& part : parts) sequences_.at(part.sequence).length += static_cast<int64_t>(part.tokens.size());
  return result;
}

std::vector<float> Runner::append(int sequence, std::span<const int32_t> tokens, PlanKind kind, int64_t chunk,
                                  Output output) {
  std::vector<float> result;
  for (size_t at = 0; at < tokens.size(); at += static_cast<size_t>(chunk)) {
    Part part{.sequence = sequence,
              .tokens = tokens.subspan(at, std::min(tokens.size() - at, static_cast<size_t>(chunk)))};
    std::vector<float> some = step({&part, 1}, kind, WantLogits::kAll, output);
    result.insert(result.end(), some.begin(), some.end());
  }
  return result;
}

}  // namespace hearth::testing
