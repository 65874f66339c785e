#include "text/special_matcher.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "text/unicode.h"

namespace hearth {

bool is_harmless_token(std::string_view text) {
  bool white = true;
  size_t characters = 0;
  for (size_t pos = 0; pos < text.size(); ++characters) {
    Utf8Char c = read_utf8(text, pos);
    white = white && c.valid && (is_white_space(c.code_point) || c.code_point == 0x2581);
    pos += c.length;
  }
  if (white || characters == 1) return true;
  constexpr std::string_view kHtml[] = {
      "a",  "b",    "blockquote", "body", "br",  "caption", "code",  "dd",   "del",   "div", "dl",    "dt", "em", "h1",
      "h2", "h3",   "h4",         "h5",   "h6",  "head",    "hr",    "html", "i",     "img", "li",    "ol", "p",  "pre",
      "s",  "span", "strong",     "sub",  "sup", "table",   "tbody", "td",   "tfoot", "th",  "thead", "tr", "u",  "ul",
  };
  if (text.size() < 3 || text.front() != '<' || text.back() != '>') return false;
  text = text.substr(1, text.size() - 2);
  if (text.front() == '/') text.remove_prefix(1);
  return std::find(std::begin(kHtml), std::end(kHtml), text) != std::end(kHtml);
}

SpecialMatcher::SpecialMatcher(const Vocab& vocab) {
  roots_.fill(-1);
  for (int32_t id = 0; id < vocab.size(); ++id) {
    TokenType type = vocab.types[static_cast<size_t>(id)];
    if (type != TokenType::kControl && type != TokenType::kUserDefined && type != TokenType::kUnknown) continue;
    std::string_view text = vocab.tokens[static_cast<size_t>(id)];
    int32_t* link = &roots_[static_cast<uint8_t>(text[0])];
    int32_t node = -1;
    for (char c : text) {
      while (*link >= 0 && nodes_[static_cast<size_t>(*link)].byte != static_cast<uint8_t>(c)) {
        link = &nodes_[static_cast<size_t>(*link)].sibling;
      }
      node = *link;
      if (node < 0) {
        node = *link = static_cast<int32_t>(nodes_.size());  // before the vector moves
        nodes_.push_back({.byte = static_cast<uint8_t>(c)});
      }
      link = &nodes_[static_cast<size_t>(node)].first_child;
    }
    Node& end = nodes_[static_cast<size_t>(node)];
    if (end.id >= 0) continue;  // a repeated text: the first id encodes
    end.id = id;
    if (type == TokenType::kUserDefined) {
      end.level = is_harmless_token(text) ? SpecialLevel::kHarmless : SpecialLevel::kUserDefined;
    }
  }
}

}  // namespace hearth
