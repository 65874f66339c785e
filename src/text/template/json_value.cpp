// JSON into values, and values into JSON as Python's json.dumps writes them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/template/interpreter.h"
#include "text/template/unicode.h"

namespace hearth::jinja {
namespace {

constexpr int kMaxJsonDepth = 200;

void append_json_string(TextBuilder& out, const Text& text, bool ensure_ascii) {
  const bool trusted = all_trusted(text);
  std::string quoted = "\"";
  for (size_t pos = 0; pos < text.bytes.size();) {
    const size_t begin = pos;
    const char32_t c = next_code_point(text.bytes, pos);
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\t':
        quoted += "\\t";
        break;
      case '\b':
        quoted += "\\b";
        break;
      case '\f':
        quoted += "\\f";
        break;
      default:
        if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000)) {
          quoted += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
        } else if (ensure_ascii && c >= 0x10000) {
          const uint32_t rest = c - 0x10000;
          quoted += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
        } else {
          quoted.append(text.bytes, begin, pos - begin);
        }
    }
  }
  quoted += '"';
  out.append(quoted, trusted);
}

std::string float_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_repr(value);
}

}  // namespace

Value Interpreter::from_json(const nlohmann::ordered_json& json, bool trusted, int depth) {
  if (depth > kMaxJsonDepth) return fail("the conversation is nested more than {} levels deep", kMaxJsonDepth);
  if (!charge()) return {};
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean:
      return boolean(json.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer:
      return Value(static_cast<Int>(json.get<int64_t>()));
    case nlohmann::ordered_json::value_t::number_unsigned:
      return Value(static_cast<Int>(json.get<uint64_t>()));
    case nlohmann::ordered_json::value_t::number_float:
      return Value(json.get<double>());
    case nlohmann::ordered_json::value_t::string: {
      const auto& string = json.get_ref<const std::string&>();
      charge(string.size());
      return text(string, trusted);
    }
    case nlohmann::ordered_json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(item, trusted, depth + 1));
      return list(std::move(items));
    }
    case nlohmann::ordered_json::value_t::object: {
      auto* dict = heap_.make<Dict>();
      for (const auto& [name, item] : json.items()) {
        if (!charge(2 * name.size())) return {};
        heap_.charge(2 * sizeof(Value) + 2 * name.size());
        dict->set(string_key(name), text(name, trusted), from_json(item, trusted, depth + 1));
      }
      return Value(dict);
    }
    default:
      return None{};
  }
}

Value Interpreter::to_json(const Value& value, const JsonStyle& style) {
  TextBuilder builder;
  json_value(builder, value, style, 0);
  if (!charge(builder.size_bytes())) return {};
  // One string of the caller in it makes the whole untrusted: finer cuts would gain nothing.
  const bool trusted = builder.all_trusted();
  return text(builder.bytes_, trusted);
}

void Interpreter::json_value(TextBuilder& out, const Value& value, const JsonStyle& style, int depth) {
  if (!charge()) return;
  if (depth > kMaxJsonDepth) {
    fail("tojson: a value nested more than {} levels deep", kMaxJsonDepth);
    return;
  }
  // What stands before an item; the caller chose how long it is.
  const auto put = [&](std::string_view separator, int levels) {
    const size_t added = separator.size() + (style.indent ? 1 + static_cast<size_t>(levels) * style.indent->size() : 0);
    if (!check_growth(added, out.size_bytes() + added)) return;
    out.append(separator, true);
    if (!style.indent) return;
    out.append("\n", true);
    for (int i = 0; i < levels; ++i) out.append(*style.indent, true);
  };
  if (value.is_none()) {
    out.append("null", true);
  } else if (value.is<bool>()) {
    out.append(value.get<bool>() ? "true" : "false", true);
  } else if (value.is<Int>()) {
    out.append(int_repr(value.get<Int>()), true);
  } else if (value.is<double>()) {
    out.append(float_json(value.get<double>()), true);
  } else if (value.is_string()) {
    if (!check_growth(value.bytes().size(), out.size_bytes() + value.bytes().size())) return;
    append_json_string(out, value.text(), style.ensure_ascii);
  } else if (const Sequence* sequence = value.sequence();
             sequence != nullptr && (sequence->is_list() || sequence->is_tuple())) {
    if (sequence->items.empty()) return out.append("[]", true);
    out.append("[", true);
    for (size_t i = 0; i < sequence->items.size() && ok(); ++i) {
      put(i != 0 ? style.item_separator : "", depth + 1);
      json_value(out, sequence->items[i], style, depth + 1);
    }
    put("", depth);
    out.append("]", true);
  } else if (const Dict* dict = value.dict()) {
    if (dict->entries.empty()) return out.append("{}", true);
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict->entries) entries.push_back(&entry);
    if (style.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto* a, const auto* b) { return less(a->first, b->first); });
    }
    out.append("{", true);
    for (size_t i = 0; i < entries.size() && ok(); ++i) {
      const auto& [name, item] = *entries[i];
      put(i != 0 ? style.item_separator : "", depth + 1);
      if (name.is_string()) {
        if (!check_growth(name.bytes().size(), out.size_bytes() + name.bytes().size())) return;
        append_json_string(out, name.text(), style.ensure_ascii);
      } else if (name.is_none() || name.is<bool>() || name.is_number()) {
        out.append("\"", true);
        json_value(out, name, style, depth + 1);
        out.append("\"", true);
      } else {
        fail("tojson: {} cannot be a key", type_name(name));
      }
      if (!check_growth(style.key_separator.size(), out.size_bytes() + style.key_separator.size())) return;
      out.append(style.key_separator, true);
      json_value(out, item, style, depth + 1);
    }
    put("", depth);
    out.append("}", true);
  } else if (value.is_undefined()) {
    fail_undefined(value);
  } else {
    fail("tojson: {} cannot be written as JSON", type_name(value));
  }
}

}  // namespace hearth::jinja
