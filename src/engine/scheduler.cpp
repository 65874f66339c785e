#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "engine/cache_file.h"

namespace hearth {
namespace {

// Steps that fit a decode plan and have a chunk in them run faster in a prefill plan when the chunk is more than a few
// rows deep in its prompt: its attention reads keys once for all rows, not once for each. So do those of a few rows
// when the keys that would be read again are that many.
constexpr int64_t kFewRows = kLeastChunkRows;
constexpr int64_t kDeep = 256;
constexpr int64_t kManyKeys = 1 << 16;
// Smaller chunks are less efficient. Those below the second take no less time, deep in a prompt: attention reads all
// keys for them too.
constexpr int64_t kEfficientChunk = 32;
constexpr int64_t kEfficientLoneChunk = 128;

// Blocks of prompt logits that may wait for the reader before the engine stops making more.
constexpr int64_t kUnreadLogits = 2;

constexpr int64_t largest_bucket() { return kPrefillRows[std::size(kPrefillRows) - 1]; }
constexpr int64_t largest_decode_bucket() { return kDecodeRows[std::size(kDecodeRows) - 1]; }
static_assert(kMaxPrefillRows == largest_bucket() && kMaxSequences == largest_decode_bucket());

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::vector<KvGroupPages> group_pages(const EngineModel& model, const PageStore& store) {
  std::vector<KvGroupPages> groups;
  for (size_t g = 0; g < model.kv_pages.size(); ++g) {
    groups.push_back({.pages = model.kv_pages[g],
                      .window = model.graph->kv_groups[g].window,
                      .host_pages = store.host_pages(static_cast<int64_t>(g))});
  }
  return groups;
}

}  // namespace

Scheduler::Scheduler(EngineModel model, const EngineOptions& options)
    : model_(std::move(model)),
      options_(options),
      grid_(options.deterministic ? kPrefillGrid : kPageTokens),
      store_(*model_.device, model_.kv_pages, options.prefix_cache ? model_.host_cache_bytes : 0),
      kv_(group_pages(model_, store_), kPageTokens, options.prefix_cache, &store_),
      plans_(*model_.graph, *model_.device, options.deterministic),
      sampler_(model_.vocab_size),
      max_rows_(bucket_for(PlanKind::kPrefill, options.prefill_rows).rows) {
  if (const auto& hidden = model_.graph->hidden) embedder_.emplace(*hidden, *model_.graph);
}

Result<std::unique_ptr<Scheduler>> Scheduler::create(EngineModel model, const EngineOptions& options) {
  if (options.max_sequences < 1 || options.max_sequences > largest_decode_bucket()) {
    return fail(ErrorCode::kUsage, "max_sequences is {}; it must be from 1 to {}", options.max_sequences,
                largest_decode_bucket());
  }
  if (options.prefill_rows < 1 || options.prefill_rows > largest_bucket()) {
    return fail(ErrorCode::kUsage, "prefill_rows is {}; it must be from 1 to {}", options.prefill_rows,
                largest_bucket());
  }
  if (!(options.stall_seconds > 0)) {
    return fail(ErrorCode::kUsage, "stall_seconds is {}; it must be more than 0", options.stall_seconds);
  }
  auto scheduler = std::unique_ptr<Scheduler>(new Scheduler(std::move(model), options));
  // A sequence that is alone must never run out of pages.
  const EngineModel& m = scheduler->model_;
  for (int64_t g = 0; g < scheduler->kv_.groups(); ++g) {
    const int64_t rows = options.deterministic ? kPrefillGrid : options.prefill_rows;
    const int64_t need = scheduler->kv_.pages_needed(g, m.sequence_tokens, scheduler->grid_ + rows);
    if (m.kv_pages[static_cast<size_t>(g)] < need) {
      return fail(
          ErrorCode::kUsage,
          "a sequence of {} tokens in steps of {} rows needs {} pages of KV group {}, but {} are allocated; fewer "
          "prefill_rows would work",
          m.sequence_tokens, rows, need, g, m.kv_pages[static_cast<size_t>(g)]);
    }
  }
  HEARTH_TRY(scheduler->record_plans());
  return scheduler;
}

Result<void> Scheduler::record_plans() {
  // The largest first: those that fit into its memory share it. Nothing runs, so that it takes no longer for a large
  // model than for a small one. Prompts that do not fit are read in smaller chunks.
  const int64_t chunk = options_.deterministic ? kPrefillGrid : options_.prefill_rows;
  for (size_t i = std::size(kPrefillRows); i-- > 0;) {
    const Bucket bucket{PlanKind::kPrefill, kPrefillRows[i]};
    if (bucket.rows > bucket_for(PlanKind::kPrefill, chunk).rows) continue;
    if (Result<Executable*> executable = plans_.get(bucket);
        !executable && !shrink_chunks(executable.error(), bucket)) {
      return std::move(executable).error();
    }
  }
  for (size_t i = std::size(kDecodeRows); i-- > 0;) {
    if (options_.deterministic && kDecodeRows[i] > kDeterministicDecodeRows) continue;
    HEARTH_TRY(plans_.get({PlanKind::kDecode, kDecodeRows[i]}));
  }
  return {};
}

Result<void> Scheduler::check(const Request& request) const {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt == 0) return fail(ErrorCode::kUsage, "the prompt is empty; it must have at least one token");
  // One token must be left to generate, unless none is wanted.
  const int64_t most = model_.sequence_tokens - (request.max_tokens == 0 ? 0 : 1);
  if (prompt > most) {
    return fail(
        ErrorCode::kUsage,
        "the prompt has {} tokens, but the context takes {}; a shorter prompt would work, or a larger context (-c) "
        "if the model was trained for one",
        prompt, most);
  }
  for (int32_t token : request.prompt) {
    if (token < 0 || token >= model_.vocab_size) {
      return fail(ErrorCode::kUsage, "the prompt has token {}; the model's tokens are 0 to {}", token,
                  model_.vocab_size - 1);
    }
  }
  if (request.max_tokens < -1) {
    return fail(ErrorCode::kUsage, "max_tokens is {}; it must be at least 0, or -1 for no limit", request.max_tokens);
  }
  if (request.embedding) HEARTH_TRY(check_embedding(request));
  if (request.top_logprobs < -1 || request.top_logprobs > 1000) {
    return fail(ErrorCode::kUsage, "top_logprobs is {}; it must be from 0 to 1000, or -1 for none",
                request.top_logprobs);
  }
  if (request.constraint.grammar) {
    if (request.constraint.grammar->tokens().vocab_size() > model_.vocab_size) {
      return fail(ErrorCode::kUsage,
                  "the grammar was compiled for {} tokens, but the model has {}; compile it with the "
                  "text of this model",
                  request.constraint.grammar->tokens().vocab_size(), model_.vocab_size);
    }
    if (request.constraint.repeats && request.constraint.after.empty()) {
      return fail(ErrorCode::kUsage, "a constraint that repeats must say after which text (Constraint::after)");
    }
  }
  return check_sampling(request.sampling, model_.vocab_size);
}

Result<void> Scheduler::check_embedding(const Request& request) const {
  if (request.max_tokens != 0 || request.prompt_logits) {
    return fail(ErrorCode::kUsage, "an embedding is wanted beside an answer or logits; max_tokens must be 0");
  }
  if (!embedder_) return fail(ErrorCode::kUnsupported, "the model gives no hidden states to make embeddings of");
  if (model_.pooling != Pooling::kLast && model_.pooling != Pooling::kMean) {
    return fail(ErrorCode::kUnsupported,
                "embeddings of this model are made in a way that Hearth lacks: its pooling_type is {}; {} (mean) and "
                "{} (last) work",
                static_cast<int64_t>(model_.pooling), static_cast<int64_t>(Pooling::kMean),
                static_cast<int64_t>(Pooling::kLast));
  }
  return {};
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  Sequence& s = *sequence;
  s.id = next_id_++;
  s.tokens = std::move(s.request.prompt);
  if (s.request.constraint.grammar) {
    s.constraint = std::make_unique<AnswerConstraint>(s.request.constraint, *model_.text);
  }
  if (s.request.embedding) s.pooled.resize(static_cast<size_t>(embedder_->width()));
  s.all_rows = s.request.prompt_logits || (s.request.embedding && model_.pooling == Pooling::kMean);
  s.prompt_tokens = s.size();
  s.usage.prompt_tokens = s.prompt_tokens;
  // Reserved at once, so that nothing grows while tokens are generated.
  int64_t most = model_.sequence_tokens;
  if (s.request.max_tokens >= 0) most = s.prompt_tokens + std::min(s.request.max_tokens, most - s.prompt_tokens);
  s.tokens.reserve(static_cast<size_t>(most));
  s.table = kv_.make_table(most);
  waiting_.push_back(std::move(sequence));
}

bool Scheduler::step() {
  const int64_t changes = changes_;
  finish_cancelled();
  admit();
  choose_step();
  if (step_.empty()) {
    deliver_all_text();
    finish_stopped();
    if (running_.empty() && waiting_.empty()) {
      kv_.check({});
      HEARTH_CHECK(kv_.stats().in_use == 0, "{} pages in use by nobody", kv_.stats().in_use);
      return false;
    }
    return changes_ != changes;  // what ended or gave way may have made room for others
  }
  const Bucket bucket = assemble();
  Result<Executable*> executable = plans_.get(bucket);
  if (!executable) {
    if (shrink_chunks(executable.error(), bucket)) return true;
    deliver_all_text();
    fail_step(executable.error());
    return true;
  }
  executable_ = *executable;
  const Clock::time_point started = Clock::now();
  Result<void> result = executable_->launch({.tokens = step_tokens_,
                                             .sequences = step_sequences_,
                                             .logit_rows = step_logit_rows_,
                                             .requests = step_requests_});
  // The device is busy: look at the tokens of the step before.
  deliver_all_text();
  if (result) result = executable_->wait();
  if (!result) {
    fail_step(result.error());
    finish_stopped();
    return true;
  }
  ++steps_;
  measure_step(seconds_between(started, Clock::now()));
  complete_step();
  return true;
}

// Too large for the memory that is left: go on with smaller chunks.
bool Scheduler::shrink_chunks(const Error& error, Bucket bucket) {
  if (error.code != ErrorCode::kOutOfMemory || bucket.kind != PlanKind::kPrefill || options_.deterministic)
    return false;
  max_rows_ = largest_decode_bucket();
  for (int64_t rows : kPrefillRows) {
    if (rows < bucket.rows) max_rows_ = rows;
  }
  return true;
}

// ---- choosing ----

void Scheduler::finish_cancelled() {
  for (auto* list : {&running_, &waiting_}) {
    for (size_t i = list->size(); i-- > 0;) {
      if ((*list)[i]->output->cancelled()) finish(*(*list)[i], FinishReason::kCancelled);
    }
  }
}

void Scheduler::admit() {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < options_.max_sequences &&
         (!admission_blocked_ || running_.empty())) {
    Sequence& s = *waiting_.front();
    // Deterministic mode computes generated tokens again one by one, as the first time.
    s.prefill_end = options_.deterministic ? s.prompt_tokens : s.size();
    // The last token is always computed: its logits are wanted.
    const int64_t limit = s.all_rows ? 0 : s.prefill_end - 1;
    share_prefixes();
    s.seen_pages = kv_.inserted_pages();
    const KvCache::Miss miss = s.admitted_before ? KvCache::Miss() : kv_.explain_miss(s.tokens, limit, grid_);
    if (!running_.empty() && !fits(s, limit)) {
      admission_blocked_ = true;
      break;
    }
    const Clock::time_point admitted = Clock::now();
    s.computed = s.shared = adopt_prefix(s, limit, s.table);
    if (!s.admitted_before) {
      s.admitted_before = true;
      s.prefill_started = admitted;  // what comes back from host memory takes its time
      s.usage.queue_seconds = seconds_between(s.submitted, s.prefill_started);
      s.usage.cached_tokens = s.computed;
      s.usage.miss = s.all_rows ? CacheMiss::kUnused : miss.reason;
      s.usage.miss_position = miss.position;
    }
    running_.push_back(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
    std::ranges::sort(running_, {}, [](const SequencePtr& p) { return p->id; });
  }
}

// Are there pages for all tokens that the running sequences and the candidate have now, and for one more of each? What
// the candidate finds in the cache takes room as if it were computed, unless others use it.
bool Scheduler::fits(const Sequence& candidate, int64_t limit) {
  const std::vector<int64_t> shared = kv_.shared_pages(candidate.tokens, limit, grid_);
  for (int64_t g = 0; g < kv_.groups(); ++g) {
    const auto i = static_cast<size_t>(g);
    const auto missing = [&](const Sequence& s, int64_t held) {
      return std::max<int64_t>(0, kv_.pages_needed(g, s.size() + 1, grid_ + options_.prefill_rows) - held);
    };
    int64_t pages = missing(candidate, shared[i]);
    for (const SequencePtr& s : running_) pages += missing(*s, std::ssize(s->table.pages[i]) - s->table.dropped[i]);
    if (pages > kv_.available(g)) return false;
  }
  return true;
}

int64_t Scheduler::adopt_prefix(Sequence& s, int64_t limit, PageTable& table) {
  const int64_t before = kv_.returned_tokens();
  const int64_t adopted = kv_.adopt_prefix(s.tokens, limit, grid_, table);
  s.usage.returned_tokens += kv_.returned_tokens() - before;
  return adopted;
}

void Scheduler::choose_step() {
  step_.clear();
  chunk_ = nullptr;
  if (std::ranges::count_if(running_, [](const SequencePtr& s) { return s->in_prefill(); }) > 1) share_prefixes();
  for (const SequencePtr& s : running_) {
    if (!s->in_prefill()) {
      s->rows = 1;
      step_.push_back(s.get());
    } else if (s->output->unread_logits() < kUnreadLogits) {
      // The oldest prompt, and in every other chunk the one that is nearest to its end: a short one does not wait for
      // all of a long one.
      const auto left = [](const Sequence& p) { return p.prefill_end - p.computed; };
      if (chunk_ == nullptr || (shortest_prompt_next_ && left(*s) < left(*chunk_))) chunk_ = s.get();
    }
  }
  if (chunk_ == nullptr || step_.empty()) owed_seconds_ = 0;
  if (owed_seconds_ > 0 && !options_.deterministic) chunk_ = nullptr;
  if (chunk_ != nullptr) shortest_prompt_next_ = !shortest_prompt_next_ && !options_.deterministic;
  if (options_.deterministic) {
    // Prompts and answers take turns; answers among themselves too.
    if (chunk_ != nullptr && (step_.empty() || !last_step_was_prefill_)) {
      step_.clear();
    } else {
      chunk_ = nullptr;
      if (static_cast<int64_t>(step_.size()) > kDeterministicDecodeRows) {
        std::ranges::sort(step_, {}, [](const Sequence* s) { return std::pair(s->last_step, s->id); });
        step_.resize(kDeterministicDecodeRows);
      }
    }
  }
  if (chunk_ != nullptr) {
    catch_up(*chunk_);
    chunk_->rows = chunk_rows(*chunk_, static_cast<int64_t>(step_.size()));
    step_.push_back(chunk_);
  }
  last_step_was_prefill_ = chunk_ != nullptr;

  // The oldest first: whoever has to give way is younger and was not looked at yet.
  std::ranges::sort(step_, {}, &Sequence::id);
  for (size_t i = 0; i < step_.size(); ++i) {
    if (step_[i] != nullptr) reserve(*step_[i], step_[i]->rows);
  }
  std::erase(step_, nullptr);
}

void Scheduler::catch_up(Sequence& s) {
  if (s.all_rows || s.seen_pages == kv_.inserted_pages()) return;
  s.seen_pages = kv_.inserted_pages();
  const int64_t before = s.computed;
  if (kv_.cached_prefix(s.tokens, s.prefill_end - 1, grid_) <= before) return;
  // What it has stays until there is more: pages in the host's memory may find no room, or not come back.
  PageTable table = kv_.make_table(static_cast<int64_t>(s.tokens.capacity()));
  const int64_t adopted = adopt_prefix(s, s.prefill_end - 1, table);
  if (adopted <= before) return kv_.release(table);
  std::swap(table, s.table);
  kv_.release(table);
  s.computed = s.shared = adopted;
  if (s.preemptions == 0) s.usage.cached_tokens += s.computed - before;
}

int64_t Scheduler::chunk_rows(const Sequence& sequence, int64_t decode_rows) const {
  const int64_t left = sequence.prefill_end - sequence.computed;
  if (options_.deterministic) {
    const int64_t grid = sequence.all_rows ? kMaxLogitRows : kPrefillGrid;
    return std::min(left, grid - sequence.computed % grid);
  }
  // The rows of both together fill a bucket, if that leaves enough for the chunk.
  int64_t rows = options_.prefill_rows;
  if (rows > 2 * decode_rows) rows -= decode_rows;
  // What beginnings of prompts take tells nothing of what a prompt takes that goes on deep in a cached one.
  double rate = sequence.rows_per_second;
  if (rate == 0 && sequence.computed < kDeep) rate = shallow_rows_per_second_;
  const auto in = [&](double seconds) { return static_cast<int64_t>(std::min(rate * seconds, 1e6)); };
  if (decode_rows > 0) {
    const int64_t least = std::clamp(in(kLongestMixedStepSeconds), kLeastChunkRows, kEfficientChunk);
    rows = std::min(rows, std::max(least, in(kMixedStepSeconds)));
  } else if (rate > 0) {
    rows = std::min(rows, std::max(kEfficientLoneChunk, in(kLoneStepSeconds)));
  }
  rows = std::min(rows, max_rows_ - decode_rows);
  if (sequence.all_rows) rows = std::min(rows, kMaxLogitRows - decode_rows);
  return std::clamp<int64_t>(rows, 1, left);
}

void Scheduler::measure_step(double seconds) {
  const auto answers = static_cast<double>(step_.size()) - (chunk_ != nullptr ? 1 : 0);
  if (chunk_ == nullptr) decode_seconds_ = seconds, decode_answers_ = answers;
  // They went on by one token, which takes that much alone: rather too little, until it is measured again.
  const double served = decode_seconds_ * std::min(1.0, answers / std::max(1.0, decode_answers_));
  owed_seconds_ = answers > 0 ? std::max(0.0, owed_seconds_ + kDecodeShare * seconds - served) : 0;
  if (chunk_ == nullptr) return;
  const auto rows = static_cast<int64_t>(step_tokens_.size());
  const double rate = static_cast<double>(rows) / std::max(1e-6, seconds);
  chunk_->rows_per_second = rate;
  // The end of a prompt may be small, and slow for that, however many answers ran beside it; the next one must not be
  // cut up because of it.
  if (chunk_->computed < kDeep && (chunk_->rows >= kLeastChunkRows || rate > shallow_rows_per_second_)) {
    shallow_rows_per_second_ = rate;
  }
}

bool Scheduler::reserve(Sequence& sequence, int64_t rows) {
  // From the last multiple of the grid: what a prefix that ends there must see is kept for the tree.
  kv_.drop_behind(sequence.table, sequence.computed / grid_ * grid_);
  while (!kv_.extend(sequence.table, sequence.computed + rows)) {
    Sequence& youngest = *running_.back();
    HEARTH_CHECK(running_.size() > 1, "a sequence of {} tokens is alone and has no pages left", sequence.size());
    preempt(youngest);
    if (&youngest == &sequence) return false;
  }
  return true;
}

void Scheduler::preempt(Sequence& sequence) {
  ++changes_;
  keep_prefix(sequence);
  kv_.release(sequence.table);
  sequence.computed = sequence.shared = 0;
  ++sequence.preemptions;
  std::ranges::replace(step_, &sequence, nullptr);
  if (chunk_ == &sequence) chunk_ = nullptr;
  const auto it = std::ranges::find(running_, &sequence, &SequencePtr::get);
  SequencePtr moved = std::move(*it);
  running_.erase(it);
  const auto place = std::ranges::lower_bound(waiting_, moved->id, {}, [](const SequencePtr& p) { return p->id; });
  waiting_.insert(place, std::move(moved));
  admission_blocked_ = true;
}

Bucket Scheduler::assemble() {
  // Answers first, the chunk last.
  std::ranges::sort(step_, {}, [&](const Sequence* s) { return std::pair(s == chunk_, s->id); });
  step_tokens_.clear();
  step_logit_rows_.clear();
  step_requests_.clear();
  step_sequences_.resize(step_.size());
  for (size_t i = 0; i < step_.size(); ++i) {
    Sequence& s = *step_[i];
    const auto first_row = static_cast<int32_t>(step_tokens_.size());
    const auto begin = s.tokens.begin() + s.computed;
    step_tokens_.insert(step_tokens_.end(), begin, begin + s.rows);
    StepSequence& out = step_sequences_[i];
    out.first_row = first_row;
    out.rows = static_cast<int32_t>(s.rows);
    out.position = static_cast<int32_t>(s.computed);
    out.pages.resize(s.table.pages.size());
    const auto pages = static_cast<size_t>(ceil_div(s.computed + s.rows, kPageTokens));
    for (size_t g = 0; g < out.pages.size(); ++g) out.pages[g] = std::span(s.table.pages[g]).first(pages);

    s.last_step = steps_;
    s.logit_rows = 0;
    if (&s == chunk_ && s.all_rows) {
      s.logit_rows = s.rows;
    } else if (s.computed + s.rows == s.size()) {
      s.logit_rows = 1;
    }
    s.first_logit_row = static_cast<int64_t>(step_logit_rows_.size());
    for (int64_t row = s.rows - s.logit_rows; row < s.rows; ++row) {
      step_logit_rows_.push_back(first_row + static_cast<int32_t>(row));
      step_requests_.emplace_back();
    }
    if (s.computed + s.rows < s.size()) continue;
    const SamplingOptions& options = s.request.sampling;
    sampler_.find_changes(options, s.tokens, s.changes);
    CandidateRequest& request = step_requests_.back();
    if (options.temperature > 0) request.temperature = options.temperature;
    // More than a device gives: the token is drawn by all logits.
    if (static_cast<int64_t>(s.changes.tokens.size()) <= kMaxWantedLogits) request.tokens = s.changes.tokens;
  }
  const auto rows = static_cast<int64_t>(step_tokens_.size());
  const bool deep = chunk_ != nullptr && chunk_->computed >= kDeep &&
                    (rows > kFewRows || (chunk_->rows - 1) * chunk_->computed >= kManyKeys);
  const bool prefill = rows > largest_decode_bucket() || deep || (options_.deterministic && chunk_ != nullptr);
  return bucket_for(prefill ? PlanKind::kPrefill : PlanKind::kDecode, rows);
}

// ---- after the step ----

void Scheduler::complete_step() {
  for (size_t i = 0; i < step_.size(); ++i) {
    Sequence& s = *step_[i];
    if (s.stop_index >= 0) {
      // It ended while this step ran: what the step added is rolled back.
      kv_.truncate(s.table, s.computed);
      finish(s, FinishReason::kStopString);
      continue;
    }
    const bool was_prefill = s.in_prefill();
    const int64_t first_position = s.computed;
    s.computed += s.rows;
    if (was_prefill) {
      s.usage.computed_tokens += std::max<int64_t>(0, std::min(s.computed, s.prompt_tokens) - first_position);
      deliver_prompt(s, first_position);
    }
    if (step_[i] == nullptr || s.computed < s.size()) continue;
    s.request.embedding ? deliver_embedding(s) : draw(s);
    // Others can use the prompt from now on; a sequence that is gone has kept it already.
    if (was_prefill && step_[i] != nullptr) keep_prefix(s);
  }
  finish_stopped();
}

void Scheduler::draw(Sequence& s) {
  found_ = executable_->candidates(s.first_logit_row + s.logit_rows - 1);
  logits_.clear();
  Result<int32_t> token = draw_token(s);
  const bool poisoned = !token && token.error().code == ErrorCode::kInternal;
  if (s.request.max_tokens == 0 && !poisoned) {
    s.usage.prefill_seconds = seconds_between(s.prefill_started, Clock::now());
    return finish(s, FinishReason::kLength);
  }
  if (!token) {
    fail_sequence(s, std::move(token).error());
    // Its prefix may have brought the fault along: nothing that is cached is trusted any longer.
    if (poisoned) kv_.clear();
    return;
  }
  if (s.constraint && !s.constraint->allows(*token)) {
    const std::optional<int32_t> other = draw_allowed(s);
    if (!other) return;
    token = *other;
  }
  const Clock::time_point now = Clock::now();
  if (s.usage.generated_tokens++ == 0) {
    s.first_token = now;
    s.usage.prefill_seconds = seconds_between(s.prefill_started, now);
  }
  s.usage.decode_seconds = seconds_between(s.first_token, now);

  if (!s.request.ignore_end && model_.text->ends_generation(*token)) return finish(s, FinishReason::kEnd);
  if (std::ranges::find(s.request.stop_tokens, *token) != s.request.stop_tokens.end()) {
    return finish(s, FinishReason::kStopToken);
  }
  if (s.constraint) s.constraint->accept(*token);
  s.tokens.push_back(*token);
  s.pending.token = *token;
  s.pending.seconds = seconds_between(s.submitted, now);
  if (const int32_t top = s.request.top_logprobs;
      top >= 0 && !(found_ && sampler_.logprobs(*found_, s.changes, *token, top, s.pending.logprobs))) {
    if (Result<void> read = read_logits(s); !read) return fail_sequence(s, std::move(read).error());
    sampler_.logprobs(logits_, *token, top, s.pending.logprobs);
  }
  s.text_pending = true;
  if (s.usage.generated_tokens == s.request.max_tokens) return finish(s, FinishReason::kLength);
  if (s.size() == model_.sequence_tokens) return finish(s, FinishReason::kContextFull);
}

Result<int32_t> Scheduler::draw_token(const Sequence& s) {
  if (found_) {
    HEARTH_ASSIGN(const std::optional<int32_t> token, sampler_.draw(*found_, s.request.sampling, s.changes, s.size()));
    if (token) return *token;
  }
  HEARTH_TRY(read_logits(s));
  return sampler_.draw(logits_, s.request.sampling, s.changes, s.size());
}

Result<void> Scheduler::read_logits(const Sequence& s) {
  if (!logits_.empty()) return {};
  logits_.resize(static_cast<size_t>(model_.vocab_size));
  return executable_->read_logits(s.first_logit_row + s.logit_rows - 1, logits_);
}

std::optional<int32_t> Scheduler::draw_allowed(Sequence& s) {
  allowed_.resize(static_cast<size_t>(ceil_div<int64_t>(model_.vocab_size, 64)));
  if (!s.constraint->mask(allowed_)) {
    if (s.constraint->complete()) {
      finish(s, FinishReason::kEnd);
    } else {
      fail_sequence(s, fail(ErrorCode::kUnsupported,
                            "constrain the answer: after {} tokens no token of the vocabulary goes on with the grammar",
                            s.generated()));
    }
    return std::nullopt;
  }
  if (found_) {
    const auto token = sampler_.draw_allowed(*found_, allowed_, s.request.sampling, s.changes, s.size());
    if (token) return token;
  }
  Result<void> read = read_logits(s);
  Result<int32_t> token = read ? sampler_.draw_allowed(logits_, allowed_, s.request.sampling, s.changes, s.size())
                               : std::move(read).error();
  if (token) return *token;
  fail_sequence(s, std::move(token).error());
  return std::nullopt;
}

Result<void> Scheduler::read_prompt(Sequence& s, int64_t first_position) {
  const int64_t first_row_position = first_position + s.rows - s.logit_rows;
  const int64_t begin = std::max(first_row_position, s.rows_read);
  const int64_t end = std::min(s.computed, s.prompt_tokens);
  if (begin >= end) return {};
  const int64_t row = s.first_logit_row + begin - first_row_position;
  s.rows_read = end;
  if (s.request.embedding) {
    hidden_.resize(static_cast<size_t>((end - begin) * embedder_->width()));
    HEARTH_TRY(executable_->read_hidden(row, hidden_));
    embedder_->add(hidden_, s.pooled);
    return {};
  }
  PromptLogits block{.position = begin, .rows = end - begin};
  block.logits.resize(static_cast<size_t>(block.rows * model_.vocab_size));
  HEARTH_TRY(executable_->read_logits(row, block.logits));
  s.output->push(std::move(block));
  return {};
}

void Scheduler::deliver_prompt(Sequence& s, int64_t first_position) {
  if (s.request.prompt_logits || s.request.embedding) {
    if (Result<void> read = read_prompt(s, first_position); !read) return fail_sequence(s, std::move(read).error());
  }
  if (s.generated() == 0) {
    s.output->push(PromptProgress{.done = s.computed, .total = s.prompt_tokens});
  }
}

void Scheduler::deliver_embedding(Sequence& s) {
  Result<std::vector<float>> values = embedder_->finish(s.pooled);
  if (!values) {
    fail_sequence(s, std::move(values).error());
    return kv_.clear();  // as draw() does
  }
  s.usage.prefill_seconds = seconds_between(s.prefill_started, Clock::now());
  s.output->push(Embedding{.values = *std::move(values)});
  finish(s, FinishReason::kLength);
}

void Scheduler::deliver_text(Sequence& s) {
  if (!s.text_pending) return;
  s.text_pending = false;
  StopMatcher::Output out = s.stop.push(s.utf8.push(model_.text->piece(s.pending.token, s.request.special_text)));
  s.pending.text = std::move(out.text);
  s.stop_index = out.stop_index;
  s.output->push(std::move(s.pending));
  s.pending = {};
}

void Scheduler::deliver_all_text() {
  for (const SequencePtr& s : running_) deliver_text(*s);
  for (const SequencePtr& s : waiting_) deliver_text(*s);
}

// Those that were not part of the step.
void Scheduler::finish_stopped() {
  for (auto* list : {&running_, &waiting_}) {
    for (size_t i = list->size(); i-- > 0;) {
      if ((*list)[i]->stop_index >= 0) finish(*(*list)[i], FinishReason::kStopString);
    }
  }
}

// ---- ending ----

void Scheduler::finish(Sequence& s, FinishReason reason) {
  deliver_text(s);
  Done done{.reason = reason};
  if (s.stop_index < 0) {
    StopMatcher::Output out = s.stop.push(s.utf8.finish());
    s.stop_index = out.stop_index;
    done.text = std::move(out.text);
    if (s.stop_index < 0) done.text += s.stop.finish();
  }
  if (s.stop_index >= 0 && reason != FinishReason::kCancelled) {
    done.reason = FinishReason::kStopString;
    done.stop_index = s.stop_index;
  }
  done.usage = s.usage;
  s.output->push(std::move(done));
  keep_prefix(s);
  remove(s);
}

void Scheduler::fail_sequence(Sequence& s, Error error) {
  deliver_text(s);
  s.output->push(Failed{.error = std::move(error)});
  remove(s);
}

void Scheduler::fail_step(const Error& error) {
  for (size_t i = 0; i < step_.size(); ++i) {
    if (step_[i] == nullptr) continue;
    if (step_[i]->stop_index >= 0) {
      finish(*step_[i], FinishReason::kStopString);
    } else {
      fail_sequence(*step_[i], Error(error).with_context(fmt::format("run a step of {} rows", step_tokens_.size())));
    }
  }
}

void Scheduler::remove(Sequence& s) {
  ++changes_;
  kv_.release(s.table);
  admission_blocked_ = false;
  std::ranges::replace(step_, &s, nullptr);
  if (chunk_ == &s) chunk_ = nullptr;
  for (auto* list : {&running_, &waiting_}) {
    const auto it = std::ranges::find(*list, &s, &SequencePtr::get);
    if (it == list->end()) continue;
    list->erase(it);
    return;
  }
}

// Deterministic mode keeps prompts only: a generated token was computed by another kernel than a prompt's.
void Scheduler::keep_prefix(Sequence& s) {
  if (s.all_rows) return;
  const int64_t tokens = options_.deterministic ? std::min(s.computed, s.prompt_tokens) : s.computed;
  kv_.insert(std::span(s.tokens).first(static_cast<size_t>(tokens)), grid_, s.table);
}

void Scheduler::share_prefixes() {
  for (const SequencePtr& s : running_) {
    const int64_t whole = s->computed / grid_ * grid_;
    if (!s->in_prefill() || s->all_rows || whole <= s->shared) continue;
    s->shared = whole;
    kv_.insert(std::span(s->tokens).first(static_cast<size_t>(whole)), grid_, s->table, /*whole=*/false);
  }
}

void Scheduler::fail_all(const Error& error) {
  for (auto* list : {&running_, &waiting_}) {
    while (!list->empty()) fail_sequence(*list->back(), error);
  }
}

void Scheduler::cancel_all() {
  for (auto* list : {&running_, &waiting_}) {
    while (!list->empty()) finish(*list->back(), FinishReason::kCancelled);
  }
}

Result<int64_t> Scheduler::save_cache(const std::string& path, const std::function<void()>& progress) const {
  return write_cache_file(path, model_.identity, kv_, store_, progress);
}

Result<int64_t> Scheduler::restore_cache(const std::string& path, const std::function<void()>& progress) {
  HEARTH_ASSIGN(const RestoredCache restored, read_cache_file(path, model_.identity, kv_, store_, progress));
  if (!options_.deterministic) {
    for (const std::vector<int32_t>& tokens : restored.sequences) model_.text->remember(tokens);
  }
  admission_blocked_ = false;
  return restored.tokens;
}

EngineStats Scheduler::stats() const {
  const KvCacheStats pages = kv_.stats();
  size_t host_bytes = 0, host_bytes_total = 0;
  for (int64_t g = 0; g < kv_.groups(); ++g) {
    host_bytes += static_cast<size_t>(kv_.host_cached(g)) * store_.page_bytes(g);
    host_bytes_total += static_cast<size_t>(store_.host_pages(g)) * store_.page_bytes(g);
  }
  return {.active_sequences = static_cast<int64_t>(running_.size()),
          .queued_requests = static_cast<int64_t>(waiting_.size()),
          .pages_total = pages.total,
          .pages_in_use = pages.in_use,
          .pages_cached = pages.cached,
          .host_pages_total = pages.host_total,
          .host_pages_cached = pages.host_cached,
          .host_bytes_total = host_bytes_total,
          .host_bytes_cached = host_bytes,
          .tree_bytes = kv_.tree().bytes(),
          .steps = steps_};
}

}  // namespace hearth
