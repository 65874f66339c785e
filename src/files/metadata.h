// Typed key-value metadata of a model file: what the file says about itself, independent of the file type.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace hearth {

// Integers keep their sign, reals are widened, arrays of integers and booleans become int64_t.
using MetadataValue = std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<int64_t>,
                                   std::vector<float>, std::vector<std::string>>;

class Metadata {
 public:
  // Fails with kInvalidInput when the key is there already.
  Result<void> insert(std::string key, MetadataValue value);

  bool contains(std::string_view key) const { return values_.find(key) != values_.end(); }
  const std::map<std::string, MetadataValue, std::less<>>& values() const { return values_; }

  // Each getter fails with kInvalidInput when the key is missing or holds another type; the message names the key,
  // what was expected and what is there. Integers convert among each other (with a range check) and to reals.
  Result<bool> boolean(std::string_view key) const;
  Result<int64_t> integer(std::string_view key) const;
  Result<double> real(std::string_view key) const;
  Result<std::string_view> string(std::string_view key) const;
  Result<std::span<const int64_t>> integers(std::string_view key) const;
  Result<std::span<const float>> reals(std::string_view key) const;
  Result<std::span<const std::string>> strings(std::string_view key) const;

  // The same, with a value for a missing key. A key of a wrong type is still an error.
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  Result<double> real_or(std::string_view key, double fallback) const;
  Result<std::string_view> string_or(std::string_view key, std::string_view fallback) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
};

// The name of the held type, for messages and listings: "bool", "integer", "real", "string", "array of ...".
std::string_view metadata_type_name(const MetadataValue& value);

}  // namespace hearth
