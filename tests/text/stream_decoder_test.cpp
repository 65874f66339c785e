#include "text/stream_decoder.h"

#include "vocab_files.h"

namespace hearth {
namespace {

// Pushes `input` cut at random places and joins the output.
std::string stream_in_pieces(std::mt19937& rng, std::string_view input) {
  Utf8Stream stream;
  std::string out;
  for (size_t pos = 0; pos < input.size();) {
    size_t n = std::min<size_t>(1 + rng() % 4, input.size() - pos);
    std::string part = stream.push(input.substr(pos, n));
    EXPECT_EQ(valid_utf8_prefix(part), part.size());
    out += part;
    pos += n;
  }
  return out + stream.finish();
}

TEST(Utf8Stream, CutsDoNotMatter) {
  std::mt19937 rng(3);
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 ? random_text(rng, rng() % 20) : random_bytes(rng, rng() % 40);
    ASSERT_EQ(stream_in_pieces(rng, text), lossy_utf8(text));
  }
}

TEST(Utf8Stream, HoldsBackOnlyWhatCanBecomeACharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.push("\x8E"), "");
  EXPECT_EQ(stream.push("\x89!"), "\U0001F389!");
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.push("z"), "\uFFFDz");
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

StopMatcher matcher(std::vector<std::string> stops) {
  auto m = StopMatcher::create(std::move(stops));
  EXPECT_TRUE(m);
  return std::move(*m);
}

TEST(StopMatcher, HoldsBackThePossibleBeginning) {
  StopMatcher m = matcher({"\nUser:", "END"});
  EXPECT_EQ(m.push("hello").text, "hello");
  EXPECT_EQ(m.push(" E").text, " ");
  EXPECT_EQ(m.push("N").text, "");
  EXPECT_EQ(m.push("x\nUs").text, "ENx");
  auto out = m.push("er: rest");
  EXPECT_EQ(out.text, "");
  EXPECT_EQ(out.stop_index, 0);
  EXPECT_EQ(m.push("more").text, "");
  EXPECT_TRUE(m.push("more").stopped());
  EXPECT_EQ(m.finish(), "");
}

TEST(StopMatcher, GivesTheHeldTextAtTheEnd) {
  StopMatcher m = matcher({"aab"});
  EXPECT_EQ(m.push("xaaa").text, "xa");
  EXPECT_EQ(m.finish(), "aa");
  EXPECT_EQ(m.push("b").text, "b");  // a new stream: the "aa" is forgotten
}

TEST(StopMatcher, TakesTheFirstCompleteAndThenTheLongest) {
  auto out = matcher({"bc", "abcd"}).push("xabcd");
  EXPECT_EQ(out.text, "xa");
  EXPECT_EQ(out.stop_index, 0);
  out = matcher({"cd", "abcd"}).push("xabcd");
  EXPECT_EQ(out.text, "x");
  EXPECT_EQ(out.stop_index, 1);
}

TEST(StopMatcher, RefusesAnEmptyStopString) {
  auto m = StopMatcher::create({"a", ""});
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, ErrorCode::kUsage);
}

// Against a plain search, for all cuts of random texts over a small alphabet.
TEST(StopMatcher, CutsDoNotMatter) {
  std::mt19937 rng(11);
  auto word = [&](size_t max) {
    std::string s;
    for (size_t n = 1 + rng() % max; n > 0; --n) s.push_back("ab"[rng() % 2]);
    return s;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops;
    for (size_t n = rng() % 4; n > 0; --n) stops.push_back(word(6));
    std::string text = word(30);
    // The smallest end of any stop string, and the longest stop string that ends there.
    std::string expected = text;
    bool found = false;
    for (size_t end = 1; end <= text.size() && !found; ++end) {
      for (const std::string& stop : stops) {
        if (std::string_view(text).substr(0, end).ends_with(stop)) {
          found = true;
          expected = std::min(expected, text.substr(0, end - stop.size()),
                              [](auto& a, auto& b) { return a.size() < b.size(); });
        }
      }
    }
    StopMatcher m = matcher(stops);
    std::string out;
    bool stopped = false;
    for (size_t pos = 0; pos < text.size() && !stopped;) {
      size_t n = std::min<size_t>(1 + rng() % 5, text.size() - pos);
      auto part = m.push(std::string_view(text).substr(pos, n));
      out += part.text;
      stopped = part.stopped();
      pos += n;
      if (!stopped) {
        // What is shown so far holds no byte too few: the rest is a proper prefix of a stop string.
        std::string held = text.substr(out.size(), pos - out.size());
        ASSERT_TRUE(held.empty() || std::any_of(stops.begin(), stops.end(), [&](auto& s) {
                      return s.size() > held.size() && s.starts_with(held);
                    }));
      }
    }
    if (!stopped) out += m.finish();
    ASSERT_EQ(stopped, found);
    ASSERT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace hearth
