#include "quant/encode.h"

#include <gtest/gtest.h>

#include "quant/formats.h"
#include "random_blocks.h"

namespace hearth {
namespace {

// Root of the mean squared error relative to that of the weights.
double relative_error(FormatId id, const std::vector<float>& weights) {
  std::vector<std::byte> row(row_bytes(id, static_cast<int64_t>(weights.size())), std::byte{0xff});
  encode_row(id, weights, row.data());
  std::vector<float> back(weights.size(), NAN);
  decode_row(id, row.data(), back);
  double error = 0, norm = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    error += std::pow(static_cast<double>(back[i]) - weights[i], 2);
    norm += std::pow(static_cast<double>(weights[i]), 2);
  }
  return std::sqrt(error / norm);
}

// Bounds are a few percent above what was measured; a wrong code or scale is far outside.
TEST(Encode, NormalWeightsComeBackClosely) {
  struct Bound {
    FormatId id;
    double error;
  };
  std::mt19937 rng(3);
  std::vector<float> weights = random_weights(256 * 200, rng);
  for (Bound b : {Bound{FormatId::kF32, 0.0}, Bound{FormatId::kF16, 3e-4}, Bound{FormatId::kBF16, 2.5e-3},
                  Bound{FormatId::kQ8_0, 6e-3}, Bound{FormatId::kQ5_0, 0.05}, Bound{FormatId::kQ5_1, 0.045},
                  Bound{FormatId::kQ4_0, 0.1}, Bound{FormatId::kQ4_1, 0.09}, Bound{FormatId::kQ2_K, 0.32},
                  Bound{FormatId::kQ3_K, 0.18}, Bound{FormatId::kQ4_K, 0.09}, Bound{FormatId::kQ5_K, 0.045},
                  Bound{FormatId::kQ6_K, 0.022}, Bound{FormatId::kIQ4_NL, 0.085}, Bound{FormatId::kIQ4_XS, 0.085},
                  Bound{FormatId::kMXFP4, 0.14}, Bound{FormatId::kNVFP4, 0.11}, Bound{FormatId::kNF4, 0.105}}) {
    ASSERT_TRUE(can_encode(b.id)) << format_info(b.id).name;
    double error = relative_error(b.id, weights);
    RecordProperty(std::string(format_info(b.id).name), std::to_string(error));
    EXPECT_LE(error, b.error) << format_info(b.id).name;
  }
  EXPECT_FALSE(can_encode(FormatId::kTQ1_0));
}

// Blocks that an independent encoder of NF4 (deep-fold's, for CHR0 containers) made of the same weights: codes of two
// ramps, of one nonzero weight, and of a constant.
TEST(Encode, Nf4EqualsOtherEncoders) {
  struct Case {
    float (*weight)(int i);
    uint16_t scale;
    const char* codes;
  };
  for (const Case& c : {
           Case{[](int i) { return static_cast<float>(i / 63.0); }, 0x3c00,
                "778788889999A9AAAABABBBBCBCCCCCCDDDDDDDDEDEEEEEEEEEEEEFEFFFFFFFF"},
           Case{[](int i) { return static_cast<float>((2 * i - 63) / 63.0); }, 0x3c00,
                "00001011111121222233434454556676878899AABABBCCCCDDDDEEEEEEFEFFFF"},
           Case{[](int i) { return i == 1 ? 1.0f : 0.0f; }, 0x3c00,
                "F777777777777777777777777777777777777777777777777777777777777777"},
           Case{[](int) { return -2.25f; }, 0x4080, "0000000000000000000000000000000000000000000000000000000000000000"},
           Case{[](int) { return 0.5f; }, 0x3800, "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"},
       }) {
    std::vector<float> weights(64);
    for (int i = 0; i < 64; ++i) weights[static_cast<size_t>(i)] = c.weight(i);
    NF4::Block block;
    encode_row(FormatId::kNF4, weights, reinterpret_cast<std::byte*>(&block));
    EXPECT_EQ(block.d.bits.get(), c.scale);
    std::string codes;
    for (uint8_t byte : block.qs) {
      codes += "0123456789ABCDEF"[byte >> 4];
      codes += "0123456789ABCDEF"[byte & 15];
    }
    EXPECT_EQ(codes, c.codes);
  }
}

TEST(Encode, ZerosConstantsAndExtremesStayFinite) {
  std::vector<std::vector<float>> rows(6, std::vector<float>(256, 0.0f));
  std::fill(rows[1].begin(), rows[1].end(), 3.0f);
  std::fill(rows[2].begin(), rows[2].end(), -3.0f);
  rows[3][17] = 1e5f;     // a scale beyond f16
  rows[4][200] = 1e-30f;  // a scale below f16
  for (size_t i = 0; i < 256; ++i) rows[5][i] = i % 2 ? 1e-6f : -1e-6f;
  for (FormatId id : all_formats()) {
    if (!can_encode(id) || id == FormatId::kF16) continue;
    for (size_t r = 0; r < rows.size(); ++r) {
      std::vector<std::byte> row(row_bytes(id, 256), std::byte{0xff});
      encode_row(id, rows[r], row.data());
      std::vector<float> back(256, NAN);
      decode_row(id, row.data(), back);
      for (size_t i = 0; i < 256; ++i) {
        ASSERT_TRUE(std::isfinite(back[i])) << format_info(id).name << " row " << r;
        float tolerance = r == 0 ? 0.0f : r < 3 ? 0.8f : INFINITY;
        ASSERT_NEAR(back[i], rows[r][i], tolerance) << format_info(id).name << " row " << r;
      }
    }
  }
}

// Encoding is a projection where decode is exact: encoding a decoded row gives the same values again (nearly, since the
// search for scales may find an equally good one).
TEST(Encode, DecodedRowsAreKept) {
  std::mt19937 rng(5);
  std::vector<float> weights = random_weights(2048, rng);
  for (FormatId id : all_formats()) {
    if (!can_encode(id)) continue;
    std::vector<std::byte> row(row_bytes(id, 2048));
    encode_row(id, weights, row.data());
    std::vector<float> decoded(2048);
    decode_row(id, row.data(), decoded);
    EXPECT_LE(relative_error(id, decoded), 0.6 * std::max(relative_error(id, weights), 1e-9)) << format_info(id).name;
  }
}

}  // namespace
}  // namespace hearth
