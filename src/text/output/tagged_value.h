// One argument of a call whose value stands in the answer as plain text between tags, written as JSON.
#pragma once

#include <string>
#include <string_view>

#include "text/output/tool_schemas.h"

namespace hearth {

// Plain text has no type: "5" may be a number or a string. The schema decides, and a string streams; everything else is
// written once it is complete. Where the schema allows a string beside other types (or says nothing), what reads as a
// value of one of those is that, and the rest is a string, which streams from the first byte that can be nothing else.
class TaggedValue {
 public:
  // `types`: 0 if unknown.
  explicit TaggedValue(JsonTypes types) : types_(types) {}

  void add(std::string_view text, std::string& json);
  void end(std::string& json);

 private:
  enum class Shape { kNone, kBrackets, kNumber, kWord };  // of what is no string; none: only white space has come

  bool may_be_other(std::string_view text);

  JsonTypes types_;
  bool string_ = false;  // it is a string, and its opening quote is written
  std::string text_;     // what came before that was sure
  Shape shape_ = Shape::kNone;
  std::string word_;
};

}  // namespace hearth
