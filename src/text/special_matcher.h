// Finds added tokens (control, user-defined, unknown) in text, before the rest is cut and merged.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/vocab.h"

namespace hearth {

// What a stretch of text may form. The order matters: each level allows all of the level before.
enum class SpecialLevel : uint8_t {
  kHarmless,     // user-defined tokens without a meaning in a conversation, see is_harmless()
  kUserDefined,  // every user-defined token
  kAll,          // control and unknown tokens too
};

// User-defined tokens that stand for ordinary text: white space, a single character, a plain HTML tag such as <table>.
bool is_harmless_token(std::string_view text);

// A trie over the added tokens of a vocabulary.
class SpecialMatcher {
 public:
  explicit SpecialMatcher(const Vocab& vocab);

  struct Match {
    int32_t id = -1;  // -1 = none
    size_t length = 0;
  };

  // The longest token that starts at `pos` and that `allowed(level, length)` accepts, where `level` is the lowest one
  // that may form the token.
  template <class Allowed>
  Match longest_at(std::string_view text, size_t pos, Allowed&& allowed) const {
    Match best;
    int32_t node = roots_[static_cast<uint8_t>(text[pos])];
    for (size_t length = 1; node >= 0; ++length) {
      const Node& n = nodes_[static_cast<size_t>(node)];
      if (n.id >= 0 && allowed(n.level, length)) best = {n.id, length};
      if (pos + length == text.size()) break;
      node = child(n, static_cast<uint8_t>(text[pos + length]));
    }
    return best;
  }

  // The first position at or after `pos` where any token may start; text.size() if there is none.
  size_t next_candidate(std::string_view text, size_t pos) const {
    while (pos < text.size() && roots_[static_cast<uint8_t>(text[pos])] < 0) ++pos;
    return pos;
  }

 private:
  // Nodes hold their children as a list: an alternative (`sibling`) or the next byte (`first_child`).
  struct Node {
    int32_t id = -1;
    int32_t first_child = -1, sibling = -1;
    uint8_t byte = 0;
    SpecialLevel level = SpecialLevel::kAll;
  };
  int32_t child(const Node& node, uint8_t byte) const {
    int32_t c = node.first_child;
    while (c >= 0 && nodes_[static_cast<size_t>(c)].byte != byte) c = nodes_[static_cast<size_t>(c)].sibling;
    return c;
  }

  std::vector<Node> nodes_;
  std::array<int32_t, 256> roots_;
};

}  // namespace hearth
