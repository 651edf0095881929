// The definition of all kernels but attention (scalar_attention.cc) and the product with grouped
// weights (scalar_groups.cc), in plain loops. The other tables are tested against it, so sums and
// functions are computed in double where that is simple.
#include "kernels/scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/packing.h"
#include "kernels/tables.h"

namespace godwit::kernels {
namespace {

float ToFloat(float x) { return x; }
using godwit::ToFloat;

// kDepth: elements of one column that lie side by side in the panel.
template <class A, class W, int64_t kDepth>
void GemmRow(const GemmArgs& args, const W* panel, int64_t row, int64_t column) {
  const A* a = static_cast<const A*>(args.a) + row * args.a_stride;
  float sums[kPanelColumns] = {};
  for (int64_t k = 0; k < args.k; ++k) {
    const float x = ToFloat(a[k]);
    const W* w = panel + k / kDepth * kDepth * kPanelColumns + k % kDepth;
    for (int64_t c = 0; c < kPanelColumns; ++c) sums[c] += x * ToFloat(w[c * kDepth]);
  }
  float* out = args.out + row * args.out_stride;
  for (int64_t c = 0; c < kPanelColumns && column + c < args.columns; ++c) {
    out[column + c] = args.bias != nullptr ? sums[c] + args.bias[column + c] : sums[c];
  }
}

template <class A, class W, int64_t kDepth>
void Gemm(const GemmArgs& args) noexcept {
  const int64_t panel_elements = (args.k + kDepth - 1) / kDepth * kDepth * kPanelColumns;
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const W* panel = static_cast<const W*>(args.w) + p * panel_elements;
    for (int64_t row = 0; row < args.rows; ++row) {
      GemmRow<A, W, kDepth>(args, panel, row, p * kPanelColumns);
    }
  }
}

void GemmI8Row(const GemmArgs& args, const uint8_t* panel, int64_t row, int64_t column) {
  const int8_t* a = static_cast<const int8_t*>(args.a) + row * args.a_stride;
  for (int64_t c = 0; c < kPanelColumns && column + c < args.columns; ++c) {
    int32_t dot = 0;
    for (int64_t k = 0; k < args.k; ++k) {
      dot += a[k] * (panel[(k / kQuad * kPanelColumns + c) * kQuad + k % kQuad] - 128);
    }
    const float weighed = static_cast<float>(dot) * args.w_scales[column + c];
    const float x = weighed * args.a_scales[row];
    args.out[row * args.out_stride + column + c] =
        args.bias != nullptr ? x + args.bias[column + c] : x;
  }
}

void GemmI8(const GemmArgs& args) noexcept {
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const auto* panel = static_cast<const uint8_t*>(args.w) + p * PanelBytes(DType::kI8, args.k);
    for (int64_t row = 0; row < args.rows; ++row) GemmI8Row(args, panel, row, p * kPanelColumns);
  }
}

float LargestMagnitude(const float* x, int64_t n) noexcept {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(x[i]));
  }
  return largest;
}

QuantizedSum Quantize(const float* x, float factor, int64_t n, int8_t* out) noexcept {
  QuantizedSum result{.sum = 0, .finite = true};
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return {.sum = 0, .finite = false};
    const float bounded = std::clamp(x[i] * factor, -127.0f, 127.0f);
    out[i] = static_cast<int8_t>(std::nearbyint(bounded));
    result.sum += out[i];
  }
  for (int64_t i = n; i % kQuad != 0; ++i) out[i] = 0;
  return result;
}

void RmsNorm(const float* x, const float* weight, float eps, int64_t n, float* out) noexcept {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += double{x[i]} * x[i];
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i] * scale * weight[i]);
}

void LayerNorm(const float* x, const float* weight, const float* bias, float eps, int64_t n,
               float* out) noexcept {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
  for (int64_t i = 0; i < n; ++i) {
    const double y = (x[i] - mean) * scale * weight[i];
    out[i] = static_cast<float>(bias != nullptr ? y + bias[i] : y);
  }
}

void RotateHalf(const float* cos, const float* sin, int64_t half, float* x) noexcept {
  for (int64_t i = 0; i < half; ++i) {
    const float low = x[i];
    const float high = x[i + half];
    x[i] = low * cos[i] - high * sin[i];
    x[i + half] = high * cos[i] + low * sin[i];
  }
}

void Hadamard(int64_t n, float* x) noexcept {
  const int64_t block = HadamardBlock(n);
  for (int64_t stride = 1; stride < block; stride *= 2) {
    for (int64_t i = 0; i < n; ++i) {
      if (i / stride % 2 != 0) continue;
      const float low = x[i], high = x[i + stride];
      x[i] = low + high;
      x[i + stride] = low - high;
    }
  }
  for (int64_t i = 0; i < n; ++i) x[i] *= HadamardFactor(block);
}

void CentreScores(const CentreScoresArgs& args) noexcept {
  for (int64_t row = 0; row < args.rows; ++row) {
    double product = 0;
    for (int64_t d = 0; d < args.head_dim; ++d) {
      product += double{args.q[row * args.q_stride + d]} * double{ToFloat(args.centre[d])};
    }
    float* const bias = args.bias + row * args.bias_stride;
    for (int64_t j = 0; j < kTileTokens; ++j) bias[j] += static_cast<float>(args.scale * product);
  }
}

void AddRows(const float* a, const float* b, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void Multiply(const float* a, const float* b, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
}

double Sigmoid(double z) { return 1.0 / (1.0 + std::exp(-z)); }

void Silu(const float* x, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i] * Sigmoid(x[i]));
}

void Decays(const float* x, const float* biases, float rate, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) {
    const double z = x[i] + biases[i];
    const double softplus = std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
    out[i] = static_cast<float>(std::exp(-double{rate} * softplus));
  }
}

void TimesSigmoid(const float* x, const float* gate, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i] * Sigmoid(gate[i]));
}

void GeluErf(const float* x, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) {
    const double phi = 0.5 * std::erfc(-x[i] * 0.70710678118654752440);
    out[i] = static_cast<float>(x[i] * phi);
  }
}

void GeluTanh(const float* x, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) {
    const double v = x[i];
    // (1 + tanh(u)) / 2 is the sigmoid of 2 u; u = sqrt(2 / pi) * (v + 0.044715 v^3).
    out[i] = static_cast<float>(v * Sigmoid(1.5957691216057307118 * (v + 0.044715 * v * v * v)));
  }
}

void Clamp(const float* x, float limit, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] < -limit ? -limit : x[i] > limit ? limit : x[i];
}

void Relu(const float* x, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] < 0 ? 0.0f : x[i];
}

template <class In>
void Widen(const In* x, int64_t n, float* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = ToFloat(x[i]);
}

void NarrowToBF16(const float* x, int64_t n, BF16* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = ToBF16(x[i]);
}

void NarrowToF16(const float* x, int64_t n, F16* out) noexcept {
  for (int64_t i = 0; i < n; ++i) out[i] = ToF16(x[i]);
}

}  // namespace

constinit const KernelTable kScalarTable = {.gemm_f32 = Gemm<float, float, 1>,
                                            .gemm_f16 = Gemm<float, F16, 1>,
                                            .gemm_bf16 = Gemm<BF16, BF16, 2>,
                                            .gemm_i8 = GemmI8,
                                            .gemm_groups = scalar::GemmGroups,
                                            .largest_magnitude = LargestMagnitude,
                                            .quantize = Quantize,
                                            .attend_tile_f32 = scalar::AttendTileF32,
                                            .attend_tile_f16 = scalar::AttendTileF16,
                                            .attend_tile_bf16 = scalar::AttendTileBF16,
                                            .attend_tile_i8 = scalar::AttendTileI8,
                                            .attend_tile_i8_i8 = scalar::AttendTileI8I8,
                                            .values_of_keys = scalar::ValuesOfKeys,
                                            .widen_nibbles = scalar::WidenNibbles,
                                            .score_tile_i8 = scalar::ScoreTileI8,
                                            .score_signs = scalar::ScoreSigns,
                                            .sum_powers = scalar::SumPowers,
                                            .merge_state = scalar::MergeState,
                                            .finish_state = scalar::FinishState,
                                            .rms_norm = RmsNorm,
                                            .layer_norm = LayerNorm,
                                            .rotate_half = RotateHalf,
                                            .hadamard = Hadamard,
                                            .centre_scores = CentreScores,
                                            .add_weighted_rows = scalar::AddWeightedRows,
                                            .dot_rows = scalar::DotRows,
                                            .dot_decayed_rows = scalar::DotDecayedRows,
                                            .add = AddRows,
                                            .multiply = Multiply,
                                            .clamp = Clamp,
                                            .times_sigmoid = TimesSigmoid,
                                            .decays = Decays,
                                            .silu = Silu,
                                            .gelu_erf = GeluErf,
                                            .gelu_tanh = GeluTanh,
                                            .relu = Relu,
                                            .bf16_to_f32 = Widen<BF16>,
                                            .f16_to_f32 = Widen<F16>,
                                            .f32_to_bf16 = NarrowToBF16,
                                            .f32_to_f16 = NarrowToF16};

}  // namespace godwit::kernels
