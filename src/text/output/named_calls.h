// Calls written as a name, a separator and the arguments as JSON.
#pragma once

#include <string>
#include <string_view>

#include "text/output/call_reader.h"

namespace hearth {

// What stands before the separator.
struct CallHead {
  std::string name;
  std::string id;
};

struct NamedForm {
  std::string_view call_open;      // in front of the head
  std::string_view separator;      // between the head and the arguments; if it is missing, `{` begins the arguments
  std::string_view call_close;     // may be missing; empty: there is none
  std::string_view section_close;  // the same, behind the last call
  CallHead (*head)(std::string_view text) = nullptr;
  bool name_after_separator = false;  // the arguments may follow the name on the next line, in a code fence
};

class NamedCalls final : public SteppedReader {
 public:
  // `in_call`: what opened the calls was call_open itself, not a section.
  NamedCalls(const NamedForm& form, bool in_call) : form_(form), state_(in_call ? State::kHead : State::kSection) {}

 private:
  enum class State { kSection, kHead, kBegin, kName, kNamed, kArguments, kEnd };

  Step step(Cursor& in, EventSink& out) override;
  Step read_head(Cursor& in);
  Step read_name(Cursor& in);
  Step begin_arguments(Cursor& in, EventSink& out);
  void start(Cursor& in, EventSink& out);

  NamedForm form_;
  State state_;
  std::string head_;
  std::string name_;  // where it stands behind the separator
  JsonArguments arguments_;
  bool any_ = false;  // a call was read
};

}  // namespace hearth
