#include "quant/layout.h"

#include <gtest/gtest.h>

#include "quant/formats.h"
#include "random_blocks.h"

namespace hearth {
namespace {

std::vector<FormatId> planar_formats() {
  std::vector<FormatId> ids;
  for (FormatId id : all_formats()) {
    if (planar_format(id)) ids.push_back(id);
  }
  return ids;
}

void expect_same_rows(FormatId id, int64_t rows, int64_t cols, const std::vector<std::byte>& native) {
  std::vector<std::byte> planar(planar_size_bytes(id, rows, cols), std::byte{0xff});
  to_planar(id, rows, cols, native.data(), planar.data());
  std::vector<float> expected(static_cast<size_t>(cols)), got(static_cast<size_t>(cols));
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(got.begin(), got.end(), NAN);
    decode_row(id, native.data() + static_cast<size_t>(r) * row_bytes(id, cols), expected);
    planar_row_decode(id, cols, planar.data(), r, got);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(same_value(got[i], expected[i])) << format_info(id).name << " [" << rows << ", " << cols << "] row "
                                                   << r << " element " << i << ": " << got[i] << " for " << expected[i];
    }
  }
}

TEST(Layout, PlanarExistsForTheFastFormats) {
  for (FormatId id :
       {FormatId::kF32, FormatId::kF16, FormatId::kBF16, FormatId::kQ8_0, FormatId::kQ4_0, FormatId::kQ4_1,
        FormatId::kQ4_K, FormatId::kQ5_K, FormatId::kQ6_K, FormatId::kQ2_K, FormatId::kQ3_K, FormatId::kIQ4_NL,
        FormatId::kIQ4_XS, FormatId::kMXFP4, FormatId::kNVFP4, FormatId::kNF4}) {
    EXPECT_TRUE(planar_format(id)) << format_info(id).name;
  }
  EXPECT_FALSE(planar_format(FormatId::kIQ3_S));
}

// Random bytes: all scale patterns, NaN and infinity included; shapes below, at and past a panel.
TEST(Layout, PlanarDecodesToTheSameBits) {
  std::mt19937 rng(11);
  for (FormatId id : planar_formats()) {
    for (int64_t rows : {1, 15, 16, 17, 35}) {
      for (int64_t blocks : {1, 2, 3, 5}) {
        int64_t cols = blocks * format_info(id).block_elems;
        expect_same_rows(id, rows, cols, random_bytes(static_cast<size_t>(rows) * row_bytes(id, cols), rng));
      }
    }
  }
}

// Where the f16 (or the first byte-sized) scale of a block is.
size_t scale_offset(FormatId id) {
  if (id == FormatId::kQ2_K) return offsetof(Q2_K::Block, d);
  if (id == FormatId::kQ3_K) return offsetof(Q3_K::Block, d);
  if (id == FormatId::kQ6_K) return offsetof(Q6_K::Block, d);
  return 0;
}

// Every f16 (or pair of bytes) as scale, random minimums, sub-scales and codes.
TEST(Layout, EveryScalePatternSurvives) {
  std::mt19937 rng(13);
  for (FormatId id : planar_formats()) {
    const FormatInfo& info = format_info(id);
    if (info.group == CanonicalGroup::kFloat) continue;
    int64_t rows = 256, blocks = info.block_elems < 256 ? 256 : 32;  // of 256: every eighth pattern
    std::vector<std::byte> native = random_bytes(static_cast<size_t>(rows * blocks) * info.block_bytes, rng);
    for (int64_t i = 0; i < rows * blocks; ++i) {
      std::byte* block = native.data() + static_cast<size_t>(i) * info.block_bytes;
      auto pattern = static_cast<uint16_t>(info.block_elems < 256 ? i : i * 8 + static_cast<int64_t>(rng() % 8));
      std::memcpy(block + scale_offset(id), &pattern, 2);
    }
    expect_same_rows(id, rows, blocks * info.block_elems, native);
  }
}

TEST(Layout, CostsNoMoreThanNativeAndPadsWithZeros) {
  for (FormatId id : planar_formats()) {
    int64_t cols = 4096;
    EXPECT_EQ(planar_size_bytes(id, 64, cols), 64 * row_bytes(id, cols)) << format_info(id).name;
    PlanarPanel at = planar_panel(id, cols);
    for (size_t offset : {at.codes, at.high, at.sub_scales, at.scales, at.panel_bytes})
      EXPECT_EQ(offset % kPlanarAlign, 0u);

    std::mt19937 rng(17);
    std::vector<std::byte> native = random_bytes(row_bytes(id, cols), rng);
    std::vector<std::byte> planar(planar_size_bytes(id, 1, cols), std::byte{0xff});
    to_planar(id, 1, cols, native.data(), planar.data());
    std::vector<float> out(static_cast<size_t>(cols), NAN);
    for (int64_t r = 1; r < kPanelRows; ++r) {
      planar_row_decode(id, cols, planar.data(), r, out);
      for (float v : out) ASSERT_EQ(v, 0.0f) << format_info(id).name;
    }
  }
}

// The byte positions the header promises to kernels, on one hand-made block.
TEST(Layout, Q4KLinesAreWhereTheHeaderSays) {
  Q4_K::Block block{};
  for (int i = 0; i < 256; ++i)
    block.qs[32 * (i >> 6) + (i & 31)] |= static_cast<uint8_t>((i * 7 % 16) << (i & 32 ? 4 : 0));
  uint8_t scale[8] = {1, 2, 3, 4, 33, 34, 35, 36}, min[8] = {9, 10, 11, 12, 51, 52, 53, 54};
  pack_six_bit(scale, min, block.scales);
  block.d.set(0.5f);
  block.dmin.set(0.25f);
  std::vector<std::byte> planar(planar_size_bytes(FormatId::kQ4_K, 1, 256));
  to_planar(FormatId::kQ4_K, 1, 256, reinterpret_cast<const std::byte*>(&block), planar.data());
  PlanarPanel at = planar_panel(FormatId::kQ4_K, 256);
  auto byte = [&](size_t offset) { return static_cast<int>(planar[offset]); };
  for (size_t i = 0; i < 32; ++i) {
    for (size_t b = 0; b < 4; ++b) {
      EXPECT_EQ(byte(at.codes + 64 * i + b) & 15, (8 * i + b) * 7 % 16);
      EXPECT_EQ(byte(at.codes + 64 * i + b) >> 4, (8 * i + 4 + b) * 7 % 16);
    }
  }
  for (size_t j = 0; j < 4; ++j) {
    int s0 = byte(at.sub_scales + j), s1 = byte(at.sub_scales + 64 + j), s2 = byte(at.sub_scales + 128 + j);
    EXPECT_EQ(s0 & 0x3f, scale[j]);
    EXPECT_EQ(s1 & 0x3f, min[j]);
    EXPECT_EQ((s2 & 0x0f) | (s0 >> 2 & 0x30), scale[4 + j]);
    EXPECT_EQ((s2 >> 4 & 0x0f) | (s1 >> 2 & 0x30), min[4 + j]);
  }
  EXPECT_EQ(byte(at.scales + 1) << 8 | byte(at.scales), f32_to_f16(0.5f));
  EXPECT_EQ(byte(at.scales + 33) << 8 | byte(at.scales + 32), f32_to_f16(0.25f));
}

}  // namespace
}  // namespace hearth
