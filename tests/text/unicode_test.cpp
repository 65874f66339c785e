#include "text/unicode.h"
#include "base/utf8.h"

#include "vocab_files.h"

namespace hearth {
namespace {

TEST(Utf8, RoundTripsEveryScalarValue) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    std::string text;
    append_utf8(text, c);
    Utf8Char back = read_utf8(text, 0);
    ASSERT_TRUE(back.valid) << c;
    ASSERT_EQ(back.code_point, c);
    ASSERT_EQ(back.length, text.size());
    // Every proper prefix is an incomplete tail, the whole is not.
    for (size_t cut = 1; cut < text.size(); ++cut) ASSERT_EQ(incomplete_utf8_tail("x" + text.substr(0, cut)), cut) << c;
    ASSERT_EQ(incomplete_utf8_tail(text), 0u);
  }
}

// The examples of the Unicode standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8, ReplacesMaximalInvalidSubsequences) {
  const std::string r(kReplacementCharacter);
  EXPECT_EQ(lossy_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                       "A"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
                       "A"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy_utf8("\xF4\x91\x92\x93\xFF"
                       "A\x80\xBF"
                       "B"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(lossy_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                       "A"),
            r + r + r + r + "A");
  EXPECT_EQ(lossy_utf8("long ascii text, then \xFF"), "long ascii text, then " + r);
  EXPECT_EQ(incomplete_utf8_tail("\xE0\x80"), 0u);  // no character begins so
  EXPECT_EQ(incomplete_utf8_tail("\x80\x80\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xC3"), 1u);
}

std::string nfc(std::string_view text) {
  std::string scratch;
  return std::string(to_nfc(text, scratch));
}

TEST(Nfc, ComposesAndOrders) {
  EXPECT_EQ(nfc("plain"), "plain");
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("xe\u0301\nye\u0301z"), "x\u00E9\ny\u00E9z");
  EXPECT_EQ(nfc("s\u0323\u0307"), "\u1E69");
  EXPECT_EQ(nfc("s\u0307\u0323"), "\u1E69");
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\uAC00\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\u212B"), "\u00C5");        // a singleton
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");  // excluded from composition
  EXPECT_EQ(nfc("\u304B\u3099"), "\u304C");  // kana and sound mark
  EXPECT_EQ(nfc("\u0418\u0306"), "\u0419");  // Cyrillic
  EXPECT_EQ(nfc("e\u0301\xFF"
                "e\u0301\xC3"),
            "\u00E9\xFF\u00E9\xC3");
  EXPECT_EQ(nfc(std::string("a\0e\u0301", 5)), std::string("a\0\u00E9", 4));
}

TEST(Nfc, IsIdempotentOnEveryCodePoint) {
  std::string text;
  for (uint32_t c = 1; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    text.clear();
    append_utf8(text, c);
    std::string once = nfc(text);
    ASSERT_EQ(nfc(once), once) << c;
    // What the fast path skips must be what the full algorithm leaves alone: a mark in the same line forces the latter.
    ASSERT_EQ(nfc(text + "\u0301"), nfc(once + "\u0301")) << c;
    ASSERT_EQ(nfc(text + "z\u0316"), once + "z\u0316") << c;
  }
}

TEST(Nfc, ALongRunOfMarksIsNotQuadratic) {
  std::string text = "a";
  while (text.size() < (1 << 20)) text += "\u0301\u0316";
  double begin = cpu_seconds();
  std::string out = nfc(text);
  EXPECT_LT(cpu_seconds() - begin, 5.0);
  EXPECT_EQ(out.substr(0, 4), "\u00E1\u0316");
}

}  // namespace
}  // namespace hearth
