#include "text/output/call_envelope.h"

#include <cctype>
#include <string_view>

namespace hearth {
namespace {

bool is_quote(char c) { return c == '"' || c == '\''; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_name(std::string_view key) { return key == "name" || key == "tool_name"; }
bool is_arguments(std::string_view key) { return key == "arguments" || key == "parameters"; }
bool is_function(std::string_view key) { return key == "function" || key == "tool_call"; }
bool belongs_to_calls(std::string_view key) {
  return is_name(key) || is_arguments(key) || is_function(key) || key == "type" || key == "id" || key == "tool_call_id";
}

}  // namespace

CallReader::Status CallEnvelope::read(Cursor& in, EventSink& out) {
  while (state_ != State::kDone && state_ != State::kBad && !in.empty() && step(in, out)) {
  }
  if (state_ != State::kDone && state_ != State::kBad && in.over()) end(in, out);
  if (state_ == State::kBad) return Status::kRejected;
  return state_ == State::kDone ? Status::kDone : Status::kMore;
}

// One thing read, from at least one byte. False: that took all that there is.
bool CallEnvelope::step(Cursor& in, EventSink& out) {
  std::string piece;
  const bool inside = state_ == State::kKeyString || state_ == State::kName || state_ == State::kArguments ||
                      state_ == State::kWrapped || state_ == State::kSkipped;
  if (!inside) in.skip_space();
  if (in.empty()) return false;
  const char c = in.rest()[0];
  switch (state_) {
    case State::kOpen:
      state_ = c == '{' ? State::kKey : State::kBad;
      if (c == '{') in.skip(1);
      return true;
    case State::kKey:
      if (c == ',') {
        in.skip(1);
      } else if (c == '}') {
        in.skip(1);
        if (levels_-- == 0) leave(in, out);
      } else if (is_quote(c)) {
        in.skip(1);
        key_.clear();
        string_.emplace(c, JsonString::Output::kDecoded);
        state_ = State::kKeyString;
      } else if (is_word(c)) {
        key_.clear();
        state_ = State::kBareKey;
      } else if (ended_ || (c == '<' && named_)) {
        leave(in, out);
      } else {
        state_ = State::kBad;
      }
      return true;
    case State::kKeyString:
      in.skip(string_->read(in.rest(), key_));
      if (string_->done()) state_ = State::kColon;
      return true;
    case State::kBareKey:
      if (is_word(c)) {
        key_ += c;
        in.skip(1);
      } else {
        state_ = State::kColon;
      }
      return true;
    case State::kColon:
      if (c != ':' || (options_.bare && first_key_ && !belongs_to_calls(key_))) {
        state_ = ended_ ? State::kDone : State::kBad;
        return true;
      }
      first_key_ = false;
      in.skip(1);
      state_ = State::kValue;
      return true;
    case State::kValue:
      return begin_value(in);
    case State::kName:
      in.skip(string_->read(in.rest(), name_));
      if (!string_->done()) return true;
      named_ = true;
      state_ =
          name_.empty() || (options_.known != nullptr && !options_.known->has_tool(name_)) ? State::kBad : State::kKey;
      if (state_ == State::kKey && any_arguments_) {
        start(in, out);
        if (arguments_done_) arguments_done(out);
      }
      return true;
    case State::kArguments:
      in.skip(json_->read(in.rest(), piece));
      if (json_->stuck()) json_->close(piece);
      arguments(piece, in, out);
      if (json_->done()) {
        arguments_done(out);
        state_ = State::kKey;
      }
      return true;
    case State::kWrapped: {
      std::string text;
      in.skip(string_->read(in.rest(), text));
      for (size_t i = 0; i < text.size() && !json_->done() && !json_->stuck();) {
        if (!any_arguments_ && is_space(text[i])) {
          ++i;
          continue;
        }
        if (!any_arguments_ && text[i] != '{') {
          state_ = State::kBad;
          return true;
        }
        any_arguments_ = true;
        i += json_->read(std::string_view(text).substr(i), piece);
      }
      if (string_->done() && !any_arguments_) piece = "{}";
      if (string_->done() && any_arguments_ && !json_->done()) json_->close(piece);
      any_arguments_ = any_arguments_ || string_->done();
      if (any_arguments_) arguments(piece, in, out);
      if (string_->done()) {
        arguments_done(out);
        state_ = State::kKey;
      }
      return true;
    }
    case State::kSkipped:
      in.skip(json_->read(in.rest(), piece));
      if (json_->stuck()) json_->close(piece);
      if (json_->done()) state_ = State::kKey;
      return true;
    case State::kDone:
    case State::kBad:
      break;
  }
  return false;
}

bool CallEnvelope::begin_value(Cursor& in) {
  const char c = in.rest()[0];
  const bool wanted = !ended_ && !arguments_done_;
  if (!ended_ && !named_ && (is_name(key_) || is_function(key_)) && is_quote(c)) {
    in.skip(1);
    string_.emplace(c, JsonString::Output::kDecoded);
    state_ = State::kName;
  } else if (!ended_ && is_function(key_) && c == '{') {
    in.skip(1);
    ++levels_;
    state_ = State::kKey;
  } else if (wanted && is_arguments(key_) && c == '{') {
    json_.emplace();
    any_arguments_ = true;
    state_ = State::kArguments;
  } else if (wanted && is_arguments(key_) && is_quote(c)) {
    in.skip(1);
    string_.emplace(c, JsonString::Output::kDecoded);
    json_.emplace();
    state_ = State::kWrapped;
  } else if (wanted && is_arguments(key_) && c != 'n' && c != 'N') {
    state_ = State::kBad;  // arguments are an object or, if there are none, null
  } else {
    json_.emplace();
    state_ = State::kSkipped;
  }
  return true;
}

void CallEnvelope::arguments(const std::string& piece, Cursor& in, EventSink& out) {
  if (named_ && !started_) start(in, out);
  if (started_) {
    out.arguments(piece);
  } else {
    waiting_ += piece;
  }
}

void CallEnvelope::arguments_done(EventSink& out) {
  arguments_done_ = true;
  if (!started_ || ended_) return;
  out.end_call(true);
  ended_ = true;
}

// Starts the call, with the arguments that wait for its name.
void CallEnvelope::start(Cursor& in, EventSink& out) {
  in.release();
  out.start_call(name_);
  out.arguments(waiting_);
  waiting_.clear();
  started_ = true;
}

// The object is closed.
void CallEnvelope::leave(Cursor& in, EventSink& out) {
  if (!ended_ && named_ && !options_.bare) {
    start(in, out);
    out.arguments("{}");
    arguments_done(out);
  }
  state_ = ended_ ? State::kDone : State::kBad;
}

// The answer stops here.
void CallEnvelope::end(Cursor& in, EventSink& out) {
  if (!started_ && named_ && !options_.bare) start(in, out);
  if (started_ && !ended_) out.end_call(false);
  state_ = started_ ? State::kDone : State::kBad;
}

}  // namespace hearth
