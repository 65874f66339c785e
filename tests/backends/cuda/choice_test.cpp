// Which device runs a model when nobody says, and what is said when it does not fit: Model over a fake driver.
#include <gtest/gtest.h>

#include "fake_driver.h"
#include "hearth/engine.h"
#include "hearth/model.h"

namespace hearth::testing {
namespace {

constexpr const char* kModel = HEARTH_TEST_DATA "/golden/qwen3.gguf";
constexpr size_t kMiB = size_t{1} << 20;

// Makes the fake the driver of this program.
struct FakeMachine {
  explicit FakeMachine(Gpus gpus) : fake(std::move(gpus)) { cuda::replace_driver(&fake.driver()); }
  ~FakeMachine() { cuda::replace_driver(nullptr); }
  FakeDriver fake;
};

TEST(DeviceChoice, AGpuOnWhichTheModelFitsIsTaken) {
  FakeMachine machine(Gpus{{.total_bytes = 512 * kMiB}, {.total_bytes = 8192 * kMiB}});
  {
    auto model = Model::open(kModel, {.device = "auto"});
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(
        (*model)->info().notes,
        std::vector<std::string>{"the model runs on cuda:1: Fake 1, 8192 MiB of 8192 MiB free; --device cpu would "
                                 "use the processor"});
    EXPECT_GT(machine.fake.gpu(1).used_bytes, 0u);
    EXPECT_EQ(machine.fake.gpu(0).used_bytes, 0u);
    auto engine = Engine::create(*model, {});
    ASSERT_TRUE(engine);
    auto generation = (*engine)->submit({.prompt = {1, 2, 3}, .max_tokens = 2, .ignore_end = true});
    ASSERT_TRUE(generation);
    // No kernel runs: the step ends, and its logits are none that a token could be drawn from.
    std::string failure;
    while (auto event = generation->next()) {
      if (const auto* failed = std::get_if<Failed>(&*event)) failure = failed->error.message;
    }
    EXPECT_NE(failure.find("finite"), std::string::npos) << failure;
  }
  EXPECT_EQ(machine.fake.live(), 0);
}

TEST(DeviceChoice, ElseTheCpuIsAndTheReasonIsSaid) {
  FakeMachine machine(Gpus{{.total_bytes = 128 * kMiB}});
  auto model = Model::open(kModel, {.device = "auto"});
  ASSERT_TRUE(model) << model.error().message;
  const ModelInfo& info = (*model)->info();
  EXPECT_TRUE(info.device.starts_with("cpu")) << info.device;
  ASSERT_EQ(info.notes.size(), 1u);
  EXPECT_TRUE(info.notes[0].starts_with("the model runs on the CPU: the model needs ")) << info.notes[0];
  EXPECT_TRUE(info.notes[0].ends_with("but 128 MiB of cuda:0 are available")) << info.notes[0];
  EXPECT_EQ(machine.fake.live(), 0);
}

TEST(DeviceChoice, AGpuThatFailsWhileItLoadsIsNoReasonToStop) {
  for (const int64_t call : {3, 30, 100}) {
    FakeMachine machine(Gpus{{}});
    machine.fake.fail_call(call, CUDA_ERROR_UNKNOWN);
    auto model = Model::open(kModel, {.device = "auto"});
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_EQ((*model)->info().notes.size(), 1u) << machine.fake.failed();
    EXPECT_TRUE((*model)->info().notes[0].starts_with("the model runs on the CPU: ")) << machine.fake.failed();
    EXPECT_EQ(machine.fake.live(), 0);
  }
}

TEST(DeviceChoice, OnlyAMachineWithoutAGpuIsSilentAboutIt) {
  {
    FakeMachine none(Gpus{});
    auto model = Model::open(kModel, {.device = "auto"});
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_TRUE((*model)->info().device.starts_with("cpu"));
    EXPECT_TRUE((*model)->info().notes.empty()) << (*model)->info().notes[0];
  }
  FakeMachine sick(Gpus{{}});
  sick.fake.fail_call(0, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  auto model = Model::open(kModel, {.device = "auto"});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE((*model)->info().device.starts_with("cpu"));
  ASSERT_EQ((*model)->info().notes.size(), 1u) << sick.fake.failed();
  EXPECT_TRUE((*model)->info().notes[0].starts_with("the model runs on the CPU: count the GPUs: "))
      << (*model)->info().notes[0];
}

TEST(DeviceChoice, AGpuThatWasNamedIsTakenOrRefused) {
  FakeMachine machine(Gpus{{.total_bytes = 128 * kMiB}});
  for (const char* device : {"cuda", "cuda:0"}) {
    auto model = Model::open(kModel, {.device = device});
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, ErrorCode::kOutOfMemory);
    for (const char* part : {"the model needs ", "128 MiB of cuda:0 are available", "--device cpu"}) {
      EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
    }
  }
  auto other = Model::open(kModel, {.device = "cuda:1"});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kUsage);
  EXPECT_EQ(machine.fake.live(), 0);
}

TEST(DeviceChoice, InstructionsOfTheCpuMeanTheCpu) {
  FakeMachine machine(Gpus{{}});
  auto model = Model::open(kModel, {.device = "auto", .isa = "portable"});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE((*model)->info().device.starts_with("cpu"));
  EXPECT_TRUE((*model)->info().notes.empty());
}

}  // namespace
}  // namespace hearth::testing
