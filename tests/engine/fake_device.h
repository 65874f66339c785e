// A device whose logits and hidden states are functions of the tokens that a sequence sees in its own KV pages: a wrong
// page, position, length, rollback or reuse of a prefix changes the output. It checks what an engine promises, computes
// after launch() returned and can be told to fail.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "engine/scheduler.h"
#include "hearth/text.h"

namespace hearth {

struct FakeOptions {
  int64_t vocab_size = 61;
  std::vector<KvGroup> groups = {{.layers = 1, .kv_heads = 1, .head_dim = 1}};
  std::vector<int64_t> pages = {64};
  int64_t host_pages = 0;  // of each group, where all have as many pages
  int64_t sequence_tokens = 512;
  // Prompts and answers are computed by different kernels: what a page holds depends on which one wrote it, and the
  // logits on all of it. Only an engine that keeps them apart gives the same output whatever the schedule.
  bool kernels_differ = false;
  uint64_t fault = 0;  // anything else: wrong logits
  double step_seconds = 0;
  double row_seconds = 0;   // and for each row
  double key_seconds = 0;   // and for each token that a row sees
  double page_seconds = 0;  // to read a page
  bool candidates = false;  // the device finds them
  bool hidden = true;       // the graph has hidden states
  Pooling pooling = Pooling::kLast;
  bool own_thread = false;  // compute between launch() and wait() on another thread; else in wait()
};

// Tokens with a meaning to the device or to the text.
inline constexpr int32_t kPoison = 60;     // logits of a sequence that sees it are NaN
inline constexpr int32_t kEndToken = 59;   // ends generation
inline constexpr int32_t kHalfToken = 58;  // half of a character

class FakeDevice;

// A model of a fake device and a fake text, as the engine wants it.
class FakeModel {
 public:
  explicit FakeModel(const FakeOptions& options = {});
  ~FakeModel();

  EngineModel engine_model() const;
  // The next step fails in launch(), or in wait().
  void fail_next_launch(ErrorCode code);
  void fail_next_wait(ErrorCode code);
  // After so many pages were copied, one is not.
  void fail_copy_after(int64_t pages);
  // No step ends between the two.
  void hang();
  void release();
  // Recording a prefill bucket of more than that many rows fails with kOutOfMemory.
  void limit_recorded_rows(int64_t rows);
  // All rows that were computed, and those of the largest step; how many steps mixed prompt chunk and answers.
  int64_t rows_computed() const;
  int64_t largest_step() const;
  int64_t largest_decode_step() const;  // of those that ran in a decode plan
  // What the longest step slept for, and all steps in which every sequence had one row.
  double longest_step_seconds() const;
  double decode_step_seconds() const;
  int64_t most_sequences() const;
  int64_t logit_rows_read() const;
  // What a sequence alone must generate greedily after `prompt`, computed without an engine.
  std::vector<int32_t> expected(std::vector<int32_t> prompt, int64_t tokens) const;
  std::vector<float> expected_logits(const std::vector<int32_t>& tokens) const;
  std::vector<float> expected_embedding(const std::vector<int32_t>& tokens) const;

 private:
  // What the last of the tokens sees.
  struct Seen {
    uint64_t state = 0;
    bool poisoned = false;
  };
  Seen see_all(std::span<const int32_t> tokens) const;

  FakeOptions options_;
  TensorEntry norm_;
  Graph graph_;
  std::unique_ptr<FakeDevice> device_;
  std::unique_ptr<Text> text_;
};

// Reads all events.
struct Collected {
  std::vector<int32_t> tokens;
  std::string text;
  std::vector<TokenEvent> events;
  std::vector<PromptProgress> progress;
  std::vector<float> prompt_logits;
  int64_t prompt_logits_rows = 0;
  std::vector<float> embedding;
  std::optional<Done> done;
  std::optional<Error> error;
};
Collected collect(Generation& generation);

}  // namespace hearth
