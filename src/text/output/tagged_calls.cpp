#include "text/output/tagged_calls.h"

#include <array>
#include <cctype>

namespace hearth {
namespace {

using Match = Cursor::Match;

constexpr size_t kMaxName = 256;
constexpr size_t kMaxSpace = 64;  // white space between tags behind a value

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == ':' || c == '/' ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

TaggedCalls::TaggedCalls(const TaggedForm& form, const ToolSchemas& schemas, bool in_call)
    : form_(form), schemas_(schemas), state_(in_call || form.call_open.empty() ? State::kName : State::kSection) {
  for (std::string_view tag : {form_.value_close, form_.call_close}) {
    if (tag.empty()) continue;
    closers_.emplace_back(tag);
    if (form_.framed) closers_.push_back("\n" + std::string(tag));
  }
  markers_.assign(closers_.begin(), closers_.end());
}

TaggedCalls::Step TaggedCalls::step(Cursor& in, EventSink& out) {
  if (in.over()) {
    if (started_) out.end_call(false);
    return started_ || any_ ? Step::kDone : Step::kRejected;
  }
  if (in.empty()) return Step::kMore;
  switch (state_) {
    case State::kSection: {
      in.skip_space();
      if (in.empty()) return Step::kGoOn;
      const Match open = in.match(form_.call_open);
      const Match close = in.match(form_.section_close);
      if (open == Match::kYes) {
        if (any_) in.hold();
        in.skip(form_.call_open.size());
        name_.clear();
        state_ = State::kName;
        return Step::kGoOn;
      }
      if (any_ && close == Match::kYes) {
        in.skip(form_.section_close.size());
        return Step::kDone;
      }
      if (open == Match::kPartial || (any_ && close == Match::kPartial)) return Step::kMore;
      return any_ ? Step::kDone : Step::kRejected;
    }
    case State::kName:
      return read_name(in);
    case State::kParameters:
      return read_parameters(in, out);
    case State::kKey: {
      const std::array<std::string_view, 1> ends = {form_.key_end};
      const Cursor::Found found = in.find(ends);
      key_.append(in.rest().substr(0, found.before));
      in.skip(found.before);
      if (key_.size() > kMaxName) return broken(out);
      if (found.index < 0) return in.ended() ? Step::kGoOn : Step::kMore;
      in.skip(form_.key_end.size());
      state_ = State::kValueOpen;
      return Step::kGoOn;
    }
    case State::kValueOpen: {
      if (!form_.value_open.empty()) {
        in.skip_space();
        if (in.empty()) return Step::kGoOn;
        const Match open = in.take(form_.value_open);
        if (open == Match::kPartial) return Step::kMore;
        if (open == Match::kNo) return broken(out);
      }
      JsonTypes types = schemas_.types(name_, key_);
      // DeepSeek's tag says itself whether it is a string.
      if (const size_t attribute = key_.find("\" string=\""); attribute != std::string::npos) {
        types = key_.substr(attribute).ends_with("true") ? JsonTypes{kStringType} : JsonTypes{kAnyType & ~kStringType};
        key_.resize(attribute);
      }
      std::string json = parameters_++ == 0 ? "{\"" : ", \"";
      append_escaped(key_, json);
      json += "\": ";
      start(in, out);
      out.arguments(json);
      value_.emplace(types);
      state_ = State::kValueBegin;
      return Step::kGoOn;
    }
    case State::kValueBegin:
      if (form_.framed && in.rest()[0] == '\n') in.skip(1);
      state_ = State::kValue;
      return Step::kGoOn;
    case State::kValue:
      return read_value(in, out);
  }
  return Step::kDone;
}

TaggedCalls::Step TaggedCalls::read_name(Cursor& in) {
  if (!form_.name_end.empty()) {
    const Match end = in.take(form_.name_end);
    if (end == Match::kPartial) return Step::kMore;
    if (end == Match::kYes) {
      state_ = State::kParameters;
      return name_.empty() ? Step::kRejected : Step::kGoOn;
    }
  } else if (!name_.empty() && (is_space(in.rest()[0]) || in.rest()[0] == '<')) {
    state_ = State::kParameters;
    return Step::kGoOn;
  } else if (name_.empty() && is_space(in.rest()[0])) {
    in.skip_space();
    return Step::kGoOn;
  }
  if (!is_name(in.rest()[0]) || name_.size() == kMaxName) return Step::kRejected;
  name_ += in.rest()[0];
  in.skip(1);
  return Step::kGoOn;
}

TaggedCalls::Step TaggedCalls::read_parameters(Cursor& in, EventSink& out) {
  in.skip_space();
  if (in.empty()) return Step::kGoOn;
  const std::string_view call_close = form_.call_close.empty() ? form_.section_close : form_.call_close;
  const Match key = in.match(form_.key_open);
  const Match close = in.match(call_close);
  const Match section = in.match(form_.section_close);
  if (key == Match::kYes) {
    in.skip(form_.key_open.size());
    key_.clear();
    state_ = State::kKey;
    return Step::kGoOn;
  }
  if (close == Match::kYes) {
    in.skip(call_close.size());
    start(in, out);
    const Step next = end_call(out, true);
    return form_.call_close.empty() ? Step::kDone : next;
  }
  if (section == Match::kYes) {
    start(in, out);
    return end_call(out, true);  // reads it again, as the section's end
  }
  if (key == Match::kPartial || close == Match::kPartial || section == Match::kPartial) return Step::kMore;
  return broken(out);
}

TaggedCalls::Step TaggedCalls::read_value(Cursor& in, EventSink& out) {
  const Cursor::Found found = in.find(markers_);
  std::string json;
  value_->add(in.rest().substr(0, found.before), json);
  in.skip(found.before);
  Step next = Step::kGoOn;
  if (found.index >= 0) {
    const std::string_view marker = markers_[static_cast<size_t>(found.index)];
    const bool is_call = !form_.call_close.empty() && marker.ends_with(form_.call_close);
    const Match closed = closes(in, marker.size(), is_call);
    if (closed == Match::kYes) {
      if (!is_call) in.skip(marker.size());
      value_->end(json);
      state_ = State::kParameters;
    } else if (closed == Match::kNo) {
      value_->add(marker, json);  // the value itself contains such a tag
      in.skip(marker.size());
    } else {
      next = Step::kMore;
    }
  } else if (!in.ended()) {
    next = Step::kMore;
  }
  out.arguments(json);
  return next;
}

// Whether what stands `behind` bytes ahead is what may follow the end of a parameter (or of a call).
Cursor::Match TaggedCalls::closes(const Cursor& in, size_t behind, bool call) const {
  const std::string_view text = in.rest();
  size_t at = behind;
  while (at < text.size() && at - behind < kMaxSpace && is_space(text[at])) ++at;
  if (at == text.size()) return in.ended() ? Match::kYes : Match::kPartial;
  Match best = in.match(form_.section_close, at);
  if (call) return best;
  for (std::string_view next : {form_.key_open, form_.call_close}) {
    if (next.empty()) continue;
    const Match found = in.match(next, at);
    if (found == Match::kYes || best == Match::kNo) best = found;
  }
  return best;
}

void TaggedCalls::start(Cursor& in, EventSink& out) {
  if (started_) return;
  in.release();
  out.start_call(name_);
  started_ = true;
}

TaggedCalls::Step TaggedCalls::end_call(EventSink& out, bool complete) {
  if (parameters_ == 0) out.arguments("{");
  out.arguments("}");
  out.end_call(complete);
  any_ = true;
  started_ = false;
  parameters_ = 0;
  state_ = State::kSection;
  return Step::kGoOn;
}

// What comes is neither a parameter nor the end.
TaggedCalls::Step TaggedCalls::broken(EventSink& out) {
  if (!started_) return Step::kRejected;
  end_call(out, true);
  return Step::kDone;
}

}  // namespace hearth
