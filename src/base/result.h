// Helpers for functions that return hearth::Result: building errors and passing them up.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "hearth/error.h"

namespace hearth {

// fail(ErrorCode::kInvalidInput, "tensor {}: ...", name) builds the Error that a Result converts from.
template <class... Args>
[[nodiscard]] Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

// What a message says without what it advises: "no room: 3 are needed; a smaller one would fit" -> "no room: 3 are
// needed".
inline std::string_view without_advice(std::string_view message) { return message.substr(0, message.find("; ")); }

// "1 token", "2 tokens".
inline std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Runs f, which returns a Result, and turns what libraries throw into an Error: the boundary that no exception crosses.
template <class F>
auto guarded(std::string_view attempt, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "{}: memory ran out; a smaller context (-c) or model would need less",
                attempt);
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kIo, "{}: the system refused: {}", attempt, error.what());
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInternal, "{}: {}", attempt, error.what());
  }
}

}  // namespace hearth

#define HEARTH_CONCAT_(a, b) a##b
#define HEARTH_CONCAT(a, b) HEARTH_CONCAT_(a, b)

// HEARTH_TRY(expr): returns the error of a Result<void> (or drops the value of a Result<T>).
#define HEARTH_TRY(expr)                                                                \
  do {                                                                                  \
    if (auto hearth_try_ = (expr); !hearth_try_) return std::move(hearth_try_).error(); \
  } while (false)

// HEARTH_ASSIGN(auto x, expr): x = value of the Result, or returns its error.
#define HEARTH_ASSIGN(declaration, expr) HEARTH_ASSIGN_(HEARTH_CONCAT(hearth_result_, __LINE__), declaration, expr)
#define HEARTH_ASSIGN_(name, declaration, expr) \
  auto name = (expr);                           \
  if (!name) return std::move(name).error();    \
  declaration = std::move(name).value()
