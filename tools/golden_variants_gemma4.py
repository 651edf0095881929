"""Gemma 4: heads of two sizes, keys that other layers read, embeddings of each layer, experts."""

from golden_variant import Variant, merged

GEMMA4 = {
    "architectures": ["Gemma4ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attention_k_eq_v": False,
    "bos_token_id": 2,
    "enable_moe_block": False,
    "eos_token_id": 1,
    "final_logit_softcapping": 3.0,
    "global_head_dim": 16,
    "head_dim": 8,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 32,
    "hidden_size_per_layer_input": 8,
    "initializer_range": 0.02,
    "intermediate_size": 12,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "max_position_embeddings": 256,
    "model_type": "gemma4_text",
    "moe_intermediate_size": None,
    "num_attention_heads": 2,
    "num_experts": None,
    "num_global_key_value_heads": None,
    "num_hidden_layers": 4,
    "num_key_value_heads": 1,
    "num_kv_shared_layers": 2,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "full_attention": {
            "partial_rotary_factor": 0.25,
            "rope_theta": 10000.0,
            "rope_type": "proportional",
        },
        "sliding_attention": {"rope_theta": 100.0, "rope_type": "default"},
    },
    "sliding_window": 9,
    "tie_word_embeddings": True,
    "top_k_experts": None,
    "torch_dtype": "float32",
    "transformers_version": "5.5.0.dev0",
    "use_bidirectional_attention": None,
    "use_cache": True,
    "use_double_wide_mlp": True,
    "vocab_size": 51,
    "vocab_size_per_layer_input": 51,
}

# Without shared keys and embeddings of layers, as the larger sizes are.
LARGE = {
    "attention_k_eq_v": True,
    "hidden_size_per_layer_input": 0,
    "num_global_key_value_heads": 1,
    "num_key_value_heads": 2,
    "num_kv_shared_layers": 0,
    "use_double_wide_mlp": False,
}

EXPERTS = {
    "enable_moe_block": True,
    "moe_intermediate_size": 6,
    "num_experts": 4,
    "top_k_experts": 2,
}


def rotations(**full):
    parameters = GEMMA4["rope_parameters"]
    return parameters | {"full_attention": parameters["full_attention"] | full}


def gemma4_variants():
    # As E2B: the last half of the layers reads keys of the first, with wider MLPs.
    yield Variant(
        "gemma4_text",
        "shared_keys",
        GEMMA4,
        n_tokens=70,
        contrasts=[
            {"sliding_window": 8},
            {"final_logit_softcapping": None},
            {"rope_parameters": rotations(partial_rotary_factor=0.5)},
            {"rope_parameters": rotations(rope_theta=9000.0)},
            {"rope_parameters": rotations(factor=2.0)},
        ],
        extra="unused_keys",
    )
    # As 31B: values are made of keys, and there are fewer of them, in layers without a window.
    yield Variant(
        "gemma4_text",
        "keys_are_values",
        merged(
            GEMMA4,
            LARGE
            | {
                "attention_bias": True,
                "final_logit_softcapping": None,
                "hidden_activation": "silu",
                "layer_types": None,
                "num_hidden_layers": 3,
                "rope_parameters": None,
                "tie_word_embeddings": False,
            },
        ),
        n_tokens=70,
        contrasts=[{"hidden_activation": "relu"}, {"rms_norm_eps": 0.01}],
    )
    # As 26B-A4B: experts beside the MLP.
    yield Variant(
        "gemma4_text",
        "experts",
        merged(GEMMA4, LARGE | EXPERTS | {"layer_types": ["full_attention"] * 2, "num_hidden_layers": 2}),
        contrasts=[{"top_k_experts": 1}, {"top_k_experts": 3}],
    )
    # All at once, as the pinned transformers writes it. Heads have odd sizes.
    everything = EXPERTS | {
        "attention_k_eq_v": True,
        "global_head_dim": 12,
        "head_dim": 20,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
        "num_global_key_value_heads": 2,
        "num_hidden_layers": 3,
        "num_key_value_heads": 1,
        "num_kv_shared_layers": 1,
        "rope_parameters": rotations(factor=2.0, partial_rotary_factor=0.7),
        "vocab_size_per_layer_input": 53,
    }
    yield Variant(
        "gemma4_text",
        "new_config",
        merged(GEMMA4, everything),
        new_style=True,
        contrasts=[{"rope_parameters": rotations(partial_rotary_factor=0.7)}],
    )
    # A config with parts that see and hear, of which only the names matter.
    text = merged(GEMMA4, {"architectures": ..., "torch_dtype": ..., "num_hidden_layers": 2, "num_kv_shared_layers": 0})
    text["layer_types"] = text["layer_types"][:2]
    yield Variant(
        "gemma4",
        "within_whole",
        {
            "architectures": ["Gemma4ForConditionalGeneration"],
            "audio_config": {"hidden_size": 8, "model_type": "gemma4_audio"},
            "image_token_id": 48,
            "model_type": "gemma4",
            "text_config": text,
            "torch_dtype": "float32",
            "vision_config": {"hidden_size": 8, "model_type": "gemma4_vision"},
        },
        extra="within_gemma4",
    )
