// The values a chat template computes with: Python's basic types, with the origin of every piece of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hearth::jinja {

// 128 bits, so that every integer that JSON can carry (uint64 too) prints as it was written.
using Int = __int128;

// A stretch of a text that ends at byte `end` and has one origin: the template (trusted) or the caller.
struct Run {
  size_t end;
  bool trusted;
};

class Heap;

// An immutable string. `runs` cover it without gaps and neighbours differ; an empty text has none.
// `markup` is what `|safe` and `|escape` set: such a text escapes what is added to it, as markupsafe does.
struct Text {
  std::string bytes;
  std::vector<Run> runs;
  bool markup = false;
  Heap* heap = nullptr;  // where its size is accounted; none for the literals of a template

  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text();
};
using TextPtr = std::shared_ptr<const Text>;

// Collects pieces of text and their origins.
class TextBuilder {
 public:
  void append(std::string_view bytes, bool trusted);
  void append(const Text& text) { append_range(text, 0, text.bytes.size()); }
  void append_range(const Text& text, size_t begin, size_t end);  // bytes [begin, end)
  size_t size_bytes() const { return bytes_.size(); }
  bool all_trusted() const { return runs_.empty() || (runs_.size() == 1 && runs_[0].trusted); }

  std::string bytes_;
  std::vector<Run> runs_;
};

bool all_trusted(const Text& text);
// The origin of the byte at `pos`; the search begins at runs[hint], which is moved along.
bool trusted_at(const Text& text, size_t pos, size_t& hint);

struct Sequence;
struct Dict;
struct Namespace;
struct Callable;
struct Loop;

// `what` names the missing thing for the message; it points into the template's tree, or is null.
struct Undefined {
  const std::string* what = nullptr;
};
struct None {};

template <class T, class Variant>
inline constexpr bool kIsAlternative = false;
template <class T, class... Types>
inline constexpr bool kIsAlternative<T, std::variant<Types...>> = (std::is_same_v<T, Types> || ...);

class Value {
 public:
  using Data =
      std::variant<Undefined, None, bool, Int, double, TextPtr, Sequence*, Dict*, Namespace*, Callable*, Loop*>;

  Value() = default;
  template <class T>
  requires kIsAlternative<T, Data> Value(T data)
      : data_(std::in_place_type<T>, std::move(data)) {}  // NOLINT: implicit on purpose

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  template <class T>
  const T& get() const {
    return *std::get_if<T>(&data_);
  }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_string() const { return is<TextPtr>(); }
  const Text& text() const { return *get<TextPtr>(); }
  const std::string& bytes() const { return text().bytes; }
  Sequence* sequence() const { return is<Sequence*>() ? get<Sequence*>() : nullptr; }
  Dict* dict() const { return is<Dict*>() ? get<Dict*>() : nullptr; }
  bool is_integral() const { return is<bool>() || is<Int>(); }
  bool is_number() const { return is_integral() || is<double>(); }
  Int integral() const { return is<bool>() ? Int{get<bool>()} : get<Int>(); }
  double real() const { return is<double>() ? get<double>() : static_cast<double>(integral()); }
  size_t index() const { return data_.index(); }

 private:
  Data data_;
};

// Containers live until the render ends, so that cycles and deep nesting cost nothing to free.
struct Object {
  virtual ~Object() = default;
};

enum class SequenceKind { kList, kTuple, kRange, kDictKeys, kDictValues, kDictItems, kGenerator };

struct Sequence : Object {
  SequenceKind kind = SequenceKind::kList;
  std::vector<Value> items;
  bool consumed = false;     // generators yield once
  bool is_group = false;     // a tuple of `groupby`: has .grouper and .list
  Int range[3] = {0, 0, 1};  // start, stop, step of a range

  bool is_list() const { return kind == SequenceKind::kList; }
  bool is_tuple() const { return kind == SequenceKind::kTuple; }
  bool has_length() const { return kind != SequenceKind::kGenerator; }
  bool has_index() const { return is_list() || is_tuple() || kind == SequenceKind::kRange; }
};

// Insertion order. Keys are compared by `key_of` (value.cpp): 1, 1.0 and true are one key, as in Python.
struct Dict : Object {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string, size_t> positions;

  const Value* find(const std::string& key) const;
  void set(std::string key, Value name, Value value);
  void erase(const std::string& key);
};

// The hashed form of a string key.
std::string string_key(std::string_view bytes);
// False for what Python cannot hash (lists, dicts, ...).
bool key_of(const Value& value, std::string& out);

struct Namespace : Object {
  std::vector<std::pair<std::string, Value>> attributes;
};

// Owns what one render creates and knows how much that is.
class Heap {
 public:
  explicit Heap(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  template <class T>
  T* make() {
    auto object = std::make_unique<T>();
    T* raw = object.get();
    objects_.push_back(std::move(object));
    used_bytes_ += sizeof(T) + 2 * sizeof(void*);
    return raw;
  }
  TextPtr text(TextBuilder&& builder, bool markup = false);
  TextPtr text(std::string_view bytes, bool trusted);
  void charge(size_t bytes) { used_bytes_ += bytes; }
  void release(size_t bytes) { used_bytes_ -= bytes; }
  bool over_limit() const { return used_bytes_ > limit_bytes_; }
  size_t limit_bytes() const { return limit_bytes_; }

 private:
  size_t limit_bytes_;
  size_t used_bytes_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

// A literal of the template: trusted and outside of any heap.
TextPtr literal_text(std::string_view bytes);

// Python's repr(float): the shortest digits that read back, exponent form outside [1e-4, 1e16).
std::string float_repr(double value);
std::string int_repr(Int value);
// Python's repr(str).
std::string string_repr(std::string_view bytes);

// "string", "list", "undefined", ... for messages.
std::string_view type_name(const Value& value);

}  // namespace hearth::jinja
