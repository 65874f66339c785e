// The models that are served: which answers to a name, loading when one is wanted, what each has done.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hearth/engine.h"
#include "hearth/model.h"
#include "hearth/model_file.h"
#include "hearth/text.h"
#include "server/errors.h"

namespace hearth::server {

// Sums since the start.
struct ModelCounters {
  std::atomic<int64_t> answers = 0;    // generations that ran to their end
  std::atomic<int64_t> cancelled = 0;  // whose client went away, or that the stop of the server cut off
  std::atomic<int64_t> failed = 0;
  std::atomic<int64_t> prompt_tokens = 0;
  std::atomic<int64_t> cached_tokens = 0;    // of the prompts, not computed
  std::atomic<int64_t> returned_tokens = 0;  // whose pages came back from host memory
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
  std::shared_ptr<ModelCounters> counters = std::make_shared<ModelCounters>();

  const Text& text() const { return model->text(); }
};

// So many generations of a model that run or wait. They make room for others when this is gone.
class Places {
 public:
  // kOverloaded when the model has too many then.
  static Answer<Places> take(std::shared_ptr<ServedModel> model, int64_t count);
  Places(Places&& other) noexcept = default;
  Places& operator=(Places&&) = delete;
  ~Places() {
    if (model_) model_->in_flight -= count_;
  }
  int64_t count() const { return count_; }

 private:
  Places(std::shared_ptr<ServedModel> model, int64_t count) : model_(std::move(model)), count_(count) {}
  std::shared_ptr<ServedModel> model_;
  int64_t count_;
};

struct LoadOptions {
  std::string path;
  ModelOptions model;
  EngineOptions engine;
  std::string id;      // "": the name of the file without its ending and the number of its part
  int64_t queue = 64;  // requests that may wait
  // Compare one token with the reference backend; none: only models that take no more than a few seconds for it.
  std::optional<bool> check;
  std::string cache_file;  // what the prefix cache holds is there from the last time; "": nowhere
};

// Opens the model, starts its engine and lets it answer once, so that the first client does not wait for first uses.
Result<std::shared_ptr<ServedModel>> load_model(const LoadOptions& options);

struct ModelsOptions {
  double idle_unload_seconds = 0;                  // a model that nobody used for this long goes; 0: none does
  double longest_wait_seconds = 50;                // of a request, for a model that loads
  std::function<void(const std::string&)> notice;  // what the user should know; called by the loader's thread
  std::function<Result<std::shared_ptr<ServedModel>>(const LoadOptions&)> load = load_model;
};

// The first model is the default: it answers to every name that no other has. One thread loads and unloads, one model
// at a time, and reads what the files of the others tell. When one does not fit into memory, those that nobody uses go,
// the longest unused first. A model that could not be loaded is tried again by the next request for it. Everything but
// add_alias() and start_loading() is safe from any thread, and const to those who only use models.
class Models {
 public:
  explicit Models(LoadOptions only);
  explicit Models(std::vector<LoadOptions> models, ModelsOptions options = {});  // at least one
  ~Models();                                                                     // waits for a model that loads

  // A further name. kUsage when there is no model `id`, or when another model has the name.
  Result<void> add_alias(const std::string& name, const std::string& id);
  // Starts the thread and loads the default model.
  void start_loading();

  // The model of this name; loads it and waits for that. kUnavailable when it cannot be loaded, when loading takes too
  // long, and when alive() says no, which is asked every 100 ms.
  Answer<std::shared_ptr<ServedModel>> get(const std::string& name, const std::function<bool()>& alive) const;
  // The default model if it is loaded; waits for nothing and loads nothing.
  Answer<std::shared_ptr<ServedModel>> get() const;

  enum class Status : uint8_t { kUnloaded, kLoading, kReady, kFailed };
  struct State {
    std::string id;
    std::vector<std::string> aliases;
    Status status = Status::kUnloaded;
    double progress = 0;                 // kLoading: 0 to 1
    std::optional<Error> failure;        // kFailed: of the last attempt
    std::shared_ptr<ServedModel> model;  // kReady
    std::optional<ModelInfo> info;       // once it was loaded, also when it is not now
    ModelFile file;                      // its architecture and parameters: once it was read
    int64_t created = 0;                 // seconds since 1970, of the last load; 0: it never was
    int64_t loads = 0;
    std::shared_ptr<const ModelCounters> counters;
  };
  State state(const std::string& name) const;
  // A model has this name; others mean the default.
  bool has(const std::string& name) const { return find_tagged(name) != nullptr; }
  std::vector<State> states() const;  // the default first

  // Of the default model: the id it has or will have, why it could not be loaded.
  const std::string& id() const { return slots_.front()->options.id; }
  std::optional<Error> failure() const { return state("").failure; }
  size_t count() const { return slots_.size(); }
  // A model is being loaded, which cannot be stopped.
  bool loading() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    LoadOptions options;
    std::vector<std::string> aliases;
    std::shared_ptr<ModelCounters> counters = std::make_shared<ModelCounters>();
    std::atomic<double> progress = 0;
    // Guarded by mutex_.
    std::shared_ptr<ServedModel> model;
    std::optional<Error> failure;
    std::optional<ModelInfo> info;
    ModelFile file;
    int64_t created = 0;
    int64_t loads = 0;     // that succeeded
    int64_t attempts = 0;  // that ended
    int64_t waiting = 0;   // requests that wait for it
    bool wanted = false;   // it is in the queue, or loads
    Clock::time_point last_used;
  };

  Slot* find(const std::string& name) const;         // nullptr: nobody has the name
  Slot* find_tagged(const std::string& name) const;  // ":latest" behind it does not matter
  Slot& choose(const std::string& name) const;
  State state_of(const Slot& slot) const;
  void want(Slot& slot) const;
  void work();
  void load(Slot& slot, std::unique_lock<std::mutex>& lock);
  void read_file(Slot& slot, std::unique_lock<std::mutex>& lock);
  bool unload_longest_unused(std::unique_lock<std::mutex>& lock);
  void unload_idle(std::unique_lock<std::mutex>& lock);
  void unload(Slot& slot, std::unique_lock<std::mutex>& lock, const char* why);
  static bool idle(const Slot& slot);
  void notice(const std::string& text) const;

  ModelsOptions options_;
  std::vector<std::unique_ptr<Slot>> slots_;  // the first is the default
  mutable std::mutex mutex_;
  mutable std::condition_variable work_;       // for the loader: there is something in the queue, or stopping_
  mutable std::condition_variable attempted_;  // for requests: an attempt to load ended
  mutable std::deque<Slot*> queue_;            // guarded by mutex_
  bool stopping_ = false;                      // likewise
  std::thread loader_;
};

}  // namespace hearth::server
