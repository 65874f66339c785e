// What the files of the OpenAI protocol share.
#pragma once

#include "server/protocol.h"

namespace hearth::server {

// Sampling, lengths, stop strings and the form of the answer, under the names of the OpenAI protocol and of what local
// servers have added to it.
Answer<void> read_limits(const Json& body, AnswerLimits& limits);

// What may be called, in every form that the two OpenAI protocols have for it. `name_of` finds the name of the function
// that an object such as {"type": "function", "name": ...} stands for; "": of none, but of a tool that only some
// services have.
Answer<ToolChoice> read_tool_choice(const Json& value, const std::function<std::string(const Json& tool)>& name_of);

// The name in {"type": "function", "function": {"name": ...}}, or without the object around it; "": there is none.
std::string tool_name(const Json& tool);

// The conversation of a chat completion, with its limits.
Answer<ChatRequest> read_openai_chat(Json body);

// Texts and lists of token ids: what `field` is, or has 1 to `most` of. They point into the body.
Answer<std::vector<const Json*>> read_inputs(const Json& body, const std::string& field, size_t most);
// Token ids of the model's vocabulary.
Answer<std::vector<int32_t>> read_tokens(const Json& ids, const std::string& field, const Text& text);

// Refuses what asks for something that this server does not have, rather than ignoring it.
Answer<void> refuse_unsupported(const Json& body);

struct CompletionPrompt {
  std::vector<int32_t> tokens;
  std::string text;
};
// The prompts of a completion: "prompt" is text, token ids, or a list of these; "suffix" makes the model fill in.
// `max_tokens`: of an answer, for which what is filled in leaves room.
Answer<std::vector<CompletionPrompt>> read_prompts(const Json& body, const ServedModel& model, int64_t max_tokens);

// {"error": {...}}
Json openai_error_json(const ApiError& error);
Json usage_json(const AnswerUsage& usage);
// Speed of prompt and answer, as llama.cpp's clients show it.
Json timings_json(const AnswerUsage& usage);
std::string_view finish_reason(EndReason reason);
double finite_logprob(float logprob);
// A token with its log-probability, and the best beside it.
Json token_scores_json(const TokenScores& scores);

}  // namespace hearth::server
