#include "bench/gpu_work.h"

namespace godwit::bench {

GpuWork CountGpuWork(const DecoderSpec& spec, const GpuPlan& plan) {
  constexpr int64_t kFloat = sizeof(float);
  GpuWork work{.weight_bytes = plan.weight_bytes};
  for (int64_t i = 0; i < plan.layers; ++i) {
    const LayerKind& kind = KindOf(spec, i);
    const int64_t q = spec.heads * kind.head_dim, kv = kind.kv_heads * kind.head_dim;
    const int64_t qkv = q + (spec.gated_attention ? q : 0) + (kind.keys_are_values ? kv : 2 * kv);
    work.layer_multiply_adds += spec.hidden_size * (qkv + q);
    work.layer_bus_bytes += kFloat * (qkv + q);
    if (GpuComputesMlp(kind.mlp)) {
      work.layer_multiply_adds += 3 * spec.hidden_size * kind.mlp.intermediate;
      continue;
    }
    work.layer_bus_bytes += kFloat * 2 * spec.hidden_size;
    ++work.waits;
    // A storage that GPUs do not multiply leaves all of them on the host.
    if (plan.shared_mlps == 0 || !GpuComputesShared(spec, kind)) continue;
    work.layer_multiply_adds += 3 * spec.hidden_size * kind.shared_mlp.intermediate;
    if (kind.shared_gated) work.layer_bus_bytes += kFloat;
  }
  work.layer_bus_bytes += kFloat * 2 * spec.hidden_size;  // the residual stream, there and back
  work.waits += plan.layers + 1;
  if (!plan.head) return work;
  work.head_multiply_adds = spec.hidden_size * spec.vocab_size;
  work.head_bus_bytes = kFloat * (spec.hidden_size + spec.vocab_size);
  ++work.waits;
  return work;
}

void HoldAgainst(const GpuLimits& limits, const GpuWork& work, DType weights, TestResult& result) {
  const bool bf16 = weights == DType::kBF16;
  const double peak = bf16 ? limits.bf16_per_second : limits.int8_per_second;
  const auto texts = static_cast<double>(result.test.texts);
  const auto layers = static_cast<double>(work.layer_multiply_adds);
  const auto head = static_cast<double>(work.head_multiply_adds);
  const auto read_bytes = static_cast<double>(work.weight_bytes) / texts;  // of a token
  const bool prompt = result.test.prompt_tokens > 0;
  const double products =  // of a token; one of a prompt meets the head
      layers + (prompt ? head / static_cast<double>(result.test.prompt_tokens) : head);
  const bool multiplies = prompt || products / peak > read_bytes / limits.read_bytes_per_second;
  result.limit_kind = multiplies ? LimitKind::kMultiplyPeak : LimitKind::kReadBandwidth;
  result.limit_name = !multiplies ? "gpu_read_bandwidth" : bf16 ? "gpu_bf16_peak" : "gpu_int8_peak";
  result.work_per_token = multiplies ? products : read_bytes;
  const double limit = multiplies ? peak : limits.read_bytes_per_second;
  result.limits.assign(result.tokens_per_second.size(), limit);
  result.fractions.clear();
  for (const double rate : result.tokens_per_second) {
    result.fractions.push_back(rate * result.work_per_token / limit);
  }
}

}  // namespace godwit::bench
