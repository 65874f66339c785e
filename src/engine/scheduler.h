// Decides what each step computes, runs it and draws the tokens. It is the engine without its thread: every call comes
// from one thread, and step() does one turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "engine/embedding.h"
#include "engine/page_store.h"
#include "engine/plans.h"
#include "engine/sampler.h"
#include "engine/sequence.h"
#include "hearth/engine.h"
#include "hearth/text.h"
#include "memory/kv_cache.h"

namespace hearth {

// What the engine needs of a loaded model. All of it outlives the engine.
struct EngineModel {
  const Graph* graph = nullptr;
  DeviceModel* device = nullptr;
  const Text* text = nullptr;
  std::vector<int64_t> kv_pages;  // for each KV group, as they were allocated
  size_t host_cache_bytes = 0;    // of the host's memory, for pages that the device has no room for
  int64_t vocab_size = 0;         // columns of the logits
  int64_t sequence_tokens = 0;    // the longest sequence
  Pooling pooling = Pooling::kLast;
  std::string identity;  // of all that the content of a KV page depends on
};

// Deterministic mode: prompts are cut at multiples of this many tokens.
inline constexpr int64_t kPrefillGrid = 256;

// While others decode, a chunk of a prompt is made so small that the step takes about this long: it is the gap that a
// long prompt of one user makes in the answers of the others. Where such chunks are too small to be efficient, deep in
// a long prompt, it may be the second. Steps of equal size differ by a third, and nobody is to wait for half a second.
inline constexpr double kMixedStepSeconds = 0.25;
inline constexpr double kLongestMixedStepSeconds = 0.33;
// While a prompt is read, answers keep this part of the speed that they have without it: enough steps of answers alone
// come between the chunks. A prompt that is read alone takes 1 / (1 - share) of its time so.
inline constexpr double kDecodeShare = 0.3;
// A chunk beside which nobody decodes: whoever leaves, or brings a short prompt, waits for its end.
inline constexpr double kLoneStepSeconds = 2;

class Scheduler {
 public:
  // Fails with kUsage on impossible options, or as recording the plans of decode steps does.
  static Result<std::unique_ptr<Scheduler>> create(EngineModel model, const EngineOptions& options);

  // kUsage when the request is impossible. May be called from any thread.
  Result<void> check(const Request& request) const;

  void add(std::unique_ptr<Sequence> sequence);
  // One step. False when there is nothing that could be done now.
  bool step();
  // Ends all sequences with an error: after memory ran out in the middle of a step.
  void fail_all(const Error& error);
  // Ends all sequences.
  void cancel_all();
  void clear_cache() { kv_.clear(); }
  // `progress` is called for each page, since files may be large and disks slow.
  Result<int64_t> save_cache(const std::string& path, const std::function<void()>& progress) const;
  Result<int64_t> restore_cache(const std::string& path, const std::function<void()>& progress);
  EngineStats stats() const;
  int64_t steps() const { return steps_; }
  int64_t step_rows() const { return std::ssize(step_tokens_); }  // of the last one

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  Scheduler(EngineModel model, const EngineOptions& options);

  Result<void> check_embedding(const Request& request) const;
  // Records the plans of all steps that may come: how long that takes, and whether there is memory for them, is no
  // business of the first requests.
  Result<void> record_plans();
  void finish_cancelled();
  void admit();
  // `limit`: the most tokens of a cached prefix that the candidate takes.
  bool fits(const Sequence& candidate, int64_t limit);
  // Gives an empty table the longest cached prefix of at most `limit` tokens.
  int64_t adopt_prefix(Sequence& sequence, int64_t limit, PageTable& table);
  void choose_step();
  // Takes over what others computed of the same prompt since it began: identical requests share one prefill.
  void catch_up(Sequence& sequence);
  int64_t chunk_rows(const Sequence& sequence, int64_t decode_rows) const;
  // Learns from the step how long the next one of its kind takes, and what answers have coming to them.
  void measure_step(double seconds);
  // Makes room for the next `rows` tokens of the sequence; preempts younger ones, at last itself (then false).
  bool reserve(Sequence& sequence, int64_t rows);
  void preempt(Sequence& sequence);
  Bucket assemble();
  // After a plan could not be recorded: takes smaller chunks from now on. False when that is no remedy.
  bool shrink_chunks(const Error& error, Bucket bucket);
  void complete_step();
  void draw(Sequence& sequence);
  Result<int32_t> draw_token(const Sequence& sequence);
  // Another token for one that the constraint does not allow. Ends the sequence when there is none: nullopt.
  std::optional<int32_t> draw_allowed(Sequence& sequence);
  // Copies the row that the next token of the sequence is drawn from into logits_, unless it is there.
  Result<void> read_logits(const Sequence& sequence);
  // Reads what the request wants of the rows of its prompt in this step.
  Result<void> read_prompt(Sequence& sequence, int64_t first_position);
  void deliver_prompt(Sequence& sequence, int64_t first_position);
  void deliver_embedding(Sequence& sequence);
  void deliver_text(Sequence& sequence);
  void deliver_all_text();
  void finish_stopped();

  // Each takes the sequence out of its list and destroys it.
  void finish(Sequence& sequence, FinishReason reason);
  void fail_sequence(Sequence& sequence, Error error);
  void fail_step(const Error& error);
  void remove(Sequence& sequence);
  void keep_prefix(Sequence& sequence);
  // Puts what is there of the prompts that are being read into the prefix tree.
  void share_prefixes();

  EngineModel model_;
  EngineOptions options_;
  int64_t grid_;  // prefixes are reused in multiples of this
  PageStore store_;
  KvCache kv_;
  Plans plans_;
  Sampler sampler_;
  std::optional<Embedder> embedder_;  // none: the graph has no hidden states

  std::vector<SequencePtr> waiting_;  // by id
  std::vector<SequencePtr> running_;  // by id
  bool admission_blocked_ = false;    // until pages come back
  int64_t next_id_ = 0;
  int64_t steps_ = 0;
  int64_t changes_ = 0;  // sequences that ended or were preempted so far
  int64_t max_rows_;     // of one step with a chunk
  bool last_step_was_prefill_ = false;
  bool shortest_prompt_next_ = false;
  double shallow_rows_per_second_ = 0;  // of the last step with the beginning of a prompt; 0: there was none
  double decode_seconds_ = 0;           // of the last step of answers alone
  double decode_answers_ = 0;           // that it had
  double owed_seconds_ = 0;             // of steps of answers alone, before the next chunk

  // The step in progress; kept to keep their memory.
  std::vector<Sequence*> step_;
  Sequence* chunk_ = nullptr;
  std::vector<int32_t> step_tokens_;
  std::vector<StepSequence> step_sequences_;
  std::vector<int32_t> step_logit_rows_;
  std::vector<CandidateRequest> step_requests_;
  Executable* executable_ = nullptr;  // that runs it
  // Of the sequence whose token is being drawn:
  std::optional<Candidates> found_;
  std::vector<float> logits_;      // [vocab]; empty: not read
  std::vector<float> hidden_;      // [logit rows of one sequence, width]
  std::vector<uint64_t> allowed_;  // [vocab] bits
};

}  // namespace hearth
