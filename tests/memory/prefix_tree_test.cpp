#include "memory/prefix_tree.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth {
namespace {

using Tokens = std::vector<int32_t>;

TEST(PrefixTree, FindsByParentAndTokens) {
  PrefixTree tree(2, 1, 8);
  const auto a = tree.add(PrefixTree::kRoot, Tokens{1, 2});
  const auto b = tree.add(a, Tokens{1, 2});
  const auto c = tree.add(a, Tokens{2, 1});
  EXPECT_EQ(tree.find(PrefixTree::kRoot, Tokens{1, 2}), a);
  EXPECT_EQ(tree.find(a, Tokens{1, 2}), b);
  EXPECT_EQ(tree.find(a, Tokens{2, 1}), c);
  EXPECT_EQ(tree.find(b, Tokens{1, 2}), PrefixTree::kNone);
  EXPECT_EQ(tree.find(PrefixTree::kRoot, Tokens{2, 1}), PrefixTree::kNone);
  EXPECT_EQ(tree.parent(c), a);
  EXPECT_EQ(tree.size(), 3);
  EXPECT_FALSE(tree.is_leaf(a));
  EXPECT_TRUE(tree.is_leaf(b));
}

TEST(PrefixTree, RemovesFromTheMiddleOfSiblings) {
  PrefixTree tree(1, 1, 8);
  std::vector<PrefixTree::Node> nodes;
  for (int32_t i = 0; i < 5; ++i) nodes.push_back(tree.add(PrefixTree::kRoot, Tokens{i}));
  tree.remove(nodes[2]);
  tree.remove(nodes[4]);
  tree.remove(nodes[0]);
  for (int32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(tree.find(PrefixTree::kRoot, Tokens{i}), i % 2 ? nodes[static_cast<size_t>(i)] : PrefixTree::kNone);
  }
  EXPECT_EQ(tree.size(), 2);
}

TEST(PrefixTree, IsFullAtItsLimitAndReusesNodes) {
  PrefixTree tree(1, 2, 2);
  const auto a = tree.add(PrefixTree::kRoot, Tokens{1});
  EXPECT_NE(tree.add(a, Tokens{1}), PrefixTree::kNone);
  EXPECT_EQ(tree.add(a, Tokens{2}), PrefixTree::kNone);
  tree.remove(tree.find(a, Tokens{1}));
  const auto c = tree.add(a, Tokens{2});
  ASSERT_NE(c, PrefixTree::kNone);
  EXPECT_EQ(tree.pages(c)[0], -1);
  EXPECT_EQ(tree.pages(c)[1], -1);
  EXPECT_TRUE(tree.is_leaf(c));
}

TEST(PrefixTree, OrderOfUseKeepsParentsNewerThanChildren) {
  PrefixTree tree(1, 1, 8);
  const auto a = tree.add(PrefixTree::kRoot, Tokens{1});
  const auto a1 = tree.add(a, Tokens{1});
  const auto a2 = tree.add(a, Tokens{2});
  const auto b = tree.add(PrefixTree::kRoot, Tokens{2});
  tree.touch(a2, false);
  tree.touch(b, false);
  tree.touch(a1, false);
  std::vector<PrefixTree::Node> order;
  for (auto node = tree.first_to_go(); node != PrefixTree::kNone; node = tree.next_to_go(node)) order.push_back(node);
  EXPECT_EQ(order, (std::vector<PrefixTree::Node>{a2, b, a1, a}));
}

TEST(PrefixTree, WhatIsKeptGoesLast) {
  PrefixTree tree(1, 1, 8);
  const auto a = tree.add(PrefixTree::kRoot, Tokens{1});
  const auto a1 = tree.add(a, Tokens{1});
  const auto b = tree.add(PrefixTree::kRoot, Tokens{2});
  const auto a2 = tree.add(a, Tokens{2});
  tree.touch(a1, true);
  tree.touch(b, false);
  tree.touch(a2, false);  // its parent stays kept, and is now the newest
  EXPECT_TRUE(tree.kept(a) && tree.kept(a1));
  EXPECT_FALSE(tree.kept(a2) || tree.kept(b));
  std::vector<PrefixTree::Node> order;
  for (auto node = tree.first_to_go(); node != PrefixTree::kNone; node = tree.next_to_go(node)) order.push_back(node);
  EXPECT_EQ(order, (std::vector<PrefixTree::Node>{b, a2, a1, a}));
  tree.remove(a2);
  tree.remove(b);
  EXPECT_EQ(tree.first_to_go(), a1);
}

}  // namespace
}  // namespace hearth
