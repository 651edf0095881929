#include "attention/rotary_step.h"

#include <gtest/gtest.h>

namespace godwit {
namespace {

std::vector<float> Values(std::span<const float> row) { return {row.begin(), row.end()}; }

// That the table has `tokens` rows, row i with the angles of position(i).
template <typename Position>
void ExpectAngles(const ops::RotaryTable& table, const RotaryEncoding& encoding, int64_t tokens,
                  Position position) {
  ASSERT_EQ(table.cos.rows, tokens);
  ASSERT_EQ(table.sin.rows, tokens);
  const int64_t pairs = encoding.rotary_dim() / 2;
  for (int64_t i = 0; i < tokens; ++i) {
    std::vector<float> cos(static_cast<size_t>(pairs)), sin(static_cast<size_t>(pairs));
    encoding.Fill(position(i), {cos.data(), 1, pairs, pairs}, {sin.data(), 1, pairs, pairs});
    EXPECT_EQ(Values(table.cos.RowSpan(i)), cos) << "token " << i << " of " << tokens;
    EXPECT_EQ(Values(table.sin.RowSpan(i)), sin) << "token " << i << " of " << tokens;
  }
}

// Steps of every size follow each other in the same memory.
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

}  // namespace
}  // namespace godwit
