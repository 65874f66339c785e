// Reads the calls that a marker in the answer opens.
#pragma once

#include "text/output/cursor.h"
#include "text/output/event_sink.h"
#include "text/output/json_stream.h"

namespace hearth {

// While it is not sure that there is a call, the cursor holds what is skipped, so that it can come out as text after
// all; a call that starts releases it.
class CallReader {
 public:
  enum class Status {
    kMore,      // all that can be read was read
    kDone,      // the calls are over; what follows is the answer's text
    kRejected,  // there is no call; what is held is text
  };

  virtual ~CallReader() = default;

  // Once the cursor has ended it does not return kMore.
  virtual Status read(Cursor& in, EventSink& out) = 0;
};

// One that reads in small steps, each of which changes its state.
class SteppedReader : public CallReader {
 public:
  Status read(Cursor& in, EventSink& out) final;

 protected:
  enum class Step { kGoOn, kMore, kDone, kRejected };
  virtual Step step(Cursor& in, EventSink& out) = 0;
};

// The arguments of a call that has started, where they stand in the answer as a JSON object.
class JsonArguments {
 public:
  // True once the call is over and its end an event.
  bool read(Cursor& in, EventSink& out);

 private:
  JsonStream json_;
};

}  // namespace hearth
