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

QWEN3_NEXT = {
    "architectures": ["Qwen3NextForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "decoder_sparse_step": 1,
    "eos_token_id": 2,
    "full_attention_interval": 4,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 6,
    "max_position_embeddings": 256,
    "mlp_only_layers": [],
    "model_type": "qwen3_next",
    "moe_intermediate_size": 12,
    "norm_topk_prob": True,
    "num_attention_heads": 4,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "partial_rotary_factor": 0.25,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000000,
    "shared_expert_intermediate_size": 20,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "transformers_version": "4.57.0",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 51,
}

QWEN3_5_TEXT = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "dtype": "float32",
    "eos_token_id": 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 7,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_value_head_dim": 13,
    "max_position_embeddings": 256,
    "model_type": "qwen3_5_text",
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000000,
        "rope_type": "default",
    },
    "tie_word_embeddings": False,
    "transformers_version": "5.2.0",
    "use_cache": True,
    "vocab_size": 51,
}

QWEN3_5_MOE_TEXT = merged(
    QWEN3_5_TEXT,
    {
        "architectures": ["Qwen3_5MoeForCausalLM"],
        "intermediate_size": ...,
        "linear_key_head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "model_type": "qwen3_5_moe_text",
        "moe_intermediate_size": 12,
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "shared_expert_intermediate_size": 20,
    },
)


def beside_qwen_vision(family, architecture, text):
    """The config of a model that also sees, and turns positions in three dimensions."""
    rope = {"mrope_interleaved": True, "mrope_section": [1, 1, 0]}
    return {
        "architectures": [architecture],
        "image_token_id": 49,
        "model_type": family,
        "text_config": merged(text, {"rope_parameters": text["rope_parameters"] | rope}),
        "tie_word_embeddings": False,
        "transformers_version": "5.2.0",
        "video_token_id": 50,
        "vision_config": {"depth": 1, "hidden_size": 8, "model_type": family},
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
    # Experts in three layers of four, of which one has attention. Two value heads share a key head.
    yield Variant(
        "qwen3_next",
        "experts",
        merged(QWEN3_NEXT, {"mlp_only_layers": [1]}),
        n_tokens=70,
        contrasts=[
            {"norm_topk_prob": False},
            {"num_experts_per_tok": 3},
            {"partial_rotary_factor": 1.0},
            {"rms_norm_eps": 0.01},
        ],
    )
    yield Variant(
        "qwen3_next",
        "dense",
        merged(
            QWEN3_NEXT,
            {
                "attention_bias": True,
                "full_attention_interval": 2,
                "linear_conv_kernel_dim": 3,
                "linear_num_key_heads": 3,
                "linear_num_value_heads": 3,
                "linear_value_head_dim": 13,
                "num_experts": 0,
                "num_hidden_layers": 3,
                "tie_word_embeddings": True,
            },
        ),
        n_tokens=70,
        contrasts=[{"rope_theta": 100.0}],
    )
    yield Variant(
        "qwen3_5_text",
        "three_of_one",
        QWEN3_5_TEXT,
        n_tokens=70,
        contrasts=[{"rms_norm_eps": 0.01}],
    )
    yield Variant(
        "qwen3_5",
        "within_whole",
        beside_qwen_vision("qwen3_5", "Qwen3_5ForConditionalGeneration", QWEN3_5_TEXT),
        extra="within_qwen",
    )
    yield Variant(
        "qwen3_5_moe_text",
        "apart",
        QWEN3_5_MOE_TEXT,
        n_tokens=70,
        contrasts=[{"num_experts_per_tok": 3}],
    )
    # A matrix of all experts is one tensor, as published.
    yield Variant(
        "qwen3_5_moe",
        "stacked",
        beside_qwen_vision("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", QWEN3_5_MOE_TEXT),
        extra="within_qwen",
    )
