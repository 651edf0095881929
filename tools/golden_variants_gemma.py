"""Gemma: norms whose gains are stored less 1, scaled embeddings, windows in most layers."""

from golden_variant import Variant, merged

GEMMA = {
    "architectures": ["GemmaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "head_dim": 12,
    "hidden_act": "gelu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "model_type": "gemma",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "torch_dtype": "float32",
    "transformers_version": "4.38.0.dev0",
    "use_cache": True,
    "vocab_size": 51,
}


def gemma_variants():
    # "gelu" is its tanh form here.
    yield Variant(
        "gemma",
        "mqa",
        GEMMA,
        stored="float32",
        contrasts=[{"hidden_act": "relu"}, {"rope_theta": 9000.0}],
    )
    yield Variant(
        "gemma",
        "mha_biases",
        merged(GEMMA, {"attention_bias": True, "num_key_value_heads": 4, "rms_norm_eps": 0.01}),
        contrasts=[{"rms_norm_eps": 1e-6}],
    )
    yield Variant("gemma", "bf16", GEMMA, dtype="bfloat16")
    yield Variant("gemma", "new_config", merged(GEMMA, {"rope_theta": 25000.0}), new_style=True)


GEMMA2 = merged(
    GEMMA,
    {
        "architectures": ["Gemma2ForCausalLM"],
        "attn_logit_softcapping": 2.5,
        "final_logit_softcapping": 3.0,
        "hidden_activation": "gelu_pytorch_tanh",
        "model_type": "gemma2",
        "num_key_value_heads": 2,
        "query_pre_attn_scalar": 10,
        "sliding_window": 9,
        "transformers_version": "4.42.0.dev0",
    },
)


def gemma2_variants():
    # A layer with a window, then one without.
    yield Variant(
        "gemma2",
        "capped",
        merged(GEMMA2, {"max_position_embeddings": 256}),
        n_tokens=150,
        contrasts=[
            {"attn_logit_softcapping": None},
            {"attn_logit_softcapping": 3.0},
            {"final_logit_softcapping": None},
            {"final_logit_softcapping": 3.5},
            {"query_pre_attn_scalar": 12},
            {"sliding_window": 10},
        ],
    )
    yield Variant(
        "gemma2",
        "no_caps",
        merged(GEMMA2, {"attn_logit_softcapping": None, "final_logit_softcapping": None}),
    )
    yield Variant("gemma2", "new_config", merged(GEMMA2, {"rope_theta": 25000.0}), new_style=True)


GEMMA3 = merged(
    GEMMA,
    {
        "architectures": ["Gemma3ForCausalLM"],
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "hidden_act": ...,
        "hidden_activation": "gelu_pytorch_tanh",
        "model_type": "gemma3_text",
        "num_hidden_layers": 3,
        "num_key_value_heads": 2,
        "query_pre_attn_scalar": 10,
        "rope_local_base_freq": 10000.0,
        "rope_theta": 1000000.0,
        "sliding_window": 9,
        "sliding_window_pattern": 3,
        "transformers_version": "4.50.0.dev0",
    },
)


def gemma3_variants():
    # Two layers with a window, then one without.
    yield Variant(
        "gemma3_text",
        "pattern",
        GEMMA3,
        contrasts=[
            {"sliding_window": 8},
            {"sliding_window": 10},
            {"sliding_window_pattern": 2},
            {"rope_local_base_freq": 9000.0},
            {"rope_theta": 10000.0},
            {"query_pre_attn_scalar": 12},
        ],
    )
    scaling = {"factor": 8.0, "rope_type": "linear"}
    yield Variant(
        "gemma3_text",
        "rope_linear",
        merged(GEMMA3, {"max_position_embeddings": 256, "rope_scaling": scaling}),
        n_tokens=150,
        contrasts=[{"rope_scaling": None}, {"rope_scaling": scaling | {"factor": 4.0}}],
    )
    yield Variant(
        "gemma3_text",
        "new_config",
        merged(
            GEMMA3,
            {
                "layer_types": ["full_attention", "sliding_attention"],
                "num_hidden_layers": 2,
                "rope_local_base_freq": 5000.0,
                "rope_scaling": scaling,
            },
        ),
        new_style=True,
        contrasts=[{"layer_types": ["sliding_attention", "full_attention"]}],
    )
    # A config with a vision part, of which only the names matter.
    text = {key: GEMMA3[key] for key in GEMMA3 if key not in ("architectures", "torch_dtype")}
    yield Variant(
        "gemma3",
        "beside_vision",
        {
            "architectures": ["Gemma3ForConditionalGeneration"],
            "boi_token_index": 47,
            "image_token_index": 48,
            "mm_tokens_per_image": 4,
            "model_type": "gemma3",
            "text_config": text | {"model_type": "gemma3_text"},
            "torch_dtype": "float32",
            "vision_config": {"hidden_size": 8, "model_type": "siglip_vision_model"},
            "vocab_size": 51,
        },
        extra="beside_vision",
    )
