#include "text/output/event_sink.h"

#include <algorithm>
#include <utility>

namespace hearth {

template <class Delta>
void EventSink::add(std::string_view text) {
  if (text.empty()) return;
  if (!events_->empty()) {
    if (auto* last = std::get_if<Delta>(&events_->back())) {
      last->text.append(text);
      return;
    }
  }
  events_->push_back(Delta{std::string(text)});
}

void EventSink::begin_reasoning() {
  space_ = any_reasoning_ ? "\n\n" : "";
  trims_ = true;
}

void EventSink::reasoning(std::string_view text) {
  if (trims_) text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  if (text.empty()) return;
  trims_ = false;
  const size_t end = text.find_last_not_of('\n') + 1;
  if (end > 0) {
    add<ReasoningDelta>(std::exchange(space_, {}));
    add<ReasoningDelta>(text.substr(0, end));
    any_reasoning_ = true;
  }
  space_.append(text.substr(end));
}

void EventSink::end_reasoning() {
  space_.clear();
  trims_ = true;
}

void EventSink::text(std::string_view text) {
  if (trims_) text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  if (text.empty()) return;
  trims_ = false;
  const size_t end = text.find_last_not_of(" \n\t\r") + 1;
  if (end > 0) {
    add<TextDelta>(std::exchange(space_, {}));
    add<TextDelta>(text.substr(0, end));
    any_text_ = true;
    after_call_ = false;
  }
  space_.append(text.substr(end));
}

void EventSink::start_call(std::string name, std::string id) {
  space_.clear();
  const ToolCallStart start{.index = calls_, .name = std::move(name), .id = std::move(id)};
  events_->emplace_back(start);
  call_open_ = true;
}

void EventSink::arguments(std::string_view json) {
  if (json.empty()) return;
  if (!events_->empty()) {
    if (auto* last = std::get_if<ToolArgumentsDelta>(&events_->back())) {
      last->json.append(json);
      return;
    }
  }
  events_->push_back(ToolArgumentsDelta{.index = calls_, .json = std::string(json)});
}

void EventSink::end_call(bool complete) {
  const ToolCallEnd end{.index = calls_++, .complete = complete};
  events_->emplace_back(end);
  call_open_ = false;
  after_call_ = true;
  trims_ = !any_text_;
}

void EventSink::finish() {
  if (!after_call_) add<TextDelta>(space_);
  space_.clear();
}

}  // namespace hearth
