#include "text/output/tagged_value.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "text/output/json_stream.h"

namespace hearth {
namespace {

constexpr std::string_view kSpace = " \n\t\r";

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

JsonTypes type_of(std::string_view value) {
  switch (value[0]) {
    case '"':
      return kStringType;
    case '{':
      return kObjectType;
    case '[':
      return kArrayType;
    case 't':
    case 'f':
      return kBooleanType;
    case 'n':
      return kNullType;
    default:
      return kNumberType;
  }
}

struct Word {
  std::string_view text, json;
  JsonTypes type;
};
// As JSON and as Python write them.
constexpr Word kWords[] = {{"true", "true", kBooleanType},   {"false", "false", kBooleanType}, {"null", "null", kNullType},
                           {"True", "true", kBooleanType}, {"False", "false", kBooleanType}, {"None", "null", kNullType}};

// The value as JSON if it has one of `types`; else empty.
std::string as_json(std::string_view value, JsonTypes types) {
  if (value.empty()) return {};
  if (value.starts_with("\xEF\xBB\xBF") || value.find('\0') != std::string_view::npos) return {};
  if (nlohmann::json::accept(value)) return (types & type_of(value)) != 0 ? std::string(value) : std::string();
  for (const Word& word : kWords) {
    if (value == word.text && (types & word.type) != 0) return std::string(word.json);
  }
  if ((value[0] != '{' && value[0] != '[') || (types & type_of(value)) == 0) return {};
  JsonStream stream;
  std::string json;
  const size_t read = stream.read(value, json);
  return stream.done() && read == value.size() ? json : std::string();
}

}  // namespace

void TaggedValue::add(std::string_view text, std::string& json) {
  if (!string_) {
    text_.append(text);
    const bool is_string = types_ == kStringType || ((types_ == 0 || (types_ & kStringType) != 0) && !may_be_other());
    if (!is_string) return;
    string_ = true;
    json += '"';
    append_escaped(std::exchange(text_, {}), json);
    return;
  }
  append_escaped(text, json);
}

void TaggedValue::end(std::string& json) {
  if (!string_) {
    const JsonTypes others = types_ == 0 ? kAnyType & ~kStringType : types_ == kStringType ? 0 : types_ & ~kStringType;
    // Where no string is allowed, one in quotes is what the model means.
    const bool quoted = types_ != 0 && (types_ & kStringType) == 0;
    // A value of the wrong type is passed on as it is read best.
    std::string value = as_json(trim(text_), quoted ? kAnyType : others);
    if (!value.empty()) {
      json += value;
      return;
    }
    json += '"';
    append_escaped(text_, json);
  }
  json += '"';
}

// Whether what came so far may be something else than a string.
bool TaggedValue::may_be_other() {
  if (starts_other_) return true;
  const std::string_view value = trim(text_);
  if (value.empty()) return true;
  const JsonTypes types = types_ == 0 ? kAnyType : types_;
  const char c = value[0];
  if (c == '{' || c == '[') return starts_other_ = (types & type_of(value)) != 0;
  for (const Word& word : kWords) {
    if ((types & word.type) != 0 && word.text.starts_with(value)) return true;
  }
  return (types & kNumberType) != 0 && value.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

}  // namespace hearth
