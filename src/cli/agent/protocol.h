// The two protocols that agents speak, from the side of the client: bodies of requests, and what streams tell.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/agent/trace.h"

namespace hearth::cli {

// What the server says about its work; -1: it does not.
struct TokenCounts {
  int64_t prompt = -1;
  int64_t cached = -1;  // of the prompt
  int64_t generated = -1;
  std::vector<int32_t> prompt_ids, answer_ids;  // with "return_token_ids"; empty: it does not
};

// Follows one streamed answer.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  struct Step {
    bool tokens = false;  // text, reasoning or a part of a call arrived
    bool done = false;    // nothing more will come
  };
  // kInvalidInput: this is not what the protocol says. kIo: an error that the server reports.
  virtual Result<Step> event(std::string_view type, std::string_view data) = 0;
  // The answer came to its end.
  virtual bool finished() const = 0;

  const TokenCounts& counts() const { return counts_; }

 protected:
  TokenCounts counts_;
};

struct AgentProtocol {
  std::string_view name;
  std::string_view path;
  // A streamed request for the history.
  Json (*body)(const History& history, const std::string& model, int64_t max_tokens);
  std::unique_ptr<AnswerStream> (*stream)();
};

extern const AgentProtocol kOpenAi, kAnthropic;

}  // namespace hearth::cli
