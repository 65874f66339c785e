#include "server/errors.h"

namespace hearth::server {

int http_status(Refusal kind) {
  switch (kind) {
    case Refusal::kInvalid:
    case Refusal::kContextLength:
      return 400;
    case Refusal::kUnauthorized:
      return 401;
    case Refusal::kForbidden:
      return 403;
    case Refusal::kNotFound:
      return 404;
    case Refusal::kMethod:
      return 405;
    case Refusal::kTimeout:
      return 408;
    case Refusal::kTooLarge:
      return 413;
    case Refusal::kHeadersTooLarge:
      return 431;
    case Refusal::kInternal:
      return 500;
    case Refusal::kUnsupported:
      return 501;
    case Refusal::kOverloaded:
    case Refusal::kUnavailable:
      return 503;
  }
  return 500;
}

ApiError to_api_error(Error error) {
  ApiError result{.kind = Refusal::kInvalid, .message = std::move(error.message)};
  switch (error.code) {
    case ErrorCode::kUsage:
    case ErrorCode::kInvalidInput:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNotFound:
      break;
    case ErrorCode::kOutOfMemory:
      result.kind = Refusal::kOverloaded;
      result.retry_seconds = 5;
      break;
    case ErrorCode::kStalled:
      result.kind = Refusal::kUnavailable;
      result.retry_seconds = 30;
      break;
    case ErrorCode::kCancelled:
      result.kind = Refusal::kUnavailable;
      break;
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      result.kind = Refusal::kInternal;
      break;
  }
  return result;
}

}  // namespace hearth::server
