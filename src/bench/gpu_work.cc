#include "bench/gpu_work.h"

namespace godwit::bench {

GpuWork CountGpuWork(const DecoderSpec& spec, const GpuPlan& plan) {
  constexpr int64_t kFloat = sizeof(float);
  GpuWork work{.weight_bytes = plan.weight_bytes};
  for (int64_t i = 0; i < plan.layers; ++i) {
    const LayerKind& kind = KindOf(spec, i);
    const int64_t q = spec.heads * kind.head_dim, kv = kind.kv_heads * kind.head_dim;
    const int64_t qkv = q + (spec.gated_attention ? q : 0) + (kind.keys_are_values ? kv : 2 * kv);
    work.layer_multiply_adds += spec.hidden_size * (qkv + q + 3 * kind.mlp.intermediate);
    work.layer_bus_bytes += kFloat * (qkv + q);
  }
  work.layer_bus_bytes += kFloat * 2 * spec.hidden_size;  // the residual stream, there and back
  work.waits = plan.layers + 1;
  if (!plan.head) return work;
  work.head_multiply_adds = spec.hidden_size * spec.vocab_size;
  work.head_bus_bytes = kFloat * (spec.hidden_size + spec.vocab_size);
  ++work.waits;
  return work;
}

}  // namespace godwit::bench
