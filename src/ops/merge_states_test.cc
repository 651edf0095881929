#include "ops/merge_states.h"

#include <cmath>
#include <vector>

#include "ops/attention_state.h"
#include "ops/test_support.h"

namespace godwit::ops::merge_states_test {
namespace {

constexpr AttentionShape kShape{.heads = 6, .kv_heads = 2, .head_dim = 5, .scale = 1};
constexpr int64_t kWidth = PackedState(5), kStride = StateStride(5);

// The states of `rows` rows over some keys of a rank, in head-major order.
std::vector<float> StatesOfRank(int64_t rows, uint32_t seed) {
  std::vector<float> packed(rows * kShape.heads * kWidth);
  RandomFloats random(seed);
  for (size_t i = 0; i < packed.size(); ++i) {
    const auto at = static_cast<int64_t>(i) % kWidth;
    packed[i] = at == 0 ? std::floor(random(-3, 4)) : at == 1 ? random(1, 9) : random(-2, 2);
  }
  std::vector<float> states(rows * kShape.heads * kStride);
  UnpackStates(5, rows * kShape.heads, packed.data(), states.data());
  return states;
}

class MergeStatesTest : public OpsTest {};

// Two texts, whose states two ranks send in pieces that begin and end anywhere.
TEST_P(MergeStatesTest, PiecesOfTextsMergeInTheOrderOfRanks) {
  const std::vector<float> sinks = {0, 1, 2, -1, 0.5f, 3};
  std::vector<std::vector<float>> states[2];  // of ranks, of texts
  std::vector<AttentionRows> texts[2];
  for (size_t rank = 0; rank < 2; ++rank) {
    const auto seed = static_cast<uint32_t>(10 * rank);
    states[rank] = {StatesOfRank(3, seed + 1), StatesOfRank(1, seed + 2)};
    texts[rank] = {
        {.first_row = 1, .rows = 3, .position = 0, .sources = {}, .states = states[rank][0].data()},
        {.first_row = 0,
         .rows = 1,
         .position = 0,
         .sources = {},
         .states = states[rank][1].data()}};
  }
  ASSERT_EQ(StatesOf(kShape, texts[0]), 4 * 6);
  GappedMatrix out(4, 30);
  for (const auto& [begin, end] : {std::pair{0, 5}, {5, 19}, {19, 24}}) {
    const int64_t floats = (end - begin) * kWidth;
    std::vector<float> packed(2 * floats);
    for (size_t rank = 0; rank < 2; ++rank) {
      PackStatesOf(kShape, {texts[rank], begin, end},
                   std::span(packed).subspan(static_cast<int64_t>(rank) * floats, floats));
    }
    FinishPacked(On(three_), kShape, {texts[0], begin, end}, 2, packed, sinks, out.view());
  }
  for (size_t text = 0; text < 2; ++text) {
    const AttentionRows& rows = texts[0][text];
    for (int64_t token = 0; token < rows.rows; ++token) {
      for (int64_t head = 0; head < kShape.heads; ++head) {
        const int64_t at = HeadMajorRow(kShape, rows.rows, token, head) * kStride;
        std::vector<float> total(kStride), expected(5);
        ClearStates(5, 1, total.data());
        for (const auto& of_rank : states) {
          std::vector<float> state(kWidth), unpacked(kStride);
          PackStates(5, 1, of_rank[text].data() + at, state.data());
          UnpackStates(5, 1, state.data(), unpacked.data());
          MergeStates(table(), 5, 1, unpacked.data(), total.data());
        }
        FinishState(table(), 5, &sinks[head], total.data(), expected.data());
        for (int64_t d = 0; d < 5; ++d) {
          ASSERT_EQ(out.At(rows.first_row + token, head * 5 + d), expected[d]);
        }
      }
    }
  }
  EXPECT_TRUE(out.GapsIntact());
}

GODWIT_FOR_EVERY_ISA(MergeStatesTest);

}  // namespace
}  // namespace godwit::ops::merge_states_test
