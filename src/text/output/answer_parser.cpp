#include "text/output/answer_parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth {
namespace {

using Match = Cursor::Match;

// What is held back because it may be a call is looked at whenever this many bytes have come, at the same places
// however the answer is cut; if it is more than the limit, it is text.
constexpr size_t kCheckEvery = 4096;
constexpr size_t kMaxHeld = size_t{1} << 20;

bool ends_with(std::string_view text, std::string_view marker) {
  const size_t end = text.find_last_not_of(" \n\t\r") + 1;
  return !marker.empty() && text.substr(0, end).ends_with(marker);
}

}  // namespace

AnswerParser::AnswerParser(AnswerForm form, std::vector<MarkerPair> reasoning, const OutputOptions& options)
    : form_(std::move(form)), reasoning_(std::move(reasoning)), schemas_(options.tools_json) {
  if (!schemas_.any()) form_.openers.clear();
  for (const CallOpener& opener : form_.openers) {
    if (!opener.at_start) text_markers_.push_back(opener.marker);
  }
  thought_markers_ = text_markers_;
  thought_markers_.emplace_back();
  if (form_.reasons_anywhere) {
    for (const MarkerPair& pair : reasoning_) text_markers_.push_back(pair.open);
  }
  if (schemas_.any()) text_markers_.insert(text_markers_.end(), form_.closers.begin(), form_.closers.end());
  if (!form_.wrapper.close.empty()) text_markers_.push_back(form_.wrapper.close);

  for (const MarkerPair& pair : reasoning_) {
    if (ends_with(options.prompt_text, pair.close)) out_.trim_text();
    if (state_ == State::kStart && ends_with(options.prompt_text, pair.open)) begin_reasoning(pair);
  }
  if (ends_with(options.prompt_text, form_.turn_open)) out_.trim_text();
}

void AnswerParser::push(std::string_view text, std::vector<OutputEvent>& events) {
  out_.attach(&events);
  while (!text.empty()) {
    const size_t size = std::min(text.size(), kCheckEvery - bytes_ % kCheckEvery);
    in_.append(text.substr(0, size));
    text.remove_prefix(size);
    bytes_ += size;
    run();
    if (bytes_ % kCheckEvery == 0 && in_.held_bytes() > kMaxHeld) {
      if (state_ == State::kThoughtCall) {
        reject_thought_call();
      } else {
        reject_call();
      }
      run();
    }
  }
}

void AnswerParser::finish(std::vector<OutputEvent>& events) {
  out_.attach(&events);
  in_.end();
  run();
  if (state_ == State::kBehindThoughtCall) {
    out_.end_reasoning();
    events.insert(events.end(), thought_calls_.begin(), thought_calls_.end());
  } else if (state_ == State::kReasoning) {
    out_.end_reasoning();
  } else {
    out_.finish();
  }
}

void AnswerParser::run() {
  while (step()) {
  }
}

// True if there is more to do with what has come.
bool AnswerParser::step() {
  switch (state_) {
    case State::kStart:
      return read_start();
    case State::kText:
      return read_text();
    case State::kReasoning:
      return read_reasoning();
    case State::kCall:
      return read_call();
    case State::kThoughtCall:
      return read_thought_call();
    case State::kBehindThoughtCall:
      return read_behind_thought_call();
  }
  return false;
}

bool AnswerParser::read_start() {
  const std::string_view rest = in_.rest();
  const size_t space = std::min(rest.find_first_not_of(" \n\t\r"), rest.size());
  out_.text(rest.substr(0, space));
  in_.skip(space);
  if (in_.empty()) return false;
  bool partial = false;
  for (const MarkerPair& pair : reasoning_) {
    const Match open = in_.take(pair.open);
    if (open == Match::kYes) {
      begin_reasoning(pair);
      return true;
    }
    // The end of reasoning that the prompt has closed already, or never opened.
    const Match close = in_.take(pair.close);
    if (close == Match::kYes) {
      out_.end_reasoning();
      return true;
    }
    partial = partial || open == Match::kPartial || close == Match::kPartial;
  }
  if (!form_.wrapper.open.empty()) {
    const Match open = in_.take(form_.wrapper.open);
    if (open == Match::kYes) {
      wrapped_ = true;
      out_.trim_text();
      return true;
    }
    partial = partial || open == Match::kPartial;
  }
  for (const CallOpener& opener : form_.openers) {
    const Match open = in_.match(opener.marker);
    if (open == Match::kYes && !partial) {
      begin_call(opener);
      return true;
    }
    partial = partial || open == Match::kPartial;
  }
  if (partial) return false;
  state_ = State::kText;
  return true;
}

bool AnswerParser::read_text() {
  const Cursor::Found found = in_.find(text_markers_);
  out_.text(in_.rest().substr(0, found.before));
  in_.skip(found.before);
  if (found.index < 0) return false;
  const std::string_view marker = text_markers_[static_cast<size_t>(found.index)];
  for (const CallOpener& opener : form_.openers) {
    if (opener.marker != marker || opener.at_start) continue;
    begin_call(opener);
    return true;
  }
  in_.skip(marker.size());
  for (const MarkerPair& pair : reasoning_) {
    if (!form_.reasons_anywhere || pair.open != marker) continue;
    begin_reasoning(pair);
    return true;
  }
  const bool ours = marker == form_.wrapper.close ? std::exchange(wrapped_, false) : out_.calls() > 0;
  if (!ours) out_.text(marker);
  return true;
}

bool AnswerParser::read_reasoning() {
  const Cursor::Found found = in_.find(thought_markers_);
  add_reasoning(in_.rest().substr(0, found.before));
  in_.skip(found.before);
  if (found.index < 0) return false;
  const std::string_view marker = thought_markers_[static_cast<size_t>(found.index)];
  for (const CallOpener& opener : form_.openers) {
    if (opener.marker != marker || opener.at_start || !line_begins_ || out_.calls() > 0) continue;
    begin_thought_call(opener);
    return true;
  }
  in_.skip(marker.size());
  if (marker == reasoning_close_) {
    end_reasoning();
  } else {
    add_reasoning(marker);
  }
  return true;
}

bool AnswerParser::read_call() {
  switch (reader_->read(in_, out_)) {
    case CallReader::Status::kMore:
      return false;
    case CallReader::Status::kDone:
      in_.release();
      reader_.reset();
      state_ = State::kStart;
      return true;
    case CallReader::Status::kRejected:
      reject_call();
      return true;
  }
  return false;
}

bool AnswerParser::read_thought_call() {
  const std::string_view before = in_.rest();
  const CallReader::Status status = reader_->read(in_, thought_out_);
  thought_.append(before.substr(0, before.size() - in_.rest().size()));
  if (status == CallReader::Status::kMore) return false;
  const auto* end = thought_calls_.empty() ? nullptr : std::get_if<ToolCallEnd>(&thought_calls_.back());
  // One that the end of the answer cuts off is told as such, as anywhere else.
  if (status == CallReader::Status::kDone && end != nullptr && (end->complete || in_.over())) {
    in_.release();
    reader_.reset();
    state_ = State::kBehindThoughtCall;
  } else {
    reject_thought_call();
  }
  return true;
}

bool AnswerParser::read_behind_thought_call() {
  const std::string_view rest = in_.rest();
  const size_t space = std::min(rest.find_first_not_of(" \n\t\r"), rest.size());
  if (space == rest.size()) return false;
  if (!thought_closed_) {
    thought_.append(rest.substr(0, space));
    in_.skip(space);
    const Match close = in_.take(reasoning_close_);
    if (close == Match::kYes) {
      thought_closed_ = true;
      return true;
    }
    bool partial = close == Match::kPartial;
    for (const CallOpener& opener : form_.openers) {
      const Match open = opener.at_start ? Match::kNo : in_.match(opener.marker);
      if (open == Match::kYes && !partial) {
        begin_thought_call(opener);
        return true;
      }
      partial = partial || open == Match::kPartial;
    }
    if (partial) return false;
  }
  reject_thought_call();
  return true;
}

void AnswerParser::begin_reasoning(const MarkerPair& pair) {
  reasoning_close_ = pair.close;
  thought_markers_.back() = reasoning_close_;
  line_begins_ = true;
  state_ = State::kReasoning;
  out_.begin_reasoning();
}

void AnswerParser::end_reasoning() {
  out_.end_reasoning();
  state_ = State::kStart;
}

void AnswerParser::begin_call(const CallOpener& opener) {
  in_.hold();
  if (!opener.kept) in_.skip(opener.marker.size());
  reader_ = opener.reader(schemas_);
  state_ = State::kCall;
}

void AnswerParser::begin_thought_call(const CallOpener& opener) {
  thought_out_.attach(&thought_calls_);
  in_.hold();
  if (!opener.kept) {
    thought_.append(opener.marker);
    in_.skip(opener.marker.size());
  }
  reader_ = opener.reader(schemas_);
  state_ = State::kThoughtCall;
}

void AnswerParser::reject_call() {
  out_.text(in_.take_held());
  reader_.reset();
  state_ = State::kText;
}

// The calls in the reasoning were thoughts.
void AnswerParser::reject_thought_call() {
  in_.release();
  reader_.reset();
  state_ = State::kReasoning;
  add_reasoning(std::exchange(thought_, {}));
  thought_calls_.clear();
  thought_out_ = {};
  if (std::exchange(thought_closed_, false)) end_reasoning();
}

void AnswerParser::add_reasoning(std::string_view text) {
  out_.reasoning(text);
  const size_t last = text.find_last_not_of(" \t");
  if (last != std::string_view::npos) line_begins_ = text[last] == '\n';
}

}  // namespace hearth
