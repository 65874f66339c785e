// What sequences share and reuse: a tree whose nodes are pages of tokens, in the order in which they should go: those
// that were used once before those that are worth keeping, each by last use (a segmented LRU). It knows which physical
// pages a node has; who owns pages is the pool's business (page_pool.h), when to evict the cache's (kv_cache.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

// A node stands for one page of tokens after those of its parent. Nodes live in arrays of a fixed size, so that
// nothing is allocated once the tree exists.
class PrefixTree {
 public:
  using Node = int32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = -1;

  PrefixTree(int64_t page_tokens, int64_t groups, int64_t max_nodes);

  // The child of `parent` that holds exactly these tokens (one page of them), or kNone.
  Node find(Node parent, std::span<const int32_t> tokens) const;
  // A new child, without pages and the first to go, or the first of those worth keeping if `keep`; kNone when max_nodes
  // are there. The tokens must not be there.
  Node add(Node parent, std::span<const int32_t> tokens, bool keep = false);
  // Removes a leaf whose pages were taken back.
  void remove(Node leaf);

  // For each group the page, or -1: never kept, or taken back.
  std::span<int32_t> pages(Node node);
  std::span<const int32_t> pages(Node node) const;
  std::span<const int32_t> tokens(Node node) const;
  Node parent(Node node) const { return at(node).parent; }
  bool is_leaf(Node node) const { return at(node).first_child == kNone; }
  // A hash of all tokens from the root to the end of the node, and the one that a child with these tokens would have.
  uint64_t path(Node node) const { return at(node).path; }
  uint64_t path_of(Node parent, std::span<const int32_t> tokens) const;
  // How many of these tokens the child that has most of them begins with.
  int64_t longest_beginning(Node parent, std::span<const int32_t> tokens) const;

  // Makes the node and all its ancestors the most recently used, and worth keeping from now on if `keep`. A node never
  // goes before its descendants, so the first to go is a leaf.
  void touch(Node node, bool keep);
  bool kept(Node node) const { return at(node).kept; }
  Node first_to_go() const { return ages_[0].oldest != kNone ? ages_[0].oldest : ages_[1].oldest; }
  Node next_to_go(Node node) const {
    const Entry& entry = at(node);
    return entry.newer != kNone || entry.kept ? entry.newer : ages_[1].oldest;
  }

  int64_t size() const { return size_; }  // without the root
  // Of its arrays, which are all that it ever takes.
  size_t bytes() const { return nodes_.size() * sizeof(Entry) + (tokens_.size() + pages_.size()) * sizeof(int32_t); }
  int64_t max_nodes() const { return static_cast<int64_t>(nodes_.size()) - 1; }

 private:
  struct Entry {
    uint64_t hash = 0;
    uint64_t path = 0;
    Node parent = kNone;
    Node first_child = kNone;
    Node previous_sibling = kNone;
    Node next_sibling = kNone;  // chains the free nodes too
    Node older = kNone;
    Node newer = kNone;
    bool kept = false;
  };
  struct Ages {
    Node oldest = kNone;
    Node newest = kNone;
  };
  Entry& at(Node node) { return nodes_[static_cast<size_t>(node)]; }
  const Entry& at(Node node) const { return nodes_[static_cast<size_t>(node)]; }
  Ages& ages_of(Node node) { return ages_[at(node).kept ? 1 : 0]; }
  void unlink_age(Node node);
  void link_newest(Node node);
  void link_oldest(Node node);

  int64_t page_tokens_;
  int64_t groups_;
  std::vector<Entry> nodes_;
  std::vector<int32_t> tokens_;  // [nodes, page_tokens]
  std::vector<int32_t> pages_;   // [nodes, groups]
  Node first_free_ = kNone;
  Ages ages_[2];  // used once; kept
  int64_t size_ = 0;
};

}  // namespace hearth
