// Engines over a fake device, and what their tests ask of them.
#pragma once

#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "fake_device.h"

namespace hearth {

using Tokens = std::vector<int32_t>;

// None of them means anything to the device or to the text.
inline Tokens random_prompt(uint32_t seed, int64_t tokens) {
  std::mt19937 random(seed);
  Tokens prompt;
  for (int64_t i = 0; i < tokens; ++i) prompt.push_back(static_cast<int32_t>(random() % 58));
  return prompt;
}

inline std::unique_ptr<Engine> start(const FakeModel& model, const EngineOptions& options = {}) {
  auto engine = make_engine(model.engine_model(), options, nullptr);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return std::move(engine).value();
}

inline Request greedy(Tokens prompt, int64_t tokens) {
  return {.prompt = std::move(prompt), .max_tokens = tokens, .ignore_end = true};
}

inline Collected run(Engine& engine, Request request) {
  auto generation = engine.submit(std::move(request));
  EXPECT_TRUE(generation) << (generation ? "" : generation.error().message);
  return collect(*generation);
}

// Done can be read before the engine thread has published its numbers.
inline EngineStats settled(const Engine& engine) {
  for (int i = 0; i < 2000; ++i) {
    const EngineStats stats = engine.stats();
    if (stats.active_sequences == 0 && stats.queued_requests == 0) return stats;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return engine.stats();
}

}  // namespace hearth
