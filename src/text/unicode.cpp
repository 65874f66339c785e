#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <vector>

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

// The number of leading bytes of `text` that are ASCII, found eight at a time.
size_t ascii_prefix(std::string_view text) {
  size_t i = 0;
  for (uint64_t word; i + 8 <= text.size(); i += 8) {
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080ull) break;
  }
  while (i < text.size() && static_cast<uint8_t>(text[i]) < 0x80) ++i;
  return i;
}

// True for characters that NFC leaves alone whatever follows or precedes, as long as the neighbours are inert too:
// everything below the combining marks, CJK ideographs, kana without the sound marks, Hangul syllables, Cyrillic
// letters, general punctuation, full-width forms and emoji. Only a fast path: false is always a correct answer.
bool is_inert(uint32_t c) {
  return c < 0x300 || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0x3001 && c <= 0x3029) || (c >= 0x3041 && c <= 0x3096) || (c >= 0x30A0 && c <= 0x30FA) ||
         (c >= 0x0400 && c <= 0x0482) || (c >= 0x2010 && c <= 0x205E) || (c >= 0xFF01 && c <= 0xFFEF) ||
         (c >= 0x1F300 && c <= 0x1FAFF);
}

// Appends NFC of `text`, which is valid UTF-8. Decomposition and composition are utf8proc's; the canonical ordering
// between them is ours because utf8proc's is quadratic in a run of combining marks.
void append_nfc(std::string_view text, std::string& out) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    Utf8Char c = read_utf8(text, pos);
    pos += c.length;
    utf8proc_int32_t expanded[8];  // canonical decompositions have at most 4 code points
    int boundary = 0;
    auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), expanded, std::size(expanded),
                                     kOptions, &boundary);
    if (n < 0 || n > static_cast<utf8proc_ssize_t>(std::size(expanded))) {
      points.push_back(static_cast<utf8proc_int32_t>(c.code_point));
    } else {
      points.insert(points.end(), expanded, expanded + n);
    }
  }
  auto combining_class = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (size_t i = 0; i < points.size();) {
    if (combining_class(points[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < points.size() && combining_class(points[end]) != 0) ++end;
    std::stable_sort(points.begin() + static_cast<ptrdiff_t>(i), points.begin() + static_cast<ptrdiff_t>(end),
                     [&](auto a, auto b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
  auto n = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), kOptions);
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(out, static_cast<uint32_t>(points[static_cast<size_t>(i)]));
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

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view to_nfc(std::string_view text, std::string& scratch) {
  // Works line by line: a line feed neither composes nor moves, so that only lines with something to do are touched.
  scratch.clear();
  size_t copied = 0;  // everything before it is in `scratch`
  for (size_t pos = 0; pos < text.size();) {
    pos += ascii_prefix(text.substr(pos));
    size_t start = pos;
    bool inert = true;
    while (pos < text.size() && text[pos] != '\n') {
      Utf8Char c = read_utf8(text, pos);
      if (!c.valid) break;
      inert = inert && is_inert(c.code_point);
      pos += c.length;
    }
    if (!inert) {
      if (start > copied) --start;  // the ASCII character before may combine with what follows
      scratch.append(text.substr(copied, start - copied));
      append_nfc(text.substr(start, pos - start), scratch);
      copied = pos;
    }
    while (pos < text.size() && !read_utf8(text, pos).valid) pos += read_utf8(text, pos).length;
  }
  if (copied == 0 && scratch.empty()) return text;
  scratch.append(text.substr(copied));
  return scratch;
}

}  // namespace hearth
