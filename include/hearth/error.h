// Errors as values. Every fallible call of Hearth returns Result<T>; nothing throws across this interface.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace hearth {

// Who has to act. The numbers are not stable; the names are.
enum class ErrorCode {
  kUsage,         // the caller asked for something impossible: a flag, a request field
  kInvalidInput,  // a file or a text is broken, or not what it claims to be
  kUnsupported,   // well-formed, but this build or machine cannot do it
  kNotFound,      // a file, tensor, model or device that does not exist
  kOutOfMemory,   // need, have and the flag that fits are in the message
  kIo,            // the operating system refused
  kCancelled,     // the caller went away; not a failure
  kStalled,       // the engine makes no progress; it may go on later
  kInternal,      // a bug in Hearth
};

// A message has one form: what was attempted, what was found, what would work.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // The same error with "<context>: " in front of its message.
  Error with_context(std::string_view context) && {
    message.insert(0, ": ").insert(0, context);
    return std::move(*this);
  }
};

// The part of std::expected that Hearth uses, with its member names, so that C++23 can make this an alias.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return require(); }
  const T& value() const& { return const_cast<Result*>(this)->require(); }
  T&& value() && { return std::move(require()); }
  T& operator*() & { return require(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(require()); }
  T* operator->() { return &require(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  T& require() {
    if (state_.index() != 0) std::abort();  // reading the value of an error is a bug of the caller
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }

  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace hearth
