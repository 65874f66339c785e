// One call that is written as a JSON object with its name and its arguments.
#pragma once

#include <optional>
#include <string>

#include "text/output/call_reader.h"
#include "text/output/tool_schemas.h"

namespace hearth {

struct EnvelopeOptions {
  // No marker stands before the object, so it may be any JSON: it is a call only if it has both name and arguments, and
  // its first key must be one that calls have.
  bool bare = false;
  const ToolSchemas* known = nullptr;  // given: only these tools
};

// {"name": NAME, "arguments": {...}} with other keys, in any order; also "parameters", arguments inside of a string,
// and all of it below "function". Arguments in front of the name wait for it.
class CallEnvelope final : public CallReader {
 public:
  explicit CallEnvelope(EnvelopeOptions options) : options_(options) {}

  // The cursor stands at the opening bracket.
  Status read(Cursor& in, EventSink& out) override;

 private:
  enum class State {
    kOpen,
    kKey,
    kKeyString,
    kBareKey,
    kColon,
    kValue,
    kName,
    kArguments,
    kWrapped,
    kSkipped,
    kDone,
    kBad
  };

  bool step(Cursor& in, EventSink& out);
  bool begin_value(Cursor& in);
  void arguments(const std::string& piece, Cursor& in, EventSink& out);
  void arguments_done(EventSink& out);
  void leave(Cursor& in, EventSink& out);
  void end(Cursor& in, EventSink& out);
  void start(Cursor& in, EventSink& out);

  EnvelopeOptions options_;
  State state_ = State::kOpen;
  int levels_ = 0;  // objects below "function" that are open
  bool first_key_ = true;
  std::string key_;
  std::optional<JsonString> string_;
  std::string name_;
  bool named_ = false;
  std::optional<JsonStream> json_;  // the value that is read
  std::string waiting_;             // arguments that came before the name
  bool any_arguments_ = false;
  bool arguments_done_ = false;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace hearth
