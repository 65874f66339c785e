#include "engine/engine.h"

#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth {
namespace {

class EngineThread final : public Engine {
 public:
  EngineThread(std::unique_ptr<Scheduler> scheduler, std::shared_ptr<void> keep)
      : keep_(std::move(keep)), scheduler_(std::move(scheduler)), stats_(scheduler_->stats()) {
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
    return stats;
  }

  void clear_cache() override {
    between_steps([](Scheduler& scheduler) {
      scheduler.clear_cache();
      return true;
    });
  }
  Result<int64_t> save_cache(const std::string& path) override {
    return between_steps(
        [&](Scheduler& scheduler) { return guarded("save the cache", [&] { return scheduler.save_cache(path); }); });
  }
  Result<int64_t> restore_cache(const std::string& path) override {
    return between_steps([&](Scheduler& scheduler) {
      return guarded("restore the cache", [&] { return scheduler.restore_cache(path); });
    });
  }

 private:
  // Has the engine thread call f(scheduler) between two steps, and waits for it.
  template <class F>
  std::invoke_result_t<F, Scheduler&> between_steps(F f) {
    std::promise<std::invoke_result_t<F, Scheduler&>> promise;
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back([&] {
        auto result = f(*scheduler_);
        publish();
        promise.set_value(std::move(result));
      });
    }
    doorbell_->ring();
    return promise.get_future().get();
  }

  Result<Generation> queue(Request request) {
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
    Result<void> result = guarded("run a step", [&]() -> Result<void> {
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
    return busy;
  }

  void run() {
    std::vector<std::unique_ptr<Sequence>> arrived;
    std::vector<std::function<void()>> tasks;
    while (true) {
      {
        std::lock_guard lock(mutex_);
        tasks.swap(tasks_);
      }
      for (const auto& task : tasks) task();
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
      if (!busy) doorbell_->wait();
    }
  }

  void publish() {
    std::lock_guard lock(mutex_);
    stats_ = scheduler_->stats();
  }

  std::shared_ptr<void> keep_;  // released last
  std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();
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
    return std::unique_ptr<Engine>(std::make_unique<EngineThread>(std::move(scheduler), std::move(keep)));
  });
}

}  // namespace hearth
