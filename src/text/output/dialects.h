// The forms of calls that models know, one file each.
#pragma once

#include <memory>

#include "text/output/answer_parser.h"

namespace hearth {

AnswerForm deepseek_form();
AnswerForm dsml_form();
AnswerForm gemma4_form();
AnswerForm generic_form();
AnswerForm glm_form();
AnswerForm hermes_form();  // and Qwen's XML: models of either kind sometimes write the other
AnswerForm kimi_form();
AnswerForm llama3_form();
AnswerForm minimax_form();
AnswerForm mistral_form();
AnswerForm nemotron_form();
AnswerForm granite_form();
AnswerForm seed_form();

// Harmony's answers are a series of messages with headers.
std::unique_ptr<OutputParser> make_harmony_parser(const OutputOptions& options);

}  // namespace hearth
