#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/archs/families.h"
#include "model/archs/gemma_keys.h"
#include "model/archs/gguf_families.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

constexpr int64_t kGemma4Window = 512;
constexpr int64_t kGemma4Period = 6;  // every so many layers one sees all tokens
constexpr int64_t kGemma4LargeHead = 512;
constexpr CommonKeys kGemma4Keys = {.activation = "hidden_activation",
                                    .default_activation = "gelu_pytorch_tanh",
                                    .tied_by_default = true,
                                    .default_kv_heads = 4,
                                    .default_head_dim = 256};
// Defaults for fields that a text_config beside a vision model leaves out.
constexpr CommonKeys kGemma4KeysBesideVision = {.activation = "hidden_activation",
                                                .default_activation = "gelu_pytorch_tanh",
                                                .tied_by_default = true,
                                                .default_vocab = 262144,
                                                .default_heads = 8,
                                                .default_kv_heads = 4,
                                                .default_head_dim = 256};

// The heads of layers without a window.
struct LargeHeads {
  int64_t kv_heads = 0;
  int64_t head_dim = 0;

  bool operator==(const LargeHeads&) const = default;
};

// Whether each layer [layers] has the window. The last one never has.
std::vector<bool> WindowedLayers(const HfConfig& config, int64_t layers) {
  std::vector<bool> windowed;
  for (int64_t i = 0; i < layers; ++i) windowed.push_back((i + 1) % kGemma4Period != 0);
  windowed = ReadLayersOfType(config, "sliding_attention", windowed);
  windowed.back() = false;
  return windowed;
}

// The rotation of heads of `head_dim` numbers in layers of a type. Without rope_parameters, layers
// with a window rotate whole heads, and a quarter of the pairs of other heads turns.
RotarySpec ReadRotation(const HfConfig& config, std::string_view type, int64_t head_dim) {
  const bool windowed = type == "sliding_attention";
  RotarySpec rotary{.rotary_dim = head_dim / 2 * 2, .theta = windowed ? 1e4 : 1e6};
  std::string kind = windowed ? "default" : "proportional";
  double turning = windowed ? 1 : 0.25, factor = 1;
  if (const auto parameters = config.Object("rope_parameters")) {
    const HfConfig fields = NeedObject(*parameters, type);
    kind = fields.StringOr("rope_type", "default");
    ExpectOneOf(fields, "rope_type", kind, {"default", "proportional"});
    rotary.theta = fields.Float("rope_theta", kThetaRange);
    turning = fields.FloatOr("partial_rotary_factor", 1, {0, 1});
    factor = fields.FloatOr("factor", 1, {1e-3, 1e6});
  }
  if (kind != "proportional") return rotary;
  const auto pairs = static_cast<int64_t>(std::floor(turning * static_cast<double>(head_dim) / 2));
  if (pairs < rotary.rotary_dim / 2) rotary.turning_pairs = pairs;
  if (factor != 1) rotary.scaling = {.kind = RotaryScaling::Kind::kLinear, .factor = factor};
  return rotary;
}

// The heads of layers without a window. transformers writes them into per_layer_config, under the
// numbers of the layers.
LargeHeads ReadLargeHeads(const HfConfig& config, const std::vector<bool>& windowed,
                          const DecoderSpec& spec) {
  LargeHeads large{.kv_heads = spec.kv_heads,
                   .head_dim = config.IntOr("global_head_dim", kGemma4LargeHead, kHeadDimRange)};
  const auto divides = [&](const HfConfig& fields, std::string_view key, int64_t kv_heads) {
    if (spec.heads % kv_heads != 0) {
      fields.Refuse(key, fmt::format("a divisor of {} heads", spec.heads));
    }
  };
  constexpr std::string_view kFewer = "num_global_key_value_heads";
  if (config.BoolOr("attention_k_eq_v", false)) {
    large.kv_heads = config.IntOr(kFewer, spec.kv_heads, kHeadRange);
    divides(config, kFewer, large.kv_heads);
  } else {
    config.MarkAsRead(kFewer);
  }
  const auto listed = config.Object("per_layer_config");
  if (!listed) return large;
  std::optional<LargeHeads> common;
  for (const std::string& layer : listed->Keys()) {
    const HfConfig fields = NeedObject(*listed, layer);
    const LargeHeads heads{
        .kv_heads = fields.IntOr("num_key_value_heads", spec.kv_heads, kHeadRange),
        .head_dim = fields.IntOr("head_dim", spec.head_dim, kHeadDimRange)};
    divides(fields, "num_key_value_heads", heads.kv_heads);
    for (const std::string& key : fields.Keys()) {
      if (key != "num_key_value_heads" && key != "head_dim") {
        fields.Refuse(key, "sizes of heads alone", ErrorKind::kUnsupported);
      }
    }
    if (common.value_or(heads) != heads) {
      listed->Refuse(layer, "the same heads in all layers without a window",
                     ErrorKind::kUnsupported);
    }
    common = heads;
  }
  int64_t found = 0;
  for (size_t i = 0; i < windowed.size(); ++i) {
    if (!windowed[i] && listed->Has(std::to_string(i))) ++found;
  }
  if (found != std::ranges::count(windowed, false) || found != std::ssize(listed->Keys())) {
    config.Refuse("per_layer_config", "an entry for each layer without a window, and no other",
                  ErrorKind::kUnsupported);
  }
  return common.value_or(large);
}

// Experts in all layers, beside the MLP of all tokens.
void ReadExpertBranch(const HfConfig& config, DecoderSpec& spec) {
  if (!config.BoolOr("enable_moe_block", false)) {
    for (const char* key : {"num_experts", "top_k_experts", "moe_intermediate_size"}) {
      config.MarkAsRead(key);
    }
    return;
  }
  spec.branch_norms = true;
  spec.shared_mlp = spec.mlp;
  spec.mlp.intermediate = config.Int("moe_intermediate_size", kWidthRange);
  spec.mlp.experts = config.Int("num_experts", kExpertRange);
  spec.mlp.experts_per_token = config.Int("top_k_experts", {1, spec.mlp.experts});
  spec.mlp.stacked = spec.mlp.fused = true;
  ModuleNames& names = spec.names;
  names.shared_gate = names.gate;
  names.shared_up = names.up;
  names.shared_down = names.down;
  names.router = "model.layers.{}.router.proj";
  names.router_gains = "model.layers.{}.router.scale";
  names.expert_scales = "model.layers.{}.router.per_expert_scale";
  names.experts_norm = "model.layers.{}.pre_feedforward_layernorm_2";
  names.experts_out_norm = "model.layers.{}.post_feedforward_layernorm_2";
  names.shared_out_norm = "model.layers.{}.post_feedforward_layernorm_1";
  names.up = "model.layers.{}.experts.gate_up_proj";
  names.down = "model.layers.{}.experts.down_proj";
  names.per_expert_gate = "model.layers.{}.experts.{}.gate_proj";
  names.per_expert_up = "model.layers.{}.experts.{}.up_proj";
  names.per_expert_down = "model.layers.{}.experts.{}.down_proj";
  names.expert_weight = "";
}

// Gemma 3 with heads of two sizes, normalised values, numbers behind each layer, and in some sizes
// embeddings of each layer, shared keys and experts. whole: as ReadLayerEmbedding has it.
DecoderSpec DescribeFourth(const HfConfig& config, const HfConfig& whole, const CommonKeys& keys) {
  DecoderSpec spec = DescribeLlamaShape(config, keys);
  ReadNormsAndScales(config, whole, /*default_cap=*/0, spec);
  spec.layer_scales = true;
  spec.names.layer_scale = "model.layers.{}.layer_scalar";
  // Tokens of pictures see each other in "vision", and here are none.
  if (config.Has("use_bidirectional_attention")) {
    ExpectString(config, "use_bidirectional_attention", "vision", "vision");
  }
  ReadExpertBranch(config, spec);
  ReadLayerEmbedding(config, whole, spec);
  if (spec.layer_embedding && spec.layer_embedding->vocab_size < spec.vocab_size) {
    config.Refuse("vocab_size_per_layer_input",
                  fmt::format("a row for each of {} tokens", spec.vocab_size),
                  ErrorKind::kUnsupported);
  }

  const std::vector<bool> windowed = WindowedLayers(config, spec.layers);
  spec.window = config.IntOr("sliding_window", kGemma4Window, {1, kContextRange.max});
  spec.rotary = ReadRotation(config, "sliding_attention", spec.head_dim);
  const LargeHeads large = ReadLargeHeads(config, windowed, spec);
  const RotarySpec rotary = ReadRotation(config, "full_attention", large.head_dim);
  const bool keys_are_values = config.BoolOr("attention_k_eq_v", false);
  const bool wide = config.BoolOr("use_double_wide_mlp", false);
  const std::vector<int64_t> sources = ReadKeySources(config, windowed, /*default_shared=*/0, spec);
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    kind.keys_of = sources[layer];
    MlpSpec& mlp = spec.branch_norms ? kind.shared_mlp : kind.mlp;
    if (wide && !HasKeys(kind)) mlp.intermediate *= 2;
    if (windowed[layer]) return;
    kind.window = 0;
    kind.rotary = rotary;
    kind.kv_heads = large.kv_heads;
    kind.head_dim = large.head_dim;
    kind.keys_are_values = keys_are_values && HasKeys(kind);
  });
  return spec;
}

}  // namespace

DecoderSpec DescribeGemma4Text(const HfConfig& config) {
  return DescribeFourth(config, config, kGemma4Keys);
}

// Gemma 4 without its parts that see and hear.
DecoderSpec DescribeGemma4(const HfConfig& config) {
  return BesideSightAndHearing(config, kGemma4KeysBesideVision, DescribeFourth);
}

namespace {

constexpr GgufName kGemma4Whole[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"per_layer_token_embd", "model.embed_tokens_per_layer"},
    {"per_layer_model_proj", "model.per_layer_model_projection"},
    {"per_layer_proj_norm", "model.per_layer_projection_norm"},
};

constexpr GgufName kGemma4Layers[] = {
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {"post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
    {"inp_gate", "model.layers.{}.per_layer_input_gate"},
    {"proj", "model.layers.{}.per_layer_projection"},
    {"post_norm", "model.layers.{}.post_per_layer_input_norm"},
    {"layer_output_scale", "model.layers.{}.layer_scalar", GgufRows::kAsTheyWere, ".weight"},
    {"ffn_gate_inp", "model.layers.{}.router.scale", GgufRows::kAsTheyWere, ".scale"},
    {"ffn_gate_inp", "model.layers.{}.router.proj"},
    {"pre_ffw_norm_2", "model.layers.{}.pre_feedforward_layernorm_2"},
    {"post_ffw_norm_1", "model.layers.{}.post_feedforward_layernorm_1"},
    {"post_ffw_norm_2", "model.layers.{}.post_feedforward_layernorm_2"},
    {"ffn_gate_up_exps", "model.layers.{}.experts.{}.gate_proj", GgufRows::kFirstHalves},
    {"ffn_gate_up_exps", "model.layers.{}.experts.{}.up_proj", GgufRows::kSecondHalves},
    {"ffn_gate_exps", "model.layers.{}.experts.{}.gate_proj", GgufRows::kExperts},
    {"ffn_up_exps", "model.layers.{}.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.router.per_expert_scale", GgufRows::kAsTheyWere, ".scale"},
    {"ffn_down_exps", "model.layers.{}.experts.{}.down_proj", GgufRows::kExperts},
};

// The number that those of a list's layers have which have windows, or which have none.
int64_t CommonNumber(const GgufMetadata& metadata, std::string_view key,
                     const std::vector<int64_t>& numbers, const std::vector<bool>& windowed,
                     bool of_windowed) {
  int64_t common = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (windowed[i] != of_windowed) continue;
    if (common != 0 && numbers[i] != common) {
      metadata.Refuse(metadata.ArchitectureKey(key),
                      "one number for layers with a window, and one for the others",
                      fmt::format("{} and {}", common, numbers[i]), ErrorKind::kUnsupported);
    }
    common = numbers[i];
  }
  return common;
}

void CompleteHeads(const GgufMetadata& metadata, const GgufShape& shape,
                   const std::vector<bool>& windowed, nlohmann::json& config) {
  constexpr std::string_view kKvHeads = "attention.head_count_kv";
  const int64_t head_dim = OwnIntOr(metadata, "attention.key_length_swa", shape.head_dim);
  for (const char* key : {"attention.value_length_swa", "rope.dimension_count_swa"}) {
    metadata.IntOr(metadata.ArchitectureKey(key), head_dim, {head_dim, head_dim});
  }
  config["head_dim"] = head_dim;
  config["global_head_dim"] = shape.head_dim;
  config["attention_k_eq_v"] = shape.keys_are_values;
  config["num_kv_shared_layers"] = OwnIntOr(metadata, "attention.shared_kv_layers", 0);
  if (shape.listed_kv_heads.empty()) return;
  const int64_t near =
      CommonNumber(metadata, kKvHeads, shape.listed_kv_heads, windowed, /*of_windowed=*/true);
  const int64_t far =
      CommonNumber(metadata, kKvHeads, shape.listed_kv_heads, windowed, /*of_windowed=*/false);
  if (near != 0) config["num_key_value_heads"] = near;
  if (far != near && near != 0 && !shape.keys_are_values) {
    metadata.Refuse(metadata.ArchitectureKey(kKvHeads),
                    "one number, because all layers have projections for values",
                    fmt::format("{} and {}", near, far), ErrorKind::kUnsupported);
  }
  config["num_global_key_value_heads"] = far == 0 ? near : far;
}

// A file's factors divide frequencies: by 1, or by a number that makes them zero.
int64_t ReadTurningPairs(const GgufMetadata& metadata, const std::vector<float>& factors) {
  constexpr float kStill = 1e20f;
  const auto turning =
      std::ranges::find_if(factors, [](float factor) { return factor >= kStill; }) -
      factors.begin();
  const auto pairs = std::span(factors);
  const bool as_expected =
      std::ranges::all_of(pairs.first(turning), [](float factor) { return factor == 1; }) &&
      std::ranges::all_of(pairs.subspan(turning), [](float factor) { return factor >= kStill; });
  if (!as_expected) {
    Throw(ErrorKind::kUnsupported,
          "{}: tensor rope_freqs.weight: expected factors 1, then 1e30 for pairs that stand still",
          metadata.file_name());
  }
  return turning;
}

void CompleteRotations(const GgufMetadata& metadata, const GgufShape& shape,
                       nlohmann::json& config) {
  if (!config["rope_scaling"].is_null()) {
    metadata.Refuse(metadata.ArchitectureKey("rope.scaling.type"), "none",
                    config["rope_scaling"]["rope_type"].dump(), ErrorKind::kUnsupported);
  }
  nlohmann::json full{{"rope_type", "proportional"}, {"rope_theta", config["rope_theta"]}};
  if (!shape.rotary_factors.empty()) {
    // A quarter of a pair more is cut off where the part is read.
    full["partial_rotary_factor"] = std::min(
        1.0, (static_cast<double>(ReadTurningPairs(metadata, shape.rotary_factors)) + 0.25) /
                 static_cast<double>(shape.rotary_factors.size()));
  }
  config["rope_parameters"] = {
      {"full_attention", full},
      {"sliding_attention",
       {{"rope_type", "default"},
        {"rope_theta", config.value("rope_local_base_freq", config["rope_theta"])}}}};
  for (const char* key : {"rope_theta", "rope_local_base_freq", "rope_scaling"}) config.erase(key);
}

// Layers that read others' keys may have MLPs of twice the width.
void CompleteWidths(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  if (shape.mlp_widths.empty()) return;
  const int64_t width = shape.mlp_widths.front();
  const auto layers = std::ssize(shape.mlp_widths);
  const int64_t first_reader = layers - config["num_kv_shared_layers"].get<int64_t>();
  const bool wide = shape.mlp_widths.back() != width;
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t expected = wide && i >= first_reader ? 2 * width : width;
    if (shape.mlp_widths[i] == expected) continue;
    metadata.Refuse(metadata.ArchitectureKey("feed_forward_length"),
                    fmt::format("{} for layer {}: one width, or twice as much in layers that read "
                                "others' keys",
                                expected, i),
                    fmt::format("{}", shape.mlp_widths[i]), ErrorKind::kUnsupported);
  }
  config["intermediate_size"] = width;
  config["use_double_wide_mlp"] = wide;
}

void CompleteGemma4(const GgufMetadata& metadata, const GgufShape& shape, nlohmann::json& config) {
  RequireWholeRotation(metadata, shape);
  config["dtype"] = "bfloat16";  // of published models, for the scale of embeddings
  config["attention_bias"] = shape.qkv_bias;
  ReadWindowPattern(metadata, config);
  if (!config.contains("layer_types")) {
    metadata.Refuse(metadata.ArchitectureKey("attention.sliding_window_pattern"),
                    "a list beside attention.sliding_window", "none");
  }
  std::vector<bool> windowed;
  for (const auto& type : config["layer_types"]) windowed.push_back(type == "sliding_attention");
  CompleteHeads(metadata, shape, windowed, config);
  CompleteRotations(metadata, shape, config);
  CompleteWidths(metadata, shape, config);
  config["hidden_size_per_layer_input"] = OwnIntOr(metadata, "embedding_length_per_layer_input", 0);
  if (shape.layer_rows > 0) config["vocab_size_per_layer_input"] = shape.layer_rows;
  const int64_t experts = OwnIntOr(metadata, "expert_count", 0);
  if (experts == 0) return;
  config["enable_moe_block"] = true;
  config["num_experts"] = experts;
  config["top_k_experts"] = OwnInt(metadata, "expert_used_count");
  config["moe_intermediate_size"] = OwnInt(metadata, "expert_feed_forward_length");
}

}  // namespace

const GgufFamily kGemma4Gguf = {.architecture = "gemma4",
                                .model_type = "gemma4_text",
                                .whole = kGemma4Whole,
                                .layers = kGemma4Layers,
                                .listed_widths = true,
                                .unequal_kv_heads = true,
                                .own_rotary_factors = true,
                                .read_only = kUnequalLayersAreReadOnly,
                                .complete = CompleteGemma4};

}  // namespace godwit
