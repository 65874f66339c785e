// Calls whose name and arguments stand between tags: XML to look at, but the values are plain text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/output/call_reader.h"
#include "text/output/tagged_value.h"

namespace hearth {

// The literals of one such form. A section holds calls, a call parameters.
struct TaggedForm {
  std::string_view call_open;   // in front of the name; empty: the section is one call and begins with its name
  std::string_view name_end;    // empty: the name ends with its line or at the next tag
  std::string_view key_open;    // in front of the name of a parameter
  std::string_view key_end;     // behind it
  std::string_view value_open;  // empty: the value follows at once
  std::string_view value_close;
  std::string_view call_close;     // empty: the section's close
  std::string_view section_close;  // may be missing
  bool framed = false;             // a newline on either side of a value is not part of it
};

// <function=NAME><parameter=KEY>VALUE</parameter></function>, as Qwen3-Coder began it.
constexpr TaggedForm function_tags(std::string_view section_close, bool framed) {
  return {.call_open = "<function=",
          .name_end = ">",
          .key_open = "<parameter=",
          .key_end = ">",
          .value_open = "",
          .value_close = "</parameter>",
          .call_close = "</function>",
          .section_close = section_close,
          .framed = framed};
}

class TaggedCalls final : public SteppedReader {
 public:
  // `in_call`: what opened the section was call_open itself.
  TaggedCalls(const TaggedForm& form, const ToolSchemas& schemas, bool in_call);
  TaggedCalls(const TaggedCalls&) = delete;
  TaggedCalls& operator=(const TaggedCalls&) = delete;

 private:
  enum class State { kSection, kName, kParameters, kKey, kValueOpen, kValueBegin, kValue };

  Step step(Cursor& in, EventSink& out) override;
  Step read_name(Cursor& in);
  Step read_parameters(Cursor& in, EventSink& out);
  Step read_value(Cursor& in, EventSink& out);
  Cursor::Match closes(const Cursor& in, size_t behind, bool call) const;
  void start(Cursor& in, EventSink& out);
  Step end_call(EventSink& out, bool complete);
  Step broken(EventSink& out);

  TaggedForm form_;
  const ToolSchemas& schemas_;
  // What may end a value: its tag, and the call's for models that forget to close the parameter; with the newline in
  // front of it if that is not part of the value.
  std::vector<std::string> closers_;
  std::vector<std::string_view> markers_;  // into closers_
  State state_;
  bool any_ = false;      // a call was read
  bool started_ = false;  // the call has
  int64_t parameters_ = 0;
  std::string name_;
  std::string key_;
  std::optional<TaggedValue> value_;
};

}  // namespace hearth
