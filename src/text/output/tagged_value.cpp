#include "text/output/tagged_value.h"

#include <algorithm>
#include <iterator>
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
constexpr Word kWords[] = {{"true", "true", kBooleanType},   {"false", "false", kBooleanType},
                           {"null", "null", kNullType},      {"True", "true", kBooleanType},
                           {"False", "false", kBooleanType}, {"None", "null", kNullType}};

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
    const bool is_string =
        types_ == kStringType || ((types_ == 0 || (types_ & kStringType) != 0) && !may_be_other(text));
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

// Whether the value may still be something else than a string when `text` follows; looks at every byte once.
bool TaggedValue::may_be_other(std::string_view text) {
  const JsonTypes types = types_ == 0 ? kAnyType : types_;
  for (char c : text) {
    if (shape_ == Shape::kBrackets) return true;
    if (kSpace.find(c) != std::string_view::npos) continue;
    const bool number = std::string_view("0123456789+-.eE").find(c) != std::string_view::npos;
    if (shape_ == Shape::kNone) {
      const bool brackets = (c == '{' && (types & kObjectType) != 0) || (c == '[' && (types & kArrayType) != 0);
      shape_ = brackets ? Shape::kBrackets : number ? Shape::kNumber : Shape::kWord;
    }
    if (shape_ == Shape::kNumber && (!number || (types & kNumberType) == 0)) return false;
    if (shape_ != Shape::kWord) continue;
    word_ += c;
    const bool known = std::any_of(std::begin(kWords), std::end(kWords), [&](const Word& word) {
      return (types & word.type) != 0 && word.text.starts_with(word_);
    });
    if (!known) return false;
  }
  return true;
}

}  // namespace hearth
