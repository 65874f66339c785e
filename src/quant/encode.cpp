#include "quant/encode.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "quant/formats.h"
#include "quant/half.h"

namespace hearth {
namespace {

// The integer nearest to x in [low, high], ties to even; low for NaN. Adding 1.5 * 2^23 leaves the integer in the low
// bits of the float: 25 to 45 % faster than std::nearbyint, a function call on baseline x86-64. Clamping without
// branches was slower.
int nearest(float x, int low, int high) {
  if (!(x > static_cast<float>(low))) return low;
  if (x >= static_cast<float>(high)) return high;
  return std::bit_cast<int32_t>(x + 12582912.0f) - 0x4b400000;
}

float inverse(float x) { return x != 0.0f ? 1.0f / x : 0.0f; }

// The value of x as a field of a block: f16, saturated.
float as_half(float x) { return f16_to_f32(f32_to_f16(std::clamp(x, -65504.0f, 65504.0f))); }

// The element of largest magnitude, with its sign.
float extreme(std::span<const float> x) {
  float best = 0.0f;
  for (float v : x) {
    if (std::fabs(v) > std::fabs(best)) best = v;
  }
  return best;
}

// The scale s that minimizes sum (x - s * value(x / s))^2 among a few divisors around `base`, each refined by least
// squares; `value` maps x / s to the nearest representable number.
template <class Value>
float fit_scale(std::span<const float> x, float base, Value value) {
  float peak = extreme(x);
  if (peak == 0.0f) return 0.0f;
  float best_scale = 0.0f, best_gain = -1.0f;
  for (int step = -4; step <= 4; ++step) {
    float scale = peak / (base * (1.0f + 0.025f * static_cast<float>(step)));
    float inv = inverse(scale);
    float dot = 0.0f, norm = 0.0f;
    for (float v : x) {
      float q = value(v * inv);
      dot += v * q;
      norm += q * q;
    }
    // With the best factor dot / norm the error is |x|^2 - dot^2 / norm.
    if (norm > 0.0f && dot * dot > best_gain * norm) {
      best_gain = dot * dot / norm;
      best_scale = dot / norm;
    }
  }
  return best_scale;
}

struct ScaleMin {
  float scale = 0.0f;
  float min = 0.0f;
};

// scale and min with x ~ scale * q + min, q in 0 .. max_code. With `min_below_zero` the minimum may not be positive.
ScaleMin fit_affine(std::span<const float> x, int max_code, bool min_below_zero) {
  auto [low_it, high_it] = std::minmax_element(x.begin(), x.end());
  float low = *low_it, high = *high_it;
  if (min_below_zero) low = std::min(low, 0.0f);
  if (min_below_zero) high = std::max(high, 0.0f);
  if (high == low) return {0.0f, low};
  auto n = static_cast<float>(x.size());
  ScaleMin best;
  float best_error = INFINITY;
  for (int step = -2; step <= 2; ++step) {
    ScaleMin s{(high - low) / (static_cast<float>(max_code) * (1.0f + 0.06f * static_cast<float>(step))), low};
    for (int pass = 0; pass < 2; ++pass) {
      float inv = inverse(s.scale);
      float q1 = 0, q2 = 0, x1 = 0, xq = 0, error = 0;
      for (float v : x) {
        auto q = static_cast<float>(nearest((v - s.min) * inv, 0, max_code));
        float e = v - (s.scale * q + s.min);
        error += e * e;
        q1 += q;
        q2 += q * q;
        x1 += v;
        xq += v * q;
      }
      if (error < best_error) {
        best_error = error;
        best = s;
      }
      // Least squares for these codes; without the freedom of the minimum when it hits its bound.
      float det = n * q2 - q1 * q1;
      if (det <= 0.0f) break;
      s = {(n * xq - q1 * x1) / det, (q2 * x1 - q1 * xq) / det};
      if (min_below_zero && s.min > 0.0f) s = {xq / q2, 0.0f};
      if (!(s.scale > 0.0f)) break;
    }
  }
  return best;
}

template <class F>
struct Encoder {
  static constexpr bool kExists = false;
};

template <>
struct Encoder<F32> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 1> x, F32::Block& b) { b.bits.set(std::bit_cast<uint32_t>(x[0])); }
};
template <>
struct Encoder<F16> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 1> x, F16::Block& b) { b.value.set(x[0]); }
};
template <>
struct Encoder<BF16> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 1> x, BF16::Block& b) { b.bits.set(f32_to_bf16(x[0])); }
};

template <>
struct Encoder<Q8_0> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 32> x, Q8_0::Block& b) {
    float d = as_half(std::fabs(extreme(x)) / 127.0f);
    b.d.set(d);
    float inv = inverse(d);
    for (int i = 0; i < 32; ++i) b.qs[i] = static_cast<int8_t>(nearest(x[i] * inv, -127, 127));
  }
};

// Codes of a block of 32 around `zero`: the scale's sign is such that the extreme element gets the code below zero,
// where there is one more.
float fit_centered(std::span<const float> x, int zero) {
  return fit_scale(x, static_cast<float>(-zero),
                   [&](float v) { return static_cast<float>(nearest(v, -zero, zero - 1)); });
}

template <>
struct Encoder<Q4_0> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 32> x, Q4_0::Block& b) {
    float d = as_half(fit_centered(x, 8));
    b.d.set(d);
    float inv = inverse(d);
    for (int j = 0; j < 16; ++j) {
      int low = nearest(x[j] * inv, -8, 7) + 8, high = nearest(x[j + 16] * inv, -8, 7) + 8;
      b.qs[j] = static_cast<uint8_t>(low | high << 4);
    }
  }
};
template <>
struct Encoder<Q5_0> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 32> x, Q5_0::Block& b) {
    float d = as_half(fit_centered(x, 16));
    b.d.set(d);
    float inv = inverse(d);
    uint32_t qh = 0;
    for (int j = 0; j < 16; ++j) {
      int low = nearest(x[j] * inv, -16, 15) + 16, high = nearest(x[j + 16] * inv, -16, 15) + 16;
      b.qs[j] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
      qh |= static_cast<uint32_t>(low >> 4) << j | static_cast<uint32_t>(high >> 4) << (j + 16);
    }
    b.qh.set(qh);
  }
};
template <>
struct Encoder<Q4_1> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 32> x, Q4_1::Block& b) {
    ScaleMin s = fit_affine(x, 15, false);
    float d = as_half(s.scale), m = as_half(s.min);
    b.d.set(d);
    b.m.set(m);
    float inv = inverse(d);
    for (int j = 0; j < 16; ++j) {
      int low = nearest((x[j] - m) * inv, 0, 15), high = nearest((x[j + 16] - m) * inv, 0, 15);
      b.qs[j] = static_cast<uint8_t>(low | high << 4);
    }
  }
};
template <>
struct Encoder<Q5_1> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 32> x, Q5_1::Block& b) {
    ScaleMin s = fit_affine(x, 31, false);
    float d = as_half(s.scale), m = as_half(s.min);
    b.d.set(d);
    b.m.set(m);
    float inv = inverse(d);
    uint32_t qh = 0;
    for (int j = 0; j < 16; ++j) {
      int low = nearest((x[j] - m) * inv, 0, 31), high = nearest((x[j + 16] - m) * inv, 0, 31);
      b.qs[j] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
      qh |= static_cast<uint32_t>(low >> 4) << j | static_cast<uint32_t>(high >> 4) << (j + 16);
    }
    b.qh.set(qh);
  }
};

// The two-level affine formats: groups of `Group` elements get small integer scales and minimums (up to `max_sub`),
// factors d and dmin, and codes up to `max_code`.
template <int Group>
struct TwoLevel {
  static constexpr int kGroups = 256 / Group;
  float d, dmin;
  uint8_t scale[kGroups], min[kGroups];
  uint8_t codes[256];

  TwoLevel(std::span<const float, 256> x, int max_code, int max_sub) {
    ScaleMin fit[kGroups];
    float top_scale = 0.0f, top_min = 0.0f;
    for (int g = 0; g < kGroups; ++g) {
      fit[g] = fit_affine(x.subspan(static_cast<size_t>(g) * Group, Group), max_code, true);
      top_scale = std::max(top_scale, fit[g].scale);
      top_min = std::max(top_min, -fit[g].min);
    }
    d = as_half(top_scale / static_cast<float>(max_sub));
    dmin = as_half(top_min / static_cast<float>(max_sub));
    for (int g = 0; g < kGroups; ++g) {
      scale[g] = static_cast<uint8_t>(nearest(fit[g].scale * inverse(d), 0, max_sub));
      min[g] = static_cast<uint8_t>(nearest(-fit[g].min * inverse(dmin), 0, max_sub));
      float inv = inverse(d * static_cast<float>(scale[g])), offset = dmin * static_cast<float>(min[g]);
      for (int i = g * Group; i < (g + 1) * Group; ++i) {
        codes[i] = static_cast<uint8_t>(nearest((x[static_cast<size_t>(i)] + offset) * inv, 0, max_code));
      }
    }
  }
};

template <>
struct Encoder<Q2_K> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 256> x, Q2_K::Block& b) {
    TwoLevel<16> t(x, 3, 15);
    b = {};
    b.d.set(t.d);
    b.dmin.set(t.dmin);
    for (int g = 0; g < 16; ++g) b.scales[g] = static_cast<uint8_t>(t.scale[g] | t.min[g] << 4);
    for (int i = 0; i < 256; ++i) {
      uint8_t& byte = b.qs[32 * (i >> 7) + (i & 31)];
      byte = static_cast<uint8_t>(byte | t.codes[i] << (2 * ((i & 127) >> 5)));
    }
  }
};
template <>
struct Encoder<Q4_K> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 256> x, Q4_K::Block& b) {
    TwoLevel<32> t(x, 15, 63);
    b = {};
    b.d.set(t.d);
    b.dmin.set(t.dmin);
    pack_six_bit(t.scale, t.min, b.scales);
    for (int i = 0; i < 256; ++i) {
      uint8_t& byte = b.qs[32 * (i >> 6) + (i & 31)];
      byte = static_cast<uint8_t>(byte | t.codes[i] << (i & 32 ? 4 : 0));
    }
  }
};
template <>
struct Encoder<Q5_K> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 256> x, Q5_K::Block& b) {
    TwoLevel<32> t(x, 31, 63);
    b = {};
    b.d.set(t.d);
    b.dmin.set(t.dmin);
    pack_six_bit(t.scale, t.min, b.scales);
    for (int i = 0; i < 256; ++i) {
      uint8_t& byte = b.qs[32 * (i >> 6) + (i & 31)];
      byte = static_cast<uint8_t>(byte | (t.codes[i] & 15) << (i & 32 ? 4 : 0));
      b.qh[i & 31] = static_cast<uint8_t>(b.qh[i & 31] | (t.codes[i] >> 4) << (i >> 5));
    }
  }
};

// The two-level formats without minimum: groups get signed integer scales in [-max_sub - 1, max_sub]; the group of
// the largest scale gets the lowest integer.
template <int Groups>
void sub_scales(const float (&fit)[Groups], int max_sub, float& d, int (&sub)[Groups]) {
  d = as_half(extreme(fit) / static_cast<float>(-max_sub - 1));
  float inv = inverse(d);
  for (int g = 0; g < Groups; ++g) sub[g] = nearest(fit[g] * inv, -max_sub - 1, max_sub);
}

template <>
struct Encoder<Q3_K> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 256> x, Q3_K::Block& b) {
    float fit[16], d;
    int sub[16];
    for (size_t g = 0; g < 16; ++g) fit[g] = fit_centered(x.subspan(16 * g, 16), 4);
    sub_scales(fit, 31, d, sub);
    b = {};
    b.d.set(d);
    for (int k = 0; k < 16; ++k) {
      int s = sub[k] + 32;
      uint8_t &low = b.scales[k & 7], &high = b.scales[8 + (k & 3)];
      low = static_cast<uint8_t>(low | (s & 15) << (k < 8 ? 0 : 4));
      high = static_cast<uint8_t>(high | (s >> 4) << (2 * (k >> 2)));
    }
    for (int i = 0; i < 256; ++i) {
      float inv = inverse(d * static_cast<float>(sub[i >> 4]));
      int code = nearest(x[static_cast<size_t>(i)] * inv, -4, 3) + 4;
      int h = i >> 7, j = (i & 127) >> 5, l = i & 31;
      b.qs[32 * h + l] = static_cast<uint8_t>(b.qs[32 * h + l] | (code & 3) << (2 * j));
      b.hmask[l] = static_cast<uint8_t>(b.hmask[l] | (code >> 2) << (4 * h + j));
    }
  }
};
template <>
struct Encoder<Q6_K> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 256> x, Q6_K::Block& b) {
    float fit[16], d;
    int sub[16];
    for (size_t g = 0; g < 16; ++g) fit[g] = fit_centered(x.subspan(16 * g, 16), 32);
    sub_scales(fit, 127, d, sub);
    b = {};
    b.d.set(d);
    for (int k = 0; k < 16; ++k) b.scales[k] = static_cast<int8_t>(sub[k]);
    for (int i = 0; i < 256; ++i) {
      float inv = inverse(d * static_cast<float>(sub[i >> 4]));
      int code = nearest(x[static_cast<size_t>(i)] * inv, -32, 31) + 32;
      int h = i >> 7, g = (i & 127) >> 5, l = i & 31;
      uint8_t &low = b.ql[64 * h + 32 * (g & 1) + l], &high = b.qh[32 * h + l];
      low = static_cast<uint8_t>(low | (code & 15) << (g < 2 ? 0 : 4));
      high = static_cast<uint8_t>(high | (code >> 4) << (2 * g));
    }
  }
};

// Index of the IQ4 value that is nearest to x: the number of midpoints below it.
int nearest_iq4(float x) {
  int index = 0;
  for (int i = 0; i < 15; ++i) index += x > 0.5f * static_cast<float>(kIq4Values[i] + kIq4Values[i + 1]);
  return index;
}
float fit_iq4(std::span<const float> x) {
  return fit_scale(x, kIq4Values[0], [](float v) { return static_cast<float>(kIq4Values[nearest_iq4(v)]); });
}

template <>
struct Encoder<IQ4_NL> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 32> x, IQ4_NL::Block& b) {
    float d = as_half(fit_iq4(x));
    b.d.set(d);
    float inv = inverse(d);
    for (int j = 0; j < 16; ++j) {
      int low = nearest_iq4(x[j] * inv), high = nearest_iq4(x[j + 16] * inv);
      b.qs[j] = static_cast<uint8_t>(low | high << 4);
    }
  }
};
template <>
struct Encoder<IQ4_XS> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 256> x, IQ4_XS::Block& b) {
    float fit[8], d;
    int sub[8];
    for (size_t g = 0; g < 8; ++g) fit[g] = fit_iq4(x.subspan(32 * g, 32));
    sub_scales(fit, 31, d, sub);
    b = {};
    b.d.set(d);
    unsigned scales_h = 0;
    for (int g = 0; g < 8; ++g) {
      auto s = static_cast<unsigned>(sub[g] + 32);
      scales_h |= (s >> 4) << (2 * g);
      b.scales_l[g >> 1] = static_cast<uint8_t>(b.scales_l[g >> 1] | (s & 15) << (4 * (g & 1)));
      float inv = inverse(d * static_cast<float>(sub[g]));
      const float* group = x.data() + 32 * g;
      for (int j = 0; j < 16; ++j) {
        int low = nearest_iq4(group[j] * inv), high = nearest_iq4(group[j + 16] * inv);
        b.qs[16 * g + j] = static_cast<uint8_t>(low | high << 4);
      }
    }
    b.scales_h.set(static_cast<uint16_t>(scales_h));
  }
};

// The nibble whose E2M1 value is nearest to half of `doubled`.
uint8_t nearest_e2m1(float doubled) {
  float magnitude = std::fabs(doubled);
  uint8_t code = 0;
  while (code < 7 && magnitude > 0.5f * static_cast<float>(kE2m1Doubled[code] + kE2m1Doubled[code + 1])) ++code;
  return static_cast<uint8_t>(code | (doubled < 0.0f ? 8 : 0));
}

template <>
struct Encoder<MXFP4> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 32> x, MXFP4::Block& b) {
    // The extreme element lands in [4, 8) or [2, 4) of E2M1's 0 .. 6; whichever errs less.
    float peak = std::fabs(extreme(x));
    int exponent = peak > 0.0f ? std::ilogb(peak) - 2 + 127 : 0;
    float best_error = INFINITY;
    for (int e = exponent; e <= exponent + 1; ++e) {
      auto byte = static_cast<uint8_t>(std::clamp(e, 0, 254));
      float half = e8m0_half(byte), error = 0.0f;
      for (float v : x) {
        float diff = v - half * static_cast<float>(kE2m1Doubled[nearest_e2m1(v / half)]);
        error += diff * diff;
      }
      if (error < best_error) {
        best_error = error;
        b.e = byte;
      }
    }
    float half = e8m0_half(b.e);
    for (int j = 0; j < 16; ++j) {
      b.qs[j] = static_cast<uint8_t>(nearest_e2m1(x[j] / half) | nearest_e2m1(x[j + 16] / half) << 4);
    }
  }
};

// Scales below 2^-6 have fewer bits and none is below 2^-9: small weights need the second scale of the tensor, which is
// not made here.
template <>
struct Encoder<NVFP4> {
  static constexpr bool kExists = true;
  static void encode(std::span<const float, 64> x, NVFP4::Block& b) {
    for (size_t s = 0; s < 4; ++s) {
      std::span<const float> group = x.subspan(16 * s, 16);
      // The least scale that is not below a sixth of the extreme element, and its neighbours; whichever errs least.
      float want = std::fabs(extreme(group)) / 6.0f;
      int above = 0;
      while (above < 0x7e && ue4m3(static_cast<uint8_t>(above)) < want) ++above;
      float best_error = INFINITY;
      for (int byte = std::max(above - 2, 0); byte <= std::min(above + 1, 0x7e); ++byte) {
        float inv = inverse(0.5f * ue4m3(static_cast<uint8_t>(byte))), half = 0.5f * ue4m3(static_cast<uint8_t>(byte));
        float error = 0.0f;
        for (float v : group) {
          float diff = v - half * static_cast<float>(kE2m1Doubled[nearest_e2m1(v * inv)]);
          error += diff * diff;
        }
        if (error < best_error) {
          best_error = error;
          b.d[s] = static_cast<uint8_t>(byte);
        }
      }
      float inv = inverse(0.5f * ue4m3(b.d[s]));
      for (size_t k = 0; k < 8; ++k) {
        b.qs[8 * s + k] = static_cast<uint8_t>(nearest_e2m1(group[k] * inv) | nearest_e2m1(group[k + 8] * inv) << 4);
      }
    }
  }
};

// As every NF4 writer does it: the scale is the largest magnitude, codes are nearest to the quotient by its f16.
template <>
struct Encoder<NF4> {
  static constexpr bool kExists = true;
  // The nearest value's index: the number of midpoints, exact in f64, below u.
  static int code(float u) {
    int index = 0;
    for (int i = 0; i < 15; ++i) index += 2.0 * u > static_cast<double>(kNf4Values[i]) + kNf4Values[i + 1];
    return index;
  }
  static void encode(std::span<const float, 64> x, NF4::Block& b) {
    float d = as_half(std::fabs(extreme(x)));
    b.d.set(d);
    for (int j = 0; j < 32; ++j) {
      float low = d > 0.0f ? x[2 * j] / d : 0.0f, high = d > 0.0f ? x[2 * j + 1] / d : 0.0f;
      b.qs[j] = static_cast<uint8_t>(code(low) | code(high) << 4);
    }
  }
};

}  // namespace

bool can_encode(FormatId id) {
  return with_format(id, []<class F>() { return Encoder<F>::kExists; });
}

void encode_row(FormatId id, std::span<const float> values, std::byte* row) {
  with_format(id, [&]<class F>() {
    if constexpr (Encoder<F>::kExists) {
      constexpr size_t kElems = F::kInfo.block_elems;
      HEARTH_CHECK(values.size() % kElems == 0, "{} elements in blocks of {} ({})", values.size(), kElems,
                   F::kInfo.name);
      auto* blocks = reinterpret_cast<typename F::Block*>(row);  // alignment 1, trivially copyable
      for (size_t i = 0; i < values.size() / kElems; ++i) {
        Encoder<F>::encode(values.subspan(i * kElems).template first<kElems>(), blocks[i]);
      }
    } else {
      check_failed(__FILE__, __LINE__, "the format can be encoded", std::string(F::kInfo.name));
    }
  });
}

}  // namespace hearth
