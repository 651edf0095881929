"""Gemma 3n: several residual streams (AltUp), a narrow product beside attention (LAuReL), gates of
which few pass, embeddings of each layer, keys that other layers read."""

from golden_variant import Variant, merged

GEMMA3N = {
    "activation_sparsity_pattern": [0.6, 0.0, 0.3, 0.0],
    "altup_active_idx": 0,
    "altup_coef_clip": 120.0,
    "altup_correct_scale": True,
    "altup_num_inputs": 3,
    "architectures": ["Gemma3nForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "final_logit_softcapping": 3.0,
    "head_dim": 12,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 32,
    "hidden_size_per_layer_input": 8,
    "initializer_range": 0.02,
    "intermediate_size": [12, 12, 20, 20],
    "laurel_rank": 5,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "max_position_embeddings": 256,
    "model_type": "gemma3n_text",
    "num_attention_heads": 2,
    "num_hidden_layers": 4,
    "num_key_value_heads": 1,
    "num_kv_shared_layers": 2,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 100.0,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "sliding_window": 9,
    "torch_dtype": "float32",
    "transformers_version": "4.53.0.dev0",
    "use_cache": True,
    "vocab_size": 51,
    "vocab_size_per_layer_input": 40,
}


def gemma3n_variants():
    # Some tokens have no row of their own among the embeddings of layers.
    yield Variant(
        "gemma3n_text",
        "streams",
        GEMMA3N,
        n_tokens=70,
        contrasts=[
            {"activation_sparsity_pattern": [0.5, 0.0, 0.3, 0.0]},
            {"activation_sparsity_pattern": [0.6, 0.0, 0.0, 0.0]},
            {"altup_correct_scale": False},
            {"altup_active_idx": 2},
            {"final_logit_softcapping": 4.0},
            {"rope_local_base_freq": 90.0},
            {"sliding_window": 8},
        ],
        extra="unused_keys",
    )
    other = {
        "activation_sparsity_pattern": None,
        "altup_active_idx": 1,
        "altup_num_inputs": 2,
        "hidden_activation": "silu",
        "intermediate_size": 12,
        "layer_types": ["full_attention", "sliding_attention"],
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "num_kv_shared_layers": 0,
        "tie_word_embeddings": False,
    }
    yield Variant(
        "gemma3n_text",
        "new_config",
        merged(GEMMA3N, other),
        new_style=True,
        contrasts=[{"altup_active_idx": 0}, {"rms_norm_eps": 0.01}],
    )
    # A config with parts that see and hear, of which only the names matter.
    text = merged(GEMMA3N, other | {"altup_active_idx": 0, "architectures": ..., "torch_dtype": ...})
    text = merged(text, {"tie_word_embeddings": True})
    yield Variant(
        "gemma3n",
        "within_whole",
        {
            "architectures": ["Gemma3nForConditionalGeneration"],
            "audio_config": {"hidden_size": 8, "model_type": "gemma3n_audio"},
            "image_token_id": 48,
            "model_type": "gemma3n",
            "text_config": text,
            "torch_dtype": "float32",
            "vision_config": {"hidden_size": 8, "model_type": "gemma3n_vision"},
        },
        extra="within_gemma4",
    )
