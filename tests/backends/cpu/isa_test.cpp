#include "backends/cpu/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/isas.h"

namespace hearth::cpu {
namespace {

TEST(Isa, ANamedOneIsTakenOrRefused) {
  for (const std::string& name : isa_names()) {
    auto table = select_isa(name);
    if (table) {
      EXPECT_EQ((*table)->name, name);
    } else {
      EXPECT_EQ(table.error().code, ErrorCode::kUnsupported);
      EXPECT_NE(table.error().message.find(name + " needs "), std::string::npos) << table.error().message;
    }
  }
  EXPECT_TRUE(select_isa("portable"));
  auto unknown = select_isa("sse9");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
}

TEST(Isa, WithoutANameItIsTheBest) {
  unsetenv("HEARTH_ISA");
  std::string best;
  for (const std::string& name : isa_names()) {
    if (select_isa(name)) best = name;
  }
  auto table = select_isa("");
#if defined(__x86_64__)
  if (best == "portable") {
    EXPECT_FALSE(table);
    return;
  }
#endif
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ((*table)->name, best);
}

}  // namespace
}  // namespace hearth::cpu
