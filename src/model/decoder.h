// Decoder: the one forward pass that serves every family; families differ in the DecoderSpec.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "dist/communicator.h"
#include "model/eagle3_head.h"
#include "model/gpu_plan.h"
#include "model/language_model.h"
#include "model/mixers/gated_delta_net.h"
#include "model/mixers/mamba2.h"
#include "model/mixers/short_convolution.h"
#include "model/model_tensors.h"
#include "model/spec.h"
#include "ops/gpu/gpu_layer.h"
#include "ops/moe.h"
#include "ops/norm.h"
#include "tensor/weight.h"

namespace godwit {

// The weights of DecoderSpec::latent.
struct LatentWeights {
  Weight query_down;            // [query_rank, hidden], if query_rank > 0
  ops::NormWeights query_norm;  // [query_rank], if query_rank > 0
  Weight query;    // [heads * query_dim, query_rank or hidden]: each head's plain part first
  Weight kv_down;  // [kv_rank + rotary_dim, hidden]
  ops::NormWeights kv_norm;  // [kv_rank]
  // DecoderSpec::key_index, unless the layer shares the choice of another
  Weight index_query;           // [index heads * index dim, query_rank]
  Weight index_key;             // [index dim, hidden]
  ops::NormWeights index_norm;  // [index dim]
  Weight index_weights;         // [index heads, hidden], F32
  // For each head [kv_rank, plain_dim]: from a query to a query of latents
  std::vector<Weight> keys;
  std::vector<Weight> values;  // for each head [value_dim, kv_rank]: from a mean of latents
};

// The weights of DecoderSpec::streams in a layer, with n streams. Matrices are F32.
struct StreamWeights {
  ops::NormWeights router_norm;  // [hidden], its gains over hidden
  Weight router;                 // [n, hidden]
  Weight predict;                // [n * n, n]
  Weight correct;                // [n, n]
  std::vector<float> scales;     // [hidden], with StreamsSpec::scaled
};

struct DecoderLayer {
  ops::NormWeights attention_norm;  // with LayerKind::input_norms, as mlp_norm
  // [(heads + 2 * kv_heads) * head_dim, hidden]: all q, then all k, then all v, with
  // DecoderSpec::gated_attention then all gates; another mixer: its projection in (mixers/*.h)
  Weight qkv;
  LatentWeights latent;            // in the place of qkv, with DecoderSpec::latent
  ops::NormWeights q_norm;         // [head_dim] or [heads * head_dim], by DecoderSpec::qk_norm
  ops::NormWeights k_norm;         // [head_dim] or [kv_heads * head_dim], by DecoderSpec::qk_norm
  std::vector<float> query_gains;  // [head_dim], QkNorm::kHeadsThenGains, or empty
  std::vector<float> sink_logits;  // [heads], or empty: ops::Attention
  // [hidden, heads * head_dim], latent: [hidden, heads * value_dim], another mixer: [hidden, width]
  Weight attention_out;
  // Mixer::kShortConvolution, or of Mixer::kGatedDeltaNet and kMamba2 that of their inputs
  ShortConvolutionWeights convolution;
  GatedDeltaNetWeights delta;           // Mixer::kGatedDeltaNet
  Mamba2Weights mamba;                  // Mixer::kMamba2, with its projections
  ops::NormWeights attention_out_norm;  // [hidden], with LayerKind::output_norms
  ops::NormWeights mlp_norm;            // empty for Topology::kParallelSharedNorm
  // The MLP's first weight [intermediate, hidden]; gated: gate, then up, [2 * intermediate,
  // hidden]. With experts, up and down are those of LayerKind::shared_mlp, or empty.
  Weight up;
  Weight down;                    // [hidden, intermediate]
  ops::Xielu xielu;               // with MlpSpec::xielu
  ops::MoeWeights moe;            // with MlpSpec::experts
  Weight experts_in;              // [latent, hidden], with MlpSpec::latent
  Weight experts_out;             // [hidden, latent]
  Weight shared_share;            // [1, hidden], F32, with LayerKind::shared_gated
  ops::NormWeights mlp_out_norm;  // [hidden], with LayerKind::output_norms
  // DecoderSpec::branch_norms, all [hidden]. The router's gains have the root of 1 / hidden.
  ops::NormWeights router_norm, experts_norm, experts_out_norm, shared_out_norm;
  ops::NormWeights v_norm;              // [head_dim], ones, with DecoderSpec::value_norm
  Weight embedding_gate;                // [width, hidden], with DecoderSpec::layer_embedding
  Weight embedding_out;                 // [hidden, width]
  ops::NormWeights embedding_out_norm;  // [hidden]
  float scale = 1;                      // DecoderSpec::layer_scales
  StreamWeights streams;                // DecoderSpec::streams
  Weight laurel_down;                   // [StreamsSpec::narrow, hidden]
  Weight laurel_up;                     // [hidden, StreamsSpec::narrow]
  ops::NormWeights laurel_norm;         // [hidden]
};

// The types in which matrices are stored.
struct WeightTypes {
  DType layers;        // the type of most weights of the layers
  bool mixed = false;  // whether some weights of the layers have another type
  DType head;          // the type of the output head
  // The name of their blocks or packing, where they stay in that form; else empty.
  std::string_view layer_blocks = {};
  std::string_view head_blocks = {};
};

// DecoderSpec::prediction.
struct PredictionWeights {
  ops::NormWeights embedding_norm;  // [hidden], as output_norm and norm
  ops::NormWeights output_norm;
  Weight join;  // [hidden, 2 * hidden]
  DecoderLayer layer;
  ops::NormWeights norm;
};

struct DecoderWeights {
  Table embedding;                  // [vocab, embedding_size]; empty if tied, or of blocks
  Weight embedding_blocks;          // [vocab, embedding_size]; empty unless of blocks
  Table positions;                  // [first_learned_position + max_context, hidden], or empty
  ops::NormWeights embedding_norm;  // [hidden], with DecoderSpec::embedding_norm
  // The weights of DecoderSpec::layer_embedding. The table [vocab_size, layers * width] lies in the
  // checkpoint's mapping, and counts in no sum of bytes: a token reads one row of it.
  Table layer_table;
  Weight layer_model;                 // [layers * width, hidden]
  ops::NormWeights layer_model_norm;  // [width]
  // DecoderSpec::streams: for each but the first [hidden, hidden].
  std::vector<Weight> streams_in, streams_out;
  Weight project_in;   // [hidden, embedding_size], with DecoderSpec::embedding_size
  Weight project_out;  // [embedding_size, hidden], with DecoderSpec::embedding_size
  std::vector<DecoderLayer> layers;
  ops::NormWeights final_norm;                          // [hidden], with DecoderSpec::final_norm
  Weight head;                                          // [vocab, embedding_size]
  std::unique_ptr<const PredictionWeights> prediction;  // with DecoderSpec::predicts
  WeightTypes types;
};

// A decoder whose weights are shared by ranks has the spec and weights of a WeightShare. All ranks
// make the same calls together, with the same tokens, and get the same bits.
class Decoder : public LanguageModel {
 public:
  // ranks: those that share the weights; null: this process has them all.
  Decoder(DecoderSpec spec, DecoderWeights weights, std::shared_ptr<Communicator> ranks = nullptr);

  // Takes a head for this model (DecoderSpec::eagle3), before anything else is asked of it. For a
  // decoder without ranks and without a layer that predicts.
  void Take(std::unique_ptr<const Eagle3Head> head);

  // Lets as many layers compute on the GPU as fit into its memory, the first ones, and then the
  // output head (gpu_plan.h). The other layers compute here. step_rows: the most rows of a step for
  // which memory is reserved there. attends: whether that includes attention, for texts whose
  // policy lets the GPU read them (PrefillSpec::on_gpu); else it computes here. window: the near
  // keys that the GPU keeps for texts whose policy lets it attend to some. Called before anything
  // else is asked of the decoder. Throws Error(kUnsupported) for a model that GPUs do not
  // compute, or ranks; and Error(kMemory) with the numbers if not one layer fits.
  void PlaceOn(std::shared_ptr<ops::Gpu> gpu, int64_t step_rows, bool attends = false,
               const GpuWindow& window = {});
  // The layers and bytes on the GPU; null: there is none.
  const GpuPlan* gpu_plan() const { return on_gpu_ == nullptr ? nullptr : &on_gpu_->plan; }

  const DecoderSpec& spec() const { return spec_; }
  // The bytes of all weights, with those on a GPU.
  int64_t weight_bytes() const;
  // The bytes of weights that lie in a mapped file. The system takes such memory for other uses,
  // and reads it again when it is needed.
  int64_t mapped_bytes() const;
  // The bytes of weights that a decode step reads: the matrices that a token meets, and the output
  // head.
  int64_t step_bytes() const;
  // The part of weight_bytes() in the layer that predicts (DecoderSpec::predicts), or in the head.
  int64_t prediction_bytes() const;
  const WeightTypes& weight_types() const { return weights_.types; }

  int64_t vocab_size() const override { return spec_.vocab_size; }
  int64_t hidden_size() const override { return spec_.hidden_size; }
  void Forward(const Exec& exec, std::span<const Segment> segments,
               MatrixView<float> hidden) const override;
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override;
  void NormedLogits(const Exec& exec, MatrixView<const float> normed,
                    MatrixView<float> logits) const override;

  bool predicts() const override { return weights_.prediction != nullptr || eagle3_ != nullptr; }
  void Predict(const Exec& exec, TextCache& text, int32_t token, std::span<const float> state,
               int64_t most, NextPrediction next) const override;

  // The weight of the final norm [hidden], or empty if there is none.
  std::span<const float> final_norm_weight() const { return weights_.final_norm.weight; }
  // A digest of the final norm, which quantizing the layers leaves alone. It tells models apart
  // whose states mean different things.
  uint64_t StatesDigest() const;

 private:
  // The bytes here without the layer that predicts: all, or those of all layers' matrices, with so
  // many experts in each.
  int64_t ModelBytes() const;
  int64_t BytesGivenBack() const;  // those that lie on a GPU alone
  int64_t MatrixBytes(int64_t experts) const;
  void Embed(const Exec& exec, std::span<const Segment> segments, const AttentionStep& step,
             MatrixView<float> x) const;
  void EmbedTokens(const Exec& exec, std::span<const Segment> segments,
                   MatrixView<float> out) const;
  // The rows of this process as the checkpoint has them, without DecoderSpec::embedding_scale.
  void EmbedRows(const Exec& exec, std::span<const int32_t> tokens, MatrixView<float> out) const;
  // Returns [rows, layers * width], the parts of DecoderSpec::layer_embedding, in the workspace. x:
  // the embeddings of the tokens.
  MatrixView<const float> LayerEmbeddings(const Exec& exec, std::span<const Segment> segments,
                                          MatrixView<const float> x) const;
  // Adds what the layer makes of its part [rows, width].
  void AddLayerEmbedding(const Exec& exec, const DecoderLayer& layer, MatrixView<const float> part,
                         MatrixView<float> x) const;
  // out = what the layer makes of its part [rows, width] and of x.
  void LayerEmbeddingResult(const Exec& exec, const DecoderLayer& layer,
                            MatrixView<const float> part, MatrixView<const float> x,
                            MatrixView<float> out) const;
  // Runs all layers with DecoderSpec::streams. x: the embeddings, then the mean of the streams.
  void ForwardStreams(const Exec& exec, AttentionStep& step, MatrixView<const float> parts,
                      MatrixView<float> x) const;
  // predicted: the streams [rows, count * hidden] behind the layer.
  void StreamsLayer(const Exec& exec, int64_t layer, AttentionStep& step,
                    MatrixView<const float> part, MatrixView<const float> streams,
                    MatrixView<float> predicted) const;
  void StreamCoefficients(const Exec& exec, const StreamWeights& w, const Weight& made_by,
                          MatrixView<const float> active, MatrixView<float> coefficients) const;
  void Laurel(const Exec& exec, const DecoderLayer& layer, MatrixView<const float> x,
              MatrixView<float> out) const;
  void AddPositions(const Exec& exec, const AttentionStep& step, MatrixView<float> x) const;
  // The rows of the residual stream x that a mixer reads, in floats.
  MatrixView<const float> MixerInput(const Exec& exec, const LayerKind& kind,
                                     const ops::NormWeights& norm, MatrixView<const float> x) const;
  // The same in the form that a block's first weight reads.
  ops::LinearRows BlockInput(const Exec& exec, const LayerKind& kind, const ops::NormWeights& norm,
                             MatrixView<const float> x, const Weight& w) const;
  // The weights of a layer; that which predicts has the number of layers.
  const DecoderLayer& LayerWeights(int64_t index) const;
  // Caches keys and values of a layer, and attends.
  using Attend = FunctionRef<void(const AttentionInput& input, MatrixView<float> out)>;
  // out = what the layer's mixer makes of norm(x).
  void MixerBlock(const Exec& exec, int64_t layer, AttentionStep& step, MatrixView<const float> x,
                  MatrixView<float> out) const;
  // Runs the layers of the GPU, which are the first. x: the embeddings, then their result.
  void ForwardOnGpu(const Exec& exec, AttentionStep& step, ops::GpuStep& on_gpu,
                    MatrixView<float> x) const;
  // The block with attention. out: no rows if nothing attends, and keys and values are only cached.
  // chooses: AttentionStep::Chooses.
  void AnyAttentionBlock(const Exec& exec, int64_t layer, Attend attend, MatrixView<const float> x,
                         MatrixView<float> out, bool chooses = false) const;
  void AttentionBlock(const Exec& exec, int64_t layer, Attend attend, MatrixView<const float> x,
                      MatrixView<float> out) const;
  // attended = attention of qkv [rows, outputs of the layer's product], which it changes.
  void AttendToHeads(const Exec& exec, int64_t layer, Attend attend, MatrixView<float> qkv,
                     MatrixView<float> attended) const;
  // The attention block with latent vectors in the place of keys and values.
  void LatentAttentionBlock(const Exec& exec, int64_t layer, Attend attend, bool chooses,
                            MatrixView<const float> x, MatrixView<float> out) const;
  // source: the vectors of which queries are made.
  void LatentQueries(const Exec& exec, const LatentWeights& w, MatrixView<const float> source,
                     MatrixView<float> queries) const;
  // Sets the index of the input, in the workspace.
  void IndexKeys(const Exec& exec, const LatentWeights& w, bool chooses,
                 MatrixView<const float> normed, MatrixView<const float> source,
                 AttentionInput& input) const;
  void NormQueriesOrKeys(const Exec& exec, const ops::NormWeights& norm, int64_t head_dim,
                         MatrixView<float> x) const;
  void MlpBlock(const Exec& exec, int64_t layer, MatrixView<const float> x,
                MatrixView<float> out) const;
  // Computes out = down(activation(up(normed))), or the gated form.
  void Mlp(const Exec& exec, const MlpSpec& mlp, const DecoderLayer& layer,
           const ops::LinearRows& normed, MatrixView<float> out) const;
  void Experts(const Exec& exec, const LayerKind& kind, const DecoderLayer& layer,
               MatrixView<const float> normed, MatrixView<float> out) const;
  // The same without the MLP of all tokens beside them.
  void RoutedExperts(const Exec& exec, const MlpSpec& mlp, const DecoderLayer& layer,
                     MatrixView<const float> normed, MatrixView<float> out) const;
  // out = the experts of norm(x), beside an MLP of all tokens that a GPU computes, without the norm
  // behind both. gates: [rows, 1], whose sigmoids are factors on that MLP's rows, with
  // LayerKind::shared_gated; else empty.
  void ExpertsBeside(const Exec& exec, int64_t layer, MatrixView<const float> x,
                     MatrixView<float> out, MatrixView<float> gates) const;
  // The experts beside an MLP of all tokens, with DecoderSpec::branch_norms.
  void Branches(const Exec& exec, const LayerKind& kind, const DecoderLayer& layer,
                MatrixView<const float> x, MatrixView<float> out) const;
  // Turns a block's result, which is a part of one where ranks share the weights, into what it adds
  // to the residual stream.
  void FinishBlock(const Exec& exec, const LayerKind& kind, const ops::NormWeights& norm,
                   MatrixView<float> out) const;
  // Caches the keys of the layer that predicts, from the step's final states x.
  void CachePredictionKeys(const Exec& exec, std::span<const Segment> segments, AttentionStep& step,
                           MatrixView<const float> x) const;
  // Makes the input of that layer, x [rows, hidden], from pairs [rows, 2 * hidden]: embeddings of
  // tokens, and the outputs before them. Both are normalised in place.
  void JoinForPrediction(const Exec& exec, MatrixView<float> pairs, MatrixView<float> x) const;
  // The tokens whose rows of the embedding and the head are here.
  IndexRange Tokens() const;

  DecoderSpec spec_;
  // KeyPlaces, KeyReaders, PlacesOfLayers
  std::vector<int64_t> attention_places_, attention_readers_, state_places_;
  DecoderWeights weights_;
  std::shared_ptr<Communicator> ranks_;
  bool is_mapped_;
  std::unique_ptr<const Eagle3Head> eagle3_;  // with DecoderSpec::eagle3
  int64_t eagle3_layer_ = 0;                  // the place of its keys

  // The copies of weights on a GPU.
  struct OnGpu {
    std::shared_ptr<ops::Gpu> gpu;
    GpuPlan plan;
    std::vector<ops::GpuLayer> layers;  // the first ones of the model
    std::optional<ops::GpuAttends> attention;
    std::unique_ptr<ops::GpuTiles> tiles;  // of near keys, locked by a step; or null
    std::optional<ops::GpuWeight> head;    // none: it is here

    // The memory of a step of so many rows.
    ops::GpuStepMemory MemoryOf(int64_t rows) const;
  };
  std::unique_ptr<const OnGpu> on_gpu_;  // null: there is none
};

}  // namespace godwit
