// What clients and operators see when the device of a model hangs.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "engine/engine.h"
#include "engine/fake_device.h"
#include "server/http_client.h"
#include "server/protocol.h"
#include "server/watchdog.h"

namespace hearth::server {
namespace {

constexpr double kStallSeconds = 0.5;

// A server whose one model computes on a device that hangs when it is told to.
class Stall : public testing::Test {
 protected:
  explicit Stall(double idle_unload_seconds = 0)
      : models_({{.path = "fake.gguf", .id = "fake"}},
                {.idle_unload_seconds = idle_unload_seconds, .load = [this](const LoadOptions&) { return load(); }}) {}

  void SetUp() override {
    models_.start_loading();
    ASSERT_TRUE(models_.get("", [] { return true; }));
    add_protocols(server_, models_);
    ASSERT_TRUE(server_.start());
    client_.emplace(*parse_url(server_.url()), Headers(), ClientLimits{.idle_seconds = 30});
    ASSERT_EQ(complete().status, 200);  // the engine knows now how fast its steps are
  }
  void TearDown() override { device_->release(); }

  HttpReply get(std::string_view path) const { return *client_->get(path); }
  HttpReply post(std::string_view path, std::string_view body) const { return *client_->post(path, body); }
  HttpReply complete() const { return post("/v1/completions", R"({"prompt": [1, 2, 3], "max_tokens": 4})"); }
  EngineStats stats() const { return models_.state("").model->engine->stats(); }
  static std::string header(const HttpReply& reply, std::string_view name) {
    const auto found =
        std::ranges::find_if(reply.headers, [&](const auto& h) { return equal_ignoring_case(h.first, name); });
    return found == reply.headers.end() ? "" : found->second;
  }
  double metric(const std::string& name) const {
    const std::string text = get("/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  static void wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 3000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(condition());
  }

  std::unique_ptr<FakeModel> device_;
  Models models_;
  Server server_{{.port = 0, .log = [](std::string_view) {}}};
  std::optional<HttpClient> client_;

 private:
  Result<std::shared_ptr<ServedModel>> load() {
    auto served = std::make_shared<ServedModel>();
    HEARTH_ASSIGN(served->model,
                  Model::open(HEARTH_MODELS "/pocket-dense.gguf", {.threads = 1, .context_tokens = 512}));
    device_ = std::make_unique<FakeModel>(
        FakeOptions{.vocab_size = served->text().vocab_size(), .pages = {200}, .step_seconds = 0.005});
    EngineModel model = device_->engine_model();
    model.text = &served->text();
    HEARTH_ASSIGN(served->engine, make_engine(model, {.prefill_rows = 64, .stall_seconds = kStallSeconds}, nullptr));
    served->id = "fake";
    served->most_in_flight = 100;
    return served;
  }
};

TEST_F(Stall, EveryProtocolSaysSoAndTheServerGoesOn) {
  std::vector<std::string> told;
  Watchdog watchdog(models_, [&](const std::string& text) { told.push_back(text); });
  EXPECT_TRUE(watchdog.look());
  EXPECT_EQ(metric("hearth_stalled_models"), 0);

  constexpr const char* kMessages = R"("messages": [{"role": "user", "content": "Hi"}])";
  struct Case {
    const char* path;
    std::string body;   // without "stream"
    const char* error;  // what its stream ends with
    int status;
  };
  const std::vector<Case> cases = {
      {"/v1/chat/completions", fmt::format("{}, \"ignore_eos\": true", kMessages), "data: {\"error\":", 503},
      {"/v1/completions", R"("prompt": [1, 2, 3], "ignore_eos": true, "max_tokens": 400)", "data: {\"error\":", 503},
      {"/v1/messages", fmt::format("{}, \"max_tokens\": 400", kMessages), "event: error\n", 503},
      {"/v1/responses", R"("input": "Hi")", "event: response.failed\n", 503},
      {"/api/chat", kMessages, "{\"error\":", 503},
  };
  std::vector<std::future<HttpReply>> streams;
  for (const Case& c : cases) {
    streams.push_back(
        std::async(std::launch::async, [&] { return post(c.path, fmt::format("{{{}, \"stream\": true}}", c.body)); }));
  }
  wait_for([&] { return stats().active_sequences == std::ssize(cases); });
  device_->hang();
  wait_for([&] { return stats().quiet_seconds > 0.1; });
  // It waits without a byte, so that it gets a status.
  auto whole = std::async(std::launch::async, [&] { return complete(); });
  auto clearing = std::async(std::launch::async, [&] { return post("/v1/cache/clear", "{}"); });

  for (size_t i = 0; i < cases.size(); ++i) {
    const HttpReply reply = streams[i].get();
    EXPECT_EQ(reply.status, 200) << cases[i].path;
    const size_t error = reply.body.find(cases[i].error);
    ASSERT_NE(error, std::string::npos) << cases[i].path << reply.body;
    EXPECT_NE(reply.body.find("wait for the engine", error), std::string::npos) << cases[i].path << reply.body;
  }
  for (auto* waits : {&whole, &clearing}) {
    const HttpReply reply = waits->get();
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(header(reply, "Retry-After"), "30");
  }
  EXPECT_EQ(get("/health").status, 503);
  EXPECT_NE(get("/health").body.find("stalled"), std::string::npos);
  EXPECT_EQ(metric("hearth_stalled_models"), 1);
  EXPECT_GT(metric("hearth_quiet_seconds"), kStallSeconds);
  EXPECT_FALSE(watchdog.look());
  EXPECT_FALSE(watchdog.look());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("fake stalls"), std::string::npos);
  EXPECT_NE(told[0].find("run a step; 5 answers"), std::string::npos) << told[0];

  // Nobody waits for it now.
  const auto start = std::chrono::steady_clock::now();
  for (const Case& c : cases) {
    const HttpReply reply = post(c.path, fmt::format("{{{}}}", c.body));
    EXPECT_EQ(reply.status, c.status) << c.path << reply.body;
    EXPECT_EQ(header(reply, "Retry-After"), "30") << c.path;
    EXPECT_NE(reply.body.find("wait for the engine"), std::string::npos) << c.path << reply.body;
  }
  EXPECT_EQ(post("/v1/cache/clear", "{}").status, 503);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::duration<double>(kStallSeconds * 4));
  EXPECT_EQ(get("/v1/cache").status, 200);

  device_->release();
  wait_for([&] { return get("/health").status == 200; });
  EXPECT_EQ(complete().status, 200);
  EXPECT_TRUE(watchdog.look());
  ASSERT_EQ(told.size(), 2u);
  EXPECT_NE(told[1].find("goes on"), std::string::npos);
  wait_for([&] { return stats().active_sequences == 0 && stats().pages_in_use == 0; });
  wait_for([&] { return metric("hearth_answers_in_flight") == 0; });
}

class StallUnused : public Stall {
 protected:
  StallUnused() : Stall(0.05) {}
};

// Whoever unloaded it would wait for its thread.
TEST_F(StallUnused, AModelThatStallsStaysLoaded) {
  const auto stays = [] { return true; };
  auto held = models_.get("", stays);
  ASSERT_TRUE(held);
  device_->hang();
  EXPECT_EQ(complete().status, 503);
  held = refuse(Refusal::kInternal, "let go");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(models_.state("").status, Models::Status::kReady);
  device_->release();
  wait_for([&] { return models_.state("").status == Models::Status::kUnloaded; });
}

}  // namespace
}  // namespace hearth::server
