// Compares with jinja2 itself, when Python has it: real templates byte for byte, and random small ones.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "test_files.h"

namespace hearth {
namespace {

constexpr int kSkip = 77;  // reference.py: jinja2 is missing

// Exit status and output of reference.py.
std::pair<int, std::string> compare(const std::string& arguments) {
  const std::string command = "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 '" HEARTH_TEMPLATE_TESTS
                              "/reference.py' '" HEARTH_TEMPLATE_CLI "' " +
                              arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {kSkip, "no shell"};
  std::string output;
  char buffer[4096];
  for (size_t size; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, size);
  const int status = pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return {code == 127 ? kSkip : code, output};
}

TEST(Reference, RealTemplatesRenderByteForByteAsJinjaDoes) {
  if (real_templates().empty()) GTEST_SKIP() << "no chat templates in " HEARTH_SHARED_DATA "/templates";
  const auto [code, output] =
      compare("templates '" HEARTH_SHARED_DATA "/templates' '" HEARTH_TEMPLATE_TESTS "/conversations.json'");
  if (code == kSkip) GTEST_SKIP() << "/usr/bin/python3 has no jinja2 (apt install python3-jinja2)";
  EXPECT_EQ(code, 0) << output;
}

TEST(Reference, RandomTemplatesRenderAsJinjaDoes) {
  const auto [code, output] = compare("expressions 500 1");
  if (code == kSkip) GTEST_SKIP() << "/usr/bin/python3 has no jinja2 (apt install python3-jinja2)";
  EXPECT_EQ(code, 0) << output;
}

TEST(Reference, ManyRandomTemplatesRenderAsJinjaDoes_slow) {
  const auto [code, output] = compare("expressions 20000 2");
  if (code == kSkip) GTEST_SKIP() << "/usr/bin/python3 has no jinja2 (apt install python3-jinja2)";
  EXPECT_EQ(code, 0) << output;
}

}  // namespace
}  // namespace hearth
