#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

// The temperature of layers without positions. The first files say 4 for true.
QueryTemperature ReadTemperature(const HfConfig& config) {
  constexpr std::string_view kSwitch = "attn_temperature_tuning";
  const bool on = !config.Has(kSwitch) || config.IsAmong(kSwitch, "[true, 4]");
  if (!on && !config.IsAmong(kSwitch, "[false, 0]")) config.Refuse(kSwitch, "true or false");
  config.MarkAsRead(kSwitch);
  const double growth = config.FloatOr("attn_scale", 0.1, {0, 100});
  return {.growth = on ? growth : 0,
          .tokens = config.IntOr("floor_scale", 8192, kContextRange),
          .first = 1};
}

// Some layers have no positions. Those that rotate see their own chunk, unless layer_types says
// otherwise.
void ReadChunks(const HfConfig& config, DecoderSpec& spec) {
  constexpr std::string_view kKey = "attention_chunk_size";
  if (config.IsNull(kKey)) config.Refuse(kKey, "a number of tokens");
  const int64_t chunk = config.IntOr(kKey, 8192, kContextRange);
  spec.chunked = true;
  const std::vector<bool> without = ReadLayersWithoutPositions(config, spec.layers);
  std::vector<bool> rotates = without;
  rotates.flip();
  const std::vector<bool> chunked = ReadLayersOfType(config, "chunked_attention", rotates);
  ChangeLayers(spec, chunked, [&](LayerKind& kind) { kind.window = chunk; });
  const RotarySpec none = {.temperature = ReadTemperature(config)};
  ChangeLayers(spec, without, [&](LayerKind& kind) { kind.rotary = none; });
}

// Rotations with an attention factor change lengths, which a later norm would undo.
void ReadQkNorm(const HfConfig& config, DecoderSpec& spec) {
  if (!config.BoolOr("use_qk_norm", true)) return;
  if (spec.rotary.scaling.attention_factor != 1) {
    config.Refuse("use_qk_norm", "false, because rope_scaling scales queries",
                  ErrorKind::kUnsupported);
  }
  spec.qk_norm = QkNorm::kRotatedHeads;
}

void ReadExperts(const HfConfig& config, DecoderSpec& spec) {
  MlpSpec dense = spec.shared_mlp = spec.mlp;
  dense.intermediate = config.IntOr("intermediate_size_mlp", 16384, kWidthRange);
  ReadLocalExperts(config, /*experts=*/16, /*per_token=*/1, spec);
  spec.mlp.fused = spec.mlp.stacked = spec.mlp.transposed = true;
  spec.mlp.choice.scales_input = true;

  const int64_t period = config.IntOr("interleave_moe_layer_step", 1, kLayerRange);
  const std::vector<int64_t> listed = config.Ints("moe_layers", {0, kLayerRange.max});
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    const bool experts = config.Has("moe_layers") ? std::ranges::count(listed, layer) > 0
                                                  : (layer + 1) % period == 0;
    if (!experts) kind.mlp = dense;
  });
}

}  // namespace

// Llama whose layers see the chunk of a token. Every fourth layer sees all tokens, without
// positions. One of the experts serves all tokens.
DecoderSpec DescribeLlama4Text(const HfConfig& config) {
  DecoderSpec spec = DescribeLlamaShape(config, {.default_head_dim = 128});
  spec.norm_epsilon = static_cast<float>(config.FloatOr("rms_norm_eps", 1e-5, {0, 1}));
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  ReadRotary(config, spec.head_dim, "rope_theta", spec, /*default_theta=*/500000);
  spec.interleaved_rotary = true;
  ReadQkNorm(config, spec);
  ReadExperts(config, spec);
  ReadChunks(config, spec);

  ModuleNames& names = spec.names;
  names.dense_gate = "model.layers.{}.feed_forward.gate_proj";
  names.dense_up = "model.layers.{}.feed_forward.up_proj";
  names.dense_down = "model.layers.{}.feed_forward.down_proj";
  names.shared_gate = "model.layers.{}.feed_forward.shared_expert.gate_proj";
  names.shared_up = "model.layers.{}.feed_forward.shared_expert.up_proj";
  names.shared_down = "model.layers.{}.feed_forward.shared_expert.down_proj";
  names.router = "model.layers.{}.feed_forward.router";
  names.up = "model.layers.{}.feed_forward.experts.gate_up_proj";
  names.down = "model.layers.{}.feed_forward.experts.down_proj";
  names.per_expert_gate = "model.layers.{}.feed_forward.experts.{}.gate_proj";
  names.per_expert_up = "model.layers.{}.feed_forward.experts.{}.up_proj";
  names.per_expert_down = "model.layers.{}.feed_forward.experts.{}.down_proj";
  names.expert_weight = "";
  return spec;
}

// Llama 4 without its vision part.
DecoderSpec DescribeLlama4(const HfConfig& config) {
  return BesideVision(config, DescribeLlama4Text(NeedObject(config, "text_config")),
                      "vision_model");
}

namespace {

constexpr GgufName kLlama4Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.feed_forward.gate_proj"},
    {"ffn_up", "model.layers.{}.feed_forward.up_proj"},
    {"ffn_down", "model.layers.{}.feed_forward.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.feed_forward.router"},
    {"ffn_gate_exps", "model.layers.{}.feed_forward.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.feed_forward.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.feed_forward.experts.{}.down_proj", GgufRows::kExperts},
    {"ffn_gate_shexp", "model.layers.{}.feed_forward.shared_expert.gate_proj"},
    {"ffn_up_shexp", "model.layers.{}.feed_forward.shared_expert.up_proj"},
    {"ffn_down_shexp", "model.layers.{}.feed_forward.shared_expert.down_proj"},
};

// No key has the size of chunks, the layers without positions and their temperature, which Scout
// and Maverick share. Maverick alone, with its 128 experts, has no norms of queries and keys.
void CompleteLlama4(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  constexpr int64_t kExpertsOfMaverick = 128;
  RequireWholeRotation(metadata, shape);
  if (config.contains("sliding_window")) {
    metadata.Refuse(metadata.ArchitectureKey("attention.sliding_window"), "none", "one",
                    ErrorKind::kUnsupported);
  }
  const int64_t experts = OwnInt(metadata, "expert_count");
  config["head_dim"] = shape.head_dim;
  config["attention_bias"] = shape.qkv_bias;
  config["intermediate_size_mlp"] = config["intermediate_size"];
  config["intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
  config["num_local_experts"] = experts;
  config["num_experts_per_tok"] = OwnInt(metadata, "expert_used_count");
  config["interleave_moe_layer_step"] = OwnInt(metadata, "interleave_moe_layer_step");
  config["use_qk_norm"] = experts != kExpertsOfMaverick;
}

}  // namespace

const GgufFamily kLlama4Gguf = {.architecture = "llama4",
                                .model_type = "llama4_text",
                                .layers = kLlama4Layers,
                                .complete = CompleteLlama4};

}  // namespace godwit
