// Takes answers apart whose markup is reasoning between two markers and calls that a marker opens: nearly all models.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/output/call_reader.h"
#include "text/output/tool_schemas.h"

namespace hearth {

struct CallOpener {
  std::string_view marker;
  std::unique_ptr<CallReader> (*reader)(const ToolSchemas& schemas);
  bool at_start = false;  // only where nothing but white space stands before it
  bool kept = false;      // the marker is part of the call: the reader begins with it
};

struct MarkerPair {
  std::string open;
  std::string close;
};

// How the models of one kind write.
struct AnswerForm {
  std::vector<CallOpener> openers;
  std::vector<std::string_view> closers;  // ends of calls: not text where one stands behind a call
  bool reasons_anywhere = false;          // reasoning may begin behind text; else only where nothing stands before it
  MarkerPair wrapper = {};                // around the text, if the model likes; it is not text
  std::string_view turn_open = {};        // the prompt ends with this, and the newline behind it is the template's
};

class AnswerParser final : public OutputParser {
 public:
  // `reasoning`: the pairs of markers that the model may use.
  AnswerParser(AnswerForm form, std::vector<MarkerPair> reasoning, const OutputOptions& options);

  void push(std::string_view text, std::vector<OutputEvent>& events) override;
  void finish(std::vector<OutputEvent>& events) override;

  bool in_reasoning() const override {
    return state_ == State::kReasoning || (state_ == State::kBehindThoughtCall && !thought_closed_);
  }
  bool in_tool_call() const override { return state_ == State::kCall || state_ == State::kThoughtCall; }

 private:
  enum class State {
    kStart,  // nothing but white space stands before
    kText,
    kReasoning,
    kCall,
    // Some models call before they have closed their reasoning. On a line of its own that is a call if nothing but the
    // end of the reasoning follows; else it was a thought, and what the model does comes after it.
    kThoughtCall,
    kBehindThoughtCall,
  };

  void run();
  bool step();
  bool read_start();
  bool read_text();
  bool read_reasoning();
  bool read_call();
  bool read_thought_call();
  bool read_behind_thought_call();
  void begin_reasoning(const MarkerPair& pair);
  void end_reasoning();
  void begin_call(const CallOpener& opener);
  void begin_thought_call(const CallOpener& opener);
  void reject_call();
  void reject_thought_call();
  void add_reasoning(std::string_view text);

  AnswerForm form_;
  std::vector<MarkerPair> reasoning_;
  ToolSchemas schemas_;
  std::vector<std::string_view> text_markers_;     // first the openers', then of reasoning, closers, the wrapper's end
  std::vector<std::string_view> thought_markers_;  // the openers', then the end of the reasoning
  Cursor in_;
  EventSink out_;
  State state_ = State::kStart;
  std::string_view reasoning_close_;
  bool line_begins_ = false;  // only spaces have come in this line of the reasoning
  // Of calls in the reasoning: their text, and what they are if they are calls.
  std::string thought_;
  std::vector<OutputEvent> thought_calls_;
  EventSink thought_out_;
  bool thought_closed_ = false;  // the end of the reasoning has come behind them
  bool wrapped_ = false;
  std::unique_ptr<CallReader> reader_;
  size_t bytes_ = 0;  // that have come
};

}  // namespace hearth
