// Reads one JSON value that comes in pieces, and writes it as strict JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// `text` as the inside of a JSON string.
void append_escaped(std::string_view text, std::string& out);

// A string behind its opening quote.
class JsonString {
 public:
  enum class Output { kJson, kDecoded };  // the inside of a strict JSON string, or the text that it means

  JsonString(char quote, Output output) : quote_(quote), output_(output) {}

  // Reads up to and with the closing quote, which is not written. Returns the number of bytes read.
  size_t read(std::string_view text, std::string& out);
  bool done() const { return done_; }
  // The string ends here: an escape that is not complete is taken literally.
  void close(std::string& out);

 private:
  void put(char c, std::string& out) const;
  void put_escape(char c, std::string& out) const;
  void put_unit(std::string& out);
  void put_replacement(std::string& out) const;
  void drop_high(std::string& out);

  char quote_;
  Output output_;
  bool done_ = false;
  std::string escape_;  // the escape that is being read
  std::string high_;    // \uD8xx that waits for its other half
};

// What is strict JSON is written byte for byte: the same call must come back to the model as it was written, or its
// prompt is not found in the prefix cache. Else repaired: trailing and missing commas, 'single quotes', bare words,
// Python's True, False and None, raw control characters and wrong escapes in strings, missing values, wrong closing
// brackets.
class JsonStream {
 public:
  // Appends what can be written to `out`. Returns the number of bytes read: fewer than all if done() or stuck().
  size_t read(std::string_view text, std::string& out);
  bool done() const { return state_ == State::kDone; }
  // In front of a byte that cannot be part of the value: a `<` outside of strings begins markup.
  bool stuck() const { return stuck_; }
  // The value ends here: closes what is open.
  void close(std::string& out);

 private:
  enum class State { kItem, kColon, kValue, kString, kBare, kDone };
  static constexpr size_t kMaxDepth = 500;

  bool in_object() const { return !open_.empty() && open_.back() == '{'; }
  void begin_item(std::string& out);
  bool begin_value(char c, std::string& out);
  void begin_string(char quote, bool key, std::string& out);
  void end_string(std::string& out);
  void end_bare(std::string& out);
  void end_value();
  void close_bracket(char c, std::string& out);

  State state_ = State::kItem;
  std::string open_;         // the brackets that are open
  bool first_ = true;        // nothing stands in the innermost bracket yet
  std::string gap_;          // white space and at most one comma between items, until it is known what follows
  size_t comma_ = kNoComma;  // its place in gap_
  bool key_ = false;         // the string or bare word is a key
  std::string bare_;
  std::optional<JsonString> string_;
  bool stuck_ = false;

  static constexpr size_t kNoComma = static_cast<size_t>(-1);
};

}  // namespace hearth
