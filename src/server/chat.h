// The one kind of request and the one stream of events that every protocol translates to and from.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/json.h"
#include "server/models.h"

namespace hearth::server {

// ---- what is asked ----

// What was not asked for keeps the model's default.
struct SamplingRequest {
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty, presence_penalty, frequency_penalty,
      dry_multiplier, dry_base, xtc_probability, xtc_threshold;
  std::optional<int64_t> top_k, penalty_last_n, dry_allowed_length, dry_last_n;
  std::vector<std::string> dry_breakers;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::optional<uint64_t> seed;  // none: random
};

// What an answer may be, whatever it answers.
struct AnswerLimits {
  SamplingRequest sampling;
  std::vector<std::string> stop;
  std::optional<int64_t> max_tokens;  // of each answer, reasoning included; none: until the context is full
  int64_t n = 1;                      // answers; the i-th draws with seed + i
  std::optional<int64_t> top_logprobs;
  std::optional<GrammarSource> format;
  bool ignore_end = false;
  std::function<bool()> wanted;  // false: nobody waits for the answer any longer; none: somebody does
};
inline constexpr double kThinkingShare = 0.5;
inline constexpr int64_t kMaxAnswers = 16;
inline constexpr int64_t kMaxTopLogprobs = 100;
inline constexpr size_t kMaxStopStrings = 64;

struct ToolChoice {
  enum class Kind : uint8_t { kAuto, kNone, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::vector<std::string> names;  // of the functions that may be called; empty: all. kNamed: the one that must be
};

struct ChatRequest {
  Json messages;         // in the form of the OpenAI chat protocol
  Json tools = nullptr;  // likewise, a list of {"type": "function", "function": {...}}; or null
  ToolChoice tool_choice;
  bool parallel_tool_calls = true;  // false: calls after the first are dropped
  AnswerLimits limits;
  std::optional<bool> thinking;            // none: the template's own default
  std::optional<int64_t> thinking_budget;  // tokens; none: kThinkingShare of what the answer may have
  Json template_variables = nullptr;       // further variables of the chat template, or null
  std::vector<int32_t> context;            // tokens in front of the prompt: a conversation that was rendered before
};

// Text goes on from prompts of tokens; no template, no reasoning, no calls.
struct CompletionRequest {
  std::vector<std::vector<int32_t>> prompts;  // at least one; each gets limits.n answers
  AnswerLimits limits;
  bool prompt_logprobs = false;  // the tokens of prompts are scored too (PromptScores)
};

// ---- what comes back ----

struct CallStart {
  int32_t index = 0;  // 0, 1, ... within one answer
  std::string id;     // "call_...", or what the model wrote
  std::string name;
};

struct TokenScore {
  int32_t token = 0;
  std::string bytes;  // of the token in the text; may be part of a character
  float logprob = 0;
};

// One token of the text, in front of the TextDelta it is part of.
struct TokenScores {
  TokenScore token;
  std::vector<TokenScore> best;
};

// The prompt's tokens from its second on, once, before everything else.
struct PromptScores {
  std::vector<TokenScores> tokens;
};

enum class EndReason : uint8_t {
  kStop,          // the model ended
  kStopSequence,  // a stop string
  kToolCalls,     // the model ended after at least one whole call
  kLength,        // max_tokens or the context; also an answer that ended inside of a call
  kCancelled,     // the client went away, or the server stops; run() returns an error then
};

struct AnswerUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t returned_tokens = 0;  // whose pages came back from host memory
  int64_t computed_tokens = 0;  // of the prompt, also when nobody waited for its end
  CacheMiss miss = CacheMiss::kNone;
  int64_t miss_position = 0;
  int64_t generated_tokens = 0;  // all, with reasoning and the one that ended it
  int64_t reasoning_tokens = 0;
  int64_t thinking_budget = -1;  // the most that those may be; -1: the model does not reason
  double queue_seconds = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double first_token_seconds = -1;  // from the start of the request; -1: none came
};

struct AnswerDone {
  EndReason reason = EndReason::kStop;
  std::string stop_sequence;    // kStopSequence
  std::vector<int32_t> tokens;  // of the answer, with markers that were put in, without the one that ended it
  AnswerUsage usage;
};

// In the order in which they come. Of calls: CallStart, any number of ToolArgumentsDelta, ToolCallEnd, before the next
// CallStart. AnswerDone is the last of each answer.
using ChatEvent = std::variant<PromptProgress, PromptScores, ReasoningDelta, TextDelta, CallStart, ToolArgumentsDelta,
                               ToolCallEnd, TokenScores, AnswerDone>;

// Who hears of it. Both are called on the thread of ChatRun::run().
class ChatSink {
 public:
  virtual ~ChatSink() = default;
  // `answer` counts over all prompts: with n answers to each, the i-th to prompt p is p * n + i.
  virtual void event(int64_t answer, const ChatEvent& event) = 0;
  // Called at least every 100 ms, whatever the engine does: the place to send what keeps the client waiting. False:
  // nobody listens any longer, and the run ends.
  virtual bool alive() = 0;
};

// ---- how it runs ----

// A request that was checked, rendered and queued. Destroying it cancels what still runs.
//
//  - A leading system text that begins with "x-anthropic-billing-header" is dropped: it differs from request to request
//    and would make every prompt a new one.
//  - Images and other parts that are not text are refused in messages of the user. In others they are named to the
//    model (named_part()): an error would come again with every request that has them in its history.
//  - With tool choice `none` the model does not see the tools; with `required` or `named` a grammar makes it call.
//  - A choice of some functions leaves all tools in the prompt, so that the cache has it whatever the choice is: the
//    grammar holds calls to them. Where the choice is `auto` and no marker tells that a call begins, the others are
//    left out of the prompt.
//  - Reasoning beyond its budget is ended by the model's own closing marker, and the answer follows.
//  - Several prompts run side by side, as many as the engine's steps take, in places that are taken once for all.
class ChatRun {
 public:
  static Answer<std::unique_ptr<ChatRun>> chat(std::shared_ptr<ServedModel> model, ChatRequest request);
  static Answer<std::unique_ptr<ChatRun>> completion(std::shared_ptr<ServedModel> model, CompletionRequest request);
  ~ChatRun();

  const ServedModel& model() const;
  const std::vector<int32_t>& prompt() const;  // the first

  // Runs to the end of all answers. An error ends them all, after whatever was said before. When sink.alive() says no,
  // the generations are cancelled, AnswerDone{kCancelled} follows for each that had not ended, and the error says that
  // the answer was cut off (kUnavailable): a stream ends with it, since nobody may take that for a whole answer.
  Answer<void> run(ChatSink& sink);

  // Over all answers, what is known so far: sums of tokens, the longest of times.
  AnswerUsage usage() const;

 private:
  struct Impl;
  explicit ChatRun(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Refuses a prompt that the context does not take (kContextLength); `max_tokens` as in Request, `param` is the field
// that it came from.
Answer<void> check_length(int64_t prompt_tokens, int64_t max_tokens, const ServedModel& model,
                          const std::string& param = "messages");
// Why nobody gets an answer whose client left, or when the server stops.
ApiError cut_off();
// What the engine says last of a generation that was cancelled: within a step, and not after the deadline.
std::optional<Done> last_words(Generation& generation, std::chrono::steady_clock::time_point deadline);
inline constexpr std::chrono::seconds kLastWords{2};
// Adds what one answer took, and one to the counter of how it ended.
void count(ModelCounters& counters, std::atomic<int64_t>& kind, const AnswerUsage& usage);

// What the model reads in place of a part of that type.
std::string named_part(std::string_view type, std::string_view about = "this server takes text only");

// The prompt that chat() would run.
Answer<Prompt> render_chat(const ServedModel& model, ChatRequest request);

// "call_" and the like with 24 random letters and digits behind it.
std::string random_id(std::string_view prefix);

// One answer in full, for those who do not stream.
struct WholeAnswer {
  struct Call {
    std::string id, name, arguments;
  };
  std::string reasoning;
  std::string text;
  std::vector<Call> calls;
  std::vector<TokenScores> scores;
  std::vector<TokenScores> prompt_scores;
  AnswerDone done;
  void add(const ChatEvent& event);
};

}  // namespace hearth::server
