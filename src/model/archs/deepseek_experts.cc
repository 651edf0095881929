#include "model/archs/deepseek_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/archs/families.h"
#include "model/hf_fields.h"

namespace godwit {

void ReadExpertSizes(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec) {
  spec.mlp.intermediate = config.IntOr("moe_intermediate_size", absent.intermediate, kWidthRange);
  spec.shared_mlp = spec.mlp;
  spec.shared_mlp.intermediate *= config.IntOr("n_shared_experts", absent.shared, {0, 64});
  spec.mlp.experts = config.IntOr("n_routed_experts", absent.experts, kExpertRange);
  ModuleNames& names = spec.names;
  names.shared_gate = "model.layers.{}.mlp.shared_experts.gate_proj";
  names.shared_up = "model.layers.{}.mlp.shared_experts.up_proj";
  names.shared_down = "model.layers.{}.mlp.shared_experts.down_proj";
  NameExperts(names);
}

void ReadExpertGroups(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec) {
  ops::ExpertChoice& choice = spec.mlp.choice;
  const int64_t best = absent.best_of_group;
  choice.groups = config.IntOr("n_group", absent.groups, {1, ops::kMaxGroups});
  choice.groups_chosen =
      config.IntOr("topk_group", std::min(absent.groups_chosen, choice.groups), {1, choice.groups});
  choice.best_of_group = best;
  const int64_t size = spec.mlp.experts / choice.groups;
  if (spec.mlp.experts % choice.groups != 0 || (choice.groups > 1 && size < best)) {
    config.Refuse("n_group", fmt::format("groups of {} or more of {} experts, all of one size",
                                         best, spec.mlp.experts));
  }
}

void ReadChosenExperts(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec) {
  ops::ExpertChoice& choice = spec.mlp.choice;
  choice.share_scale =
      static_cast<float>(config.FloatOr("routed_scaling_factor", absent.share_scale, {1e-6, 1e6}));
  ReadExpertsPerToken(config, absent.per_token,
                      spec.mlp.experts / choice.groups * choice.groups_chosen, spec);
}

void ReadDenseLayers(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec) {
  const int64_t dense =
      config.IntOr("first_k_dense_replace", absent.dense_layers, {0, kLayerRange.max});
  MlpSpec mlp = spec.shared_mlp;
  mlp.intermediate = config.Int("intermediate_size", kWidthRange);
  std::vector<std::string> types;
  if (absent.layers_by_type) types = config.Strings("mlp_layer_types");
  const bool known = std::ranges::all_of(
      types, [](const std::string& type) { return type == "dense" || type == "sparse"; });
  if (!types.empty() && (!known || std::ssize(types) != spec.layers)) {
    config.Refuse("mlp_layer_types", fmt::format("dense or sparse for {} layers", spec.layers));
  }
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    if (types.empty() ? layer < dense : types[layer] == "dense") kind.mlp = mlp;
  });
}

void ReadSigmoidExperts(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec) {
  ReadExpertSizes(config, absent, spec);
  ExpectString(config, "scoring_func", "sigmoid", /*fallback=*/"sigmoid");
  ExpectString(config, "topk_method", "noaux_tc", /*fallback=*/"noaux_tc");
  ReadExpertGroups(config, absent, spec);
  ReadChosenExperts(config, absent, spec);
  spec.mlp.choice.score = ops::ExpertScore::kSigmoid;
  spec.mlp.choice_bias = true;
  spec.mlp.shares_among_chosen = config.BoolOr("norm_topk_prob", true);
  ReadDenseLayers(config, absent, spec);
  spec.names.choice_bias = "model.layers.{}.mlp.gate.e_score_correction_bias";
  // In files of Hugging Face's and in GGUF files.
  for (const char* layers : {"model.layers", "blk"}) {
    spec.names.others.push_back(fmt::format("{}.{}.", layers, spec.layers));
  }
}

void ReadDeepseekPrediction(const HfConfig& config, DecoderSpec& spec) {
  if (config.IntOr("num_nextn_predict_layers", 0, {0, kLayerRange.max}) == 0) return;
  const std::string layer = fmt::format("model.layers.{}", spec.layers);
  spec.prediction = {.kind = spec,
                     .layer = layer,
                     .join = layer + ".eh_proj",
                     .embedding_norm = layer + ".enorm",
                     .output_norm = layer + ".hnorm",
                     .norm = layer + ".shared_head.norm",
                     .unsupported = {}};
}

}  // namespace godwit
