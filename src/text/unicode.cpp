#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/utf8.h"

namespace hearth {
namespace {

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
