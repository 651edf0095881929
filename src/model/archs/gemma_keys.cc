#include "model/archs/gemma_keys.h"

#include <cmath>
#include <string_view>

#include "model/archs/families.h"

namespace godwit {

std::vector<int64_t> ReadKeySources(const HfConfig& config, const std::vector<bool>& windowed,
                                    int64_t default_shared, DecoderSpec& spec) {
  constexpr std::string_view kShared = "num_kv_shared_layers";
  const int64_t otherwise = default_shared < spec.layers ? default_shared : 0;
  const int64_t first = spec.layers - config.IntOr(kShared, otherwise, {0, kLayerRange.max});
  if (first < 1) {
    config.Refuse(kShared, fmt::format("fewer than the model's {} layers", spec.layers));
  }
  std::vector<int64_t> sources(windowed.size(), -1);
  for (int64_t layer = first; layer < spec.layers; ++layer) {
    int64_t& source = sources[layer];
    for (source = first - 1; source >= 0 && windowed[source] != windowed[layer];) --source;
    if (source < 0) {
      config.Refuse(kShared,
                    fmt::format("a layer before layer {} with the type of attention of layer {}, "
                                "whose keys that could read",
                                first, layer));
    }
    for (const char* module : {"k_proj", "v_proj", "k_norm", "v_norm"}) {
      for (const char* ending : {"weight", "bias"}) {
        spec.names.harmless.push_back(
            fmt::format(".layers.{}.self_attn.{}.{}", layer, module, ending));
      }
    }
  }
  return sources;
}

void ReadLayerEmbedding(const HfConfig& config, const HfConfig& whole, DecoderSpec& spec) {
  constexpr std::string_view kWidth = "hidden_size_per_layer_input";
  const int64_t width = config.IsNull(kWidth) ? 0 : config.IntOr(kWidth, 256, {0, kWidthRange.max});
  config.MarkAsRead(kWidth);
  const int64_t rows = config.IntOr("vocab_size_per_layer_input", 262144, kVocabRange);
  if (width == 0) return;
  spec.layer_embedding = {.layers = spec.layers,
                          .width = width,
                          .vocab_size = rows,
                          .scale = InStoredType(whole, std::sqrt(static_cast<float>(width)))};
  ModuleNames& names = spec.names;
  names.layer_table = "model.embed_tokens_per_layer";
  names.layer_model = "model.per_layer_model_projection";
  names.layer_model_norm = "model.per_layer_projection_norm";
  names.layer_gate = "model.layers.{}.per_layer_input_gate";
  names.layer_out = "model.layers.{}.per_layer_projection";
  names.layer_out_norm = "model.layers.{}.post_per_layer_input_norm";
}

void ReadNormsAndScales(const HfConfig& config, const HfConfig& whole, double default_cap,
                        DecoderSpec& spec) {
  constexpr std::string_view kCap = "final_logit_softcapping";
  spec.embedding_scale = InStoredType(whole, std::sqrt(static_cast<float>(spec.hidden_size)));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.qk_norm = QkNorm::kHeads;
  spec.value_norm = true;
  spec.score_scale = 1.0f;
  const double cap = config.IsNull(kCap) ? 0 : config.FloatOr(kCap, default_cap, {0, 1e6});
  if (cap > 0) spec.logit_cap = static_cast<float>(cap);
  spec.output_norms = true;
  ModuleNames& names = spec.names;
  names.attention_out_norm = "model.layers.{}.post_attention_layernorm";
  names.mlp_norm = "model.layers.{}.pre_feedforward_layernorm";
  names.mlp_out_norm = "model.layers.{}.post_feedforward_layernorm";
}

DecoderSpec BesideSightAndHearing(const HfConfig& config, const CommonKeys& keys,
                                  DecoderSpec (*describe)(const HfConfig& text,
                                                          const HfConfig& whole,
                                                          const CommonKeys& keys)) {
  const HfConfig text = NeedObject(config, "text_config");
  const bool typed = text.Has("dtype") || text.Has("torch_dtype");
  DecoderSpec spec = BesideVision(config, describe(text, typed ? text : config, keys));
  for (const char* module : {"embed_vision", "audio_tower", "embed_audio"}) {
    spec.names.others.push_back(fmt::format("model.{}.", module));
  }
  return spec;
}

}  // namespace godwit
