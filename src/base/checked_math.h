// Arithmetic on sizes that come from files and requests: it reports overflow instead of wrapping.
#pragma once

#include <concepts>
#include <optional>

namespace hearth {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) {
  T out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) {
  T out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// The smallest multiple of `alignment` (a power of two) that is >= value.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_align_up(T value, T alignment) {
  auto sum = checked_add<T>(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

// ceil(a / b) for positive values that are known to fit.
template <std::integral T>
[[nodiscard]] constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

// Rounds up to a multiple of any positive b, for values that are known to fit.
template <std::integral T>
[[nodiscard]] constexpr T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}

}  // namespace hearth
