#include "base/utf8.h"

#include <cstring>

namespace hearth {
namespace {

// What the first byte says: total length (0 = cannot start a character) and the range of the second byte, which
// excludes overlong forms, surrogates and values past U+10FFFF.
struct Lead {
  uint8_t length, second_min, second_max;
};

constexpr Lead lead_of(uint8_t b) {
  if (b < 0x80) return {1, 0, 0};
  if (b < 0xC2) return {0, 0, 0};
  if (b < 0xE0) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b < 0xF0) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b < 0xF4) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Char read_utf8(std::string_view text, size_t pos) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[pos + i]); };
  Lead lead = lead_of(byte(0));
  if (lead.length == 1) return {byte(0), 1, true};
  if (lead.length == 0) return {0, 1, false};
  uint32_t value = byte(0) & (0x7F >> lead.length);
  for (size_t i = 1; i < lead.length; ++i) {
    if (pos + i >= text.size()) return {0, i, false};
    uint8_t low = i == 1 ? lead.second_min : 0x80, high = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {0, i, false};
    value = value << 6 | (byte(i) & 0x3F);
  }
  return {value, lead.length, true};
}

void append_utf8(std::string& out, uint32_t c) {
  auto put = [&](uint32_t b) { out.push_back(static_cast<char>(b)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

size_t ascii_prefix(std::string_view text) {
  size_t i = 0;
  for (uint64_t word; i + 8 <= text.size(); i += 8) {
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080ull) break;
  }
  while (i < text.size() && static_cast<uint8_t>(text[i]) < 0x80) ++i;
  return i;
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t pos = 0;
  while (true) {
    pos += ascii_prefix(text.substr(pos));
    if (pos == text.size()) return pos;
    Utf8Char c = read_utf8(text, pos);
    if (!c.valid) return pos;
    pos += c.length;
  }
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    size_t pos = text.size() - back;
    Lead lead = lead_of(static_cast<uint8_t>(text[pos]));
    if (lead.length == 0) continue;  // a continuation byte, or one that no character has
    if (lead.length <= back) return 0;
    Utf8Char c = read_utf8(text, pos);
    return !c.valid && c.length == back ? back : 0;
  }
  return 0;
}

std::string lossy_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    size_t valid = valid_utf8_prefix(text.substr(pos));
    out.append(text.substr(pos, valid));
    pos += valid;
    if (pos == text.size()) break;
    pos += read_utf8(text, pos).length;
    out.append(kReplacementCharacter);
  }
  return out;
}

}  // namespace hearth
