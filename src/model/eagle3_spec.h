// Eagle3Spec: the facts about an EAGLE-3 head (eagle3_head.h), as plain data, read from the
// config.json that comes with it.
#pragma once

#include <array>
#include <cstdint>

#include "attention/core/position.h"
#include "ops/activation.h"
#include "weights/hf_config.h"

namespace godwit {

struct DecoderSpec;

struct Eagle3Spec {
  static constexpr int64_t kStates = 3;

  // The places at which the head reads the model's residual stream: behind so many of its layers,
  // low, middle and high. 0: the embeddings.
  std::array<int64_t, kStates> behind = {};
  int64_t model_hidden = 0;
  int64_t hidden = 0;
  int64_t vocab = 0;        // the model's
  int64_t draft_vocab = 0;  // tokens that the head knows as its own results
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  RotarySpec rotary;
  int64_t intermediate = 0;
  ops::Activation activation = ops::Activation::kSilu;
  float norm_epsilon = 0;
  // Whether the residual stream begins with the normalised state, else with the state itself.
  bool norm_before_residual = false;

  bool operator==(const Eagle3Spec&) const = default;
};

// Reads a head's config.json for that model. The places of eagle_config's layer ids are behind
// these layers, counted from 0, as SpecForge and SGLang have them. Those at the config's top are
// before them, as vLLM has them. Without ids, the places are behind 2 layers, half of all, and all
// but 3. Throws Error(kInput) for the head of another model, naming the key. Throws
// Error(kUnsupported) for a key by which the head computes otherwise, and for a model that no head
// can read.
Eagle3Spec ReadEagle3(const HfConfig& config, const DecoderSpec& model);

}  // namespace godwit
