// The text side of a model: tokens, chat templates.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/error.h"
#include "hearth/grammar.h"
#include "hearth/output.h"

namespace hearth {

// A rendered conversation.
struct Prompt {
  std::vector<int32_t> tokens;
  std::string text;  // as rendered
};

struct RenderOptions {
  bool add_generation_prompt = true;
  std::optional<bool> thinking;  // none: the template's own default
};

// Bytes of host memory in which a text side keeps what it may need again, and the most that it takes.
struct TextMemory {
  size_t known_texts = 0, known_texts_limit = 0;  // of remember()
  size_t grammars = 0, grammars_limit = 0;        // of compile(); one grammar may be larger
};

class Text {
 public:
  virtual ~Text() = default;

  // Plain text. `special`: markup such as <|im_start|> forms control tokens. `add_special`: BOS and the like as the
  // model wants them.
  virtual Result<std::vector<int32_t>> tokenize(std::string_view text, bool special, bool add_special) const = 0;
  // Bytes of one token as it appears in text, or its name if `special`.
  virtual std::string piece(int32_t token, bool special) const = 0;
  virtual std::string detokenize(const std::vector<int32_t>& tokens, bool special) const = 0;

  // Renders a conversation through the chat template and tokenizes it. The conversation is JSON text: {"messages":
  // [...], "tools": [...], and any variable of the template}, with the fields of the OpenAI chat protocol. Its strings
  // never form control tokens, whatever they contain.
  virtual Result<Prompt> render(std::string_view conversation_json, const RenderOptions& options) const = 0;
  // A conversation that the model has read and written: render() gives its ids to a prompt that begins with its text,
  // so that cached pages are found although what was sampled tokenizes otherwise. Safe from any thread.
  virtual void remember(std::span<const int32_t> tokens) const = 0;
  virtual bool has_chat_template() const = 0;
  virtual bool supports_thinking() const = 0;
  virtual std::string_view chat_template() const = 0;

  // For one answer to a prompt of render(). The template decides in which form calls and reasoning are looked for.
  virtual std::unique_ptr<OutputParser> parse_output(const OutputOptions& options) const = 0;
  virtual const OutputMarkers& output_markers() const = 0;

  // Fails with kUsage when the source is broken or asks for what no grammar can say. Compiled grammars are kept, so the
  // same source is free the second time. Safe from any thread.
  virtual Result<std::shared_ptr<const Grammar>> compile(const GrammarSource& source) const = 0;

  virtual bool ends_generation(int32_t token) const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual TextMemory memory() const { return {}; }
  // Things the user should know, such as a missing pre-tokenizer name.
  virtual const std::vector<std::string>& warnings() const = 0;
};

// The text side of a file alone, without loading weights. `chat_template`: source that replaces the file's; empty: the
// file's.
Result<std::shared_ptr<const Text>> open_text(const std::string& path, const std::string& chat_template = {});

}  // namespace hearth
