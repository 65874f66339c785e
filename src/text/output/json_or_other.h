// Calls behind a marker that two forms share: JSON if a bracket follows, else the other form.
#pragma once

#include <memory>
#include <string_view>

#include "text/output/json_calls.h"

namespace hearth {

class JsonOrOther final : public CallReader {
 public:
  JsonOrOther(std::string_view json_close, std::unique_ptr<CallReader> other)
      : json_close_(json_close), reader_(std::move(other)) {}

  Status read(Cursor& in, EventSink& out) override {
    if (!decided_) {
      in.skip_space();
      if (in.over()) return Status::kRejected;
      if (in.empty()) return Status::kMore;
      const char c = in.rest()[0];
      if (c == '{' || c == '[') reader_ = std::make_unique<JsonCalls>(json_close_);
      decided_ = true;
    }
    return reader_->read(in, out);
  }

 private:
  std::string_view json_close_;
  std::unique_ptr<CallReader> reader_;
  bool decided_ = false;
};

}  // namespace hearth
