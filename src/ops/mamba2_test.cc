#include "ops/mamba2.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/text_in_tiles_test_support.h"

namespace godwit::ops::mamba2_test {
namespace {

// A layer of pseudo-random weights, and inputs of a text.
struct Layer {
  Layer(const MatrixStateShape& shape, int64_t rows, StepRange range = {})
      : shape(shape),
        range(range),
        taps(shape.taps, shape.convolved(), 1),
        bias(1, shape.convolved(), 6),
        in(rows, shape.convolved(), 2, -2, 2),
        steps(rows, shape.value_heads, 3, -3, 3),
        rates(1, shape.value_heads, 4, 0.01f, 1),
        biases(1, shape.value_heads, 5),
        skips(1, shape.value_heads, 7) {}

  Mamba2Numbers numbers() const {
    return {.taps = taps.view(),
            .bias = bias.view().RowSpan(0),
            .decay_rates = rates.view().RowSpan(0),
            .step_biases = biases.view().RowSpan(0),
            .skips = skips.view().RowSpan(0),
            .steps = range};
  }

  MatrixStateShape shape;
  StepRange range;
  GappedMatrix taps, bias, in, steps, rates, biases, skips;
};

// The results of a text that is read in steps of `chunk` rows.
std::vector<float> Read(const Layer& layer, int64_t chunk, int threads = 1,
                        const Isa& isa = *IsaPointers().back()) {
  const MatrixStateShape& shape = layer.shape;
  const auto step = [&](const Exec& exec, std::span<const StatePiece> pieces, int64_t begin,
                        int64_t end, MatrixView<float> out) {
    Mamba2(exec, shape, layer.numbers(), pieces, layer.in.view().Rows(begin, end),
           layer.steps.view().Rows(begin, end), out);
  };
  return TextInTiles(shape.state_floats(), shape.row_floats())
      .Read(layer.in.view().rows, shape.values(), chunk, threads, isa, step);
}

// The outputs by the recurrent form, token by token in double.
class Recurrence {
 public:
  explicit Recurrence(const Layer& layer)
      : layer_(layer), states_(static_cast<size_t>(layer.shape.head_states())) {}

  std::vector<double> Run() {
    const auto step = [this](int64_t row, int64_t head, const std::vector<double>& mixed) {
      return Step(row, head, mixed);
    };
    return RunHeads(layer_.in, layer_.taps, &layer_.bias, layer_.shape.value_heads, step);
  }

 private:
  std::vector<double> Step(int64_t row, int64_t head, const std::vector<double>& mixed) {
    const MatrixStateShape& shape = layer_.shape;
    const int64_t n = shape.key_dim, m = shape.value_dim;
    const double* const x = &mixed[head * m];
    const double* const b = &mixed[shape.values() + head / shape.group() * n];
    const double* const c = b + shape.keys();
    const double length =
        std::log1p(std::exp(layer_.steps.At(row, head) + layer_.biases.At(0, head)));
    const double step = std::clamp<double>(length, layer_.range.min, layer_.range.max);
    const double decay = std::exp(-layer_.rates.At(0, head) * step);
    double* const state = &states_[head * shape.head_state()];
    std::vector<double> out;
    for (int64_t i = 0; i < m; ++i) {
      double sum = layer_.skips.At(0, head) * x[i];
      for (int64_t d = 0; d < n; ++d) {
        state[d * m + i] = decay * state[d * m + i] + step * b[d] * x[i];
        sum += c[d] * state[d * m + i];
      }
      out.push_back(sum);
    }
    return out;
  }

  const Layer& layer_;
  std::vector<double> states_;
};

// Groups are key heads.
constexpr MatrixStateShape kShapes[] = {
    {.key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8, .taps = 4},
    {.key_heads = 2, .value_heads = 6, .key_dim = 5, .value_dim = 33, .taps = 4},
    {.key_heads = 3, .value_heads = 3, .key_dim = 70, .value_dim = 9, .taps = 2},
    {.key_heads = 1, .value_heads = 5, .key_dim = 128, .value_dim = 64, .taps = 1}};

// The largest number of outputs, against which errors are measured.
double Largest(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double number : numbers) largest = std::max(largest, std::abs(number));
  return largest;
}

class Mamba2Test : public kernels::IsaTest {};
GODWIT_FOR_EVERY_ISA(Mamba2Test);

TEST_P(Mamba2Test, IsTheRecurrence) {
  for (const MatrixStateShape& shape : kShapes) {
    const Layer layer(shape, 150);
    const auto found = Read(layer, 150, /*threads=*/1, *GetParam());
    const auto expected = Recurrence(layer).Run();
    ASSERT_EQ(found.size(), expected.size());
    const double bound = 2e-6 * Largest(expected);
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], bound) << shape.key_dim << ", " << i;
    }
  }
}

TEST_P(Mamba2Test, ChunksAndThreadsChangeNoBits) {
  for (const MatrixStateShape& shape : {kShapes[1], kShapes[3]}) {
    const Layer layer(shape, 140);
    const auto one_by_one = Read(layer, 1, /*threads=*/1, *GetParam());
    for (const int64_t chunk : {2, 7, 63, 64, 65, 140}) {
      EXPECT_EQ(Read(layer, chunk, /*threads=*/3, *GetParam()), one_by_one) << chunk;
    }
  }
}

TEST(Mamba2, StepsStayInTheirRange) {
  const Layer free(kShapes[1], 40), bound(kShapes[1], 40, {.min = 0.2f, .max = 0.5f});
  const auto found = Read(bound, 40);
  const auto expected = Recurrence(bound).Run();
  const double error = 2e-6 * Largest(expected);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], error) << i;
  EXPECT_NE(found, Read(free, 40));
}

// A decay of nearly 0 forgets all tokens before, and leaves no NaN.
TEST(Mamba2, DecaysMayVanish) {
  Layer layer(kShapes[0], 70);
  layer.rates.view().Row(0)[0] = 4;
  for (int64_t row = 5; row < 70; row += 10) layer.steps.view().Row(row)[0] = 60;
  const auto found = Read(layer, 70);
  const auto expected = Recurrence(layer).Run();
  const double error = 2e-6 * Largest(expected);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], error) << i;
}

// The place of x is free for the results.
TEST(Mamba2, ResultsMayReplaceTheirInputs) {
  const MatrixStateShape& shape = kShapes[1];
  const Layer layer(shape, 100);
  GappedMatrix inner(100, shape.convolved());
  const auto step = [&](const Exec& exec, std::span<const StatePiece> pieces, int64_t begin,
                        int64_t end, MatrixView<float> out) {
    const auto rows = inner.view().Rows(begin, end);
    for (int64_t i = 0; i < rows.rows; ++i) {
      std::copy_n(layer.in.view().Row(begin + i), rows.cols, rows.Row(i));
    }
    const auto results = rows.Cols(0, shape.values());
    Mamba2(exec, shape, layer.numbers(), pieces, rows, layer.steps.view().Rows(begin, end),
           results);
    for (int64_t i = 0; i < rows.rows; ++i) {
      std::copy_n(results.Row(i), results.cols, out.Row(i));
    }
  };
  EXPECT_EQ(TextInTiles(shape.state_floats(), shape.row_floats())
                .Read(100, shape.values(), 70, /*threads=*/3, *IsaPointers().back(), step),
            Read(layer, 100));
}

}  // namespace
}  // namespace godwit::ops::mamba2_test
