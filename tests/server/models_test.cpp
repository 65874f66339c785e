#include "server/models.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

namespace hearth::server {
namespace {

using namespace std::chrono_literals;

const std::function<bool()> kStays = [] { return true; };

// Stands for a machine on which `room` models fit at a time, and counts what is loaded.
class Shelf {
 public:
  explicit Shelf(int64_t room = 100) : room_(room) {
    static const auto opened = Model::open(HEARTH_MODELS "/pocket-dense.gguf", {.threads = 1, .context_tokens = 512});
    model_ = *opened;
  }

  ModelsOptions options() {
    return {.load = [this](const LoadOptions& options) { return load(options); }};
  }

  std::atomic<int64_t> loads = 0, present = 0;
  std::chrono::milliseconds takes = 0ms;

 private:
  Result<std::shared_ptr<ServedModel>> load(const LoadOptions& options) {
    std::this_thread::sleep_for(takes);
    if (options.path == "broken.gguf") return fail(ErrorCode::kInvalidInput, "it is no model");
    if (present >= room_) return fail(ErrorCode::kOutOfMemory, "there is no room");
    ++loads;
    ++present;
    std::shared_ptr<ServedModel> served(new ServedModel, [this](const ServedModel* gone) {
      delete gone;
      --present;
    });
    served->id = options.id;
    served->model = model_;
    return served;
  }

  int64_t room_;
  std::shared_ptr<Model> model_;
};

std::vector<LoadOptions> paths(std::initializer_list<const char*> names) {
  std::vector<LoadOptions> models;
  for (const char* name : names) models.push_back({.path = name});
  return models;
}

std::vector<Models::Status> statuses(const Models& models) {
  std::vector<Models::Status> all;
  for (const Models::State& state : models.states()) all.push_back(state.status);
  return all;
}
constexpr auto kUnloaded = Models::Status::kUnloaded, kReady = Models::Status::kReady,
               kFailed = Models::Status::kFailed;

TEST(Models, IdsComeFromFilesAndAreDifferent) {
  const Models models(paths({"a/x.gguf", "b/x.gguf", "b/x-00001-of-00003.gguf", "y-0001-of-00003.gguf", "/"}));
  std::vector<std::string> ids;
  for (const Models::State& state : models.states()) ids.push_back(state.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"x", "x-2", "x-3", "y-0001-of-00003", "model"}));
}

TEST(Models, NamesChoose) {
  Models models(paths({"x.gguf", "y.gguf"}));
  ASSERT_TRUE(models.add_alias("claude-y", "y"));
  ASSERT_TRUE(models.add_alias("other", "claude-y"));
  for (const auto& [name, id] : std::vector<std::pair<std::string, std::string>>{{"y", "y"},
                                                                                 {"claude-y", "y"},
                                                                                 {"other", "y"},
                                                                                 {"y:latest", "y"},
                                                                                 {"x", "x"},
                                                                                 {"", "x"},
                                                                                 {"Y", "x"},
                                                                                 {":latest", "x"},
                                                                                 {"y:7b", "x"}}) {
    EXPECT_EQ(models.state(name).id, id) << name;
  }
  EXPECT_EQ(models.add_alias("x", "y").error().code, ErrorCode::kUsage);
  EXPECT_EQ(models.add_alias("z", "what").error().code, ErrorCode::kUsage);
}

TEST(Models, AllWhoWaitGetTheSameModel) {
  Shelf shelf;
  shelf.takes = 200ms;
  Models models(paths({"x.gguf", "y.gguf"}), shelf.options());
  models.start_loading();
  std::vector<std::shared_ptr<ServedModel>> got(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < got.size(); ++i) {
    threads.emplace_back([&, i] {
      if (auto model = models.get(i % 2 == 0 ? "x" : "y", kStays)) got[i] = *model;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shelf.loads, 2);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(got[i]);
    EXPECT_EQ(got[i], got[i % 2]);
    EXPECT_EQ(got[i]->id, i % 2 == 0 ? "x" : "y");
  }
}

TEST(Models, RoomIsMadeByThoseThatNobodyUses) {
  Shelf shelf(2);
  Models models(paths({"x.gguf", "y.gguf", "z.gguf"}), shelf.options());
  models.start_loading();
  ASSERT_TRUE(models.get("x", kStays));
  ASSERT_TRUE(models.get("y", kStays));
  ASSERT_TRUE(models.get("x", kStays));
  auto z = models.get("z", kStays);  // y is the longest unused
  ASSERT_TRUE(z);
  EXPECT_EQ(statuses(models), (std::vector{kReady, kUnloaded, kReady}));
  auto x = models.get("x", kStays);
  auto y = models.get("y", kStays);  // both others are held
  ASSERT_FALSE(y);
  EXPECT_EQ(y.error().kind, Refusal::kUnavailable);
  EXPECT_NE(y.error().message.find("there is no room"), std::string::npos);
  EXPECT_GT(y.error().retry_seconds, 0);
  EXPECT_EQ(statuses(models), (std::vector{kReady, kFailed, kReady}));
  z = refuse(Refusal::kInternal, "let go");
  EXPECT_TRUE(models.get("y", kStays));
  EXPECT_EQ(statuses(models), (std::vector{kReady, kReady, kUnloaded}));
  EXPECT_EQ(shelf.present, 2);
}

TEST(Models, CountersOutliveTheirModel) {
  Shelf shelf(1);
  Models models(paths({"x.gguf", "y.gguf"}), shelf.options());
  models.start_loading();
  (*models.get("x", kStays))->counters->answers += 3;
  ASSERT_TRUE(models.get("y", kStays));
  EXPECT_EQ(models.state("x").counters->answers, 3);
  (*models.get("x", kStays))->counters->answers += 1;
  EXPECT_EQ(models.state("x").counters->answers, 4);
  EXPECT_EQ(models.state("x").loads, 2);
}

TEST(Models, WhoDoesNotUseThemUnloadsThem) {
  Shelf shelf;
  ModelsOptions options = shelf.options();
  options.idle_unload_seconds = 0.1;
  Models models(paths({"x.gguf", "y.gguf"}), options);
  models.start_loading();
  auto x = models.get("x", kStays);
  ASSERT_TRUE(models.get("y", kStays));
  for (int i = 0; i < 500 && shelf.present > 1; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(statuses(models), (std::vector{kReady, kUnloaded}));  // x is held
  (*x)->in_flight = 1;
  std::weak_ptr<ServedModel> weak = *x;
  x = refuse(Refusal::kInternal, "let go");
  std::this_thread::sleep_for(300ms);
  ASSERT_EQ(statuses(models)[0], kReady);  // it answers
  if (const auto still = weak.lock()) still->in_flight = 0;
  for (int i = 0; i < 500 && shelf.present > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(shelf.present, 0);
  EXPECT_TRUE(models.state("x").info);
}

TEST(Models, WaitingHasAnEnd) {
  Shelf shelf;
  shelf.takes = 500ms;
  ModelsOptions options = shelf.options();
  options.longest_wait_seconds = 0.05;
  Models models(paths({"x.gguf", "broken.gguf"}), options);
  models.start_loading();
  auto early = models.get("x", kStays);
  ASSERT_FALSE(early);
  EXPECT_GT(early.error().retry_seconds, 0);
  EXPECT_NE(early.error().message.find("is loading"), std::string::npos);
  EXPECT_FALSE(models.get());
  EXPECT_TRUE(models.loading());
  EXPECT_FALSE(models.get("x", [] { return false; }));
  for (int i = 0; i < 500 && models.loading(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(models.get("x", kStays));
  EXPECT_EQ(shelf.loads, 1);
}

TEST(Models, AModelThatIsNoneIsTriedAgain) {
  Shelf shelf;
  Models models(paths({"x.gguf", "broken.gguf"}), shelf.options());
  models.start_loading();
  for (int i = 0; i < 2; ++i) {
    auto broken = models.get("broken", kStays);
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().kind, Refusal::kUnavailable);
    EXPECT_NE(broken.error().message.find("it is no model"), std::string::npos);
    EXPECT_EQ(models.state("broken").status, kFailed);
  }
  EXPECT_TRUE(models.get("x", kStays));
  EXPECT_FALSE(models.failure());
}

TEST(Models, FilesTellOfThemselvesUnloaded) {
  Shelf shelf;
  const char* path = HEARTH_MODELS "/pocket-dense.gguf";
  Models models(paths({path, path, "broken.gguf"}), shelf.options());
  EXPECT_EQ(models.states()[1].file.bytes, std::filesystem::file_size(path));
  EXPECT_GT(models.states()[1].file.modified, 0);
  models.start_loading();
  ASSERT_TRUE(models.get("", kStays));
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (models.states()[1].file.parameters == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(2ms);
  }
  const Models::State other = models.states()[1];
  EXPECT_EQ(other.status, Models::Status::kUnloaded);
  EXPECT_EQ(other.file.parameters, models.states()[0].info->parameters);
  EXPECT_EQ(other.file.architecture, models.states()[0].info->architecture);
  EXPECT_EQ(other.file.bytes, std::filesystem::file_size(path));
  EXPECT_EQ(models.states()[2].file.bytes, 0u);
}

}  // namespace
}  // namespace hearth::server
