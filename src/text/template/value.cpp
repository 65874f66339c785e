#include "text/template/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/unicode.h"

namespace hearth::jinja {

Text::~Text() {
  if (heap != nullptr) heap->release(bytes.size() + runs.size() * sizeof(Run));
}

void TextBuilder::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  if (!runs_.empty() && runs_.back().trusted == trusted) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), trusted});
  }
}

void TextBuilder::append_range(const Text& text, size_t begin, size_t end) {
  if (begin >= end) return;
  auto run = std::upper_bound(text.runs.begin(), text.runs.end(), begin,
                              [](size_t pos, const Run& candidate) { return pos < candidate.end; });
  for (; begin < end; ++run) {
    const size_t stop = std::min(end, run->end);
    append(std::string_view(text.bytes).substr(begin, stop - begin), run->trusted);
    begin = stop;
  }
}

bool all_trusted(const Text& text) {
  return std::all_of(text.runs.begin(), text.runs.end(), [](const Run& run) { return run.trusted; });
}

bool trusted_at(const Text& text, size_t pos, size_t& hint) {
  while (text.runs[hint].end <= pos) ++hint;
  return text.runs[hint].trusted;
}

const Value* Dict::find(const std::string& key) const {
  auto it = positions.find(key);
  return it == positions.end() ? nullptr : &entries[it->second].second;
}

void Dict::set(std::string key, Value name, Value value) {
  auto [it, added] = positions.emplace(std::move(key), entries.size());
  if (added) {
    entries.emplace_back(std::move(name), std::move(value));
  } else {
    entries[it->second].second = std::move(value);
  }
}

void Dict::erase(const std::string& key) {
  auto it = positions.find(key);
  if (it == positions.end()) return;
  const size_t position = it->second;
  positions.erase(it);
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(position));
  for (auto& [_, other] : positions) {
    if (other > position) --other;
  }
}

std::string string_key(std::string_view bytes) {
  std::string key;
  key.reserve(bytes.size() + 1);
  key += 's';
  key += bytes;
  return key;
}

bool key_of(const Value& value, std::string& out) {
  if (value.is_string()) {
    out = string_key(value.bytes());
  } else if (value.is_integral()) {
    out = "i" + int_repr(value.integral());
  } else if (value.is<double>()) {
    const double real = value.get<double>();
    if (std::abs(real) < 1e18 && real == std::floor(real)) {
      out = "i" + int_repr(static_cast<Int>(real));
    } else {
      out = "f" + float_repr(real);
    }
  } else if (value.is_none()) {
    out = "n";
  } else if (value.is_undefined()) {
    out = "u";
  } else if (const Sequence* tuple = value.sequence(); tuple != nullptr && tuple->is_tuple()) {
    out = "t";
    for (const Value& item : tuple->items) {
      std::string part;
      if (item.sequence() != nullptr || !key_of(item, part)) return false;  // nested tuples are not needed as keys
      out += fmt::format("{}:{}", part.size(), part);
    }
  } else if (value.is<Callable*>() || value.is<Namespace*>() || value.is<Loop*>()) {
    const void* object = value.is<Callable*>()    ? static_cast<const void*>(value.get<Callable*>())
                         : value.is<Namespace*>() ? static_cast<const void*>(value.get<Namespace*>())
                                                  : static_cast<const void*>(value.get<Loop*>());
    out = fmt::format("o{}", object);
  } else {
    return false;
  }
  return true;
}

TextPtr Heap::text(TextBuilder&& builder, bool markup) {
  auto text = std::make_shared<Text>();
  text->bytes = std::move(builder.bytes_);
  text->runs = std::move(builder.runs_);
  text->markup = markup;
  text->heap = this;
  used_bytes_ += text->bytes.size() + text->runs.size() * sizeof(Run);
  return text;
}

TextPtr Heap::text(std::string_view bytes, bool trusted) {
  TextBuilder builder;
  builder.append(bytes, trusted);
  return text(std::move(builder));
}

TextPtr literal_text(std::string_view bytes) {
  auto text = std::make_shared<Text>();
  text->bytes = bytes;
  if (!bytes.empty()) text->runs.push_back({bytes.size(), true});
  return text;
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  if (digits.size() > 1) digits.erase(1, 1);
  const int exponent = std::stoi(std::string(text.substr(e + 1)));
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

std::string int_repr(Int value) { return fmt::format("{}", value); }

std::string string_repr(std::string_view bytes) {
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const char quote = has_single && bytes.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t pos = 0; pos < bytes.size();) {
    const size_t begin = pos;
    const char32_t c = next_code_point(bytes, pos);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if ((char_class(c) & kPrintable) != 0) {
      out += bytes.substr(begin, pos - begin);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  return out + quote;
}

std::string_view type_name(const Value& value) {
  if (const Sequence* sequence = value.sequence()) {
    switch (sequence->kind) {
      case SequenceKind::kList:
        return "list";
      case SequenceKind::kTuple:
        return "tuple";
      case SequenceKind::kRange:
        return "range";
      case SequenceKind::kDictKeys:
        return "dict_keys";
      case SequenceKind::kDictValues:
        return "dict_values";
      case SequenceKind::kDictItems:
        return "dict_items";
      case SequenceKind::kGenerator:
        return "generator";
    }
  }
  constexpr std::string_view kNames[] = {"undefined", "none", "bool",      "int",      "float", "string",
                                         "list",      "dict", "namespace", "callable", "loop"};
  return kNames[value.index()];
}

}  // namespace hearth::jinja
