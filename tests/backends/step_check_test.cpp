// Steps that a plan cannot run, one mistake each.
#include "backends/step_check.h"

#include <gtest/gtest.h>

#include <functional>

namespace hearth::testing {
namespace {

struct Step {
  std::vector<int32_t> tokens = {1, 2, 3, 4}, logit_rows = {0, 3}, pages = {-1, 5};
  std::vector<StepSequence> sequences = {{.first_row = 0, .rows = 3, .position = 15, .pages = {}},
                                         {.first_row = 3, .rows = 1, .position = 31, .pages = {}}};
  std::vector<int32_t> wanted = {0, 9};
  std::vector<CandidateRequest> requests = {{.temperature = 1, .tokens = {}}, {.temperature = 0.5f, .tokens = {}}};

  Result<void> check() {
    for (StepSequence& s : sequences) s.pages.assign(groups, std::span<const int32_t>(pages));
    for (CandidateRequest& r : requests) r.tokens = wanted;
    return check_step({.tokens = tokens, .sequences = sequences, .logit_rows = logit_rows, .requests = requests},
                      {.tokens = 5, .logits = 10, .kv_pages = {6}}, {PlanKind::kDecode, 4}, 2);
  }
  size_t groups = 1;
};

TEST(StepCheck, GoodSteps) {
  EXPECT_TRUE(Step{}.check());
  Step fewer;
  fewer.requests.clear();
  EXPECT_TRUE(fewer.check());
}

TEST(StepCheck, EveryMistakeIsSeen) {
  const std::pair<ErrorCode, std::function<void(Step&)>> mistakes[] = {
      {ErrorCode::kUsage, [](Step& s) { s.tokens[3] = 5; }},
      {ErrorCode::kUsage, [](Step& s) { s.tokens[0] = -1; }},
      {ErrorCode::kInternal, [](Step& s) { s.tokens.push_back(1), ++s.sequences[1].rows; }},
      {ErrorCode::kInternal, [](Step& s) { s.tokens.clear(), s.sequences.clear(), s.logit_rows.clear(); }},
      {ErrorCode::kInternal,
       [](Step& s) {
         s.logit_rows = {0, 1, 2}, s.requests.clear();
       }},
      {ErrorCode::kInternal, [](Step& s) { s.logit_rows[1] = 4; }},
      {ErrorCode::kInternal, [](Step& s) { s.logit_rows[0] = -1; }},
      {ErrorCode::kInternal, [](Step& s) { s.sequences.pop_back(); }},
      {ErrorCode::kInternal, [](Step& s) { s.sequences[1].first_row = 2; }},
      {ErrorCode::kInternal, [](Step& s) { s.sequences[1].rows = 2; }},
      {ErrorCode::kInternal, [](Step& s) { s.sequences[0].rows = 0; }},
      {ErrorCode::kInternal, [](Step& s) { s.sequences[0].position = -1; }},
      {ErrorCode::kInternal, [](Step& s) { s.sequences[1].position = 32; }},
      {ErrorCode::kInternal, [](Step& s) { s.groups = 2; }},
      {ErrorCode::kInternal, [](Step& s) { s.pages[1] = 6; }},
      {ErrorCode::kInternal, [](Step& s) { s.pages[0] = -2; }},
      {ErrorCode::kInternal, [](Step& s) { s.requests.pop_back(); }},
      {ErrorCode::kInternal, [](Step& s) { s.requests[1].temperature = 0; }},
      {ErrorCode::kInternal, [](Step& s) { s.wanted[1] = 10; }},
      {ErrorCode::kInternal, [](Step& s) { s.wanted.assign(static_cast<size_t>(kMaxWantedLogits) + 1, 0); }},
  };
  for (size_t i = 0; i < std::size(mistakes); ++i) {
    Step step;
    mistakes[i].second(step);
    const Result<void> result = step.check();
    ASSERT_FALSE(result) << "mistake " << i;
    EXPECT_EQ(result.error().code, mistakes[i].first) << "mistake " << i << ": " << result.error().message;
  }
}

TEST(StepCheck, OnlyWholeRowsThatAreThereAreRead) {
  for (auto [count, first] : {std::pair{0, 0}, {7, 0}, {21, 0}, {14, 1}, {7, 2}, {0, 3}}) {
    EXPECT_TRUE(check_read(static_cast<size_t>(count), first, 3, 7)) << count << " from " << first;
  }
  for (auto [count, first] : {std::pair{28, 0}, {6, 0}, {8, 0}, {14, 2}, {7, 3}, {7, -1}, {0, 4}, {0, -1}}) {
    const Result<void> result = check_read(static_cast<size_t>(count), first, 3, 7);
    ASSERT_FALSE(result) << count << " from " << first;
    EXPECT_EQ(result.error().code, ErrorCode::kInternal);
  }
  EXPECT_FALSE(check_read(1, 0, 1, 0));  // a value that the graph does not have
}

}  // namespace
}  // namespace hearth::testing
