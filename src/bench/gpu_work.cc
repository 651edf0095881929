#include "bench/gpu_work.h"

#include <algorithm>
#include <string>
#include <vector>

#include "attention/make_policy.h"
#include "ops/gpu/gpu_near.h"

namespace godwit::bench {

GpuWork CountGpuWork(const DecoderSpec& spec, const GpuPlan& plan) {
  constexpr int64_t kFloat = sizeof(float);
  GpuWork work{.weight_bytes = plan.weight_bytes};
  for (int64_t i = 0; i < plan.layers; ++i) {
    const LayerKind& kind = KindOf(spec, i);
    const int64_t q = spec.heads * kind.head_dim, kv = kind.kv_heads * kind.head_dim;
    const int64_t qkv = q + (spec.gated_attention ? q : 0) + (kind.keys_are_values ? kv : 2 * kv);
    work.layer_multiply_adds += spec.hidden_size * (qkv + q);
    work.layer_bus.out += kFloat * qkv;
    work.layer_bus.in += kFloat * q;
    if (GpuComputesMlp(kind.mlp)) {
      work.layer_multiply_adds += 3 * spec.hidden_size * kind.mlp.intermediate;
      continue;
    }
    work.layer_bus.in += kFloat * spec.hidden_size;
    work.layer_bus.out += kFloat * spec.hidden_size;
    ++work.waits;
    // A storage that GPUs do not multiply leaves all of them on the host.
    if (plan.shared_mlps == 0 || !GpuComputesShared(spec, kind)) continue;
    work.layer_multiply_adds += 3 * spec.hidden_size * kind.shared_mlp.intermediate;
    if (kind.shared_gated) work.layer_bus.in += kFloat;
  }
  // The residual stream, there and back.
  work.layer_bus.in += kFloat * spec.hidden_size;
  work.layer_bus.out += kFloat * spec.hidden_size;
  work.waits += plan.layers + 1;
  if (!plan.head) return work;
  work.head_multiply_adds = spec.hidden_size * spec.vocab_size;
  work.head_bus = {.in = kFloat * spec.hidden_size, .out = kFloat * spec.vocab_size};
  ++work.waits;
  return work;
}

namespace {

// Products of a query with a key and of its weight with a value, for all heads.
int64_t AttentionMultiplyAdds(const ops::AttentionShape& shape, int64_t met_keys) {
  return met_keys * shape.heads * (shape.head_dim + shape.value_dim());
}

}  // namespace

GpuAttentionWork CountGpuReading(const DecoderSpec& spec, DType kv_type, int64_t depth,
                                 int64_t tokens, int64_t chunk_tokens) {
  const AttentionGeometry geometry = Geometry(spec);
  const int64_t head_bytes = LayoutOf(geometry, kv_type).head_bytes();
  const ops::AttentionShape& shape = geometry.shape;
  GpuAttentionWork reading;
  for (int64_t layer = 0; layer < geometry.layers; ++layer) {
    const ops::Visible visible = geometry.SeenIn(layer);
    const int64_t end = depth + tokens;
    for (int64_t at = depth; at < end; at += chunk_tokens) {
      reading.bus += ops::GpuAttentionBusBytes(shape, head_bytes, visible, at,
                                               std::min(chunk_tokens, end - at));
    }
    int64_t met_keys = 0;
    for (int64_t position = depth; position < end; ++position) {
      const ops::KvRange seen = visible.At(position);
      met_keys += seen.end - seen.begin;
    }
    reading.multiply_adds += AttentionMultiplyAdds(shape, met_keys);
  }
  return reading;
}

GpuAttentionWork CountGpuNear(const DecoderSpec& spec, DType kv_type, const ops::NearTiles& near,
                              int64_t depth) {
  const AttentionGeometry geometry = Geometry(spec);
  const int64_t head_bytes = LayoutOf(geometry, kv_type).head_bytes();
  const ops::AttentionShape& shape = geometry.shape;
  GpuAttentionWork work;
  for (int64_t layer = 0; layer < geometry.layers; ++layer) {
    const ops::Visible visible = geometry.SeenIn(layer);
    const ops::AttentionSource source{.visible = visible};
    const ops::NearCut cut =
        CutNear(near, {.first_row = 0, .rows = 1, .position = depth, .sources = {&source, 1}});
    work.bus += ops::GpuNearBusBytes(shape, head_bytes, cut);
    work.memory_bytes += cut.count() * shape.kv_heads * head_bytes;
    const ops::KvRange seen = visible.At(depth);
    const int64_t window_begin = std::max(seen.begin, cut.window * kTileTokens);
    const int64_t met_keys = cut.sinks * kTileTokens + seen.end - window_begin;
    work.multiply_adds += AttentionMultiplyAdds(shape, met_keys);
  }
  return work;
}

namespace {

// A limit and the work of a token that it holds up.
struct Bound {
  const char* name;
  LimitKind kind;
  double work;        // bytes or multiply-adds
  double per_second;  // 0: not measured

  double seconds() const { return per_second > 0 ? work / per_second : 0; }
};

}  // namespace

void HoldAgainst(const GpuLimits& limits, const GpuWork& work, DType weights,
                 const GpuAttentionWork& attention, TestResult& result) {
  const bool bf16 = weights == DType::kBF16;
  const bool prompt = result.test.prompt_tokens > 0;
  const auto texts = static_cast<double>(result.test.texts);
  // Only one token of a prompt meets the head.
  const double tokens = prompt ? static_cast<double>(result.test.prompt_tokens) : 1;
  const auto of_token = [&](int64_t in_layers, int64_t in_head, int64_t in_attention) {
    const double once = static_cast<double>(in_head) + static_cast<double>(in_attention);
    return static_cast<double>(in_layers) + once / tokens;
  };
  std::vector<Bound> bounds;
  if (!prompt) {
    bounds.push_back({"gpu_read_bandwidth", LimitKind::kReadBandwidth,
                      static_cast<double>(work.weight_bytes) / texts +
                          static_cast<double>(attention.memory_bytes),
                      limits.read_bytes_per_second});
  }
  bounds.insert(
      bounds.end(),
      {{bf16 ? "gpu_bf16_peak" : "gpu_int8_peak", LimitKind::kMultiplyPeak,
        of_token(work.layer_multiply_adds, work.head_multiply_adds, attention.multiply_adds),
        bf16 ? limits.bf16_per_second : limits.int8_per_second},
       {"gpu_bus_in", LimitKind::kReadBandwidth,
        of_token(work.layer_bus.in, work.head_bus.in, attention.bus.in),
        limits.in_bytes_per_second},
       {"gpu_bus_out", LimitKind::kReadBandwidth,
        of_token(work.layer_bus.out, work.head_bus.out, attention.bus.out),
        limits.out_bytes_per_second}});
  const Bound& longest = *std::ranges::max_element(bounds, {}, &Bound::seconds);
  result.limit_kind = longest.kind;
  result.limit_name = longest.name;
  result.work_per_token = longest.work;
  result.limits.assign(result.tokens_per_second.size(), longest.per_second);
  result.fractions.clear();
  for (const double rate : result.tokens_per_second) {
    result.fractions.push_back(rate * longest.work / longest.per_second);
  }
}

}  // namespace godwit::bench
