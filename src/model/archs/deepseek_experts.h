// The experts of DeepSeek, which other families have taken over. Some experts serve all tokens, the
// first layers have one MLP, and experts may be chosen in groups.
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// The meaning of absent fields in a family.
struct DeepSeekExperts {
  int64_t experts = 0;
  int64_t intermediate = 0;  // of each
  int64_t shared = 1;        // experts of every token
  int64_t per_token = 0;
  int64_t groups = 1;
  int64_t groups_chosen = 1;
  int64_t best_of_group = 2;  // the number of experts whose sum is a group's score; not a field
  double share_scale = 1;
  int64_t dense_layers = 0;
  bool layers_by_type = false;  // whether mlp_layer_types, where it is, says which layers are dense
};

// Reads moe_intermediate_size, n_routed_experts and n_shared_experts, and names the tensors.
// spec.mlp is the family's MLP before.
void ReadExpertSizes(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec);

// Reads n_group and topk_group.
void ReadExpertGroups(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec);

// Reads num_experts_per_tok and routed_scaling_factor. Groups have been read.
void ReadChosenExperts(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec);

// Reads first_k_dense_replace, the number of first layers that have one MLP, like the shared one
// but for its width, or mlp_layer_types, "dense" or "sparse". Calls ChangeLayers.
void ReadDenseLayers(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec);

// Reads all of these for experts that are chosen by sigmoids with a bias (DeepSeek V3). Leaves out
// the layer behind the last one, which predicts one more token.
void ReadSigmoidExperts(const HfConfig& config, const DeepSeekExperts& absent, DecoderSpec& spec);

}  // namespace godwit
