// Fields of Mamba2 layers that several families spell the same way.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// The family's names of the fields, of which a config may have the first or the other.
struct MambaKeys {
  std::string_view groups = "mamba_n_groups", other_groups = "mamba_n_groups";
  std::string_view taps = "mamba_d_conv", other_taps = "mamba_d_conv";
  std::string_view conv_bias = "mamba_conv_bias", other_conv_bias = "mamba_conv_bias";
  std::string_view limit = "time_step_limit", other_limit = "time_step_limit";
  int64_t default_groups = 1;
};

// Reads groups, taps, the convolution's bias and the range of steps, for a layer with these heads.
// Also reads decay_rates_negated, godwit's own field (Mamba2Spec).
void ReadMambaCommon(const HfConfig& config, const MambaKeys& keys, Mamba2Spec& mamba);

// Reads mamba_n_heads, mamba_d_head ("auto": width / heads), mamba_d_state, and the common fields.
// width: the numbers of all heads.
Mamba2Spec ReadMamba(const HfConfig& config, int64_t width);

// hidden_size * mamba_expand.
int64_t ReadExpandedWidth(const HfConfig& config, const DecoderSpec& spec);

// The [layers] that are called mamba, or linear_attention, in layer_types or layers_block_type. All
// others are called attention, or full_attention. Absent: `otherwise`.
std::vector<bool> ReadMambaLayers(const HfConfig& config, const std::vector<bool>& otherwise);

// Names the modules of Mamba2 layers after `module`, such as "model.layers.{}.mamba".
void NameMamba(std::string_view module, ModuleNames& names);

// Throws Error(kUnsupported) unless the activation, which also follows the convolutions, is SiLU.
void RequireSilu(const HfConfig& config, std::string_view key, const DecoderSpec& spec);

}  // namespace godwit
