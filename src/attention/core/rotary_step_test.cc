#include "attention/core/rotary_step.h"

#include <gtest/gtest.h>

namespace godwit::rotary_step_test {
namespace {

std::vector<float> Values(std::span<const float> row) { return {row.begin(), row.end()}; }

// The table has `tokens` rows, and row i has the angles of position(i).
template <typename Position>
void ExpectAngles(const ops::RotaryTable& table, const RotaryEncoding& encoding, int64_t tokens,
                  Position position) {
  ASSERT_EQ(table.cos.rows, tokens);
  ASSERT_EQ(table.sin.rows, tokens);
  const int64_t pairs = encoding.rotary_dim() / 2;
  for (int64_t i = 0; i < tokens; ++i) {
    std::vector<float> cos(pairs), sin(static_cast<size_t>(pairs));
    encoding.Fill(position(i), {cos.data(), 1, pairs, pairs}, {sin.data(), 1, pairs, pairs});
    EXPECT_EQ(Values(table.cos.RowSpan(i)), cos) << "token " << i << " of " << tokens;
    EXPECT_EQ(Values(table.sin.RowSpan(i)), sin) << "token " << i << " of " << tokens;
  }
}

// Steps of different sizes reuse the same memory.
TEST(RotaryStepTest, TokensStandInTurnOrAllAtOnePlace) {
  for (const int64_t dim : {0, 2, 10, 64}) {
    const RotaryEncoding encoding({.rotary_dim = dim}, 0);
    RotaryStep step;
    for (const int64_t tokens : {3, 1, 40, 7, 0, 2}) {
      const int64_t first = 5'000'000 + tokens;
      step.Fill(encoding, tokens, first);
      ExpectAngles(step.table(), encoding, tokens, [&](int64_t i) { return first + i; });
      step.Fill(encoding, 1, first);
      ExpectAngles(step.TableForAll(tokens), encoding, tokens, [&](int64_t) { return first; });
    }
  }
}

TEST(RotaryStepTest, QueriesAreScaledByTheTemperatureOfTheirPlace) {
  const RotarySpec spec{.rotary_dim = 4, .temperature = {.growth = 0.5, .tokens = 3}};
  const RotaryEncoding encoding(spec, 0);
  RotaryStep step;
  step.Fill(encoding, 9, 100);
  ExpectAngles(step.table(), encoding, 9, [](int64_t i) { return 100 + i; });
  ASSERT_EQ(step.table().query_scale.rows, 9);
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(*step.table().query_scale.Row(i), spec.temperature.At(100 + i));
    EXPECT_EQ(*step.table().Rows(i, 1).query_scale.Row(0), spec.temperature.At(100 + i));
  }
  step.Fill(encoding, 1, 105);
  ASSERT_EQ(step.TableForAll(4).query_scale.rows, 4);
  EXPECT_EQ(*step.TableForAll(4).query_scale.Row(3), spec.temperature.At(105));
  step.Fill(RotaryEncoding({.rotary_dim = 4}, 0), 9, 100);
  EXPECT_EQ(step.table().query_scale.rows, 0);
  EXPECT_EQ(step.table().Rows(2, 3).query_scale.rows, 0);
}

}  // namespace
}  // namespace godwit::rotary_step_test
