#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/archs/deepseek_experts.h"
#include "model/archs/families.h"
#include "model/archs/gguf_families.h"
#include "model/archs/mamba_fields.h"
#include "model/archs/mamba_gguf.h"
#include "model/gguf_fields.h"
#include "model/hf_fields.h"

namespace godwit {
namespace {

enum class Block { kMamba, kAttention, kMlp, kExperts };

// A name in lists, the older name, and the letter in patterns.
struct BlockName {
  Block block;
  std::string_view name, other;
  char letter;
};
constexpr BlockName kBlocks[] = {{Block::kMamba, "mamba", "linear_attention", 'M'},
                                 {Block::kAttention, "attention", "full_attention", '*'},
                                 {Block::kMlp, "mlp", "mlp", '-'},
                                 {Block::kExperts, "moe", "moe", 'E'}};

// The only block of each layer.
std::vector<Block> ReadBlocks(const HfConfig& config) {
  std::vector<Block> blocks;
  const auto add = [&](std::string_view key, std::string_view expected, const auto& is) {
    const auto found = std::ranges::find_if(kBlocks, is);
    if (found == std::end(kBlocks)) config.Refuse(key, expected, ErrorKind::kUnsupported);
    blocks.push_back(found->block);
  };
  for (const std::string_view key : {"layers_block_type", "layer_types"}) {
    if (!config.Has(key)) continue;
    config.MarkAsRead("hybrid_override_pattern");
    for (const std::string& type : config.Strings(key)) {
      add(key, "mamba, attention, mlp or moe for every layer",
          [&](const BlockName& known) { return type == known.name || type == known.other; });
    }
  }
  if (blocks.empty()) {
    constexpr std::string_view kPattern = "hybrid_override_pattern";
    for (const char letter : config.StringOr(kPattern, "ME*-")) {
      add(kPattern, "letters M, *, - and E, one for each layer",
          [&](const BlockName& known) { return letter == known.letter; });
    }
  }
  const auto layers = std::ssize(blocks);
  if (layers < kLayerRange.min || layers > kLayerRange.max) {
    config.Refuse("hybrid_override_pattern", "a letter for each layer");
  }
  if (config.IntOr("num_hidden_layers", layers, kLayerRange) != layers) {
    config.Refuse("num_hidden_layers", fmt::format("{}, as many as are listed", layers));
  }
  return blocks;
}

// Experts without gates, chosen as DeepSeek V3's, beside one that serves all tokens.
void ReadExpertsOfBlocks(const HfConfig& config, DecoderSpec& spec) {
  constexpr DeepSeekExperts kAbsent = {
      .experts = 8, .intermediate = 7688, .shared = 1, .per_token = 2};
  spec.mlp.latent = config.IsNull("moe_latent_size")
                        ? 0
                        : config.IntOr("moe_latent_size", 0, {0, kWidthRange.max});
  if (spec.mlp.latent > 0 && spec.mlp.bias) {
    config.Refuse("mlp_bias", "false beside moe_latent_size", ErrorKind::kUnsupported);
  }
  if (config.IntOr("n_shared_experts", 1, {0, 64}) != 1) {
    config.Refuse("n_shared_experts", "1", ErrorKind::kUnsupported);
  }
  ReadExpertSizes(config, kAbsent, spec);
  spec.shared_mlp.latent = 0;
  spec.shared_mlp.intermediate =
      config.IntOr("moe_shared_expert_intermediate_size", 7688, kWidthRange);
  ReadExpertGroups(config, kAbsent, spec);
  ReadChosenExperts(config, kAbsent, spec);
  spec.mlp.choice.score = ops::ExpertScore::kSigmoid;
  spec.mlp.choice_bias = true;
  spec.mlp.shares_among_chosen = config.BoolOr("norm_topk_prob", true);
  ModuleNames& names = spec.names;
  names.dense_up = "model.layers.{}.mixer.up_proj";
  names.dense_down = "model.layers.{}.mixer.down_proj";
  names.experts_in = "model.layers.{}.mixer.fc1_latent_proj";
  names.experts_out = "model.layers.{}.mixer.fc2_latent_proj";
  names.router = "model.layers.{}.mixer.gate";
  names.choice_bias = "model.layers.{}.mixer.gate.e_score_correction_bias";
  names.up = "model.layers.{}.mixer.experts.{}.up_proj";
  names.down = "model.layers.{}.mixer.experts.{}.down_proj";
  names.shared_up = "model.layers.{}.mixer.shared_experts.up_proj";
  names.shared_down = "model.layers.{}.mixer.shared_experts.down_proj";
}

Mamba2Spec ReadMambaOfBlocks(const HfConfig& config) {
  Mamba2Spec mamba;
  mamba.shape.value_heads = config.IntOr("mamba_num_heads", 128, kHeadRange);
  mamba.shape.value_dim = config.IntOr("mamba_head_dim", 64, kHeadDimRange);
  mamba.shape.key_dim = config.IntOr("ssm_state_size", 128, {1, 4096});
  mamba.in_bias = mamba.out_bias = config.BoolOr("use_bias", false);
  ReadMambaCommon(config,
                  {.groups = "n_groups",
                   .taps = "conv_kernel",
                   .conv_bias = "use_conv_bias",
                   .other_limit = "mamba_dt_limit",
                   .default_groups = 8},
                  mamba);
  ExpectString(config, "mamba_hidden_act", "silu", /*fallback=*/"silu");
  return mamba;
}

void NameBlocks(ModuleNames& names) {
  names.renamed = {{"model.", "backbone."}};  // in published files
  names.embedding = "model.embeddings";
  names.final_norm = "model.norm_f";
  names.attention_norm = names.mlp_norm = "model.layers.{}.norm";
  names.q = "model.layers.{}.mixer.q_proj";
  names.k = "model.layers.{}.mixer.k_proj";
  names.v = "model.layers.{}.mixer.v_proj";
  names.attention_out = "model.layers.{}.mixer.o_proj";
  names.up = "model.layers.{}.mixer.up_proj";
  names.down = "model.layers.{}.mixer.down_proj";
  names.others = {"mtp."};  // layers that predict one more token
  NameMamba("model.layers.{}.mixer", names);
}

}  // namespace

// Each layer is one block: Mamba2, attention without positions, an MLP, or experts.
DecoderSpec DescribeNemotronH(const HfConfig& config) {
  const std::string_view head_dim = config.Has("head_dim") ? "head_dim" : "attention_head_dim";
  DecoderSpec spec = DescribeLlamaShape(config, {.layers = "",
                                                 .head_dim = head_dim,
                                                 .intermediate = "",
                                                 .activation = "mlp_hidden_act",
                                                 .default_activation = "relu2",
                                                 .default_head_dim = 128});
  const std::vector<Block> blocks = ReadBlocks(config);
  spec.layers = std::ssize(blocks);
  spec.norm_epsilon = static_cast<float>(config.FloatOr("layer_norm_epsilon", 1e-5, {0, 1}));
  spec.mamba = ReadMambaOfBlocks(config);
  NameBlocks(spec.names);
  spec.mlp.gated = false;
  spec.mlp.bias = config.BoolOr("mlp_bias", false);
  MlpSpec dense = spec.mlp;
  if (std::ranges::count(blocks, Block::kMlp) > 0 || config.Has("intermediate_size")) {
    dense.intermediate = config.IntOr("intermediate_size", 21504, kWidthRange);
  }
  if (std::ranges::count(blocks, Block::kExperts) > 0) {
    ReadExpertsOfBlocks(config, spec);
  } else {
    spec.mlp = dense;
  }
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    const Block block = blocks[static_cast<size_t>(layer)];
    kind.mixer = block == Block::kMamba       ? Mixer::kMamba2
                 : block == Block::kAttention ? Mixer::kAttention
                                              : Mixer::kNone;
    if (block == Block::kExperts) return;
    kind.mlp = block == Block::kMlp ? dense : MlpSpec{};
    kind.shared_mlp = {};
  });
  return spec;
}

namespace {

constexpr GgufName kNemotronHWhole[] = {
    {"token_embd", "model.embeddings"}, {"output_norm", "model.norm_f"}, {"output", "lm_head"}};

// Rows of q and k are paired in files, although nothing rotates.
constexpr GgufName kNemotronHLayers[] = {
    {"attn_norm", "model.layers.{}.norm"},
    {"attn_q", "model.layers.{}.mixer.q_proj", GgufRows::kPairedQ},
    {"attn_k", "model.layers.{}.mixer.k_proj", GgufRows::kPairedK},
    {"attn_v", "model.layers.{}.mixer.v_proj"},
    {"attn_output", "model.layers.{}.mixer.o_proj"},
    {"ffn_up", "model.layers.{}.mixer.up_proj"},
    {"ffn_down", "model.layers.{}.mixer.down_proj"},
    {"ffn_gate_inp", "model.layers.{}.mixer.gate"},
    {"exp_probs_b", "model.layers.{}.mixer.gate.e_score_correction_bias", GgufRows::kAsTheyWere,
     ".bias"},
    {"ffn_latent_down", "model.layers.{}.mixer.fc1_latent_proj"},
    {"ffn_latent_up", "model.layers.{}.mixer.fc2_latent_proj"},
    {"ffn_up_exps", "model.layers.{}.mixer.experts.{}.up_proj", GgufRows::kExperts},
    {"ffn_down_exps", "model.layers.{}.mixer.experts.{}.down_proj", GgufRows::kExperts},
    {"ffn_up_shexp", "model.layers.{}.mixer.shared_experts.up_proj"},
    {"ffn_down_shexp", "model.layers.{}.mixer.shared_experts.down_proj"},
    {"ssm_in", "model.layers.{}.mixer.in_proj"},
    {"ssm_conv1d", "model.layers.{}.mixer.conv1d", GgufRows::kTaps},
    {"ssm_dt", "model.layers.{}.mixer.dt_bias", GgufRows::kAsTheyWere, ".bias"},
    {"ssm_a", "model.layers.{}.mixer.A_log", GgufRows::kVector, ""},
    {"ssm_d", "model.layers.{}.mixer.D", GgufRows::kVector, ""},
    {"ssm_norm", "model.layers.{}.mixer.norm", GgufRows::kVector},
    {"ssm_out", "model.layers.{}.mixer.out_proj"},
};

// A layer with KV heads is attention, another with a width is an MLP or experts, and all others are
// Mamba2.
void CompleteBlocks(const GgufMetadata& metadata, const GgufShape& shape, std::string_view mlp,
                    nlohmann::json& config) {
  if (config.contains("rms_norm_eps")) config["layer_norm_epsilon"] = config["rms_norm_eps"];
  config["mlp_bias"] = shape.mlp_bias;
  config["use_conv_bias"] = shape.convolution_bias;
  config["decay_rates_negated"] = true;
  const GgufMamba mamba = ReadMambaSizes(metadata);
  config["mamba_num_heads"] = mamba.heads;
  config["mamba_head_dim"] = mamba.head_dim;
  config["ssm_state_size"] = mamba.state;
  config["conv_kernel"] = mamba.taps;
  config["n_groups"] = mamba.groups;
  const std::vector<bool>& keyless = ReadKeyless(metadata, shape);
  const std::vector<int64_t> widths =
      ListOfLayers(metadata, "feed_forward_length", {0, kSizeRange.max});
  int64_t width = 0;
  for (size_t i = 0; i < keyless.size(); ++i) {
    if (widths[i] != 0 && width != 0 && widths[i] != width) {
      metadata.Refuse(metadata.ArchitectureKey("feed_forward_length"),
                      "one width, and 0 for layers without",
                      fmt::format("{} and {}", width, widths[i]), ErrorKind::kUnsupported);
    }
    if (widths[i] != 0) width = widths[i];
    config["layers_block_type"].push_back(!keyless[i]     ? "attention"
                                          : widths[i] > 0 ? mlp
                                                          : "mamba");
  }
  if (width == 0) config.erase("intermediate_size");
}

void CompleteNemotronH(const GgufMetadata& metadata, const GgufShape& shape,
                       nlohmann::json& config) {
  CompleteBlocks(metadata, shape, "mlp", config);
}

void CompleteNemotronHMoe(const GgufMetadata& metadata, const GgufShape& shape,
                          nlohmann::json& config) {
  CompleteBlocks(metadata, shape, "moe", config);
  config.erase("intermediate_size");
  ReadDeepSeekExperts(metadata, /*norm_unless_told=*/false, config);
  config.erase("first_k_dense_replace");
  config["moe_shared_expert_intermediate_size"] =
      OwnInt(metadata, "expert_shared_feed_forward_length");
  const int64_t latent = OwnIntOr(metadata, "moe_latent_size", 0);
  if (latent > 0) config["moe_latent_size"] = latent;
}

}  // namespace

const GgufFamily kNemotronHGguf = {.architecture = "nemotron_h",
                                   .model_type = "nemotron_h",
                                   .whole = kNemotronHWhole,
                                   .layers = kNemotronHLayers,
                                   .keyless_layers = true,
                                   .listed_widths = true,
                                   .read_only = kMamba2IsReadOnly,
                                   .complete = CompleteNemotronH};
const GgufFamily kNemotronHMoeGguf = {.architecture = "nemotron_h_moe",
                                      .model_type = "nemotron_h",
                                      .whole = kNemotronHWhole,
                                      .layers = kNemotronHLayers,
                                      .keyless_layers = true,
                                      .listed_widths = true,
                                      .read_only = kMamba2IsReadOnly,
                                      .complete = CompleteNemotronHMoe};

}  // namespace godwit
