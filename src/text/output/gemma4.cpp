// Gemma 4: <|tool_call>call:NAME{key:<|"|>text<|"|>,n:2}<tool_call|>. Strings stand between <|"|> marks without
// escapes; keys are bare.
#include <array>

#include "text/output/dialects.h"

namespace hearth {
namespace {

using Match = Cursor::Match;

constexpr std::string_view kQuote = "<|\"|>";
constexpr std::string_view kClose = "<tool_call|>";
constexpr std::string_view kCall = "call:";
constexpr size_t kMaxName = 256;

class GemmaCall final : public CallReader {
 public:
  Status read(Cursor& in, EventSink& out) override {
    while (true) {
      if (in.over()) return end(out);
      if (in.empty()) return Status::kMore;
      Match found = Match::kYes;
      switch (state_) {
        case State::kCall:
          in.skip_space();
          if (in.empty()) continue;
          found = in.take(kCall);
          if (found == Match::kNo) return Status::kRejected;
          if (found == Match::kYes) state_ = State::kName;
          break;
        case State::kName: {
          const char c = in.rest()[0];
          if (c == '{') {
            if (name_.empty()) return Status::kRejected;
            in.release();
            out.start_call(name_);
            state_ = State::kArguments;
          } else if (is_space(c) || c == '<' || name_.size() == kMaxName) {
            return Status::kRejected;
          } else {
            name_ += c;
            in.skip(1);
          }
          break;
        }
        case State::kArguments:
          found = read_arguments(in, out);
          break;
        case State::kString: {
          const std::array<std::string_view, 1> quote = {kQuote};
          const Cursor::Found close = in.find(quote);
          std::string text, json;
          append_escaped(in.rest().substr(0, close.before), text);
          in.skip(close.before);
          if (close.index >= 0) {
            in.skip(kQuote.size());
            text += '"';
            state_ = State::kArguments;
          }
          json_.read(text, json);
          out.arguments(json);
          if (close.index < 0 && !in.ended()) found = Match::kPartial;
          break;
        }
        case State::kEnd:
          in.skip_space();
          if (in.empty()) continue;
          found = in.take(kClose);
          if (found != Match::kPartial) return Status::kDone;
          break;
      }
      if (found == Match::kPartial) return Status::kMore;
    }
  }

 private:
  enum class State { kCall, kName, kArguments, kString, kEnd };

  // Outside of strings; the reader of lenient JSON takes bare keys.
  Match read_arguments(Cursor& in, EventSink& out) {
    std::string json;
    const Match quote = in.take(kQuote);
    if (quote == Match::kPartial) return quote;
    if (quote == Match::kYes) {
      json_.read("\"", json);
      state_ = State::kString;
    } else {
      const std::string_view rest = in.rest();
      // Its first byte may be a `<`, at which the value stops; else up to the next.
      in.skip(json_.read(rest.substr(0, std::max<size_t>(1, rest.find('<'))), json));
      if (json_.stuck()) json_.close(json);
    }
    out.arguments(json);
    if (json_.done()) {
      out.end_call(true);
      state_ = State::kEnd;
    }
    return Match::kYes;
  }

  Status end(EventSink& out) {
    if (out.call_open()) out.end_call(false);
    return state_ == State::kCall || state_ == State::kName ? Status::kRejected : Status::kDone;
  }

  State state_ = State::kCall;
  std::string name_;
  JsonStream json_;
};

std::unique_ptr<CallReader> tool_call(const ToolSchemas&) { return std::make_unique<GemmaCall>(); }

}  // namespace

AnswerForm gemma4_form() {
  return {.openers = {{.marker = "<|tool_call>", .reader = tool_call}}, .closers = {kClose}, .reasons_anywhere = true};
}

}  // namespace hearth
