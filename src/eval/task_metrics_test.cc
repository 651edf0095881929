#include "eval/task_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace godwit::eval::task_metrics_test {
namespace {

Question Choose(std::vector<std::string> answers, size_t gold) {
  Question question{.gold = gold};
  for (std::string& answer : answers) question.choices.push_back({.answer = std::move(answer)});
  return question;
}

std::vector<Score> Sums(std::initializer_list<double> sums) {
  std::vector<Score> scores;
  for (const double sum : sums) scores.push_back({.log_probability = sum, .greedy = false});
  return scores;
}

TEST(TallyTest, NormalizingCanChooseTheLonger) {
  TaskMetrics metrics(Scoring::kNormalizedChoice);
  metrics.Add(Choose({"ab", "abcd"}, 1), Sums({-4, -6}));  // -2 and -1.5 per character
  EXPECT_EQ(metrics.acc()->share, 0);
  EXPECT_EQ(metrics.acc_norm()->share, 1);
}

// By bytes the first answer would have -1 for each, and win.
TEST(TallyTest, NormalizesByCharactersNotBytes) {
  TaskMetrics metrics(Scoring::kNormalizedChoice);
  metrics.Add(Choose({"äöü", "abcd"}, 1), Sums({-6, -6.5}));
  EXPECT_EQ(metrics.acc()->share, 0);
  EXPECT_EQ(metrics.acc_norm()->share, 1);
}

TEST(TallyTest, TheFirstOfEqualsIsChosen) {
  TaskMetrics metrics(Scoring::kChoice);
  metrics.Add(Choose({"a", "b"}, 0), Sums({-1, -1}));
  metrics.Add(Choose({"a", "b"}, 1), Sums({-1, -1}));
  EXPECT_EQ(metrics.acc()->share, 0.5);
  EXPECT_FALSE(metrics.acc_norm());
  EXPECT_FALSE(metrics.perplexity());
}

TEST(TallyTest, StandardErrorAndChance) {
  TaskMetrics metrics(Scoring::kChoice);
  EXPECT_FALSE(metrics.acc());
  EXPECT_FALSE(metrics.chance());
  metrics.Add(Choose({"a", "b"}, 1), Sums({-2, -1}));
  EXPECT_EQ(metrics.acc()->share, 1);
  EXPECT_FALSE(metrics.acc()->standard_error);
  for (int i = 0; i < 3; ++i) metrics.Add(Choose({"a", "b", "c", "d"}, 1), Sums({-1, -2, -3, -4}));
  EXPECT_EQ(metrics.n(), 4);
  EXPECT_EQ(metrics.acc()->share, 0.25);
  EXPECT_DOUBLE_EQ(*metrics.acc()->standard_error, 0.25);  // sqrt(0.25 * 0.75 / 3)
  EXPECT_DOUBLE_EQ(*metrics.chance(), (0.5 + 3 * 0.25) / 4);
}

TEST(TallyTest, LastWordsAreRightWhenGreedyAndHavePerplexity) {
  TaskMetrics metrics(Scoring::kLastWord);
  EXPECT_FALSE(metrics.perplexity());
  metrics.Add(Choose({"a"}, 0), std::vector<Score>{{.log_probability = -1, .greedy = true}});
  metrics.Add(Choose({"b"}, 0), std::vector<Score>{{.log_probability = -4, .greedy = false}});
  EXPECT_EQ(metrics.acc()->share, 0.5);
  EXPECT_DOUBLE_EQ(*metrics.perplexity(), std::exp(2.5));
  EXPECT_FALSE(metrics.acc_norm());
  EXPECT_FALSE(metrics.chance());
}

}  // namespace
}  // namespace godwit::eval::task_metrics_test
