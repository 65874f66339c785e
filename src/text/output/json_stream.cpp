#include "text/output/json_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/output/cursor.h"

namespace hearth {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

// A number, true, false or null. The parser would let a byte order mark and what follows a NUL pass.
bool is_literal(std::string_view word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  return plain && nlohmann::json::accept(word);
}

uint32_t hex_value(std::string_view digits) {
  uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

void append_utf8(uint32_t code, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

void append_escaped(char c, std::string& out) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      if (is_control(c)) {
        out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      } else {
        out += c;
      }
  }
}

}  // namespace

void append_escaped(std::string_view text, std::string& out) {
  for (char c : text) append_escaped(c, out);
}

size_t JsonString::read(std::string_view text, std::string& out) {
  size_t i = 0;
  while (i < text.size() && !done_) {
    const char c = text[i];
    if (escape_.empty()) {
      ++i;
      if (c == '\\') {
        escape_ = c;
        continue;
      }
      drop_high(out);
      if (c == quote_) {
        done_ = true;
      } else {
        put(c, out);
      }
    } else if (escape_.size() == 1) {
      if (c == 'u') {
        escape_ += c;
        ++i;
        continue;
      }
      escape_.clear();
      drop_high(out);
      if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
        put_escape(c, out);
        ++i;
      } else if (c == '\'') {
        put(c, out);
        ++i;
      } else {
        put('\\', out);
      }
    } else if (std::isxdigit(static_cast<unsigned char>(c)) != 0) {
      escape_ += c;
      ++i;
      if (escape_.size() == 6) put_unit(out);
    } else {
      drop_high(out);
      for (char e : std::exchange(escape_, {})) put(e, out);
    }
  }
  return i;
}

void JsonString::close(std::string& out) {
  drop_high(out);
  for (char c : std::exchange(escape_, {})) put(c, out);
  done_ = true;
}

void JsonString::put(char c, std::string& out) const {
  if (output_ == Output::kDecoded) {
    out += c;
  } else {
    append_escaped(c, out);
  }
}

void JsonString::put_escape(char c, std::string& out) const {
  if (output_ == Output::kJson) {
    out += '\\';
    out += c;
    return;
  }
  const size_t which = std::string_view("bfnrt").find(c);
  out += which == std::string_view::npos ? c : "\b\f\n\r\t"[which];
}

// A complete \u with its four digits.
void JsonString::put_unit(std::string& out) {
  const std::string escape = std::exchange(escape_, {});
  const uint32_t unit = hex_value(std::string_view(escape).substr(2));
  const bool high = unit >= 0xD800 && unit < 0xDC00;
  const bool low = unit >= 0xDC00 && unit < 0xE000;
  if (low && !high_.empty()) {
    if (output_ == Output::kJson) {
      out += high_ + escape;
    } else {
      append_utf8(0x10000 + ((hex_value(std::string_view(high_).substr(2)) - 0xD800) << 10) + (unit - 0xDC00), out);
    }
    high_.clear();
    return;
  }
  drop_high(out);
  if (high) {
    high_ = escape;
  } else if (low) {
    put_replacement(out);
  } else if (output_ == Output::kJson) {
    out += escape;
  } else {
    append_utf8(unit, out);
  }
}

void JsonString::put_replacement(std::string& out) const {
  out += output_ == Output::kJson ? "\\ufffd" : "\xEF\xBF\xBD";
}

void JsonString::drop_high(std::string& out) {
  if (high_.empty()) return;
  high_.clear();
  put_replacement(out);
}

size_t JsonStream::read(std::string_view text, std::string& out) {
  size_t i = 0;
  stuck_ = false;
  while (i < text.size() && state_ != State::kDone) {
    const char c = text[i];
    if (state_ == State::kString) {
      i += string_->read(text.substr(i), out);
      if (string_->done()) end_string(out);
      continue;
    }
    if (state_ == State::kBare) {
      // A colon ends a bare key; in a bare value it is a letter.
      if (!is_space(c) && std::string_view(",{}[]\"<").find(c) == std::string_view::npos && (c != ':' || !key_)) {
        bare_ += c;
        ++i;
      } else {
        end_bare(out);
      }
      continue;
    }
    if (c == '<') {
      stuck_ = true;
      return i;
    }
    if (is_space(c)) {
      (state_ == State::kItem ? gap_ : out) += c;
      ++i;
      continue;
    }
    if (state_ == State::kColon) {
      out += ':';
      state_ = State::kValue;
      if (c == ':') ++i;
      continue;
    }
    if (c == ',' || c == '}' || c == ']') {
      if (state_ == State::kValue) {
        out += "null";
        end_value();
      } else if (c != ',') {
        close_bracket(c, out);
        ++i;
      } else {
        if (!first_ && comma_ == kNoComma) {
          comma_ = gap_.size();
          gap_ += c;
        }
        ++i;
      }
      continue;
    }
    if (c == ':') {
      ++i;
      continue;
    }
    if (open_.size() == kMaxDepth && (c == '{' || c == '[')) {
      stuck_ = true;
      return i;
    }
    if (state_ == State::kItem) begin_item(out);
    if (begin_value(c, out)) ++i;
  }
  return i;
}

void JsonStream::close(std::string& out) {
  if (state_ == State::kString) {
    string_->close(out);
    end_string(out);
  }
  if (state_ == State::kBare) end_bare(out);
  if (state_ == State::kColon) {
    out += ':';
    state_ = State::kValue;
  }
  if (state_ == State::kValue || (state_ == State::kItem && open_.empty())) {
    out += "null";
    end_value();
  }
  while (state_ != State::kDone) close_bracket(open_.back() == '{' ? '}' : ']', out);
}

// Writes what stands between the last item and the one that begins now.
void JsonStream::begin_item(std::string& out) {
  if (!open_.empty()) {
    if (!first_ && comma_ == kNoComma) out += ',';
    out += gap_;
  }
  gap_.clear();
  comma_ = kNoComma;
}

// True if `c` is used up.
bool JsonStream::begin_value(char c, std::string& out) {
  const bool key = state_ == State::kItem && in_object();
  if (c == '"' || c == '\'') {
    begin_string(c, key, out);
    return true;
  }
  if (!key && (c == '{' || c == '[')) {
    out += c;
    open_ += c;
    first_ = true;
    state_ = State::kItem;
    return true;
  }
  key_ = key;
  state_ = State::kBare;
  // A bracket where a key should be: the key is empty, and the bracket its value.
  return c == '{' || c == '[' ? false : (bare_ += c, true);
}

void JsonStream::begin_string(char quote, bool key, std::string& out) {
  out += '"';
  string_.emplace(quote, JsonString::Output::kJson);
  key_ = key;
  state_ = State::kString;
}

void JsonStream::end_string(std::string& out) {
  out += '"';
  string_.reset();
  if (key_) {
    state_ = State::kColon;
  } else {
    end_value();
  }
}

void JsonStream::end_bare(std::string& out) {
  const std::string word = std::exchange(bare_, {});
  if (!key_ && (word == "True" || word == "False" || word == "None")) {
    out += word == "True" ? "true" : word == "False" ? "false" : "null";
  } else if (!key_ && is_literal(word)) {
    out += word;
  } else {
    out += '"';
    append_escaped(word, out);
    out += '"';
  }
  if (key_) {
    state_ = State::kColon;
  } else {
    end_value();
  }
}

void JsonStream::end_value() {
  first_ = false;
  state_ = open_.empty() ? State::kDone : State::kItem;
}

// Closes what is open inside of the bracket too; one that closes nothing is dropped.
void JsonStream::close_bracket(char c, std::string& out) {
  const size_t opener = open_.rfind(c == '}' ? '{' : '[');
  if (opener == std::string::npos) return;
  if (comma_ != kNoComma) gap_.erase(comma_, 1);
  comma_ = kNoComma;
  out += std::exchange(gap_, {});
  while (open_.size() > opener) {
    out += open_.back() == '{' ? '}' : ']';
    open_.pop_back();
  }
  end_value();
}

}  // namespace hearth
