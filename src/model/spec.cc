#include "model/spec.h"

#include <cmath>

#include "base/error.h"

namespace godwit {

const MlpSpec& MlpOf(const DecoderSpec& spec, int64_t layer) {
  const bool dense = !spec.dense_layers.empty() && spec.dense_layers[layer];
  return dense ? spec.dense_mlp : spec.mlp;
}

const RotarySpec& RotationOf(const DecoderSpec& spec, int64_t layer) {
  const bool other = !spec.uses_other_rotary.empty() && spec.uses_other_rotary[layer];
  return other ? spec.other_rotary : spec.rotary;
}

DecoderSpec FirstLayers(DecoderSpec spec, int64_t layers) {
  spec.layers = layers;
  spec.windows.resize(layers);
  for (std::vector<bool>* list : {&spec.uses_other_rotary, &spec.dense_layers}) {
    if (!list->empty()) list->resize(layers);
  }
  return spec;
}

bool BiasIsKeyMean(const DecoderSpec& spec) {
  return spec.qkv_bias && spec.qk_norm == QkNorm::kNone && !spec.latent;
}

AttentionGeometry Geometry(const DecoderSpec& spec) {
  std::optional<int64_t> values_from;
  if (spec.latent) values_from = spec.latent->values_from();
  return {.layers = spec.layers,
          .shape = {.heads = spec.heads,
                    .kv_heads = spec.kv_heads,
                    .head_dim = spec.head_dim,
                    .scale = spec.score_scale.value_or(
                        1.0f / std::sqrt(static_cast<float>(spec.head_dim))),
                    .score_cap = spec.score_cap.value_or(0),
                    .values_from = values_from},
          .rotaries = {spec.rotary, spec.other_rotary},
          .layer_rotary = {spec.uses_other_rotary.begin(), spec.uses_other_rotary.end()},
          .alibi = spec.alibi,
          .key_means = BiasIsKeyMean(spec),
          .learned_positions = spec.first_learned_position ? spec.max_context : 0,
          .windows = spec.windows,
          .chunked = spec.chunked};
}

int64_t DefaultContext(const DecoderSpec& spec) {
  return DependsOnContext(spec.rotary) ? spec.rotary.scaling.original_context : spec.max_context;
}

void RequireTokenIds(const DecoderSpec& spec, std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < spec.vocab_size) continue;
    Throw(ErrorKind::kInput, "token id {} is outside the model's vocabulary of {}", id,
          spec.vocab_size);
  }
}

}  // namespace godwit
