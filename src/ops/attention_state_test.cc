#include "ops/attention_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ops/test_support.h"

namespace godwit::ops::attention_state_test {
namespace {

constexpr int64_t kDims[] = {1, 8, 20, 64, 100};
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// One state that a test reads and writes.
struct State {
  explicit State(int64_t head_dim) : dim(head_dim), values(static_cast<size_t>(StateStride(dim))) {
    ClearStates(dim, 1, values.data());
  }
  // The state of one key, whose weight is in some lane.
  State(double score, const std::vector<float>& value, size_t lane) : State(std::ssize(value)) {
    key = {score, value};
    const double log2 = score * std::numbers::log2e;
    values[0] = static_cast<float>(std::ceil(log2));
    const auto weight = static_cast<float>(std::exp2(log2 - std::ceil(log2)));
    values[kernels::kStateLanes + lane] = weight;
    std::ranges::transform(value, values.begin() + kernels::kStateHeader,
                           [&](float x) { return weight * x; });
  }
  // The state's content: the maximum, the lanes of the sum, and the weighted values.
  std::vector<float> Said() const {
    std::vector<float> said = {values[0]};
    const auto first = values.begin() + kernels::kStateLanes;
    said.insert(said.end(), first, first + kernels::kStateHeader - kernels::kStateLanes + dim);
    return said;
  }

  int64_t dim;
  struct {
    double score;
    std::vector<float> value;
  } key = {};
  std::vector<float> values;
};

class AttentionStateTest : public kernels::IsaTest {
 protected:
  State Merged(const State& from, State into) const {
    MergeStates(table(), into.dim, 1, from.values.data(), into.values.data());
    return into;
  }

  std::vector<float> Finish(State state, const float* sink_logit = nullptr) const {
    std::vector<float> out(state.dim);
    FinishState(table(), state.dim, sink_logit, state.values.data(), out.data());
    return out;
  }

  // Keys with high and low scores, one of them below everything.
  static std::vector<State> Keys(int64_t dim, size_t n, uint32_t seed) {
    RandomFloats random(seed);
    std::vector<State> keys;
    for (size_t i = 0; i < n; ++i) {
      std::vector<float> value(dim);
      for (float& x : value) x = random();
      keys.emplace_back(i == n / 2 ? -200.0f : random(-6, 6), value, i % kernels::kLaneFloats);
    }
    return keys;
  }

  // The softmax over the keys, in double.
  static std::vector<double> Softmax(const std::vector<State>& keys,
                                     std::optional<float> sink_logit = {}) {
    double sum = sink_logit ? std::exp(double{*sink_logit}) : 0;
    std::vector<double> out(keys[0].dim);
    for (const State& key : keys) {
      const double weight = std::exp(key.key.score);
      sum += weight;
      for (size_t d = 0; d < out.size(); ++d) out[d] += weight * key.key.value[d];
    }
    for (double& x : out) x /= sum;
    return out;
  }

  static void ExpectNear(const std::vector<float>& found, const std::vector<double>& expected) {
    for (size_t d = 0; d < found.size(); ++d) ASSERT_NEAR(found[d], expected[d], 40 * kEpsilon);
  }
};

// Any tree of merges gives the same result up to rounding.
TEST_P(AttentionStateTest, MergingIsAssociativeAndCommutativeUpToRounding) {
  RandomFloats random(1);
  for (const int64_t dim : kDims) {
    const std::vector<State> keys = Keys(dim, 12, 2);
    const auto expected = Softmax(keys);
    for (int round = 0; round < 20; ++round) {
      std::vector<State> left = keys;
      while (left.size() > 1) {
        const auto from = static_cast<size_t>(random.Integer(0, std::ssize(left) - 1));
        const State taken = left[from];
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(from));
        State& into = left[random.Integer(0, std::ssize(left) - 1)];
        into = Merged(taken, into);
      }
      ExpectNear(Finish(left[0]), expected);
    }
  }
}

// A row's bits depend on its own order alone, not on how many rows one call merges.
TEST_P(AttentionStateTest, OneOrderGivesTheSameBits) {
  for (const int64_t dim : kDims) {
    const std::vector<State> keys = Keys(dim, 9, 3);
    State expected(dim);
    for (const State& key : keys) expected = Merged(key, expected);
    const int64_t stride = StateStride(dim);
    std::vector<float> from(5 * stride), into(from.size(), kNan);
    ClearStates(dim, 5, into.data());
    for (const State& key : keys) {
      for (int64_t row = 0; row < 5; ++row) {
        std::ranges::copy(key.values, from.begin() + row * stride);
      }
      MergeStates(table(), dim, 5, from.data(), into.data());
    }
    for (int64_t row = 0; row < 5; ++row) {
      State state(dim);
      std::copy_n(into.begin() + row * stride, stride, state.values.begin());
      EXPECT_EQ(state.Said(), expected.Said());
    }
  }
}

TEST_P(AttentionStateTest, NoKeysChangeNothing) {
  for (const int64_t dim : kDims) {
    const State none(dim);
    EXPECT_EQ(none.Said()[0], kNothing);
    const State key = Keys(dim, 1, 4)[0];
    EXPECT_EQ(Merged(none, key).Said(), key.Said());
    EXPECT_EQ(Merged(key, none).Said(), key.Said());
    EXPECT_EQ(Merged(none, none).Said(), none.Said());
    const std::vector<float> zeros(dim, 0.0f);
    EXPECT_EQ(Finish(none), zeros);
    const float sink = 3;
    EXPECT_EQ(Finish(none, &sink), zeros);
  }
}

// A sink logit is one term of the denominator for a query, however its keys were split.
TEST_P(AttentionStateTest, ASinkLogitEntersOnceInTheEnd) {
  for (const int64_t dim : kDims) {
    const std::vector<State> keys = Keys(dim, 10, 5);
    for (const float sink : {kNothing, -5.0f, 0.0f, 4.0f, 50.0f}) {
      State whole(dim), first(dim), second(dim);
      for (size_t i = 0; i < keys.size(); ++i) {
        whole = Merged(keys[i], whole);
        (i < 4 ? first : second) = Merged(keys[i], i < 4 ? first : second);
      }
      ExpectNear(Finish(whole, &sink), Softmax(keys, sink));
      ExpectNear(Finish(Merged(second, first), &sink), Softmax(keys, sink));
    }
    const State state = Merged(keys[1], keys[0]);
    EXPECT_EQ(Finish(state, &kNothing), Finish(state));
  }
}

GODWIT_FOR_EVERY_ISA(AttentionStateTest);

// A state packed for another host keeps its maximum and its sums. The sum l may be rounded once.
TEST_P(AttentionStateTest, APackedStateSaysTheSame) {
  for (const int64_t dim : kDims) {
    State total(dim);
    for (const State& key : Keys(dim, 40, 5)) total = Merged(key, total);
    for (const State& state : {total, State(dim)}) {
      std::vector<float> packed(PackedState(dim));
      PackStates(dim, 1, state.values.data(), packed.data());
      State unpacked(dim);
      UnpackStates(dim, 1, packed.data(), unpacked.values.data());
      EXPECT_EQ(unpacked.values[0], state.values[0]);
      EXPECT_TRUE(std::equal(unpacked.values.begin() + kernels::kStateHeader,
                             unpacked.values.begin() + kernels::kStateHeader + dim,
                             state.values.begin() + kernels::kStateHeader));
      const auto expected = Finish(state), out = Finish(unpacked);
      for (size_t d = 0; d < out.size(); ++d) EXPECT_NEAR(out[d], expected[d], 1e-6);
    }
  }
}

}  // namespace
}  // namespace godwit::ops::attention_state_test
