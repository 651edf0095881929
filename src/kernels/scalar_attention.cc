// The definition of the attention kernels: plain loops.
#include <cmath>
#include <limits>

#include "kernels/scalar.h"

namespace godwit::kernels::scalar {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

float ToFloat(float x) { return x; }
float ToFloat(int8_t x) { return x; }
using godwit::ToFloat;

// A NaN beside a number is passed over: it reaches the sum through its own weight.
float Larger(float a, float b) { return b > a ? b : a; }

// Weights of the span to integers of the largest of them; returns what one of them stands for.
float RoundWeights(TileSpan span, float* weights) {
  float largest = 0;
  for (int64_t j = span.begin; j < span.end; ++j) largest = Larger(largest, weights[j]);
  const float factor = largest < 0x1p-120f ? 0.0f : 127.0f / largest;
  for (int64_t j = span.begin; j < span.end; ++j) weights[j] = std::nearbyint(weights[j] * factor);
  return largest / 127.0f;
}

template <class Storage>
void AttendRow(const AttendTileArgs& args, int64_t row) {
  constexpr bool kScaled = sizeof(Storage) == 1;
  const auto* k = static_cast<const Storage*>(args.k);
  const auto* v = static_cast<const Storage*>(args.v);
  const TileSpan span = args.spans[row];
  const int64_t width = PadToLanes(args.head_dim);
  const float* q = args.q + row * args.q_stride;
  float* state = args.state + row * args.state_stride;
  float* values = state + kStateHeader;

  const float scale = args.q_scales == nullptr ? args.scale : args.scale * args.q_scales[row];
  float scores[kTileTokens];  // later weights
  float maximum = state[0];
  for (int64_t j = span.begin; j < span.end; ++j) {
    float sum = 0;
    for (int64_t d = 0; d < args.head_dim; ++d) sum += q[d] * ToFloat(k[d * kTileTokens + j]);
    scores[j] = scale * sum;
    if constexpr (kScaled) scores[j] *= args.k_scales[j];
    if (args.bias != nullptr) scores[j] += args.bias[row * kTileTokens + j];
    maximum = Larger(maximum, scores[j]);
  }
  // Where every score is -infinity: exp(-infinity - 0) is zero, without that it would be NaN.
  const float reference = maximum == kMinusInfinity ? 0.0f : maximum;
  if (maximum != state[0]) {
    const float factor = std::exp(state[0] - reference);
    state[0] = maximum;
    state[1] *= factor;
    for (int64_t d = 0; d < width; ++d) values[d] *= factor;
  }
  float sum = 0;
  for (int64_t j = span.begin; j < span.end; ++j) {
    const float weight = std::exp(scores[j] - reference);
    sum += weight;
    scores[j] = kScaled ? weight * args.v_scales[j] : weight;
  }
  state[1] += sum;
  if (args.q_scales != nullptr) {
    const float step = RoundWeights(span, scores);
    for (int64_t d = 0; d < width; ++d) {
      float dot = 0;
      for (int64_t j = span.begin; j < span.end; ++j) dot += scores[j] * ToFloat(v[j * width + d]);
      values[d] += step * dot;
    }
    return;
  }
  for (int64_t j = span.begin; j < span.end; ++j) {
    for (int64_t d = 0; d < width; ++d) values[d] += scores[j] * ToFloat(v[j * width + d]);
  }
}

template <class Storage>
void AttendTile(const AttendTileArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    if (args.spans[row].begin < args.spans[row].end) AttendRow<Storage>(args, row);
  }
}

}  // namespace

void AttendTileF32(const AttendTileArgs& args) noexcept { AttendTile<float>(args); }
void AttendTileF16(const AttendTileArgs& args) noexcept { AttendTile<F16>(args); }
void AttendTileBF16(const AttendTileArgs& args) noexcept { AttendTile<BF16>(args); }
void AttendTileI8(const AttendTileArgs& args) noexcept { AttendTile<int8_t>(args); }

// A sum of zero marks the empty state: the key with the maximal score adds exp(0) = 1.
void MergeState(const float* from, int64_t head_dim, float* into) noexcept {
  if (from[1] == 0.0f) return;
  const bool was_empty = into[1] == 0.0f;
  const float maximum = was_empty ? from[0] : Larger(into[0], from[0]);
  const float mine = was_empty ? 0.0f : std::exp(into[0] - maximum);
  const float theirs = was_empty ? 1.0f : std::exp(from[0] - maximum);
  into[0] = maximum;
  into[1] = was_empty ? from[1] : into[1] * mine + from[1] * theirs;
  const int64_t width = PadToLanes(head_dim);
  for (int64_t d = kStateHeader; d < kStateHeader + width; ++d) {
    into[d] = was_empty ? from[d] : into[d] * mine + from[d] * theirs;
  }
}

void FinishState(const float* state, int64_t head_dim, float* out) noexcept {
  for (int64_t d = 0; d < head_dim; ++d) {
    out[d] = state[1] == 0.0f ? 0.0f : state[kStateHeader + d] / state[1];
  }
}

}  // namespace godwit::kernels::scalar
