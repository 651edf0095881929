#include "ops/gated_delta_net.h"

#include <cmath>
#include <vector>

#include "ops/text_in_tiles_test_support.h"

namespace godwit::ops::gated_delta_net_test {
namespace {

using kernels::kTileTokens;

// A layer of pseudo-random weights, and inputs of a text.
struct Layer {
  Layer(const DeltaNetShape& shape, int64_t rows)
      : shape(shape),
        taps(shape.taps, shape.convolved(), 1),
        in(rows, shape.convolved(), 2, -2, 2),
        gates(rows, shape.value_heads + shape.decays(), 3, -3, 3),
        rates(1, shape.value_heads, 4, 0.01f, 1),
        biases(1, shape.decays(), 5) {}

  DeltaNetWeights weights() const {
    return {.taps = taps.view(),
            .decay_rates = rates.view().RowSpan(0),
            .decay_biases = biases.view().RowSpan(0),
            .update_scale = update_scale};
  }

  DeltaNetShape shape;
  GappedMatrix taps, in, gates, rates, biases;
  float update_scale = 1;
};

// The results of a text that is read in steps of `chunk` rows.
std::vector<float> Read(const Layer& layer, int64_t chunk, int threads = 1,
                        const Isa& isa = *IsaPointers().back()) {
  const DeltaNetShape& shape = layer.shape;
  const auto step = [&](const Exec& exec, std::span<const StatePiece> pieces, int64_t begin,
                        int64_t end, MatrixView<float> out) {
    GatedDeltaNet(exec, shape, layer.weights(), pieces, layer.in.view().Rows(begin, end),
                  layer.gates.view().Rows(begin, end), out);
  };
  return TextInTiles(shape.state_floats(), shape.row_floats())
      .Read(layer.in.view().rows, shape.values(), chunk, threads, isa, step);
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The outputs by the recurrent form, token by token in double.
class Recurrence {
 public:
  explicit Recurrence(const Layer& layer)
      : layer_(layer),
        states_(static_cast<size_t>(layer.shape.value_heads * layer.shape.head_state())) {}

  std::vector<double> Run() {
    const auto step = [this](int64_t row, int64_t head, const std::vector<double>& mixed) {
      return Step(row, head, mixed);
    };
    return RunHeads(layer_.in, layer_.taps, /*bias=*/nullptr, layer_.shape.value_heads, step);
  }

 private:
  static std::vector<double> OfLengthOne(const double* x, int64_t n) {
    double square = 1e-6;
    for (int64_t i = 0; i < n; ++i) square += x[i] * x[i];
    std::vector<double> scaled(x, x + n);
    for (double& number : scaled) number /= std::sqrt(square);
    return scaled;
  }

  std::vector<double> Step(int64_t row, int64_t head, const std::vector<double>& mixed) {
    const DeltaNetShape& shape = layer_.shape;
    const int64_t n = shape.key_dim, m = shape.value_dim;
    const int64_t group = shape.value_heads / shape.key_heads;
    const int64_t key_head = shape.in_turn ? head % shape.key_heads : head / group;
    const std::vector<double> q = OfLengthOne(&mixed[key_head * n], n);
    const std::vector<double> k = OfLengthOne(&mixed[shape.keys() + key_head * n], n);
    const double* const v = &mixed[2 * shape.keys() + head * m];
    const double beta = layer_.update_scale * Sigmoid(layer_.gates.At(row, head));
    const auto decay = [&](int64_t d) {
      const int64_t at = shape.channel_decays ? head * n + d : head;
      const double step = std::log1p(
          std::exp(layer_.gates.At(row, shape.value_heads + at) + layer_.biases.At(0, at)));
      return std::exp(-layer_.rates.At(0, head) * step);
    };
    std::vector<double> decays;
    for (int64_t d = 0; d < n; ++d) decays.push_back(decay(d));
    double* const state = &states_[head * shape.head_state()];
    std::vector<double> out;
    for (int64_t c = 0; c < m; ++c) {
      double known = 0, result = 0;
      for (int64_t d = 0; d < n; ++d) known += k[d] * (state[d * m + c] *= decays[d]);
      const double delta = beta * (v[c] - known);
      for (int64_t d = 0; d < n; ++d) state[d * m + c] += k[d] * delta;
      for (int64_t d = 0; d < n; ++d) result += q[d] * state[d * m + c];
      out.push_back(result / std::sqrt(static_cast<double>(n)));
    }
    return out;
  }

  const Layer& layer_;
  std::vector<double> states_;
};

constexpr DeltaNetShape kShapes[] = {
    {.key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8, .taps = 4},
    {.key_heads = 2, .value_heads = 6, .key_dim = 5, .value_dim = 33, .taps = 4},
    {.key_heads = 2, .value_heads = 6, .key_dim = 5, .value_dim = 33, .taps = 4, .in_turn = true},
    {.key_heads = 3, .value_heads = 3, .key_dim = 70, .value_dim = 9, .taps = 2},
    {.key_heads = 1, .value_heads = 2, .key_dim = 128, .value_dim = 128, .taps = 1},
    {.key_heads = 3,
     .value_heads = 3,
     .key_dim = 19,
     .value_dim = 33,
     .taps = 4,
     .channel_decays = true},
    {.key_heads = 1,
     .value_heads = 1,
     .key_dim = 128,
     .value_dim = 128,
     .taps = 2,
     .channel_decays = true}};

class GatedDeltaNetTest : public kernels::IsaTest {};
GODWIT_FOR_EVERY_ISA(GatedDeltaNetTest);

TEST_P(GatedDeltaNetTest, IsTheRecurrence) {
  for (const DeltaNetShape& shape : kShapes) {
    const Layer layer(shape, 150);
    const auto found = Read(layer, 150, /*threads=*/1, *GetParam());
    const auto expected = Recurrence(layer).Run();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 2e-6) << shape.key_dim << ", " << i;
    }
  }
}

TEST_P(GatedDeltaNetTest, ChunksAndThreadsChangeNoBits) {
  for (const DeltaNetShape& shape : {kShapes[1], kShapes[3], kShapes[5]}) {
    const Layer layer(shape, 140);
    const auto one_by_one = Read(layer, 1, /*threads=*/1, *GetParam());
    for (const int64_t chunk : {2, 7, 63, 64, 65, 140}) {
      EXPECT_EQ(Read(layer, chunk, /*threads=*/3, *GetParam()), one_by_one) << chunk;
    }
  }
}

// A decay of nearly 0 forgets all tokens before, and leaves no NaN.
TEST(GatedDeltaNet, DecaysMayVanish) {
  Layer layer(kShapes[0], 70);
  for (int64_t row = 0; row < 70; ++row) {
    if (row % 10 == 5) layer.gates.view().Row(row)[1] = 1e4f;
  }
  const auto found = Read(layer, 70);
  const auto expected = Recurrence(layer).Run();
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-6) << i;
}

// Decays of channels that are all alike are those of heads, up to roundings.
TEST(GatedDeltaNet, EqualDecaysOfChannelsAreOneOfTheHead) {
  const DeltaNetShape of_heads = {
      .key_heads = 2, .value_heads = 2, .key_dim = 7, .value_dim = 9, .taps = 3};
  DeltaNetShape of_channels = of_heads;
  of_channels.channel_decays = true;
  const Layer heads(of_heads, 150);
  Layer channels(of_channels, 150);
  for (int64_t i = 0; i < of_channels.decays(); ++i) {
    const int64_t head = i / of_heads.key_dim;
    channels.biases.view().Row(0)[i] = heads.biases.At(0, head);
    for (int64_t row = 0; row < 150; ++row) {
      channels.gates.view().Row(row)[2 + i] = heads.gates.At(row, 2 + head);
    }
  }
  for (int64_t row = 0; row < 150; ++row) {
    for (int64_t head = 0; head < 2; ++head) {
      channels.gates.view().Row(row)[head] = heads.gates.At(row, head);
    }
  }
  const auto found = Read(channels, 150), expected = Read(heads, 150);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-6) << i;
}

// A factor of 2 on beta lets a state's parts change their sign.
TEST_P(GatedDeltaNetTest, UpdatesMayBeTwiceAsLarge) {
  for (const DeltaNetShape& shape : {kShapes[1], kShapes[5]}) {
    Layer layer(shape, 150);
    layer.update_scale = 2;
    const auto found = Read(layer, 150, /*threads=*/2, *GetParam());
    const auto expected = Recurrence(layer).Run();
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5) << i;
  }
}

// Some channels forget all at once, others nothing.
TEST(GatedDeltaNet, DecaysOfChannelsMayVanish) {
  Layer layer(kShapes[5], 140);
  for (int64_t row = 0; row < 140; ++row) {
    float* const gates = layer.gates.view().Row(row) + layer.shape.value_heads;
    for (int64_t d = row % 3; d < layer.shape.decays(); d += 3)
      gates[d] = row % 10 == 5 ? 1e4f : -90;
  }
  const auto found = Read(layer, 140);
  const auto expected = Recurrence(layer).Run();
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-6) << i;
}

}  // namespace
}  // namespace godwit::ops::gated_delta_net_test
