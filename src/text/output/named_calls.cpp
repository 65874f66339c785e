#include "text/output/named_calls.h"

#include <array>

namespace hearth {
namespace {

using Match = Cursor::Match;

constexpr size_t kMaxHead = 256;
constexpr std::string_view kFence = "```json";

}  // namespace

NamedCalls::Step NamedCalls::step(Cursor& in, EventSink& out) {
  if (state_ == State::kArguments) {
    if (!arguments_.read(in, out)) return Step::kMore;
    any_ = true;
    state_ = State::kEnd;
    return Step::kGoOn;
  }
  if (state_ != State::kHead && state_ != State::kName) in.skip_space();
  if (in.over()) return any_ && (state_ == State::kSection || state_ == State::kEnd) ? Step::kDone : Step::kRejected;
  if (in.empty()) return Step::kMore;
  switch (state_) {
    case State::kSection: {
      const Match open = in.match(form_.call_open);
      const Match close = any_ && !form_.section_close.empty() ? in.take(form_.section_close) : Match::kNo;
      if (close == Match::kYes) return Step::kDone;
      if (open == Match::kYes) {
        if (any_) in.hold();
        in.skip(form_.call_open.size());
        head_.clear();
        name_.clear();
        state_ = State::kHead;
        return Step::kGoOn;
      }
      if (open == Match::kPartial || close == Match::kPartial) return Step::kMore;
      return any_ ? Step::kDone : Step::kRejected;
    }
    case State::kHead:
      return read_head(in);
    case State::kName:
      return read_name(in);
    case State::kBegin:
    case State::kNamed:
      return begin_arguments(in, out);
    case State::kArguments:
      break;
    case State::kEnd: {
      const Match fence = form_.name_after_separator ? in.take("```") : Match::kNo;
      const Match close = form_.call_close.empty() ? Match::kNo : in.take(form_.call_close);
      if (fence == Match::kYes && close == Match::kNo) return Step::kGoOn;
      if (fence == Match::kPartial || close == Match::kPartial) return Step::kMore;
      arguments_ = {};
      state_ = State::kSection;
      return Step::kGoOn;
    }
  }
  return Step::kDone;
}

NamedCalls::Step NamedCalls::read_head(Cursor& in) {
  const std::array<std::string_view, 3> ends = {form_.separator, "{", "\n"};
  const Cursor::Found found = in.find(ends);
  head_.append(in.rest().substr(0, found.before));
  in.skip(found.before);
  if (head_.size() > kMaxHead || found.index == 2) return Step::kRejected;
  if (found.index < 0) return in.ended() ? Step::kGoOn : Step::kMore;
  if (found.index == 0) in.skip(form_.separator.size());
  state_ = State::kBegin;
  return form_.head(head_).name.empty() ? Step::kRejected : Step::kGoOn;
}

NamedCalls::Step NamedCalls::begin_arguments(Cursor& in, EventSink& out) {
  if (form_.name_after_separator) {
    const Match fence = in.take(kFence);
    if (fence == Match::kPartial) return Step::kMore;
    if (fence == Match::kYes) return Step::kGoOn;
  }
  if (in.rest()[0] == '{') {
    start(in, out);
    state_ = State::kArguments;
    return Step::kGoOn;
  }
  if (!form_.call_close.empty()) {
    const Match close = in.match(form_.call_close);
    if (close == Match::kPartial) return Step::kMore;
    if (close == Match::kYes) {
      start(in, out);
      out.arguments("{}");
      out.end_call(true);
      any_ = true;
      state_ = State::kEnd;
      return Step::kGoOn;
    }
  }
  if (!form_.name_after_separator || state_ == State::kNamed) return Step::kRejected;
  state_ = State::kName;
  return Step::kGoOn;
}

// To the end of its line.
NamedCalls::Step NamedCalls::read_name(Cursor& in) {
  const std::array<std::string_view, 4> ends = {"\n", "{", "`", form_.call_close};
  const Cursor::Found found = in.find(ends);
  name_.append(in.rest().substr(0, found.before));
  in.skip(found.before);
  if (name_.size() > kMaxHead) return Step::kRejected;
  if (found.index < 0) return in.ended() ? Step::kGoOn : Step::kMore;
  while (!name_.empty() && is_space(name_.back())) name_.pop_back();
  state_ = State::kNamed;
  return Step::kGoOn;
}

void NamedCalls::start(Cursor& in, EventSink& out) {
  CallHead head = form_.head(head_);
  if (state_ == State::kNamed) head.name = name_;
  in.release();
  out.start_call(std::move(head.name), std::move(head.id));
}

}  // namespace hearth
