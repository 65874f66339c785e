// Python's methods of str, dict, list and tuple.
#include <algorithm>
#include <array>

#include "text/template/search.h"
#include "text/template/text_functions.h"

namespace hearth::jinja {
namespace {

// A method: the arguments were not looked at yet, `self` has the right type.
using Method = Value (*)(Interpreter&, const Value& self, Args& args);
struct Entry {
  std::string_view name;
  Method method;
  bool mutates = false;
};

// The text of an argument; fails if it is something else.
const Text* text_argument(Interpreter& interpreter, const Value& value, std::string_view what) {
  if (value.is_string()) return &value.text();
  interpreter.fail("{} must be a string, not {}", what, type_name(value));
  return nullptr;
}

template <Side side>
Value strip_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "strip", args, {"chars"});
  const Value* chars = parameters[0];
  if (chars == nullptr || chars->is_none()) return strip(interpreter, self.text(), side, std::nullopt);
  const Text* set = text_argument(interpreter, *chars, "the argument of strip");
  return set == nullptr ? Value() : strip(interpreter, self.text(), side, set->bytes);
}

template <bool from_right>
Value split_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "split", args, {"sep", "maxsplit"});
  const Int limit = parameters[1] != nullptr ? interpreter.integer(*parameters[1], "maxsplit") : Int{-1};
  std::optional<std::string_view> separator;
  if (parameters[0] != nullptr && !parameters[0]->is_none()) {
    const Text* text = text_argument(interpreter, *parameters[0], "the separator of split");
    if (text == nullptr) return {};
    separator = text->bytes;
  }
  return interpreter.list(split(interpreter, self.text(), separator, limit, from_right));
}

template <CaseKind kind>
Value case_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "upper and lower", args, {});
  return map_case(interpreter, self.text(), kind);
}

template <bool at_end>
Value affix_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, at_end ? "endswith" : "startswith", args, {"prefix", "start", "end"}, 1);
  if (!interpreter.ok()) return {};
  Value subject = self;
  if (parameters[1] != nullptr || parameters[2] != nullptr) {
    subject = interpreter.slice(self, parameters[1] ? *parameters[1] : Value(None{}),
                                parameters[2] ? *parameters[2] : Value(None{}), None{});
    if (!interpreter.ok()) return {};
  }
  const auto matches = [&](const Value& affix) {
    const Text* text = text_argument(interpreter, affix, "the argument of startswith and endswith");
    if (text != nullptr) interpreter.charge(std::min(text->bytes.size(), subject.bytes().size()));
    return text != nullptr &&
           (at_end ? subject.bytes().ends_with(text->bytes) : subject.bytes().starts_with(text->bytes));
  };
  const Value& affix = *parameters[0];
  if (const Sequence* tuple = affix.sequence(); tuple != nullptr && tuple->is_tuple()) {
    return interpreter.boolean(std::any_of(tuple->items.begin(), tuple->items.end(), matches));
  }
  return interpreter.boolean(matches(affix));
}

// The byte range of the optional arguments start and end.
std::pair<size_t, size_t> byte_range(Interpreter& interpreter, const std::string& bytes, const Value* start,
                                     const Value* end) {
  if ((start == nullptr || start->is_none()) && (end == nullptr || end->is_none())) return {0, bytes.size()};
  const Int size = count_code_points(bytes);
  const auto position = [&](const Value* value, Int fallback) {
    Int index = value == nullptr || value->is_none() ? fallback : interpreter.integer(*value, "a position");
    if (index < 0) index = std::max(Int{0}, std::max(index, -size) + size);
    index = std::min(index, size + 1);
    size_t at = 0;
    for (Int i = 0; i < index && at < bytes.size(); ++i) at += code_point_bytes(bytes, at);
    return index > size ? bytes.size() + 1 : at;
  };
  const size_t begin = position(start, 0);
  return {begin, std::min(position(end, size), bytes.size())};
}

template <bool from_right, bool must_exist>
Value find_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, must_exist ? "index" : "find", args, {"sub", "start", "end"}, 1);
  if (!interpreter.ok()) return {};
  const Text* wanted = text_argument(interpreter, *parameters[0], "what find looks for");
  if (wanted == nullptr) return {};
  const std::string& bytes = self.bytes();
  if (!interpreter.charge(bytes.size() + wanted->bytes.size())) return {};
  const auto [begin, end] = byte_range(interpreter, bytes, parameters[1], parameters[2]);
  size_t found = std::string::npos;
  if (begin <= end) {
    const std::string_view window = std::string_view(bytes).substr(begin, end - begin);
    found = from_right ? Search(wanted->bytes, Search::kBackwards).rfind(window, window.size())
                       : Search(wanted->bytes, Search::kForwards).find(window);
  }
  if (found != std::string::npos) {
    return Value(Int{count_code_points(std::string_view(bytes).substr(0, begin + found))});
  }
  return must_exist ? interpreter.fail("index(): the text is not there") : Value(Int{-1});
}

Value count_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "count", args, {"sub", "start", "end"}, 1);
  if (!interpreter.ok()) return {};
  const Text* wanted = text_argument(interpreter, *parameters[0], "what count looks for");
  if (wanted == nullptr) return {};
  if (!interpreter.charge(self.bytes().size() + wanted->bytes.size())) return {};
  const auto [begin, end] = byte_range(interpreter, self.bytes(), parameters[1], parameters[2]);
  if (begin > end) return Value(Int{0});
  const std::string_view window = std::string_view(self.bytes()).substr(begin, end - begin);
  if (wanted->bytes.empty()) return Value(Int{count_code_points(window)} + 1);
  Int count = 0;
  const Search search(wanted->bytes, Search::kForwards);
  for (size_t pos = 0; (pos = search.find(window, pos)) != std::string_view::npos; pos += wanted->bytes.size()) {
    ++count;
  }
  return Value(count);
}

template <bool from_right>
Value partition_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "partition", args, {"sep"}, 1);
  if (!interpreter.ok()) return {};
  const Text* separator = text_argument(interpreter, *parameters[0], "the separator of partition");
  if (separator == nullptr) return {};
  if (separator->bytes.empty()) return interpreter.fail("partition() with an empty separator");
  const std::string& bytes = self.bytes();
  if (!interpreter.charge(bytes.size() + separator->bytes.size())) return {};
  const size_t found = from_right ? Search(separator->bytes, Search::kBackwards).rfind(bytes, bytes.size())
                                  : Search(separator->bytes, Search::kForwards).find(bytes);
  std::vector<Value> parts(3, interpreter.text("", true));
  if (found == std::string::npos) {
    parts[from_right ? 2 : 0] = self;
  } else {
    parts[0] = interpreter.substring(self.text(), 0, found);
    parts[1] = interpreter.substring(self.text(), found, found + separator->bytes.size());
    parts[2] = interpreter.substring(self.text(), found + separator->bytes.size(), bytes.size());
  }
  return interpreter.list(std::move(parts), SequenceKind::kTuple);
}

template <Side text_side>
Value pad_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "ljust, rjust and center", args, {"width", "fillchar"}, 1);
  if (!interpreter.ok()) return {};
  std::string_view fill = " ";
  if (parameters[1] != nullptr) {
    const Text* text = text_argument(interpreter, *parameters[1], "the fill character");
    if (text == nullptr) return {};
    if (count_code_points(text->bytes) != 1) return interpreter.fail("the fill character must be one character");
    fill = text->bytes;
  }
  return pad(interpreter, self.text(), interpreter.integer(*parameters[0], "the width"), fill, text_side);
}

template <uint16_t mask>
Value class_method(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "isalpha and its like", args, {});
  if (!interpreter.charge(self.bytes().size() * kClassWork)) return {};
  for (size_t pos = 0; pos < self.bytes().size();) {
    if ((char_class(next_code_point(self.bytes(), pos)) & mask) == 0) return interpreter.boolean(false);
  }
  return interpreter.boolean(!self.bytes().empty());
}

Value str_replace(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "replace", args, {"old", "new", "count"}, 2);
  if (!interpreter.ok()) return {};
  const Text* from = text_argument(interpreter, *parameters[0], "what replace looks for");
  const Text* to = text_argument(interpreter, *parameters[1], "the replacement");
  if (from == nullptr || to == nullptr) return {};
  return replace(interpreter, self.text(), *from, *to,
                 parameters[2] != nullptr ? interpreter.integer(*parameters[2], "the count of replace") : Int{-1});
}

Value str_join(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "join", args, {"iterable"}, 1);
  if (!interpreter.ok()) return {};
  TextBuilder builder;
  bool first = true;
  for (const Value& part : interpreter.iterate(*parameters[0])) {
    if (!part.is_string()) return interpreter.fail("join() needs strings, not {}", type_name(part));
    if (!std::exchange(first, false)) builder.append(self.text());
    builder.append(part.text());
    if (!interpreter.check_growth(part.bytes().size() + self.bytes().size(), builder.size_bytes())) return {};
  }
  return interpreter.text(std::move(builder), self.text().markup);
}

template <bool suffix>
Value remove_affix(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "removeprefix and removesuffix", args, {"affix"}, 1);
  if (!interpreter.ok()) return {};
  const Text* affix = text_argument(interpreter, *parameters[0], "the affix");
  if (affix == nullptr || affix->bytes.empty()) return self;
  interpreter.charge(std::min(affix->bytes.size(), self.bytes().size()));
  const std::string& bytes = self.bytes();
  if (suffix && bytes.ends_with(affix->bytes)) {
    return interpreter.substring(self.text(), 0, bytes.size() - affix->bytes.size());
  }
  if (!suffix && bytes.starts_with(affix->bytes)) {
    return interpreter.substring(self.text(), affix->bytes.size(), bytes.size());
  }
  return self;
}

Value str_zfill(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "zfill", args, {"width"}, 1);
  if (!interpreter.ok()) return {};
  const Int width = interpreter.integer(*parameters[0], "the width");
  const std::string& bytes = self.bytes();
  if (!bytes.starts_with('-') && !bytes.starts_with('+'))
    return pad(interpreter, self.text(), width, "0", Side::kRight);
  const Value sign = interpreter.substring(self.text(), 0, 1);
  const Value digits = interpreter.substring(self.text(), 1, bytes.size());
  const Value padded = pad(interpreter, digits.text(), width - 1, "0", Side::kRight);
  return interpreter.binary(Operator::kAdd, sign, padded);
}

constexpr Entry kStringMethods[] = {
    {"capitalize",
     [](Interpreter& interpreter, const Value& self, Args& args) {
       Parameters parameters(interpreter, "capitalize", args, {});
       return capitalize(interpreter, self.text());
     }},
    {"center", pad_method<Side::kBoth>},
    {"count", count_method},
    {"endswith", affix_method<true>},
    {"find", find_method<false, false>},
    {"format", [](Interpreter& interpreter, const Value& self,
                  Args& args) { return interpreter.format_braces(self.text(), args); }},
    {"index", find_method<false, true>},
    {"isalnum", class_method<kAlpha | kDecimal | kDigit | kNumeric>},
    {"isalpha", class_method<kAlpha>},
    {"isdecimal", class_method<kDecimal>},
    {"isdigit", class_method<kDigit>},
    {"islower",
     [](Interpreter& interpreter, const Value& self, Args& args) {
       Parameters parameters(interpreter, "islower", args, {});
       return interpreter.boolean(is_case(interpreter, self.bytes(), kLower));
     }},
    {"isnumeric", class_method<kNumeric>},
    {"isspace", class_method<kSpace>},
    {"isupper",
     [](Interpreter& interpreter, const Value& self, Args& args) {
       Parameters parameters(interpreter, "isupper", args, {});
       return interpreter.boolean(is_case(interpreter, self.bytes(), kUpper));
     }},
    {"join", str_join},
    {"ljust", pad_method<Side::kLeft>},
    {"lower", case_method<CaseKind::kLower>},
    {"lstrip", strip_method<Side::kLeft>},
    {"partition", partition_method<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", str_replace},
    {"rfind", find_method<true, false>},
    {"rindex", find_method<true, true>},
    {"rjust", pad_method<Side::kRight>},
    {"rpartition", partition_method<true>},
    {"rsplit", split_method<true>},
    {"rstrip", strip_method<Side::kRight>},
    {"split", split_method<false>},
    {"splitlines",
     [](Interpreter& interpreter, const Value& self, Args& args) {
       Parameters parameters(interpreter, "splitlines", args, {"keepends"});
       const bool keep = parameters[0] != nullptr && interpreter.truthy(*parameters[0]);
       return interpreter.list(split_lines(interpreter, self.text(), keep));
     }},
    {"startswith", affix_method<false>},
    {"strip", strip_method<Side::kBoth>},
    {"title",
     [](Interpreter& interpreter, const Value& self, Args& args) {
       Parameters parameters(interpreter, "title", args, {});
       return title(interpreter, self.text());
     }},
    {"upper", case_method<CaseKind::kUpper>},
    {"zfill", str_zfill},
};

template <SequenceKind kind>
Value dict_view(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "keys, values and items", args, {});
  std::vector<Value> items;
  if (!interpreter.charge(self.dict()->entries.size() * sizeof(Value))) return {};
  for (const auto& [name, value] : self.dict()->entries) {
    items.push_back(kind == SequenceKind::kDictKeys     ? name
                    : kind == SequenceKind::kDictValues ? value
                                                        : interpreter.list({name, value}, SequenceKind::kTuple));
  }
  return interpreter.list(std::move(items), kind);
}

Value dict_get(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "get", args, {"key", "default"}, 1);
  if (!interpreter.ok()) return {};
  std::string key;
  if (!interpreter.hash(*parameters[0], key))
    return interpreter.fail("get(): {} cannot be a key", type_name(*parameters[0]));
  if (const Value* found = self.dict()->find(key)) return *found;
  return parameters[1] != nullptr ? *parameters[1] : Value(None{});
}

// What goes into a container in place must not be a container: then no value can come to contain itself.
bool can_insert(Interpreter& interpreter, const Value& value) {
  if (value.is_undefined() || value.is_none() || value.is_number() || value.is_string()) return true;
  interpreter.fail("a {} cannot be put into a list or dict in place; x + [y] makes a new list", type_name(value));
  return false;
}

Value dict_pop(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "pop", args, {"key", "default"}, 1);
  std::string key;
  if (!interpreter.ok() || !interpreter.hash(*parameters[0], key))
    return interpreter.fail("pop(): this cannot be a key");
  const Value* found = self.dict()->find(key);
  if (found == nullptr) return parameters[1] != nullptr ? *parameters[1] : interpreter.fail("pop(): no such key");
  Value value = *found;
  interpreter.charge(self.dict()->entries.size() * sizeof(Value));
  self.dict()->erase(key);
  return value;
}

Value dict_setdefault(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "setdefault", args, {"key", "default"}, 1);
  std::string key;
  if (!interpreter.ok() || !interpreter.hash(*parameters[0], key))
    return interpreter.fail("setdefault(): this cannot be a key");
  if (const Value* found = self.dict()->find(key)) return *found;
  Value value = parameters[1] != nullptr ? *parameters[1] : Value(None{});
  if (!can_insert(interpreter, value)) return {};
  interpreter.heap().charge(2 * sizeof(Value) + key.size());
  self.dict()->set(std::move(key), *parameters[0], value);
  return value;
}

Value dict_update(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "update", args, {"other"}, 1);
  if (!interpreter.ok()) return {};
  const Dict* other = parameters[0]->dict();
  if (other == nullptr) return interpreter.fail("update() needs a dict, not {}", type_name(*parameters[0]));
  const auto entries = other->entries;
  for (const auto& [name, value] : entries) {
    std::string key;
    if (!can_insert(interpreter, value) || !interpreter.hash(name, key)) return {};
    interpreter.heap().charge(2 * sizeof(Value) + key.size());
    self.dict()->set(std::move(key), name, value);
  }
  return None{};
}

constexpr Entry kDictMethods[] = {
    {"clear",
     [](Interpreter&, const Value& self, Args&) {
       self.dict()->entries.clear();
       self.dict()->positions.clear();
       return Value(None{});
     },
     true},
    {"copy",
     [](Interpreter& interpreter, const Value& self, Args&) {
       auto* copy = interpreter.heap().make<Dict>();
       copy->entries = self.dict()->entries;
       copy->positions = self.dict()->positions;
       interpreter.heap().charge(copy->entries.size() * 2 * sizeof(Value));
       interpreter.charge(copy->entries.size() * 2 * sizeof(Value));
       return Value(copy);
     }},
    {"get", dict_get},
    {"items", dict_view<SequenceKind::kDictItems>},
    {"keys", dict_view<SequenceKind::kDictKeys>},
    {"pop", dict_pop, true},
    {"setdefault", dict_setdefault, true},
    {"update", dict_update, true},
    {"values", dict_view<SequenceKind::kDictValues>},
};

Value sequence_index(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "index", args, {"value"}, 1);
  if (!interpreter.ok()) return {};
  const auto& items = self.sequence()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (interpreter.equal(items[i], *parameters[0])) return Value(static_cast<Int>(i));
  }
  return interpreter.fail("index(): the value is not in the list");
}

Value sequence_count(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "count", args, {"value"}, 1);
  if (!interpreter.ok()) return {};
  Int count = 0;
  for (const Value& item : self.sequence()->items) count += interpreter.equal(item, *parameters[0]) ? 1 : 0;
  return Value(count);
}

Value list_append(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "append", args, {"object"}, 1);
  if (!interpreter.ok() || !can_insert(interpreter, *parameters[0])) return {};
  interpreter.heap().charge(sizeof(Value));
  self.sequence()->items.push_back(*parameters[0]);
  return None{};
}

Value list_extend(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "extend", args, {"iterable"}, 1);
  if (!interpreter.ok()) return {};
  for (Value& item : interpreter.iterate(*parameters[0])) {
    if (!can_insert(interpreter, item)) return {};
    interpreter.heap().charge(sizeof(Value));
    self.sequence()->items.push_back(std::move(item));
  }
  return None{};
}

Value list_insert(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "insert", args, {"index", "object"}, 2);
  if (!interpreter.ok() || !can_insert(interpreter, *parameters[1])) return {};
  auto& items = self.sequence()->items;
  const Int size = static_cast<Int>(items.size());
  Int index = interpreter.integer(*parameters[0], "the index of insert");
  if (index < 0) index = std::max(Int{0}, std::max(index, -size) + size);
  interpreter.heap().charge(sizeof(Value));
  interpreter.charge(items.size() * sizeof(Value));
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(std::min(index, size)), *parameters[1]);
  return None{};
}

Value list_pop(Interpreter& interpreter, const Value& self, Args& args) {
  Parameters parameters(interpreter, "pop", args, {"index"});
  auto& items = self.sequence()->items;
  const Int size = static_cast<Int>(items.size());
  Int index = parameters[0] != nullptr ? interpreter.integer(*parameters[0], "the index of pop") : Int{-1};
  if (index < 0) index += size;
  if (!interpreter.ok() || index < 0 || index >= size) return interpreter.fail("pop(): no such item");
  Value value = items[static_cast<size_t>(index)];
  interpreter.charge(items.size() * sizeof(Value));
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(index));
  return value;
}

constexpr Entry kListMethods[] = {
    {"append", list_append, true},
    {"clear",
     [](Interpreter&, const Value& self, Args&) {
       self.sequence()->items.clear();
       return Value(None{});
     }},
    {"copy",
     [](Interpreter& interpreter, const Value& self, Args&) { return interpreter.list(self.sequence()->items); }},
    {"count", sequence_count},
    {"extend", list_extend, true},
    {"index", sequence_index},
    {"insert", list_insert, true},
    {"pop", list_pop},
    {"reverse",
     [](Interpreter& interpreter, const Value& self, Args&) {
       auto& items = self.sequence()->items;
       interpreter.charge(items.size() * sizeof(Value));
       std::reverse(items.begin(), items.end());
       return Value(None{});
     },
     true},
};

constexpr Entry kTupleMethods[] = {{"count", sequence_count}, {"index", sequence_index}};

// Python has these too; naming one is an error at its call, not a missing attribute.
constexpr std::string_view kUnsupported[] = {"casefold",  "encode",       "expandtabs", "format_map",
                                             "isascii",   "istitle",      "swapcase",   "translate",
                                             "maketrans", "isidentifier", "isprintable"};

const Entry* find_method_entry(const Value& self, std::string_view name) {
  const auto search = [&](const auto& methods) -> const Entry* {
    auto it =
        std::find_if(std::begin(methods), std::end(methods), [&](const Entry& entry) { return entry.name == name; });
    return it == std::end(methods) ? nullptr : &*it;
  };
  if (self.is_string()) return search(kStringMethods);
  if (self.dict() != nullptr) return search(kDictMethods);
  if (const Sequence* sequence = self.sequence()) {
    if (sequence->is_list()) return search(kListMethods);
    if (sequence->is_tuple() || sequence->kind == SequenceKind::kRange) return search(kTupleMethods);
  }
  return nullptr;
}

}  // namespace

bool has_method(const Value& self, std::string_view name) {
  return find_method_entry(self, name) != nullptr ||
         (self.is_string() &&
          std::find(std::begin(kUnsupported), std::end(kUnsupported), name) != std::end(kUnsupported));
}

bool is_mutating_method(const Value& self, std::string_view name) {
  const Entry* entry = find_method_entry(self, name);
  return entry != nullptr && entry->mutates;
}

Value call_method(Interpreter& interpreter, const Value& self, std::string_view name, Args& args) {
  const Entry* entry = find_method_entry(self, name);
  if (entry == nullptr) return interpreter.fail("the method {} of {} is not supported", name, type_name(self));
  return entry->method(interpreter, self, args);
}

}  // namespace hearth::jinja
