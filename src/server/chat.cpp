#include "server/chat.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace hearth::server {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::atomic<int64_t>& add_seconds(std::atomic<int64_t>& sum, double seconds) {
  sum += static_cast<int64_t>(std::llround(seconds * 1e6));
  return sum;
}

// ---- conversation ----

constexpr std::string_view kBillingHeader = "x-anthropic-billing-header";

// Drops the line that begins with the billing header from the first message if that is the system's, and what is empty
// without it.
void drop_billing_header(Json& messages) {
  if (messages.empty() || !messages[0].is_object()) return;
  Json& first = messages[0];
  if (!first.contains("content") || (first.value("role", Json()) != "system" && first["role"] != "developer")) return;
  Json& content = first["content"];
  const bool in_part = content.is_array() && !content.empty() && content[0].is_object() && content[0].contains("text");
  Json& text = in_part ? content[0]["text"] : content.is_array() && !content.empty() ? content[0] : content;
  if (!text.is_string() || !text.get_ref<const std::string&>().starts_with(kBillingHeader)) return;
  const std::string whole = text.get<std::string>();
  const size_t line_end = whole.find('\n');
  const size_t rest = line_end == std::string::npos ? std::string::npos : whole.find_first_not_of('\n', line_end);
  text = rest == std::string::npos ? std::string() : whole.substr(rest);
  if (text == "" && content.is_array()) content.erase(0);
  if (content == "" || (content.is_array() && content.empty())) messages.erase(0);
}

// Every message has a role that templates may know, and every part is text, or becomes text.
Answer<void> check_messages(Json& messages) {
  if (!messages.is_array()) return invalid("messages", "messages: it must be a list, found {}", excerpt(messages));
  if (messages.empty()) return invalid("messages", "messages: it is empty; it must have at least one message");
  for (size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      return invalid("messages", "messages[{}]: it must be an object with a role", i);
    }
    constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};
    if (std::ranges::find(kRoles, message["role"].get_ref<const std::string&>()) == std::end(kRoles)) {
      return invalid("messages", "messages[{}].role: it must be one of {}, found {}", i, fmt::join(kRoles, ", "),
                     excerpt(message["role"]));
    }
    if (!message.contains("content") || !message["content"].is_array()) continue;
    for (Json& part : message["content"]) {
      if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) continue;
      const auto& type = part["type"].get_ref<const std::string&>();
      if (type == "text" || type == "input_text" || type == "output_text") continue;
      if (message["role"] != "user") {
        part = {{"type", "text"}, {"text", named_part(type)}};
        continue;
      }
      return invalid("messages", "messages[{}]: it has a part of the type {}; this server takes text only", i,
                     excerpt(part["type"]));
    }
  }
  return {};
}

// Those that are functions; kinds of tools that only some services have are left out.
Answer<Json> function_tools(const Json& tools) {
  Json functions = Json::array();
  if (tools.is_null()) return functions;
  if (!tools.is_array()) return invalid("tools", "tools: it must be a list, found {}", excerpt(tools));
  for (size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    if (!tool.is_object()) return invalid("tools", "tools[{}]: it must be an object, found {}", i, excerpt(tool));
    if (tool.contains("type") && tool["type"] != "function") continue;
    const Json function = tool.value("function", Json());
    if (!function.is_object() || !function.contains("name") || !function["name"].is_string() ||
        function["name"].get_ref<const std::string&>().empty()) {
      return invalid("tools", "tools[{}]: it must have a function with a name", i);
    }
    functions.push_back(tool);
  }
  return functions;
}

Answer<void> check_tool_choice(const ToolChoice& choice, const Json& tools) {
  if (choice.kind == ToolChoice::Kind::kRequired && tools.empty()) {
    return invalid("tool_choice", "tool_choice: a call is required, but tools has no function to call");
  }
  for (const std::string& name : choice.names) {
    if (std::ranges::any_of(tools, [&](const Json& tool) { return tool["function"]["name"] == name; })) continue;
    return invalid("tool_choice", "tool_choice: there is no function {} in tools", excerpt(Json(name)));
  }
  return {};
}

// The tools that the choice lets the model call.
Json callable_tools(const ChatRequest& request) {
  const std::vector<std::string>& names = request.tool_choice.names;
  if (names.empty()) return request.tools;
  Json callable = Json::array();
  for (const Json& tool : request.tools) {
    if (std::ranges::find(names, tool["function"]["name"].get_ref<const std::string&>()) == names.end()) continue;
    callable.push_back(tool);
  }
  return callable;
}

// What the template shows, from a request whose parts were checked.
struct Conversation {
  std::string json;
  std::string tools_json;  // those that the model sees; "": none
  RenderOptions options;
};

Answer<Conversation> make_conversation(const ServedModel& model, ChatRequest& request) {
  if (request.messages.is_array()) drop_billing_header(request.messages);
  HEARTH_TRY(check_messages(request.messages));
  HEARTH_ASSIGN(request.tools, function_tools(request.tools));
  HEARTH_TRY(check_tool_choice(request.tool_choice, request.tools));
  const bool held =
      request.tool_choice.kind != ToolChoice::Kind::kAuto || !model.text().output_markers().tool_call_open.empty();
  if (!held) request.tools = callable_tools(request);
  const bool show_tools = !request.tools.empty() && request.tool_choice.kind != ToolChoice::Kind::kNone;
  if (show_tools && !model.template_shows_tools) {
    return invalid("tools",
                   "tools: the chat template of this model has no place for them; leave them out, set tool_choice to "
                   "none, or serve a model that was trained with tools");
  }
  Json variables = std::move(request.template_variables);
  if (!variables.is_object()) variables = Json::object();
  for (const char* name : {"enable_thinking", "thinking"}) {
    if (!variables.contains(name) || !variables[name].is_boolean()) continue;
    if (!request.thinking) request.thinking = variables[name].get<bool>();
    variables.erase(name);
  }
  if (request.thinking_budget == 0) request.thinking = false;  // in the template's own way, where it has one
  Conversation conversation;
  if (model.text().supports_thinking()) conversation.options.thinking = request.thinking;
  variables["messages"] = request.messages;
  variables.erase("tools");
  if (show_tools) {
    variables["tools"] = request.tools;
    conversation.tools_json = dump(request.tools);
  }
  conversation.json = dump(variables);
  return conversation;
}

// ---- the form of answers ----

// `alternatives`: what the answer may be instead, "or_schema" or "or_gbnf".
GrammarSource calls(const ChatRequest& request, bool opened, Json alternatives = Json::object()) {
  const bool named = request.tool_choice.kind == ToolChoice::Kind::kNamed;
  Json source = {{"tools", callable_tools(request)},
                 {"name", named ? Json(request.tool_choice.names.front()) : Json()},
                 {"parallel", request.parallel_tool_calls && !named},
                 {"opened", opened}};
  source.update(alternatives);
  return {.kind = GrammarSource::Kind::kToolCalls, .text = dump(source)};
}

Result<std::shared_ptr<const Grammar>> compile(const ServedModel& model, GrammarSource source,
                                               const AnswerLimits& limits) {
  source.wanted = limits.wanted;
  return model.text().compile(source);
}

// An answer of that form, or calls: the model chooses.
GrammarSource format_or_calls(const ChatRequest& request, const GrammarSource& format) {
  switch (format.kind) {
    case GrammarSource::Kind::kGbnf:
      return calls(request, false, {{"or_gbnf", format.text}});
    case GrammarSource::Kind::kJsonObject:
      return calls(request, false, {{"or_schema", {{"type", "object"}}}});
    default:  // protocols give no other kinds
      return calls(request, false, {{"or_schema", Json::parse(format.text)}});
  }
}

// A call that the model makes by its own choice gets arguments as its tool wants them, where a marker tells that one
// begins. Tools that no grammar can say are no reason to refuse, unless they ask for it by "strict" or some of them
// must not be called.
Answer<Constraint> free_calls(const ServedModel& model, const ChatRequest& request) {
  Constraint constraint;
  const std::string& marker = model.text().output_markers().tool_call_open;
  if (marker.empty()) return constraint;
  auto grammar = compile(model, calls(request, true), request.limits);
  if (!grammar) {
    const bool strict = std::ranges::any_of(
        request.tools, [](const Json& tool) { return tool["function"].value("strict", Json()) == true; });
    if (strict || !request.tool_choice.names.empty() || grammar.error().code == ErrorCode::kCancelled)
      return std::move(grammar).error();
    return constraint;
  }
  return Constraint{.grammar = *std::move(grammar), .after = marker, .repeats = true};
}

// ---- sampling ----

Answer<SamplingOptions> sampling_options(const SamplingRequest& wanted, const ServedModel& model) {
  SamplingOptions options = model.model->info().default_sampling;
  const auto set = [](auto& field, const auto& value) {
    if (value) field = static_cast<std::remove_reference_t<decltype(field)>>(*value);
  };
  set(options.temperature, wanted.temperature);
  set(options.top_p, wanted.top_p);
  set(options.min_p, wanted.min_p);
  set(options.typical_p, wanted.typical_p);
  set(options.repetition_penalty, wanted.repetition_penalty);
  set(options.presence_penalty, wanted.presence_penalty);
  set(options.frequency_penalty, wanted.frequency_penalty);
  set(options.dry_multiplier, wanted.dry_multiplier);
  set(options.dry_base, wanted.dry_base);
  set(options.xtc_probability, wanted.xtc_probability);
  set(options.xtc_threshold, wanted.xtc_threshold);
  set(options.top_k, wanted.top_k);
  set(options.penalty_last_n, wanted.penalty_last_n);
  set(options.dry_allowed_length, wanted.dry_allowed_length);
  set(options.dry_last_n, wanted.dry_last_n);
  options.logit_bias = wanted.logit_bias;
  for (const std::string& breaker : wanted.dry_breakers) {
    HEARTH_ASSIGN(std::vector<int32_t> tokens, model.text().tokenize(breaker, false, false));
    if (!tokens.empty()) options.dry_breakers.push_back(std::move(tokens));
  }
  options.seed = wanted.seed ? *wanted.seed : std::random_device{}();
  return options;
}

// The request that every answer starts from, without its prompt.
Answer<Request> make_request(const AnswerLimits& limits, const ServedModel& model) {
  Request request;
  HEARTH_ASSIGN(request.sampling, sampling_options(limits.sampling, model));
  if (limits.n < 1 || limits.n > kMaxAnswers) {
    return invalid("n", "n: it must be a whole number from 1 to {}, found {}", kMaxAnswers, limits.n);
  }
  if (limits.stop.size() > kMaxStopStrings) {
    return invalid("stop", "stop: at most {} strings, found {}", kMaxStopStrings, limits.stop.size());
  }
  for (const std::string& stop : limits.stop) {
    if (!stop.empty()) request.stop_strings.push_back(stop);  // an empty one is how some clients say none
  }
  request.max_tokens = limits.max_tokens.value_or(-1);
  request.ignore_end = limits.ignore_end;
  request.top_logprobs = static_cast<int32_t>(limits.top_logprobs.value_or(-1));
  return request;
}

// ---- log-probabilities of a prompt ----

// Of `token`, and the `best` most likely, from one row of logits.
TokenScores score(std::span<const float> logits, int32_t token, int64_t best, const Text& text) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit - largest));
  const double log_sum = largest + std::log(sum);
  const auto scored = [&](int32_t id) {
    return TokenScore{.token = id,
                      .bytes = text.piece(id, true),
                      .logprob = static_cast<float>(logits[static_cast<size_t>(id)] - log_sum)};
  };
  TokenScores scores{.token = scored(token)};
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  const auto count = std::min<size_t>(static_cast<size_t>(best), ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count), ids.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  for (size_t i = 0; i < count; ++i) scores.best.push_back(scored(ids[i]));
  return scores;
}

// ---- one answer ----

struct Running {
  std::optional<Generation> generation;
  std::unique_ptr<OutputParser> parser;  // null: everything is text
  std::vector<int32_t> tokens;           // of the answer so far, with markers that were put in
  int64_t sampled = 0;                   // of them, those that the model chose
  int64_t sampled_before = 0;            // and of those, the ones of generations that were cut short
  bool closing = false;                  // its generation is being cancelled, to end the reasoning
  bool resumed = false;                  // has a generation after the first
  bool whole_call = false;
  bool broken_call = false;  // an answer ended in the middle of one
  bool done = false;
  std::vector<TokenScores> prompt_scores;
  AnswerUsage usage;
};

}  // namespace

Answer<void> check_length(int64_t prompt_tokens, int64_t max_tokens, const ServedModel& model,
                          const std::string& param) {
  const int64_t most = model.model->info().sequence_tokens - (max_tokens == 0 ? 0 : 1);
  if (prompt_tokens <= most) return {};
  ApiError error = refuse(Refusal::kContextLength,
                          fmt::format("the prompt has {} tokens, but the context takes {}; a shorter prompt would "
                                      "work, or a server started with a larger context (-c) if the model was trained "
                                      "for one",
                                      prompt_tokens, most),
                          param);
  error.prompt_tokens = prompt_tokens;
  error.context_tokens = most;
  return error;
}

ApiError cut_off() {
  return refuse(Refusal::kUnavailable, "the answer was cut off: its client left, or the server stops");
}

std::optional<Done> last_words(Generation& generation, Clock::time_point deadline) {
  while (true) {
    const std::chrono::duration<double> left = deadline - Clock::now();
    std::optional<Event> event = generation.next_within(left.count());
    if (!event) return std::nullopt;
    if (auto* done = std::get_if<Done>(&*event)) return std::move(*done);
  }
}

void count(ModelCounters& counters, std::atomic<int64_t>& kind, const AnswerUsage& usage) {
  ++kind;
  counters.prompt_tokens += usage.prompt_tokens;
  counters.cached_tokens += usage.cached_tokens;
  counters.returned_tokens += usage.returned_tokens;
  counters.generated_tokens += usage.generated_tokens;
  add_seconds(counters.queue_microseconds, usage.queue_seconds);
  add_seconds(counters.prefill_microseconds, usage.prefill_seconds);
  add_seconds(counters.decode_microseconds, usage.decode_seconds);
}

std::string random_id(std::string_view prefix) {
  static constexpr char kLetters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{(static_cast<uint64_t>(std::random_device{}()) << 32) | std::random_device{}()};
  std::string id(prefix);
  for (int i = 0; i < 24; ++i) id += kLetters[random() % 62];
  return id;
}

struct ChatRun::Impl {
  std::shared_ptr<ServedModel> model;
  Clock::time_point start = Clock::now();
  std::vector<std::vector<int32_t>> prompts;
  Request base;         // without a prompt
  bool seeded = false;  // the client chose the seed
  std::string prompt_text;
  std::string tools_json;
  bool chat = false;
  bool one_call = false;
  bool prompt_logprobs = false;
  int64_t thinking_budget = 0;   // tokens
  size_t n = 1;                  // answers to each prompt
  std::vector<Running> answers;  // [prompts, n]
  size_t begun = 0;              // prompts whose first answer was submitted
  std::optional<Places> places;  // which the answers share

  const std::vector<int32_t>& prompt_of(size_t answer) const { return prompts[answer / n]; }

  // Takes the places of all answers, or refuses. Those to one prompt run at the same time; with several prompts the
  // answers take no more places than the engine runs at once, and follow each other in them.
  Answer<void> enter(int64_t answers_each) {
    n = static_cast<size_t>(answers_each);
    const int64_t all = std::ssize(prompts) * answers_each;
    const int64_t wanted = std::max(answers_each, std::min(all, model->options.max_sequences));
    HEARTH_ASSIGN(Places taken, Places::take(model, wanted));
    places.emplace(std::move(taken));
    answers.resize(static_cast<size_t>(all));
    for (size_t i = 0; i < answers.size(); ++i) {
      Running& answer = answers[i];
      answer.usage.prompt_tokens = std::ssize(prompt_of(i));
      if (chat && !model->text().output_markers().reasoning_close.empty()) {
        answer.usage.thinking_budget = thinking_budget;
      }
      if (chat) answer.parser = model->text().parse_output({.tools_json = tools_json, .prompt_text = prompt_text});
    }
    return {};
  }

  Answer<void> submit(size_t index) {
    Running& answer = answers[index];
    Request request = base;
    request.prompt = prompt_of(index);
    request.sampling.seed += seeded ? index % n : index;
    request.prompt_logits = prompt_logprobs && index % n == 0;
    HEARTH_ASSIGN(answer.generation, model->engine->submit(std::move(request)));
    return {};
  }

  // The answer goes on from what it has, after the marker that ends reasoning.
  Answer<void> resume(int64_t index, ChatSink& sink) {
    Running& answer = answers[static_cast<size_t>(index)];
    std::string marker = model->text().output_markers().reasoning_close;
    // Closing tags stand on a line of their own, and a blank line follows: models take another form for a thought.
    if (marker.starts_with("</") || marker.starts_with("[/")) {
      marker = (answer.tokens.empty() ? "" : "\n") + marker + "\n\n";
    }
    HEARTH_ASSIGN(std::vector<int32_t> marker_tokens, model->text().tokenize(marker, true, false));
    answer.sampled_before = answer.sampled;
    answer.closing = false;
    answer.resumed = true;
    Request request = base;
    if (request.max_tokens >= 0) request.max_tokens -= answer.sampled;
    request.prompt = prompt_of(static_cast<size_t>(index));
    request.prompt.insert(request.prompt.end(), answer.tokens.begin(), answer.tokens.end());
    request.prompt.insert(request.prompt.end(), marker_tokens.begin(), marker_tokens.end());
    request.sampling.seed += static_cast<uint64_t>(index);
    // A grammar that waits for the end of reasoning has it in the prompt now.
    if (!request.constraint.repeats) request.constraint.after.clear();
    if (std::ssize(request.prompt) >= model->model->info().sequence_tokens || request.max_tokens == 0) {
      finish(index, {.reason = FinishReason::kLength}, sink);
      return {};
    }
    answer.tokens.insert(answer.tokens.end(), marker_tokens.begin(), marker_tokens.end());
    push(index, marker, sink);
    HEARTH_ASSIGN(answer.generation, model->engine->submit(std::move(request)));
    return {};
  }

  void push(int64_t index, std::string_view text, ChatSink& sink, bool last = false) {
    Running& answer = answers[static_cast<size_t>(index)];
    if (!answer.parser) {
      if (!text.empty()) sink.event(index, TextDelta{std::string(text)});
      return;
    }
    std::vector<OutputEvent> events;
    answer.parser->push(text, events);
    if (last) answer.parser->finish(events);
    for (OutputEvent& event : events) {
      std::visit(
          [&]<class T>(T& e) {
            if constexpr (requires { e.index; }) {
              if (one_call && e.index > 0) return;
            }
            if constexpr (std::is_same_v<T, ToolCallStart>) {
              std::string id = e.id.empty() ? random_id("call_") : std::move(e.id);
              sink.event(index, CallStart{.index = e.index, .id = std::move(id), .name = std::move(e.name)});
            } else {
              if constexpr (std::is_same_v<T, ToolCallEnd>)
                (e.complete ? answer.whole_call : answer.broken_call) = true;
              sink.event(index, std::move(e));
            }
          },
          event);
    }
  }

  bool in_reasoning(const Running& answer) const { return answer.parser && answer.parser->in_reasoning(); }
  bool in_call(const Running& answer) const { return answer.parser && answer.parser->in_tool_call(); }

  // Ends reasoning that is as long as it may be.
  void limit_reasoning(Running& answer) {
    if (!in_reasoning(answer) || answer.closing || answer.usage.reasoning_tokens < thinking_budget) return;
    if (model->text().output_markers().reasoning_close.empty()) return;
    answer.closing = true;
    answer.generation->cancel();
  }

  void token(int64_t index, const TokenEvent& event, ChatSink& sink) {
    Running& answer = answers[static_cast<size_t>(index)];
    if (answer.usage.first_token_seconds < 0) answer.usage.first_token_seconds = seconds_since(start);
    if (answer.closing) return;  // what comes after the decision to close is not part of the answer
    answer.tokens.push_back(event.token);
    ++answer.sampled;
    const bool reasoned = in_reasoning(answer), called = in_call(answer);
    if (!event.logprobs.empty() && !reasoned && !called) {
      TokenScores scores;
      for (size_t i = 0; i < event.logprobs.size(); ++i) {
        const TokenLogprob& p = event.logprobs[i];
        TokenScore scored{.token = p.token, .bytes = model->text().piece(p.token, true), .logprob = p.logprob};
        if (i == 0) {
          scores.token = std::move(scored);
        } else {
          scores.best.push_back(std::move(scored));
        }
      }
      sink.event(index, std::move(scores));
    }
    push(index, event.text, sink);
    if (reasoned || in_reasoning(answer)) ++answer.usage.reasoning_tokens;
    limit_reasoning(answer);
  }

  void prompt_logits(int64_t index, const PromptLogits& logits, ChatSink& sink) {
    Running& answer = answers[static_cast<size_t>(index)];
    const std::vector<int32_t>& prompt = prompt_of(static_cast<size_t>(index));
    const auto vocab = static_cast<size_t>(model->text().vocab_size());
    for (int64_t row = 0; row < logits.rows; ++row) {
      const auto next = static_cast<size_t>(logits.position + row + 1);
      if (next >= prompt.size()) break;
      answer.prompt_scores.push_back(score(std::span(logits.logits).subspan(static_cast<size_t>(row) * vocab, vocab),
                                           prompt[next], std::max(base.top_logprobs, 0), model->text()));
    }
    if (answer.prompt_scores.size() + 1 == prompt.size()) {
      sink.event(index, PromptScores{.tokens = std::move(answer.prompt_scores)});
    }
  }

  void add_usage(Running& answer, const Usage& usage) {
    if (!answer.resumed) {
      answer.usage.cached_tokens = usage.cached_tokens;
      answer.usage.computed_tokens = usage.computed_tokens;
      answer.usage.miss = usage.miss;
      answer.usage.miss_position = usage.miss_position;
      answer.usage.queue_seconds = usage.queue_seconds;
    }
    answer.usage.returned_tokens += usage.returned_tokens;
    answer.usage.prefill_seconds += usage.prefill_seconds;
    answer.usage.decode_seconds += usage.decode_seconds;
    answer.usage.generated_tokens = answer.sampled_before + usage.generated_tokens;
  }

  void finish(int64_t index, const Done& done, ChatSink& sink) {
    Running& answer = answers[static_cast<size_t>(index)];
    push(index, done.text, sink, /*last=*/true);
    answer.done = true;
    answer.generation.reset();
    remember(answer);
    AnswerDone end;
    switch (done.reason) {
      case FinishReason::kEnd:
      case FinishReason::kStopToken:
        end.reason = answer.whole_call    ? EndReason::kToolCalls
                     : answer.broken_call ? EndReason::kLength  // never a silent end in the middle of a call
                                          : EndReason::kStop;
        break;
      case FinishReason::kStopString:
        end.reason = EndReason::kStopSequence;
        if (done.stop_index >= 0) end.stop_sequence = base.stop_strings[static_cast<size_t>(done.stop_index)];
        break;
      case FinishReason::kLength:
      case FinishReason::kContextFull:
        end.reason = EndReason::kLength;
        break;
      case FinishReason::kCancelled:
        end.reason = EndReason::kCancelled;
        break;
    }
    end.usage = answer.usage;
    end.tokens = std::move(answer.tokens);
    ModelCounters& counters = *model->counters;
    count(counters, end.reason == EndReason::kCancelled ? counters.cancelled : counters.answers, answer.usage);
    sink.event(index, std::move(end));
  }

  // The next turn of this conversation brings the answer back as text: it is to get the ids that are cached.
  void remember(const Running& answer) {
    if (!chat || answer.tokens.empty() || model->options.deterministic) return;
    std::vector<int32_t> all = prompts[0];
    all.insert(all.end(), answer.tokens.begin(), answer.tokens.end());
    model->text().remember(all);
  }

  Answer<void> handle(int64_t index, Event event, ChatSink& sink) {
    Running& answer = answers[static_cast<size_t>(index)];
    if (auto* token_event = std::get_if<TokenEvent>(&event)) {
      token(index, *token_event, sink);
    } else if (auto* progress = std::get_if<PromptProgress>(&event)) {
      if (!answer.resumed) sink.event(index, *progress);
    } else if (auto* logits = std::get_if<PromptLogits>(&event)) {
      prompt_logits(index, *logits, sink);
    } else if (auto* done = std::get_if<Done>(&event)) {
      add_usage(answer, done->usage);
      if (answer.closing) return resume(index, sink);
      finish(index, *done, sink);
    } else if (auto* failed = std::get_if<Failed>(&event)) {
      return std::move(failed->error);
    }
    return {};
  }

  // Sends out what there are places for: prompts in their order, and the answers beside the first of each once the
  // prompt is in the cache for them.
  Answer<void> submit_next() {
    size_t open = 0;  // prompts with answers to come
    for (size_t i = 0; i < begun * n; i += n) {
      const auto own = std::span(answers).subspan(i, n);
      if (!std::ranges::all_of(own, &Running::done)) ++open;
      if (n == 1 || own[1].generation || own[1].done) continue;
      if (!own[0].done && own[0].usage.first_token_seconds < 0) continue;
      for (size_t other = 1; other < n; ++other) HEARTH_TRY(submit(i + other));
    }
    for (; begun < prompts.size() && (open + 1) * n <= static_cast<size_t>(places->count()); ++begun, ++open) {
      HEARTH_TRY(submit(begun * n));
    }
    return {};
  }

  void cancel(ChatSink& sink) {
    for (Running& answer : answers) {
      if (answer.generation) answer.generation->cancel();
    }
    const Clock::time_point deadline = Clock::now() + kLastWords;
    for (size_t i = 0; i < answers.size(); ++i) {
      Running& answer = answers[i];
      if (answer.done) continue;
      if (answer.generation) {
        if (const auto done = last_words(*answer.generation, deadline)) add_usage(answer, done->usage);
      }
      answer.usage.generated_tokens = answer.sampled;
      finish(static_cast<int64_t>(i), {.reason = FinishReason::kCancelled}, sink);
    }
  }

  Answer<void> run(ChatSink& sink) {
    if (chat) limit_reasoning(answers[0]);
    while (true) {
      // What there is, of all; then, when there is nothing, a short wait for one of them.
      bool quiet = true;
      int64_t open = 0, first_open = -1;
      for (int64_t i = 0; i < std::ssize(answers); ++i) {
        Running& answer = answers[static_cast<size_t>(i)];
        while (!answer.done && answer.generation) {
          std::optional<Event> event = answer.generation->next_within(0);
          if (!event) break;
          quiet = false;
          HEARTH_TRY(handle(i, *std::move(event), sink));
        }
        if (answer.done) continue;
        ++open;
        if (first_open < 0 && answer.generation) first_open = i;
      }
      HEARTH_TRY(submit_next());
      if (open == 0) return {};
      if (!sink.alive()) {
        cancel(sink);
        return cut_off();
      }
      if (!quiet || first_open < 0) continue;
      const double wait = open == 1 ? 0.1 : 0.02;
      if (auto event = answers[static_cast<size_t>(first_open)].generation->next_within(wait)) {
        HEARTH_TRY(handle(first_open, *std::move(event), sink));
      }
    }
  }
};

ChatRun::ChatRun(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatRun::~ChatRun() = default;
const ServedModel& ChatRun::model() const { return *impl_->model; }
const std::vector<int32_t>& ChatRun::prompt() const { return impl_->prompts[0]; }

Answer<void> ChatRun::run(ChatSink& sink) {
  Answer<void> result = impl_->run(sink);
  if (!result) {
    ModelCounters& counters = *impl_->model->counters;
    for (const Running& answer : impl_->answers) {
      if (!answer.done) count(counters, counters.failed, answer.usage);
    }
  }
  return result;
}

AnswerUsage ChatRun::usage() const {
  AnswerUsage sum = impl_->answers[0].usage;
  for (size_t i = 1; i < impl_->answers.size(); ++i) {
    const AnswerUsage& usage = impl_->answers[i].usage;
    if (i % impl_->n == 0) {  // the answers to a prompt read it once
      sum.prompt_tokens += usage.prompt_tokens;
      sum.cached_tokens += usage.cached_tokens;
      sum.computed_tokens += usage.computed_tokens;
      sum.queue_seconds = std::max(sum.queue_seconds, usage.queue_seconds);
      sum.prefill_seconds = std::max(sum.prefill_seconds, usage.prefill_seconds);
    }
    sum.returned_tokens += usage.returned_tokens;
    sum.generated_tokens += usage.generated_tokens;
    sum.reasoning_tokens += usage.reasoning_tokens;
    sum.decode_seconds = std::max(sum.decode_seconds, usage.decode_seconds);
  }
  return sum;
}

std::string named_part(std::string_view type, std::string_view about) { return fmt::format("[{}: {}]", type, about); }

Answer<Prompt> render_chat(const ServedModel& model, ChatRequest request) {
  HEARTH_ASSIGN(Conversation conversation, make_conversation(model, request));
  HEARTH_ASSIGN(Prompt prompt, model.text().render(conversation.json, conversation.options));
  return prompt;
}

Answer<std::unique_ptr<ChatRun>> ChatRun::chat(std::shared_ptr<ServedModel> model, ChatRequest request) {
  const Text& text = model->text();
  auto impl = std::make_unique<Impl>();
  impl->model = model;
  impl->chat = true;
  HEARTH_ASSIGN(impl->base, make_request(request.limits, *model));
  impl->seeded = request.limits.sampling.seed.has_value();
  HEARTH_ASSIGN(Conversation conversation, make_conversation(*model, request));
  HEARTH_ASSIGN(Prompt prompt, text.render(conversation.json, conversation.options));
  std::vector<int32_t>& tokens = impl->prompts.emplace_back(std::move(request.context));
  tokens.insert(tokens.end(), prompt.tokens.begin(), prompt.tokens.end());
  impl->one_call = !request.parallel_tool_calls;
  impl->prompt_text = std::move(prompt.text);
  impl->tools_json = std::move(conversation.tools_json);
  HEARTH_TRY(check_length(std::ssize(tokens), impl->base.max_tokens, *model));
  if (tokens.empty()) return invalid("messages", "messages: the prompt that they make is empty");
  impl->base.special_text = true;

  const int64_t left = model->model->info().sequence_tokens - std::ssize(tokens);
  const int64_t most = impl->base.max_tokens < 0 ? left : std::min(left, impl->base.max_tokens);
  impl->thinking_budget =
      request.thinking_budget.value_or(static_cast<int64_t>(static_cast<double>(most) * kThinkingShare));

  const bool must_call =
      request.tool_choice.kind == ToolChoice::Kind::kRequired || request.tool_choice.kind == ToolChoice::Kind::kNamed;
  std::optional<GrammarSource> source = request.limits.format;
  if (must_call) {
    source = calls(request, false);
  } else if (source && !impl->tools_json.empty()) {
    source = format_or_calls(request, *source);
  }
  if (!source && !impl->tools_json.empty()) {
    HEARTH_ASSIGN(impl->base.constraint, free_calls(*model, request));
  } else if (source) {
    HEARTH_ASSIGN(impl->base.constraint.grammar, compile(*model, *std::move(source), request.limits));
    const auto parser = text.parse_output({.tools_json = impl->tools_json, .prompt_text = impl->prompt_text});
    if (parser->in_reasoning()) impl->base.constraint.after = text.output_markers().reasoning_close;
  }
  HEARTH_TRY(impl->enter(request.limits.n));
  HEARTH_TRY(impl->submit_next());
  return std::unique_ptr<ChatRun>(new ChatRun(std::move(impl)));
}

Answer<std::unique_ptr<ChatRun>> ChatRun::completion(std::shared_ptr<ServedModel> model, CompletionRequest request) {
  auto impl = std::make_unique<Impl>();
  impl->model = model;
  HEARTH_ASSIGN(impl->base, make_request(request.limits, *model));
  impl->seeded = request.limits.sampling.seed.has_value();
  impl->prompts = std::move(request.prompts);
  for (const std::vector<int32_t>& prompt : impl->prompts) {
    if (prompt.empty()) return invalid("prompt", "prompt: it is empty; it must have at least one token");
    HEARTH_TRY(check_length(std::ssize(prompt), impl->base.max_tokens, *model));
  }
  if (request.limits.format) {
    HEARTH_ASSIGN(impl->base.constraint.grammar, compile(*model, *request.limits.format, request.limits));
  }
  impl->prompt_logprobs = request.prompt_logprobs;
  HEARTH_TRY(impl->enter(request.limits.n));
  HEARTH_TRY(impl->submit_next());
  return std::unique_ptr<ChatRun>(new ChatRun(std::move(impl)));
}

void WholeAnswer::add(const ChatEvent& event) {
  std::visit(
      [&]<class T>(const T& e) {
        if constexpr (std::is_same_v<T, ReasoningDelta>) {
          reasoning += e.text;
        } else if constexpr (std::is_same_v<T, TextDelta>) {
          text += e.text;
        } else if constexpr (std::is_same_v<T, CallStart>) {
          calls.push_back({.id = e.id, .name = e.name});
        } else if constexpr (std::is_same_v<T, ToolArgumentsDelta>) {
          if (!calls.empty()) calls.back().arguments += e.json;
        } else if constexpr (std::is_same_v<T, TokenScores>) {
          scores.push_back(e);
        } else if constexpr (std::is_same_v<T, PromptScores>) {
          prompt_scores = e.tokens;
        } else if constexpr (std::is_same_v<T, AnswerDone>) {
          done = e;
        }
      },
      event);
}

}  // namespace hearth::server
