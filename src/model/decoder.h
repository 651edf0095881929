// The one forward pass that serves every family: what differs is in the DecoderSpec.
#pragma once

#include <vector>

#include "model/language_model.h"
#include "model/spec.h"
#include "ops/norm.h"
#include "tensor/weight.h"

namespace godwit {

struct DecoderLayer {
  ops::NormWeights attention_norm;
  Weight qkv;  // [(heads + 2 * kv_heads) * head_dim, hidden]: all q, then all k, then all v
  ops::NormWeights q_norm;         // [head_dim], with DecoderSpec::qk_norm
  ops::NormWeights k_norm;         // [head_dim], likewise
  std::vector<float> sink_logits;  // [heads], or empty: ops::Attention
  Weight attention_out;            // [hidden, heads * head_dim]
  ops::NormWeights mlp_norm;       // empty for Topology::kParallelSharedNorm
  Weight up;    // [intermediate, hidden]; gated: gate, then up, [2 * intermediate, hidden]
  Weight down;  // [hidden, intermediate]
};

struct DecoderWeights {
  Table embedding;  // [vocab, hidden]; empty if tied
  std::vector<DecoderLayer> layers;
  ops::NormWeights final_norm;
  Weight head;  // [vocab, hidden]
};

class Decoder : public LanguageModel {
 public:
  Decoder(DecoderSpec spec, DecoderWeights weights);

  const DecoderSpec& spec() const { return spec_; }
  int64_t weight_bytes() const;
  // Of those, the matrices that every token meets, and the output head: what a decode step reads.
  int64_t step_bytes() const;
  DType weight_type() const { return weights_.head.dtype; }

  int64_t vocab_size() const override { return spec_.vocab_size; }
  int64_t hidden_size() const override { return spec_.hidden_size; }
  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override;
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override;

 private:
  void EmbedTokens(const Exec& exec, std::span<const Segment> segments, MatrixView<float> x) const;
  void AttentionBlock(const Exec& exec, int64_t layer, std::span<const Segment> segments,
                      MatrixView<const float> x, MatrixView<float> out) const;
  void MlpBlock(const Exec& exec, const DecoderLayer& layer, MatrixView<const float> x,
                MatrixView<float> out) const;

  DecoderSpec spec_;
  DecoderWeights weights_;
};

}  // namespace godwit
