#include "base/bandwidth.h"

#include <gtest/gtest.h>

#include <thread>

namespace hearth {
namespace {

// More threads than cores: parts of a pass wait for each other, and the figure must fall, not rise. A core reads less
// than 200 GB/s from anywhere but its first cache, which these buffers are too large for.
TEST(Bandwidth, ThreadsThatWaitForACoreMakeNoFigureTooHigh) {
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  for (int64_t threads : {int64_t{1}, cores, 4 * cores}) {
    const double rate = ReadMeter(threads, size_t{8} << 20).measure(0.05);
    EXPECT_GT(rate, 1e8) << threads;
    EXPECT_LT(rate, 200e9 * static_cast<double>(std::min(threads, cores))) << threads;
  }
}

}  // namespace
}  // namespace hearth
