#include "text/output/output_parser.h"

#include <array>
#include <utility>

#include "text/output/answer_parser.h"
#include "text/output/dialects.h"

namespace hearth {
namespace {

// One kind of model: what its template contains and nobody else's does. The first row that fits counts.
struct Dialect {
  std::string_view name;
  std::array<std::string_view, 2> words;  // both, if there are two
  AnswerForm (*form)();                   // nullptr: harmony
};

constexpr Dialect kDialects[] = {
    {"harmony", {"<|channel|>", "<|message|>"}, nullptr},
    {"gemma4", {"<|tool_call>"}, gemma4_form},
    {"dsml", {"｜DSML｜"}, dsml_form},
    {"deepseek", {"<｜tool▁call▁begin｜>"}, deepseek_form},
    {"kimi", {"<|tool_call_begin|>"}, kimi_form},
    {"minimax", {"<minimax:tool_call>"}, minimax_form},
    {"seed", {"<seed:tool_call>"}, seed_form},
    {"qwen_xml", {"<function=", "<parameter="}, hermes_form},
    {"glm", {"<arg_key>"}, glm_form},
    {"mistral", {"[TOOL_CALLS]"}, mistral_form},
    {"nemotron", {"<TOOLCALL>"}, nemotron_form},
    {"granite", {"<|tool_call|>"}, granite_form},
    {"hermes", {"<tool_call>"}, hermes_form},
    {"llama3", {"<|start_header_id|>", "\"parameters\""}, llama3_form},
    {"generic", {}, generic_form},
};

constexpr std::string_view kHarmonyFinal = "<|end|><|start|>assistant<|channel|>final<|message|>";

// The first that the template mentions is the model's.
const MarkerPair kReasoning[] = {
    {"<seed:think>", "</seed:think>"},          {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"}, {"<|inner_prefix|>", "<|inner_suffix|>"},
    {"<|channel>thought", "<channel|>"},        {"<think>", "</think>"},
};
const MarkerPair kThink = kReasoning[std::size(kReasoning) - 1];

}  // namespace

OutputMarkers detect_output_markers(std::string_view chat_template) {
  const auto mentions = [&](std::string_view word) { return chat_template.find(word) != std::string_view::npos; };
  OutputMarkers markers;
  for (const Dialect& dialect : kDialects) {
    if (!mentions(dialect.words[0]) || !mentions(dialect.words[1])) continue;
    markers.dialect = dialect.name;
    break;
  }
  if (markers.dialect == "harmony") {
    markers.reasoning_open = "<|channel|>analysis<|message|>";
    markers.reasoning_close = kHarmonyFinal;
    return markers;
  }
  for (const MarkerPair& pair : kReasoning) {
    if (!mentions(pair.open) && !mentions(pair.close)) continue;
    markers.reasoning_open = pair.open;
    markers.reasoning_close = pair.close;
    break;
  }
  return markers;
}

std::unique_ptr<OutputParser> make_output_parser(const OutputMarkers& markers, const OutputOptions& options) {
  if (markers.dialect == "harmony") return make_harmony_parser(options);
  // Models think in <think> tags even where their template does not say so.
  std::vector<MarkerPair> reasoning = {kThink};
  if (!markers.reasoning_open.empty() && markers.reasoning_open != kThink.open) {
    reasoning.push_back({markers.reasoning_open, markers.reasoning_close});
  }
  AnswerForm form = generic_form();
  for (const Dialect& dialect : kDialects) {
    if (dialect.name == markers.dialect && dialect.form != nullptr) form = dialect.form();
  }
  return std::make_unique<AnswerParser>(std::move(form), std::move(reasoning), options);
}

}  // namespace hearth
