#include "fake_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "support/candidates.h"

namespace hearth {
namespace {

uint64_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  return x ^ x >> 32;
}

// What one token of KV holds.
struct KvEntry {
  int32_t token = -1;
  int32_t position = -1;
  int32_t kernel = 0;
};

// The state of a query after all keys it sees, in the order of positions.
uint64_t see(uint64_t state, const KvEntry& slot) {
  return mix(state ^ (static_cast<uint64_t>(slot.token) << 32 | static_cast<uint32_t>(slot.position)) ^
             static_cast<uint64_t>(slot.kernel) << 60);
}

void write_logits(uint64_t state, bool poisoned, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t bits = mix(state + i * 0x2545F4914F6CDD1Du);
    out[i] = static_cast<float>(bits >> 40) * 0x1p-24f * 8 - 4;
  }
  if (poisoned) {
    out[out.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  } else if (out.size() > static_cast<size_t>(kPoison)) {
    out[static_cast<size_t>(kPoison)] = -9;  // comes from prompts only
  }
}

// Of a few columns, all in the same order of magnitude as a norm's weights below.
constexpr size_t kHiddenWidth = 6;
constexpr float kHiddenEps = 0.25f;
constexpr std::array<float, kHiddenWidth> kHiddenNorm = {1, -2, 0.5f, 3, 1, 0.25f};

void write_hidden(uint64_t state, bool poisoned, std::span<float> out) { write_logits(~state, poisoned, out); }

bool visible(int64_t key, int64_t query, int64_t window) {
  return key <= query && (window == 0 || key > query - window);
}

}  // namespace

class FakeDevice final : public DeviceModel {
 public:
  explicit FakeDevice(const FakeOptions& options) : options_(options) {
    for (int64_t pages : options.pages) pages_.emplace_back(static_cast<size_t>(pages * kPageTokens));
  }

  Result<std::unique_ptr<Executable>> record(const Plan& plan) override;

  size_t page_bytes(int32_t) const override { return kPageTokens * sizeof(KvEntry); }
  Result<void> read_pages(std::span<const PageCopy> pages) const override {
    for (const PageCopy& copy : pages) {
      if (copies_left-- == 0) return fail(ErrorCode::kInternal, "the device does not copy");
      std::this_thread::sleep_for(std::chrono::duration<double>(options_.page_seconds));
      const auto& group = pages_[static_cast<size_t>(copy.group)];
      std::memcpy(copy.bytes, &group[static_cast<size_t>(copy.page * kPageTokens)], page_bytes(copy.group));
    }
    return {};
  }
  Result<void> write_pages(std::span<const PageCopy> pages) override {
    for (const PageCopy& copy : pages) {
      if (copies_left-- == 0) return fail(ErrorCode::kInternal, "the device does not copy");
      std::memcpy(&slot(copy.group, copy.page, 0), copy.bytes, page_bytes(copy.group));
    }
    return {};
  }

  KvEntry& slot(int64_t group, int32_t page, int64_t index) {
    HEARTH_CHECK(page >= 0 && page < options_.pages[static_cast<size_t>(group)], "page {} of group {}", page, group);
    return pages_[static_cast<size_t>(group)][static_cast<size_t>(page * kPageTokens + index)];
  }

  void run(const Plan& plan, const std::vector<int32_t>& tokens, const std::vector<StepSequence>& sequences,
           const std::vector<int32_t>& logit_rows, const std::vector<CandidateRequest>& requests) {
    const auto vocab = static_cast<size_t>(options_.vocab_size);
    // Whoever reads logits that were not computed gets NaN.
    logits.assign(logit_rows.size() * vocab, std::numeric_limits<float>::quiet_NaN());
    hidden.assign(logit_rows.size() * kHiddenWidth, std::numeric_limits<float>::quiet_NaN());
    const int32_t kernel = options_.kernels_differ && plan.bucket.kind == PlanKind::kPrefill ? 1 : 0;
    const auto groups = static_cast<int64_t>(options_.groups.size());
    for (const StepSequence& s : sequences) {
      for (int32_t r = 0; r < s.rows; ++r) {
        const int32_t position = s.position + r;
        for (int64_t g = 0; g < groups; ++g) {
          const int32_t page = s.pages[static_cast<size_t>(g)][static_cast<size_t>(position / kPageTokens)];
          slot(g, page, position % kPageTokens) = {tokens[static_cast<size_t>(s.first_row + r)], position, kernel};
        }
      }
    }
    // All KV is written before any is read: two sequences that write to one page disturb each other.
    for (const StepSequence& s : sequences) {
      for (int32_t r = 0; r < s.rows; ++r) {
        const auto row = std::ranges::find(logit_rows, s.first_row + r);
        if (row == logit_rows.end()) continue;
        const int64_t query = s.position + r;
        uint64_t state = options_.fault;
        bool poisoned = false;
        for (int64_t g = 0; g < groups; ++g) {
          const int64_t window = options_.groups[static_cast<size_t>(g)].window;
          for (int64_t key = 0; key <= query; ++key) {
            if (!visible(key, query, window)) continue;
            const KvEntry& k =
                slot(g, s.pages[static_cast<size_t>(g)][static_cast<size_t>(key / kPageTokens)], key % kPageTokens);
            state = see(state, k);
            if (k.token == kPoison) poisoned = true;
          }
        }
        const auto index = static_cast<size_t>(row - logit_rows.begin());
        write_logits(state, poisoned, std::span(logits).subspan(index * vocab, vocab));
        write_hidden(state, poisoned, std::span(hidden).subspan(index * kHiddenWidth, kHiddenWidth));
      }
    }
    found.clear();
    for (size_t row = 0; options_.candidates && row < logit_rows.size(); ++row) {
      found.push_back(testing::find_candidates(std::span(logits).subspan(row * vocab, vocab),
                                               requests.empty() ? CandidateRequest{} : requests[row]));
    }
    double seconds = options_.step_seconds;
    for (const StepSequence& s : sequences) {
      for (int32_t r = 0; r < s.rows; ++r) {
        seconds += options_.row_seconds + options_.key_seconds * static_cast<double>(s.position + r);
      }
    }
    longest_seconds = std::max(longest_seconds.load(), seconds);
    if (std::ranges::all_of(sequences, [](const StepSequence& s) { return s.rows == 1; })) {
      decode_seconds = decode_seconds + seconds;
    }
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  const FakeOptions options_;
  std::vector<std::vector<KvEntry>> pages_;  // [group][page * tokens]
  std::vector<float> logits, hidden;
  std::vector<testing::FoundRow> found;  // by logit row

  std::atomic<int> launch_error{-1};
  std::atomic<int> wait_error{-1};
  mutable std::atomic<int64_t> copies_left{-1};  // before the one that fails
  std::atomic<bool> hangs{false};
  std::atomic<int64_t> recorded_rows_limit{1 << 20};
  std::atomic<int64_t> rows{0};
  std::atomic<int64_t> largest{0};
  std::atomic<int64_t> largest_decode{0};
  std::atomic<double> longest_seconds{0};
  std::atomic<double> decode_seconds{0};
  std::atomic<int64_t> most_sequences{0};
  std::atomic<int64_t> logit_rows_read{0};
};

namespace {

class FakeExecutable final : public Executable {
 public:
  FakeExecutable(FakeDevice& device, const Plan& plan) : device_(device), plan_(plan) {}
  ~FakeExecutable() override {
    if (thread_.joinable()) thread_.join();
  }

  Result<void> launch(const StepBatch& batch) override {
    HEARTH_CHECK(!launched_, "launched while a step runs");
    const auto rows = static_cast<int64_t>(batch.tokens.size());
    HEARTH_CHECK(rows > 0 && rows <= plan_.bucket.rows, "{} rows in a bucket of {}", rows, plan_.bucket.rows);
    HEARTH_CHECK(static_cast<int64_t>(batch.logit_rows.size()) <= plan_.logit_rows, "{} logit rows of {}",
                 batch.logit_rows.size(), plan_.logit_rows);
    HEARTH_CHECK(std::ranges::is_sorted(batch.logit_rows), "logit rows are not sorted");
    int64_t next = 0;
    for (const StepSequence& s : batch.sequences) {
      HEARTH_CHECK(s.first_row == next && s.rows > 0, "row {} after {}", s.first_row, next);
      next += s.rows;
      for (const auto& pages : s.pages) {
        HEARTH_CHECK(static_cast<int64_t>(pages.size()) == (s.position + s.rows - 1) / kPageTokens + 1,
                     "{} pages for {} + {} tokens", pages.size(), s.position, s.rows);
      }
    }
    HEARTH_CHECK(batch.requests.empty() || batch.requests.size() == batch.logit_rows.size(), "{} requests for {} rows",
                 batch.requests.size(), batch.logit_rows.size());
    for (const CandidateRequest& request : batch.requests) {
      HEARTH_CHECK(request.temperature > 0, "temperature {}", request.temperature);
      HEARTH_CHECK(static_cast<int64_t>(request.tokens.size()) <= kMaxWantedLogits, "{} tokens", request.tokens.size());
    }
    HEARTH_CHECK(next == rows, "sequences cover {} of {} rows", next, rows);
    if (const int code = device_.launch_error.exchange(-1); code >= 0) {
      return fail(static_cast<ErrorCode>(code), "the device did not start");
    }
    device_.rows += rows;
    device_.largest = std::max(device_.largest.load(), rows);
    if (plan_.bucket.kind == PlanKind::kDecode) {
      device_.largest_decode = std::max(device_.largest_decode.load(), rows);
    }
    device_.most_sequences = std::max(device_.most_sequences.load(), static_cast<int64_t>(batch.sequences.size()));
    // Spans are ours during this call only.
    tokens_.assign(batch.tokens.begin(), batch.tokens.end());
    logit_rows_.assign(batch.logit_rows.begin(), batch.logit_rows.end());
    sequences_.assign(batch.sequences.begin(), batch.sequences.end());
    requests_.assign(batch.requests.begin(), batch.requests.end());
    tables_.clear();
    for (CandidateRequest& request : requests_) {
      tables_.push_back(std::make_unique<std::vector<int32_t>>(request.tokens.begin(), request.tokens.end()));
      request.tokens = *tables_.back();
    }
    for (StepSequence& s : sequences_) {
      for (auto& pages : s.pages) {
        tables_.push_back(std::make_unique<std::vector<int32_t>>(pages.begin(), pages.end()));
        pages = *tables_.back();
      }
    }
    launched_ = true;
    if (device_.options_.own_thread) thread_ = std::thread([this] { run(); });
    return {};
  }

  Result<void> wait() override {
    HEARTH_CHECK(launched_, "nothing was launched");
    launched_ = false;
    device_.hangs.wait(true);
    thread_.joinable() ? thread_.join() : run();
    if (const int code = device_.wait_error.exchange(-1); code >= 0) {
      return fail(static_cast<ErrorCode>(code), "the device fell off the bus");
    }
    return {};
  }

  Result<void> read_logits(int64_t first, std::span<float> out) override {
    const auto vocab = static_cast<size_t>(device_.options_.vocab_size);
    const size_t begin = static_cast<size_t>(first) * vocab;
    HEARTH_CHECK(first >= 0 && out.size() % vocab == 0 && begin + out.size() <= device_.logits.size(),
                 "{} logits from {} on of {}", out.size(), begin, device_.logits.size());
    device_.logit_rows_read += static_cast<int64_t>(out.size() / vocab);
    std::ranges::copy(std::span(device_.logits).subspan(begin, out.size()), out.begin());
    return {};
  }
  Result<void> read_hidden(int64_t first, std::span<float> out) override {
    const size_t begin = static_cast<size_t>(first) * kHiddenWidth;
    HEARTH_CHECK(first >= 0 && out.size() % kHiddenWidth == 0 && begin + out.size() <= device_.hidden.size(),
                 "{} floats of hidden states from {} on of {}", out.size(), begin, device_.hidden.size());
    std::ranges::copy(std::span(device_.hidden).subspan(begin, out.size()), out.begin());
    return {};
  }
  std::optional<Candidates> candidates(int64_t row) const override {
    if (!device_.options_.candidates) return std::nullopt;
    return device_.found[static_cast<size_t>(row)].view();
  }

 private:
  void run() { device_.run(plan_, tokens_, sequences_, logit_rows_, requests_); }

  FakeDevice& device_;
  const Plan& plan_;
  bool launched_ = false;
  std::thread thread_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> logit_rows_;
  std::vector<CandidateRequest> requests_;
  std::vector<StepSequence> sequences_;
  std::vector<std::unique_ptr<std::vector<int32_t>>> tables_;
};

// Token t prints as the letter 'a' + t % 26 in upper or lower case; two are special.
class FakeText final : public Text {
 public:
  explicit FakeText(int64_t vocab_size) : vocab_size_(vocab_size) {}
  Result<std::vector<int32_t>> tokenize(std::string_view, bool, bool) const override { return std::vector<int32_t>{}; }
  std::string piece(int32_t token, bool) const override {
    if (token == kHalfToken) return "\xC3";
    return std::string(1, static_cast<char>((token / 26 % 2 ? 'A' : 'a') + token % 26));
  }
  std::string detokenize(const std::vector<int32_t>& tokens, bool special) const override {
    std::string text;
    for (int32_t token : tokens) text += piece(token, special);
    return text;
  }
  Result<Prompt> render(std::string_view, const RenderOptions&) const override { return Prompt{}; }
  std::unique_ptr<OutputParser> parse_output(const OutputOptions&) const override { return nullptr; }
  const OutputMarkers& output_markers() const override { return markers_; }
  Result<std::shared_ptr<const Grammar>> compile(const GrammarSource&) const override {
    return fail(ErrorCode::kUnsupported, "fake");
  }
  void remember(std::span<const int32_t>) const override {}
  bool has_chat_template() const override { return false; }
  bool supports_thinking() const override { return false; }
  std::string_view chat_template() const override { return ""; }
  bool ends_generation(int32_t token) const override { return token == kEndToken; }
  int64_t vocab_size() const override { return vocab_size_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  OutputMarkers markers_;
  int64_t vocab_size_;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<std::unique_ptr<Executable>> FakeDevice::record(const Plan& plan) {
  if (plan.bucket.rows > recorded_rows_limit) return fail(ErrorCode::kOutOfMemory, "no room for the plan");
  return std::unique_ptr<Executable>(std::make_unique<FakeExecutable>(*this, plan));
}

FakeModel::FakeModel(const FakeOptions& options)
    : options_(options),
      device_(std::make_unique<FakeDevice>(options)),
      text_(std::make_unique<FakeText>(options.vocab_size)) {
  graph_.kv_groups = options.groups;
  graph_.values.push_back({.name = "logits", .rows = RowKind::kLogit, .cols = options.vocab_size});
  graph_.logits = ValueId{0};
  if (!options.hidden) return;
  norm_ = {.name = "norm",
           .format = FormatId::kF32,
           .shape = {kHiddenWidth},
           .bytes = std::as_bytes(std::span(kHiddenNorm))};
  graph_.weights.push_back({.tensor = &norm_, .rows = 1, .cols = kHiddenWidth});
  graph_.values.push_back({.name = "hidden", .rows = RowKind::kLogit, .cols = kHiddenWidth});
  graph_.hidden = HiddenState{.value = ValueId{1}, .norm = {.weight = WeightId{0}, .eps = kHiddenEps}};
}

FakeModel::~FakeModel() = default;

EngineModel FakeModel::engine_model() const {
  const auto host_pages = static_cast<size_t>(options_.host_pages * std::ssize(options_.groups));
  return {.graph = &graph_,
          .device = device_.get(),
          .text = text_.get(),
          .kv_pages = options_.pages,
          .host_cache_bytes = host_pages * device_->page_bytes(0),
          .vocab_size = options_.vocab_size,
          .sequence_tokens = options_.sequence_tokens,
          .pooling = options_.pooling};
}

void FakeModel::fail_next_launch(ErrorCode code) { device_->launch_error = static_cast<int>(code); }
void FakeModel::fail_next_wait(ErrorCode code) { device_->wait_error = static_cast<int>(code); }
void FakeModel::fail_copy_after(int64_t pages) { device_->copies_left = pages; }
void FakeModel::hang() { device_->hangs = true; }
void FakeModel::release() {
  device_->hangs = false;
  device_->hangs.notify_all();
}
void FakeModel::limit_recorded_rows(int64_t rows) { device_->recorded_rows_limit = rows; }
int64_t FakeModel::rows_computed() const { return device_->rows; }
int64_t FakeModel::largest_step() const { return device_->largest; }
int64_t FakeModel::largest_decode_step() const { return device_->largest_decode; }
double FakeModel::longest_step_seconds() const { return device_->longest_seconds; }
double FakeModel::decode_step_seconds() const { return device_->decode_seconds; }
int64_t FakeModel::most_sequences() const { return device_->most_sequences; }
int64_t FakeModel::logit_rows_read() const { return device_->logit_rows_read; }

FakeModel::Seen FakeModel::see_all(std::span<const int32_t> tokens) const {
  uint64_t state = 0;
  bool poisoned = false;
  const auto query = static_cast<int64_t>(tokens.size()) - 1;
  for (const KvGroup& group : options_.groups) {
    for (int64_t key = 0; key <= query; ++key) {
      if (!visible(key, query, group.window)) continue;
      const int32_t token = tokens[static_cast<size_t>(key)];
      state = see(state, {token, static_cast<int32_t>(key), 0});
      if (token == kPoison) poisoned = true;
    }
  }
  return {.state = state, .poisoned = poisoned};
}

std::vector<float> FakeModel::expected_logits(const std::vector<int32_t>& tokens) const {
  const Seen seen = see_all(tokens);
  std::vector<float> logits(static_cast<size_t>(options_.vocab_size));
  write_logits(seen.state, seen.poisoned, logits);
  return logits;
}

std::vector<float> FakeModel::expected_embedding(const std::vector<int32_t>& tokens) const {
  const auto unit = [](std::vector<float>& values, float eps_of_mean) {
    float squares = 0;
    for (float x : values) squares += x * x;
    const float mean = eps_of_mean > 0 ? squares / static_cast<float>(values.size()) + eps_of_mean : squares;
    for (float& x : values) x /= std::sqrt(mean);
  };
  std::vector<float> mean(kHiddenWidth);
  const size_t first = options_.pooling == Pooling::kMean ? 0 : tokens.size() - 1;
  for (size_t last = first; last < tokens.size(); ++last) {
    const Seen seen = see_all(std::span(tokens).first(last + 1));
    std::vector<float> row(kHiddenWidth);
    write_hidden(seen.state, seen.poisoned, row);
    unit(row, kHiddenEps);
    for (size_t i = 0; i < kHiddenWidth; ++i) {
      mean[i] += row[i] * kHiddenNorm[i] / static_cast<float>(tokens.size() - first);
    }
  }
  unit(mean, 0);
  return mean;
}

std::vector<int32_t> FakeModel::expected(std::vector<int32_t> prompt, int64_t tokens) const {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < tokens; ++i) {
    const std::vector<float> logits = expected_logits(prompt);
    out.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
    prompt.push_back(out.back());
  }
  return out;
}

Collected collect(Generation& generation) {
  Collected all;
  while (auto event = generation.next()) {
    if (auto* token = std::get_if<TokenEvent>(&*event)) {
      all.tokens.push_back(token->token);
      all.text += token->text;
      all.events.push_back(std::move(*token));
    } else if (auto* progress = std::get_if<PromptProgress>(&*event)) {
      all.progress.push_back(*progress);
    } else if (auto* logits = std::get_if<PromptLogits>(&*event)) {
      EXPECT_EQ(logits->position, all.prompt_logits_rows);
      all.prompt_logits_rows += logits->rows;
      all.prompt_logits.insert(all.prompt_logits.end(), logits->logits.begin(), logits->logits.end());
    } else if (auto* embedding = std::get_if<Embedding>(&*event)) {
      EXPECT_TRUE(all.embedding.empty());
      all.embedding = std::move(embedding->values);
    } else if (auto* done = std::get_if<Done>(&*event)) {
      all.text += done->text;
      all.done = std::move(*done);
    } else {
      all.error = std::get<Failed>(*event).error;
    }
  }
  EXPECT_TRUE(generation.finished());
  EXPECT_NE(all.done.has_value(), all.error.has_value());
  return all;
}

}  // namespace hearth
