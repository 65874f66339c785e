// Calls as JSON objects, one or several, alone or in a list.
#pragma once

#include <optional>

#include "text/output/call_envelope.h"

namespace hearth {

class JsonCalls final : public CallReader {
 public:
  // `close`: the marker at the end, which may be missing; empty if there is none.
  explicit JsonCalls(std::string_view close, EnvelopeOptions options = {}) : close_(close), options_(options) {}

  Status read(Cursor& in, EventSink& out) override;

 private:
  std::string_view close_;
  EnvelopeOptions options_;
  std::optional<CallEnvelope> call_;
  bool any_ = false;   // a call was read
  bool list_ = false;  // in a list
};

}  // namespace hearth
