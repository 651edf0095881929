#include "bench/work.h"

#include <algorithm>

namespace godwit::bench {

namespace {

// The weights of the index in a layer that chooses.
int64_t IndexWeightsOf(const DecoderSpec& spec) {
  const KeyIndexSpec& index = *spec.key_index;
  return index.heads * index.head_dim * spec.latent->query_rank +
         (index.head_dim + index.heads) * spec.hidden_size;
}

int64_t LatentWeightsOf(const DecoderSpec& spec) {
  const LatentAttention& shape = *spec.latent;
  const int64_t queries = spec.heads * shape.query_dim();
  const int64_t values = spec.heads * shape.value_dim;
  const int64_t of_queries = shape.query_rank > 0 ? shape.query_rank * (spec.hidden_size + queries)
                                                  : queries * spec.hidden_size;
  return of_queries + (shape.cached_dim() + values) * spec.hidden_size +
         spec.heads * (shape.plain_dim + shape.value_dim) * shape.kv_rank;
}

int64_t AttentionWeightsOf(const DecoderSpec& spec, const LayerKind& kind) {
  if (spec.latent) return LatentWeightsOf(spec);
  const int64_t q = spec.heads * kind.head_dim, kv = kind.kv_heads * kind.head_dim;
  const int64_t made = !HasKeys(kind) ? 0 : kind.keys_are_values ? 1 : 2;
  return ((spec.gated_attention ? 3 : 2) * q + made * kv) * spec.hidden_size;
}

}  // namespace

int64_t LayerWeights(const DecoderSpec& spec) {
  int64_t weights = 0;
  if (spec.layer_embedding) {
    // The projection to all layers, and each layer's gate and projection.
    const LayerEmbedding& embedding = *spec.layer_embedding;
    weights += (embedding.layers + 2 * spec.layers) * embedding.width * spec.hidden_size;
  }
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const LayerKind& kind = KindOf(spec, layer);
    if (HasAttention(kind)) weights += AttentionWeightsOf(spec, kind);
    if (spec.key_index && !kind.shares_choice) weights += IndexWeightsOf(spec);
    if (kind.mixer == Mixer::kDecayingSum) weights += 2 * kind.sum.width * spec.hidden_size;
    if (kind.mixer == Mixer::kShortConvolution) {
      weights += kind.convolution.width * (4 * spec.hidden_size + kind.convolution.taps);
    }
    if (kind.mixer == Mixer::kGatedDeltaNet) {
      const ops::DeltaNetShape& shape = kind.delta.shape;
      const int64_t narrow = kind.delta.narrow, gates = shape.decays() + shape.values();
      weights += (shape.convolved() + shape.values() + shape.value_heads) * spec.hidden_size +
                 shape.convolved() * shape.taps;
      weights += narrow == 0 ? gates * spec.hidden_size : narrow * (2 * spec.hidden_size + gates);
    }
    if (kind.mixer == Mixer::kMamba2) {
      const ops::MatrixStateShape& shape = kind.mamba.shape;
      weights += (kind.mamba.projected() + shape.values()) * spec.hidden_size +
                 shape.convolved() * shape.taps;
    }
    const MlpSpec& mlp = kind.mlp;
    const int64_t experts = std::max<int64_t>(1, mlp.experts_per_token);
    const int64_t width = mlp.latent > 0 ? mlp.latent : spec.hidden_size;
    weights += experts * (mlp.gated ? 3 : 2) * mlp.intermediate * width +
               (mlp.experts + 2 * mlp.latent) * spec.hidden_size;
    if (mlp.experts == 0) continue;
    const MlpSpec& shared = kind.shared_mlp;
    weights += (shared.gated ? 3 : 2) * shared.intermediate * spec.hidden_size;
    if (kind.shared_gated) weights += spec.hidden_size;
  }
  return weights;
}

int64_t HeadWeights(const DecoderSpec& spec) { return spec.vocab_size * spec.hidden_size; }

int64_t MultiplyAdds(const DecoderSpec& spec, int64_t tokens, int64_t logit_rows,
                     int64_t met_keys) {
  const ops::AttentionShape shape = Geometry(spec).shape;
  const int64_t of_key = shape.heads / shape.kv_heads * (shape.head_dim + shape.value_dim());
  return tokens * LayerWeights(spec) + logit_rows * HeadWeights(spec) + of_key * met_keys;
}

}  // namespace godwit::bench
