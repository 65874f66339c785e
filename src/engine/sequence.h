// One request inside the engine: its tokens, its pages, its text so far.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/answer_constraint.h"
#include "engine/generation.h"
#include "engine/sampler.h"
#include "hearth/engine.h"
#include "memory/kv_cache.h"
#include "text/stream_decoder.h"

namespace hearth {

using Clock = std::chrono::steady_clock;

struct Sequence {
  Sequence(Request r, StopMatcher s, std::shared_ptr<Generation::State> o)
      : request(std::move(r)), stop(std::move(s)), output(std::move(o)) {}

  Request request;  // its prompt has become `tokens`
  Utf8Stream utf8;
  StopMatcher stop;
  std::unique_ptr<AnswerConstraint> constraint;  // nullptr: the answer is free
  std::shared_ptr<Generation::State> output;
  int64_t id = 0;  // order of arrival: the older one goes first

  std::vector<int32_t> tokens;  // prompt, then what was generated
  int64_t prompt_tokens = 0;
  PageTable table;
  int64_t computed = 0;        // tokens whose KV is in the pages
  int64_t shared = 0;          // of them, those that the prefix tree was given
  int64_t seen_pages = 0;      // KvCache::inserted_pages() when it last looked for more of its prompt there
  int64_t prefill_end = 0;     // tokens up to here are computed in chunks, the others one in each step
  bool all_rows = false;       // logits or hidden states of its whole prompt are wanted
  int64_t rows_read = 0;       // prompt positions of which they were read
  std::vector<double> pooled;  // of its hidden states so far (Embedder); empty: it wants no embedding
  int64_t last_step = 0;       // number of the step it was last part of
  double rows_per_second = 0;  // of all in the last step with a chunk of it; 0: unknown
  int32_t preemptions = 0;

  // A token that was drawn but whose text was not looked at: that happens while the next step runs.
  bool text_pending = false;
  TokenEvent pending;
  int64_t stop_index = -1;  // of the stop string that was found

  // Its part of the step in progress.
  int64_t rows = 0;
  int64_t first_logit_row = -1;  // -1: none
  int64_t logit_rows = 0;
  LogitChanges changes;  // of its next token, if this step draws one

  Usage usage;
  Clock::time_point submitted = Clock::now();
  Clock::time_point prefill_started;
  Clock::time_point first_token;
  bool admitted_before = false;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  int64_t generated() const { return usage.generated_tokens; }
  bool in_prefill() const { return computed < prefill_end; }
};

}  // namespace hearth
