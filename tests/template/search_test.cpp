#include "text/template/search.h"

#include <gtest/gtest.h>

#include <random>

namespace hearth::jinja {
namespace {

TEST(Search, FindsWhatTheStandardLibraryFinds) {
  std::mt19937 random(1);
  const auto text = [&](size_t longest) {
    std::string out(random() % (longest + 1), 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 2);
    return out;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string wanted = text(6), in = text(40);
    const size_t at = random() % (in.size() + 1);
    EXPECT_EQ(Search(wanted, Search::kForwards).find(in, at), in.find(wanted, at)) << wanted << " in " << in;
    const size_t last = std::string_view(in).substr(0, at).rfind(wanted);
    EXPECT_EQ(Search(wanted, Search::kBackwards).rfind(in, at), last) << wanted << " in " << in;
  }
}

}  // namespace
}  // namespace hearth::jinja
