// The model that is served: loading, warm, how much it may be asked at once, what it has done.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hearth/engine.h"
#include "hearth/model.h"
#include "hearth/text.h"
#include "server/errors.h"

namespace hearth::server {

// Sums since the start.
struct ModelCounters {
  std::atomic<int64_t> answers = 0;    // generations that ran to their end
  std::atomic<int64_t> cancelled = 0;  // whose client went away, or that the stop of the server cut off
  std::atomic<int64_t> failed = 0;
  std::atomic<int64_t> prompt_tokens = 0;
  std::atomic<int64_t> cached_tokens = 0;  // of the prompts, not computed
  std::atomic<int64_t> generated_tokens = 0;
  std::atomic<int64_t> queue_microseconds = 0;
  std::atomic<int64_t> prefill_microseconds = 0;
  std::atomic<int64_t> decode_microseconds = 0;
};

struct ServedModel {
  std::string id;  // as clients see it
  std::shared_ptr<Model> model;
  std::unique_ptr<Engine> engine;
  EngineOptions options;
  std::string cache_file;              // "": the prefix cache is not kept
  std::vector<std::string> notes;      // what the user should know of how it was loaded
  int64_t created = 0;                 // seconds since 1970
  bool template_shows_tools = false;   // else tools that a client offers would be lost
  int64_t most_in_flight = 0;          // generations that run or wait; more are refused
  std::atomic<int64_t> in_flight = 0;  // generations that run or wait
  ModelCounters counters;

  const Text& text() const { return model->text(); }
};

struct LoadOptions {
  std::string path;
  ModelOptions model;
  EngineOptions engine;
  std::string id;      // "": the name of the file without its ending
  int64_t queue = 64;  // requests that may wait
  // Compare one token with the reference backend; none: only models that take no more than a few seconds for it.
  std::optional<bool> check;
  std::string cache_file;  // what the prefix cache holds is there from the last time; "": nowhere
};

// Opens the model, starts its engine and lets it answer once, so that the first client does not wait for first uses.
Result<std::shared_ptr<ServedModel>> load_model(const LoadOptions& options);

// What get() gives: safe from any thread. One model for now; it answers to every name.
class Models {
 public:
  explicit Models(LoadOptions options);
  ~Models();

  // Loads in a thread of its own.
  void start_loading();

  // kUnavailable while it loads or when it could not be loaded.
  Answer<std::shared_ptr<ServedModel>> get() const;
  // The id it has or will have.
  const std::string& id() const { return options_.id; }
  double progress() const { return progress_; }  // of loading, 0 to 1
  // Set once loading failed.
  std::optional<Error> failure() const;

 private:
  LoadOptions options_;
  std::atomic<double> progress_ = 0;
  mutable std::mutex mutex_;
  std::shared_ptr<ServedModel> model_;  // this and failure_: guarded by mutex_
  std::optional<Error> failure_;
  std::thread loader_;
};

}  // namespace hearth::server
