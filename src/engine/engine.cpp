#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {
namespace {

// How much longer a step may take than its rows would at the best pace that was seen. Rows of a prompt take longer the
// deeper in it they are.
constexpr double kPatience = 8;

class EngineThread final : public Engine {
 public:
  EngineThread(std::unique_ptr<Scheduler> scheduler, const EngineOptions& options, std::shared_ptr<void> keep)
      : keep_(std::move(keep)), options_(options), scheduler_(std::move(scheduler)), stats_(scheduler_->stats()) {
    thread_ = std::thread([this] { run(); });
  }

  ~EngineThread() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    doorbell_->ring();
    thread_.join();
  }

  Result<Generation> submit(Request request) override {
    return guarded("queue a request", [&] { return queue(std::move(request)); });
  }

  EngineStats stats() const override {
    std::lock_guard lock(mutex_);
    EngineStats stats = stats_;
    stats.queued_requests += static_cast<int64_t>(submitted_.size());
    stats.quiet_seconds = doorbell_->quiet_seconds();
    stats.stalled = doorbell_->stalled();
    stats.task = task_;
    return stats;
  }

  Result<void> clear_cache() override {
    return between_steps("clear the cache", [this]() -> Result<void> {
      scheduler_->clear_cache();
      return {};
    });
  }
  Result<int64_t> save_cache(const std::string& path) override {
    return between_steps("save the cache", [=, this] { return scheduler_->save_cache(path, progress_); });
  }
  Result<int64_t> restore_cache(const std::string& path) override {
    return between_steps("restore the cache", [=, this] { return scheduler_->restore_cache(path, progress_); });
  }

 private:
  // Has the engine thread call f() between two steps, and waits for the Result. Once nobody waits any longer, f is not
  // called; it may be running still, and must own what it uses.
  template <class F>
  std::invoke_result_t<F> between_steps(const char* what, F f) {
    if (doorbell_->stalled()) return doorbell_->error();
    auto promise = std::make_shared<std::promise<std::invoke_result_t<F>>>();
    auto result = promise->get_future();
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back([this, what, f = std::move(f), waiting = std::weak_ptr(promise)] {
        const auto promise = waiting.lock();
        if (!promise) return;
        task_ = what;
        auto result = guarded(what, f);
        publish();
        promise->set_value(std::move(result));
      });
    }
    doorbell_->ring();
    while (result.wait_for(doorbell_->until_stall()) != std::future_status::ready) {
      if (doorbell_->stalled()) return doorbell_->error();
    }
    return result.get();
  }

  Result<Generation> queue(Request request) {
    if (doorbell_->stalled()) return doorbell_->error();
    HEARTH_TRY(scheduler_->check(request));
    HEARTH_ASSIGN(StopMatcher stop, StopMatcher::create(request.stop_strings));
    auto state = std::make_shared<Generation::State>(doorbell_);
    auto sequence = std::make_unique<Sequence>(std::move(request), std::move(stop), state);
    {
      std::lock_guard lock(mutex_);
      submitted_.push_back(std::move(sequence));
    }
    doorbell_->ring();
    return Generation(std::move(state));
  }

  // One turn of the scheduler. Memory that runs out in the middle of one ends the sequences, not the engine.
  bool turn(std::vector<std::unique_ptr<Sequence>>& arrived) {
    bool busy = true;
    task_ = "run a step";
    const int64_t steps = scheduler_->steps();
    const auto start = std::chrono::steady_clock::now();
    Result<void> result = guarded(task_.load(), [&]() -> Result<void> {
      for (auto& sequence : arrived) scheduler_->add(std::move(sequence));
      busy = scheduler_->step();
      return {};
    });
    if (!result) {
      scheduler_->fail_all(result.error());
      for (auto& sequence : arrived) {  // those that were not handed over
        if (sequence) sequence->output->push(Failed{.error = result.error()});
      }
    }
    arrived.clear();
    if (scheduler_->steps() > steps) learn_pace(std::chrono::steady_clock::now() - start);
    return busy;
  }

  // A slow processor may take minutes for the largest step.
  void learn_pace(std::chrono::duration<double> step) {
    longest_step_ = std::max(longest_step_, step.count());
    best_pace_ = std::min(best_pace_, step.count() / static_cast<double>(scheduler_->step_rows()));
    const auto most_rows = static_cast<double>(options_.prefill_rows + options_.max_sequences);
    doorbell_->set_patience(std::max(options_.stall_seconds, kPatience * most_rows * best_pace_));
  }

  void run() {
    std::vector<std::unique_ptr<Sequence>> arrived;
    std::vector<std::function<void()>> tasks;
    while (true) {
      {
        std::lock_guard lock(mutex_);
        tasks.swap(tasks_);
      }
      for (const auto& task : tasks) {
        task();
        doorbell_->progress();
      }
      tasks.clear();
      bool stop = false;
      {
        std::lock_guard lock(mutex_);
        arrived.swap(submitted_);
        stats_.queued_requests += static_cast<int64_t>(arrived.size());  // until the next step counts them
        stop = stop_;
      }
      if (stop) {
        for (auto& sequence : arrived) scheduler_->add(std::move(sequence));
        return scheduler_->cancel_all();
      }
      const bool busy = turn(arrived);
      publish();
      doorbell_->progress();
      if (!busy) doorbell_->wait();
    }
  }

  void publish() {
    std::lock_guard lock(mutex_);
    stats_ = scheduler_->stats();
    stats_.longest_step_seconds = longest_step_;
  }

  std::shared_ptr<void> keep_;  // released last
  std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();
  const std::function<void()> progress_ = [this] { doorbell_->progress(); };
  const EngineOptions options_;
  std::atomic<const char*> task_ = "";
  // The engine thread's: seconds for a row, and for the longest step.
  double best_pace_ = std::numeric_limits<double>::infinity();
  double longest_step_ = 0;
  std::unique_ptr<Scheduler> scheduler_;  // the engine thread's, but for check(), which changes nothing

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Sequence>> submitted_;  // this and all below: guarded by mutex_
  std::vector<std::function<void()>> tasks_;
  EngineStats stats_;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(EngineModel model, const EngineOptions& options,
                                            std::shared_ptr<void> keep) {
  return guarded("start the engine", [&]() -> Result<std::unique_ptr<Engine>> {
    HEARTH_ASSIGN(auto scheduler, Scheduler::create(std::move(model), options));
    return std::unique_ptr<Engine>(std::make_unique<EngineThread>(std::move(scheduler), options, std::move(keep)));
  });
}

}  // namespace hearth
