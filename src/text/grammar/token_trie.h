// The tokens of a vocabulary as a trie of their bytes, and what a run of characters makes of each.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/automaton.h"
#include "text/tokenizer.h"

namespace hearth::grammar {

// Tokens seen from inside of a run (Run) at one state of its body, whatever the counter: the counter only decides how
// many characters may begin and whether the run may end.
struct RunTable {
  // Tokens that stay inside, by how many characters begin in them: those with n are tokens[ends[n - 1], ends[n]).
  std::vector<int32_t> tokens;
  std::vector<uint32_t> ends;
  std::vector<uint64_t> inside;  // all of them, one bit a token
  // Those in which at most n characters begin, for small n: most tokens have few, so that these sets are large.
  static constexpr size_t kSmall = 16;
  std::vector<std::vector<uint64_t>> up_to;  // [n < kSmall]
  // Places where the run may end: behind its tail, or behind any character of a run without one.
  struct Exit {
    uint32_t node = 0;
    uint32_t starts = 0;  // characters that began before
  };
  std::vector<Exit> exits;
};

class TokenTrie {
 public:
  static constexpr size_t kMaxTokenBytes = 255;  // longer tokens are never allowed
  static constexpr uint32_t kRoot = 0;

  // Nodes in order of a walk that goes deep first: what is below a node follows it.
  struct Node {
    uint32_t end = 0;          // behind the last node below it
    uint32_t first_token = 0;  // of sorted_tokens()
    uint32_t token_count = 0;  // that end here
    uint8_t byte = 0;
    uint8_t depth = 0;  // bytes up to here
  };

  // `bytes` by token id, "" for a token that no text has; `ends`: the tokens that end an answer.
  TokenTrie(std::vector<std::string> bytes, std::vector<int32_t> ends);
  // Control tokens appear as kControlByte and their name.
  static std::shared_ptr<const TokenTrie> create(const Tokenizer& tokenizer);

  int64_t vocab_size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  size_t words() const { return (offsets_.size() + 62) / 64; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const int32_t> sorted_tokens() const { return sorted_; }
  std::string_view bytes(int32_t token) const;
  std::span<const int32_t> ends() const { return ends_; }
  bool is_end(int32_t token) const;

  // Safe from any thread. The tables are kept, so that all grammars share that of JSON strings.
  std::shared_ptr<const RunTable> run_table(const RunBody& body, int16_t tail, uint8_t state) const;

 private:
  struct Kept {
    RunBody body;
    int16_t tail;
    uint8_t state;
    std::shared_ptr<const RunTable> table;
  };
  std::shared_ptr<const RunTable> make_run_table(const RunBody& body, int16_t tail, uint8_t state) const;

  std::string bytes_;              // of all tokens
  std::vector<uint32_t> offsets_;  // of each token, and the end
  std::vector<int32_t> ends_;      // ascending
  std::vector<Node> nodes_;
  std::vector<int32_t> sorted_;
  mutable std::mutex mutex_;
  mutable std::vector<Kept> tables_;  // the latest last; guarded by mutex_
};

}  // namespace hearth::grammar
