#include "text/output/json_calls.h"

namespace hearth {

CallReader::Status JsonCalls::read(Cursor& in, EventSink& out) {
  while (true) {
    if (call_) {
      const Status status = call_->read(in, out);
      if (status == Status::kMore) return status;
      call_.reset();
      if (status == Status::kRejected) return status;
      any_ = true;
    }
    in.skip_space();
    if (in.over()) return any_ ? Status::kDone : Status::kRejected;
    if (in.empty()) return Status::kMore;
    const char c = in.rest()[0];
    if (c == '{') {
      if (any_) in.hold();
      call_.emplace(options_);
    } else if (c == '[' && !any_ && !list_) {
      in.skip(1);
      list_ = true;
    } else if (!any_) {
      return Status::kRejected;
    } else if (c == ',' || c == ';' || c == ']' || c == '}') {
      in.skip(1);  // between calls, or one bracket too many
    } else if (close_.empty()) {
      return Status::kDone;
    } else {
      return in.take(close_) == Cursor::Match::kPartial ? Status::kMore : Status::kDone;
    }
  }
}

}  // namespace hearth
