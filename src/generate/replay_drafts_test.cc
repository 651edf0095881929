#include "generate/replay_drafts.h"

#include <gtest/gtest.h>

#include "generate/suffix_drafts.h"

namespace godwit {
namespace {

Replay ReplayNgram(const std::vector<int32_t>& text, double ms_of_eight) {
  StepCosts costs;
  costs.Record(1, 10);
  costs.Record(8, ms_of_eight);
  std::vector<std::unique_ptr<DraftSource>> sources;
  sources.push_back(std::make_unique<SuffixDrafts>());
  return ReplayDrafts(text, 1, costs, std::move(sources));
}

TEST(ReplayDrafts, WhatRepeatsTakesFewerSteps) {
  std::vector<int32_t> circle, all_new;
  for (int32_t i = 0; i < 1000; ++i) {
    circle.push_back(i % 50);
    all_new.push_back(i);
  }
  const Replay repeats = ReplayNgram(circle, 11);
  EXPECT_EQ(repeats.tokens, 999);
  EXPECT_EQ(repeats.plain_ms, 9990);
  EXPECT_LT(repeats.steps, 250);
  EXPECT_LT(repeats.ms, 11 * 250);
  const Replay is_new = ReplayNgram(all_new, 11);
  EXPECT_EQ(is_new.steps, 999);
  EXPECT_EQ(is_new.guesses, 0);
  EXPECT_EQ(is_new.ms, is_new.plain_ms);
  const Replay dear = ReplayNgram(circle, 120);
  EXPECT_GT(dear.steps, 900);
  EXPECT_LT(dear.ms, 1.1 * dear.plain_ms);
}

}  // namespace
}  // namespace godwit
