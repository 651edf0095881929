// The parts of a layer's weights: mixers, streams, experts and norms.
#include <algorithm>
#include <cmath>

#include "model/loaded_storage.h"
#include "model/packer.h"
#include "model/row_order.h"

namespace godwit {
namespace {

// Takes the gains of queries and keys out of their norms.
void MoveGains(DecoderLayer& layer) {
  layer.query_gains = layer.q_norm.weight;
  for (size_t i = 0; i < layer.query_gains.size(); ++i) {
    layer.query_gains[i] *= layer.k_norm.weight[i];
  }
  for (ops::NormWeights* norm : {&layer.q_norm, &layer.k_norm}) {
    std::ranges::fill(norm->weight, 1.0f);
  }
}

}  // namespace

ShortConvolutionWeights Packer::Convolution(const LayerTensors& tensors) {
  if (tensors.taps.empty()) return {};
  std::vector<float> stored;  // [channels, 1, taps]
  for (const TensorInfo* part : tensors.taps) {
    const std::vector<float> numbers = Numbers(*part);
    stored.insert(stored.end(), numbers.begin(), numbers.end());
  }
  const int64_t taps = tensors.taps.front()->shape[2];
  std::vector<IndexRange> taken = tensors.taken_channels;
  if (taken.empty()) taken.push_back({0, std::ssize(stored) / taps});
  ShortConvolutionWeights weights;
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (const IndexRange& channels : taken) {
      for (int64_t channel = channels.begin; channel < channels.end; ++channel) {
        weights.taps.push_back(stored[channel * taps + tap]);
      }
    }
  }
  if (tensors.convolution_bias != nullptr) {
    const std::vector<float> bias = Numbers(*tensors.convolution_bias);
    for (const IndexRange& channels : taken) {
      weights.bias.insert(weights.bias.end(), bias.begin() + channels.begin,
                          bias.begin() + channels.end);
    }
  }
  return weights;
}

// Rates that the checkpoint has as logarithms, or times -1.
std::vector<float> Packer::DecayRates(const TensorInfo& tensor, bool negated) {
  std::vector<float> rates = Numbers(tensor);
  for (float& rate : rates) rate = negated ? -rate : std::exp(rate);
  return rates;
}

GatedDeltaNetWeights Packer::Delta(const DeltaTensors& tensors) {
  if (tensors.rates == nullptr) return {};
  GatedDeltaNetWeights weights{
      .gates = Linear(tensors.gates, DType::kF32),
      .decay_down = Linear(tensors.decay_down, DType::kF32),
      .decay_up = Linear(tensors.decay_up, DType::kF32),
      .z_down = Linear(tensors.z_down),
      .z_up = Linear(tensors.z_up),
      .rates = DecayRates(*tensors.rates, tensors.rates_negated),
      .biases = Numbers(*tensors.biases),
      .norm = {.kind = ops::NormKind::kRms,
               .epsilon = tensors.norm_epsilon.value_or(spec_.norm_epsilon),
               .weight = Numbers(*tensors.norm),
               .bias = {}}};
  if (tensors.taken_heads) {
    weights.rates = Taken(weights.rates, *tensors.taken_heads);
    weights.biases = Taken(weights.biases, *tensors.taken_biases);
  }
  return weights;
}

// All but the projections.
void Packer::MambaNumbers(const Mamba2Tensors& tensors, Mamba2Weights& weights) {
  if (tensors.rates == nullptr) return;
  weights.rates = DecayRates(*tensors.rates, tensors.rates_negated);
  weights.biases = Numbers(*tensors.biases);
  weights.skips = Numbers(*tensors.skips);
  weights.norm = {
      .kind = ops::NormKind::kRms, .epsilon = spec_.norm_epsilon, .weight = {}, .bias = {}};
  if (tensors.norm != nullptr) weights.norm.weight = Numbers(*tensors.norm);
  if (!tensors.taken_heads) return;
  const IndexRange& heads = *tensors.taken_heads;
  const auto width = static_cast<int64_t>(weights.norm.weight.size() / weights.skips.size());
  for (std::vector<float>* numbers : {&weights.rates, &weights.biases, &weights.skips}) {
    *numbers = Taken(*numbers, heads);
  }
  weights.norm.weight =
      Taken(weights.norm.weight, IndexRange{heads.begin * width, heads.end * width});
}

std::vector<float> Packer::SinkLogits(const LayerTensors& tensors) {
  switch (spec_.attention_sink) {
    case AttentionSink::kNone:
      return {};
    case AttentionSink::kSoftmax1:
      return std::vector<float>(spec_.heads, 0.0f);
    case AttentionSink::kLearned:
      if (tensors.sinks == nullptr) return {};  // a layer without attention
      return tensors.taken_heads ? Taken(Numbers(*tensors.sinks), *tensors.taken_heads)
                                 : Numbers(*tensors.sinks);
  }
  return {};
}

// Both alphas are stored as what a softplus makes positive. alpha_n is at least beta.
ops::Xielu Packer::Xielu(const LayerTensors& tensors) {
  std::vector<float> numbers;
  for (const TensorInfo* tensor : tensors.xielu) numbers.push_back(Numbers(*tensor).front());
  const auto softplus = [](float x) {
    return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x)));
  };
  return {.alpha_p = softplus(numbers[0]),
          .alpha_n = numbers[2] + softplus(numbers[1]),
          .beta = numbers[2],
          .eps = numbers[3]};
}

LatentWeights Packer::Latent(const LatentTensors& tensors) {
  LatentWeights latent;
  latent.query_down = Linear(tensors.query_down);
  latent.query = Linear(tensors.query);
  latent.kv_down = Linear(tensors.kv_down);
  latent.index_query = Linear(tensors.index_query);
  latent.index_key = Linear(tensors.index_key);
  // Narrow weights would round the hidden state, as with the router's scores.
  latent.index_weights = Linear(tensors.index_weights, DType::kF32);
  const std::optional<DType> storage = LatentStorage(storage_);
  for (const LinearTensors& head : tensors.keys) latent.keys.push_back(Linear(head, storage));
  for (const LinearTensors& head : tensors.values) latent.values.push_back(Linear(head, storage));
  latent.query_norm = Norm(tensors.query_norm);
  latent.kv_norm = Norm(tensors.kv_norm);
  for (ops::NormWeights* norm : {&latent.query_norm, &latent.kv_norm}) {
    if (spec_.latent) norm->epsilon = spec_.latent->norm_epsilon;
  }
  if (tensors.index_norm.size > 0) latent.index_norm = IndexNorm(tensors);
  return latent;
}

// Orders the numbers as the rows of the index keys.
ops::NormWeights Packer::IndexNorm(const LatentTensors& tensors) {
  ops::NormWeights norm = Norm(tensors.index_norm);
  norm.kind = ops::NormKind::kLayer;
  norm.epsilon = spec_.key_index->norm_epsilon;
  for (std::vector<float>* numbers : {&norm.weight, &norm.bias}) {
    const std::vector<float> stored = *numbers;
    for (size_t i = 0; i < stored.size(); ++i) {
      (*numbers)[i] = stored[SourceRow(spec_, tensors.index_key, static_cast<int64_t>(i))];
    }
  }
  return norm;
}

void Packer::BranchNorms(const LayerTensors& tensors, DecoderLayer& layer) {
  layer.experts_norm = Norm(tensors.experts_norm);
  layer.experts_out_norm = Norm(tensors.experts_out_norm);
  layer.shared_out_norm = Norm(tensors.shared_out_norm);
  layer.router_norm = {.kind = spec_.norm,
                       .epsilon = spec_.norm_epsilon,
                       .weight = Numbers(*tensors.router_gains),
                       .bias = {}};
  const float root = 1 / std::sqrt(static_cast<float>(spec_.hidden_size));
  for (float& gain : layer.router_norm.weight) gain *= root;
  layer.moe.scales = Numbers(*tensors.expert_scales);
}

void Packer::Streams(const LayerTensors& tensors, DecoderLayer& layer) {
  StreamWeights& streams = layer.streams;
  streams.router_norm = Norm(tensors.stream_norm);
  for (float& gain : streams.router_norm.weight) gain /= static_cast<float>(spec_.hidden_size);
  streams.router = Linear(tensors.stream_router, DType::kF32);
  streams.predict = Linear(tensors.stream_predict, DType::kF32);
  streams.correct = Linear(tensors.stream_correct, DType::kF32);
  streams.scales = Numbers(*tensors.stream_factors);
  layer.laurel_down = Linear(tensors.laurel_down);
  layer.laurel_up = Linear(tensors.laurel_up);
  layer.laurel_norm = Norm(tensors.laurel_norm);
}

DecoderLayer Packer::Layer(const LayerTensors& tensors) {
  DecoderLayer layer;
  layer.attention_norm = Norm(tensors.attention_norm);
  layer.qkv = Linear(tensors.qkv);
  layer.delta = Delta(tensors.delta);
  layer.mamba.in = Linear(tensors.mamba.in);
  layer.latent = Latent(tensors.latent);
  layer.q_norm = HeadNorm(tensors.q_norm);
  layer.k_norm = HeadNorm(tensors.k_norm);
  if (spec_.qk_norm == QkNorm::kHeadsThenGains) MoveGains(layer);
  if (spec_.value_norm) {
    layer.v_norm = layer.q_norm;
    std::ranges::fill(layer.v_norm.weight, 1.0f);
  }
  layer.sink_logits = SinkLogits(tensors);
  layer.attention_out = Linear(tensors.attention_out);
  layer.mamba.out = Linear(tensors.mamba.out);
  MambaNumbers(tensors.mamba, layer.mamba);
  layer.convolution = Convolution(tensors);
  layer.attention_out_norm = Norm(tensors.attention_out_norm);
  layer.mlp_norm = Norm(tensors.mlp_norm);
  layer.up = Linear(tensors.mlp.up);
  layer.down = Linear(tensors.mlp.down);
  if (!tensors.xielu.empty()) layer.xielu = Xielu(tensors);
  layer.shared_share = Linear(tensors.shared_share, DType::kF32);
  layer.embedding_gate = Linear(tensors.embedding_gate);
  layer.embedding_out = Linear(tensors.embedding_out);
  layer.embedding_out_norm = Norm(tensors.embedding_out_norm);
  if (tensors.scale != nullptr) layer.scale = Numbers(*tensors.scale).front();
  if (spec_.streams) Streams(tensors, layer);
  layer.mlp_out_norm = Norm(tensors.mlp_out_norm);
  if (!tensors.experts.empty()) {
    // Narrow weights would round the activations, and with them the router's scores.
    layer.moe.router = Linear(tensors.router, DType::kF32);
    layer.experts_in = Linear(tensors.experts_in);
    layer.experts_out = Linear(tensors.experts_out);
    layer.moe.experts = Experts(tensors.experts);
    layer.moe.first_expert = tensors.first_expert;
    if (tensors.choice_bias != nullptr) layer.moe.choice_bias = Numbers(*tensors.choice_bias);
    if (spec_.branch_norms) BranchNorms(tensors, layer);
  }
  return layer;
}

// A packed copy holds the model without the layer that predicts, so that is packed anew.
PredictionWeights Packer::Prediction(const PredictionTensors& tensors) {
  places_.from = nullptr;
  PredictionWeights weights;
  weights.embedding_norm = Norm(tensors.embedding_norm);
  weights.output_norm = Norm(tensors.output_norm);
  weights.join = Linear(tensors.join);
  weights.layer = Layer(tensors.layer);
  weights.norm = Norm(tensors.norm);
  return weights;
}

}  // namespace godwit
