#include "text/template/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/template/interpreter.h"
#include "text/template/parser.h"

namespace hearth {

const std::string_view kChatmlTemplate =
    "{%- for message in messages -%}\n"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}\n"
    "{{- '<|im_start|>assistant\\n' -}}\n"
    "{%- endif -%}\n";

std::string Rendered::text() const {
  std::string out;
  for (const Segment& segment : segments) out += segment.text;
  return out;
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return Error{ErrorCode::kInvalidInput, fmt::format("chat template: found {} bytes; at most {} are supported",
                                                       source.size(), kMaxTemplateBytes)};
  }
  auto tree = jinja::parse_template(source);
  if (!tree) return std::move(tree).error();
  ChatTemplate result;
  result.tree_ = std::make_shared<const jinja::Template>(std::move(*tree));
  return result;
}

Result<Rendered> ChatTemplate::render(const nlohmann::ordered_json& context, const TemplateOptions& options) const {
  return jinja::Interpreter(*tree_, options).run(context);
}

bool ChatTemplate::reads_variable(std::string_view name) const {
  return std::binary_search(tree_->names.begin(), tree_->names.end(), name);
}

bool ChatTemplate::mentions(std::string_view word) const {
  return std::binary_search(tree_->words.begin(), tree_->words.end(), word);
}

}  // namespace hearth
