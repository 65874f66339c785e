#include "engine/default_sampling.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

Metadata metadata(std::initializer_list<std::pair<const char*, MetadataValue>> values) {
  Metadata result;
  for (const auto& [key, value] : values) EXPECT_TRUE(result.insert(key, value));
  return result;
}

TEST(DefaultSampling, AFileThatSaysNothingGetsOurs) {
  const SamplingOptions options = default_sampling(metadata({{"general.name", std::string("x")}}));
  EXPECT_EQ(options.temperature, 0.8f);
  EXPECT_EQ(options.top_k, 40);
  EXPECT_EQ(options.top_p, 0.95f);
  EXPECT_EQ(options.min_p, 0.05f);
  EXPECT_EQ(options.repetition_penalty, 1.0f);
}

TEST(DefaultSampling, WhatAFileLeavesOutIsOff) {
  const SamplingOptions options = default_sampling(metadata({{"general.sampling.top_p", 0.8},
                                                             {"general.sampling.top_k", int64_t{20}},
                                                             {"general.sampling.penalty_repeat", 1.05}}));
  EXPECT_EQ(options.temperature, 1.0f);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.top_p, 0.8f);
  EXPECT_EQ(options.min_p, 0.0f);
  EXPECT_EQ(options.repetition_penalty, 1.05f);
}

TEST(DefaultSampling, EveryKeyCounts) {
  const SamplingOptions options = default_sampling(metadata({{"general.sampling.temp", 0.6},
                                                             {"general.sampling.min_p", 0.1},
                                                             {"general.sampling.xtc_probability", 0.5},
                                                             {"general.sampling.xtc_threshold", 0.2},
                                                             {"general.sampling.penalty_last_n", int64_t{-1}}}));
  EXPECT_EQ(options.temperature, 0.6f);
  EXPECT_EQ(options.min_p, 0.1f);
  EXPECT_EQ(options.xtc_probability, 0.5f);
  EXPECT_EQ(options.xtc_threshold, 0.2f);
  EXPECT_EQ(options.penalty_last_n, -1);
}

TEST(DefaultSampling, ImpossibleAdviceIsIgnored) {
  const SamplingOptions options = default_sampling(metadata({{"general.sampling.temp", -3.0},
                                                             {"general.sampling.top_k", uint64_t{1} << 60},
                                                             {"general.sampling.min_p", std::string("high")},
                                                             {"general.sampling.top_p", 7.0}}));
  EXPECT_EQ(options.temperature, 0.8f);
  EXPECT_EQ(options.top_k, 40);
}

}  // namespace
}  // namespace hearth
