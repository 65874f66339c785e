#include "text/grammar/token_trie.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::grammar {
namespace {

constexpr size_t kMaxTables = 32;  // of about 1 MB for a vocabulary of 150,000

}  // namespace

TokenTrie::TokenTrie(std::vector<std::string> bytes, std::vector<int32_t> ends) : ends_(std::move(ends)) {
  std::ranges::sort(ends_);
  offsets_.push_back(0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i].size() <= kMaxTokenBytes && !is_end(static_cast<int32_t>(i))) bytes_ += bytes[i];
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    if (offsets_[i] != offsets_[i + 1]) sorted_.push_back(static_cast<int32_t>(i));
  }
  std::ranges::sort(sorted_, [&](int32_t a, int32_t b) {
    const int order = this->bytes(a).compare(this->bytes(b));
    return order != 0 ? order < 0 : a < b;
  });

  nodes_.push_back({});
  std::array<uint32_t, kMaxTokenBytes + 1> path{};  // the nodes from the root to the last token
  std::string_view last;
  const auto close = [&](size_t depth) {  // all nodes of the path below `depth`
    for (size_t d = depth + 1; d <= last.size(); ++d) nodes_[path[d]].end = static_cast<uint32_t>(nodes_.size());
  };
  for (size_t i = 0; i < sorted_.size(); ++i) {
    const std::string_view text = this->bytes(sorted_[i]);
    const auto common = static_cast<size_t>(std::ranges::mismatch(text, last).in1 - text.begin());
    if (common == text.size()) {  // the same bytes again
      ++nodes_[path[text.size()]].token_count;
      continue;
    }
    close(common);
    for (size_t d = common + 1; d <= text.size(); ++d) {
      path[d] = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.first_token = static_cast<uint32_t>(i),
                        .token_count = d == text.size() ? 1u : 0u,
                        .byte = static_cast<uint8_t>(text[d - 1]),
                        .depth = static_cast<uint8_t>(d)});
    }
    last = text;
  }
  close(0);
  nodes_[0].end = static_cast<uint32_t>(nodes_.size());
}

std::shared_ptr<const TokenTrie> TokenTrie::create(const Tokenizer& tokenizer) {
  const Vocab& vocab = tokenizer.vocab();
  std::vector<std::string> bytes(static_cast<size_t>(vocab.size()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string_view piece = tokenizer.piece(id);
    if (tokenizer.is_hidden(id)) {
      bytes[i] = kControlByte + std::string(piece);
    } else if (piece.find(kControlByte) == std::string_view::npos) {
      bytes[i] = piece;
    }
  }
  return std::make_shared<const TokenTrie>(std::move(bytes), vocab.end_of_generation);
}

std::string_view TokenTrie::bytes(int32_t token) const {
  if (token < 0 || token >= vocab_size()) return {};
  const auto i = static_cast<size_t>(token);
  return std::string_view(bytes_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
}

bool TokenTrie::is_end(int32_t token) const { return std::ranges::binary_search(ends_, token); }

std::shared_ptr<const RunTable> TokenTrie::run_table(const RunBody& body, int16_t tail, uint8_t state) const {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      tables_, [&](const Kept& k) { return k.tail == tail && k.state == state && k.body == body; });
  if (found != tables_.end()) {
    std::rotate(found, found + 1, tables_.end());
    return tables_.back().table;
  }
  if (tables_.size() >= kMaxTables) tables_.erase(tables_.begin());
  tables_.push_back({body, tail, state, make_run_table(body, tail, state)});
  return tables_.back().table;
}

std::shared_ptr<const RunTable> TokenTrie::make_run_table(const RunBody& body, int16_t tail, uint8_t state) const {
  auto table = std::make_shared<RunTable>();
  table->inside.resize(words());
  struct Place {
    uint8_t state = 0;
    uint8_t starts = 0;
  };
  std::array<Place, kMaxTokenBytes + 1> path;
  path[0] = {.state = state};
  std::vector<std::pair<uint8_t, int32_t>> found;  // characters that begin, token
  for (uint32_t i = 1; i < nodes_.size();) {
    const Node& node = nodes_[i];
    Place place = path[node.depth - 1u];
    if (place.state == 0) {
      if (tail == node.byte) {
        table->exits.push_back({i, place.starts});
        i = node.end;
        continue;
      }
      ++place.starts;
    }
    place.state = body.next[place.state][node.byte];
    if (place.state == RunBody::kDead) {
      i = node.end;
      continue;
    }
    path[node.depth] = place;
    for (uint32_t t = 0; t < node.token_count; ++t) found.push_back({place.starts, sorted_[node.first_token + t]});
    if (tail < 0 && place.state == 0) table->exits.push_back({i, place.starts});
    ++i;
  }
  std::ranges::sort(found);
  table->tokens.reserve(found.size());
  std::vector<uint64_t>& bits = table->inside;
  for (const auto& [starts, token] : found) {
    while (table->up_to.size() < std::min<size_t>(starts, RunTable::kSmall)) table->up_to.push_back(bits);
    while (table->ends.size() < starts) table->ends.push_back(static_cast<uint32_t>(table->tokens.size()));
    table->tokens.push_back(token);
    bits[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
  }
  while (table->up_to.size() < RunTable::kSmall) table->up_to.push_back(bits);
  table->ends.push_back(static_cast<uint32_t>(table->tokens.size()));
  return table;
}

}  // namespace hearth::grammar
