// The engine: many sequences, one thread that owns the device, requests in and events out.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hearth/error.h"
#include "hearth/grammar.h"
#include "hearth/model.h"
#include "hearth/sampling.h"

namespace hearth {

inline constexpr int64_t kMaxSequences = 64, kMaxPrefillRows = 2048;
// Rows of a prompt that a step reads at least, as far as there are as many, whatever answers are beside it.
inline constexpr int64_t kLeastChunkRows = 16;

struct EngineOptions {
  int64_t max_sequences = 16;  // at the same time, up to kMaxSequences; more requests wait in a queue
  int64_t prefill_rows = 512;  // most prompt tokens in one step, up to kMaxPrefillRows
  bool deterministic = false;  // output bit-equal whatever the batch and the cache history; costs some speed
  bool prefix_cache = true;    // keep pages of finished sequences for later prompts
  // An engine that has something to do and got nothing done for this long has stalled. Longer where steps are slow:
  // eight times what the largest would take at the best pace so far. Nothing stalls before the first step is done: it
  // may have to read the whole file.
  double stall_seconds = std::numeric_limits<double>::infinity();
};

struct Request {
  std::vector<int32_t> prompt;  // not empty
  SamplingOptions sampling;
  int64_t max_tokens = -1;                // -1: until the context is full; 0: only read the prompt
  std::vector<std::string> stop_strings;  // not part of the output
  std::vector<int32_t> stop_tokens;       // beside the model's own ends of generation
  bool ignore_end = false;                // keep going at the model's own ends (benchmarks)
  int32_t top_logprobs = -1;              // -1: none; n: log-probability of each token and of the n best beside it
  bool special_text = false;              // the text of events has the names of control tokens in it (OutputParser)
  Constraint constraint;
  bool prompt_logits = false;  // events carry the logits of every prompt position (evaluation)
  bool embedding = false;      // an event carries the embedding of the prompt; max_tokens must be 0
};

enum class FinishReason { kEnd, kStopString, kStopToken, kLength, kContextFull, kCancelled };

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
};

// One sampled token of the answer; a token that ends it (the model's own end, a stop token) has no event. `text` is
// UTF-8-safe: it may be empty when a character or a possible stop string is incomplete.
struct TokenEvent {
  int32_t token = 0;
  double seconds = 0;  // from submit() until it was drawn
  std::string text;
  std::vector<TokenLogprob> logprobs;  // the token itself first, then the best; of the plain model, before any option
};

// How far the prompt is: tokens computed or found in the cache, of all.
struct PromptProgress {
  int64_t done = 0;
  int64_t total = 0;
};

// What ended the part of a prompt that was found in the prefix cache.
enum class CacheMiss : uint8_t {
  kNone,     // nothing: all that whole pages can give was there
  kNew,      // nothing that is kept begins like this
  kLonger,   // it goes on where what is kept ends
  kChanged,  // what is kept goes on with other tokens
  kEvicted,  // it was there and gave way to others
  kCleared,  // it was there before the cache was cleared
  kUnused,   // the cache is off, or the request wants logits or hidden states of its whole prompt
};

// Logits [rows, vocab] of consecutive prompt positions from `position` on, when the request asked for them.
struct PromptLogits {
  int64_t position = 0;
  int64_t rows = 0;
  std::vector<float> logits;
};

// The embedding of the prompt, when the request asked for it: the hidden state of its last token, or the mean of all
// where the model's metadata say so, with a length of 1.
struct Embedding {
  std::vector<float> values;  // [ModelInfo::embedding_width]
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;    // of the prompt, found in the prefix tree, also what others computed of it meanwhile
  int64_t returned_tokens = 0;  // of those, and of what came back after a preemption: their KV was in host memory
  int64_t computed_tokens = 0;  // of the prompt; what was computed again after a preemption counts again
  CacheMiss miss = CacheMiss::kNone;  // why no more was cached when the prompt began
  int64_t miss_position = 0;          // first token of the prompt that was not found
  int64_t generated_tokens = 0;       // with the one that ended it
  double queue_seconds = 0;
  double prefill_seconds = 0;  // from the first step of the prompt to the first token, or to the end if none is wanted
  double decode_seconds = 0;   // from the first token to the last
};

struct Done {
  FinishReason reason = FinishReason::kEnd;
  std::string text;         // what was held back and is not part of a stop string
  int64_t stop_index = -1;  // of Request::stop_strings: the one that was found (kStopString)
  Usage usage;
};

struct Failed {
  Error error;
};

using Event = std::variant<PromptProgress, PromptLogits, Embedding, TokenEvent, Done, Failed>;

// The events of one request, for one reader at a time. Destroying it cancels the request. A request whose PromptLogits
// are not read pauses after a few; all other events wait in memory.
class Generation {
 public:
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;
  ~Generation();

  // Blocks for the next event; nullopt after Done or Failed was returned. While the engine is stalled there is one
  // event more: Failed with kStalled, which cancels the request.
  std::optional<Event> next();
  // The same, at most `seconds` (0 or less: not at all); nullopt also when the time is over (finished() tells which).
  std::optional<Event> next_within(double seconds);
  bool finished() const;
  // Takes effect within one step; Done with kCancelled follows, unless the end was on its way. Safe from any thread,
  // but not from a signal handler.
  void cancel();

  struct State;
  explicit Generation(std::shared_ptr<State> state);

 private:
  std::shared_ptr<State> state_;
};

struct EngineStats {
  int64_t active_sequences = 0;
  int64_t queued_requests = 0;
  int64_t pages_total = 0;   // over all KV groups
  int64_t pages_in_use = 0;  // by live sequences
  int64_t pages_cached = 0;  // by the prefix tree alone
  // Beside them, in host memory: pages that the prefix tree may have there, and has.
  int64_t host_pages_total = 0;
  int64_t host_pages_cached = 0;
  size_t host_bytes_total = 0;
  size_t host_bytes_cached = 0;
  size_t tree_bytes = 0;  // of the prefix tree itself, in host memory
  int64_t steps = 0;
  // Since the engine last got something done (a step, a page of a cache file) while there is something to do; else 0.
  double quiet_seconds = 0;
  double longest_step_seconds = 0;
  bool stalled = false;   // that is too long (EngineOptions::stall_seconds)
  const char* task = "";  // what the engine does or did last: "run a step", "save the cache", ...
};

class Engine {
 public:
  // Fails with kUsage on impossible options and when the model has an engine already. Destroying the engine cancels
  // what it still runs, and waits for the end of the step: of one that has stalled for ever.
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<Model> model, const EngineOptions& options);
  virtual ~Engine() = default;

  // Checks the request (kUsage: a prompt longer than the context, a bad token, an impossible option; kUnsupported: an
  // embedding, and the model makes none or in a way that Hearth does not know) and queues it. Safe from any thread.
  // This and all below but stats() fail with kStalled when the engine is stalled, and after that it goes on without
  // what they asked for.
  virtual Result<Generation> submit(Request request) = 0;
  virtual EngineStats stats() const = 0;
  // Drops every cached page that no live sequence uses.
  virtual Result<void> clear_cache() = 0;
  // Writes what is cached to a file, and brings it back, between two steps. Only a file of the same model, KV type and
  // backend is taken (kInvalidInput); what is cached already stays, and what has no room is left out. Return the number
  // of cached tokens that were written or brought back.
  virtual Result<int64_t> save_cache(const std::string& path) = 0;
  virtual Result<int64_t> restore_cache(const std::string& path) = 0;
};

}  // namespace hearth
