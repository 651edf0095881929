// A small model of layers with attention and recurrent ones, for tests: of pseudo-random weights.
#pragma once

#include <memory>

#include "model/archs/all.h"
#include "model/decoder.h"
#include "model/loader.h"
#include "model/synthetic_weights.h"
#include "weights/hf_config.h"

namespace godwit {

// Layers: attention, a decaying sum, a short convolution, a gated DeltaNet, Mamba2 with attention
// beside it, an MLP alone, a delta rule by channels, attention.
inline DecoderSpec HybridSpec() {
  DecoderSpec spec = DescribeModel(HfConfig::Parse(
      R"({"model_type": "llama", "hidden_size": 24, "intermediate_size": 32,
          "num_hidden_layers": 8, "num_attention_heads": 3, "num_key_value_heads": 1,
          "head_dim": 8, "vocab_size": 128, "max_position_embeddings": 65536})",
      "the hybrid model of tests"));
  spec.names.mixer_in = "model.layers.{}.mixer.in_proj";
  spec.names.mixer_out = "model.layers.{}.mixer.out_proj";
  spec.names.convolution = "model.layers.{}.mixer.conv";
  spec.names.delta_inputs = {"model.layers.{}.mixer.q_proj", "model.layers.{}.mixer.k_proj",
                             "model.layers.{}.mixer.v_proj"};
  spec.names.delta_convolutions = {"model.layers.{}.mixer.q_conv", "model.layers.{}.mixer.k_conv",
                                   "model.layers.{}.mixer.v_conv"};
  spec.names.delta_z_down = "model.layers.{}.mixer.z_down_proj";
  spec.names.delta_decay_down = "model.layers.{}.mixer.a_down_proj";
  spec.names.delta_z = "model.layers.{}.mixer.z_proj";
  spec.names.delta_update = "model.layers.{}.mixer.b_proj";
  spec.names.delta_decay = "model.layers.{}.mixer.a_proj";
  spec.names.mixer_norm = "model.layers.{}.mixer.norm";
  spec.names.decay_rates = "model.layers.{}.mixer.A_log";
  spec.names.decay_biases = "model.layers.{}.mixer.dt_bias";
  spec.names.skips = "model.layers.{}.mixer.D";
  ChangeLayers(spec, [](int64_t layer, LayerKind& kind) {
    switch (layer) {
      case 1:
        kind.mixer = Mixer::kDecayingSum;
        kind.sum = {.width = 20, .decay = 0.97f};
        break;
      case 2:
        kind.mixer = Mixer::kShortConvolution;
        kind.convolution = {.width = 24, .taps = 4, .bias = true};
        break;
      case 3:
        kind.mixer = Mixer::kGatedDeltaNet;
        kind.delta.shape = {
            .key_heads = 3, .value_heads = 6, .key_dim = 3, .value_dim = 2, .taps = 3};
        break;
      case 4:
        kind.mixer = Mixer::kMamba2;
        kind.attention_beside = true;
        kind.mamba.shape = {
            .key_heads = 3, .value_heads = 6, .key_dim = 5, .value_dim = 3, .taps = 4};
        break;
      case 5:
        kind.mixer = Mixer::kNone;
        break;
      case 6:
        kind.mixer = Mixer::kGatedDeltaNet;
        kind.delta = {.shape = {.key_heads = 3,
                                .value_heads = 3,
                                .key_dim = 4,
                                .value_dim = 2,
                                .taps = 3,
                                .channel_decays = true},
                      .inputs_apart = true,
                      .narrow = 5,
                      .sigmoid_gate = true,
                      .update_scale = 2};
        break;
      default:
        break;
    }
  });
  return spec;
}

inline std::unique_ptr<Decoder> HybridDecoder() {
  ThreadPool pool(1);
  const DecoderSpec spec = HybridSpec();
  return LoadDecoder(spec, *SyntheticWeights(spec, DType::kF32), pool, {}, DType::kF32);
}

}  // namespace godwit
