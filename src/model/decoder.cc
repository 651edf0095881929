#include "model/decoder.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

#include "attention/core/prediction_step.h"
#include "base/fnv.h"
#include "model/mixers/decaying_sum.h"
#include "model/weight_ranks.h"
#include "model/weight_share.h"
#include "ops/activation.h"
#include "ops/copy_rows.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/pack_weight.h"
#include "ops/streams.h"

namespace godwit {

Decoder::Decoder(DecoderSpec spec, DecoderWeights weights, std::shared_ptr<Communicator> ranks)
    : spec_(std::move(spec)),
      attention_places_(KeyPlaces(spec_)),
      attention_readers_(KeyReaders(spec_)),
      state_places_(PlacesOfLayers(spec_, IsRecurrent)),
      weights_(std::move(weights)),
      ranks_(std::move(ranks)),
      is_mapped_(weights_.head.panels.is_mapped()) {}

void Decoder::Take(std::unique_ptr<const Eagle3Head> head) {
  assert(ranks_ == nullptr && on_gpu_ == nullptr && !predicts());
  spec_.eagle3 = head->spec();
  eagle3_layer_ = KeyLayers(spec_);
  eagle3_ = std::move(head);
}

namespace {

// The bytes of a layer's matrices, with so many experts.
int64_t BytesOf(const DecoderLayer& layer, int64_t experts) {
  int64_t bytes = 0;
  const LatentWeights& latent = layer.latent;
  for (const Weight* weight : {&layer.qkv,
                               &latent.query_down,
                               &latent.query,
                               &latent.kv_down,
                               &latent.index_query,
                               &latent.index_key,
                               &latent.index_weights,
                               &layer.delta.gates,
                               &layer.delta.decay_down,
                               &layer.delta.decay_up,
                               &layer.delta.z_down,
                               &layer.delta.z_up,
                               &layer.mamba.in,
                               &layer.mamba.out,
                               &layer.attention_out,
                               &layer.up,
                               &layer.down,
                               &layer.shared_share,
                               &layer.embedding_gate,
                               &layer.embedding_out,
                               &layer.streams.router,
                               &layer.streams.predict,
                               &layer.streams.correct,
                               &layer.laurel_down,
                               &layer.laurel_up,
                               &layer.moe.router,
                               &layer.experts_in,
                               &layer.experts_out}) {
    bytes += weight->bytes();
  }
  for (const std::vector<Weight>* heads : {&latent.keys, &latent.values}) {
    for (const Weight& weight : *heads) bytes += weight.bytes();
  }
  const auto count = std::min<int64_t>(experts, std::ssize(layer.moe.experts));
  for (const ops::Expert& expert : std::span(layer.moe.experts).first(count)) {
    bytes += expert.up.bytes() + expert.down.bytes();
  }
  return bytes;
}

}  // namespace

int64_t Decoder::weight_bytes() const {
  return ModelBytes() + prediction_bytes() + BytesGivenBack();
}

int64_t Decoder::BytesGivenBack() const {
  return on_gpu_ == nullptr ? 0 : on_gpu_->plan.freed_bytes;
}

int64_t Decoder::ModelBytes() const {
  return weights_.embedding.data.bytes() + weights_.embedding_blocks.bytes() +
         weights_.positions.data.bytes() + MatrixBytes(spec_.mlp.experts);
}

int64_t Decoder::prediction_bytes() const {
  if (eagle3_ != nullptr) return eagle3_->bytes();
  if (weights_.prediction == nullptr) return 0;
  const PredictionWeights& weights = *weights_.prediction;
  return weights.join.bytes() + BytesOf(weights.layer, spec_.prediction->kind.mlp.experts);
}

// All weights are mapped, or none, except those of a layer that predicts.
int64_t Decoder::mapped_bytes() const { return is_mapped_ ? ModelBytes() : 0; }

int64_t Decoder::step_bytes() const {
  return MatrixBytes(spec_.mlp.experts_per_token) + BytesGivenBack();
}

int64_t Decoder::MatrixBytes(int64_t experts) const {
  int64_t bytes = weights_.project_in.bytes() + weights_.project_out.bytes() +
                  weights_.layer_model.bytes() + weights_.head.bytes();
  for (const std::vector<Weight>* streams : {&weights_.streams_in, &weights_.streams_out}) {
    for (const Weight& weight : *streams) bytes += weight.bytes();
  }
  for (const DecoderLayer& layer : weights_.layers) bytes += BytesOf(layer, experts);
  return bytes;
}

const DecoderLayer& Decoder::LayerWeights(int64_t index) const {
  return index == spec_.layers ? weights_.prediction->layer : weights_.layers[index];
}

// The forward pass of the model. x [tokens, hidden] runs through the layers. The tokens of every
// segment are its rows, and only attention tells segments apart.
void Decoder::Forward(const Exec& exec, std::span<const Segment> segments,
                      MatrixView<float> x) const {
  Workspace::Scope scope(exec.workspace);
  const auto attention = exec.workspace.Matrix<float>(x.rows, spec_.hidden_size);
  const auto mlp = exec.workspace.Matrix<float>(x.rows, spec_.hidden_size);

  // The step comes first: it refuses a text that outgrows the table of learned positions.
  AttentionStep step(exec, segments);
  Embed(exec, segments, step, x);
  MatrixView<const float> parts;
  if (spec_.layer_embedding) parts = LayerEmbeddings(exec, segments, x);
  if (spec_.streams) {
    ForwardStreams(exec, step, parts, x);
    return step.End();
  }
  const bool post_norm = spec_.topology == Topology::kPostNorm;
  MatrixView<float> states;
  if (eagle3_ != nullptr) states = exec.workspace.Matrix<float>(x.rows, eagle3_->states());
  int64_t first = 0;
  std::optional<ops::GpuStep> on_gpu;
  if (on_gpu_ != nullptr) {
    on_gpu.emplace(exec, *on_gpu_->gpu, on_gpu_->MemoryOf(x.rows), on_gpu_->attention,
                   on_gpu_->tiles.get());
    if (on_gpu_->attention) step.LetAttend(*on_gpu);
    ForwardOnGpu(exec, step, *on_gpu, x);
    first = std::ssize(on_gpu_->layers);
    if (!on_gpu_->attention) on_gpu.reset();
  }
  for (int64_t i = first; i < spec_.layers; ++i) {
    if (eagle3_ != nullptr) eagle3_->TakeStates(exec, i, x, states);
    const DecoderLayer& layer = weights_.layers[i];
    const LayerKind& kind = KindOf(spec_, i);
    const bool mixes = kind.mixer != Mixer::kNone, has_mlp = HasMlp(kind);
    const bool in_turn = spec_.topology == Topology::kSequential || post_norm;
    if (mixes) MixerBlock(exec, i, step, x, attention);
    if (!in_turn && has_mlp) MlpBlock(exec, i, x, mlp);
    if (mixes) ops::Add(exec, attention, x);
    if (post_norm) ops::Norm(exec, x, layer.attention_norm, x);
    if (in_turn && has_mlp) MlpBlock(exec, i, x, mlp);
    if (has_mlp) ops::Add(exec, mlp, x);
    if (post_norm) ops::Norm(exec, x, layer.mlp_norm, x);
    if (spec_.layer_embedding) {
      const int64_t width = spec_.layer_embedding->width;
      AddLayerEmbedding(exec, layer, parts.Cols(i * width, (i + 1) * width), x);
    }
    if (spec_.layer_scales) ops::Scale(exec, layer.scale, x);
  }
  if (weights_.prediction != nullptr) CachePredictionKeys(exec, segments, step, x);
  if (eagle3_ != nullptr) {
    eagle3_->TakeStates(exec, spec_.layers, x, states);
    eagle3_->CacheKeys(exec, segments, step, eagle3_layer_, states,
                       [&](std::span<const int32_t> tokens, MatrixView<float> rows) {
                         EmbedRows(exec, tokens, rows);
                       });
  }
  step.End();
}

// The keys of a position come from the model's output at the position before. Where that is not
// known, as at the beginning and behind a text that was saved, zeros stand for it: worse drafts.
void Decoder::CachePredictionKeys(const Exec& exec, std::span<const Segment> segments,
                                  AttentionStep& step, MatrixView<const float> x) const {
  Workspace::Scope scope(exec.workspace);
  const int64_t hidden = spec_.hidden_size;
  const auto outputs = exec.workspace.Matrix<float>(x.rows, hidden);
  const auto pairs = exec.workspace.Matrix<float>(x.rows, 2 * hidden);
  const auto joined = exec.workspace.Matrix<float>(x.rows, hidden);
  ops::Norm(exec, x, weights_.final_norm, outputs);
  EmbedTokens(exec, segments, pairs.Cols(0, hidden));
  const auto before = pairs.Cols(hidden, 2 * hidden);
  int64_t first = 0;
  for (const Segment& segment : segments) {
    const auto rows = std::ssize(segment.tokens);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t parent = segment.parents.empty() ? row - 1 : segment.parents[row];
      std::span<const float> output = segment.text->last_output();
      if (parent >= 0) output = outputs.RowSpan(first + parent);
      const auto to = before.RowSpan(first + row);
      if (output.empty()) {
        std::ranges::fill(to, 0.0f);
      } else {
        std::ranges::copy(output, to.begin());
      }
    }
    first += rows;
  }
  JoinForPrediction(exec, pairs, joined);
  AnyAttentionBlock(exec, spec_.layers,
                    [&](const AttentionInput& input, MatrixView<float> out) {
                      step.Attend(attention_places_[spec_.layers], input, out);
                    },
                    joined, {});
  step.KeepOutputs(outputs);
}

void Decoder::JoinForPrediction(const Exec& exec, MatrixView<float> pairs,
                                MatrixView<float> x) const {
  const PredictionWeights& weights = *weights_.prediction;
  const int64_t hidden = spec_.hidden_size;
  const auto embeddings = pairs.Cols(0, hidden), outputs = pairs.Cols(hidden, 2 * hidden);
  ops::Norm(exec, embeddings, weights.embedding_norm, embeddings);
  ops::Norm(exec, outputs, weights.output_norm, outputs);
  ops::Linear(exec, pairs, weights.join, x);
}

void Decoder::Predict(const Exec& exec, TextCache& text, int32_t token,
                      std::span<const float> state, int64_t most, NextPrediction next) const {
  assert(ranks_ == nullptr);
  if (eagle3_ != nullptr) {
    return eagle3_->Predict(
        exec, text, token, most,
        [&](std::span<const int32_t> tokens, MatrixView<float> rows) {
          EmbedRows(exec, tokens, rows);
        },
        next);
  }
  assert(spec_.topology == Topology::kSequential);
  Workspace::Scope scope(exec.workspace);
  const int64_t hidden = spec_.hidden_size;
  const auto output = exec.workspace.Matrix<float>(1, hidden);
  const auto pair = exec.workspace.Matrix<float>(1, 2 * hidden);
  const auto x = exec.workspace.Matrix<float>(1, hidden);
  const auto block = exec.workspace.Matrix<float>(1, hidden);
  const auto logits = exec.workspace.Matrix<float>(1, spec_.vocab_size);
  std::ranges::copy(state, x.RowSpan(0).begin());
  ops::Norm(exec, x, weights_.final_norm, output);
  PredictionStep step(exec, text, most);
  for (int64_t i = 0; i < most; ++i) {
    const Segment segment{.tokens = {&token, 1}, .text = &text};
    EmbedTokens(exec, {&segment, 1}, pair.Cols(0, hidden));
    std::ranges::copy(output.RowSpan(0), pair.RowSpan(0).begin() + hidden);
    JoinForPrediction(exec, pair, x);
    AnyAttentionBlock(
        exec, spec_.layers,
        [&](const AttentionInput& input, MatrixView<float> out) { step.Attend(input, out); }, x,
        block);
    ops::Add(exec, block, x);
    MlpBlock(exec, spec_.layers, x, block);
    ops::Add(exec, block, x);
    // Deeper predictions read what the output head reads, as they read the model's own output.
    ops::Norm(exec, x, weights_.prediction->norm, output);
    NormedLogits(exec, output, logits);
    const std::optional<int32_t> chosen = next(logits.RowSpan(0));
    if (!chosen) return;
    token = *chosen;
  }
}

void Decoder::Embed(const Exec& exec, std::span<const Segment> segments, const AttentionStep& step,
                    MatrixView<float> x) const {
  if (spec_.embedding_size) {
    Workspace::Scope scope(exec.workspace);
    const auto narrow = exec.workspace.Matrix<float>(x.rows, *spec_.embedding_size);
    EmbedTokens(exec, segments, narrow);
    ops::Linear(exec, narrow, weights_.project_in, x);
  } else {
    EmbedTokens(exec, segments, x);
  }
  if (spec_.first_learned_position) AddPositions(exec, step, x);
  if (spec_.embedding_norm) ops::Norm(exec, x, weights_.embedding_norm, x);
}

void Decoder::EmbedTokens(const Exec& exec, std::span<const Segment> segments,
                          MatrixView<float> out) const {
  int64_t row = 0;
  for (const Segment& segment : segments) {
    RequireTokenIds(spec_, segment.tokens);
    const auto rows = out.Rows(row, row + static_cast<int64_t>(segment.tokens.size()));
    EmbedRows(exec, segment.tokens, rows);
    row += rows.rows;
  }
  assert(row == out.rows);
  if (ranks_ != nullptr) SumOverRanks(exec, *ranks_, out);
  if (spec_.embedding_scale != 1) ops::Scale(exec, spec_.embedding_scale, out);
}

void Decoder::EmbedRows(const Exec& exec, std::span<const int32_t> tokens,
                        MatrixView<float> out) const {
  const Weight& packed = spec_.tied_head ? weights_.head : weights_.embedding_blocks;
  if (packed.outputs > 0) {
    ops::Embed(exec, tokens, packed, out, Tokens().begin);
  } else {
    ops::Embed(exec, tokens, weights_.embedding, out, Tokens().begin);
  }
}

MatrixView<const float> Decoder::LayerEmbeddings(const Exec& exec,
                                                 std::span<const Segment> segments,
                                                 MatrixView<const float> x) const {
  const LayerEmbedding& embedding = *spec_.layer_embedding;
  const auto parts = exec.workspace.Matrix<float>(x.rows, embedding.layers * embedding.width);
  Workspace::Scope scope(exec.workspace);
  const auto table = exec.workspace.Matrix<float>(parts.rows, parts.cols);
  ops::Linear(exec, x, weights_.layer_model, parts);
  ops::Scale(exec, 1 / std::sqrt(static_cast<float>(spec_.hidden_size)), parts);
  ops::NormHeads(exec, weights_.layer_model_norm, embedding.width, parts);
  int64_t row = 0;
  for (const Segment& segment : segments) {
    const int64_t count = std::ssize(segment.tokens);
    const auto ids = exec.workspace.Matrix<int32_t>(1, count).RowSpan(0);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t token = segment.tokens[i];
      ids[i] = token < embedding.vocab_size ? token : 0;
    }
    ops::Embed(exec, ids, weights_.layer_table, table.Rows(row, row + count));
    row += count;
  }
  if (embedding.scale != 1) ops::Scale(exec, embedding.scale, table);
  ops::Add(exec, table, parts);
  ops::Scale(exec, 1 / std::numbers::sqrt2_v<float>, parts);
  return parts;
}

void Decoder::AddLayerEmbedding(const Exec& exec, const DecoderLayer& layer,
                                MatrixView<const float> part, MatrixView<float> x) const {
  Workspace::Scope scope(exec.workspace);
  const auto out = exec.workspace.Matrix<float>(x.rows, x.cols);
  LayerEmbeddingResult(exec, layer, part, x, out);
  ops::Add(exec, out, x);
}

void Decoder::LayerEmbeddingResult(const Exec& exec, const DecoderLayer& layer,
                                   MatrixView<const float> part, MatrixView<const float> x,
                                   MatrixView<float> out) const {
  Workspace::Scope scope(exec.workspace);
  const auto gated = exec.workspace.Matrix<float>(x.rows, 2 * part.cols);
  auto inner = ops::NewLinearRows(exec, layer.embedding_out, x.rows);
  ops::Linear(exec, x, layer.embedding_gate, gated.Cols(0, part.cols));
  ops::CopyRows(exec, part, gated.Cols(part.cols, gated.cols));
  ops::ActivateGated(exec, spec_.mlp.activation, gated, {&inner, 1});
  ops::Linear(exec, inner, layer.embedding_out, out);
  ops::Norm(exec, out, layer.embedding_out_norm, out);
}

// Adds positions in the text. A policy that counts others refuses such a model (AttentionGeometry).
void Decoder::AddPositions(const Exec& exec, const AttentionStep& step, MatrixView<float> x) const {
  Workspace::Scope scope(exec.workspace);
  const auto rows = exec.workspace.Matrix<int32_t>(1, x.rows).RowSpan(0);
  const auto positions = exec.workspace.Matrix<float>(x.rows, x.cols);
  for (int64_t row = 0; row < x.rows; ++row) {
    const int64_t position = step.PositionOf(row);
    assert(position < spec_.max_context);
    rows[row] = static_cast<int32_t>(*spec_.first_learned_position + position);
  }
  ops::Embed(exec, rows, weights_.positions, positions);
  ops::Add(exec, positions, x);
}

ops::LinearRows Decoder::BlockInput(const Exec& exec, const LayerKind& kind,
                                    const ops::NormWeights& norm, MatrixView<const float> x,
                                    const Weight& w) const {
  ops::LinearRows input = ops::NewLinearRows(exec, w, x.rows);
  if (spec_.topology == Topology::kPostNorm || !kind.input_norms) {
    ops::SetRows(exec, x, input);
  } else {
    ops::Norm(exec, x, norm, input);
  }
  return input;
}

MatrixView<const float> Decoder::MixerInput(const Exec& exec, const LayerKind& kind,
                                            const ops::NormWeights& norm,
                                            MatrixView<const float> x) const {
  if (spec_.topology == Topology::kPostNorm || !kind.input_norms) return x;
  const auto normed = exec.workspace.Matrix<float>(x.rows, x.cols);
  ops::Norm(exec, x, norm, normed);
  return normed;
}

void Decoder::MixerBlock(const Exec& exec, int64_t index, AttentionStep& step,
                         MatrixView<const float> x, MatrixView<float> out) const {
  const LayerKind& kind = KindOf(spec_, index);
  const DecoderLayer& layer = weights_.layers[index];
  const auto attend = [&](AttentionInput input, MatrixView<float> results) {
    input.reader = attention_readers_[index];
    step.Attend(attention_places_[index], input, results);
  };
  Workspace::Scope scope(exec.workspace);
  switch (kind.mixer) {
    case Mixer::kNone:
      return;
    case Mixer::kAttention:
      return AnyAttentionBlock(exec, index, attend, x, out, step.Chooses());
    case Mixer::kShortConvolution:
      MixByShortConvolution(exec, kind.convolution, layer.convolution, layer.qkv,
                            layer.attention_out, step.States(state_places_[index]),
                            BlockInput(exec, kind, layer.attention_norm, x, layer.qkv), out);
      break;
    case Mixer::kGatedDeltaNet:
      MixByGatedDeltaNet(exec, kind.delta, layer.delta, layer.convolution.taps, layer.qkv,
                         layer.attention_out, step.States(state_places_[index]),
                         MixerInput(exec, kind, layer.attention_norm, x), out);
      break;
    case Mixer::kMamba2:
      MixByMamba2(exec, kind.mamba, layer.mamba, layer.convolution,
                  step.States(state_places_[index]),
                  BlockInput(exec, kind, layer.attention_norm, x, layer.mamba.in), out);
      if (kind.attention_beside) {
        const auto attended = exec.workspace.Matrix<float>(out.rows, out.cols);
        AttentionBlock(exec, index, attend, x, attended);
        ops::Add(exec, attended, out);
      }
      break;
    case Mixer::kDecayingSum:
      MixByDecayingSum(exec, kind.sum, layer.qkv, layer.attention_out,
                       step.States(state_places_[index]),
                       BlockInput(exec, kind, layer.attention_norm, x, layer.qkv), out);
      break;
  }
  FinishBlock(exec, kind, layer.attention_out_norm, out);
}

void Decoder::FinishBlock(const Exec& exec, const LayerKind& kind, const ops::NormWeights& norm,
                          MatrixView<float> out) const {
  if (ranks_ != nullptr) SumOverRanks(exec, *ranks_, out);
  if (kind.output_norms) ops::Norm(exec, out, norm, out);
  if (spec_.residual_scale != 1) ops::Scale(exec, spec_.residual_scale, out);
}

void Decoder::Mlp(const Exec& exec, const MlpSpec& mlp, const DecoderLayer& layer,
                  const ops::LinearRows& normed, MatrixView<float> out) const {
  Workspace::Scope scope(exec.workspace);
  const auto up = exec.workspace.Matrix<float>(normed.rows, layer.up.outputs);
  auto inner = ops::NewLinearRows(exec, layer.down, normed.rows);
  ops::Linear(exec, normed, layer.up, up);
  if (mlp.gate_scale != 1) ops::Scale(exec, mlp.gate_scale, up.Cols(0, up.cols / 2));
  if (mlp.cut_deviations) {
    assert(mlp.gated);
    ops::CutBelow(exec, *mlp.cut_deviations, up.Cols(0, up.cols / 2));
  }
  if (mlp.gated) {
    ops::ActivateGated(exec, mlp.activation, up, {&inner, 1});
  } else if (mlp.xielu) {
    ops::Activate(exec, layer.xielu, up, inner);
  } else {
    ops::Activate(exec, mlp.activation, up, inner);
  }
  ops::Linear(exec, inner, layer.down, out);
  if (mlp.out_scale != 1) ops::Scale(exec, mlp.out_scale, out);
}

void Decoder::RoutedExperts(const Exec& exec, const MlpSpec& mlp, const DecoderLayer& layer,
                            MatrixView<const float> normed, MatrixView<float> out) const {
  Workspace::Scope scope(exec.workspace);
  MatrixView<const float> input = normed;
  MatrixView<float> result = out;
  if (mlp.latent > 0) {
    const auto narrow = exec.workspace.Matrix<float>(normed.rows, mlp.latent);
    ops::Linear(exec, normed, layer.experts_in, narrow);
    input = narrow;
    result = exec.workspace.Matrix<float>(normed.rows, mlp.latent);
  }
  ops::MixtureOfExperts(exec, input, layer.moe,
                        {.per_token = mlp.experts_per_token,
                         .shares_among_chosen = mlp.shares_among_chosen,
                         .choice = mlp.choice,
                         .gated = mlp.gated,
                         .activation = mlp.activation,
                         .clamped = mlp.clamped,
                         .router_input = normed},
                        result);
  if (mlp.latent > 0) ops::Linear(exec, result, layer.experts_out, out);
}

void Decoder::Experts(const Exec& exec, const LayerKind& kind, const DecoderLayer& layer,
                      MatrixView<const float> normed, MatrixView<float> out) const {
  RoutedExperts(exec, kind.mlp, layer, normed, out);
  if (layer.up.outputs == 0) return;
  Workspace::Scope scope(exec.workspace);
  const auto shared = exec.workspace.Matrix<float>(out.rows, out.cols);
  auto rows = ops::NewLinearRows(exec, layer.up, normed.rows);
  ops::SetRows(exec, normed, rows);
  Mlp(exec, kind.shared_mlp, layer, rows, shared);
  if (kind.shared_gated) {
    const auto shares = exec.workspace.Matrix<float>(out.rows, 1);
    ops::Linear(exec, normed, layer.shared_share, shares);
    ops::ScaleRowsBySigmoids(exec, shares, shared);
  }
  ops::Add(exec, shared, out);
}

void Decoder::Branches(const Exec& exec, const LayerKind& kind, const DecoderLayer& layer,
                       MatrixView<const float> x, MatrixView<float> out) const {
  const MlpSpec& mlp = kind.mlp;
  Workspace::Scope scope(exec.workspace);
  const auto shared = exec.workspace.Matrix<float>(x.rows, x.cols);
  const auto for_router = exec.workspace.Matrix<float>(x.rows, x.cols);
  const auto for_experts = exec.workspace.Matrix<float>(x.rows, x.cols);
  Mlp(exec, kind.shared_mlp, layer, BlockInput(exec, kind, layer.mlp_norm, x, layer.up), shared);
  ops::Norm(exec, shared, layer.shared_out_norm, shared);
  ops::Norm(exec, x, layer.router_norm, for_router);
  ops::Norm(exec, x, layer.experts_norm, for_experts);
  ops::MixtureOfExperts(exec, for_experts, layer.moe,
                        {.per_token = mlp.experts_per_token,
                         .shares_among_chosen = mlp.shares_among_chosen,
                         .choice = mlp.choice,
                         .activation = mlp.activation,
                         .router_input = for_router},
                        out);
  ops::Norm(exec, out, layer.experts_out_norm, out);
  ops::Add(exec, shared, out);
}

// out = the MLP of norm(x), or a mixture of experts.
void Decoder::MlpBlock(const Exec& exec, int64_t index, MatrixView<const float> x,
                       MatrixView<float> out) const {
  const DecoderLayer& layer = LayerWeights(index);
  Workspace::Scope scope(exec.workspace);
  const bool shared = spec_.topology == Topology::kParallelSharedNorm;
  const ops::NormWeights& norm = shared ? layer.attention_norm : layer.mlp_norm;
  const LayerKind& kind = KindOf(spec_, index);
  if (kind.mlp.experts > 0 && spec_.branch_norms) {
    Branches(exec, kind, layer, x, out);
  } else if (kind.mlp.experts > 0) {
    const auto normed = exec.workspace.Matrix<float>(x.rows, x.cols);
    ops::Norm(exec, x, norm, normed);
    Experts(exec, kind, layer, normed, out);
  } else {
    Mlp(exec, kind.mlp, layer, BlockInput(exec, kind, norm, x, layer.up), out);
  }
  FinishBlock(exec, kind, layer.mlp_out_norm, out);
}

void Decoder::Logits(const Exec& exec, MatrixView<const float> hidden,
                     MatrixView<float> logits) const {
  Workspace::Scope scope(exec.workspace);
  if (spec_.final_norm) {
    const auto normed = exec.workspace.Matrix<float>(hidden.rows, hidden.cols);
    ops::Norm(exec, hidden, weights_.final_norm, normed);
    hidden = normed;
  }
  NormedLogits(exec, hidden, logits);
}

void Decoder::NormedLogits(const Exec& exec, MatrixView<const float> normed,
                           MatrixView<float> logits) const {
  Workspace::Scope scope(exec.workspace);
  if (spec_.embedding_size) {
    const auto narrow = exec.workspace.Matrix<float>(normed.rows, *spec_.embedding_size);
    ops::Linear(exec, normed, weights_.project_out, narrow);
    normed = narrow;
  }
  if (on_gpu_ != nullptr && on_gpu_->head) {
    ops::Linear(exec, *on_gpu_->gpu, normed, *on_gpu_->head, logits);
  } else if (ranks_ == nullptr) {
    ops::Linear(exec, normed, weights_.head, logits);
  } else {
    const IndexRange tokens = Tokens();
    const auto mine =
        logits.Cols(std::min(tokens.begin, logits.cols), std::min(tokens.end, logits.cols));
    if (mine.cols > 0) ops::Linear(exec, normed, weights_.head, mine);
    GatherLogits(exec, *ranks_, spec_.vocab_size, logits);
  }
  if (spec_.logit_scale != 1) ops::Scale(exec, spec_.logit_scale, logits);
  if (spec_.logit_cap) ops::SoftCap(exec, *spec_.logit_cap, logits);
}

IndexRange Decoder::Tokens() const {
  if (ranks_ == nullptr) return {0, spec_.vocab_size};
  return TokensOf(spec_.vocab_size, ranks_->rank(), ranks_->size());
}

uint64_t Decoder::StatesDigest() const { return Fnv1a(std::as_bytes(final_norm_weight())); }

}  // namespace godwit
