#include "engine/device_check.h"

#include <gtest/gtest.h>

#include "fake_device.h"

namespace hearth {
namespace {

TEST(DeviceCheck, TellsADeviceThatComputesSomethingElse) {
  const FakeModel reference, wrong({.fault = 1});
  FakeModel same;
  const EngineModel model = reference.engine_model();
  EXPECT_EQ(*device_divergence(*model.graph, *model.device, *same.engine_model().device), 0);
  EXPECT_GT(*device_divergence(*model.graph, *model.device, *wrong.engine_model().device), 0.1);
  same.fail_next_wait(ErrorCode::kIo);
  EXPECT_EQ(device_divergence(*model.graph, *model.device, *same.engine_model().device).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace hearth
