#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "model/archs/deepseek_experts.h"
#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/archs/latent_fields.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

constexpr CommonKeys kDeepSeekKeys = {.kv_heads = "", .head_dim = "", .default_head_dim = 1};

constexpr LatentAttention kDeepSeekLatent = {
    .query_rank = 1536, .kv_rank = 512, .plain_dim = 128, .rotary_dim = 64, .value_dim = 128};

// The factor on scores from stretching the context. The rotations have their own factor.
double ScoreFactor(const HfConfig& config) {
  const auto fields = RotaryFields(config);
  if (!fields) return 1;
  const double all_dim = fields->FloatOr("mscale_all_dim", 0, {0, 100});
  const double magnitude = YarnMagnitude(fields->FloatOr("factor", 1, {1, 1e4}), all_dim);
  return magnitude * magnitude;
}

// Llama with latent attention. rotation: the config, or another that states the rotation.
DecoderSpec DescribeShape(const HfConfig& config, const LatentAttention& absent,
                          const HfConfig& rotation) {
  DecoderSpec spec = DescribeLlamaShape(config, kDeepSeekKeys);
  ReadLatentAttention(config, absent, spec);
  ReadRotary(rotation, spec.latent->rotary_dim, "rope_theta", spec);
  spec.interleaved_rotary = true;
  spec.qkv_bias = spec.attention_out_bias = config.BoolOr("attention_bias", false);
  spec.score_scale = static_cast<float>(ScoreFactor(rotation) /
                                        std::sqrt(static_cast<double>(spec.latent->query_dim())));
  if (config.IntOr("moe_layer_freq", 1, kLayerRange) != 1) {
    config.Refuse("moe_layer_freq", "1", ErrorKind::kUnsupported);
  }
  return spec;
}

}  // namespace

// Some experts serve all tokens. Shares are a softmax over all experts.
DecoderSpec DescribeDeepseekV2(const HfConfig& config) {
  constexpr DeepSeekExperts kAbsent = {
      .experts = 64, .intermediate = 1407, .shared = 2, .per_token = 6, .best_of_group = 1};
  DecoderSpec spec = DescribeShape(config, kDeepSeekLatent, config);
  ReadExpertSizes(config, kAbsent, spec);
  ExpectString(config, "scoring_func", "softmax", /*fallback=*/"softmax");
  const std::string method = config.StringOr("topk_method", "greedy");
  ExpectOneOf(config, "topk_method", method, {"greedy", "group_limited_greedy"});
  if (method != "greedy") ReadExpertGroups(config, kAbsent, spec);
  ReadChosenExperts(config, kAbsent, spec);
  spec.shared_mlp.bias = config.BoolOr("mlp_bias", false);
  spec.mlp.shares_among_chosen = false;
  if (config.BoolOr("norm_topk_prob", false)) {
    // The model's own code divides here, and transformers does not.
    config.Refuse("norm_topk_prob", "false", ErrorKind::kUnsupported);
  }
  ReadDenseLayers(config, kAbsent, spec);
  return spec;
}

namespace {

// The meaning of absent fields of an index.
struct AbsentIndex {
  int64_t heads = 0;
  bool interleaved = false;
};

// index_head_dim has to hold the rotated dimensions.
void ReadKeyIndex(const HfConfig& config, const AbsentIndex& absent, DecoderSpec& spec) {
  if (spec.latent->query_rank == 0) {
    config.Refuse("q_lora_rank", "a number, because queries of the index are made of that vector");
  }
  constexpr IntRange kBestRange = {1, 65536};
  spec.key_index = {
      .heads = config.IntOr("index_n_heads", absent.heads, {1, 256}),
      .head_dim = config.IntOr("index_head_dim", 128, {spec.latent->rotary_dim, kHeadDimRange.max}),
      .best = config.IntOr("index_topk", 2048, kBestRange),
      .interleaved_rotary = config.BoolOr("indexer_rope_interleave", absent.interleaved)};
  config.MarkAsRead("head_dim");  // the rotated dimensions
  for (const std::string& type : config.Strings("layer_types")) {
    if (type != "indexed_attention") {
      config.Refuse("layer_types", "indexed_attention for every layer", ErrorKind::kUnsupported);
    }
  }
  ModuleNames& names = spec.names;
  names.index_query = "model.layers.{}.self_attn.indexer.wq_b";
  names.index_key = "model.layers.{}.self_attn.indexer.wk";
  names.index_key_norm = "model.layers.{}.self_attn.indexer.k_norm";
  names.index_weights = "model.layers.{}.self_attn.indexer.weights_proj";
}

// The [layers] that see what the last layer with an index chose. A pattern of F and S stands before
// the schedule, and a list before both.
std::vector<bool> ReadSharers(const HfConfig& config, int64_t layers) {
  std::vector<bool> shared;
  const std::string pattern = config.StringOr("index_topk_pattern", "");
  const int64_t period = config.IntOr("index_topk_freq", 1, {0, kLayerRange.max});
  const int64_t offset = config.IntOr("index_skip_topk_offset", 2, {0, kLayerRange.max});
  std::string_view key = "indexer_types";
  if (const auto types = config.Strings(key); !types.empty()) {
    for (const std::string& type : types) {
      ExpectOneOf(config, key, type, {"full", "shared"});
      shared.push_back(type == "shared");
    }
  } else if (!pattern.empty()) {
    key = "index_topk_pattern";
    for (const char letter : pattern) {
      if (letter != 'F' && letter != 'S') config.Refuse(key, "letters F and S");
      shared.push_back(letter == 'S');
    }
  } else {
    key = "index_topk_freq";
    for (int64_t i = 0; i < layers; ++i) {
      const int64_t place = std::max<int64_t>(0, i - offset + 1);
      shared.push_back(place % std::max<int64_t>(1, period) != 0);
    }
  }
  if (std::ssize(shared) != layers || shared.front()) {
    config.Refuse(key, fmt::format("{} layers, of which the first has an index", layers));
  }
  return shared;
}

constexpr DeepSeekExperts kV3Experts = {.experts = 256,
                                        .intermediate = 2048,
                                        .per_token = 8,
                                        .groups = 8,
                                        .groups_chosen = 4,
                                        .share_scale = 2.5,
                                        .dense_layers = 3};

// DeepSeek V3 with an index.
DecoderSpec DescribeIndexed(const HfConfig& config, const LatentAttention& latent,
                            DeepSeekExperts experts, const AbsentIndex& index) {
  DecoderSpec spec = DescribeShape(config, latent, config);
  if (!config.BoolOr("rope_interleave", true)) {
    config.Refuse("rope_interleave", "true", ErrorKind::kUnsupported);
  }
  experts.layers_by_type = true;
  ReadSigmoidExperts(config, experts, spec);
  ReadKeyIndex(config, index, spec);
  return spec;
}

}  // namespace

// Shares are sigmoids. A bias is added to choose experts.
DecoderSpec DescribeDeepseekV3(const HfConfig& config) {
  DecoderSpec spec = DescribeShape(config, kDeepSeekLatent, config);
  spec.interleaved_rotary = config.BoolOr("rope_interleave", true);
  ReadSigmoidExperts(config, kV3Experts, spec);
  ReadDeepseekPrediction(config, spec);
  return spec;
}

// The published code also multiplies queries and keys of the index by a Hadamard matrix before it
// rounds them to FP8. That matrix changes no product of the two, so it is left out.
DecoderSpec DescribeDeepseekV32(const HfConfig& config) {
  return DescribeIndexed(config, kDeepSeekLatent, kV3Experts, {.heads = 64});
}

// DeepSeek V3.2, where layers may share what an index chose.
DecoderSpec DescribeGlmMoeDsa(const HfConfig& config) {
  DeepSeekExperts experts = kV3Experts;
  experts.groups = experts.groups_chosen = 1;
  DecoderSpec spec = DescribeIndexed(
      config,
      {.query_rank = 2048, .kv_rank = 512, .plain_dim = 192, .rotary_dim = 64, .value_dim = 256},
      experts, {.heads = 32, .interleaved = true});
  ChangeLayers(spec, ReadSharers(config, spec.layers),
               [](LayerKind& kind) { kind.shares_choice = true; });
  return spec;
}

namespace {

// The rotation of a Mistral 4 config that states none.
constexpr std::string_view kMistral4Rope =
    R"({"rope_parameters":{"rope_type":"yarn","rope_theta":10000,"factor":128,"beta_fast":32,)"
    R"("beta_slow":1,"mscale":1,"mscale_all_dim":1,"llama_4_scaling_beta":0.1,)"
    R"("original_max_position_embeddings":8192}})";

}  // namespace

// DeepSeek with Llama 4's temperature on queries. Experts are chosen by their parts of the softmax.
DecoderSpec DescribeMistral4(const HfConfig& config) {
  constexpr DeepSeekExperts kAbsent = {.experts = 128, .intermediate = 2048, .per_token = 4};
  const HfConfig stated =
      RotaryFields(config) ? config : HfConfig::Parse(kMistral4Rope, "mistral4");
  DecoderSpec spec = DescribeShape(
      config,
      {.query_rank = 1024, .kv_rank = 256, .plain_dim = 64, .rotary_dim = 64, .value_dim = 128},
      stated);
  spec.max_context = config.IntOr("max_position_embeddings", 2048, kContextRange);
  spec.interleaved_rotary = config.BoolOr("rope_interleave", true);
  ReadQueryTemperature(*RotaryFields(stated), spec);
  RotaryFields(stated)->MarkAsRead("partial_rotary_factor");  // follows from qk_rope_head_dim
  ReadExpertSizes(config, kAbsent, spec);
  ReadExpertGroups(config, kAbsent, spec);
  ReadChosenExperts(config, kAbsent, spec);
  spec.mlp.choice.score = ops::ExpertScore::kPart;
  spec.mlp.shares_among_chosen = config.BoolOr("norm_topk_prob", true);
  spec.mlp.fused = spec.mlp.stacked = true;
  ReadDenseLayers(config, kAbsent, spec);

  ModuleNames& names = spec.names;
  names.up = "model.layers.{}.mlp.experts.gate_up_proj";
  names.down = "model.layers.{}.mlp.experts.down_proj";
  names.per_expert_gate = "model.layers.{}.mlp.experts.{}.gate_proj";
  names.per_expert_up = "model.layers.{}.mlp.experts.{}.up_proj";
  names.per_expert_down = "model.layers.{}.mlp.experts.{}.down_proj";
  names.expert_weight = "";
  return spec;
}

namespace {

constexpr GgufName kDeepSeekLayers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_q_a", "model.layers.{}.self_attn.q_a_proj"},
    {"attn_q_a_norm", "model.layers.{}.self_attn.q_a_layernorm"},
    {"attn_q_b", "model.layers.{}.self_attn.q_b_proj"},
    {"attn_kv_a_mqa", "model.layers.{}.self_attn.kv_a_proj_with_mqa"},
    {"attn_kv_a_norm", "model.layers.{}.self_attn.kv_a_layernorm"},
    {"attn_kv_b", "model.layers.{}.self_attn.kv_b_proj"},
    {"attn_k_b", "model.layers.{}.self_attn.k_b_proj.{}", GgufRows::kHeadMatrices},
    {"attn_v_b", "model.layers.{}.self_attn.v_b_proj.{}", GgufRows::kHeadMatrices},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"exp_probs_b", "model.layers.{}.mlp.gate.e_score_correction_bias", GgufRows::kAsTheyWere,
     ".bias"},
    {"ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj", GgufRows::kExperts},
    {"ffn_gate_up_exps", "model.layers.{}.mlp.experts.{}.gate_proj", GgufRows::kFirstHalves},
    {"ffn_gate_up_exps", "model.layers.{}.mlp.experts.{}.up_proj", GgufRows::kSecondHalves},
    {"ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"},
};

// Where heads are apart, lengths of keys and values are those of what is cached, and others those
// of a head.
void ReadLatentSizes(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  const int64_t rotary = OwnInt(metadata, "rope.dimension_count");
  const int64_t key = OwnIntOr(metadata, "attention.key_length_mla", shape.head_dim);
  const int64_t rank = OwnIntOr(metadata, "attention.q_lora_rank", 0);
  config["q_lora_rank"] = rank == 0 ? nlohmann::json() : nlohmann::json(rank);
  config["kv_lora_rank"] = OwnInt(metadata, "attention.kv_lora_rank");
  config["qk_rope_head_dim"] = rotary;
  config["qk_nope_head_dim"] = key - rotary;
  config["v_head_dim"] = OwnIntOr(metadata, "attention.value_length_mla",
                                  OwnIntOr(metadata, "attention.value_length", shape.head_dim));
  config["num_key_value_heads"] = shape.heads;
  config.erase("head_dim");
  config["kv_b_is_apart"] = shape.latent_heads_apart;
}

// The file has the growth of scores with the logarithm of the stretch. Rotations have no factor of
// their own.
void ReadMagnitude(const GgufMetadata& metadata, nlohmann::json& config) {
  const double growth =
      metadata.FloatOr(metadata.ArchitectureKey("rope.scaling.yarn_log_multiplier"), 0, {0, 10});
  if (growth == 0 || config["rope_scaling"].is_null()) return;
  config["rope_scaling"]["mscale"] = config["rope_scaling"]["mscale_all_dim"] = 10 * growth;
}

void CompleteDeepseek(const GgufMetadata& metadata, const GgufShape& shape,
                      nlohmann::json& config) {
  ReadLatentSizes(metadata, shape, config);
  ReadMagnitude(metadata, config);
  const bool sigmoid = OwnIntOr(metadata, "expert_gating_func", 0) == kGgufSigmoid;
  ReadDeepSeekExperts(metadata, /*norm_unless_told=*/sigmoid, config);
  config["attention_bias"] = shape.attention_out_bias;
  config["num_nextn_predict_layers"] = ReadLayers(metadata).predicting;
  if (sigmoid) return;
  config["model_type"] = "deepseek_v2";
  config["topk_method"] = config["n_group"] == 1 ? "greedy" : "group_limited_greedy";
}

// A file may leave out the growth of the temperature, which all published models share.
void CompleteMistral4(const GgufMetadata& metadata, const GgufShape& shape,
                      nlohmann::json& config) {
  constexpr double kPublishedGrowth = 0.1;
  ReadLatentSizes(metadata, shape, config);
  const std::string scaling = metadata.ArchitectureKey("rope.scaling.type");
  if (config["rope_scaling"].is_null() || config["rope_scaling"]["rope_type"] != "yarn") {
    metadata.Refuse(scaling, "yarn", Quote(metadata.StringOr(scaling, "none")),
                    ErrorKind::kUnsupported);
  }
  ReadMagnitude(metadata, config);
  nlohmann::json& rotation = config["rope_scaling"];
  rotation["llama_4_scaling_beta"] = metadata.FloatOr(
      metadata.ArchitectureKey("attention.temperature_scale"), kPublishedGrowth, {0, 100});
  const int64_t tokens = rotation["original_max_position_embeddings"];
  metadata.IntOr(metadata.ArchitectureKey("attention.temperature_length"), tokens,
                 {tokens, tokens});
  const std::string gating = metadata.ArchitectureKey("expert_gating_func");
  metadata.IntOr(gating, 1, {1, 1});  // a softmax
  ReadDeepSeekExperts(metadata, /*norm_unless_told=*/false, config);
  config["attention_bias"] = shape.attention_out_bias;
}

}  // namespace

const GgufFamily kDeepseekGguf = {.architecture = "deepseek2",
                                  .model_type = "deepseek_v3",
                                  .other_types = {"deepseek_v2", "kimi_k2"},
                                  .layers = kDeepSeekLayers,
                                  .prediction = kPredictionGgufNames,
                                  .complete = CompleteDeepseek};
const GgufFamily kMistral4Gguf = {.architecture = "mistral4",
                                  .model_type = "mistral4",
                                  .layers = kDeepSeekLayers,
                                  .read_only = kMistral4IsReadOnly,
                                  .complete = CompleteMistral4};

}  // namespace godwit
