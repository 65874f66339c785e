// Every kernel of every ISA that this machine has, against loops in f64: all planar formats, shapes past tiles.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backends/cpu/isa.h"
#include "backends/cpu/isas.h"
#include "backends/cpu/weights.h"
#include "quant/encode.h"
#include "quant/random_blocks.h"

namespace hearth::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<FormatId> planar_formats() {
  std::vector<FormatId> out;
  for (FormatId id : all_formats()) {
    if (planar_kind(id)) out.push_back(id);
  }
  return out;
}

struct Floats : std::vector<float> {
  using vector::vector;
};

Floats normal_floats(int64_t n, uint32_t seed, float sigma = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, sigma);
  Floats out(static_cast<size_t>(n));
  for (float& x : out) x = normal(random);
  return out;
}

// 64-byte aligned bytes.
struct Aligned {
  explicit Aligned(size_t size) : bytes(size + 64) {}
  std::byte* data() { return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64; }
  std::vector<std::byte> bytes;
};

// A random matrix in native and planar form, and its exact values.
struct TestMatrix {
  TestMatrix(FormatId format, int64_t rows, int64_t cols, const KernelTable& kernels)
      : TestMatrix(format, rows, cols, kernels, encode(format, rows, cols, normal_floats(rows * cols, 1))) {}
  TestMatrix(FormatId format, int64_t rows, int64_t cols, const KernelTable& kernels, std::vector<std::byte> bytes)
      : native(std::move(bytes)),
        planar(planar_size_bytes(format, rows, cols)),
        values(static_cast<size_t>(rows * cols)) {
    for (int64_t r = 0; r < rows; ++r) {
      decode_row(format, native.data() + static_cast<size_t>(r) * row_bytes(format, cols),
                 std::span(values).subspan(static_cast<size_t>(r * cols), static_cast<size_t>(cols)));
    }
    to_planar(format, rows, cols, native.data(), planar.data());
    matrix = {.format = format,
              .kind = planar_kind(format),
              .rows = rows,
              .cols = cols,
              .native = native.data(),
              .planar = planar.data(),
              .layout = planar_panel(format, cols),
              .kernels = &kernels};
  }
  static std::vector<std::byte> encode(FormatId format, int64_t rows, int64_t cols, const Floats& values) {
    std::vector<std::byte> bytes(static_cast<size_t>(rows) * row_bytes(format, cols));
    for (int64_t r = 0; r < rows; ++r) {
      encode_row(format, std::span(values).subspan(static_cast<size_t>(r * cols), static_cast<size_t>(cols)),
                 bytes.data() + static_cast<size_t>(r) * row_bytes(format, cols));
    }
    return bytes;
  }
  float value(int64_t r, int64_t c) const {
    return r < matrix.rows ? values[static_cast<size_t>(r * matrix.cols + c)] : 0;
  }

  std::vector<std::byte> native;
  Aligned planar;
  Floats values;
  Matrix matrix;
};

struct TestIntRows {
  TestIntRows(int64_t rows, int64_t cols)
      : codes(static_cast<size_t>(rows * cols)),
        scales(static_cast<size_t>(rows * cols / kActBlock), kNan),
        totals(scales.size(), kNan),
        sums16(scales.size() * 2),
        sums32(scales.size()),
        view{codes.data(), scales.data(), sums16.data(), sums32.data(), totals.data(), cols, cols / kActBlock} {}
  std::vector<int16_t> codes;
  Floats scales, totals;
  std::vector<int32_t> sums16, sums32;
  IntRows view;
};

class Kernels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto table = select_isa(GetParam());
    if (!table) GTEST_SKIP() << table.error().message;
    kernels = *table;
    EXPECT_EQ(kernels->name, GetParam());
  }
  const KernelTable* kernels = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Isa, Kernels, ::testing::ValuesIn(isa_names()), [](const auto& info) { return info.param; });

int64_t block_of(FormatId format) { return format_info(format).block_elems; }

TEST_P(Kernels, UnpackEqualsDecodeRowBitForBit) {
  for (FormatId format : planar_formats()) {
    int64_t block = block_of(format), cols = block == 1 ? 301 : 3 * 256 + (block < 256 ? 64 : 0);
    // Random bytes: every pattern of codes and scales, NaN and infinity included.
    std::mt19937 random(17);
    TestMatrix m(format, 33, cols, *kernels, random_bytes(33 * row_bytes(format, cols), random));
    for (int64_t panel = 0; panel < 3; ++panel) {
      for (int64_t k0 = 0; k0 < cols; k0 += kKBlock) {
        int64_t kn = std::min(kKBlock, cols - k0);
        Floats out(static_cast<size_t>(kKBlock * kLanes), kNan), native = out;
        m.matrix.unpack(panel, k0, kn, out.data());
        Matrix only_native = m.matrix;
        only_native.planar = nullptr;
        only_native.unpack(panel, k0, kn, native.data());
        for (int64_t i = 0; i < kn * kLanes; ++i) {
          int64_t row = panel * kLanes + i % kLanes;
          if (row >= 33) {  // of no row: zero of either sign
            ASSERT_EQ(out[static_cast<size_t>(i)], 0);
            ASSERT_EQ(native[static_cast<size_t>(i)], 0);
            continue;
          }
          float want = m.value(row, k0 + i / kLanes);
          ASSERT_TRUE(same_value(out[static_cast<size_t>(i)], want))
              << format_info(format).name << " panel " << panel << " k " << k0 << " i " << i << ": "
              << out[static_cast<size_t>(i)] << " for " << want;
          ASSERT_TRUE(same_value(native[static_cast<size_t>(i)], want));
        }
        for (int64_t i = kn * kLanes; i < kKBlock * kLanes; ++i) ASSERT_TRUE(std::isnan(out[static_cast<size_t>(i)]));
      }
    }
  }
}

TEST_P(Kernels, QuantizeIsWithinHalfAStep) {
  constexpr int64_t kCols = 96;
  for (int32_t limit : {127, 32767}) {
    Floats x = normal_floats(3 * kCols, 5);
    std::fill_n(x.begin() + kCols, 32, 0.0f);  // a block of zeros
    TestIntRows out(3, kCols);
    for (int64_t r = 0; r < 3; ++r) kernels->quantize(x.data() + r * kCols, kCols, limit, out.view, r);
    constexpr int kOrder[4] = {0, 2, 1, 3};
    for (int64_t i = 0; i < 3 * kCols; ++i) {
      auto block = static_cast<size_t>(i / kActBlock);
      int code = out.codes[static_cast<size_t>(i / 4 * 4 + kOrder[i % 4])];
      ASSERT_LE(std::abs(code), limit);
      double step = out.scales[block];
      ASSERT_NEAR(code * step, x[static_cast<size_t>(i)], step * 0.501) << i;
    }
    for (int64_t g = 0; g < 3 * kCols / 16; ++g) {
      int32_t sum = 0;
      for (int64_t i = 0; i < 16; ++i) sum += out.codes[static_cast<size_t>(g * 16 + i)];
      ASSERT_EQ(out.sums16[static_cast<size_t>(g)], sum);
    }
    for (size_t b = 0; b < out.scales.size(); ++b) {
      ASSERT_EQ(out.sums32[b], out.sums16[2 * b] + out.sums16[2 * b + 1]);
      ASSERT_EQ(out.totals[b], out.scales[b] * static_cast<float>(out.sums32[b]));
    }
  }
}

// The products with integer activations are exact up to the rounding of activations and of the f32 sums.
TEST_P(Kernels, IntegerDotEqualsTheProductOfItsOperands) {
  for (FormatId format : planar_formats()) {
    if (!has_integer_codes(*planar_kind(format))) continue;
    for (int64_t cols : {block_of(format), 3 * 256 + (block_of(format) < 256 ? block_of(format) : 0)}) {
      TestMatrix m(format, 17, cols, *kernels);
      for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 64}) {
        Floats x = normal_floats(rows * cols, 7);
        TestIntRows ints(rows, cols);
        for (int64_t r = 0; r < rows; ++r) kernels->quantize(x.data() + r * cols, cols, 32767, ints.view, r);
        for (int64_t panel = 0; panel < 2; ++panel) {
          Floats out(static_cast<size_t>(rows * kLanes), kNan);
          kernels->dot_int[static_cast<size_t>(*m.matrix.kind)](m.matrix.panel_view(panel, nullptr), ints.view, rows,
                                                                out.data());
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t lane = 0; lane < kLanes; ++lane) {
              double want = 0, size = 0;
              for (int64_t c = 0; c < cols; ++c) {
                double p =
                    static_cast<double>(m.value(panel * kLanes + lane, c)) * x[static_cast<size_t>(r * cols + c)];
                want += p, size += std::fabs(p);
              }
              // Activations: half a step of 1/32767 of their block's largest, here below 6; sums: 2^-24 an addition. A
              // scale and a minimum that nearly cancel make the parts up to four times as large as their sum.
              // NF4's values are rounded to 1.2e-4 of a scale below 5.
              double bound = 4 * size * cols / 32 * 0x1p-24 +
                             std::sqrt(static_cast<double>(cols)) * (format == FormatId::kNF4 ? 1.2e-3 : 3e-4);
              ASSERT_NEAR(out[static_cast<size_t>(r * kLanes + lane)], want, bound)
                  << format_info(format).name << " rows " << rows << " row " << r << " lane " << lane << " cols "
                  << cols;
            }
          }
        }
      }
    }
  }
}

// The largest codes and activations of one sign: integer sums must hold them, of few rows and of many.
TEST_P(Kernels, IntegerSumsHoldTheLargest) {
  constexpr int64_t kCols = 512;
  for (FormatId format : planar_formats()) {
    const auto kind = static_cast<size_t>(*planar_kind(format));
    if (!has_integer_codes(*planar_kind(format))) continue;
    for (float sign : {1.0f, -1.0f}) {
      Floats weights(kLanes * kCols, sign);  // the block's extreme, of which formats make their outermost code
      for (size_t i = 0; i < weights.size(); i += 16) weights[i] = -0.75f * sign;
      TestMatrix m(format, kLanes, kCols, *kernels, TestMatrix::encode(format, kLanes, kCols, weights));
      Floats x(kCols, 3.0f), out(kLanes, kNan);
      TestIntRows ints(1, kCols);
      kernels->quantize(x.data(), kCols, 32767, ints.view, 0);
      auto expect_product = [&](const char* name) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          double want = 0, size = 0;
          for (int64_t c = 0; c < kCols; ++c) want += 3.0 * m.value(lane, c), size += std::fabs(3.0 * m.value(lane, c));
          ASSERT_NEAR(out[static_cast<size_t>(lane)], want, size * (format == FormatId::kNF4 ? 1.3e-4 : 4e-5))
              << name << " " << format_info(format).name << " sign " << sign;
        }
      };
      kernels->dot_int[kind](m.matrix.panel_view(0, nullptr), ints.view, 1, out.data());
      expect_product("dot_int");
      for (auto [name, gemm] : {std::pair{"gemm_int", &kernels->gemm_int}, {"gemm_bytes", &kernels->gemm_bytes}}) {
        if (!takes_codes(*gemm, planar_kind(format))) continue;
        Aligned packed(gemm->group_bytes(kCols)), scratch(gemm->scratch_bytes);
        gemm->pack(x.data(), kCols, 1, kCols, 0, 1, packed.data());
        const CodePanel panel = m.matrix.code_panel(*gemm, 0, nullptr);
        const PanelReader reader = panel.reader();
        out.assign(static_cast<size_t>(gemm->rows * kLanes), kNan);
        gemm->multiply({.a = packed.data(),
                        .rows = 1,
                        .cols = kCols,
                        .panels = 1,
                        .read = &reader,
                        .scratch = scratch.data(),
                        .out = out.data()});
        expect_product(name);
      }
    }
  }
}

TEST_P(Kernels, IntegerDotOfARowDoesNotDependOnTheOthers) {
  constexpr int64_t kCols = 512, kRows = 15;
  for (FormatId format : planar_formats()) {
    if (!has_integer_codes(*planar_kind(format))) continue;
    TestMatrix m(format, 16, kCols, *kernels);
    Floats x = normal_floats(kRows * kCols, 3), all(kRows * kLanes, kNan);
    TestIntRows ints(kRows, kCols);
    for (int64_t r = 0; r < kRows; ++r) kernels->quantize(x.data() + r * kCols, kCols, 32767, ints.view, r);
    auto dot = kernels->dot_int[static_cast<size_t>(*m.matrix.kind)];
    dot(m.matrix.panel_view(0, nullptr), ints.view, kRows, all.data());
    for (int64_t r = 0; r < kRows; ++r) {
      TestIntRows single(1, kCols);
      kernels->quantize(x.data() + r * kCols, kCols, 32767, single.view, 0);
      Floats one(kLanes, kNan);
      dot(m.matrix.panel_view(0, nullptr), single.view, 1, one.data());
      for (size_t i = 0; i < kLanes; ++i)
        ASSERT_EQ(one[i], all[static_cast<size_t>(r * kLanes) + i]) << format_info(format).name;
    }
  }
}

TEST_P(Kernels, FloatDot) {
  for (int64_t n : {1, 3, 4, 5, 37, 256}) {
    for (int64_t rows : {1, 2, 3, 9}) {
      int64_t stride = n + 3;
      Floats w = normal_floats(n * kLanes, 1), x = normal_floats(rows * stride, 2);
      for (bool accumulate : {false, true}) {
        Floats out(static_cast<size_t>(rows * kLanes), accumulate ? 0.5f : kNan);
        kernels->dot_float(w.data(), n, x.data(), stride, rows, accumulate, out.data());
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            double want = accumulate ? 0.5 : 0, size = 1;
            for (int64_t k = 0; k < n; ++k) {
              double p = static_cast<double>(w[static_cast<size_t>(k * kLanes + lane)]) *
                         x[static_cast<size_t>(r * stride + k)];
              want += p, size += std::fabs(p);
            }
            ASSERT_NEAR(out[static_cast<size_t>(r * kLanes + lane)], want, size * 0x1p-20) << n << " " << rows;
          }
        }
      }
    }
  }
}

// Each product of many rows, each format, rows and panels past a tile. Bounds: f32 rounds only its sums; gemm_int the
// activations too, to half a step of 1/32767 of the largest of their 256 columns (here below 6), gemm_bytes to half a
// step of 1/127 of the largest of 32; gemm_bf16 both factors, to 2^-8 each; gemm_amx to 2^-17 each, and leaves 2^-16 of
// the product out.
TEST_P(Kernels, GemmOfEveryFormat) {
  struct Kernel {
    const char* name;
    const Gemm& gemm;
    bool codes;
    double relative, absolute;
  } all[] = {{"f32", kernels->gemm_f32, false, 0x1p-18, 1e-30},
             {"int", kernels->gemm_int, true, 0x1p-18, 3e-4},
             {"bytes", kernels->gemm_bytes, true, 0x1p-18, 7e-2},
             {"bf16", kernels->gemm_bf16, false, 0x1.1p-7, 1e-30},
             {"amx", kernels->gemm_amx, false, 0x1p-15, 1e-30}};
  for (const Kernel& kernel : all) {
    const Gemm& gemm = kernel.gemm;
    if (!gemm.multiply) continue;
    for (FormatId format : planar_formats()) {
      if (kernel.codes && !takes_codes(gemm, planar_kind(format))) continue;
      double rounded = format == FormatId::kNF4 ? 4 : 1;  // as in IntegerDotEqualsTheProductOfItsOperands
      int64_t block = block_of(format);
      for (int64_t cols : {block == 1 ? int64_t{7} : block, 256 + (block == 256 ? 256 : block)}) {
        TestMatrix m(format, 70, cols, *kernels);
        for (int64_t rows : {int64_t{1}, gemm.rows - 1, gemm.rows, gemm.rows + 1, int64_t{40}}) {
          int64_t groups = (rows + gemm.rows - 1) / gemm.rows;
          Floats x = normal_floats(rows * cols, 9);
          Aligned packed(static_cast<size_t>(groups) * gemm.group_bytes(cols)), scratch(gemm.scratch_bytes);
          std::fill(packed.bytes.begin(), packed.bytes.end(), std::byte{0xff});
          std::fill(scratch.bytes.begin(), scratch.bytes.end(), std::byte{0xff});
          for (int64_t g = 0; g < groups; ++g) {
            gemm.pack(x.data() + g * gemm.rows * cols, cols, std::min(gemm.rows, rows - g * gemm.rows), cols, g, groups,
                      packed.data());
          }
          for (int64_t panels : {1, 2, 3}) {
            CodePanel codes[3];
            PanelReader readers[3];
            for (int64_t p = 0; p < panels; ++p) {
              if (kernel.codes) codes[p] = m.matrix.code_panel(gemm, p + 2, nullptr);
              readers[p] = kernel.codes ? codes[p].reader() : m.matrix.reader(p + 2);
            }
            Floats out(static_cast<size_t>(panels * groups * gemm.rows * kLanes), kNan);
            gemm.multiply({.a = packed.data(),
                           .rows = rows,
                           .cols = cols,
                           .panels = panels,
                           .read = readers,
                           .scratch = scratch.data(),
                           .out = out.data()});
            for (int64_t p = 0; p < panels; ++p) {
              for (int64_t i = 0; i < rows * kLanes; ++i) {
                double want = 0, size = 0;
                for (int64_t c = 0; c < cols; ++c) {
                  double v = static_cast<double>(m.value((p + 2) * kLanes + i % kLanes, c)) *
                             x[static_cast<size_t>(i / kLanes * cols + c)];
                  want += v, size += std::fabs(v);
                }
                ASSERT_NEAR(out[static_cast<size_t>(p * groups * gemm.rows * kLanes + i)], want,
                            size * kernel.relative + kernel.absolute * rounded * std::sqrt(static_cast<double>(cols)))
                    << kernel.name << " " << format_info(format).name << " cols " << cols << " rows " << rows
                    << " panel " << p << " i " << i;
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(Kernels, RowsOfAnyLength) {
  for (int64_t n : {1, 2, 15, 16, 17, 64, 100}) {
    auto size = static_cast<size_t>(n);
    Floats x = normal_floats(n, 11, 3), y = normal_floats(n, 12, 3), guard(size + 1, kNan);
    auto near = [&](size_t i, double want, double relative, const char* what) {
      ASSERT_NEAR(guard[i], want, relative * (std::fabs(want) + 1e-6)) << what << " n " << n << " i " << i;
    };
    double squares = 0;
    for (float v : x) squares += static_cast<double>(v) * v;
    kernels->rms_norm(x.data(), y.data(), n, 1e-5f, guard.data());
    for (size_t i = 0; i < size; ++i)
      near(i, x[i] / std::sqrt(squares / static_cast<double>(n) + 1e-5) * y[i], 1e-6, "norm");
    kernels->add(x.data(), y.data(), n, guard.data());
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(guard[i], x[i] + y[i]);
    kernels->silu_mul(x.data(), y.data(), n, guard.data());
    for (size_t i = 0; i < size; ++i) near(i, x[i] / (1 + std::exp(-static_cast<double>(x[i]))) * y[i], 1e-6, "silu");
    kernels->gelu_mul(x.data(), y.data(), n, guard.data());
    for (size_t i = 0; i < size; ++i) {
      double g = x[i], inner = std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
      // g * (1 + tanh) loses digits where tanh is near -1; the reference in f64 does not.
      near(i, 0.5 * g * (1 + std::tanh(inner)) * y[i], 3e-6, "gelu");
    }
    ASSERT_TRUE(std::isnan(guard[size])) << "wrote past the end";
  }
}

TEST_P(Kernels, ActivationsOfLargeNumbersStayFinite) {
  Floats x = {-1e4f, -100, -88, -0.0f, 0, 88, 100, 1e4f}, one(8, 1.0f), out(8, kNan);
  kernels->silu_mul(x.data(), one.data(), 8, out.data());
  for (size_t i = 0; i < 8; ++i) ASSERT_NEAR(out[i], std::max(0.0f, x[i]), 1e-6f * std::fabs(x[i])) << x[i];
  kernels->gelu_mul(x.data(), one.data(), 8, out.data());
  for (size_t i = 0; i < 8; ++i) ASSERT_NEAR(out[i], std::max(0.0f, x[i]), 1e-6f * std::fabs(x[i])) << x[i];
}

TEST_P(Kernels, RopeTurnsPairs) {
  for (int64_t dims : {2, 6, 32, 34, 128}) {
    for (bool half : {false, true}) {
      int64_t pairs = dims / 2;
      Floats x = normal_floats(dims + 4, 1), angle = normal_floats(pairs, 2), c(angle.size()), s(angle.size()), y = x;
      for (size_t j = 0; j < angle.size(); ++j) c[j] = std::cos(angle[j]), s[j] = std::sin(angle[j]);
      kernels->rope(y.data(), c.data(), s.data(), dims, half);
      for (int64_t j = 0; j < pairs; ++j) {
        auto a = static_cast<size_t>(half ? j : 2 * j), b = static_cast<size_t>(half ? j + pairs : 2 * j + 1),
             i = static_cast<size_t>(j);
        ASSERT_NEAR(y[a], x[a] * c[i] - x[b] * s[i], 1e-6);
        ASSERT_NEAR(y[b], x[a] * s[i] + x[b] * c[i], 1e-6);
      }
      for (size_t i = static_cast<size_t>(dims); i < x.size(); ++i) ASSERT_EQ(y[i], x[i]);
    }
  }
}

// ---- attention ----

// Pages in scattered order; unused ones hold NaN, so that reading what was never written shows.
struct TestPages {
  TestPages(int64_t tokens, int64_t head_dim, KvFormat format) {
    int64_t count = (tokens + kLanes - 1) / kLanes + 2, v_stride = (head_dim + 15) / 16 * 16;
    size_t element = format == KvFormat::kF32 ? 4 : format == KvFormat::kF16 ? 2 : 1;
    size_t scale_bytes = format == KvFormat::kQ8 ? static_cast<size_t>((head_dim + 31) / 32 * kLanes) * 2 : 0;
    size_t k_bytes = (static_cast<size_t>(head_dim * kLanes) * element + scale_bytes + 63) / 64 * 64;
    size_t page_bytes = k_bytes + static_cast<size_t>(v_stride * kLanes) * element + scale_bytes;
    memory.assign(page_bytes * static_cast<size_t>(count), 0xff);
    for (int64_t i = 0; i < count; ++i) table.push_back(static_cast<int32_t>(count - 1 - i));
    view = {memory.data(), page_bytes, k_bytes, table.data(), head_dim, v_stride, format};
  }
  std::vector<uint8_t> memory;
  std::vector<int32_t> table;
  KvView view;
};

double f16_of(double x) {  // rounded as storage does; normal range
  int e;
  std::frexp(x, &e);
  double unit = std::ldexp(1.0, std::max(e - 11, -24));
  return std::nearbyint(x / unit) * unit;
}

// What a page keeps of `x`, rows of head_dim.
std::vector<double> kept(const Floats& x, int64_t head_dim, KvFormat format) {
  std::vector<double> out(x.begin(), x.end());
  if (format == KvFormat::kF32) return out;
  if (format == KvFormat::kF16) {
    for (double& v : out) v = f16_of(v);
    return out;
  }
  for (int64_t row = 0; row < static_cast<int64_t>(x.size()); row += head_dim) {
    for (int64_t d = 0; d < head_dim; d += 32) {
      std::span<double> block(out.data() + row + d, static_cast<size_t>(std::min<int64_t>(32, head_dim - d)));
      float largest = 0;
      for (double v : block) largest = std::max(largest, static_cast<float>(std::fabs(v)));
      double scale = f16_of(largest / 127);
      // As the kernels do: by the rounded reciprocal in f32, so that ties and near-ties go the same way.
      float inverse = 1.0f / static_cast<float>(scale);
      for (double& v : block) v = std::clamp(std::nearbyint(static_cast<float>(v) * inverse), -127.0f, 127.0f) * scale;
    }
  }
  return out;
}

struct AttentionCase {
  int64_t head_dim, heads, tokens, window;
  float soft_cap = 0;  // scores are up to 5
  bool sinks = false;
};

// Of a size with the sums of all keys, far below and far above all scores.
Floats sinks_of(const AttentionCase& c) {
  constexpr float kSinks[] = {3, 6, -1e30f, -50, 200};
  Floats sinks;
  for (size_t h = 0; c.sinks && h < static_cast<size_t>(c.heads); ++h) sinks.push_back(kSinks[h % 5]);
  return sinks;
}

// softmax(q k) v of one head over the visible keys of position p.
std::vector<double> attend(const float* q, const std::vector<double>& k, const std::vector<double>& v, int64_t p,
                           const AttentionCase& c, const float* sink = nullptr) {
  const int64_t head_dim = c.head_dim, first = c.window > 0 ? std::max<int64_t>(0, p - c.window + 1) : 0;
  std::vector<double> score, out(static_cast<size_t>(head_dim), 0);
  double top = sink ? *sink : -1e300;
  for (int64_t t = first; t <= p; ++t) {
    double s = 0;
    for (int64_t d = 0; d < head_dim; ++d) s += static_cast<double>(q[d]) * k[static_cast<size_t>(t * head_dim + d)];
    if (c.soft_cap > 0) s = c.soft_cap * std::tanh(s / c.soft_cap);
    score.push_back(s);
    top = std::max(top, s);
  }
  double sum = sink ? std::exp(*sink - top) : 0;
  for (double& s : score) sum += s = std::exp(s - top);
  for (int64_t t = first; t <= p; ++t) {
    for (int64_t d = 0; d < head_dim; ++d)
      out[static_cast<size_t>(d)] +=
          score[static_cast<size_t>(t - first)] / sum * v[static_cast<size_t>(t * head_dim + d)];
  }
  return out;
}

constexpr AttentionCase kAttentionCases[] = {{64, 1, 1, 0},           {128, 2, 17, 0},
                                             {128, 2, 600, 0},        {64, 3, 130, 40},
                                             {80, 5, 70, 0},          {16, 9, 33, 16},
                                             {20, 4, 100, 33},        {7, 1, 50, 0},
                                             {128, 16, 1100, 700},    {64, 7, 600, 530, 0.75f, true},
                                             {80, 5, 70, 0, 2, true}, {20, 6, 100, 33, 0, true},
                                             {128, 1, 40, 0, 0.75f}};

class Sequence {
 public:
  Sequence(const KernelTable& kernels, const AttentionCase& c, KvFormat format) : pages(c.tokens, c.head_dim, format) {
    Floats kf = normal_floats(c.tokens * c.head_dim, 21), vf = normal_floats(c.tokens * c.head_dim, 22);
    for (int64_t t = 0; t < c.tokens; ++t)
      kernels.kv_append(pages.view, t, kf.data() + t * c.head_dim, vf.data() + t * c.head_dim);
    k = kept(kf, c.head_dim, format);
    v = kept(vf, c.head_dim, format);
  }
  TestPages pages;
  std::vector<double> k, v;
};

// The extremes of a block of keys and values in eight bits: all zero, so small that the scale is 0 or subnormal, huge.
TEST_P(Kernels, EightBitKeysAndValuesOfAnySize) {
  constexpr int64_t kHeadDim = 48;
  for (float size : {0.0f, 1e-30f, 1e-7f, 1e-3f, 1.0f, 1e6f}) {
    TestPages pages(1, kHeadDim, KvFormat::kQ8);
    Floats k(kHeadDim, 0.0f), v = normal_floats(kHeadDim, 31, size), q(kHeadDim, 0.0f), scratch(kKeySplit, kNan),
                              out(kHeadDim, kNan);
    float max = kNan, sum = kNan;
    kernels->kv_append(pages.view, 0, k.data(), v.data());
    kernels->attend_decode({.kv = pages.view,
                            .q = q.data(),
                            .heads = 1,
                            .begin = 0,
                            .end = 1,
                            .soft_cap = 0,
                            .scratch = scratch.data(),
                            .max = &max,
                            .sum = &sum,
                            .out = out.data()});
    for (size_t d = 0; d < kHeadDim; ++d) {
      float largest = 0;
      for (size_t j = d / 32 * 32; j < std::min<size_t>(kHeadDim, d / 32 * 32 + 32); ++j)
        largest = std::max(largest, std::fabs(v[j]));
      // Half a step, the rounding of the scale (2^-11 of it, or 2^-25) times 127 codes.
      float step = largest / 127;
      ASSERT_NEAR(out[d] / sum, v[d], step * (0.5f + 127 * 0x1p-11f) + 127 * 0x1p-25f) << size << " d " << d;
    }
  }
}

TEST_P(Kernels, DecodeAttentionInSplits) {
  for (const AttentionCase& c : kAttentionCases) {
    for (KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8}) {
      Sequence s(*kernels, c, format);
      int64_t p = c.tokens - 1, v_stride = s.pages.view.v_stride;
      Floats q = normal_floats(c.heads * c.head_dim, 23, 1 / std::sqrt(static_cast<float>(c.head_dim)));
      auto heads = static_cast<size_t>(c.heads);
      Floats scratch(heads * kKeySplit, kNan), total(heads * static_cast<size_t>(v_stride), kNan), max(heads, kNan),
          sum(heads, kNan);
      int64_t first = c.window > 0 ? std::max<int64_t>(0, p - c.window + 1) : 0;
      for (int64_t from = first / kKeySplit * kKeySplit; from <= p; from += kKeySplit) {
        Floats part(total.size(), kNan), part_max(heads, kNan), part_sum(heads, kNan);
        kernels->attend_decode({.kv = s.pages.view,
                                .q = q.data(),
                                .heads = c.heads,
                                .begin = std::max(first, from),
                                .end = std::min(p + 1, from + kKeySplit),
                                .soft_cap = c.soft_cap,
                                .scratch = scratch.data(),
                                .max = part_max.data(),
                                .sum = part_sum.data(),
                                .out = part.data()});
        if (from <= first) {
          total = part, max = part_max, sum = part_sum;
          continue;
        }
        for (size_t h = 0; h < heads; ++h) {
          kernels->merge_split(&max[h], &sum[h], &total[h * static_cast<size_t>(v_stride)], part_max[h], part_sum[h],
                               &part[h * static_cast<size_t>(v_stride)], v_stride);
        }
      }
      for (size_t h = 0; h < heads; ++h) {
        auto want = attend(q.data() + static_cast<int64_t>(h) * c.head_dim, s.k, s.v, p, c);
        for (size_t d = 0; d < want.size(); ++d) {
          ASSERT_NEAR(total[h * static_cast<size_t>(v_stride) + d] / sum[h], want[d], 2e-5)
              << "head_dim " << c.head_dim << " heads " << c.heads << " tokens " << c.tokens << " head " << h << " d "
              << d;
        }
      }
    }
  }
}

TEST_P(Kernels, PrefillAttentionInBlocks) {
  for (const PrefillKernel* kernel : {&kernels->prefill_f32, &kernels->prefill_amx}) {
    if (!kernel->attend) continue;
    // The matrix unit: 2^-16 of a score, which is below 10 here.
    const double bound = kernel == &kernels->prefill_f32 ? 2e-5 : 2e-4;
    for (const AttentionCase& c : kAttentionCases) {
      const Floats sinks = sinks_of(c);
      for (KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8}) {
        Sequence s(*kernels, c, format);
        int64_t v_stride = s.pages.view.v_stride, most = std::max<int64_t>(1, kernel->rows / c.heads);
        for (int64_t queries : {int64_t{1}, std::min(most, c.tokens), std::min<int64_t>({5, most, c.tokens})}) {
          int64_t position = c.tokens - queries, rows = queries * c.heads;
          Floats q = normal_floats(rows * c.head_dim, 24, 1 / std::sqrt(static_cast<float>(c.head_dim)));
          Aligned scratch(static_cast<size_t>(prefill_scratch_floats(v_stride)) * sizeof(float));
          std::fill(scratch.bytes.begin(), scratch.bytes.end(), std::byte{0xff});
          Floats out(static_cast<size_t>(kMaxQueryRows * v_stride), kNan);
          kernel->attend({.kv = s.pages.view,
                          .q = q.data(),
                          .heads = c.heads,
                          .queries = queries,
                          .position = position,
                          .window = c.window,
                          .soft_cap = c.soft_cap,
                          .sinks = c.sinks ? sinks.data() : nullptr,
                          .scratch = reinterpret_cast<float*>(scratch.data()),
                          .out = out.data()});
          for (int64_t r = 0; r < rows; ++r) {
            const float* sink = c.sinks ? &sinks[static_cast<size_t>(r % c.heads)] : nullptr;
            auto want = attend(q.data() + r * c.head_dim, s.k, s.v, position + r / c.heads, c, sink);
            for (size_t d = 0; d < want.size(); ++d) {
              ASSERT_NEAR(out[static_cast<size_t>(r * v_stride) + d], want[d], bound)
                  << "head_dim " << c.head_dim << " heads " << c.heads << " tokens " << c.tokens << " row " << r
                  << " d " << d;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth::cpu
