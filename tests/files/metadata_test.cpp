#include "files/metadata.h"

#include <gtest/gtest.h>

#include <limits>

namespace hearth {
namespace {

Metadata sample() {
  Metadata m;
  EXPECT_TRUE(m.insert("flag", true));
  EXPECT_TRUE(m.insert("int", int64_t{-5}));
  EXPECT_TRUE(m.insert("uint", uint64_t{7}));
  EXPECT_TRUE(m.insert("huge", std::numeric_limits<uint64_t>::max()));
  EXPECT_TRUE(m.insert("real", 0.25));
  EXPECT_TRUE(m.insert("text", std::string("hello")));
  EXPECT_TRUE(m.insert("ints", std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(m.insert("reals", std::vector<float>{0.5f}));
  EXPECT_TRUE(m.insert("words", std::vector<std::string>{"a", "b"}));
  return m;
}

TEST(Metadata, GettersReturnTheirType) {
  Metadata m = sample();
  EXPECT_EQ(*m.boolean("flag"), true);
  EXPECT_EQ(*m.integer("int"), -5);
  EXPECT_EQ(*m.integer("uint"), 7);
  EXPECT_EQ(*m.real("real"), 0.25);
  EXPECT_EQ(*m.real("uint"), 7.0);
  EXPECT_EQ(*m.real("int"), -5.0);
  EXPECT_EQ(*m.string("text"), "hello");
  EXPECT_EQ(m.integers("ints")->size(), 2u);
  EXPECT_EQ((*m.reals("reals"))[0], 0.5f);
  EXPECT_EQ((*m.strings("words"))[1], "b");
}

TEST(Metadata, WrongTypesAndMissingKeysAreErrorsThatNameBoth) {
  Metadata m = sample();
  EXPECT_EQ(m.integer("text").error().message, "metadata key text: expected integer, the file has string");
  EXPECT_EQ(m.reals("ints").error().message,
            "metadata key ints: expected array of reals, the file has array of integers");
  EXPECT_EQ(m.string("none").error().message, "metadata key none is missing");
  EXPECT_FALSE(m.integer("huge"));
  EXPECT_FALSE(m.integer("real"));
  EXPECT_FALSE(m.boolean("uint"));
  EXPECT_EQ(m.insert("int", int64_t{1}).error().code, ErrorCode::kInvalidInput);
}

TEST(Metadata, FallbacksAreForMissingKeysOnly) {
  Metadata m = sample();
  EXPECT_EQ(*m.integer_or("none", 9), 9);
  EXPECT_EQ(*m.integer_or("uint", 9), 7);
  EXPECT_FALSE(m.integer_or("text", 9));
  EXPECT_EQ(*m.string_or("none", "x"), "x");
  EXPECT_EQ(*m.real_or("none", 0.5), 0.5);
  EXPECT_EQ(*m.boolean_or("none", true), true);
}

}  // namespace
}  // namespace hearth
