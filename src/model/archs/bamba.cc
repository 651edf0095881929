#include <algorithm>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/mamba_fields.h"
#include "model/hf_fields.h"

namespace godwit {

// Llama with Mamba2 in the layers that are not listed, and rotation of half of each head.
DecoderSpec DescribeBamba(const HfConfig& config) {
  constexpr std::string_view kPart = "partial_rotary_factor";
  DecoderSpec spec = DescribeLlamaShape(config);
  RequireSilu(config, "hidden_act", spec);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  if (config.FloatOr(kPart, 0.5, {0, 1}) != 0.5) {
    config.Refuse(kPart, "0.5, which transformers takes for every bamba model",
                  ErrorKind::kUnsupported);
  }
  ReadRotary(config, ReadRotaryDim(config, kPart, 0.5, spec), "rope_theta", spec);
  ModuleNames& names = spec.names;
  names.final_norm = "model.final_layernorm";
  names.mlp_norm = "model.layers.{}.pre_ff_layernorm";
  names.gate = "model.layers.{}.feed_forward.gate_proj";
  names.up = "model.layers.{}.feed_forward.up_proj";
  names.down = "model.layers.{}.feed_forward.down_proj";
  NameMamba("model.layers.{}.mamba", names);
  spec.mamba = ReadMamba(config, ReadExpandedWidth(config, spec));
  const std::vector<int64_t> attention = config.Ints("attn_layer_indices", {0, spec.layers - 1});
  std::vector<bool> recurrent(static_cast<size_t>(spec.layers), true);
  for (const int64_t layer : attention) recurrent[static_cast<size_t>(layer)] = false;
  ChangeLayers(spec, recurrent, [](LayerKind& kind) { kind.mixer = Mixer::kMamba2; });
  return spec;
}

}  // namespace godwit
