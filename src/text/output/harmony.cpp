// Harmony (gpt-oss): an answer is a series of messages, <|channel|>NAME to=RECIPIENT<|message|>...<|end|>, each behind
// <|start|>assistant but for the first. The recipient of a call may stand in front of the channel too.
#include <array>
#include <utility>

#include "text/output/dialects.h"

namespace hearth {
namespace {

using Match = Cursor::Match;

constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kTurn = "<|start|>assistant";
// Every one of these ends a message, whether the model meant to or not.
constexpr std::array<std::string_view, 5> kEnds = {"<|end|>", "<|return|>", "<|call|>", kStart, kChannel};
// What a header can begin with.
constexpr std::array<std::string_view, 5> kHeaders = {kChannel, kStart, kMessage, "to=", "<|constrain|>"};
constexpr size_t kMaxHeader = 1024;

// The word behind `key`, which ends at white space or markup.
std::string_view word_behind(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of(" \n\t\r<"));
}

class HarmonyParser final : public OutputParser {
 public:
  explicit HarmonyParser(const OutputOptions& options) : schemas_(options.tools_json) {
    // The prompt may have begun the message already.
    const std::string_view prompt = options.prompt_text;
    const size_t turn = prompt.rfind(kTurn);
    if (turn == std::string_view::npos) return;
    std::vector<OutputEvent> dropped;
    push(prompt.substr(turn + kTurn.size()), dropped);
    out_ = {};
  }

  void push(std::string_view text, std::vector<OutputEvent>& events) override {
    out_.attach(&events);
    in_.append(text);
    while (step()) {
    }
  }

  void finish(std::vector<OutputEvent>& events) override {
    out_.attach(&events);
    in_.end();
    while (step()) {
    }
    out_.finish();
  }

  bool in_reasoning() const override { return state_ == State::kBody && body_ == Body::kReasoning; }
  bool in_tool_call() const override { return state_ == State::kArguments || state_ == State::kNoArguments; }

 private:
  enum class State {
    kNext,  // between messages
    kHeader,
    kBody,
    kNoArguments,  // of a call, before its first byte
    kArguments,
  };
  enum class Body { kNone, kReasoning, kText };

  bool step() {
    if (in_.empty() && !(in_.ended() && (state_ == State::kNoArguments || state_ == State::kArguments))) return false;
    switch (state_) {
      case State::kNext:
        return read_next();
      case State::kHeader:
        return read_header();
      case State::kBody:
        return read_body();
      case State::kNoArguments:
        return begin_arguments();
      case State::kArguments:
        if (!arguments_.read(in_, out_)) return false;
        begin_body(Body::kText);
        return true;
    }
    return false;
  }

  bool read_next() {
    const std::string_view rest = in_.rest();
    const size_t space = std::min(rest.find_first_not_of(" \n\t\r"), rest.size());
    space_.append(rest.substr(0, space));
    in_.skip(space);
    if (in_.empty()) return false;
    bool partial = false;
    for (std::string_view header : kHeaders) {
      const Match found = in_.match(header);
      if (found == Match::kYes) {
        space_.clear();
        header_.clear();
        in_.hold();
        state_ = State::kHeader;
        return true;
      }
      partial = partial || found == Match::kPartial;
    }
    for (std::string_view end : kEnds) {
      const Match found = in_.take(end);
      if (found == Match::kYes) return true;
      partial = partial || found == Match::kPartial;
    }
    if (partial) return false;
    // No header at all: a model that forgot its format.
    begin_body(Body::kText);
    out_.text(std::exchange(space_, {}));
    return true;
  }

  bool read_header() {
    const std::array<std::string_view, 4> ends = {kMessage, "<|end|>", "<|return|>", "<|call|>"};
    const Cursor::Found found = in_.find(ends);
    const size_t room = kMaxHeader - header_.size();
    header_.append(in_.rest().substr(0, std::min(found.before, room)));
    in_.skip(std::min(found.before, room));
    if (header_.size() == kMaxHeader || (found.index < 0 && in_.ended())) {
      // Only a header that never ends is so long; one that is cut off says nothing.
      const std::string held = in_.take_held();
      begin_body(Body::kText);
      if (header_.size() == kMaxHeader) out_.text(held);
      return true;
    }
    if (found.index < 0) return false;
    in_.skip(ends[static_cast<size_t>(found.index)].size());
    in_.release();
    if (found.index > 0) {
      state_ = State::kNext;
      return true;
    }
    const std::string_view recipient = word_behind(header_, "to=");
    const std::string_view channel = word_behind(header_, kChannel);
    if (schemas_.any() && !recipient.empty() && recipient != "assistant" && recipient != "user" && recipient != "all") {
      name_ = recipient.starts_with("functions.") ? recipient.substr(10) : recipient;
      reasons_ = channel == "analysis";
      state_ = State::kNoArguments;
    } else {
      begin_body(channel == "analysis" ? Body::kReasoning : Body::kText);
    }
    return true;
  }

  // A call has an object; the body of a message to a tool may be anything else.
  bool begin_arguments() {
    const std::string_view rest = in_.rest();
    const size_t space = std::min(rest.find_first_not_of(" \n\t\r"), rest.size());
    space_.append(rest.substr(0, space));
    in_.skip(space);
    bool ends = in_.over();
    bool partial = in_.empty() && !in_.ended();
    for (std::string_view end : kEnds) {
      ends = ends || in_.match(end) == Match::kYes;
      partial = partial || in_.match(end) == Match::kPartial;
    }
    if (partial && !ends) return false;
    if (!ends && in_.rest()[0] != '{') {
      begin_body(reasons_ ? Body::kReasoning : Body::kText);
      if (reasons_) {
        out_.reasoning(std::exchange(space_, {}));
      } else {
        out_.text(std::exchange(space_, {}));
      }
      return true;
    }
    space_.clear();
    out_.start_call(name_);
    arguments_ = {};
    state_ = State::kArguments;
    if (ends) {
      const bool complete = !in_.over();
      if (complete) out_.arguments("{}");
      out_.end_call(complete);
      begin_body(Body::kText);
    }
    return true;
  }

  bool read_body() {
    const Cursor::Found found = in_.find(kEnds);
    const std::string_view text = in_.rest().substr(0, found.before);
    if (!text.empty() && std::exchange(paragraph_, false)) out_.text("\n\n");
    if (body_ == Body::kReasoning) {
      out_.reasoning(text);
    } else {
      out_.text(text);
    }
    in_.skip(found.before);
    if (found.index < 0) return false;
    if (body_ == Body::kReasoning) out_.end_reasoning();
    state_ = State::kNext;
    return true;
  }

  void begin_body(Body body) {
    state_ = State::kBody;
    body_ = body;
    paragraph_ = body == Body::kText && out_.any_text();
    if (body == Body::kReasoning) out_.begin_reasoning();
  }

  ToolSchemas schemas_;
  Cursor in_;
  EventSink out_;
  State state_ = State::kNext;
  Body body_ = Body::kNone;
  std::string space_;       // in front of what is to come
  bool paragraph_ = false;  // other text stands before this one
  std::string header_;
  std::string name_;      // of the tool
  bool reasons_ = false;  // the message to the tool is in the channel of reasoning
  JsonArguments arguments_;
};

}  // namespace

std::unique_ptr<OutputParser> make_harmony_parser(const OutputOptions& options) {
  return std::make_unique<HarmonyParser>(options);
}

}  // namespace hearth
