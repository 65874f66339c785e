#include "memory/prefix_tree.h"

#include <algorithm>

#include "base/check.h"

namespace hearth {
namespace {

// FNV-1a over whole tokens: only a quick way to tell siblings apart, equality is checked on the tokens.
uint64_t hash_tokens(std::span<const int32_t> tokens) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int32_t token : tokens) hash = (hash ^ static_cast<uint32_t>(token)) * 0x100000001b3u;
  return hash;
}

}  // namespace

PrefixTree::PrefixTree(int64_t page_tokens, int64_t groups, int64_t max_nodes)
    : page_tokens_(page_tokens),
      groups_(groups),
      nodes_(static_cast<size_t>(max_nodes + 1)),
      tokens_(static_cast<size_t>((max_nodes + 1) * page_tokens)),
      pages_(static_cast<size_t>((max_nodes + 1) * groups), -1) {
  for (int64_t i = max_nodes; i >= 1; --i) {
    at(static_cast<Node>(i)).next_sibling = first_free_;
    first_free_ = static_cast<Node>(i);
  }
}

std::span<int32_t> PrefixTree::pages(Node node) {
  return std::span(pages_).subspan(static_cast<size_t>(node * groups_), static_cast<size_t>(groups_));
}

std::span<const int32_t> PrefixTree::pages(Node node) const {
  return std::span(pages_).subspan(static_cast<size_t>(node * groups_), static_cast<size_t>(groups_));
}

std::span<const int32_t> PrefixTree::tokens(Node node) const {
  return std::span(tokens_).subspan(static_cast<size_t>(node * page_tokens_), static_cast<size_t>(page_tokens_));
}

PrefixTree::Node PrefixTree::find(Node parent, std::span<const int32_t> tokens) const {
  const uint64_t hash = hash_tokens(tokens);
  for (Node node = at(parent).first_child; node != kNone; node = at(node).next_sibling) {
    if (at(node).hash == hash && std::ranges::equal(this->tokens(node), tokens)) return node;
  }
  return kNone;
}

uint64_t PrefixTree::path_of(Node parent, std::span<const int32_t> tokens) const {
  return (at(parent).path ^ hash_tokens(tokens)) * 0x9e3779b97f4a7c15u;
}

int64_t PrefixTree::longest_beginning(Node parent, std::span<const int32_t> tokens) const {
  int64_t longest = 0;
  for (Node node = at(parent).first_child; node != kNone; node = at(node).next_sibling) {
    const auto other = this->tokens(node);
    longest = std::max<int64_t>(longest, std::ranges::mismatch(other, tokens).in1 - other.begin());
  }
  return longest;
}

PrefixTree::Node PrefixTree::add(Node parent, std::span<const int32_t> tokens, bool keep) {
  HEARTH_CHECK(static_cast<int64_t>(tokens.size()) == page_tokens_, "{} tokens, a page has {}", tokens.size(),
               page_tokens_);
  const Node node = first_free_;
  if (node == kNone) return kNone;
  first_free_ = at(node).next_sibling;
  const Node sibling = at(parent).first_child;
  at(node) = {.hash = hash_tokens(tokens),
              .path = path_of(parent, tokens),
              .parent = parent,
              .next_sibling = sibling,
              .kept = keep};
  if (sibling != kNone) at(sibling).previous_sibling = node;
  at(parent).first_child = node;
  std::ranges::copy(tokens, tokens_.begin() + node * page_tokens_);
  std::ranges::fill(pages(node), -1);
  link_oldest(node);
  ++size_;
  return node;
}

void PrefixTree::remove(Node leaf) {
  HEARTH_CHECK(leaf != kRoot && is_leaf(leaf), "node {} is not a leaf", leaf);
  HEARTH_CHECK(std::ranges::all_of(pages(leaf), [](int32_t page) { return page < 0; }), "node {} has pages", leaf);
  unlink_age(leaf);
  Entry& entry = at(leaf);
  if (entry.previous_sibling != kNone) {
    at(entry.previous_sibling).next_sibling = entry.next_sibling;
  } else {
    at(entry.parent).first_child = entry.next_sibling;
  }
  if (entry.next_sibling != kNone) at(entry.next_sibling).previous_sibling = entry.previous_sibling;
  entry = {.next_sibling = first_free_};
  first_free_ = leaf;
  --size_;
}

void PrefixTree::touch(Node node, bool keep) {
  for (; node != kRoot; node = at(node).parent) {
    unlink_age(node);
    at(node).kept |= keep;
    link_newest(node);
  }
}

void PrefixTree::unlink_age(Node node) {
  Entry& entry = at(node);
  Ages& ages = ages_of(node);
  (entry.older != kNone ? at(entry.older).newer : ages.oldest) = entry.newer;
  (entry.newer != kNone ? at(entry.newer).older : ages.newest) = entry.older;
  entry.older = entry.newer = kNone;
}

void PrefixTree::link_newest(Node node) {
  Ages& ages = ages_of(node);
  at(node).older = ages.newest;
  (ages.newest != kNone ? at(ages.newest).newer : ages.oldest) = node;
  ages.newest = node;
}

void PrefixTree::link_oldest(Node node) {
  Ages& ages = ages_of(node);
  at(node).newer = ages.oldest;
  (ages.oldest != kNone ? at(ages.oldest).older : ages.newest) = node;
  ages.oldest = node;
}

}  // namespace hearth
