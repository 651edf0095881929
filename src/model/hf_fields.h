// Fields of config.json that several families spell the same way. Reading only: what a field means
// to a family is said in its archs file. Every function throws Error(kFormat) that names the key.
#pragma once

#include <string_view>

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// Bounds for sizes in a config.json: beyond every published model, small enough that products of
// three stay far from overflow.
inline constexpr IntRange kLayerRange{1, 4096};
inline constexpr IntRange kHeadRange{1, 4096};
inline constexpr IntRange kWidthRange{1, 1 << 20};
inline constexpr IntRange kHeadDimRange{1, 1024};
inline constexpr IntRange kVocabRange{1, 1 << 24};
inline constexpr IntRange kContextRange{1, int64_t{1} << 40};
inline constexpr IntRange kExpertRange{1, 512};

// How a family spells the common fields. Empty: it has no such field.
struct CommonKeys {
  std::string_view hidden_size = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view head_dim = "head_dim";
  std::string_view intermediate = "intermediate_size";
  std::string_view max_context = "max_position_embeddings";
  bool tied_unless_told = false;
};

// vocab_size, hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads (absent: one
// per head), head_dim (absent: hidden_size / heads), intermediate_size, hidden_act
// (absent: silu), max_position_embeddings (absent: 2048), tie_word_embeddings (absent: not tied),
// and the sinks of a pre-training with sinks: attention_sink ("none", "softmax1") and
// sink_token_id. A family without intermediate_size sets spec.mlp.intermediate itself.
void ReadCommonFields(const HfConfig& config, DecoderSpec& spec, const CommonKeys& keys = {});

// Rotation of the first rotary_dim dimensions: rope_theta (or `theta_key`) and rope_scaling, or the
// newer rope_parameters; absent: `default_theta`. Sets spec.rotary and stretches spec.max_context,
// which must be set.
void ReadRotary(const HfConfig& config, int64_t rotary_dim, std::string_view theta_key,
                DecoderSpec& spec, double default_theta = 10000);

// Dimensions of a head that rotate, of spec.head_dim: the fraction in `key`, or in rope_parameters
// as partial_rotary_factor.
int64_t ReadRotaryDim(const HfConfig& config, std::string_view key, double fallback,
                      const DecoderSpec& spec);

// "silu", "gelu", "gelu_new", ... in `key`; absent: `fallback`, in the same spelling.
ops::Activation ReadActivation(const HfConfig& config, std::string_view fallback,
                               std::string_view key = "hidden_act");

// spec.windows from sliding_window (absent: 4096 tokens, null: none) and, where present,
// layer_types. Without layer_types, layers from first_windowed on have the window.
void ReadWindows(const HfConfig& config, int64_t first_windowed, DecoderSpec& spec);

}  // namespace godwit
