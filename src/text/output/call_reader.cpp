#include "text/output/call_reader.h"

namespace hearth {

CallReader::Status SteppedReader::read(Cursor& in, EventSink& out) {
  while (true) {
    switch (step(in, out)) {
      case Step::kGoOn:
        break;
      case Step::kMore:
        return Status::kMore;
      case Step::kDone:
        return Status::kDone;
      case Step::kRejected:
        return Status::kRejected;
    }
  }
}

bool JsonArguments::read(Cursor& in, EventSink& out) {
  std::string piece;
  in.skip(json_.read(in.rest(), piece));
  const bool done = json_.done();
  // Markup where JSON should go on: the model thinks that it is done.
  if (json_.stuck()) json_.close(piece);
  out.arguments(piece);
  if (!done && !json_.done() && !in.ended()) return false;
  out.end_call(json_.done());
  return true;
}

}  // namespace hearth
