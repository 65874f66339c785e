#include "server/json.h"

#include <gtest/gtest.h>

#include <chrono>

namespace hearth::server {
namespace {

std::string refusal(std::string_view text) {
  auto json = parse_json(text);
  return json ? "" : json.error().message;
}

std::string repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(ParseJson, TakesObjectsAndSaysWhereOthersBreak) {
  auto json = parse_json(R"({"a": [1, 2.5, "ü\u00fc"], "b": null})");
  ASSERT_TRUE(json);
  EXPECT_EQ(dump(*json), R"({"a":[1,2.5,"üü"],"b":null})");
  EXPECT_NE(refusal("{\"a\": \n nope}").find("line 2"), std::string::npos) << refusal("{\"a\": \n nope}");
  for (const char* text :
       {"", " ", "[]", "1", "\"x\"", "null", "{", "{\"a\":1}x", "{\"a\": 1e999}", "{\"a\": \"\xff\"}",
        "{\"a\": \"\xed\xa0\x80\"}", "{'a': 1}", "{\"a\": 01}", "{\"a\": \"\n\"}"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
}

TEST(ParseJson, BoundsDepthMemoryAndTime) {
  EXPECT_EQ(refusal("{\"a\":" + repeat("[", kMaxDepth - 1) + repeat("]", kMaxDepth - 1) + "}"), "");
  EXPECT_NE(refusal("{\"a\":" + repeat("[", kMaxDepth) + repeat("]", kMaxDepth) + "}").find("levels deep"),
            std::string::npos);
  EXPECT_NE(refusal(repeat("{\"a\":", 1'000'000)).find("levels deep"), std::string::npos);
  EXPECT_NE(refusal("{\"a\":[" + repeat("[],", kMaxValues) + "1]}").find("values"), std::string::npos);

  std::string members = "{";
  for (int i = 0; i < 300'000; ++i) members += "\"" + std::to_string(i) + "\":1,";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(refusal(members + "\"x\":1}").find("members"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Fields, ChecksTypesAndRangesAndKeepsTheFirstFault) {
  const Json json = *parse_json(R"({"i": 5, "whole": 5.0, "half": 5.5, "huge": 18446744073709551615, "f": -0.5,
    "b": true, "t": "x", "list": ["a", "b"], "mixed": ["a", 1], "none": null, "o": {}})");
  Fields f(json, "outer");
  EXPECT_EQ(f.integer("i", 0, 10), 5);
  EXPECT_EQ(f.integer("whole", 0, 10), 5);
  EXPECT_EQ(f.number("f", -1, 1), -0.5);
  EXPECT_EQ(f.boolean("b"), true);
  EXPECT_EQ(f.text("t"), "x");
  EXPECT_EQ(f.texts("t"), std::vector<std::string>{"x"});
  EXPECT_EQ(f.texts("list"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(f.integer("none", 0, 1), std::nullopt);
  EXPECT_EQ(f.text("missing"), std::nullopt);
  EXPECT_NE(f.object("o"), nullptr);
  EXPECT_FALSE(f.error());

  const auto fault = [&](auto&& read) {
    Fields fields(json, "outer");
    read(fields);
    return fields.error() ? fields.error()->message : "";
  };
  EXPECT_EQ(fault([](Fields& g) { g.integer("i", 6, 7); }), "outer.i: it must be a whole number from 6 to 7, found 5");
  EXPECT_NE(fault([](Fields& g) { g.integer("half", 0, 10); }), "");
  EXPECT_NE(fault([](Fields& g) { g.integer("huge", 0, INT64_MAX); }), "");
  EXPECT_NE(fault([](Fields& g) { g.number("f", 0, 1); }), "");
  EXPECT_NE(fault([](Fields& g) { g.number("t", 0, 1); }), "");
  EXPECT_NE(fault([](Fields& g) { g.boolean("i"); }), "");
  EXPECT_NE(fault([](Fields& g) { g.texts("mixed"); }), "");
  EXPECT_NE(fault([](Fields& g) { g.object("list"); }), "");
  EXPECT_NE(fault([](Fields& g) { g.array("o"); }), "");
  EXPECT_EQ(fault([](Fields& g) {
              g.text("i");
              g.text("b");
            }),
            "outer.i: it must be a string, found 5");
}

}  // namespace
}  // namespace hearth::server
