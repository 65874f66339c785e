// Assertions for bugs in Hearth itself. Bad input is never a bug: it gets an Error (base/result.h).
#pragma once

#include <fmt/format.h>

#include <string>

namespace hearth {

// Prints what failed and where, then aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace hearth

// HEARTH_CHECK(rows <= bucket, "rows {} bucket {}", rows, bucket): always on, prints the values, aborts.
#define HEARTH_CHECK(condition, ...)                                                      \
  do {                                                                                    \
    if (!(condition)) [[unlikely]]                                                        \
      ::hearth::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
