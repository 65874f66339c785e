#include "server/openai.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace hearth::server {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 31;

Answer<std::vector<std::pair<int32_t, float>>> read_logit_bias(const Json& value) {
  std::vector<std::pair<int32_t, float>> biases;
  const auto add = [&](int64_t token, const Json& bias) {
    if (token < 0 || token > std::numeric_limits<int32_t>::max()) return false;
    if (bias == false) {
      biases.emplace_back(static_cast<int32_t>(token), -std::numeric_limits<float>::infinity());
      return true;
    }
    if (!bias.is_number() || !(std::abs(bias.get<double>()) <= 1000)) return false;
    biases.emplace_back(static_cast<int32_t>(token), bias.get<float>());
    return true;
  };
  bool good = value.is_object() || value.is_array();
  if (value.is_object()) {
    for (const auto& [name, bias] : value.items()) {
      int64_t token = -1;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), token);
      good = good && error == std::errc() && end == name.data() + name.size() && add(token, bias);
    }
  } else if (value.is_array()) {
    for (const Json& pair : value) {
      good =
          good && pair.is_array() && pair.size() == 2 && pair[0].is_number_integer() &&
          add(pair[0].is_number_unsigned() ? static_cast<int64_t>(std::min<uint64_t>(pair[0].get<uint64_t>(), 1u << 31))
                                           : pair[0].get<int64_t>(),
              pair[1]);
    }
  }
  if (good) return biases;
  return invalid(
      "logit_bias",
      "logit_bias: it must be an object of token ids and numbers from -1000 to 1000, such as {{\"42\": -5}}");
}

Answer<std::optional<GrammarSource>> read_format(const Json& body) {
  using Kind = GrammarSource::Kind;
  Fields fields(body);
  std::optional<GrammarSource> source;
  if (const Json* format = fields.object("response_format")) {
    Fields f(*format, "response_format");
    const std::string type = f.text("type").value_or("text");
    if (type == "json_object") {
      const Json* schema = f.object("schema");
      source = schema ? GrammarSource{Kind::kJsonSchema, dump(*schema)} : GrammarSource{Kind::kJsonObject, ""};
    } else if (type == "json_schema") {
      const Json* outer = f.object("json_schema");
      const Json* schema = f.get("schema");
      if (outer != nullptr && outer->contains("schema")) schema = &(*outer)["schema"];
      if (schema == nullptr || !(schema->is_object() || schema->is_boolean())) {
        f.reject("json_schema", "it must be an object with a schema");
      } else {
        source = GrammarSource{Kind::kJsonSchema, dump(*schema)};
      }
    } else if (type == "grammar" || type == "gbnf") {
      source = GrammarSource{Kind::kGbnf, f.text("grammar").value_or("")};
    } else if (type != "text") {
      f.expected("type", "text, json_object, json_schema or grammar");
    }
    if (f.error()) return *f.error();
  }
  const auto take = [&](std::string_view name, GrammarSource other) {
    if (source) fields.reject(name, "an answer has one form; give one of response_format, json_schema and grammar");
    source = std::move(other);
  };
  // As llama.cpp has them.
  if (const Json* schema = fields.object("json_schema")) take("json_schema", {Kind::kJsonSchema, dump(*schema)});
  if (auto grammar = fields.text("grammar"); grammar && !grammar->empty()) {
    take("grammar", {Kind::kGbnf, *std::move(grammar)});
  }
  if (fields.error()) return *fields.error();
  return source;
}

std::string_view error_type(Refusal kind) {
  switch (kind) {
    case Refusal::kUnauthorized:
      return "authentication_error";
    case Refusal::kForbidden:
      return "permission_error";
    case Refusal::kNotFound:
      return "not_found_error";
    case Refusal::kInternal:
    case Refusal::kUnavailable:
      return "server_error";
    case Refusal::kOverloaded:
      return "overloaded_error";
    case Refusal::kUnsupported:
      return "not_supported_error";
    default:
      return "invalid_request_error";
  }
}

Json error_code(Refusal kind) {
  switch (kind) {
    case Refusal::kContextLength:
      return "context_length_exceeded";
    case Refusal::kUnauthorized:
      return "invalid_api_key";
    case Refusal::kOverloaded:
      return "overloaded";
    case Refusal::kUnavailable:
      return "model_unavailable";
    case Refusal::kUnsupported:
      return "not_supported";
    default:
      return nullptr;
  }
}

}  // namespace

Json openai_error_json(const ApiError& error) {
  Json body = {{"message", error.message},
               {"type", error_type(error.kind)},
               {"param", error.param.empty() ? Json() : Json(error.param)},
               {"code", error_code(error.kind)}};
  if (error.kind == Refusal::kContextLength) {
    // Clients look for these words.
    body["message"] =
        fmt::format("This model's maximum context length is {} tokens: {}", error.context_tokens, error.message);
    body["n_prompt_tokens"] = error.prompt_tokens;
    body["n_ctx"] = error.context_tokens;
  }
  return {{"error", std::move(body)}};
}

void openai_error(Exchange& exchange, const ApiError& error) {
  respond_json(exchange, http_status(error.kind), openai_error_json(error));
}

Answer<void> read_limits(const Json& body, AnswerLimits& limits) {
  Fields f(body);
  SamplingRequest& s = limits.sampling;
  const auto first_number = [&](std::initializer_list<const char*> names, double least, double most) {
    std::optional<double> value;
    for (const char* name : names) {
      if (!value) value = f.number(name, least, most);
    }
    return value;
  };
  const auto first_integer = [&](std::initializer_list<const char*> names, int64_t least, int64_t most) {
    std::optional<int64_t> value;
    for (const char* name : names) {
      if (!value) value = f.integer(name, least, most);
    }
    return value;
  };
  s.temperature = f.number("temperature", 0, 100);
  s.top_p = f.number("top_p", 0, 1);
  s.min_p = f.number("min_p", 0, 1);
  s.typical_p = first_number({"typical_p", "typ_p"}, 0, 1);
  s.repetition_penalty = first_number({"repeat_penalty", "repetition_penalty"}, 0.01, 100);
  s.presence_penalty = f.number("presence_penalty", -100, 100);
  s.frequency_penalty = f.number("frequency_penalty", -100, 100);
  s.penalty_last_n = first_integer({"repeat_last_n", "penalty_last_n"}, -1, kMostTokens / 4);
  s.dry_multiplier = f.number("dry_multiplier", 0, 100);
  s.dry_base = f.number("dry_base", 1, 100);
  s.dry_allowed_length = f.integer("dry_allowed_length", 1, 1'000'000);
  s.dry_last_n = first_integer({"dry_penalty_last_n", "dry_last_n"}, -1, kMostTokens / 4);
  s.dry_breakers = f.texts("dry_sequence_breakers").value_or(std::vector<std::string>());
  s.xtc_probability = f.number("xtc_probability", 0, 1);
  s.xtc_threshold = f.number("xtc_threshold", 0, 1);
  s.top_k = f.integer("top_k", -1, kMostTokens / 4);
  if (s.top_k == -1) s.top_k = 0;
  const auto seed = f.integer("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  if (seed && *seed != -1) s.seed = static_cast<uint64_t>(*seed);
  limits.stop = f.texts("stop").value_or(std::vector<std::string>());
  limits.max_tokens = first_integer({"max_completion_tokens", "max_tokens", "n_predict"}, -1, kMostTokens);
  if (limits.max_tokens == -1) limits.max_tokens.reset();
  limits.n = f.integer("n", 1, kMaxAnswers).value_or(1);
  limits.ignore_end = f.boolean("ignore_eos").value_or(false);
  if (f.error()) return *f.error();
  if (const Json* bias = f.get("logit_bias")) {
    HEARTH_ASSIGN(s.logit_bias, read_logit_bias(*bias));
  }
  HEARTH_ASSIGN(limits.format, read_format(body));
  return {};
}

Answer<std::vector<const Json*>> read_inputs(const Json& body, const std::string& field, size_t most) {
  static const Json kMissing;
  const auto found = body.find(field);
  const Json& value = found == body.end() ? kMissing : *found;
  const auto is_number = [](const Json& item) { return item.is_number(); };
  const bool is_list = value.is_array() && !value.empty();
  if (value.is_string() || (is_list && std::ranges::all_of(value, is_number))) return std::vector{&value};
  if (!is_list || value.size() > most) {
    return invalid(field, "{}: it must be a string, a list of token ids, or a list of 1 to {} of them, found {}", field,
                   most, excerpt(value));
  }
  std::vector<const Json*> inputs;
  for (const Json& item : value) {
    if (!item.is_string() && !item.is_array()) {
      return invalid(field, "{}: a list must have strings or lists of token ids, found {}", field, excerpt(item));
    }
    inputs.push_back(&item);
  }
  return inputs;
}

Answer<std::vector<int32_t>> read_tokens(const Json& ids, const std::string& field, const Text& text) {
  std::vector<int32_t> tokens;
  for (const Json& id : ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(text.vocab_size())) {
      return invalid(field, "{}: tokens must be whole numbers from 0 to {}, found {}", field, text.vocab_size() - 1,
                     excerpt(id));
    }
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

std::string tool_name(const Json& tool) {
  if (!tool.is_object()) return "";
  const Json type = tool.value("type", Json("function"));
  const Json inner = type.is_string() ? tool.value(type.get_ref<const std::string&>(), tool) : tool;
  const Json name = inner.is_object() ? inner.value("name", Json()) : Json();
  return name.is_string() ? name.get<std::string>() : "";
}

Answer<ToolChoice> read_tool_choice(const Json& value, const std::function<std::string(const Json& tool)>& name_of) {
  using Kind = ToolChoice::Kind;
  const auto kind_of = [](const Json& word) -> std::optional<Kind> {
    if (word == "auto") return Kind::kAuto;
    if (word == "none") return Kind::kNone;
    if (word == "required" || word == "any") return Kind::kRequired;
    return {};
  };
  if (auto kind = kind_of(value)) return ToolChoice{.kind = *kind};
  if (value.is_object()) {
    const Json type = value.value("type", Json());
    if (auto kind = kind_of(type)) return ToolChoice{.kind = *kind};
    if (type == "allowed_tools") {
      const Json list = value.value("allowed_tools", value);
      Fields f(list, "tool_choice");
      const auto kind = kind_of(list.is_object() ? list.value("mode", Json("auto")) : Json());
      if (!kind || *kind == Kind::kNone) f.expected("mode", "auto or required");
      const Json* tools = f.array("tools");
      if (tools == nullptr) f.expected("tools", "a list of tools");
      if (f.error()) return *f.error();
      ToolChoice choice{.kind = *kind};
      for (const Json& tool : *tools) {
        if (std::string name = name_of(tool); !name.empty()) choice.names.push_back(std::move(name));
      }
      if (!choice.names.empty()) return choice;
      if (choice.kind == Kind::kAuto) return ToolChoice{.kind = Kind::kNone};
      f.reject("tools", "a call is required, but no function is allowed");
      return *f.error();
    }
    if (std::string name = name_of(value); !name.empty()) return ToolChoice{.kind = Kind::kNamed, .names = {name}};
  }
  return invalid(
      "tool_choice",
      "tool_choice: it must be auto, none, required, {{\"type\": \"function\", ...}} with a name or {{\"type\": "
      "\"allowed_tools\", ...}}, found {}",
      excerpt(value));
}

Answer<void> refuse_unsupported(const Json& body) {
  Fields f(body);
  if (const Json* lora = f.get("lora"); lora != nullptr && !lora->empty()) {
    return invalid("lora", "lora: this server has no adapters; leave the field out");
  }
  if (f.has("audio")) return invalid("audio", "audio: this server answers with text only; leave the field out");
  if (const Json* modalities = f.get("modalities"); modalities != nullptr && *modalities != Json::array({"text"})) {
    return invalid("modalities", "modalities: this server answers with text only; leave the field out");
  }
  return {};
}

Json usage_json(const AnswerUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.generated_tokens},
          {"total_tokens", usage.prompt_tokens + usage.generated_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

Json timings_json(const AnswerUsage& usage) {
  const auto computed = static_cast<double>(usage.prompt_tokens - usage.cached_tokens);
  const auto decoded = static_cast<double>(std::max<int64_t>(0, usage.generated_tokens - 1));
  Json timings = {{"queue_ms", usage.queue_seconds * 1e3},
                  {"cache_n", usage.cached_tokens},
                  {"prompt_n", usage.prompt_tokens - usage.cached_tokens},
                  {"prompt_ms", usage.prefill_seconds * 1e3},
                  {"prompt_per_second", usage.prefill_seconds > 0 ? computed / usage.prefill_seconds : 0.0},
                  {"predicted_n", usage.generated_tokens},
                  {"predicted_ms", usage.decode_seconds * 1e3},
                  {"predicted_per_second", usage.decode_seconds > 0 ? decoded / usage.decode_seconds : 0.0}};
  if (usage.thinking_budget >= 0) timings["thinking_budget"] = usage.thinking_budget;
  return timings;
}

std::string_view finish_reason(EndReason reason) {
  switch (reason) {
    case EndReason::kToolCalls:
      return "tool_calls";
    case EndReason::kLength:
      return "length";
    default:
      return "stop";
  }
}

// JSON has no infinity; this is what OpenAI sends for it.
double finite_logprob(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

Json token_scores_json(const TokenScores& scores) {
  const auto one = [](const TokenScore& score) {
    Json bytes = Json::array();
    for (unsigned char byte : score.bytes) bytes.push_back(byte);
    return Json{{"token", score.bytes}, {"logprob", finite_logprob(score.logprob)}, {"bytes", std::move(bytes)}};
  };
  Json entry = one(scores.token);
  entry["top_logprobs"] = Json::array();
  for (const TokenScore& score : scores.best) entry["top_logprobs"].push_back(one(score));
  return entry;
}

}  // namespace hearth::server
