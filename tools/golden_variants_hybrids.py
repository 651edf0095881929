"""Families in which other layers stand between those with attention."""

from golden_variant import Variant, merged

LFM2 = {
    "architectures": ["Lfm2ForCausalLM"],
    "block_auto_adjust_ff_dim": True,
    "block_ff_dim": 48,
    "block_ffn_dim_multiplier": 1.0,
    "block_multiple_of": 8,
    "bos_token_id": 1,
    "conv_L_cache": 3,
    "conv_bias": False,
    "eos_token_id": 2,
    "full_attn_idxs": [1, 3],
    "hidden_size": 32,
    "initializer_range": 0.02,
    "max_position_embeddings": 256,
    "model_type": "lfm2",
    "norm_eps": 1e-05,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "rope_theta": 1000000.0,
    "torch_dtype": "float32",
    "transformers_version": "4.54.0",
    "use_cache": True,
    "vocab_size": 51,
}

LFM2_MOE = {
    "architectures": ["Lfm2MoeForCausalLM"],
    "bos_token_id": 1,
    "conv_L_cache": 3,
    "conv_bias": False,
    "eos_token_id": 2,
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "layer_types": ["conv", "full_attention", "conv"],
    "max_position_embeddings": 256,
    "model_type": "lfm2_moe",
    "moe_intermediate_size": 16,
    "norm_eps": 1e-05,
    "norm_topk_prob": True,
    "num_attention_heads": 4,
    "num_dense_layers": 1,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "rope_theta": 1000000.0,
    "routed_scaling_factor": 1.0,
    "torch_dtype": "float32",
    "transformers_version": "4.57.0",
    "use_cache": True,
    "use_expert_bias": True,
    "vocab_size": 51,
}


def hybrid_variants():
    # Texts reach beyond a tile of 64 tokens, where states are handed on.
    yield Variant(
        "lfm2",
        "convolutions",
        LFM2,
        n_tokens=70,
        contrasts=[{"norm_eps": 0.01}],
    )
    yield Variant(
        "lfm2",
        "biases",
        merged(
            LFM2,
            {
                "block_auto_adjust_ff_dim": False,
                "conv_L_cache": 4,
                "conv_bias": True,
                "full_attn_idxs": ...,
                "layer_types": ["conv", "conv", "full_attention"],
                "num_hidden_layers": 3,
                "num_key_value_heads": 1,
                "tie_embedding": False,
            },
        ),
        n_tokens=70,
        contrasts=[{"rope_theta": 100.0}],
    )
    yield Variant(
        "lfm2_moe",
        "shares",
        LFM2_MOE,
        n_tokens=70,
        contrasts=[
            {"norm_topk_prob": False},
            {"num_experts_per_tok": 3},
        ],
    )
    yield Variant(
        "lfm2_moe",
        "scaled",
        merged(
            LFM2_MOE,
            {"norm_topk_prob": False, "routed_scaling_factor": 1.5, "use_expert_bias": False},
        ),
        contrasts=[{"routed_scaling_factor": 1.0}],
    )
