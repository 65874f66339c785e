// Small templates against what jinja2 made of them (golden.py wrote golden.json).
#include <gtest/gtest.h>

#include "test_files.h"
#include "text/template/chat_template.h"

namespace hearth {
namespace {

TemplateOptions golden_options() {
  std::tm now{};
  now.tm_year = 2025 - 1900;
  now.tm_mon = 6;
  now.tm_mday = 4;
  now.tm_hour = 15;
  now.tm_min = 9;
  now.tm_sec = 26;
  return {.bos_token = "<s>", .eos_token = "</s>", .now = now, .strict_sandbox = true};
}

TEST(Golden, SmallTemplatesRenderAsJinjaDoes) {
  const auto golden = read_json("golden.json");
  ASSERT_GT(golden["cases"].size(), 60u);
  for (const auto& golden_case : golden["cases"]) {
    const auto source = golden_case["template"].get<std::string>();
    auto parsed = ChatTemplate::parse(source);
    if (!parsed) {
      EXPECT_FALSE(golden_case.contains("text")) << source << "\n" << parsed.error().message;
      continue;
    }
    auto rendered = parsed->render(golden["context"], golden_options());
    ASSERT_EQ(rendered.has_value(), golden_case.contains("text"))
        << source << "\n"
        << (rendered ? rendered->text() : rendered.error().message);
    if (rendered) {
      EXPECT_EQ(rendered->text(), golden_case["text"].get<std::string>()) << source;
    }
  }
}

}  // namespace
}  // namespace hearth
