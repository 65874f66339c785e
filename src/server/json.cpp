#include "server/json.h"

#include <cmath>
#include <limits>

namespace hearth::server {
namespace {

// Members of an object are found one by one, so that large objects cost the square of their size. This much work is
// allowed in total: about a second.
constexpr int64_t kMaxKeyComparisons = 200'000'000;

// Reads through a text without keeping anything and stops at what must not be kept.
class Limits final : public nlohmann::json_sax<Json> {
 public:
  std::string problem;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t number, const string_t& text) override {
    if (!std::isfinite(number)) return stop(fmt::format("the number {} is too large", text.substr(0, 40)));
    return value();
  }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t&) override {
    comparisons_ += keys_.back()++;
    if (comparisons_ > kMaxKeyComparisons) return stop("it has objects with too many members");
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 2, column 7: ..."
    std::string_view what = error.what();
    const size_t begin = what.find("] ");
    return stop(std::string(begin == std::string_view::npos ? what : what.substr(begin + 2)));
  }

 private:
  bool stop(std::string what) {
    if (problem.empty()) problem = std::move(what);
    return false;
  }
  bool value() { return ++values_ <= kMaxValues || stop(fmt::format("it has more than {} values", kMaxValues)); }
  bool open() {
    keys_.push_back(0);
    if (std::ssize(keys_) > kMaxDepth) return stop(fmt::format("it is nested more than {} levels deep", kMaxDepth));
    return value();
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::vector<int64_t> keys_;  // members so far of each object that is open
  int64_t values_ = 0;
  int64_t comparisons_ = 0;
};

}  // namespace

Answer<Json> parse_json(std::string_view text) {
  Limits limits;
  if (!Json::sax_parse(text, &limits)) return invalid("", "the body is not usable JSON: {}", limits.problem);
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid("", "the body must be a JSON object, found {}", excerpt(json));
  return json;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string excerpt(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = dump(value);
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole characters
  return text.substr(0, end) + "...";
}

Fields::Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

std::string Fields::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : fmt::format("{}.{}", where_, name);
}

const Json* Fields::get(std::string_view name) const {
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void Fields::reject(std::string_view name, std::string_view message) {
  if (!error_) error_ = invalid(path(name), "{}: {}", path(name), message);
}

void Fields::expected(std::string_view name, std::string_view wanted) {
  const Json* value = get(name);
  reject(name, fmt::format("it must be {}, found {}", wanted, value == nullptr ? "nothing" : excerpt(*value)));
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  expected(name, "true or false");
  return std::nullopt;
}

std::optional<int64_t> Fields::integer(std::string_view name, int64_t least, int64_t most) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  std::optional<int64_t> number;
  if (value->is_number_unsigned()) {
    const auto n = value->get<uint64_t>();
    if (n <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) number = static_cast<int64_t>(n);
  } else if (value->is_number_integer()) {
    number = value->get<int64_t>();
  } else if (value->is_number_float()) {
    const auto n = value->get<double>();
    if (std::abs(n) < 9e15 && n == std::floor(n)) number = static_cast<int64_t>(n);
  }
  if (number && *number >= least && *number <= most) return number;
  expected(name, fmt::format("a whole number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<double> Fields::number(std::string_view name, double least, double most) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (number >= least && number <= most) return number;
  }
  expected(name, fmt::format("a number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  expected(name, "a string");
  return std::nullopt;
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::vector<std::string>{value->get<std::string>()};
  std::vector<std::string> texts;
  if (value->is_array()) {
    for (const Json& item : *value) {
      if (item.is_string()) texts.push_back(item.get<std::string>());
    }
    if (texts.size() == value->size()) return texts;
  }
  expected(name, "a string or a list of strings");
  return std::nullopt;
}

const Json* Fields::object(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr || value->is_object()) return value;
  expected(name, "an object");
  return nullptr;
}

const Json* Fields::array(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr || value->is_array()) return value;
  expected(name, "a list");
  return nullptr;
}

}  // namespace hearth::server
