// Fields of config.json that several families spell the same way. This file only reads: the meaning
// of a field for a family is in its archs file. Every function throws Error(kFormat) that names the
// key. It throws Error(kUnsupported) for an unknown name where values are names.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

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
inline constexpr FloatRange kThetaRange{2, 1e12};  // at 1 every dimension would rotate alike

// The family's names of the common fields. Empty: it has no such field.
struct CommonKeys {
  std::string_view hidden_size = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view head_dim = "head_dim";
  std::string_view intermediate = "intermediate_size";
  std::string_view max_context = "max_position_embeddings";
  std::string_view activation = "hidden_act";
  std::string_view default_activation = "silu";
  bool tied_by_default = false;
  // The meaning of an absent field; 0: as ReadCommonFields says.
  int64_t default_vocab = 0;
  int64_t default_heads = 0;
  int64_t default_kv_heads = 0;
  int64_t default_head_dim = 0;
};

// Reads vocab_size, hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads
// (absent: one per head), head_dim (absent: hidden_size / heads), intermediate_size, hidden_act,
// max_position_embeddings (absent: 2048), and tie_word_embeddings (absent: not tied). Also reads
// the sinks of a pre-training with sinks: attention_sink ("none", "softmax1") and sink_token_id. A
// family without intermediate_size, hidden_act or num_hidden_layers sets spec.mlp.intermediate,
// .activation or spec.layers itself.
void ReadCommonFields(const HfConfig& config, DecoderSpec& spec, const CommonKeys& keys = {});

// The fields of rope_scaling, or of the newer rope_parameters, if there is either.
std::optional<HfConfig> RotaryFields(const HfConfig& config);

// Reads the rotation of the first rotary_dim dimensions: rope_theta (or `theta_key`) and
// RotaryFields; absent: `default_theta`. Sets spec.rotary and stretches spec.max_context, which
// must be set. Throws Error(kUnsupported) for an unknown kind of scaling.
void ReadRotary(const HfConfig& config, int64_t rotary_dim, std::string_view theta_key,
                DecoderSpec& spec, double default_theta = 10000);

// Reads the rotation of whole heads, where layers with a window, which have been read, rotate
// differently. These rotate as rope_parameters.sliding_attention says, or without scaling by the
// base `window_theta`. The others, and spec.rotary, rotate as rope_parameters.full_attention says,
// or as ReadRotary has it. Scaling is counted in spec.max_context.
void ReadRotaryByWindow(const HfConfig& config, double default_theta, double window_theta,
                        DecoderSpec& spec);

// The number of dimensions of a head that rotate, of spec.head_dim: the fraction in `key`, or in
// partial_rotary_factor, which rope_parameters may hold.
int64_t ReadRotaryDim(const HfConfig& config, std::string_view key, double fallback,
                      const DecoderSpec& spec);

// The [layers] that do not rotate: those for which no_rope_layers has 0, or without it every
// no_rope_layer_interval-th (absent: 4).
std::vector<bool> ReadLayersWithoutPositions(const HfConfig& config, int64_t layers);

// The factor by which attention is sharpened when the context is stretched (YaRN, section 3.4).
double YarnMagnitude(double factor, double mscale);

// Reads the experts of spec.mlp: num_local_experts, and num_experts_per_tok of them for a token;
// the arguments where a field is absent.
void ReadLocalExperts(const HfConfig& config, int64_t experts, int64_t per_token,
                      DecoderSpec& spec);

// Reads num_experts_per_tok (or `key`), of `most` that a token may have. With fewer experts than
// the usual number, the field has to be there.
void ReadExpertsPerToken(const HfConfig& config, int64_t per_token, int64_t most, DecoderSpec& spec,
                         std::string_view key = "num_experts_per_tok");

// Rounds a number with which the model computes to the type in which the weights are stored (dtype,
// torch_dtype; absent: float32).
float InStoredType(const HfConfig& config, float number);

// The [layers] that layer_types calls `type`, where all others are full_attention; absent:
// `otherwise`.
std::vector<bool> ReadLayersOfType(const HfConfig& config, std::string_view type,
                                   const std::vector<bool>& otherwise);

// The meaning of an absent sliding_window in most families that have any.
inline constexpr int64_t kDefaultWindow = 4096;

// Reads windows from sliding_window (null or 0: none) and, where present, layer_types. Without
// layer_types, the `windowed` layers have the window, or those from first_windowed on. All that
// read windows call ChangeLayers.
void ReadWindows(const HfConfig& config, const std::vector<bool>& windowed, DecoderSpec& spec,
                 int64_t default_window = kDefaultWindow);
void ReadWindows(const HfConfig& config, int64_t first_windowed, DecoderSpec& spec);

// The [layers] that see all keys.
std::vector<bool> LayersWithoutWindow(const DecoderSpec& spec);

// Reads windows for families that have them in all layers, and none where no field says so.
void ReadStatedWindows(const HfConfig& config, DecoderSpec& spec);

// Reads windows for families in which every `period`-th layer has no window, unless
// layer_types says otherwise.
void ReadAlternatingWindows(const HfConfig& config, int64_t period, DecoderSpec& spec,
                            int64_t default_window = kDefaultWindow);

// Reads windows for families that have them where use_sliding_window is true, in layers
// from max_window_layers (absent: 28) on.
void ReadSwitchedWindows(const HfConfig& config, DecoderSpec& spec);

}  // namespace godwit
