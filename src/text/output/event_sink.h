// Collects the events of an answer: joins neighbours, numbers calls, and drops the space that belongs to the markup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/output.h"

namespace hearth {

// Newlines on either side of reasoning, white space before a call and white space at the end behind one are the
// template's: they are not events, or the answer would come back to the model with more space every turn.
class EventSink {
 public:
  void attach(std::vector<OutputEvent>* events) { events_ = events; }

  // Stretches of reasoning are paragraphs.
  void begin_reasoning();
  void reasoning(std::string_view text);
  void end_reasoning();
  void text(std::string_view text);
  // Newlines at the start of the text that follows are the template's.
  void trim_text() { trims_ = true; }

  void start_call(std::string name, std::string id = {});
  void arguments(std::string_view json);
  void end_call(bool complete);

  void finish();

  bool call_open() const { return call_open_; }
  bool any_text() const { return any_text_; }
  int32_t calls() const { return calls_; }

 private:
  template <class Delta>
  void add(std::string_view text);

  std::vector<OutputEvent>* events_ = nullptr;
  std::string space_;  // white space at the end of what came, until it is known what follows
  bool trims_ = false;
  bool any_text_ = false;
  bool any_reasoning_ = false;
  bool after_call_ = false;  // only white space has come since the last call
  bool call_open_ = false;
  int32_t calls_ = 0;
};

}  // namespace hearth
