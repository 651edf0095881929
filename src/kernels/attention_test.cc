#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels::attention_test {
namespace {

constexpr float kScale = 0.25f;
constexpr float kLargestBias = 8;

template <class Storage>
auto TileKernel(const KernelTable& table, bool int8_products) {
  if constexpr (std::is_same_v<Storage, F16>) {
    return table.attend_tile_f16;
  } else if constexpr (std::is_same_v<Storage, BF16>) {
    return table.attend_tile_bf16;
  } else if constexpr (std::is_same_v<Storage, int8_t>) {
    return int8_products ? table.attend_tile_i8_i8 : table.attend_tile_i8;
  } else {
    return table.attend_tile_f32;
  }
}

// Numbers of a key and of a value.
struct Widths {
  Widths(int64_t both) : key(both), value(both) {}  // NOLINT(google-explicit-constructor)
  Widths(int64_t of_keys, int64_t of_values) : key(of_keys), value(of_values) {}
  int64_t key, value;
};

// Empty states of `rows` queries, with NaN wherever the contract promises nothing.
class States {
 public:
  States(int64_t rows, int64_t value_dim)
      : stride_(kStateHeader + PadToLanes(value_dim) + kLaneFloats), floats_(rows * stride_) {
    for (int64_t i = 0; i < rows * stride_; ++i) {
      const int64_t at = i % stride_;
      if (at == 0) floats_[i] = -kInfinity;
      if (at >= kStateLanes && at < kStateHeader + PadToLanes(value_dim)) floats_[i] = 0;
    }
  }
  float* Row(int64_t r) { return floats_.data() + r * stride_; }
  const float* Row(int64_t r) const { return floats_.data() + r * stride_; }
  int64_t stride() const { return stride_; }
  double Sum(int64_t r) const {
    return std::accumulate(Row(r) + kStateLanes, Row(r) + kStateHeader, 0.0);
  }
  // log2 of the sum of exp(score).
  double Log2OfSum(int64_t r) const { return Row(r)[0] + std::log2(Sum(r)); }
  bool operator==(const States& other) const {
    return std::memcmp(floats_.data(), other.floats_.data(), floats_.size() * 4) == 0;
  }
  bool GuardsIntact() const { return floats_.GuardsIntact(); }

 private:
  int64_t stride_;
  Guarded<float> floats_;
};

// Keys and values of one tile, and queries with their spans.
template <class Storage>
struct Problem {
  Problem(int64_t rows, Widths widths, uint32_t seed, float q_range = 1)
      : rows(rows),
        head_dim(widths.key),
        value_dim(widths.value),
        q(rows * Stride(), seed % 4),
        integers(rows * Stride(), seed % 4),
        spans(rows),
        k(KeyElements(kDepth, head_dim)),
        v(kTileTokens * PadToLanes(value_dim)),
        k_scales(kTileTokens),
        v_scales(kTileTokens) {
    RandomFloats random(seed);
    random.Fill(q, -q_range, q_range);
    std::fill_n(k.data(), k.size(), Storage{});
    for (int64_t j = 0; j < kTileTokens; ++j) {
      for (int64_t d = 0; d < head_dim; ++d) SetKey(j, d, random());
    }
    for (int64_t i = 0; i < v.size(); ++i) v[i] = ToStorage<Storage>(random());
    if constexpr (kScaled) {
      random.Fill(k_scales, 0.2f / 127, 1.0f / 127);
      random.Fill(v_scales, 0.2f / 127, 1.0f / 127);
    }
    for (TileSpan& span : spans) {
      const int64_t a = random.Integer(0, kTileTokens), b = random.Integer(0, kTileTokens);
      span = {static_cast<int32_t>(std::min(a, b)), static_cast<int32_t>(std::max(a, b))};
    }
  }

  // Adds biases as ALiBi has them: zero and below.
  void AddBias(uint32_t seed) {
    bias.resize(rows * kTileTokens);
    RandomFloats(seed).Fill(bias, -kLargestBias, 0);
  }

  // Makes integer queries for int8 products, some as large as possible.
  void RoundQueries(uint32_t seed) {
    RandomFloats random(seed);
    q_scales.resize(rows);
    q_sums.assign(rows, 0);
    random.Fill(q_scales, 0.2f / 127, 1.0f / 127);
    std::fill_n(integers.data(), integers.size(), int8_t{0});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t d = 0; d < head_dim; ++d) {
        const auto x = static_cast<int8_t>(std::nearbyint(random(-127.4f, 127.4f)));
        integers[r * Stride() + d] = x;
        q_sums[r] += x;
      }
    }
  }

  AttendTileArgs Args(States& states, int64_t row = 0) const {
    const void* queries = q.data() + row * Stride();
    if (int8_products()) queries = integers.data() + row * Stride();
    return {.q = queries,
            .q_stride = Stride(),
            .spans = spans.data() + row,
            .rows = rows - row,
            .k = k.data(),
            .v = v.data(),
            .head_dim = head_dim,
            .value_dim = value_dim,
            .scale = kScale,
            .score_cap = score_cap,
            .bias = bias.empty() ? nullptr : bias.data() + row * kTileTokens,
            .state = states.Row(row),
            .state_stride = states.stride(),
            .k_scales = kScaled ? k_scales.data() : nullptr,
            .v_scales = kScaled ? v_scales.data() : nullptr,
            .q_scales = int8_products() ? q_scales.data() + row : nullptr,
            .q_sums = int8_products() ? q_sums.data() + row : nullptr};
  }
  void Run(const KernelTable& table, States& states) {
    if (kDepth == 2 || kScaled) RoundQueriesToBF16();
    TileKernel<Storage>(table, int8_products())(Args(states));
  }
  void RoundQueriesToBF16() {
    for (int64_t r = 0; r < rows; ++r) {
      float* row = &q[r * Stride()];
      for (int64_t d = 0; d < head_dim; ++d) row[d] = ToFloat(ToBF16(row[d]));
      row[head_dim] = 0;
    }
  }
  bool int8_products() const { return !q_scales.empty(); }
  int64_t Stride() const { return (head_dim + 3) / 4 * 4 + 4; }

  void SetKey(int64_t j, int64_t d, float x) {
    Storage& key = k[KeyAt(kDepth, d, j)];
    key = ToStorage<Storage>(x);
    if constexpr (kScaled) key = static_cast<int8_t>(key ^ -128);  // + 128, unsigned
  }
  float Key(int64_t j, int64_t d) const {
    const Storage key = k[KeyAt(kDepth, d, j)];
    if constexpr (kScaled) return static_cast<int8_t>(key ^ -128) * k_scales[j];
    return FromStorage(key);
  }
  float Value(int64_t j, int64_t d) const {
    return FromStorage(v[ValueAt(kDepth, value_dim, j, d)]) * (kScaled ? v_scales[j] : 1.0f);
  }
  double Score(int64_t row, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      const int64_t at = row * Stride() + d;
      sum += (int8_products() ? integers[at] * double{q_scales[row]} : double{q[at]}) * Key(j, d);
    }
    sum *= kScale;
    if (score_cap != 0) sum = score_cap * std::tanh(sum / score_cap);
    return sum + (bias.empty() ? 0 : bias[row * kTileTokens + j]);
  }

  // Makes a key and its value NaN, as unwritten memory may be. In int8 the scales are NaN.
  void Poison(int64_t j) {
    for (int64_t d = 0; d < head_dim; ++d) SetKey(j, d, kNan);
    PoisonValue(j);
    k_scales[j] = v_scales[j] = kNan;
  }
  void PoisonValue(int64_t j) {
    for (int64_t d = 0; d < PadToLanes(value_dim); ++d) {
      v[ValueAt(kDepth, value_dim, j, d)] = ToStorage<Storage>(kNan);
    }
  }

  float score_cap = 0;

  static constexpr bool kScaled = std::is_same_v<Storage, int8_t>;
  static constexpr int64_t kDepth = kScaled ? kQuad : std::is_same_v<Storage, BF16> ? 2 : 1;
  int64_t rows, head_dim, value_dim;
  Guarded<float> q;             // [rows, Stride()]
  Guarded<int8_t> integers;     // [rows, Stride()], for int8 products
  std::vector<float> bias;      // [rows, kTileTokens], or empty
  std::vector<float> q_scales;  // [rows], or empty
  std::vector<int32_t> q_sums;
  std::vector<TileSpan> spans;
  Guarded<Storage> k, v;
  Guarded<float> k_scales, v_scales;  // [kTileTokens], of int8
};

class AttentionTest : public IsaTest {
 protected:
  std::vector<float> Finish(const States& states, int64_t row, int64_t value_dim) const {
    std::vector<float> out(value_dim);
    table().finish_state(states.Row(row), value_dim, out.data());
    return out;
  }

  // The bound of the error. A score sums head_dim products of numbers up to one, so it is off by
  // (head_dim + 1) half epsilons of scale * head_dim. A weight is off by that, relatively, and a
  // bias adds one rounding. The sums over n keys add n roundings. Values are at most one, so the
  // output's error is the same, and two kernels have twice that.
  static double Tolerance(int64_t head_dim, int64_t keys) {
    const double score = (kScale * head_dim * (head_dim + 2) + kLargestBias) * kEpsilon / 2;
    return 2 * (2 * score + (keys + 8) * kEpsilon);
  }

  template <class Storage>
  void TestMatchesScalar(bool biased = false, bool int8_products = false, float score_cap = 0) {
    for (const Widths widths : std::initializer_list<Widths>{
             1, 7, 16, 17, 64, 80, 100, 128, {14, 10}, {72, 64}, {100, 33}, {20, 70}}) {
      const int64_t head_dim = widths.key;
      for (const int64_t rows : {0, 1, 2, 6, 7, 13}) {
        const uint32_t seed = head_dim * 100 + rows;
        States want(rows, widths.value), got(rows, widths.value);
        for (const uint32_t tile : {0, 1}) {  // the second one folds into a state that is not empty
          Problem<Storage> problem(rows, widths, seed + tile);
          if (biased) problem.AddBias(seed + tile);
          if (int8_products) problem.RoundQueries(seed + tile);
          problem.score_cap = score_cap;
          problem.Run(scalar(), want);
          problem.Run(table(), got);
        }
        EXPECT_TRUE(got.GuardsIntact());
        // A weight beside a tie may be rounded either way: by 1/127 of the largest, which the sum
        // holds, or by 1/128 of its own.
        double tolerance = Tolerance(head_dim, 2 * kTileTokens);
        // tanh is off by some epsilons of 1.
        tolerance += 8 * score_cap * kEpsilon;
        if (int8_products) tolerance += 1.01 / 127;
        if (Problem<Storage>::kDepth > 1 && !int8_products) tolerance += 1.01 / 128;
        for (int64_t r = 0; r < rows; ++r) {
          if (want.Sum(r) == 0) {
            EXPECT_EQ(Bits(got.Row(r)[0]), Bits(-kInfinity));
            EXPECT_EQ(got.Sum(r), 0);
            continue;
          }
          EXPECT_NEAR(got.Log2OfSum(r), want.Log2OfSum(r), 2 * tolerance);
          const std::vector<float> a = Finish(got, r, widths.value);
          const std::vector<float> b = Finish(want, r, widths.value);
          for (int64_t d = 0; d < widths.value; ++d) ASSERT_NEAR(a[d], b[d], tolerance);
        }
      }
    }
  }

  // Runs the rows together and each row alone, and compares bits.
  template <class Storage>
  void ExpectGroupingKeepsBits(Problem<Storage>& problem) {
    States together(problem.rows, problem.value_dim), alone(problem.rows, problem.value_dim);
    for (int repeat = 0; repeat < 2; ++repeat) {
      problem.Run(table(), together);
      for (int64_t r = 0; r < problem.rows; ++r) {
        AttendTileArgs args = problem.Args(alone, r);
        args.rows = 1;
        TileKernel<Storage>(table(), problem.int8_products())(args);
      }
      ASSERT_TRUE(together == alone);
    }
  }

  template <class Storage>
  void TestGroupingKeepsBits(bool int8_products = false) {
    for (const Widths widths :
         std::initializer_list<Widths>{3, 64, 100, 128, {14, 10}, {576, 512}}) {
      Problem<Storage> problem(19, widths, 3);
      if (int8_products) problem.RoundQueries(3);
      ExpectGroupingKeepsBits(problem);
      const auto set_spans = [&](auto span) {
        for (int32_t r = 0; r < 19; ++r) problem.spans[r] = span(r);
        ExpectGroupingKeepsBits(problem);
      };
      set_spans([](int32_t) { return TileSpan{0, 64}; });
      set_spans([](int32_t r) { return TileSpan{0, 40 + r}; });                  // causal
      set_spans([](int32_t r) { return TileSpan{r, 40 + r}; });                  // a window
      set_spans([](int32_t r) { return TileSpan{0, std::max(0, 3 * r - 9)}; });  // some empty
      set_spans([](int32_t r) { return TileSpan{3 * r, 3 * r + 2}; });           // disjoint
      set_spans([](int32_t r) { return r % 2 ? TileSpan{0, 2} : TileSpan{60, 64}; });
      problem.AddBias(4);
      ExpectGroupingKeepsBits(problem);
      set_spans([](int32_t r) { return TileSpan{r, 40 + r}; });
    }
  }

  // Row counts around AMX's tile registers (16 rows) and around a phase (64 or 66 rows). A head
  // ends inside a register.
  template <class Storage>
  void TestManyRowsGroupingKeepsBits(bool int8_products = false) {
    for (const int32_t rows : {15, 16, 17, 31, 32, 33, 47, 64, 66, 67, 90}) {
      for (const Widths widths :
           std::initializer_list<Widths>{4, 60, 64, 66, 80, 128, 200, {14, 10}, {144, 80}}) {
        Problem<Storage> problem(rows, widths, 5);
        if (int8_products) problem.RoundQueries(5);
        for (int32_t r = 0; r < rows; ++r) problem.spans[r] = {0, std::clamp(2 * r - 12, 0, 64)};
        ExpectGroupingKeepsBits(problem);
      }
    }
  }

  // Keys outside the spans may be NaN: they may be unwritten.
  template <class Storage>
  void TestPoisonOutsideTheSpansDoesNotMatter(bool int8_products = false) {
    for (int32_t rows : {1, 5, 6, 8, 18}) {
      Problem<Storage> problem(rows, 70, 4);
      if (int8_products) problem.RoundQueries(4);
      for (int32_t r = 0; r < rows; ++r) problem.spans[r] = {5 + r, 30 + r};
      if (rows > 5) problem.AddBias(5);
      States want(rows, 70), got(rows, 70);
      problem.Run(table(), want);
      for (int64_t i = 0; i < std::ssize(problem.bias); ++i) {
        const int64_t r = i / kTileTokens, j = i % kTileTokens;
        if (j < 5 + r || j >= 30 + r) problem.bias[i] = kNan;
      }
      for (int64_t j = 0; j < kTileTokens; ++j) {
        if (j >= 5 && j < 30 + rows - 1) continue;
        problem.Poison(j);
      }
      problem.Run(table(), got);
      EXPECT_TRUE(got == want) << rows;
    }
  }
};
GODWIT_FOR_EVERY_ISA(AttentionTest);

TEST_P(AttentionTest, CappedScoresMatchScalar) {
  for (const float cap : {0.3f, 2.0f, 50.0f}) {
    TestMatchesScalar<float>(false, false, cap);
    TestMatchesScalar<F16>(true, false, cap);
    TestMatchesScalar<BF16>(false, false, cap);
    TestMatchesScalar<int8_t>(false, false, cap);
    TestMatchesScalar<int8_t>(true, /*int8_products=*/true, cap);
  }
}

// Scores stay below the cap, however large the products are.
TEST_P(AttentionTest, NoScorePassesItsCap) {
  Problem<float> problem(3, 16, 1, /*q_range=*/1e6f);
  for (TileSpan& span : problem.spans) span = {0, kTileTokens};
  problem.score_cap = 2;
  States states(3, 16), want(3, 16);
  problem.Run(table(), states);
  problem.Run(scalar(), want);
  for (int64_t r = 0; r < 3; ++r) {
    EXPECT_NEAR(states.Log2OfSum(r), want.Log2OfSum(r), 1e-5);
    EXPECT_LE(states.Log2OfSum(r), std::log2(double{kTileTokens}) + 2 * std::numbers::log2e + 1e-5);
  }
}

TEST_P(AttentionTest, F32MatchesScalar) { TestMatchesScalar<float>(); }
TEST_P(AttentionTest, F16MatchesScalar) { TestMatchesScalar<F16>(); }
TEST_P(AttentionTest, BF16MatchesScalar) { TestMatchesScalar<BF16>(); }

TEST_P(AttentionTest, I8MatchesScalar) { TestMatchesScalar<int8_t>(); }

TEST_P(AttentionTest, F32WithBiasMatchesScalar) { TestMatchesScalar<float>(/*biased=*/true); }
TEST_P(AttentionTest, F16WithBiasMatchesScalar) { TestMatchesScalar<F16>(/*biased=*/true); }
TEST_P(AttentionTest, BF16WithBiasMatchesScalar) { TestMatchesScalar<BF16>(/*biased=*/true); }
TEST_P(AttentionTest, I8WithBiasMatchesScalar) { TestMatchesScalar<int8_t>(/*biased=*/true); }

TEST_P(AttentionTest, F32GroupingKeepsBits) { TestGroupingKeepsBits<float>(); }
TEST_P(AttentionTest, F16GroupingKeepsBits) { TestGroupingKeepsBits<F16>(); }
TEST_P(AttentionTest, BF16GroupingKeepsBits) { TestGroupingKeepsBits<BF16>(); }
TEST_P(AttentionTest, I8GroupingKeepsBits) { TestGroupingKeepsBits<int8_t>(); }

TEST_P(AttentionTest, F32PoisonOutsideTheSpansDoesNotMatter) {
  TestPoisonOutsideTheSpansDoesNotMatter<float>();
}
TEST_P(AttentionTest, F16PoisonOutsideTheSpansDoesNotMatter) {
  TestPoisonOutsideTheSpansDoesNotMatter<F16>();
}
TEST_P(AttentionTest, BF16PoisonOutsideTheSpansDoesNotMatter) {
  TestPoisonOutsideTheSpansDoesNotMatter<BF16>();
}
TEST_P(AttentionTest, I8PoisonOutsideTheSpansDoesNotMatter) {
  TestPoisonOutsideTheSpansDoesNotMatter<int8_t>();
}

TEST_P(AttentionTest, Int8ProductsMatchScalar) {
  for (const bool biased : {false, true}) TestMatchesScalar<int8_t>(biased, /*int8_products=*/true);
}
TEST_P(AttentionTest, Int8ProductsGroupingKeepsBits) { TestGroupingKeepsBits<int8_t>(true); }
TEST_P(AttentionTest, BF16ManyRowsGroupingKeepsBits) { TestManyRowsGroupingKeepsBits<BF16>(); }
TEST_P(AttentionTest, I8ManyRowsGroupingKeepsBits) { TestManyRowsGroupingKeepsBits<int8_t>(); }
TEST_P(AttentionTest, Int8ProductsOfManyRowsGroupingKeepsBits) {
  TestManyRowsGroupingKeepsBits<int8_t>(true);
}
TEST_P(AttentionTest, Int8ProductsPoisonOutsideTheSpansDoesNotMatter) {
  TestPoisonOutsideTheSpansDoesNotMatter<int8_t>(true);
}

// Int8 products against weights in float: each weight is off by half a step, the largest of the
// tile / 254.
TEST_P(AttentionTest, Int8ProductsAreCloseToFloat) {
  constexpr int64_t kHeadDim = 80;
  Problem<int8_t> problem(7, kHeadDim, 30);
  problem.RoundQueries(31);
  States states(7, kHeadDim);
  problem.Run(table(), states);
  for (int64_t r = 0; r < 7; ++r) {
    const TileSpan span = problem.spans[r];
    if (span.begin == span.end) continue;
    double sum = 0, largest = 0;
    std::vector<double> want(kHeadDim), integers(kHeadDim);
    for (int64_t j = span.begin; j < span.end; ++j) {
      const double weight = std::exp(problem.Score(r, j));
      sum += weight;
      largest = std::max(largest, weight * problem.v_scales[j]);
      for (int64_t d = 0; d < kHeadDim; ++d) {
        want[d] += weight * problem.Value(j, d);
        integers[d] += std::fabs(problem.Value(j, d) / problem.v_scales[j]);
      }
    }
    const std::vector<float> out = Finish(states, r, kHeadDim);
    double error = 0;
    for (int64_t d = 0; d < kHeadDim; ++d) {
      const double bound = largest / 254 * integers[d] / sum + Tolerance(kHeadDim, kTileTokens);
      ASSERT_NEAR(out[d], want[d] / sum, bound);
      error = std::max(error, std::fabs(out[d] - want[d] / sum));
    }
    if (span.end - span.begin > 2) {
      EXPECT_GT(error, 1e-6) << "nothing was rounded";
    }
  }
}

// Weights that no quantization step represents: zero and NaN.
TEST_P(AttentionTest, Int8ProductsOfNothing) {
  Problem<int8_t> problem(1, 32, 32);
  problem.RoundQueries(33);
  problem.spans[0] = {3, 60};
  std::fill_n(problem.v_scales.data(), kTileTokens, 0.0f);
  States states(1, 32);
  problem.Run(table(), states);
  for (const float x : Finish(states, 0, 32)) EXPECT_EQ(x, 0.0f);
  problem.v_scales[7] = kNan;
  problem.Run(table(), states);
  for (const float x : Finish(states, 0, 32)) EXPECT_TRUE(std::isnan(x));
}

// A value that is NaN reaches only the rows that see it. A neighbour that sees the other key of its
// pair is not affected.
TEST_P(AttentionTest, ANanValueReachesOnlyTheRowsThatSeeIt) {
  const auto test = [&](auto problem) {
    constexpr int64_t kKey = 12;
    for (int32_t r = 0; r < 12; ++r) {
      problem.spans[r] = r % 2 ? TileSpan{0, 8 + r} : TileSpan{6 + r, 40};
    }
    States want(12, 100), got(12, 100);
    problem.Run(table(), want);
    problem.PoisonValue(kKey);
    problem.Run(table(), got);
    for (int64_t r = 0; r < 12; ++r) {
      if (problem.spans[r].begin <= kKey && kKey < problem.spans[r].end) {
        EXPECT_TRUE(std::isnan(got.Row(r)[kStateHeader])) << r;
      } else {
        EXPECT_EQ(std::memcmp(got.Row(r), want.Row(r), got.stride() * 4), 0) << r;
      }
    }
  };
  test(Problem<float>(12, 100, 5));
  test(Problem<F16>(12, 100, 5));
  test(Problem<BF16>(12, 100, 5));
}

// A span counts its own keys alone, even where it begins or ends inside a pair or quad.
TEST_P(AttentionTest, EverySpanIsItsKeysAlone) {
  const auto test = [&](auto problem) {
    for (int32_t begin = 0; begin < 7; ++begin) {
      for (int32_t end = begin + 1; end < 9; ++end) {
        problem.spans[0] = {begin, end};
        States states(1, 24);
        problem.Run(table(), states);
        double sum = 0;
        std::vector<double> want(24);
        for (int64_t j = begin; j < end; ++j) {
          const double weight = std::exp(problem.Score(0, j));
          sum += weight;
          for (int64_t d = 0; d < 24; ++d) want[d] += weight * problem.Value(j, d);
        }
        const std::vector<float> out = Finish(states, 0, 24);
        for (int64_t d = 0; d < 24; ++d) ASSERT_NEAR(out[d], want[d] / sum, 0.01) << begin << end;
      }
    }
  };
  test(Problem<float>(1, 24, 6));
  test(Problem<BF16>(1, 24, 6));
  test(Problem<int8_t>(1, 24, 6));
  Problem<int8_t> products(1, 24, 6);
  products.RoundQueries(7);
  test(std::move(products));
}

TEST_P(AttentionTest, AnEmptySpanLeavesTheState) {
  Problem<float> problem(4, 40, 6);
  States states(4, 40);
  problem.spans = {{0, 64}, {3, 9}, {64, 64}, {0, 1}};
  problem.Run(table(), states);
  States before = states;
  problem.spans = {{0, 0}, {64, 64}, {17, 17}, {1, 1}};
  problem.Run(table(), states);
  EXPECT_TRUE(states == before);
}

TEST_P(AttentionTest, TheNextTileIsFetchedAndNotRead) {
  for (const int64_t rows : {1, 2, 4, 13}) {
    Problem<BF16> problem(rows, /*head_dim=*/40, /*seed=*/3);
    Problem<BF16> next(rows, /*head_dim=*/40, /*seed=*/4);
    for (int64_t j = 0; j < kTileTokens; ++j) next.Poison(j);
    States alone(rows, 40), followed(rows, 40);
    problem.Run(table(), alone);
    AttendTileArgs args = problem.Args(followed);
    args.next_k = next.k.data();
    args.next_v = next.v.data();
    table().attend_tile_bf16(args);
    EXPECT_EQ(alone, followed) << rows;
    States of_keys(rows, 40);
    args.state = of_keys.Row(0);
    args.next_v = nullptr;
    table().attend_tile_bf16(args);
    EXPECT_EQ(alone, of_keys) << rows;
  }
}

TEST_P(AttentionTest, OneKeyIsItsValue) {
  Problem<F16> problem(3, 33, 7);
  problem.spans = {{0, 1}, {17, 18}, {63, 64}};
  States states(3, 33);
  problem.Run(table(), states);
  for (int64_t r = 0; r < 3; ++r) {
    EXPECT_NEAR(states.Log2OfSum(r), problem.Score(r, problem.spans[r].begin) * std::numbers::log2e,
                Tolerance(33, 1));
    const std::vector<float> out = Finish(states, r, 33);
    for (int64_t d = 0; d < 33; ++d) {
      const float value = problem.Value(problem.spans[r].begin, d);
      EXPECT_NEAR(out[d], value, kEpsilon * std::fabs(value));
    }
  }
}

TEST_P(AttentionTest, MergedTilesAreOneSoftmax) {
  constexpr int64_t kHeadDim = 72, kTiles = 9;
  std::vector<Problem<float>> tiles;
  for (uint32_t t = 0; t < kTiles; ++t) tiles.emplace_back(1, kHeadDim, 20 + t);
  for (Problem<float>& tile : tiles) {
    std::copy_n(tiles[0].q.data(), kHeadDim, tile.q.data());
    tile.spans[0] = {0, 64};
  }
  for (uint32_t t = 3; t < kTiles; ++t) tiles[t].AddBias(40 + t);
  tiles.back().spans[0] = {0, 13};

  States folded(1, kHeadDim), merged(1, kHeadDim);
  for (Problem<float>& tile : tiles) {
    tile.Run(table(), folded);
    States own(1, kHeadDim);
    tile.Run(table(), own);
    table().merge_state(own.Row(0), kHeadDim, merged.Row(0));
  }

  double sum = 0;
  std::vector<double> want(kHeadDim);
  for (const Problem<float>& tile : tiles) {
    for (int64_t j = 0; j < tile.spans[0].end; ++j) {
      const double weight = std::exp(tile.Score(0, j));
      sum += weight;
      for (int64_t d = 0; d < kHeadDim; ++d) want[d] += weight * tile.Value(j, d);
    }
  }
  const double tolerance = Tolerance(kHeadDim, kTiles * kTileTokens);
  for (const States* states : {&folded, &merged}) {
    EXPECT_NEAR(states->Log2OfSum(0), std::log2(sum), 2 * tolerance);
    const std::vector<float> out = Finish(*states, 0, kHeadDim);
    for (int64_t d = 0; d < kHeadDim; ++d) EXPECT_NEAR(out[d], want[d] / sum, tolerance);
  }
}

TEST_P(AttentionTest, MergingWithEmptyIsTheIdentity) {
  Problem<float> problem(1, 50, 8);
  problem.spans[0] = {2, 50};
  States full(1, 50), empty(1, 50), into(1, 50);
  problem.Run(table(), full);
  full.Row(0)[kStateHeader] = -0.0f;  // a product or a sum with zeros would lose the sign
  const States before = full;

  table().merge_state(empty.Row(0), 50, full.Row(0));
  EXPECT_TRUE(full == before);
  table().merge_state(full.Row(0), 50, into.Row(0));
  EXPECT_TRUE(into == before);
  EXPECT_TRUE(into.GuardsIntact());

  States still_empty(1, 50);
  table().merge_state(empty.Row(0), 50, still_empty.Row(0));
  EXPECT_TRUE(still_empty == empty);
}

// A tile with scores far above another's replaces it; one with scores far below vanishes.
TEST_P(AttentionTest, FarScoresReplaceOrVanish) {
  constexpr int64_t kHeadDim = 16;
  Problem<float> low(1, kHeadDim, 9), high(1, kHeadDim, 10);
  low.spans[0] = high.spans[0] = {0, 64};
  for (int64_t d = 0; d < kHeadDim; ++d) low.q[d] = high.q[d] = 40;
  for (int64_t i = 0; i < low.k.size(); ++i) {
    low.k[i] = -1;  // scores of -160
    high.k[i] = 1;  // scores of 160
  }
  States only_high(1, kHeadDim), low_high(1, kHeadDim), high_low(1, kHeadDim);
  high.Run(table(), only_high);
  low.Run(table(), low_high);
  high.Run(table(), low_high);
  high.Run(table(), high_low);
  low.Run(table(), high_low);
  // Zeros may differ in sign, so the test compares numbers, not bits.
  for (int64_t i = 0; i < kStateHeader + kHeadDim; ++i) {
    if (i > 0 && i < kStateLanes) continue;
    EXPECT_EQ(low_high.Row(0)[i], only_high.Row(0)[i]) << i;
    EXPECT_EQ(high_low.Row(0)[i], only_high.Row(0)[i]) << i;
  }
  States own(1, kHeadDim), merged = only_high;
  low.Run(table(), own);
  table().merge_state(own.Row(0), kHeadDim, merged.Row(0));
  EXPECT_EQ(Finish(merged, 0, kHeadDim), Finish(only_high, 0, kHeadDim));
  States other_way = own;
  table().merge_state(only_high.Row(0), kHeadDim, other_way.Row(0));
  EXPECT_EQ(Finish(other_way, 0, kHeadDim), Finish(only_high, 0, kHeadDim));
}

TEST_P(AttentionTest, ScoresOfMinusInfinityWeighNothing) {
  Problem<float> problem(1, 8, 11);
  problem.spans[0] = {0, 20};
  for (int64_t d = 0; d < 8; ++d) problem.q[d] = 1;
  std::fill_n(problem.k.data(), problem.k.size(), -kInfinity);
  States states(1, 8);
  problem.Run(table(), states);
  EXPECT_EQ(states.Row(0)[0], -kInfinity);
  EXPECT_EQ(states.Sum(0), 0);
  EXPECT_EQ(Finish(states, 0, 8), std::vector<float>(8, 0.0f));
}

// A bias of zeros changes nothing. A bias too low for a float's exponent, or for any number, leaves
// no weight.
TEST_P(AttentionTest, ABiasIsAddedToTheScaledScore) {
  Problem<float> problem(2, 24, 13);
  problem.spans = {{0, 64}, {10, 20}};
  States plain(2, 24), zero(2, 24);
  problem.Run(table(), plain);
  problem.bias.assign(2 * kTileTokens, 0.0f);
  problem.Run(table(), zero);
  EXPECT_TRUE(zero == plain);
  for (const float none : {-1000.0f, -std::numeric_limits<float>::infinity()}) {
    States one_key(2, 24);
    problem.bias.assign(2 * kTileTokens, none);
    problem.bias[5] = problem.bias[kTileTokens + 12] = -3.0f;
    problem.Run(table(), one_key);
    for (const auto& [row, key] : {std::pair{0, 5}, {1, 12}}) {
      EXPECT_NEAR(one_key.Log2OfSum(row), problem.Score(row, key) * std::numbers::log2e,
                  2 * Tolerance(24, 1));
      const std::vector<float> out = Finish(one_key, row, 24);
      for (int64_t d = 0; d < 24; ++d) {
        EXPECT_NEAR(out[d], problem.Value(key, d), kEpsilon * std::fabs(problem.Value(key, d)));
      }
    }
  }
}

TEST_P(AttentionTest, ANanKeyIsNotHidden) {
  for (const int64_t key : {0, 5, 16, 19}) {
    Problem<float> problem(2, 24, 12);
    problem.spans = {{0, 20}, {20, 40}};
    problem.SetKey(key, 0, kNan);
    States states(2, 24);
    problem.Run(table(), states);
    for (const float x : Finish(states, 0, 24)) EXPECT_TRUE(std::isnan(x));
    for (const float x : Finish(states, 1, 24)) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST_P(AttentionTest, FinishWritesTheHeadOnly) {
  for (const int64_t head_dim : {1, 15, 16, 17, 100}) {
    States states(1, head_dim);
    Guarded<float> out(head_dim, 1);
    table().finish_state(states.Row(0), head_dim, out.data());
    EXPECT_TRUE(out.GuardsIntact());
    for (int64_t d = 0; d < head_dim; ++d) EXPECT_EQ(Bits(out[d]), 0u);
    states.Row(0)[kStateLanes] = 1;
    states.Row(0)[kStateHeader - 1] = 2;
    for (int64_t d = 0; d < head_dim; ++d) states.Row(0)[kStateHeader + d] = d;
    table().finish_state(states.Row(0), head_dim, out.data());
    EXPECT_TRUE(out.GuardsIntact());
    for (int64_t d = 0; d < head_dim; ++d) EXPECT_EQ(out[d], d / 3.0f);
  }
}

}  // namespace
}  // namespace godwit::kernels::attention_test
