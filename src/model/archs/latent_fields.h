// The fields of latent attention, which DeepSeek and families after it share.
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// Reads q_lora_rank (null: queries are made of the hidden state), kv_lora_rank, qk_nope_head_dim,
// qk_rope_head_dim and v_head_dim, and names the tensors. absent: the sizes that fields have unless
// told.
void ReadLatentAttention(const HfConfig& config, const LatentAttention& absent, DecoderSpec& spec);

}  // namespace godwit
