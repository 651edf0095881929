#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/archs/families.h"
#include "model/archs/gemma_keys.h"
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

}  // namespace godwit
