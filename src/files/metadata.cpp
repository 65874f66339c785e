#include "files/metadata.h"

#include <limits>

namespace hearth {
namespace {

template <class T>
struct Expected;
template <>
struct Expected<bool> {
  static constexpr std::string_view kName = "bool";
};
template <>
struct Expected<int64_t> {
  static constexpr std::string_view kName = "integer";
};
template <>
struct Expected<double> {
  static constexpr std::string_view kName = "real";
};
template <>
struct Expected<std::string> {
  static constexpr std::string_view kName = "string";
};
template <>
struct Expected<std::vector<int64_t>> {
  static constexpr std::string_view kName = "array of integers";
};
template <>
struct Expected<std::vector<float>> {
  static constexpr std::string_view kName = "array of reals";
};
template <>
struct Expected<std::vector<std::string>> {
  static constexpr std::string_view kName = "array of strings";
};

template <class T>
Error wrong_type(std::string_view key, const MetadataValue& value) {
  return fail(ErrorCode::kInvalidInput, "metadata key {}: expected {}, the file has {}", key, Expected<T>::kName,
              metadata_type_name(value));
}

}  // namespace

Result<void> Metadata::insert(std::string key, MetadataValue value) {
  auto [it, inserted] = values_.try_emplace(std::move(key), std::move(value));
  if (!inserted) return fail(ErrorCode::kInvalidInput, "metadata key {} appears twice", it->first);
  return {};
}

std::string_view metadata_type_name(const MetadataValue& value) {
  static constexpr std::string_view kNames[] = {"bool",   "integer",           "integer",        "real",
                                                "string", "array of integers", "array of reals", "array of strings"};
  return kNames[value.index()];
}

// Looks the key up and hands its value to `convert`, which returns an optional-like pointer or value.
template <class T, class Convert>
static Result<T> get(const std::map<std::string, MetadataValue, std::less<>>& values, std::string_view key,
                     Convert convert) {
  auto it = values.find(key);
  if (it == values.end()) {
    return fail(ErrorCode::kInvalidInput, "metadata key {} is missing", key);
  }
  return convert(it->second);
}

Result<bool> Metadata::boolean(std::string_view key) const {
  return get<bool>(values_, key, [&](const MetadataValue& v) -> Result<bool> {
    if (auto* b = std::get_if<bool>(&v)) return *b;
    return wrong_type<bool>(key, v);
  });
}

Result<int64_t> Metadata::integer(std::string_view key) const {
  return get<int64_t>(values_, key, [&](const MetadataValue& v) -> Result<int64_t> {
    if (auto* i = std::get_if<int64_t>(&v)) return *i;
    if (auto* u = std::get_if<uint64_t>(&v)) {
      if (*u <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(*u);
      return fail(ErrorCode::kInvalidInput, "metadata key {}: {} is out of range", key, *u);
    }
    return wrong_type<int64_t>(key, v);
  });
}

Result<double> Metadata::real(std::string_view key) const {
  return get<double>(values_, key, [&](const MetadataValue& v) -> Result<double> {
    if (auto* d = std::get_if<double>(&v)) return *d;
    if (auto* i = std::get_if<int64_t>(&v)) return static_cast<double>(*i);
    if (auto* u = std::get_if<uint64_t>(&v)) return static_cast<double>(*u);
    return wrong_type<double>(key, v);
  });
}

Result<std::string_view> Metadata::string(std::string_view key) const {
  return get<std::string_view>(values_, key, [&](const MetadataValue& v) -> Result<std::string_view> {
    if (auto* s = std::get_if<std::string>(&v)) return std::string_view(*s);
    return wrong_type<std::string>(key, v);
  });
}

template <class T>
static Result<std::span<const T>> get_array(const std::map<std::string, MetadataValue, std::less<>>& values,
                                            std::string_view key) {
  return get<std::span<const T>>(values, key, [&](const MetadataValue& v) -> Result<std::span<const T>> {
    if (auto* a = std::get_if<std::vector<T>>(&v)) return std::span<const T>(*a);
    return wrong_type<std::vector<T>>(key, v);
  });
}

Result<std::span<const int64_t>> Metadata::integers(std::string_view key) const {
  return get_array<int64_t>(values_, key);
}
Result<std::span<const float>> Metadata::reals(std::string_view key) const { return get_array<float>(values_, key); }
Result<std::span<const std::string>> Metadata::strings(std::string_view key) const {
  return get_array<std::string>(values_, key);
}

Result<bool> Metadata::boolean_or(std::string_view key, bool fallback) const {
  return contains(key) ? boolean(key) : fallback;
}
Result<int64_t> Metadata::integer_or(std::string_view key, int64_t fallback) const {
  return contains(key) ? integer(key) : fallback;
}
Result<double> Metadata::real_or(std::string_view key, double fallback) const {
  return contains(key) ? real(key) : fallback;
}
Result<std::string_view> Metadata::string_or(std::string_view key, std::string_view fallback) const {
  return contains(key) ? string(key) : fallback;
}

}  // namespace hearth
