// The definition of the attention kernels: plain loops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/scalar.h"

namespace godwit::kernels::scalar {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 0x1.715476p+0f;

float ToFloat(float x) { return x; }
float ToFloat(int8_t x) { return x; }
using godwit::ToFloat;

// The larger number. A NaN beside a number is passed over: it reaches the sums by its own weight.
float Larger(float a, float b) { return b > a ? b : a; }

// A tile whose numbers are stored as Storage.
template <class Storage>
struct Tile {
  static constexpr bool kScaled = sizeof(Storage) == 1;
  static constexpr int64_t kDepth = kScaled ? kQuad : std::is_same_v<Storage, BF16> ? 2 : 1;
  const AttendTileArgs& args;

  float Key(int64_t d, int64_t j) const {
    const int64_t at = KeyAt(kDepth, d, j);
    if constexpr (kScaled) return static_cast<const uint8_t*>(args.k)[at] - 128.0f;
    return ToFloat(static_cast<const Storage*>(args.k)[at]);
  }
  float Value(int64_t j, int64_t d) const {
    return ToFloat(static_cast<const Storage*>(args.v)[ValueAt(kDepth, args.value_dim, j, d)]);
  }
};

float Capped(float score, float cap) { return cap == 0 ? score : cap * std::tanh(score / cap); }

// Turns a row's scores into weights, and brings the state to their maximum.
void Weigh(TileSpan span, int64_t width, float* scores, float* state) {
  float largest = kMinusInfinity;
  for (int64_t j = span.begin; j < span.end; ++j) {
    scores[j] *= kLog2E;
    largest = Larger(largest, scores[j]);
  }
  if (largest > state[0]) {
    const float maximum = std::ceil(largest);
    const float factor = std::exp2(state[0] - maximum);
    state[0] = maximum;
    for (int64_t i = 0; i < kLaneFloats; ++i) state[kStateLanes + i] *= factor;
    for (int64_t d = 0; d < width; ++d) state[kStateHeader + d] *= factor;
  }
  // If every score is -infinity, 2^(-infinity - 0) is zero; without the zero it would be NaN.
  const float reference = state[0] == kMinusInfinity ? 0.0f : state[0];
  for (int64_t j = span.begin; j < span.end; ++j) scores[j] = std::exp2(scores[j] - reference);
}

template <class Storage>
void AttendRow(const AttendTileArgs& args, int64_t row) {
  using T = Tile<Storage>;
  const T tile{args};
  const TileSpan span = args.spans[row];
  const int64_t width = PadToLanes(args.value_dim);
  const float* q = static_cast<const float*>(args.q) + row * args.q_stride;
  float* state = args.state + row * args.state_stride;
  float weights[kTileTokens];
  for (int64_t j = span.begin; j < span.end; ++j) {
    float sum = 0;
    for (int64_t d = 0; d < args.head_dim; ++d) sum += q[d] * tile.Key(d, j);
    weights[j] = args.scale * sum;
    if constexpr (T::kScaled) weights[j] *= args.k_scales[j];
    weights[j] = Capped(weights[j], args.score_cap);
    if (args.bias != nullptr) weights[j] += args.bias[row * kTileTokens + j];
  }
  Weigh(span, width, weights, state);
  for (int64_t j = span.begin; j < span.end; ++j) {
    float weight = weights[j];
    float& lane = state[kStateLanes + j % kLaneFloats];
    if constexpr (T::kScaled) {
      lane += weight;
      weight = ToFloat(ToBF16(weight * args.v_scales[j]));
    } else {
      if constexpr (T::kDepth == 2) weight = ToFloat(ToBF16(weight));
      lane += weight;
    }
    for (int64_t d = 0; d < width; ++d) state[kStateHeader + d] += weight * tile.Value(j, d);
  }
}

void AttendInt8Row(const AttendTileArgs& args, int64_t row) {
  const Tile<int8_t> tile{args};
  const TileSpan span = args.spans[row];
  const int64_t width = PadToLanes(args.value_dim);
  const auto* q = static_cast<const int8_t*>(args.q) + row * args.q_stride;
  float* state = args.state + row * args.state_stride;
  const float scale = args.scale * args.q_scales[row];
  float weights[kTileTokens];
  for (int64_t j = span.begin; j < span.end; ++j) {
    float sum = 0;
    for (int64_t d = 0; d < args.head_dim; ++d) sum += q[d] * tile.Key(d, j);
    weights[j] = Capped((scale * sum) * args.k_scales[j], args.score_cap);
    if (args.bias != nullptr) weights[j] += args.bias[row * kTileTokens + j];
  }
  Weigh(span, width, weights, state);
  float largest = 0;
  for (int64_t j = span.begin; j < span.end; ++j) {
    state[kStateLanes + j % kLaneFloats] += weights[j];
    weights[j] *= args.v_scales[j];
    largest = weights[j] == weights[j] ? Larger(largest, weights[j]) : weights[j];
  }
  const float factor = largest < 0x1p-120f ? 0.0f : 127.0f / largest;
  for (int64_t d = 0; d < width; ++d) {
    float sum = 0;
    for (int64_t j = span.begin; j < span.end; ++j) {
      sum += std::nearbyint(weights[j] * factor) * tile.Value(j, d);
    }
    state[kStateHeader + d] += largest / 127.0f * sum;
  }
}

template <class Row>
void ForRowsThatSee(const AttendTileArgs& args, Row attend) {
  for (int64_t row = 0; row < args.rows; ++row) {
    if (args.spans[row].begin < args.spans[row].end) attend(args, row);
  }
}

float Total(const float* state) {
  float total = 0;
  for (int64_t i = 0; i < kLaneFloats; ++i) total += state[kStateLanes + i];
  return total;
}

}  // namespace

void AttendTileF32(const AttendTileArgs& args) noexcept { ForRowsThatSee(args, AttendRow<float>); }
void AttendTileF16(const AttendTileArgs& args) noexcept { ForRowsThatSee(args, AttendRow<F16>); }
void AttendTileBF16(const AttendTileArgs& args) noexcept { ForRowsThatSee(args, AttendRow<BF16>); }
void AttendTileI8(const AttendTileArgs& args) noexcept { ForRowsThatSee(args, AttendRow<int8_t>); }
void AttendTileI8I8(const AttendTileArgs& args) noexcept { ForRowsThatSee(args, AttendInt8Row); }

void ValuesOfKeys(const ValuesOfKeysArgs& args) noexcept {
  const int64_t depth = KvDepth(args.dtype), dim = args.head_dim - args.first;
  const auto turn = [&](auto element, auto value_of) {
    using Storage = decltype(element);
    auto* const v = static_cast<Storage*>(args.v);
    for (int64_t j = 0; j < kTileTokens; ++j) {
      for (int64_t d = 0; d < PadToLanes(dim); ++d) {
        const int64_t from = KeyAt(depth, args.first + d, j);
        v[ValueAt(depth, dim, j, d)] =
            d < dim ? value_of(static_cast<const Storage*>(args.k)[from]) : Storage{};
      }
    }
  };
  const auto same = [](auto bits) { return bits; };
  if (args.dtype == DType::kF32) return turn(uint32_t{}, same);
  if (args.dtype != DType::kI8) return turn(uint16_t{}, same);
  turn(uint8_t{}, [](uint8_t key) { return static_cast<uint8_t>(key - 128); });
}

void WidenNibbles(const WidenNibblesArgs& args) noexcept {
  for (int64_t i = 0; i < args.bytes; ++i) {
    args.out[i] = args.table[args.nibbles[i] & 15];
    args.out[args.bytes + i] = args.table[args.nibbles[i] >> 4];
  }
}

void ScoreTileI8(const ScoreTileArgs& args) noexcept {
  for (int64_t row = 0; row < args.rows; ++row) {
    const int8_t* q = args.q + row * args.q_stride;
    float* scores = args.scores + row * args.scores_stride;
    const float scale = args.scale * args.q_scales[row];
    std::fill_n(scores, kTileTokens, kMinusInfinity);
    for (int64_t j = 0; j < args.keys; ++j) {
      float dot = 0;
      for (int64_t d = 0; d < args.width; ++d) dot += q[d] * (args.k[KeyAt(kQuad, d, j)] - 128.0f);
      const float bias = args.bias == nullptr ? 0.0f : args.bias[row * kTileTokens + j];
      scores[j] = kLog2E * ((scale * dot) * args.k_scales[j] + bias);
    }
  }
}

PowerSum SumPowers(const float* x, int64_t n) noexcept {
  float largest = kMinusInfinity;
  for (int64_t i = 0; i < n; ++i) largest = Larger(largest, x[i]);
  PowerSum result{.maximum = largest == kMinusInfinity ? 0.0f : std::ceil(largest), .sum = 0};
  for (int64_t i = 0; i < n; ++i) result.sum += std::exp2(x[i] - result.maximum);
  return result;
}

void ScoreSigns(const ScoreSignsArgs& args) noexcept {
  for (int64_t i = 0; i < args.rows * args.tiles; ++i) {
    const int64_t row = i / args.tiles, tile = i % args.tiles;
    const uint8_t* const signs = args.signs + tile * args.groups * (kTileTokens / 2);
    int32_t largest = 0;
    for (int64_t j = 0; j < kTileTokens; ++j) {
      int32_t sum = 0;
      for (int64_t g = 0; g < args.groups; ++g) {
        const SignPlace place = SignAt(g, j);
        const int pattern = signs[place.byte] >> place.shift & 15;
        const int64_t at = (row * args.groups + g) * 16 + pattern;
        sum += args.fine == nullptr ? args.tables[at] : kSignFine * args.tables[at] + args.fine[at];
      }
      largest = std::max(largest, sum);
    }
    args.scores[row * args.scores_stride + tile] = static_cast<float>(largest - args.offsets[row]);
  }
}

void MergeState(const float* from, int64_t value_dim, float* into) noexcept {
  if (Total(from) == 0.0f) return;
  const bool was_empty = Total(into) == 0.0f;
  const float maximum = was_empty ? from[0] : Larger(into[0], from[0]);
  const float mine = std::exp2(into[0] - maximum);
  const float theirs = std::exp2(from[0] - maximum);
  const int64_t end = kStateHeader + PadToLanes(value_dim);
  for (int64_t i = kStateLanes; i < end; ++i) {
    into[i] = was_empty ? from[i] : into[i] * mine + from[i] * theirs;
  }
  into[0] = maximum;
}

void FinishState(const float* state, int64_t value_dim, float* out) noexcept {
  const float total = Total(state);
  for (int64_t d = 0; d < value_dim; ++d) {
    out[d] = total == 0.0f ? 0.0f : state[kStateHeader + d] / total;
  }
}

}  // namespace godwit::kernels::scalar
