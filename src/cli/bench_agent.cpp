// hearth bench agent: replays the sessions of a trace against a server and measures what its client would feel.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>

#include "cli/agent/protocol.h"
#include "cli/agent/served_model.h"
#include "cli/agent/trace.h"
#include "cli/command.h"
#include "cli/flags.h"

namespace hearth::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct AgentFlags {
  std::string trace;
  ServerFlags server;
  std::string api = "openai";
  int64_t copies = 1;
  double time_scale = 1;
  double timeout_seconds = 600;
  bool ignore_eos = false;
  bool check_cache = false;
  bool json = false;
};

// What a prefix cache of pages of 16 tokens may compute beyond what is new.
constexpr int64_t kCacheSlack = 16;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// What came of one request.
struct Outcome {
  int64_t line = 0;
  std::string session;
  double sent_seconds = 0;    // after the start of the replay
  double first_seconds = 0;   // from sending to the first token
  double total_seconds = 0;   // from sending to the end
  double decode_seconds = 0;  // from the first piece with tokens to the last
  double gap_seconds = 0;     // the longest time between two pieces with tokens
  int64_t pieces = 0;
  TokenCounts counts;
  int64_t new_tokens = -1;  // of the prompt, beyond the longest beginning that was processed before; -1: not known
  std::string error;

  int64_t generated() const { return counts.generated >= 0 ? counts.generated : pieces; }
  // Tokens per second after the first; 0 when nothing can be said.
  double rate() const {
    return generated() > 1 && decode_seconds > 0 ? static_cast<double>(generated() - 1) / decode_seconds : 0;
  }
  // Tokens that were computed although they had been before; 0 when nothing can be said.
  int64_t computed_again() const {
    if (new_tokens < 0 || counts.prompt < 0 || counts.cached < 0) return 0;
    return std::max<int64_t>(0, counts.prompt - counts.cached - new_tokens - kCacheSlack);
  }
};

// Finds the new tokens of each request: its prompt beyond the longest beginning that it shares with a prompt that was
// read, or an answer that had ended, when it was sent.
void find_new_tokens(std::vector<Outcome>& outcomes) {
  for (Outcome& outcome : outcomes) {
    const std::vector<int32_t>& prompt = outcome.counts.prompt_ids;
    if (prompt.empty() || !outcome.error.empty()) continue;
    int64_t longest = 0;
    for (const Outcome& other : outcomes) {
      if (other.pieces == 0 || other.sent_seconds + other.first_seconds > outcome.sent_seconds) continue;
      const std::vector<int32_t>& before = other.counts.prompt_ids;
      const auto common = [](std::span<const int32_t> a, std::span<const int32_t> b) {
        return std::ranges::mismatch(a, b).in1 - a.begin();
      };
      int64_t shared = common(prompt, before);
      // The last token of an answer was sampled and not processed.
      const std::vector<int32_t>& answer = other.counts.answer_ids;
      if (shared == std::ssize(before) && !answer.empty() &&
          other.sent_seconds + other.total_seconds <= outcome.sent_seconds) {
        shared += common(std::span(prompt).subspan(before.size()), std::span(answer).first(answer.size() - 1));
      }
      longest = std::max(longest, shared);
    }
    outcome.new_tokens = std::ssize(prompt) - longest;
  }
}

class Replay {
 public:
  Replay(const AgentFlags& flags, const Trace& trace, const server::HttpClient& client, std::string model)
      : flags_(flags),
        trace_(trace),
        client_(client),
        protocol_(flags.api == "openai" ? kOpenAi : kAnthropic),
        model_(std::move(model)),
        answered_(trace.sessions.size() * static_cast<size_t>(flags.copies)) {}

  // In the order in which the answers ended. Fewer than there are requests when failure() is set.
  std::vector<Outcome> run() {
    start_ = Clock::now();
    std::vector<std::thread> threads;
    for (int64_t copy = 0; copy < flags_.copies; ++copy) {
      for (int64_t session = 0; session < std::ssize(trace_.sessions); ++session) {
        threads.emplace_back([=, this] {
          Result<void> ok = guarded("replaying a session", [&] { return play(copy, session); });
          if (!ok) give_up(std::move(ok).error());
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
    progress_.clear();
    return std::move(outcomes_);
  }

  // Why the replay was given up.
  const std::optional<Error>& failure() const { return failure_; }

  double seconds() const { return seconds_between(start_, Clock::now()); }

 private:
  int64_t& answered(int64_t copy, int64_t session) {
    return answered_[static_cast<size_t>(copy * std::ssize(trace_.sessions) + session)];
  }

  void give_up(Error error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    changed_.notify_all();
  }

  // False when the replay was given up.
  bool wait_for_turn(const TraceRequest& request, int64_t copy, Clock::time_point previous) {
    const auto after = [&](double s) { return server::seconds(s * flags_.time_scale); };
    const Clock::time_point due = std::max(start_ + after(request.at_seconds), previous + after(request.think_seconds));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return failure_ || std::ranges::all_of(request.wait_for, [&](const auto& other) {
               return answered(copy, other.first) >= other.second;
             });
    });
    changed_.wait_until(lock, due, [&] { return failure_.has_value(); });
    return !failure_;
  }

  Result<void> play(int64_t copy, int64_t session) {
    History history;
    Clock::time_point previous = start_;
    for (const TraceRequest& request : trace_.requests) {
      if (request.session != session) continue;
      HEARTH_TRY(edit(history, request));
      if (!wait_for_turn(request, copy, previous)) return {};
      Outcome outcome = send(history, request, copy);
      outcome.line = request.line;
      outcome.session = trace_.sessions[static_cast<size_t>(session)];
      if (copy > 0) outcome.session += fmt::format(" (copy {})", copy);
      previous = Clock::now();
      if (!request.answer.is_null()) history.messages.push_back(request.answer);
      const std::lock_guard lock(mutex_);
      ++answered(copy, session);
      outcomes_.push_back(std::move(outcome));
      progress_.show(
          fmt::format("{} of {} requests answered", outcomes_.size(), std::ssize(trace_.requests) * flags_.copies));
      changed_.notify_all();
    }
    return {};
  }

  // A copy is another user of the same client: it shares the system prompt, and its conversation begins differently.
  static void mark_copy(Json& body, int64_t copy) {
    const std::string mark = fmt::format("(user {}) ", copy);
    for (Json& message : body["messages"]) {
      if (message["role"] != "user" || !message.contains("content")) continue;
      Json& content = message["content"];
      if (content.is_string()) {
        content = mark + content.get<std::string>();
      } else if (content.is_array()) {
        content.insert(content.begin(), Json{{"type", "text"}, {"text", mark}});
      }
      return;
    }
  }

  Outcome send(const History& history, const TraceRequest& request, int64_t copy) {
    Json body = protocol_.body(history, model_, request.max_tokens);
    if (copy > 0) mark_copy(body, copy);
    if (flags_.ignore_eos) body["ignore_eos"] = true;
    if (flags_.check_cache) body["return_token_ids"] = true;
    body.update(request.extra);
    const std::string text = server::dump(body);

    Outcome outcome;
    const std::unique_ptr<AnswerStream> stream = protocol_.stream();
    server::EventReader events;
    Result<void> followed;
    bool done = false;
    const Clock::time_point sent = Clock::now();
    Clock::time_point first, last;
    const auto take = [&](std::string_view type, std::string_view data) {
      const Result<AnswerStream::Step> step = stream->event(type, data);
      if (!step) {
        followed = step.error();
        return false;
      }
      if (step->tokens) {
        const Clock::time_point now = Clock::now();
        if (outcome.pieces++ == 0)
          first = now;
        else
          outcome.gap_seconds = std::max(outcome.gap_seconds, seconds_between(last, now));
        last = now;
      }
      done |= step->done;
      return !done;
    };
    const Result<server::HttpReply> reply = client_.post(protocol_.path, text, [&](std::string_view piece) {
      if (Result<void> ok = events.add(piece, take); !ok) followed = std::move(ok);
      return followed && !done;
    });
    outcome.sent_seconds = seconds_between(start_, sent);
    outcome.total_seconds = seconds_between(sent, Clock::now());
    outcome.counts = stream->counts();
    if (outcome.pieces > 0) {
      outcome.first_seconds = seconds_between(sent, first);
      outcome.decode_seconds = seconds_between(first, last);
    }
    if (!followed) {
      outcome.error = followed.error().message;
    } else if (!reply) {
      outcome.error = reply.error().message;
      // Nobody is there any longer: nothing that follows would measure anything.
      if (reply.error().code == ErrorCode::kNotFound) give_up(reply.error());
    } else if (!reply->good()) {
      outcome.error = error_text(*reply);
    } else if (!stream->finished()) {
      outcome.error = "the stream ended before the answer did";
    }
    return outcome;
  }

  const AgentFlags& flags_;
  const Trace& trace_;
  const server::HttpClient& client_;
  const AgentProtocol& protocol_;
  const std::string model_;
  Clock::time_point start_;

  std::mutex mutex_;
  std::condition_variable changed_;  // a request was answered, or all is given up
  std::vector<int64_t> answered_;    // requests, of each session of each copy
  std::vector<Outcome> outcomes_;
  std::optional<Error> failure_;
  ProgressLine progress_;
};

// The value that a share of the others does not exceed; 0 of none.
double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(rank) - 1, 0, std::ssize(values) - 1))];
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Summary {
  int64_t requests = 0, errors = 0;
  int64_t empty = 0;  // answers that ended at once: they have no first token
  double seconds = 0;
  std::vector<double> first, rates;  // of the answers without an error
  int64_t decoded = 0;               // tokens after the first, of the answers that have a rate
  double decode_seconds = 0;
  double gap_seconds = 0;
  int64_t gap_line = 0;
  // Of the requests for which the server says it.
  int64_t prompt = 0, cached = 0, generated = 0;
  int64_t counted = 0;        // requests whose prompt is known
  int64_t cache_counted = 0;  // requests whose cached tokens are known
  int64_t fresh = 0;          // tokens that were new
  int64_t fresh_counted = 0;  // requests of which that is known
  int64_t again = 0;          // tokens computed again, of the request that has most
  int64_t again_line = 0;

  Summary(const std::vector<Outcome>& outcomes, double wall_seconds)
      : requests(std::ssize(outcomes)), seconds(wall_seconds) {
    for (const Outcome& outcome : outcomes) {
      if (!outcome.error.empty()) {
        ++errors;
        continue;
      }
      if (outcome.pieces == 0) {
        ++empty;
      } else {
        first.push_back(outcome.first_seconds);
      }
      if (outcome.rate() > 0) {
        rates.push_back(outcome.rate());
        decoded += outcome.generated() - 1, decode_seconds += outcome.decode_seconds;
      }
      if (outcome.gap_seconds > gap_seconds) gap_seconds = outcome.gap_seconds, gap_line = outcome.line;
      generated += outcome.generated();
      if (outcome.counts.prompt >= 0) ++counted, prompt += outcome.counts.prompt;
      if (outcome.counts.cached >= 0) ++cache_counted, cached += outcome.counts.cached;
      if (outcome.new_tokens >= 0) ++fresh_counted, fresh += outcome.new_tokens;
      if (outcome.computed_again() > again) again = outcome.computed_again(), again_line = outcome.line;
    }
  }

  // Tokens per second of decoding, over all answers: the mean of their rates would be that of a short answer which
  // arrived in one piece.
  double mean_rate() const { return decoded > 0 ? static_cast<double>(decoded) / decode_seconds : 0; }
};

Json json_of(const AgentFlags& flags, const ServedModel& model, const Summary& s,
             const std::vector<Outcome>& outcomes) {
  const auto known = [](bool is, int64_t value) { return is ? Json(value) : Json(); };
  const bool cache_known = s.cache_counted > 0;
  Json document = {
      {"trace", flags.trace},
      {"url", flags.server.url},
      {"api", flags.api},
      {"model", model.id},
      {"copies", flags.copies},
      {"time_scale", flags.time_scale},
      {"requests", s.requests},
      {"errors", s.errors},
      {"empty_answers", s.empty},
      {"seconds", s.seconds},
      {"ttft_seconds", {{"mean", mean(s.first)}, {"p95", quantile(s.first, 0.95)}, {"max", quantile(s.first, 1)}}},
      {"decode_tokens_per_second", {{"mean", s.mean_rate()}, {"p5", quantile(s.rates, 0.05)}}},
      {"worst_gap_seconds", s.gap_seconds},
      {"tokens",
       {{"prompt", known(s.counted > 0, s.prompt)},
        {"cached", known(cache_known, s.cached)},
        {"computed", known(cache_known, s.prompt - s.cached)},
        {"generated", s.generated}}},
      {"results", Json::array()}};
  if (flags.check_cache) {
    document["tokens"]["new"] = known(s.fresh_counted > 0, s.fresh);
    document["tokens"]["most_computed_again"] = known(s.fresh_counted > 0, s.again);
  }
  for (const Outcome& o : outcomes) {
    Json row = {{"line", o.line},
                {"session", o.session},
                {"sent_seconds", o.sent_seconds},
                {"ttft_seconds", o.pieces > 0 ? Json(o.first_seconds) : Json()},
                {"total_seconds", o.total_seconds},
                {"decode_tokens_per_second", o.rate() > 0 ? Json(o.rate()) : Json()},
                {"worst_gap_seconds", o.gap_seconds},
                {"prompt_tokens", known(o.counts.prompt >= 0, o.counts.prompt)},
                {"cached_tokens", known(o.counts.cached >= 0, o.counts.cached)},
                {"generated_tokens", o.generated()}};
    if (flags.check_cache) row["new_tokens"] = known(o.new_tokens >= 0, o.new_tokens);
    if (!o.error.empty()) row["error"] = o.error;
    document["results"].push_back(std::move(row));
  }
  return document;
}

void print_summary(const AgentFlags& flags, const ServedModel& model, const Trace& trace, const Summary& s) {
  print("{}: {} requests of {} sessions, {} at {} ({}), {:.1f} s\n\n", flags.trace, s.requests,
        std::ssize(trace.sessions) * flags.copies, model.id, flags.server.url, flags.api, s.seconds);
  print("{:<28} {:>10} {:>10} {:>10}\n", "", "mean", "p95", "max");
  print("{:<28} {:>10.3f} {:>10.3f} {:>10.3f}\n", "time to first token, s", mean(s.first), quantile(s.first, 0.95),
        quantile(s.first, 1));
  print("{:<28} {:>10} {:>10}\n", "", "mean", "p5");
  print("{:<28} {:>10.2f} {:>10.2f}\n", "decode, tok/s", s.mean_rate(), quantile(s.rates, 0.05));
  print("{:<28} {:>10.3f}", "worst gap between tokens, s", s.gap_seconds);
  print("{}\n", s.gap_line > 0 ? fmt::format(" (line {})", s.gap_line) : "");
  print("\n{:<28} {:>10}\n", "prompt tokens", s.counted > 0 ? fmt::format("{}", s.prompt) : "not told");
  if (s.cache_counted > 0) {
    const double share = s.prompt > 0 ? 100 * static_cast<double>(s.cached) / static_cast<double>(s.prompt) : 0;
    print("{:<28} {:>10} ({:.1f} %)\n", "  cached", s.cached, share);
    print("{:<28} {:>10}\n", "  computed", s.prompt - s.cached);
    if (s.fresh_counted > 0) {
      print("{:<28} {:>10}\n", "  new", s.fresh);
      print("{:<28} {:>10}", "most computed again", s.again);
      print("{}\n", s.again > 0 ? fmt::format(" (line {})", s.again_line) : "");
    }
  } else {
    print("{:<28} {:>10}\n", "  cached", "not told");
  }
  print("{:<28} {:>10}\n", "generated tokens", s.generated);
  if (s.empty > 0) print("{:<28} {:>10}\n", "answers without tokens", s.empty);
  print("{:<28} {:>10}\n", "errors", s.errors);
}

Result<void> check_cache(const std::vector<Outcome>& outcomes, const Summary& s) {
  if (s.fresh_counted < s.requests - s.empty || s.cache_counted < s.requests - s.empty) {
    return fail(ErrorCode::kUnsupported,
                "--check-cache: the server does not tell cached tokens, or the ids of its tokens (return_token_ids)");
  }
  if (s.again == 0) return {};
  const auto bad = std::ranges::count_if(outcomes, [](const Outcome& o) { return o.computed_again() > 0; });
  return fail(ErrorCode::kInternal,
              "--check-cache: {} of {} requests computed more than their new tokens and {}; the worst was line {}: {} "
              "more",
              bad, s.requests, kCacheSlack, s.again_line, s.again);
}

Result<void> bench_agent(const AgentFlags& flags) {
  if (flags.check_cache && flags.api != "openai") {
    return fail(ErrorCode::kUsage, "--check-cache needs --api openai: the others have no ids of tokens");
  }
  HEARTH_ASSIGN(const std::string text, read_text(flags.trace));
  HEARTH_ASSIGN(const Trace trace, read_trace(flags.trace, text));
  constexpr int64_t kMostThreads = 1000;
  if (std::ssize(trace.sessions) * flags.copies > kMostThreads) {
    return fail(ErrorCode::kUsage, "{} sessions at the same time were asked for; {} is the most",
                std::ssize(trace.sessions) * flags.copies, kMostThreads);
  }
  HEARTH_ASSIGN(const server::HttpClient client, client_for(flags.server, {.idle_seconds = flags.timeout_seconds}));
  ServedModel model;
  HEARTH_ASSIGN(model, ask_for_model(client, flags.server.model));
  Replay replay(flags, trace, client, model.id);
  std::vector<Outcome> outcomes = replay.run();
  if (flags.check_cache) find_new_tokens(outcomes);
  const Summary summary(outcomes, replay.seconds());
  if (flags.json) {
    print("{}\n", json_of(flags, model, summary, outcomes).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print_summary(flags, model, trace, summary);
  }
  const int64_t unsent = std::ssize(trace.requests) * flags.copies - summary.requests;
  if (summary.errors == 0 && unsent > 0 && replay.failure()) return *replay.failure();
  if (summary.errors == 0 && flags.check_cache) return check_cache(outcomes, summary);
  if (summary.errors == 0) return {};
  const auto failed = std::ranges::find_if(outcomes, [](const Outcome& o) { return !o.error.empty(); });
  return fail(ErrorCode::kIo, "{} of {} requests failed{}; the first was line {}: {}", summary.errors, summary.requests,
              unsent > 0 ? fmt::format(" and {} were not sent", unsent) : "", failed->line, failed->error);
}

}  // namespace

void add_bench_agent(CLI::App& bench, Body& chosen) {
  auto flags = std::make_shared<AgentFlags>();
  CLI::App* command = add_command(bench, "agent", "Replay recorded agent sessions against a server", chosen,
                                  [flags] { return bench_agent(*flags); });
  command->add_option("TRACE", flags->trace, "JSON lines as docs/agent-traces.md describes; -: stdin")->required();
  add_server_flags(*command, flags->server);
  command->add_option("--api", flags->api, "Protocol to speak: openai, anthropic")
      ->check(CLI::IsMember({"openai", "anthropic"}));
  command
      ->add_option("--concurrency-scale", flags->copies,
                   "Replay every session this many times at once, as that many users would")
      ->transform(whole_number<int64_t>(1, 1000));
  command->add_option("--time-scale", flags->time_scale, "Multiplies the trace's pauses; 0: none")
      ->transform(number())
      ->check(CLI::Range(0.0, 1000.0));
  command->add_option("--timeout", flags->timeout_seconds, "Seconds without a byte after which a request has failed")
      ->transform(number())
      ->check(CLI::Range(0.1, 86400.0));
  command->add_flag("--ignore-eos", flags->ignore_eos,
                    "Ask for max_tokens tokens whatever the model wants (Hearth, llama.cpp, vLLM)");
  command->add_flag("--check-cache", flags->check_cache,
                    "Fail when a request computes more than what is new in its prompt, and 16 tokens (Hearth, vLLM)");
  command->add_flag("--json", flags->json, "Print one JSON object, with every request");
}

}  // namespace hearth::cli
