#include "quant/format.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "quant/formats.h"
#include "random_blocks.h"
#include "reference_process.h"

namespace hearth {
namespace {

TEST(Format, TheListIsConsistent) {
  std::set<uint32_t> types;
  size_t count = 0;
  each_format([&]<class F>() {
    ++count;
    EXPECT_TRUE(types.insert(F::kInfo.ggml_type).second) << F::kInfo.name;
    EXPECT_EQ(&format_info(F::kId) - &format_info(FormatId::kF32), static_cast<int>(F::kId));
    EXPECT_EQ(format_info(F::kId).name, F::kInfo.name);
    auto by_type = format_from_ggml(F::kInfo.ggml_type);
    ASSERT_TRUE(by_type);
    EXPECT_EQ(*by_type, F::kId);
    auto by_name = format_from_name(F::kInfo.name);
    ASSERT_TRUE(by_name);
    EXPECT_EQ(*by_name, F::kId);
    EXPECT_EQ(row_bytes(F::kId, 3 * F::kInfo.block_elems), 3 * F::kInfo.block_bytes);
  });
  EXPECT_EQ(count, all_formats().size());
  EXPECT_EQ(*format_from_name("q4_k"), FormatId::kQ4_K);
}

TEST(Format, OtherTypesAreNamed) {
  struct Case {
    uint32_t type;
    const char* words;
  };
  for (Case c : {Case{4, "Q4_2) was removed"}, Case{31, "Q4_0_4_4) was removed"}, Case{15, "Q8_K) is for activations"},
                 Case{137, "IQ2_K) exists only in ik_llama.cpp"}, Case{43, "43 is unknown"},
                 Case{std::numeric_limits<uint32_t>::max(), "4294967295 is unknown"}}) {
    auto format = format_from_ggml(c.type);
    ASSERT_FALSE(format) << c.type;
    EXPECT_EQ(format.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(format.error().message.find(c.words), std::string::npos) << format.error().message;
  }
  auto name = format_from_name("Q9_K");
  ASSERT_FALSE(name);
  EXPECT_NE(name.error().message.find("Q6_K, IQ2_XXS"), std::string::npos) << name.error().message;
}

// Scalar decode against a second implementation in Python, bit for bit, on random bytes.
TEST(Format, DecodeEqualsThePythonReference) {
  auto python = ReferenceProcess::start("quant_decode.py");
  if (!python) GTEST_SKIP() << "python3 is not installed";
  std::mt19937 rng(7);
  for (FormatId id : all_formats()) {
    const FormatInfo& info = format_info(id);
    int64_t blocks = info.block_elems == 1 ? 2000 : 40;
    auto n = static_cast<size_t>(blocks * info.block_elems);
    std::vector<std::byte> bytes = random_bytes(static_cast<size_t>(blocks) * info.block_bytes, rng);
    if (id == FormatId::kI64) {  // wider integers would be rounded twice in Python
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (i % 8 >= 6) bytes[i] = std::byte{0};
      }
    }
    uint32_t head[2] = {static_cast<uint32_t>(bytes.size()), info.ggml_type};
    ASSERT_TRUE(python->write(head, sizeof(head)) && python->write(bytes.data(), bytes.size()));
    std::vector<float> expected(n), got(n, NAN);
    ASSERT_TRUE(python->read(expected.data(), n * sizeof(float))) << info.name;
    decode_row(id, bytes.data(), got);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(same_value(got[i], expected[i]))
          << info.name << " element " << i << ": " << got[i] << " " << expected[i];
    }
  }
}

TEST(Format, E8m0AndE4m3ScalesCoverTheirRange) {
  for (int e = 0; e < 256; ++e) {
    EXPECT_EQ(e8m0_half(static_cast<uint8_t>(e)), std::ldexp(1.0f, e - 128)) << e;
  }
  EXPECT_EQ(ue4m3(0x7e), 448.0f);
  EXPECT_EQ(ue4m3(0x7f), 0.0f);
  EXPECT_EQ(ue4m3(0x01), 0x1p-9f);
  EXPECT_EQ(ue4m3(0xb8), 1.0f);
}

}  // namespace
}  // namespace hearth
