// Bodies of requests: JSON within limits, and its fields with their types and ranges checked.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/errors.h"

namespace hearth::server {

using Json = nlohmann::ordered_json;

// An object. Refused with the place and the reason: text that is not JSON or not UTF-8, numbers that no double can
// hold, more than kMaxDepth levels of brackets, and what would take unreasonable memory or time.
inline constexpr int64_t kMaxDepth = 128;
inline constexpr int64_t kMaxValues = 2'000'000;
Answer<Json> parse_json(std::string_view text);

// Bytes that are not UTF-8 (a model was cut off) become U+FFFD.
std::string dump(const Json& json);

// The fields of one object. A field that is null is one that is missing. The first field of a wrong type or out of its
// range is remembered, named and described in error(); the caller asks for it once, after reading all.
class Fields {
 public:
  // `where` is the path of the object in messages, such as "stream_options".
  explicit Fields(const Json& object, std::string where = {});

  const Json* get(std::string_view name) const;  // nullptr when missing
  bool has(std::string_view name) const { return get(name) != nullptr; }

  std::optional<bool> boolean(std::string_view name);
  std::optional<int64_t> integer(std::string_view name, int64_t least, int64_t most);  // 5.0 is an integer too
  std::optional<double> number(std::string_view name, double least, double most);
  std::optional<std::string> text(std::string_view name);
  std::optional<std::vector<std::string>> texts(std::string_view name);  // a string stands for a list of one
  const Json* object(std::string_view name);
  const Json* array(std::string_view name);

  // Remembers that a field is wrong: "<path>: <message>".
  void reject(std::string_view name, std::string_view message);
  // The same, as "must be <wanted>, found <value>".
  void expected(std::string_view name, std::string_view wanted);

  const std::optional<ApiError>& error() const { return error_; }

 private:
  std::string path(std::string_view name) const;

  const Json& object_;
  std::string where_;
  std::optional<ApiError> error_;
};

// A value in a message, shortened.
std::string excerpt(const Json& value);

}  // namespace hearth::server
