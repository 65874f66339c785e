// The part of an answer that has come and is not read yet.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

class Cursor {
 public:
  enum class Match { kNo, kPartial, kYes };  // partial: what has come is a beginning of it, and more may come

  void append(std::string_view text);
  void end() { ended_ = true; }
  bool ended() const { return ended_; }  // nothing more will come

  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  bool empty() const { return at_ == text_.size(); }
  // True if there is nothing to read, and nothing more will come.
  bool over() const { return ended_ && empty(); }
  void skip(size_t bytes) { at_ += bytes; }
  void skip_space();

  Match match(std::string_view literal, size_t offset = 0) const;
  // The same, and skips the literal if it is there.
  Match take(std::string_view literal);

  struct Found {
    size_t before;   // bytes in which no marker begins, whatever comes after
    int index = -1;  // the marker that stands behind them; the longest of several; -1: none, or not sure yet
  };
  Found find(std::span<const std::string_view> markers) const;

  // From here on what is skipped is remembered, until it is released or taken back as text.
  void hold() { hold_ = at_; }
  void release() { hold_ = kNothing; }
  size_t held_bytes() const { return hold_ == kNothing ? 0 : at_ - hold_; }
  std::string take_held();

 private:
  static constexpr size_t kNothing = static_cast<size_t>(-1);

  std::string text_;
  size_t at_ = 0;
  size_t hold_ = kNothing;
  bool ended_ = false;
};

}  // namespace hearth
