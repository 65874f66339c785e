// Jinja's filters, with Hugging Face's tojson.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "text/template/text_functions.h"

namespace hearth::jinja {
namespace {

struct Entry {
  std::string_view name;
  Filter filter;
};

// An argument that may be absent or none.
bool given(const Value* value) { return value != nullptr && !value->is_none(); }

// Arguments that a filter hands on for each item are copied.
bool charge_copy(Interpreter& interpreter, const Args& args) {
  size_t bytes = args.positional.size() * sizeof(Value);
  for (const auto& [name, value] : args.named) bytes += name.size() + sizeof(Value);
  return interpreter.charge(bytes);
}

Value generator(Interpreter& interpreter, std::vector<Value> items) {
  return interpreter.list(std::move(items), SequenceKind::kGenerator);
}

// The text of an item along "a.b.0", as map(attribute=...) and its like take it.
Value dotted_item(Interpreter& interpreter, Value value, const Value& path) {
  if (!path.is_string()) return interpreter.item(value, path);
  const std::string& parts = path.bytes();
  for (size_t begin = 0; begin <= parts.size() && interpreter.ok();) {
    const size_t end = std::min(parts.find('.', begin), parts.size());
    const std::string part = parts.substr(begin, end - begin);
    if (!interpreter.charge(part.size())) return {};
    const bool number = !part.empty() && part.size() < 10 &&
                        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    value = interpreter.item(value, number ? Value(static_cast<Int>(std::stol(part))) : interpreter.text(part, true));
    begin = end + 1;
  }
  return value;
}

// Lower case for strings unless case matters: how sort, unique, min and max compare.
Value comparison_key(Interpreter& interpreter, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return map_case(interpreter, value.text(), CaseKind::kLower);
}

Value filter_abs(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "abs", args, {});
  if (input.is_undefined()) return interpreter.fail_undefined(input);
  if (input.is<double>()) return Value(std::abs(input.get<double>()));
  if (!input.is_integral()) return interpreter.fail("abs: {} is not a number", type_name(input));
  return Value(input.integral() < 0 ? -input.integral() : input.integral());
}

Value filter_attr(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "attr", args, {"name"}, 1);
  if (!interpreter.ok()) return {};
  const TextPtr name = interpreter.str(*parameters[0]);
  // Attributes only: an item of a dict is not one.
  if (input.dict() != nullptr && !has_method(input, name->bytes)) return {};
  Value found = interpreter.attribute(input, name->bytes);
  return found.is_undefined() ? Value() : found;
}

Value filter_batch(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "batch", args, {"linecount", "fill_with"}, 1);
  if (!interpreter.ok()) return {};
  const Int size = interpreter.integer(*parameters[0], "the size of batch");
  std::vector<Value> out;
  std::vector<Value> row;
  for (Value& item : interpreter.iterate(input)) {
    if (static_cast<Int>(row.size()) == size) out.push_back(interpreter.list(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    if (given(parameters[1])) {
      if (!interpreter.check_size(std::min(size, Int{1} << 60) * Int{sizeof(Value)})) return {};
      while (static_cast<Int>(row.size()) < size) row.push_back(*parameters[1]);
    }
    out.push_back(interpreter.list(std::move(row)));
  }
  return generator(interpreter, std::move(out));
}

Value filter_slice(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "slice", args, {"slices", "fill_with"}, 1);
  if (!interpreter.ok()) return {};
  const Int slices = interpreter.integer(*parameters[0], "the number of slices");
  const std::vector<Value> items = interpreter.iterate(input);
  if (!interpreter.ok() || slices == 0) return interpreter.fail("slice: the number of slices is zero");
  if (!interpreter.check_size(std::min(slices, Int{1} << 60) * Int{sizeof(Value)})) return {};
  const Int per_slice = static_cast<Int>(items.size()) / slices;
  const Int larger = static_cast<Int>(items.size()) % slices;
  std::vector<Value> out;
  Int begin = 0;
  for (Int i = 0; i < slices && interpreter.charge(); ++i) {
    const Int end = begin + per_slice + (i < larger ? 1 : 0);
    std::vector<Value> row(items.begin() + static_cast<std::ptrdiff_t>(begin),
                           items.begin() + static_cast<std::ptrdiff_t>(end));
    if (given(parameters[1]) && i >= larger) row.push_back(*parameters[1]);
    out.push_back(interpreter.list(std::move(row)));
    begin = end;
  }
  return generator(interpreter, std::move(out));
}

Value filter_capitalize(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "capitalize", args, {});
  return capitalize(interpreter, *interpreter.str(input));
}

Value filter_center(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "center", args, {"width"});
  const Int width = parameters[0] != nullptr ? interpreter.integer(*parameters[0], "the width of center") : Int{80};
  return pad(interpreter, *interpreter.str(input), width, " ", Side::kBoth);
}

Value filter_default(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "default", args, {"default_value", "boolean"});
  const bool replaces = input.is_undefined() ||
                        (parameters[1] != nullptr && interpreter.truthy(*parameters[1]) && !interpreter.truthy(input));
  if (!replaces) return input;
  return parameters[0] != nullptr ? *parameters[0] : interpreter.text("", true);
}

Value filter_dictsort(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "dictsort", args, {"case_sensitive", "by", "reverse"});
  if (input.is_undefined()) return interpreter.fail_undefined(input);
  const Dict* dict = input.dict();
  if (dict == nullptr) return interpreter.fail("dictsort: {} is not a dict", type_name(input));
  const bool case_sensitive = parameters[0] != nullptr && interpreter.truthy(*parameters[0]);
  const bool reverse = parameters[2] != nullptr && interpreter.truthy(*parameters[2]);
  bool by_value = false;
  if (parameters[1] != nullptr) {
    const std::string& by = interpreter.str(*parameters[1])->bytes;
    if (by != "key" && by != "value") return interpreter.fail("dictsort: by must be 'key' or 'value'");
    by_value = by == "value";
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [name, value] : dict->entries) {
    keyed.emplace_back(comparison_key(interpreter, by_value ? value : name, case_sensitive),
                       interpreter.list({name, value}, SequenceKind::kTuple));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? interpreter.less(b.first, a.first) : interpreter.less(a.first, b.first);
  });
  std::vector<Value> out;
  for (auto& [_, pair] : keyed) out.push_back(std::move(pair));
  return interpreter.list(std::move(out));
}

Value filter_escape(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "escape", args, {});
  return escape(interpreter, input);
}

Value filter_first(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "first", args, {});
  if (input.is_string()) {
    const Text& text = input.text();
    if (text.bytes.empty()) return {};
    TextBuilder builder;  // plain even if the text is markup, like every character that iteration gives
    builder.append_range(text, 0, code_point_bytes(text.bytes, 0));
    return interpreter.text(std::move(builder));
  }
  const std::vector<Value> items = interpreter.iterate(input);
  return items.empty() ? Value() : items.front();
}

Value filter_last(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "last", args, {});
  if (input.is_string()) return interpreter.item(input, Value(Int{-1}));
  if (input.sequence() != nullptr && !input.sequence()->has_length()) {
    return interpreter.fail("last: a generator has no last item; use |list before it");
  }
  const std::vector<Value> items = interpreter.iterate(input);
  return items.empty() ? Value() : items.back();
}

Value filter_float(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "float", args, {"default"});
  const Value fallback = parameters[0] != nullptr ? *parameters[0] : Value(0.0);
  if (input.is_undefined()) return interpreter.fail_undefined(input);
  if (input.is_number()) return Value(input.real());
  if (!input.is_string()) return fallback;
  std::string text = strip(interpreter, input.text(), Side::kBoth, std::nullopt).bytes();
  interpreter.charge(text.size());
  std::erase(text, '_');
  if (text.empty() || text.find_first_of("xXpP(") != std::string::npos) return fallback;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() ? Value(value) : fallback;
}

Value filter_int(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "int", args, {"default", "base"});
  const Value fallback = parameters[0] != nullptr ? *parameters[0] : Value(Int{0});
  const Int base = parameters[1] != nullptr ? interpreter.integer(*parameters[1], "the base of int") : Int{10};
  if (input.is_undefined()) return interpreter.fail_undefined(input);
  if (input.is_integral()) return Value(input.integral());
  if (input.is<double>()) {
    const double value = std::trunc(input.get<double>());
    return std::abs(value) < 1e38 ? Value(static_cast<Int>(value)) : fallback;
  }
  if (!input.is_string()) return fallback;
  std::string text = strip(interpreter, input.text(), Side::kBoth, std::nullopt).bytes();
  interpreter.charge(text.size());
  const bool negative = text.starts_with('-');
  std::string digits = text.substr(negative || text.starts_with('+') ? 1 : 0);
  if (digits.size() > 2 && digits[0] == '0' && base != 10) {
    const char marker = static_cast<char>(digits[1] | 0x20);
    if ((base == 16 && marker == 'x') || (base == 8 && marker == 'o') || (base == 2 && marker == 'b'))
      digits.erase(0, 2);
  }
  Int value = 0;
  bool valid = !digits.empty() && digits.back() != '_' && digits.front() != '_' && base >= 2 && base <= 36;
  for (char c : digits) {
    if (c == '_') continue;
    const int digit = c >= '0' && c <= '9'                     ? c - '0'
                      : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                               : 99;
    if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, Int{digit}, &value)) {
      valid = false;
    }
  }
  if (valid) return Value(negative ? -value : value);
  // Jinja then tries int(float(text)).
  Args none;
  const Value real = filter_float(interpreter, input, none);
  if (real.is<double>() && std::isfinite(real.get<double>()) && text.find_first_of("0123456789") != std::string::npos) {
    Args with_nan;
    with_nan.positional.push_back(None{});
    if (!filter_float(interpreter, input, with_nan).is_none() && std::abs(real.get<double>()) < 1e38) {
      return Value(static_cast<Int>(std::trunc(real.get<double>())));
    }
  }
  return fallback;
}

Value filter_format(Interpreter& interpreter, const Value& input, Args& args) {
  const TextPtr format = interpreter.str(input);
  if (!args.named.empty()) {
    if (!args.positional.empty()) return interpreter.fail("format: positional and named arguments cannot be mixed");
    auto* dict = interpreter.heap().make<Dict>();
    charge_copy(interpreter, args);
    for (auto& [name, value] : args.named) dict->set(string_key(name), interpreter.text(name, true), value);
    return interpreter.format_percent(*format, Value(dict));
  }
  return interpreter.format_percent(*format, interpreter.list(args.positional, SequenceKind::kTuple));
}

Value filter_from_json(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "from_json", args, {});
  if (interpreter.options().strict_sandbox) return interpreter.fail("{}", unknown_filter_message("from_json"));
  if (!input.is_string()) return interpreter.fail("from_json: {} is not a string", type_name(input));
  interpreter.charge(input.bytes().size());
  const auto json = nlohmann::ordered_json::parse(input.bytes(), nullptr, false);
  if (json.is_discarded()) return interpreter.fail("from_json: the text is not JSON");
  return interpreter.from_json(json, all_trusted(input.text()));
}

// (key to compare, item), in order of the key. With `multiple` the attribute may name several, separated by commas, and
// keys are lists of them, as in Jinja: equal keys (two undefined ones, too) are then never ordered.
std::vector<std::pair<Value, Value>> sorted_by(Interpreter& interpreter, std::vector<Value> items,
                                               const Value* attribute, bool case_sensitive, bool reverse,
                                               const Value* fallback, bool multiple) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    const auto part = [&](const Value& path) {
      Value found = path.is_none() ? item : dotted_item(interpreter, item, path);
      if (found.is_undefined() && fallback != nullptr) found = *fallback;
      return comparison_key(interpreter, found, case_sensitive);
    };
    Value key;
    if (multiple) {
      std::vector<Value> parts;
      if (given(attribute) && attribute->is_string()) {
        for (const Value& path : split(interpreter, attribute->text(), ",", -1, false)) parts.push_back(part(path));
      } else {
        parts.push_back(part(attribute != nullptr ? *attribute : Value(None{})));
      }
      key = interpreter.list(std::move(parts));
    } else {
      key = part(*attribute);
    }
    keyed.emplace_back(std::move(key), std::move(item));
    if (!interpreter.charge()) break;
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? interpreter.less(b.first, a.first) : interpreter.less(a.first, b.first);
  });
  return keyed;
}

Value filter_groupby(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  if (!interpreter.ok()) return {};
  const bool case_sensitive = parameters[2] != nullptr && interpreter.truthy(*parameters[2]);
  std::vector<Value> out;
  std::vector<Value> group;
  Value key;
  const auto close = [&] {
    if (group.empty()) return;
    Value grouper = dotted_item(interpreter, group.front(), *parameters[0]);
    if (grouper.is_undefined() && parameters[1] != nullptr) grouper = *parameters[1];
    Value members = interpreter.list(std::exchange(group, {}));
    Value pair = interpreter.list({std::move(grouper), std::move(members)}, SequenceKind::kTuple);
    if (pair.sequence() != nullptr) pair.sequence()->is_group = true;
    out.push_back(std::move(pair));
  };
  for (auto& [item_key, item] :
       sorted_by(interpreter, interpreter.iterate(input), parameters[0], case_sensitive, false, parameters[1], false)) {
    if (!group.empty() && !interpreter.equal(key, item_key)) close();
    key = item_key;
    group.push_back(item);
  }
  close();
  return interpreter.list(std::move(out));
}

Value filter_indent(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "indent", args, {"width", "first", "blank"});
  std::string indentation(4, ' ');
  if (parameters[0] != nullptr && parameters[0]->is_string()) {
    indentation = parameters[0]->bytes();
  } else if (parameters[0] != nullptr) {
    const Int width = std::max(Int{0}, interpreter.integer(*parameters[0], "the width of indent"));
    if (width > 4096) return interpreter.fail("indent: a width of {}; at most 4096 is supported", width);
    indentation = std::string(static_cast<size_t>(width), ' ');
  }
  const bool first = parameters[1] != nullptr && interpreter.truthy(*parameters[1]);
  const bool blank = parameters[2] != nullptr && interpreter.truthy(*parameters[2]);
  if (input.is_undefined()) return interpreter.fail_undefined(input);
  if (!input.is_string()) return interpreter.fail("indent: {} is not a string", type_name(input));
  const TextPtr text = input.get<TextPtr>();
  TextBuilder builder;
  if (first) builder.append(indentation, true);
  const auto lines = split_lines(interpreter, *text, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) {
      builder.append("\n", true);
      if (blank || !lines[i].bytes().empty()) builder.append(indentation, true);
    }
    builder.append(lines[i].text());
    if (!interpreter.check_growth(indentation.size() + lines[i].bytes().size(), builder.size_bytes())) {
      break;
    }
  }
  // Jinja adds a newline before it splits, so that a final one survives.
  if (text->bytes.ends_with('\n')) {
    builder.append("\n", true);
    if (blank) builder.append(indentation, true);
  }
  return interpreter.text(std::move(builder), text->markup);
}

Value filter_items(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "items", args, {});
  std::vector<Value> out;
  if (const Dict* dict = input.dict()) {
    for (const auto& [name, value] : dict->entries)
      out.push_back(interpreter.list({name, value}, SequenceKind::kTuple));
  } else if (!input.is_undefined()) {
    return interpreter.fail("items: {} is not a dict", type_name(input));
  }
  return generator(interpreter, std::move(out));
}

Value filter_join(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "join", args, {"d", "attribute"});
  const TextPtr separator = parameters[0] != nullptr ? interpreter.str(*parameters[0]) : literal_text("");
  TextBuilder builder;
  bool first = true;
  for (const Value& item : interpreter.iterate(input)) {
    const TextPtr part = interpreter.str(given(parameters[1]) ? dotted_item(interpreter, item, *parameters[1]) : item);
    if (!std::exchange(first, false)) builder.append(*separator);
    builder.append(*part);
    if (!interpreter.check_growth(part->bytes.size() + separator->bytes.size(), builder.size_bytes())) {
      break;
    }
  }
  return interpreter.text(std::move(builder));
}

Value filter_length(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "length", args, {});
  const auto length = interpreter.length(input);
  return length ? Value(*length) : interpreter.fail("{} has no length", type_name(input));
}

Value filter_list(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "list", args, {});
  return interpreter.list(interpreter.iterate(input));
}

template <CaseKind kind>
Value filter_case(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "upper and lower", args, {});
  return map_case(interpreter, *interpreter.str(input), kind);
}

Value filter_map(Interpreter& interpreter, const Value& input, Args& args) {
  std::vector<Value> out;
  if (!interpreter.truthy(input)) return generator(interpreter, std::move(out));
  if (args.positional.empty()) {
    Parameters parameters(interpreter, "map", args, {"attribute", "default"}, 1);
    if (!interpreter.ok()) return {};
    for (const Value& item : interpreter.iterate(input)) {
      Value found = dotted_item(interpreter, item, *parameters[0]);
      if (found.is_undefined() && parameters[1] != nullptr) found = *parameters[1];
      out.push_back(std::move(found));
      if (!interpreter.charge()) return {};
    }
    return generator(interpreter, std::move(out));
  }
  const TextPtr name = interpreter.str(args.positional[0]);
  for (const Value& item : interpreter.iterate(input)) {
    if (!charge_copy(interpreter, args)) return {};
    Args rest{{args.positional.begin() + 1, args.positional.end()}, args.named};
    out.push_back(interpreter.filter(name->bytes, item, rest));
    if (!interpreter.charge()) return {};
  }
  return generator(interpreter, std::move(out));
}

// select, reject, selectattr, rejectattr.
template <bool by_attribute, bool keep>
Value filter_select(Interpreter& interpreter, const Value& input, Args& args) {
  const size_t first = by_attribute ? 1 : 0;
  if (!interpreter.truthy(input)) return generator(interpreter, {});
  if (args.positional.size() < first)
    return interpreter.fail("selectattr and rejectattr need the name of an attribute");
  std::vector<Value> out;
  for (const Value& item : interpreter.iterate(input)) {
    Value subject = item;
    if constexpr (by_attribute) subject = dotted_item(interpreter, item, args.positional[0]);
    bool passes = false;
    if (args.positional.size() > first) {
      if (!charge_copy(interpreter, args)) return {};
      Args rest{{args.positional.begin() + static_cast<std::ptrdiff_t>(first) + 1, args.positional.end()}, args.named};
      passes = interpreter.test(interpreter.str(args.positional[first])->bytes, subject, rest);
    } else {
      passes = interpreter.truthy(subject);
    }
    if (!interpreter.charge()) return {};
    if (passes == keep) out.push_back(item);
  }
  return generator(interpreter, std::move(out));
}

template <bool maximum>
Value filter_extreme(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "min and max", args, {"case_sensitive", "attribute"});
  const bool case_sensitive = parameters[0] != nullptr && interpreter.truthy(*parameters[0]);
  Value best;
  Value best_key;
  bool first = true;
  for (const Value& item : interpreter.iterate(input)) {
    Value key = comparison_key(
        interpreter, given(parameters[1]) ? dotted_item(interpreter, item, *parameters[1]) : item, case_sensitive);
    if (std::exchange(first, false) || (maximum ? interpreter.less(best_key, key) : interpreter.less(key, best_key))) {
      best = item;
      best_key = std::move(key);
    }
    if (!interpreter.ok()) return {};
  }
  return best;
}

Value filter_replace(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "replace", args, {"old", "new", "count"}, 2);
  if (!interpreter.ok()) return {};
  const Int count = given(parameters[2]) ? interpreter.integer(*parameters[2], "the count of replace") : Int{-1};
  return replace(interpreter, *interpreter.str(input), *interpreter.str(*parameters[0]),
                 *interpreter.str(*parameters[1]), count);
}

Value filter_reverse(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "reverse", args, {});
  if (input.is_string()) return interpreter.slice(input, None{}, None{}, Value(Int{-1}));
  std::vector<Value> items = interpreter.iterate(input);
  std::reverse(items.begin(), items.end());
  return generator(interpreter, std::move(items));
}

Value filter_round(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "round", args, {"precision", "method"});
  const Int precision =
      parameters[0] != nullptr ? interpreter.integer(*parameters[0], "the precision of round") : Int{0};
  const std::string method = parameters[1] != nullptr ? interpreter.str(*parameters[1])->bytes : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    return interpreter.fail("round: the method must be common, ceil or floor");
  }
  if (input.is_undefined()) return interpreter.fail_undefined(input);
  if (!input.is_number()) return interpreter.fail("round: {} is not a number", type_name(input));
  if (precision < -300 || precision > 300) return interpreter.fail("round: a precision of {}", precision);
  const double value = input.real();
  if (method != "common") {
    // Python goes through an integer here, which has no negative zero: hence the + 0.0.
    const double scale = std::pow(10.0, static_cast<double>(precision));
    return Value(((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) + 0.0) / scale);
  }
  if (input.is_integral() && precision >= 0) return Value(input.integral());
  if (precision >= 0) {
    // The decimal text of a float is exact, so this rounds as Python does.
    if (!std::isfinite(value)) return Value(value);
    return Value(std::strtod(fmt::format("{:.{}f}", value, static_cast<int>(precision)).c_str(), nullptr));
  }
  const double scale = std::pow(10.0, static_cast<double>(-precision));
  const double rounded = std::nearbyint(value / scale) * scale;
  if (input.is_integral()) {
    return std::abs(rounded) < 1e38 ? Value(static_cast<Int>(rounded))
                                    : interpreter.fail("round: the result is too large");
  }
  return Value(rounded);
}

Value filter_safe(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "safe", args, {});
  TextBuilder builder;
  builder.append(*interpreter.str(input));
  return interpreter.text(std::move(builder), true);
}

Value filter_sort(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "sort", args, {"reverse", "case_sensitive", "attribute"});
  const bool reverse = parameters[0] != nullptr && interpreter.truthy(*parameters[0]);
  const bool case_sensitive = parameters[1] != nullptr && interpreter.truthy(*parameters[1]);
  std::vector<Value> out;
  for (auto& [_, item] :
       sorted_by(interpreter, interpreter.iterate(input), parameters[2], case_sensitive, reverse, nullptr, true)) {
    out.push_back(std::move(item));
  }
  return interpreter.list(std::move(out));
}

Value filter_string(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "string", args, {});
  return Value(interpreter.str(input));
}

Value filter_striptags(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "striptags", args, {});
  const TextPtr text = interpreter.str(input);
  if (text->bytes.find('&') != std::string::npos) return interpreter.fail("striptags: entities are not supported");
  if (!interpreter.charge(text->bytes.size() * kClassWork)) return {};
  TextBuilder builder;
  size_t pos = 0;
  bool open_tag = false, open_comment = false;  // one was not closed: none after it is
  while (pos < text->bytes.size()) {
    const bool comment = text->bytes.compare(pos, 4, "<!--") == 0;
    bool& open = comment ? open_comment : open_tag;
    size_t close = std::string::npos;
    if (text->bytes[pos] == '<' && !open) {
      close = text->bytes.find(comment ? "-->" : ">", pos + 1);
      open = close == std::string::npos;
    }
    if (close != std::string::npos) {
      pos = close + (comment ? 3 : 1);
      continue;
    }
    builder.append_range(*text, pos, pos + 1);
    ++pos;
  }
  const Value bare = interpreter.text(std::move(builder));
  TextBuilder joined;
  for (const Value& word : split(interpreter, bare.text(), std::nullopt, -1, false)) {
    if (joined.size_bytes() != 0) joined.append(" ", true);
    joined.append(word.text());
  }
  return interpreter.text(std::move(joined));
}

Value filter_sum(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "sum", args, {"attribute", "start"});
  Value total = parameters[1] != nullptr ? *parameters[1] : Value(Int{0});
  for (const Value& item : interpreter.iterate(input)) {
    total = interpreter.binary(Operator::kAdd, total,
                               given(parameters[0]) ? dotted_item(interpreter, item, *parameters[0]) : item);
    if (!interpreter.ok()) return {};
  }
  if (total.is_string()) return interpreter.fail("sum: strings cannot be summed; use join");
  return total;
}

// Jinja's own rule, not str.title(): each word is one upper and the rest lower; words end at spaces, '-' and brackets.
Value filter_title(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "title", args, {});
  const TextPtr text = interpreter.str(input);
  TextBuilder builder;
  const auto put = [&](size_t begin, size_t end, CaseKind kind) {
    const Value part = interpreter.substring(*text, begin, end);
    const Value mapped = map_case(interpreter, part.text(), kind);
    if (mapped.is_string()) builder.append(mapped.text());
  };
  size_t word = 0;  // where the current word begins
  const auto close = [&](size_t end) {
    if (word >= end) return;
    const size_t second = word + code_point_bytes(text->bytes, word);
    put(word, second, CaseKind::kUpper);
    put(second, end, CaseKind::kLower);
  };
  for (size_t pos = 0; pos < text->bytes.size() && interpreter.ok();) {
    const size_t begin = pos;
    const char32_t c = next_code_point(text->bytes, pos);
    if (!is_space(c) && c != '-' && c != '(' && c != '{' && c != '[' && c != '<') continue;
    close(begin);
    builder.append_range(*text, begin, pos);
    word = pos;
  }
  close(text->bytes.size());
  return interpreter.text(std::move(builder));
}

Value filter_tojson(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  Interpreter::JsonStyle style;
  style.ensure_ascii = parameters[0] != nullptr && interpreter.truthy(*parameters[0]);
  style.sort_keys = parameters[3] != nullptr && interpreter.truthy(*parameters[3]);
  if (given(parameters[1])) {
    if (parameters[1]->is_string()) {
      interpreter.charge(parameters[1]->bytes().size());
      style.indent = parameters[1]->bytes();
    } else {
      const Int width = std::clamp(interpreter.integer(*parameters[1], "the indent of tojson"), Int{0}, Int{64});
      style.indent = std::string(static_cast<size_t>(width), ' ');
    }
    style.item_separator = std::string(1, ',');
  }
  if (given(parameters[2])) {
    const std::vector<Value> separators = interpreter.iterate(*parameters[2]);
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      return interpreter.fail("tojson: separators must be two strings");
    }
    style.item_separator = separators[0].bytes();
    style.key_separator = separators[1].bytes();
  }
  return interpreter.to_json(input, style);
}

Value filter_trim(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "trim", args, {"chars"});
  std::optional<std::string_view> set;
  if (given(parameters[0])) {
    if (!parameters[0]->is_string()) return interpreter.fail("trim: the characters must be a string");
    set = parameters[0]->bytes();
  }
  return strip(interpreter, *interpreter.str(input), Side::kBoth, set);
}

Value filter_truncate(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "truncate", args, {"length", "killwords", "end", "leeway"});
  const Int length =
      parameters[0] != nullptr ? interpreter.integer(*parameters[0], "the length of truncate") : Int{255};
  const bool kill_words = parameters[1] != nullptr && interpreter.truthy(*parameters[1]);
  const TextPtr end = parameters[2] != nullptr ? interpreter.str(*parameters[2]) : literal_text("...");
  const Int leeway = given(parameters[3]) ? interpreter.integer(*parameters[3], "the leeway of truncate") : Int{5};
  const Int end_length = *interpreter.length(Value(end));
  const auto input_length = interpreter.length(input);
  if (!input_length) return interpreter.fail("truncate: {} has no length", type_name(input));
  if (!interpreter.ok() || length < end_length) return interpreter.fail("truncate: the end is longer than the length");
  if (*input_length <= length + leeway) return input;
  if (!input.is_string()) return interpreter.fail("truncate: {} is not a string", type_name(input));
  Value cut = interpreter.slice(input, None{}, Value(length - end_length), None{});
  if (!kill_words && interpreter.ok()) {
    cut = interpreter.substring(cut.text(), 0, std::min(cut.bytes().rfind(' '), cut.bytes().size()));
  }
  return interpreter.binary(Operator::kAdd, cut, Value(end));
}

Value filter_unique(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "unique", args, {"case_sensitive", "attribute"});
  const bool case_sensitive = parameters[0] != nullptr && interpreter.truthy(*parameters[0]);
  std::vector<Value> out;
  std::set<std::string> seen;
  for (const Value& item : interpreter.iterate(input)) {
    std::string key;
    const Value compared = comparison_key(
        interpreter, given(parameters[1]) ? dotted_item(interpreter, item, *parameters[1]) : item, case_sensitive);
    if (!interpreter.ok() || !interpreter.hash(compared, key))
      return interpreter.fail("unique: {} cannot be compared", type_name(compared));
    if (!seen.insert(std::move(key)).second) continue;
    out.push_back(item);
  }
  return generator(interpreter, std::move(out));
}

Value filter_urlencode(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "urlencode", args, {});
  if (input.dict() != nullptr || input.sequence() != nullptr)
    return interpreter.fail("urlencode: only strings are supported");
  const TextPtr text = interpreter.str(input);
  if (!interpreter.charge(text->bytes.size() * kClassWork)) return {};
  TextBuilder builder;
  size_t hint = 0;
  for (size_t i = 0; i < text->bytes.size(); ++i) {
    const char c = text->bytes[i];
    const bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '.' ||
                       c == '-' || c == '~' || c == '/';
    builder.append(plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c)),
                   trusted_at(*text, i, hint));
  }
  return interpreter.text(std::move(builder));
}

Value filter_wordcount(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "wordcount", args, {});
  const TextPtr text = interpreter.str(input);
  if (!interpreter.charge(text->bytes.size() * kClassWork)) return {};
  Int count = 0;
  bool inside = false;
  for (size_t pos = 0; pos < text->bytes.size();) {
    const char32_t c = next_code_point(text->bytes, pos);
    const bool word = c == '_' || (char_class(c) & (kAlpha | kDecimal | kDigit | kNumeric)) != 0;
    if (word && !inside) ++count;
    inside = word;
  }
  return Value(count);
}

constexpr Entry kFilters[] = {
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"capitalize", filter_capitalize},
    {"center", filter_center},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", filter_float},
    {"format", filter_format},
    {"from_json", filter_from_json},
    {"groupby", filter_groupby},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", filter_case<CaseKind::kLower>},
    {"map", filter_map},
    {"max", filter_extreme<true>},
    {"min", filter_extreme<false>},
    {"reject", filter_select<false, false>},
    {"rejectattr", filter_select<true, false>},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"safe", filter_safe},
    {"select", filter_select<false, true>},
    {"selectattr", filter_select<true, true>},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"string", filter_string},
    {"striptags", filter_striptags},
    {"sum", filter_sum},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"unique", filter_unique},
    {"upper", filter_case<CaseKind::kUpper>},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
};

}  // namespace

Filter find_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const Entry& entry) { return entry.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

std::string unknown_filter_message(std::string_view name) {
  std::string names;
  for (const Entry& entry : kFilters) names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  return fmt::format("found filter '{}'; supported are {}", name, names);
}

}  // namespace hearth::jinja
