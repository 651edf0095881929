// The one forward pass that serves every family: what differs is in the DecoderSpec.
#pragma once

#include <vector>

#include "model/language_model.h"
#include "model/spec.h"
#include "ops/moe.h"
#include "ops/norm.h"
#include "tensor/weight.h"

namespace godwit {

// Of DecoderSpec::latent.
struct LatentWeights {
  Weight query_down;            // [query_rank, hidden], where there is one
  ops::NormWeights query_norm;  // [query_rank], likewise
  Weight query;    // [heads * query_dim, query_rank or hidden]: of each head the plain part first
  Weight kv_down;  // [kv_rank + rotary_dim, hidden]
  ops::NormWeights kv_norm;    // [kv_rank]
  std::vector<Weight> keys;    // of each head [kv_rank, plain_dim]: from a query to one of latents
  std::vector<Weight> values;  // of each head [value_dim, kv_rank]: from a mean of latents
};

struct DecoderLayer {
  ops::NormWeights attention_norm;  // these two with DecoderSpec::input_norms
  // [(heads + 2 * kv_heads) * head_dim, hidden]: all q, then all k, then all v
  Weight qkv;
  LatentWeights latent;                 // in its place, with DecoderSpec::latent
  ops::NormWeights q_norm;              // [head_dim] or [heads * head_dim], by DecoderSpec::qk_norm
  ops::NormWeights k_norm;              // [head_dim] or [kv_heads * head_dim], likewise
  std::vector<float> sink_logits;       // [heads], or empty: ops::Attention
  Weight attention_out;                 // [hidden, heads * head_dim, or of latent value_dim]
  ops::NormWeights attention_out_norm;  // [hidden], with DecoderSpec::output_norms
  ops::NormWeights mlp_norm;            // empty for Topology::kParallelSharedNorm
  // [intermediate, hidden]; gated: gate, then up, [2 * intermediate, hidden]. With experts that of
  // DecoderSpec::shared_mlp, or empty.
  Weight up;
  Weight down;                    // [hidden, intermediate], likewise
  ops::MoeWeights moe;            // with MlpSpec::experts
  ops::NormWeights mlp_out_norm;  // [hidden], with DecoderSpec::output_norms
};

// What the matrices are stored as.
struct WeightTypes {
  DType layers;        // of the layers: what most of their weights are
  bool mixed = false;  // whether others of them are something else
  DType head;          // of the output head
  // What their blocks or their packing is called, where these stay as they are; else empty.
  std::string_view layer_blocks = {};
  std::string_view head_blocks = {};
};

struct DecoderWeights {
  Table embedding;                  // [vocab, embedding_size]; empty if tied, or of blocks
  Weight embedding_blocks;          // likewise, of blocks
  Table positions;                  // [first_learned_position + max_context, hidden], or empty
  ops::NormWeights embedding_norm;  // [hidden], with DecoderSpec::embedding_norm
  Weight project_in;                // [hidden, embedding_size], with DecoderSpec::embedding_size
  Weight project_out;               // [embedding_size, hidden], likewise
  std::vector<DecoderLayer> layers;
  ops::NormWeights final_norm;  // [hidden], with DecoderSpec::final_norm
  Weight head;                  // [vocab, embedding_size]
  WeightTypes types;
};

class Decoder : public LanguageModel {
 public:
  Decoder(DecoderSpec spec, DecoderWeights weights);

  const DecoderSpec& spec() const { return spec_; }
  int64_t weight_bytes() const;
  // Of those, what lies in a mapped file: the system takes such memory for free, and reads it again
  // when it is needed.
  int64_t mapped_bytes() const;
  // Of those, the matrices that a token meets, and the output head: what a decode step reads.
  int64_t step_bytes() const;
  const WeightTypes& weight_types() const { return weights_.types; }

  int64_t vocab_size() const override { return spec_.vocab_size; }
  int64_t hidden_size() const override { return spec_.hidden_size; }
  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override;
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override;
  void NormedLogits(const Exec& exec, MatrixView<const float> normed,
                    MatrixView<float> logits) const override;

  // [hidden], or empty where there is none.
  std::span<const float> final_norm_weight() const { return weights_.final_norm.weight; }
  // Of that, which quantizing the layers leaves alone: tells models apart whose states mean
  // different things.
  uint64_t StatesDigest() const;

 private:
  // Of all layers, with so many experts in each.
  int64_t MatrixBytes(int64_t experts) const;
  void Embed(const Exec& exec, std::span<const Segment> segments, const AttentionStep& step,
             MatrixView<float> x) const;
  void EmbedTokens(const Exec& exec, std::span<const Segment> segments,
                   MatrixView<float> out) const;
  void AddPositions(const Exec& exec, const AttentionStep& step, MatrixView<float> x) const;
  // What a block's first weight reads of the residual stream x.
  ops::LinearRows BlockInput(const Exec& exec, const ops::NormWeights& norm,
                             MatrixView<const float> x, const Weight& w) const;
  void AttentionBlock(const Exec& exec, int64_t layer, AttentionStep& step,
                      MatrixView<const float> x, MatrixView<float> out) const;
  // The same with latent vectors in the place of keys and values.
  void LatentAttentionBlock(const Exec& exec, int64_t layer, AttentionStep& step,
                            MatrixView<const float> x, MatrixView<float> out) const;
  void LatentQueries(const Exec& exec, const LatentWeights& w, MatrixView<const float> normed,
                     MatrixView<float> queries) const;
  void NormQueriesOrKeys(const Exec& exec, const ops::NormWeights& norm, MatrixView<float> x) const;
  void MlpBlock(const Exec& exec, int64_t layer, MatrixView<const float> x,
                MatrixView<float> out) const;
  // out = down(activation(up(normed))), or the gated form.
  void Mlp(const Exec& exec, const MlpSpec& mlp, const DecoderLayer& layer,
           const ops::LinearRows& normed, MatrixView<float> out) const;
  void Experts(const Exec& exec, const MlpSpec& mlp, const DecoderLayer& layer,
               MatrixView<const float> normed, MatrixView<float> out) const;
  // What a block adds to the residual stream, from its result.
  void FinishBlock(const Exec& exec, const ops::NormWeights& norm, MatrixView<float> out) const;

  DecoderSpec spec_;
  DecoderWeights weights_;
};

}  // namespace godwit
