// What a client is told when its request fails. Each protocol words it in its own form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/result.h"

namespace hearth::server {

enum class Refusal : uint8_t {
  kInvalid,          // 400
  kContextLength,    // 400: the prompt is longer than the context
  kUnauthorized,     // 401
  kForbidden,        // 403
  kNotFound,         // 404
  kMethod,           // 405
  kTimeout,          // 408
  kTooLarge,         // 413
  kHeadersTooLarge,  // 431
  kInternal,         // 500
  kUnsupported,      // 501
  kOverloaded,       // 503, or 529 where the protocol has it
  kUnavailable,      // 503: the model is loading, its engine stalls, or the server stops
};

struct ApiError {
  Refusal kind = Refusal::kInternal;
  std::string message;
  std::string param;           // the field at fault, where one is
  int64_t retry_seconds = 0;   // for Retry-After
  int64_t prompt_tokens = 0;   // kContextLength
  int64_t context_tokens = 0;  // kContextLength: the most that a prompt may have
};

// The status of the OpenAI protocol, which most follow.
int http_status(Refusal kind);

// An error of the engine or the text side. What they refuse is the fault of the request unless the code says otherwise.
ApiError to_api_error(Error error);

inline ApiError refuse(Refusal kind, std::string message, std::string param = {}) {
  return {.kind = kind, .message = std::move(message), .param = std::move(param)};
}
template <class... Args>
ApiError invalid(std::string param, fmt::format_string<Args...> format, Args&&... args) {
  return refuse(Refusal::kInvalid, fmt::format(format, std::forward<Args>(args)...), std::move(param));
}

// A Result whose error is an ApiError; HEARTH_ASSIGN and HEARTH_TRY take it, and take a Result in a function that
// returns one.
template <class T>
class [[nodiscard]] Answer {
 public:
  Answer(T value) : state_(std::in_place_index<0>, std::move(value)) {}                    // NOLINT: implicit
  Answer(ApiError error) : state_(std::in_place_index<1>, std::move(error)) {}             // NOLINT: implicit
  Answer(Error error) : state_(std::in_place_index<1>, to_api_error(std::move(error))) {}  // NOLINT: implicit

  explicit operator bool() const { return state_.index() == 0; }
  T& value() & { return std::get<0>(state_); }
  T&& value() && { return std::move(std::get<0>(state_)); }
  T& operator*() & { return std::get<0>(state_); }
  T&& operator*() && { return std::move(std::get<0>(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  ApiError& error() & { return std::get<1>(state_); }
  ApiError&& error() && { return std::move(std::get<1>(state_)); }

 private:
  std::variant<T, ApiError> state_;
};

template <>
class [[nodiscard]] Answer<void> {
 public:
  Answer() = default;
  Answer(ApiError error) : error_(std::move(error)) {}             // NOLINT: implicit
  Answer(Error error) : error_(to_api_error(std::move(error))) {}  // NOLINT: implicit

  explicit operator bool() const { return !error_; }
  ApiError& error() & { return *error_; }
  ApiError&& error() && { return std::move(*error_); }

 private:
  std::optional<ApiError> error_;
};

}  // namespace hearth::server
