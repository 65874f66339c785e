// A model's chat template: renders a conversation to the prompt text the model was trained on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth {

namespace jinja {
struct Template;
}

struct RenderLimits {
  int64_t max_steps = 20'000'000;  // evaluated nodes, plus one for every 256 bytes that are touched
  size_t max_output_bytes = 64u << 20;
  size_t max_memory_bytes = size_t{1} << 29;  // all values alive at one time
  int max_depth = 1000;                       // nested expressions and statements
  int max_calls = 200;                        // nested macros
  int64_t max_range = 100'000;                // items of one range()
};

struct TemplateOptions {
  std::string bos_token;  // the text of the special tokens: variables of the template, trusted
  std::string eos_token;
  std::optional<std::tm> now = {};  // what strftime_now() shows; unset: the local time
  // Refuse what Hugging Face's sandbox refuses although some models' own templates need it: methods that change a list
  // or a dict (Kimi-K2 appends to a list), and the filter from_json (DeepSeek-V4).
  bool strict_sandbox = false;
  RenderLimits limits = {};
};

// `trusted` text comes from the template (and the special tokens); the rest from the strings of the conversation, and
// must never be read as a special token. Neighbouring segments differ in trust. The cuts mean nothing else: text should
// be tokenized across them.
struct Segment {
  std::string text;
  bool trusted;
};

struct Rendered {
  std::vector<Segment> segments;

  std::string text() const;
};

// The Jinja dialect of Hugging Face's apply_chat_template. Immutable and safe to share between threads.
class ChatTemplate {
 public:
  // kInvalidInput names the line and what was expected there.
  static Result<ChatTemplate> parse(std::string_view source);

  // `context` is an object: messages, tools, add_generation_prompt, enable_thinking and whatever else the template
  // reads. Every string in it is untrusted. kInvalidInput when the template calls raise_exception (its own words are
  // the end of the message), when it breaks on this conversation, and when a limit is passed; all name the line.
  Result<Rendered> render(const nlohmann::ordered_json& context, const TemplateOptions& options) const;

  // True if the template reads a variable of that name.
  bool reads_variable(std::string_view name) const;
  // True if the template uses that word as an attribute name or a string constant.
  bool mentions(std::string_view word) const;

 private:
  std::shared_ptr<const jinja::Template> tree_;
};

// Templates larger than this are refused.
inline constexpr size_t kMaxTemplateBytes = 1u << 20;

// ChatML, for a model that has no template of its own.
extern const std::string_view kChatmlTemplate;

}  // namespace hearth
