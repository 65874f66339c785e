// Every op on every device against the reference, through the real interface: tiny graphs around one op, all formats,
// shapes below, at and past tiles and panels. Tolerances follow from the inputs and from the precision that a device
// documents; the worst element is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "base/checked_math.h"
#include "quant/encode.h"
#include "quant/layout.h"
#include "support/candidates.h"
#include "support/graph_maker.h"
#include "support/runner.h"

namespace hearth::testing {
namespace {

constexpr double kEps = 0x1p-24;  // rounding of one f32 operation

class Random {
 public:
  explicit Random(uint32_t seed) : rng_(seed) {}
  std::vector<float> normal(int64_t count, float deviation = 1) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = normal(rng_);
    return values;
  }
  // Activations as real ones are: a few columns much larger than the rest.
  std::vector<float> activations(int64_t rows, int64_t cols) {
    std::vector<float> values = normal(rows * cols);
    for (int64_t c = 3; c < cols; c += 61) {
      for (int64_t r = 0; r < rows; ++r) values[static_cast<size_t>(r * cols + c)] *= 20;
    }
    return values;
  }
  // Native bytes of rows in any format, values of moderate size.
  std::vector<std::byte> native(FormatId format, int64_t rows, int64_t cols) {
    const FormatInfo& info = format_info(format);
    size_t stride_bytes = row_bytes(format, cols);
    std::vector<std::byte> bytes(static_cast<size_t>(rows) * stride_bytes);
    if (can_encode(format)) {
      std::vector<float> values = normal(rows * cols, 0.1f);
      for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
        encode_row(format, std::span(values).subspan(r * static_cast<size_t>(cols), static_cast<size_t>(cols)),
                   bytes.data() + r * stride_bytes);
      }
      return bytes;
    }
    bool integers = info.block_elems == 1 && format != FormatId::kF64;
    std::vector<float> decoded(static_cast<size_t>(info.block_elems));
    for (size_t at = 0; at < bytes.size(); at += info.block_bytes) {
      for (bool good = false; !good;) {
        int64_t small = static_cast<int64_t>(rng_() % 201) - 100;
        for (size_t i = 0; i < info.block_bytes; ++i) {
          bytes[at + i] = static_cast<std::byte>(integers ? small >> std::min<size_t>(8 * i, 63) : rng_() & 255);
        }
        decode_row(format, bytes.data() + at, decoded);
        good = std::ranges::all_of(decoded, [](float v) { return std::isfinite(v) && std::abs(v) <= 128; });
      }
    }
    return bytes;
  }
  std::vector<int32_t> tokens(int64_t count, int64_t vocab) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    for (int32_t& t : tokens) t = static_cast<int32_t>(rng_() % static_cast<uint32_t>(vocab));
    return tokens;
  }

 private:
  std::mt19937 rng_;
};

std::vector<float> decode(const Weight& weight) {
  std::vector<float> values(static_cast<size_t>(weight.rows * weight.cols));
  for (int64_t r = 0; r < weight.rows; ++r) {
    decode_row(weight.tensor->format,
               weight.tensor->bytes.data() + static_cast<size_t>(r) * row_bytes(weight.tensor->format, weight.cols),
               std::span(values).subspan(static_cast<size_t>(r * weight.cols), static_cast<size_t>(weight.cols)));
  }
  return values;
}

class Conformance : public ::testing::TestWithParam<TestDevice> {
 protected:
  void SetUp() override {
    device_ = make_test_backend(GetParam());
    if (!device_) GTEST_SKIP() << "this machine cannot run " << GetParam().label();
    reference_ = make_test_backend({.name = "reference"});
  }

  // |got - want| <= tolerance for each element of [rows, cols].
  void expect_close(const std::string& what, int64_t cols, std::span<const float> got, std::span<const float> want,
                    std::span<const double> tolerance) {
    ASSERT_EQ(got.size(), want.size());
    size_t worst = 0;
    double worst_ratio = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(want[i])) << what << ": the reference has no value at " << i;
      double ratio = std::isfinite(got[i]) ? std::abs(static_cast<double>(got[i]) - want[i]) / tolerance[i] : INFINITY;
      if (ratio > worst_ratio) worst_ratio = ratio, worst = i;
    }
    EXPECT_LE(worst_ratio, 1) << GetParam().label() << " " << what << ": row " << static_cast<int64_t>(worst) / cols
                              << " column " << static_cast<int64_t>(worst) % cols << " is " << got[worst] << ", not "
                              << want[worst] << ", tolerance " << tolerance[worst];
  }

  // Runs the graph, whose embedding tables have kRows rows, on tokens 0, 1, 2 ... in steps of several sizes.
  // tolerance(kind, few) gives [kRows, cols]; few: at most 8 rows, for which devices may have kernels of their own.
  static constexpr int64_t kRows = 130;
  template <class F>
  void compare_rows(const std::string& what, const Graph& graph, F&& tolerance,
                    Activations activations = Activations::kDefault) {
    auto ok = verify(graph);
    ASSERT_TRUE(ok) << ok.error().message;
    std::vector<int32_t> tokens(kRows);
    for (size_t t = 0; t < tokens.size(); ++t) tokens[t] = static_cast<int32_t>(t);
    Runner reference(*reference_, graph), device(*device_, graph, {.activations = activations});
    std::vector<float> want = reference.append(reference.add_sequence(), tokens, PlanKind::kPrefill, kRows);
    auto width = static_cast<size_t>(reference.vocab());
    for (PlanKind kind : {PlanKind::kDecode, PlanKind::kPrefill}) {
      std::vector<double> allowed = tolerance(kind, true);
      for (size_t rows : {1, 2, 3, 5, 8, 9, 17, 64, 130}) {
        if (kind == PlanKind::kDecode ? rows > 64 : rows == 2 || rows == 8) continue;
        if (rows == 9) allowed = tolerance(kind, false);
        std::vector<float> got =
            device.append(device.add_sequence(), std::span(tokens).first(rows), kind, static_cast<int64_t>(rows));
        expect_close(
            fmt::format("{}, {} rows in a {} plan", what, rows, kind == PlanKind::kDecode ? "decode" : "prefill"),
            reference.vocab(), got, std::span(want).first(rows * width), std::span(allowed).first(rows * width));
      }
    }
    compare_bits(what, graph, activations);
  }
  // In deterministic plans a row has the same bits whatever the number of decoding rows.
  void compare_bits(const std::string& what, const Graph& graph, Activations activations) {
    std::vector<int32_t> tokens(kDeterministicDecodeRows);
    std::iota(tokens.begin(), tokens.end(), 0);
    Runner device(*device_, graph, {.activations = activations, .deterministic = true});
    const auto decode = [&](size_t rows) {
      return device.append(device.add_sequence(), std::span(tokens).first(rows), PlanKind::kDecode,
                           static_cast<int64_t>(rows));
    };
    const std::vector<float> all = decode(tokens.size());
    for (size_t rows : {1, 2, 3, 5}) {
      const std::vector<float> some = decode(rows);
      EXPECT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0)
          << GetParam().label() << " " << what << ": " << rows << " rows have other bits than the first of "
          << tokens.size();
    }
  }
  // The same tolerance everywhere.
  void compare_rows(const std::string& what, const Graph& graph, double tolerance) {
    auto count = static_cast<size_t>(kRows * graph.value(graph.logits).cols);
    compare_rows(what, graph, [&](PlanKind, bool) { return std::vector<double>(count, tolerance); });
  }

  std::unique_ptr<Backend> device_, reference_;
};

// What a kernel rounds beside its f32 sums: activations to integers up to `limit` (0: not) with a scale for each
// `block` columns, and every product by `relative` of itself.
struct Rounding {
  int limit = 0;
  int64_t block = 32;
  double relative = 0;
  double of_largest = 0;  // every weight by as much of the largest of its 64
};

// What integer products make of NF4's values: at most this far off, in units of the scale of each 64.
constexpr double kNf4Error = 1.25e-4;

// x W^T in double with the error that a device may make.
struct Product {
  std::vector<double> value, error;  // [rows, out]
};

Product multiply(std::span<const float> x, std::span<const float> w, int64_t rows, int64_t cols, int64_t out,
                 const Rounding& device) {
  Product p;
  const int64_t sixties = ceil_div<int64_t>(cols, 64);
  std::vector<double> largest_weight(static_cast<size_t>(device.of_largest > 0 ? out * sixties : 0));
  for (int64_t i = 0; i < out * cols && !largest_weight.empty(); ++i) {
    double& largest = largest_weight[static_cast<size_t>(i / cols * sixties + i % cols / 64)];
    largest = std::max(largest, std::abs(static_cast<double>(w[static_cast<size_t>(i)])));
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* a = x.data() + r * cols;
    std::vector<double> rounding(static_cast<size_t>(cols), 0.0);
    for (int64_t block = 0; device.limit > 0 && block < cols; block += device.block) {
      int64_t end = std::min(block + device.block, cols);
      double largest = 0;
      for (int64_t c = block; c < end; ++c) largest = std::max(largest, std::abs(static_cast<double>(a[c])));
      for (int64_t c = block; c < end; ++c) rounding[static_cast<size_t>(c)] = largest / device.limit * 0.51;
    }
    for (int64_t o = 0; o < out; ++o) {
      double sum = 0, size = 0, error = 0;
      for (int64_t c = 0; c < cols; ++c) {
        double weight = w[static_cast<size_t>(o * cols + c)];
        sum += a[c] * weight;
        size += std::abs(a[c] * weight);
        error += std::abs(weight) * rounding[static_cast<size_t>(c)];
        if (device.of_largest > 0) {
          error += std::abs(a[c]) * device.of_largest * largest_weight[static_cast<size_t>(o * sixties + c / 64)];
        }
      }
      p.value.push_back(sum);
      p.error.push_back(error + size * (kEps * (8 + static_cast<double>(cols) / 8) + device.relative) + 1e-30);
    }
  }
  return p;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

enum class Form { kPlain, kBias, kNormAndBias, kNormAndGlu, kResidual, kMerged };
constexpr const char* kFormNames[] = {"plain", "bias", "norm and bias", "norm and glu", "bias and residual", "merged"};

// One linear op with `out` columns over `cols` columns in this form.
struct LinearCase {
  FormatId format;
  Form form;
  int64_t cols, out;
  uint32_t seed;
  Activations activations = Activations::kDefault;
};

class LinearConformance : public Conformance {
 protected:
  static Rounding rounding(PlanKind kind, bool few, const LinearCase& c) {
    bool integer_codes = planar_format(c.format) && format_info(c.format).group != CanonicalGroup::kFloat;
    std::string_view isa = GetParam().isa;
    if (GetParam().name == "cuda") {
      if (c.format == FormatId::kF32 || c.format == FormatId::kF64) return {};
      // Many rows: activations, scales, minimums and values are f16. What has no kernels is f16 in memory.
      if (kind == PlanKind::kPrefill || !few) return {.relative = 0x1p-9, .of_largest = 0x1p-10};
      if (!integer_codes) return {.relative = planar_format(c.format) ? 0 : 0x1p-11};
      const double nf4 = c.format == FormatId::kNF4 ? 0.51 / (127 * 257) : 0;
      return {.limit = c.activations == Activations::kInt8 ? 127 : 127 * 257, .of_largest = nf4};
    }
    if (kind == PlanKind::kPrefill && isa == "amx" && c.format != FormatId::kF32) {
      // Both factors are two bf16, or one.
      return {.relative = c.activations == Activations::kInt8 ? 0x1.02p-7 : 0x1p-15};
    }
    if (!integer_codes) return {};
    double nf4 = c.format == FormatId::kNF4 ? kNf4Error : 0;
    if (c.activations == Activations::kInt8) return {.limit = 127, .of_largest = nf4};
    if (kind == PlanKind::kDecode) return {.limit = isa == "neon" ? 127 * 257 : 32767, .of_largest = nf4};
    return isa.starts_with("avx") ? Rounding{.limit = 32767, .block = 256, .of_largest = nf4} : Rounding{};
  }

  void run(const LinearCase& c) {
    const FormatInfo& info = format_info(c.format);
    Random random(c.seed);
    GraphMaker m;
    std::vector<float> x = random.activations(kRows, c.cols);
    ValueId in = m.embed("x", m.weight("x", kRows, c.cols, x));
    auto weight = [&](const char* name, int64_t out) {
      return m.native_weight(name, out, c.cols, random.native(c.format, out, c.cols), c.format);
    };
    LinearOp op{.x = in, .parts = {{.weight = weight("w", c.out), .out = m.value("y", c.out)}}};
    std::vector<float> bias(static_cast<size_t>(c.out)), residual(static_cast<size_t>(kRows * c.out));
    if (c.form == Form::kBias || c.form == Form::kNormAndBias || c.form == Form::kResidual) {
      bias = random.normal(c.out);
      op.parts[0].bias = m.weight("bias", 1, c.out, bias);
    }
    if (c.form == Form::kNormAndBias || c.form == Form::kNormAndGlu) {
      std::vector<float> gain = random.normal(c.cols);
      op.norm = Norm{.weight = m.weight("norm", 1, c.cols, gain), .eps = 1e-3f};
      for (int64_t r = 0; r < kRows; ++r) {
        float* row = x.data() + r * c.cols;
        double squares = 0;
        for (int64_t k = 0; k < c.cols; ++k) squares += static_cast<double>(row[k]) * row[k];
        double scale = 1 / std::sqrt(squares / static_cast<double>(c.cols) + 1e-3);
        for (int64_t k = 0; k < c.cols; ++k) row[k] = static_cast<float>(row[k] * scale * gain[static_cast<size_t>(k)]);
      }
    }
    if (c.form == Form::kNormAndGlu) {
      op.glu = Activation::kSilu;
      op.parts.push_back({.weight = weight("up", c.out), .out = m.value("up", c.out)});
    }
    if (c.form == Form::kMerged) {  // a part of another width between two that are summed
      op.parts.push_back({.weight = weight("w33", 33), .out = m.value("y33", 33)});
      op.parts.push_back({.weight = weight("w2", c.out), .out = m.value("y2", c.out)});
    }
    if (c.form == Form::kResidual) {
      residual = random.normal(kRows * c.out);
      op.residual = m.embed("residual", m.weight("residual", kRows, c.out, residual));
    }
    m.add("linear", op);
    m.finish(c.form == Form::kMerged ? m.sum("sum", op.parts[0].out, op.parts[2].out) : op.parts[0].out);

    auto tolerance = [&](PlanKind kind, bool few) {
      auto product = [&](size_t part) {
        std::vector<float> w = decode(m.graph.weight(op.parts[part].weight));
        return multiply(x, w, kRows, c.cols, c.out, rounding(kind, few, c));
      };
      Product y = product(0);
      for (size_t i = 0; i < y.value.size(); ++i) {
        y.value[i] += bias[i % static_cast<size_t>(c.out)];
        y.error[i] += 4 * kEps * (std::abs(y.value[i]) + std::abs(residual[i]) + std::abs(bias[i % bias.size()]));
      }
      if (c.form == Form::kMerged) {
        Product other = product(2);
        for (size_t i = 0; i < y.value.size(); ++i) y.error[i] += other.error[i] + kEps * std::abs(other.value[i]);
      }
      if (c.form == Form::kNormAndGlu) {
        Product up = product(1);
        for (size_t i = 0; i < y.value.size(); ++i) {
          double gate = silu(y.value[i]);  // its slope is at most 1.1; vectorized exponentials lose a few bits
          y.error[i] = 1.1 * y.error[i] * (std::abs(up.value[i]) + up.error[i]) + std::abs(gate) * up.error[i] +
                       32 * kEps * std::abs(gate * up.value[i]) + 1e-30;
        }
      }
      return y.error;
    };
    compare_rows(fmt::format("{} [{}, {}] {}", info.name, c.out, c.cols, kFormNames[static_cast<size_t>(c.form)]),
                 m.graph, tolerance, c.activations);
  }
};

TEST_P(LinearConformance, EveryFormat) {
  const int64_t outs[] = {1, 15, 16, 17, 33, 300};
  uint32_t seed = 0;
  for (FormatId format : all_formats()) {
    int64_t block = format_info(format).block_elems;
    // One block (or an odd width), a few, and more than two times 256.
    const int64_t widths[] = {block == 1 ? 33 : block, 3 * std::max<int64_t>(block, 32),
                              ceil_div<int64_t>(544, block) * block};
    for (size_t i = 0; i < std::size(outs); ++i) {
      ++seed;
      if (!planar_format(format) && i % 3 != 1) continue;  // no kernels of their own
      auto turn = i + static_cast<size_t>(format);
      run({.format = format,
           .form = static_cast<Form>(turn % 6),
           .cols = widths[(turn + i / 3) % 3],
           .out = outs[i],
           .seed = seed});
    }
  }
}

// Rows that a block of threads takes several turns to read, the last of them in part.
TEST_P(LinearConformance, WideRows) {
  for (Form form : {Form::kPlain, Form::kNormAndBias}) {
    run({.format = FormatId::kQ4_K, .form = form, .cols = 9216 + 256, .out = 17, .seed = 11});
  }
}

TEST_P(LinearConformance, WhatIsNoNumberReachesTheResult) {
  constexpr int64_t kCols = 512, kOut = 17;
  for (Activations activations : {Activations::kDefault, Activations::kInt8}) {
    for (FormatId format : {FormatId::kQ4_K, FormatId::kQ6_K}) {
      for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        Random random(13);
        std::vector<float> x = random.activations(kRows, kCols);
        x[kCols + 37] = bad;
        GraphMaker m;
        LinearOp op{.x = m.embed("x", m.weight("x", kRows, kCols, x))};
        op.parts = {{.weight = m.native_weight("w", kOut, kCols, random.native(format, kOut, kCols), format),
                     .out = m.value("y", kOut)}};
        m.add("linear", op);
        m.finish(op.parts[0].out);
        Runner device(*device_, m.graph, {.activations = activations});
        for (PlanKind kind : {PlanKind::kDecode, PlanKind::kPrefill}) {
          for (const std::vector<int32_t>& tokens : {std::vector<int32_t>{1}, {0, 1, 2}, std::vector<int32_t>(20, 1)}) {
            const std::vector<float> got =
                device.append(device.add_sequence(), tokens, kind, static_cast<int64_t>(tokens.size()));
            for (size_t i = 0; i < got.size(); ++i) {
              EXPECT_EQ(std::isfinite(got[i]), tokens[i / kOut] != 1)
                  << GetParam().label() << " " << format_info(format).name << " of " << bad << " at " << i;
            }
          }
        }
      }
    }
  }
}

// Few enough for tools that watch every access: minimums, groups of 16, two planes of a table, floats.
TEST_P(LinearConformance, OneOfEachKind) {
  for (FormatId format : {FormatId::kQ4_K, FormatId::kQ6_K, FormatId::kNF4, FormatId::kF16}) {
    run({.format = format, .form = Form::kNormAndGlu, .cols = 768, .out = 33, .seed = 7});
  }
}

TEST_P(LinearConformance, EightBitActivations) {
  for (FormatId format : all_formats()) {
    if (!planar_format(format)) continue;
    run({.format = format, .form = Form::kBias, .cols = 512, .out = 33, .seed = 9, .activations = Activations::kInt8});
  }
}

TEST_P(Conformance, Embed) {
  for (FormatId format : all_formats()) {
    int64_t block = format_info(format).block_elems;
    int64_t cols = static_cast<int>(format) % 2 ? block : ceil_div<int64_t>(320, block) * block;
    Random random(static_cast<uint32_t>(cols));
    GraphMaker m;
    m.finish(m.embed("x", m.native_weight("table", kRows, cols, random.native(format, kRows, cols), format)));
    compare_rows(fmt::format("embed {} [{}]", format_info(format).name, cols), m.graph, 1e-30);
  }
}

TEST_P(Conformance, RmsNorm) {
  for (auto [cols, run] : {std::pair{1, 1}, {7, 7}, {96, 32}, {384, 128}, {576, 576}, {1030, 1030}, {320, 80}}) {
    Random random(static_cast<uint32_t>(cols));
    GraphMaker m;
    ValueId x = m.embed("x", m.weight("x", kRows, cols, random.activations(kRows, cols)));
    m.finish(m.rms_norm("norm", x, m.weight("weight", 1, run, random.normal(run)), 1e-3f));
    // Outputs are at most weight * sqrt(run).
    compare_rows(fmt::format("rms_norm [{}] in runs of {}", cols, run), m.graph,
                 kEps * 16 * 5 * std::sqrt(static_cast<double>(run)));
  }
}

TEST_P(Conformance, Rope) {
  for (RopePairing pairing : {RopePairing::kInterleaved, RopePairing::kHalf}) {
    for (auto [heads, head_dim, dims] :
         {std::array<int64_t, 3>{1, 2, 2}, {3, 32, 32}, {2, 64, 48}, {5, 80, 80}, {2, 128, 64}}) {
      Random random(static_cast<uint32_t>(head_dim));
      GraphMaker m;
      Rope rope{.pairing = pairing, .dims = dims, .magnitude = 1.25f};
      for (int64_t j = 0; j < dims / 2; ++j) {
        rope.frequency.push_back(std::pow(1e4, -2.0 * static_cast<double>(j) / static_cast<double>(dims)));
      }
      m.graph.ropes.push_back(rope);
      ValueId x = m.embed("x", m.weight("x", kRows, heads * head_dim, random.normal(kRows * heads * head_dim)));
      m.finish(m.rope("rope", x, head_dim, 0));
      compare_rows(fmt::format("rope of {} in {} heads of {}", dims, heads, head_dim), m.graph, 32 * kEps * 5);
    }
  }
}

TEST_P(Conformance, GluAndAdd) {
  for (int64_t cols : {1, 15, 16, 17, 96, 333}) {
    for (Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      Random random(static_cast<uint32_t>(cols));
      GraphMaker m;
      std::vector<float> gate = random.normal(kRows * cols, 8);  // far into both tails
      gate[0] = 0, gate[gate.size() / 2] = 200, gate[gate.size() / 3] = -200;
      ValueId a = m.embed("a", m.weight("a", kRows, cols, gate));
      ValueId b = m.embed("b", m.weight("b", kRows, cols, random.normal(kRows * cols)));
      m.finish(m.sum("sum", m.glu("glu", a, b, activation), b));
      compare_rows(fmt::format("glu and add [{}]", cols), m.graph, [&](PlanKind, bool) {
        std::vector<double> tolerance;
        for (float g : gate) tolerance.push_back(5 * (32 * kEps * std::abs(g) + 8 * kEps));
        return tolerance;
      });
    }
  }
}

// Only some rows are asked for: the right ones come back, in order.
TEST_P(Conformance, GatherRows) {
  Random random(1);
  GraphMaker m;
  m.finish(m.embed("x", m.weight("x", 50, 24, random.normal(50 * 24))));
  auto model = device_->load(m.graph, {});
  ASSERT_TRUE(model) << model.error().message;
  for (Bucket bucket : {Bucket{PlanKind::kDecode, 32}, Bucket{PlanKind::kPrefill, 128}}) {
    Plan plan = make_single_lane_plan(m.graph, bucket);
    auto executable = (*model)->record(plan);
    ASSERT_TRUE(executable) << executable.error().message;
    std::vector<int32_t> tokens = random.tokens(20, 50);
    for (const std::vector<int32_t>& rows : {std::vector<int32_t>{19}, {0, 1, 7, 18}, {3, 4, 5}}) {
      StepSequence sequences[] = {{.first_row = 0, .rows = 13, .position = 5}, {.first_row = 13, .rows = 7}};
      ASSERT_TRUE((*executable)->launch({.tokens = tokens, .sequences = sequences, .logit_rows = rows}));
      ASSERT_TRUE((*executable)->wait());
      std::vector<float> got(rows.size() * 24, NAN);
      ASSERT_TRUE((*executable)->read_logits(0, got));
      std::vector<float> table = decode(m.graph.weights[0]);
      for (size_t r = 0; r < rows.size(); ++r) {
        auto token = static_cast<size_t>(tokens[static_cast<size_t>(rows[r])]);
        for (size_t c = 0; c < 24; ++c) ASSERT_EQ(got[r * 24 + c], table[token * 24 + c]) << r << " " << c;
      }
    }
  }
}

// Rows of logits that are hard to choose among: kinds 0 to 9, the last two not finite.
std::vector<float> hard_logits(int64_t vocab, Random& random) {
  std::vector<float> logits = random.normal(10 * vocab);
  for (int64_t i = 0; i < vocab; ++i) {
    const auto at = [&](int64_t kind) -> float& { return logits[static_cast<size_t>(kind * vocab + i)]; };
    const auto position = static_cast<float>(i);
    at(1) = -1.5f;
    at(2) = std::round(at(2));  // many equals
    at(3) = position * 1e-3f;
    at(4) = -5 - position * 1e-3f;
    at(5) = i % 2 ? 0.0f : -0.0f;
    at(6) *= 1e30f;
    at(7) += i / 4096 == 1 ? 100.0f : 0.0f;  // the best are neighbours
    if (i % 256 == 5) at(7) += 50;
  }
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()};
  for (int64_t kind : {8, 9}) {
    logits[static_cast<size_t>(kind * vocab + random.tokens(1, vocab)[0])] = bad[kind - 8];
  }
  return logits;
}

// What a device finds of logit rows, if it does, is in them; and the same each time.
TEST_P(Conformance, Candidates) {
  constexpr int64_t kKinds = 10;
  for (int64_t vocab : {1, 63, 64, 65, 1000, 4096, 4097, 151936, 300001}) {
    Random random(static_cast<uint32_t>(vocab));
    GraphMaker m;
    m.finish(m.embed("x", m.weight("x", kKinds, vocab, hard_logits(vocab, random))));
    auto model = device_->load(m.graph, {});
    ASSERT_TRUE(model) << model.error().message;
    for (auto [kind, rows] :
         {std::pair{PlanKind::kDecode, 1}, {PlanKind::kDecode, 3}, {PlanKind::kDecode, 40}, {PlanKind::kPrefill, 90}}) {
      Plan plan = make_single_lane_plan(m.graph, bucket_for(kind, rows));
      auto executable = (*model)->record(plan);
      ASSERT_TRUE(executable) << executable.error().message;
      std::vector<int32_t> tokens, logit_rows;
      for (int32_t r = 0; r < rows; ++r) {
        tokens.push_back((r + static_cast<int32_t>(rows)) % kKinds);
        if (rows < 90 || r % 3 == 1) logit_rows.push_back(r);
      }
      std::vector<std::vector<int32_t>> wanted;
      std::vector<CandidateRequest> requests;
      for (size_t r = 0; r < logit_rows.size(); ++r) {
        const int64_t counts[] = {0, 1, 64, kMaxWantedLogits};
        wanted.push_back(random.tokens(counts[r % 4], vocab));
        const float temperatures[] = {1, 0.7f, 1e-30f, 1e30f, 3};
        requests.push_back({.temperature = temperatures[r % 5]});
      }
      for (size_t r = 0; r < wanted.size(); ++r) requests[r].tokens = wanted[r];
      std::vector<std::pair<float, float>> sums;
      for (int run = 0; run < 3; ++run) {
        if (run == 2) requests.clear();
        StepSequence sequence{.first_row = 0, .rows = static_cast<int32_t>(rows)};
        const StepBatch batch{
            .tokens = tokens, .sequences = {&sequence, 1}, .logit_rows = logit_rows, .requests = requests};
        ASSERT_TRUE((*executable)->launch(batch));
        ASSERT_TRUE((*executable)->wait());
        if (!(*executable)->candidates(0)) GTEST_SKIP() << GetParam().label() << " gives no candidates";
        for (size_t r = 0; r < logit_rows.size(); ++r) {
          const Candidates got = *(*executable)->candidates(static_cast<int64_t>(r));
          if (run == 1) {
            if (!got.finite) continue;
            ASSERT_EQ(got.sum, sums[r].first);
            ASSERT_EQ(got.tempered_sum, sums[r].second);
            continue;
          }
          const std::string what = fmt::format("run {}, row {} of {}, vocabulary {}, logits {}", run, r,
                                               logit_rows.size(), vocab, tokens[static_cast<size_t>(logit_rows[r])]);
          std::vector<float> logits(static_cast<size_t>(vocab));
          const std::vector<int32_t> got_tokens(got.tokens.begin(), got.tokens.end());
          const std::vector<float> got_logits(got.logits.begin(), got.logits.end()),
              got_wanted(got.wanted.begin(), got.wanted.end());
          ASSERT_TRUE((*executable)->read_logits(static_cast<int64_t>(r), logits));
          const FoundRow want = find_candidates(logits, requests.empty() ? CandidateRequest{} : requests[r]);
          ASSERT_EQ(got.finite, want.finite) << what;
          if (run == 0) sums.emplace_back(want.finite ? got.sum : 0, want.finite ? got.tempered_sum : 0);
          if (!want.finite) continue;
          ASSERT_EQ(got_tokens, want.tokens) << what;
          ASSERT_EQ(got_logits, want.logits) << what;
          ASSERT_EQ(got_wanted, want.wanted) << what;
          ASSERT_NEAR(got.sum, want.sum, want.sum * kCandidateSumError) << what;
          ASSERT_NEAR(got.tempered_sum, want.tempered_sum, want.tempered_sum * kCandidateSumError) << what;
        }
      }
    }
  }
}

struct AttentionCase {
  int64_t heads, kv_heads, head_dim, window;
  bool folded;  // head norms and rotation inside the op
  KvType kv_type;
  int64_t depth = 140;  // tokens of the longest sequence
  float soft_cap = 0;   // and scores of tens
  bool sinks = false;
};

class AttentionConformance : public Conformance {
 protected:
  // Several sequences of different lengths with scattered pages: prefill in uneven chunks, decodes of all together,
  // mixed steps, a rollback.
  void run(const AttentionCase& c) {
    constexpr int64_t kVocab = 90;
    Random random(static_cast<uint32_t>(c.heads * 1000 + c.head_dim + c.window));
    GraphMaker m;
    m.graph.kv_groups.push_back({.layers = 1, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .window = c.window});
    auto table = [&](const char* name, int64_t heads) {
      return m.embed(name, m.weight(name, kVocab, heads * c.head_dim, random.normal(kVocab * heads * c.head_dim)));
    };
    AttentionOp op{.q = table("q", c.heads),
                   .k = table("k", c.kv_heads),
                   .v = table("v", c.kv_heads),
                   .heads = c.heads,
                   .scale = (c.soft_cap > 0 ? 12.0f : 1.5f) / std::sqrt(static_cast<float>(c.head_dim)),
                   .soft_cap = c.soft_cap};
    if (c.sinks) {  // as large as the sums over long and short sequences, far below and far above all scores
      constexpr float kSinks[] = {8, 4, -200, 100, 0.5f};
      std::vector<float> sinks;
      for (int64_t h = 0; h < c.heads; ++h) sinks.push_back(kSinks[h % 5]);
      op.sinks = m.weight("sinks", 1, c.heads, sinks);
    }
    if (c.folded) {
      Rope rope{.pairing = c.heads % 2 ? RopePairing::kHalf : RopePairing::kInterleaved, .dims = c.head_dim};
      for (int64_t j = 0; j < c.head_dim / 2; ++j) {
        rope.frequency.push_back(std::pow(1e4, -2.0 * static_cast<double>(j) / static_cast<double>(c.head_dim)));
      }
      m.graph.ropes.push_back(rope);
      op.rope = 0;
      op.q_norm = Norm{.weight = m.weight("q_norm", 1, c.head_dim, random.normal(c.head_dim)), .eps = 1e-5f};
      op.k_norm = Norm{.weight = m.weight("k_norm", 1, c.head_dim, random.normal(c.head_dim)), .eps = 1e-5f};
    }
    m.finish(m.attention("attention", op));
    auto ok = verify(m.graph);
    ASSERT_TRUE(ok) << ok.error().message;

    // Keys in f16 may round to the other neighbour: 2^-11 of scores of a few units. Values are at most 5. In eight bits
    // only entries near the middle of a step, 1/127 of the largest, may: at most a few of a head.
    double tolerance = (c.kv_type == KvType::kF32 ? 4e-5 : c.kv_type == KvType::kF16 ? 4e-3 : 2e-2) * 5;
    RunnerOptions options{.kv_type = c.kv_type};
    Runner reference(*reference_, m.graph, options), device(*device_, m.graph, options);
    options.deterministic = true;
    Runner together(*device_, m.graph, options), alone(*device_, m.graph, options);
    int ids[3];
    for (int& id : ids) {
      id = reference.add_sequence();
      for (Runner* runner : {&device, &together, &alone}) runner->add_sequence();
    }
    int steps = 0;
    auto step = [&](std::initializer_list<std::pair<int, int64_t>> parts, PlanKind kind) {
      std::vector<std::vector<int32_t>> tokens;
      for (auto [sequence, count] : parts) tokens.push_back(random.tokens(count, kVocab));
      std::vector<Runner::Part> rows;
      size_t i = 0;
      for (auto [sequence, count] : parts) rows.push_back({.sequence = ids[sequence], .tokens = tokens[i++]});
      std::vector<float> want = reference.step(rows, kind), got = device.step(rows, kind);
      expect_close(
          fmt::format("attention {}/{} heads of {}, window {}, cap {}, {} sinks, depth {}, {}, step {} ({})", c.heads,
                      c.kv_heads, c.head_dim, c.window, c.soft_cap, c.sinks ? "with" : "no", c.depth,
                      c.folded ? "folded" : "plain", steps++, kind == PlanKind::kDecode ? "decode" : "prefill"),
          reference.vocab(), got, want, std::vector<double>(want.size(), tolerance));
      // Decoding rows have the same bits when each has a step of its own.
      got = together.step(rows, kind);
      if (kind == PlanKind::kPrefill) {
        alone.step(rows, kind);
        return;
      }
      std::vector<float> each;
      for (const Runner::Part& part : rows) {
        const std::vector<float> one = alone.step({&part, 1}, kind);
        each.insert(each.end(), one.begin(), one.end());
      }
      EXPECT_EQ(std::memcmp(got.data(), each.data(), each.size() * sizeof(float)), 0)
          << GetParam().label() << " attention " << c.heads << "/" << c.kv_heads << " heads of " << c.head_dim
          << ", window " << c.window << ", depth " << c.depth << ", step " << steps - 1;
    };
    step({{0, 17}}, PlanKind::kPrefill);
    step({{1, 1}}, PlanKind::kDecode);
    for (int64_t left = c.depth - 37; left > 0; left -= 400)
      step({{0, std::min<int64_t>(left, 400)}}, PlanKind::kPrefill);
    step({{1, 1}, {0, 1}}, PlanKind::kDecode);
    step({{2, 31}, {1, 64}}, PlanKind::kPrefill);  // two sequences in one chunk
    for (int i = 0; i < 4; ++i) step({{2, 1}, {0, 1}, {1, 1}}, PlanKind::kDecode);
    step({{0, 3}, {1, 1}, {2, 2}}, PlanKind::kDecode);
    step({{1, 1}, {0, 1}, {2, 40}}, PlanKind::kPrefill);  // decodes ride along with a chunk
    if (c.window == 0) {
      for (Runner* runner : {&reference, &device, &together, &alone}) {
        runner->rewind(ids[0], 50), runner->rewind(ids[2], 0);
      }
      step({{0, 2}, {2, 1}}, PlanKind::kDecode);
      step({{0, 1}, {2, 1}}, PlanKind::kDecode);
    }
  }
};

TEST_P(AttentionConformance, EveryCase) {
  const AttentionCase cases[] = {{1, 1, 32, 0, false, KvType::kF32},        {3, 1, 64, 0, true, KvType::kF32},
                                 {8, 1, 64, 0, false, KvType::kF16},        {3, 3, 80, 0, true, KvType::kF32},
                                 {6, 3, 128, 0, false, KvType::kF32},       {9, 3, 64, 0, true, KvType::kF16},
                                 {4, 2, 64, 7, true, KvType::kF32},         {4, 2, 32, 16, false, KvType::kF32},
                                 {6, 3, 80, 100, true, KvType::kF16},       {16, 2, 128, 33, true, KvType::kF32},
                                 {24, 3, 32, 1, false, KvType::kF32},       {4, 1, 64, 0, false, KvType::kF32, 1100},
                                 {2, 1, 64, 600, true, KvType::kF32, 1100}, {4, 2, 64, 0, false, KvType::kQ8},
                                 {6, 3, 128, 100, true, KvType::kQ8},       {4, 1, 128, 0, true, KvType::kF16, 1100},
                                 {2, 1, 256, 300, true, KvType::kF16, 500}, {17, 1, 96, 0, true, KvType::kF16},
                                 {34, 2, 64, 50, false, KvType::kF16},      {2, 1, 112, 0, true, KvType::kF16},
                                 {3, 1, 256, 0, true, KvType::kQ8, 300},    {4, 4, 96, 0, true, KvType::kQ8},
                                 {20, 1, 64, 40, true, KvType::kQ8},        {1, 1, 320, 0, false, KvType::kF16}};
  for (const AttentionCase& c : cases) run(c);
}

TEST_P(AttentionConformance, SoftCapsAndSinks) {
  const AttentionCase cases[] = {
      {3, 1, 32, 0, false, KvType::kF32, 140, 4, false},   {5, 1, 32, 20, false, KvType::kF32, 140, 0, true},
      {10, 2, 112, 0, false, KvType::kF16, 140, 3, true},  {5, 5, 64, 0, false, KvType::kF32, 600, 5, true},
      {3, 1, 64, 0, true, KvType::kF16, 1100, 0, true},    {18, 1, 64, 500, false, KvType::kF16, 600, 4, true},
      {3, 3, 80, 50, false, KvType::kF16, 140, 4, true},   {5, 1, 96, 0, false, KvType::kQ8, 600, 4, true},
      {10, 1, 128, 33, true, KvType::kQ8, 140, 0, true},   {6, 3, 128, 0, true, KvType::kF16, 600, 5, true},
      {5, 1, 256, 300, false, KvType::kF16, 500, 4, true}, {2, 1, 256, 0, false, KvType::kQ8, 500, 4, true},
      {1, 1, 320, 0, false, KvType::kF16, 140, 4, true}};
  for (const AttentionCase& c : cases) run(c);
}

// Few enough for tools that watch every access.
TEST_P(AttentionConformance, OneOfEachKind) {
  run({4, 1, 128, 0, true, KvType::kF16, 300});
  run({4, 2, 64, 40, true, KvType::kQ8});
  run({5, 1, 128, 0, false, KvType::kF16, 300, 4, true});
}

std::vector<TestDevice> tested_devices() {
  std::vector<TestDevice> devices;
  for (const TestDevice& device : test_devices()) {
    if (device.name != "reference") devices.push_back(device);
  }
  return devices;
}

std::string device_label(const ::testing::TestParamInfo<TestDevice>& info) { return info.param.label(); }
INSTANTIATE_TEST_SUITE_P(All, Conformance, ::testing::ValuesIn(tested_devices()), device_label);
INSTANTIATE_TEST_SUITE_P(All, AttentionConformance, ::testing::ValuesIn(tested_devices()), device_label);
INSTANTIATE_TEST_SUITE_P(All, LinearConformance, ::testing::ValuesIn(tested_devices()), device_label);

}  // namespace
}  // namespace hearth::testing
