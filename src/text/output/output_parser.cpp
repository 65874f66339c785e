#include "text/output/output_parser.h"

namespace hearth {
namespace {

class TextOnly final : public OutputParser {
 public:
  void push(std::string_view text, std::vector<OutputEvent>& events) override {
    if (!text.empty()) events.push_back(TextDelta{std::string(text)});
  }
  void finish(std::vector<OutputEvent>&) override {}
  bool in_reasoning() const override { return false; }
  bool in_tool_call() const override { return false; }
};

}  // namespace

OutputMarkers detect_output_markers(std::string_view) { return {.dialect = "text"}; }

std::unique_ptr<OutputParser> make_output_parser(const OutputMarkers&, const OutputOptions&) {
  return std::make_unique<TextOnly>();
}

}  // namespace hearth
