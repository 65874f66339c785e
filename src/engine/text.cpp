#include "engine/text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "files/gguf.h"
#include "text/grammar/grammar_cache.h"
#include "text/known_texts.h"
#include "text/output/output_parser.h"
#include "text/template/conversation.h"
#include "text/template/template_traits.h"
#include "text/tokenizer.h"

namespace hearth {
namespace {

constexpr int64_t kMaxNesting = 200;
constexpr size_t kKnownTextBytes = size_t{32} << 20;

// Levels of brackets outside of strings. Parsed values are copied recursively, so depth is checked on the text.
int64_t nesting(std::string_view json) {
  int64_t depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return deepest;
}

class ModelText final : public Text {
 public:
  ModelText(std::unique_ptr<const Tokenizer> tokenizer, std::string source, Result<ChatTemplate> chat_template)
      : tokenizer_(std::move(tokenizer)),
        source_(std::move(source)),
        template_(std::move(chat_template)),
        markers_(detect_output_markers(source_)),
        grammars_(*tokenizer_),
        warnings_(tokenizer_->vocab().warnings) {
    markers_.tool_call_open = tool_call_opener(markers_.dialect);
    if (template_) traits_ = detect_traits(*template_, template_options());
    if (!source_.empty() && !template_) warnings_.push_back(template_.error().message);
  }

  Result<std::vector<int32_t>> tokenize(std::string_view text, bool special, bool add_special) const override {
    return tokenizer_->encode(text, {.parse_special = special, .add_special = add_special});
  }

  std::string piece(int32_t token, bool special) const override {
    if (!special && tokenizer_->is_hidden(token)) return {};
    return std::string(tokenizer_->piece(token));
  }

  std::string detokenize(const std::vector<int32_t>& tokens, bool special) const override {
    return tokenizer_->decode(tokens, {.special = special});
  }

  Result<Prompt> render(std::string_view conversation_json, const RenderOptions& options) const override {
    if (!template_) return Error(template_.error());
    if (nesting(conversation_json) > kMaxNesting) {
      return fail(ErrorCode::kInvalidInput, "render a conversation: its JSON is nested more than {} levels deep",
                  kMaxNesting);
    }
    auto context = nlohmann::ordered_json::parse(conversation_json, nullptr, false);
    if (context.is_discarded() || !context.is_object()) {
      return fail(ErrorCode::kInvalidInput,
                  "render a conversation: it is not a JSON object; it should look like {{\"messages\": [{{\"role\": "
                  "\"user\", \"content\": \"Hi\"}}]}}");
    }
    if (!context.contains("messages") || !context["messages"].is_array()) {
      return fail(ErrorCode::kInvalidInput, "render a conversation: it has no array \"messages\"");
    }
    ConversationRequest request{.messages = std::move(context["messages"]),
                                .think = options.thinking,
                                .add_generation_prompt = options.add_generation_prompt,
                                .continue_final_message = options.add_generation_prompt};
    context.erase("messages");
    if (context.contains("tools")) {
      request.tools = std::move(context["tools"]);
      context.erase("tools");
    }
    request.variables = std::move(context);
    HEARTH_ASSIGN(Rendered rendered, render_conversation(*template_, traits_, request, template_options()));
    std::vector<TextSegment> segments;
    segments.reserve(rendered.segments.size());
    for (const Segment& segment : rendered.segments) segments.push_back({segment.text, segment.trusted});
    // Whether a BOS belongs in front is the template's business, as in Hugging Face's apply_chat_template.
    return Prompt{.tokens = known_.encode(segments, *tokenizer_), .text = rendered.text()};
  }

  void remember(std::span<const int32_t> tokens) const override { known_.add(tokens, *tokenizer_); }

  std::unique_ptr<OutputParser> parse_output(const OutputOptions& options) const override {
    return make_output_parser(markers_, options);
  }
  const OutputMarkers& output_markers() const override { return markers_; }

  Result<std::shared_ptr<const Grammar>> compile(const GrammarSource& source) const override {
    return grammars_.compile(source, markers_.dialect);
  }

  bool has_chat_template() const override { return template_.has_value(); }
  bool supports_thinking() const override { return !traits_.thinking_variable.empty(); }
  std::string_view chat_template() const override { return source_; }
  bool ends_generation(int32_t token) const override { return tokenizer_->is_end_of_generation(token); }
  int64_t vocab_size() const override { return tokenizer_->vocab().size(); }
  TextMemory memory() const override {
    return {.known_texts = known_.bytes(),
            .known_texts_limit = known_.max_bytes(),
            .grammars = grammars_.bytes(),
            .grammars_limit = GrammarCache::kMaxBytes};
  }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  TemplateOptions template_options() const {
    const Vocab& vocab = tokenizer_->vocab();
    const auto token_text = [&](int32_t id) { return id < 0 ? std::string() : vocab.tokens[static_cast<size_t>(id)]; };
    return {.bos_token = token_text(vocab.bos), .eos_token = token_text(vocab.eos)};
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
  std::string source_;
  Result<ChatTemplate> template_;  // or why there is none
  TemplateTraits traits_;
  OutputMarkers markers_;
  mutable GrammarCache grammars_;
  std::vector<std::string> warnings_;
  mutable KnownTexts known_{kKnownTextBytes};
};

}  // namespace

Result<std::unique_ptr<const Text>> make_text(const Metadata& metadata, const std::string& chat_template) {
  HEARTH_ASSIGN(Vocab vocab, read_vocab(metadata));
  HEARTH_ASSIGN(auto tokenizer, Tokenizer::create(std::move(vocab)));
  std::string source = chat_template;
  if (source.empty()) {
    HEARTH_ASSIGN(std::string_view own, metadata.string_or("tokenizer.chat_template", ""));
    source = own;
  }
  Result<ChatTemplate> parsed =
      fail(ErrorCode::kUnsupported,
           "the model has no chat template; --chat-template FILE gives it one, and `run --raw` does without");
  if (!source.empty()) {
    parsed = ChatTemplate::parse(source);
    if (!parsed) {
      Error error = std::move(parsed).error().with_context("chat template");
      if (!chat_template.empty()) return error;
      parsed = std::move(error);
    }
  }
  return std::unique_ptr<const Text>(
      std::make_unique<ModelText>(std::move(tokenizer), std::move(source), std::move(parsed)));
}

Result<std::shared_ptr<const Text>> open_text(const std::string& path, const std::string& chat_template) {
  HEARTH_ASSIGN(Catalog catalog, open_gguf(path));
  auto text = make_text(catalog.metadata(), chat_template);
  if (!text) return std::move(text).error().with_context(path);
  return std::shared_ptr<const Text>(std::move(text).value());
}

}  // namespace hearth
