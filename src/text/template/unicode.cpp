#include "text/template/unicode.h"

#include <algorithm>
#include <iterator>

namespace hearth::jinja {
namespace {

struct PropertyRun {
  uint32_t first;
  uint16_t mask;
};
struct CaseRange {
  uint32_t first;
  uint32_t last;
  uint32_t stride;
  int32_t delta;
};
struct SpecialCase {
  uint32_t from;
  CaseKind kind;
  uint32_t to[3];
};

#include "text/template/unicode_tables.inc"

template <size_t N>
char32_t map_simple(const CaseRange (&ranges)[N], char32_t c) {
  auto it = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                             [](char32_t value, const CaseRange& range) { return value < range.first; });
  if (it == std::begin(ranges)) return c;
  --it;
  if (c > it->last || (c - it->first) % it->stride != 0) return c;
  return static_cast<char32_t>(static_cast<int64_t>(c) + it->delta);
}

// Bytes of the valid sequence at text[pos], 0 if there is none.
size_t valid_sequence(std::string_view text, size_t pos) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(pos);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - pos < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(pos + i) & 0xC0) != 0x80) return 0;
  }
  const uint8_t second = byte(pos + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return length;
}

}  // namespace

uint16_t char_class(char32_t c) {
  auto it = std::upper_bound(std::begin(kPropertyRuns), std::end(kPropertyRuns), c,
                             [](char32_t value, const PropertyRun& run) { return value < run.first; });
  return std::prev(it)->mask;
}

size_t code_point_bytes(std::string_view text, size_t pos) { return std::max<size_t>(1, valid_sequence(text, pos)); }

char32_t next_code_point(std::string_view text, size_t& pos) {
  const size_t length = valid_sequence(text, pos);
  if (length == 0) {
    ++pos;
    return 0xFFFD;
  }
  char32_t c = static_cast<uint8_t>(text[pos]);
  if (length > 1) c &= 0x7Fu >> length;
  for (size_t i = 1; i < length; ++i) c = (c << 6) | (static_cast<uint8_t>(text[pos + i]) & 0x3F);
  pos += length;
  return c;
}

size_t previous_code_point(std::string_view text, size_t pos) {
  for (size_t back = 1; back <= 4 && back <= pos; ++back) {
    if (valid_sequence(text, pos - back) == back) return pos - back;
  }
  return pos - 1;
}

void append_utf8(std::string& out, char32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = 0xFFFD;
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

void append_case_mapped(std::string& out, char32_t c, CaseKind kind) {
  auto it = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                             [](const SpecialCase& special, char32_t value) { return special.from < value; });
  for (; it != std::end(kSpecialCases) && it->from == c; ++it) {
    if (it->kind != kind) continue;
    for (uint32_t to : it->to) {
      if (to != 0) append_utf8(out, to);
    }
    return;
  }
  switch (kind) {
    case CaseKind::kUpper:
      append_utf8(out, map_simple(kUpperRanges, c));
      break;
    case CaseKind::kLower:
      append_utf8(out, map_simple(kLowerRanges, c));
      break;
    case CaseKind::kTitle:
      append_utf8(out, map_simple(kTitleRanges, c));
      break;
  }
}

int64_t count_code_points(std::string_view text) {
  int64_t count = 0;
  for (size_t pos = 0; pos < text.size(); pos += code_point_bytes(text, pos)) ++count;
  return count;
}

}  // namespace hearth::jinja
