#include "model/unread_keys.h"

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace godwit {
namespace {

enum class Otherwise { kRefused, kWarned };

struct FunctionKey {
  std::string_view key;
  std::string_view neutral;  // a JSON list: these values, and null, change nothing
  std::string_view meaning;  // "... models have no", or for a warning, what is not there
  Otherwise otherwise = Otherwise::kRefused;
};

constexpr FunctionKey kFunctionKeys[] = {
    // Factors: Granite, Cohere, MPT, MiniCPM, Falcon-H1, Grok, GPT-2
    {"logit_scale", "[1]", "factor on the logits"},
    {"logits_scaling", "[1]", "divisor of the logits"},
    {"lm_head_multiplier", "[1]", "factor on the logits"},
    {"output_multiplier_scale", "[1]", "factor on the logits"},
    {"dim_model_base", "[]", "divisor of the logits"},
    {"embedding_multiplier", "[1]", "factor on the embeddings"},
    {"embedding_multiplier_scale", "[1]", "factor on the embeddings"},
    {"scale_emb", "[1]", "factor on the embeddings"},
    {"scale_embedding", "[false]", "factor on the embeddings"},
    {"residual_multiplier", "[1]", "factor on the residual branches"},
    {"scale_depth", "[]", "factor on the residual branches"},
    {"key_multiplier", "[1]", "factor on the keys"},
    {"attention_in_multiplier", "[1]", "factor on the input of attention"},
    {"attention_out_multiplier", "[1]", "factor on the results of attention"},
    {"mlp_multipliers", "[1]", "factors in the MLP"},
    {"attention_multiplier", "[]", "separate scale of the attention scores"},
    {"softmax_scale", "[]", "separate scale of the attention scores"},
    {"query_pre_attn_scalar", "[]", "separate scale of the attention scores"},
    {"scale_attn_weights", "[true]", "attention without a scale"},
    {"scale_attn_by_inverse_layer_idx", "[false]", "scale of the attention scores by layer"},
    {"attn_temperature_tuning", "[false, 0]", "scale of the attention scores by position"},
    {"rope_parameters.llama_4_scaling_beta", "[0]", "scale of the attention scores by position"},
    {"use_logn_attn", "[false]", "scale of the attention scores by position"},
    // Bounds: Gemma 2, DBRX, OLMo, gpt-oss
    {"attn_logit_softcapping", "[]", "soft cap on the attention scores"},
    {"final_logit_softcapping", "[]", "soft cap on the logits"},
    {"logits_soft_cap", "[]", "soft cap on the logits"},
    {"clip_qkv", "[]", "bound on queries, keys and values"},
    {"swiglu_limit", "[]", "bound inside the MLP"},
    // Recurrent layers: OLMo Hybrid
    {"linear_allow_neg_eigval", "[false]", "states whose parts change their sign"},
    // Experts: Qwen3
    {"norm_topk_prob", "[true]", "shares of experts that add up to less than 1"},
    {"attn_type_list", "[1]", "layers of linear attention"},
    {"decoder_sparse_step", "[1]", "layers without experts"},
    {"mlp_only_layers", "[]", "layers without experts"},
    // Visible tokens: Gemma, Llama 4, SmolLM3, Qwen2.5-1M
    {"layer_types", R"(["full_attention"])", "windows by layer"},
    {"sliding_window_pattern", "[]", "windows by layer"},
    {"interleaved_sliding_window", "[0]", "windows by layer"},
    {"attention_chunk_size", "[0]", "attention within chunks"},
    {"is_causal", "[true]", "attention to later tokens"},
    {"use_bidirectional_attention", "[false]", "attention to later tokens"},
    {"sliding_window", "[0]", "sliding window", Otherwise::kWarned},
    {"use_sliding_window", "[false]", "sliding window", Otherwise::kWarned},
    {"dual_chunk_attention_config", "[]",
     "attention in chunks, which matters beyond the length that the model was first trained on",
     Otherwise::kWarned},
    // Layers that share what an index chose: GLM-5
    {"indexer_types", R"(["full"])", "layers that share what an index chose"},
    {"index_topk_freq", "[0, 1]", "layers that share what an index chose"},
    {"index_topk_pattern", "[]", "layers that share what an index chose"},
    // Positions: Phi, StableLM, GPT-J, GLM, Gemma 3, Qwen1, Qwen2-VL, Granite, Baichuan
    {"partial_rotary_factor", "[1]", "rotation of a part of a head"},
    {"rotary_pct", "[1]", "rotation of a part of a head"},
    {"rope_parameters.partial_rotary_factor", "[1]", "rotation of a part of a head"},
    {"rope_ratio", "[1]", "factor on the base of the rotations"},
    {"rope_local_base_freq", "[]", "base of the rotations by layer"},
    {"no_rope_layers", "[1]", "layers without rotation"},
    {"no_rope_layer_interval", "[]", "layers without rotation"},
    {"rope_interleaved", "[false]", "rotary pairs side by side"},
    {"use_mrope", "[false]", "positions of several dimensions"},
    {"use_dynamic_ntk", "[false]", "rotations that follow the length outside of rope_scaling"},
    {"alibi", "[false]", "ALiBi"},
    {"use_alibi", "[false]", "ALiBi"},
    {"rope_scaling.attn_factor", "[1]", "attn_factor in their rope scaling"},
    {"rope_scaling.attention_factor", "[1]", "attention_factor in this rope scaling"},
    {"rope_scaling.short_factor", "[1]", "factors by dimension in this rope scaling"},
    {"rope_scaling.long_factor", "[1]", "factors by dimension in this rope scaling"},
    // Blocks: StableLM, Falcon, OPT
    {"use_parallel_residual", "[false]", "attention and MLP side by side"},
    {"parallel_attn", "[false]", "attention and MLP side by side"},
    {"apply_residual_connection_post_layernorm", "[false]", "residual branches after the norms"},
    {"do_layer_norm_before", "[true]", "norms after the blocks"},
    // Tensors of unread biases are reported as unexpected anyway.
    {"attention_bias", "[false]", "choice of biases in attention", Otherwise::kWarned},
    {"mlp_bias", "[false]", "choice of biases in the MLP", Otherwise::kWarned},
};

// Keys whose tensors are found unexpected, or whose family is never taken for another.
constexpr FunctionKey kForeignKeys[] = {
    // Attention: DeepSeek, Gemma 3n and 4, Phi-3-small, Llama 3.2 vision
    {"kv_lora_rank", "[]", "multi-head latent attention"},
    {"q_lora_rank", "[]", "queries of low rank"},
    {"use_qk_norm", "[false]", "norms of queries and keys"},
    {"qk_layernorm", "[false]", "norms of queries and keys"},
    {"index_topk", "[0]", "attention to tokens that are chosen by an index"},
    {"num_kv_shared_layers", "[0]", "layers that share keys and values"},
    {"attention_k_eq_v", "[false]", "keys that are values"},
    {"global_head_dim", "[]", "heads of two sizes"},
    {"blocksparse_block_size", "[]", "attention to fixed blocks"},
    {"cross_attention_layers", "[]", "attention to pictures"},
    {"rotary_dim", "[]", "rotation of a part of a head"},
    // Instead of attention: Mamba and its hybrids, RWKV, RecurrentGemma, LFM2, Qwen3-Next, Kimi
    // Linear
    {"state_size", "[]", "state-space layers"},
    {"mamba_d_state", "[]", "state-space layers"},
    {"moe_latent_size", "[]", "experts of a narrower input"},
    {"ssm_state_size", "[]", "state-space layers"},
    {"attention_hidden_size", "[]", "recurrent layers"},
    {"lru_width", "[]", "recurrent layers"},
    {"linear_num_value_heads", "[]", "layers of linear attention"},
    {"linear_attn_config", "[]", "layers of linear attention"},
    {"conv_L_cache", "[]", "convolutions in place of attention"},
    // Experts: DeepSeek, Qwen2-MoE, Granite, Hunyuan, Ernie, OLMoE
    {"n_routed_experts", "[0]", "experts"},
    {"num_local_experts", "[0, 1]", "experts"},
    {"num_experts", "[0, 1]", "experts"},
    {"moe_num_experts", "[0, 1]", "experts"},
    {"n_shared_experts", "[0]", "experts that every token uses"},
    {"num_shared_expert", "[0]", "experts that every token uses"},
    {"num_shared_experts", "[0]", "experts that every token uses"},
    {"moe_num_shared_experts", "[0]", "experts that every token uses"},
    {"shared_intermediate_size", "[0]", "experts that every token uses"},
    {"shared_expert_intermediate_size", "[0]", "experts that every token uses"},
    {"first_k_dense_replace", "[0]", "layers without experts"},
    {"n_group", "[1]", "experts chosen by groups"},
    {"num_expert_group", "[1]", "experts chosen by groups"},
    {"scoring_func", R"(["softmax"])", "shares of experts that are no softmax"},
    {"routed_scaling_factor", "[1]", "factor on the shares of experts"},
    // Blocks: Gemma 3n and 4, DeciLM, MiniCPM
    {"hidden_size_per_layer_input", "[0]", "embeddings by layer"},
    {"altup_num_inputs", "[]", "several residual streams"},
    {"enable_moe_block", "[false]", "experts beside an MLP"},
    {"block_configs", "[]", "layers that differ"},
    // Beside a decoder: T5, Qwen2-VL, Qwen2-Audio
    {"is_encoder_decoder", "[false]", "an encoder"},
    {"encoder_layers", "[0]", "an encoder"},
    {"vision_config", "[]", "a vision encoder"},
    {"audio_config", "[]", "an audio encoder"},
};

// The object and key of `key`, which may name a part of an object. null if the object is absent.
struct Place {
  std::optional<HfConfig> fields;
  std::string_view key;
};

Place Locate(const HfConfig& config, std::string_view key) {
  const size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {.fields = config, .key = key};
  const std::string_view object = key.substr(0, dot);
  if (!config.WasRead(object)) return {.fields = std::nullopt, .key = key};
  return {.fields = config.Object(object), .key = key.substr(dot + 1)};
}

std::string Ignored(const HfConfig& fields, std::string_view key, const DecoderSpec& spec) {
  return fmt::format("{} is ignored, because {} models do not use it", fields.Spell(key),
                     spec.family);
}

void CheckKey(const HfConfig& fields, std::string_view key, const FunctionKey& known,
              DecoderSpec& spec) {
  if (fields.WasRead(key)) return;
  fields.MarkAsRead(key);  // it is reported here, or need not be
  if (fields.IsAmong(key, known.neutral)) return;
  if (known.otherwise == Otherwise::kWarned) {
    spec.warnings.push_back(fmt::format("{} is ignored, as in transformers: {} models have no {}",
                                        fields.Spell(key), spec.family, known.meaning));
  } else {
    const std::string_view values = known.neutral.substr(1, known.neutral.size() - 2);
    fields.Refuse(key,
                  fmt::format("{}none, because {} models have no {}",
                              values.empty() ? "" : fmt::format("{} or ", values), spec.family,
                              known.meaning),
                  ErrorKind::kUnsupported);
  }
}

// Adds a function whose key was not read to `functions`.
void AddUnread(const HfConfig& config, const FunctionKey& known,
               std::vector<std::string>& functions) {
  const Place place = Locate(config, known.key);
  if (!place.fields || place.fields->WasRead(place.key)) return;
  place.fields->MarkAsRead(place.key);
  if (known.otherwise == Otherwise::kWarned || place.fields->IsAmong(place.key, known.neutral)) {
    return;
  }
  functions.push_back(fmt::format("{} ({})", known.key, known.meaning));
}

}  // namespace

std::vector<std::string> UnreadFunctions(const HfConfig& config) {
  std::vector<std::string> functions;
  for (const FunctionKey& known : kForeignKeys) AddUnread(config, known, functions);
  for (const FunctionKey& known : kFunctionKeys) AddUnread(config, known, functions);
  return functions;
}

void CheckUnreadKeys(const HfConfig& config, DecoderSpec& spec) {
  for (const FunctionKey& known : kFunctionKeys) {
    const Place place = Locate(config, known.key);
    if (place.fields) CheckKey(*place.fields, place.key, known, spec);
  }
  for (const std::string_view name : {"rope_scaling", "rope_parameters"}) {
    if (!config.Has(name)) continue;
    if (!config.WasRead(name)) {
      spec.warnings.push_back(Ignored(config, name, spec));
      continue;
    }
    const HfConfig fields = *config.Object(name);
    for (const std::string& key : fields.Keys()) {
      if (!fields.Has(key) || fields.WasRead(key)) continue;
      spec.warnings.push_back(Ignored(fields, key, spec));
    }
  }
}

}  // namespace godwit
