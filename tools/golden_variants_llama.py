"""Llama and the families of its shape: RMSNorm, rotary positions, gated units."""

from golden_variant import Variant, merged

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "transformers_version": "4.43.0",
    "use_cache": True,
    "vocab_size": 51,
}

# Two heads of 16, so that eight rotary frequencies fall on both sides of every scaling's bounds.
ROPE = {"num_attention_heads": 2, "num_key_value_heads": 1}


def llama(name, overrides, **kwargs):
    return Variant("llama", name, merged(LLAMA, overrides), **kwargs)


def llama_rope(name, scaling, overrides=None, contrasts=(), **kwargs):
    config = merged(LLAMA, ROPE | {"max_position_embeddings": 128} | (overrides or {}))
    config["rope_scaling"] = scaling
    changed = [{"rope_scaling": None}] + [{"rope_scaling": merged(scaling, c)} for c in contrasts]
    kwargs.setdefault("n_tokens", 56)
    return Variant("llama", name, config, contrasts=changed, **kwargs)


def llama_variants():
    yield llama("mha", {"num_key_value_heads": 4})
    # A large epsilon, longer than one tile of any reasonable attention kernel.
    yield llama(
        "gqa",
        {"rms_norm_eps": 0.01, "max_position_embeddings": 256},
        n_tokens=150,
        stored="float32",
        contrasts=[{"rms_norm_eps": 1e-5}, {"rope_theta": 10500.0}],
    )
    yield llama("tied", {"tie_word_embeddings": True}, stored="float32")
    # Says tied, yet stores lm_head.weight too (equal to the embedding), as some checkpoints do.
    yield llama("tied_redundant", {"tie_word_embeddings": True}, extra="redundant_head")
    yield llama("head_dim", {"head_dim": 12})  # 4 heads x 12 = 48, not the hidden size
    yield llama(
        "three_heads", {"hidden_size": 36, "num_attention_heads": 3, "num_key_value_heads": 3}
    )
    yield llama(
        "mqa_five_heads", {"hidden_size": 40, "num_attention_heads": 5, "num_key_value_heads": 1}
    )
    # The "zero sink" of StreamingLLM (section 3.3), with tools/pretrain/softmax1.py.
    yield llama("softmax1", {"attention_sink": "softmax1"}, contrasts=[{"attention_sink": "none"}])
    yield llama("biases", {"attention_bias": True, "mlp_bias": True}, stored="float32")
    yield llama("rope_theta", ROPE | {"rope_theta": 500000.0}, contrasts=[{"rope_theta": 10000.0}])
    # Only what the first Llama checkpoints wrote; every other field takes its default: as many
    # key/value heads as heads, rope_theta 10000, not tied, no biases.
    defaulted = """attention_bias attention_dropout mlp_bias num_key_value_heads pretraining_tp
        rope_scaling rope_theta tie_word_embeddings torch_dtype transformers_version"""
    yield llama("minimal_config", dict.fromkeys(defaulted.split(), ...))
    yield llama("legacy_tensors", {}, extra="llama_inv_freq")
    yield llama("bf16", {}, dtype="bfloat16")
    yield llama("f16", {}, dtype="float16")
    yield llama("sharded", {}, max_shard_size="30KB", stored="float32")
    yield llama(
        "new_config",
        ROPE | {"rope_theta": 25000.0},
        new_style=True,
        contrasts=[{"rope_theta": 10000.0}],
    )

    yield llama_rope("rope_linear", {"type": "linear", "factor": 2.5}, contrasts=[{"factor": 2.0}])
    llama3 = {
        "factor": 8.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 32,
        "rope_type": "llama3",
    }
    changes = [
        {"factor": 4.0},
        {"high_freq_factor": 3.0},
        {"low_freq_factor": 1.5},
        {"original_max_position_embeddings": 48},
    ]
    yield llama_rope("rope_llama3", llama3, contrasts=changes)
    yield llama_rope("rope_llama3_new_config", llama3, {"rope_theta": 500000.0}, new_style=True)

    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
    yield llama_rope(
        "rope_yarn",
        yarn,
        stored="float32",  # see tests/golden/README.md
        contrasts=[{"factor": 3.0}, {"attention_factor": 1.0}, {"truncate": False}],
    )
    tuned = {"beta_fast": 4.0, "beta_slow": 0.5, "truncate": False}
    yield llama_rope("rope_yarn_betas", yarn | tuned, contrasts=[{key: ...} for key in tuned])
    yield llama_rope(
        "rope_yarn_attention_factor",
        yarn | {"attention_factor": 0.8},
        contrasts=[{"attention_factor": ...}],
    )
    # DeepSeek's spelling: the factor is a ratio of two scales, here not 1.
    yield llama_rope(
        "rope_yarn_mscale",
        yarn | {"mscale": 1.5, "mscale_all_dim": 0.6},
        contrasts=[{"mscale": ...}, {"mscale_all_dim": 1.5}],
    )

    dynamic = {"type": "dynamic", "factor": 4.0}
    yield llama_rope(
        "rope_dynamic_active",
        dynamic,
        {"max_position_embeddings": 24},
        contrasts=[{"factor": 2.0}],
        context=56,
    )
    inactive = llama_rope("rope_dynamic_inactive", dynamic, n_tokens=40)
    inactive.contrasts = [{"max_position_embeddings": 20}]
    yield inactive


MISTRAL = merged(
    LLAMA,
    {
        "architectures": ["MistralForCausalLM"],
        "attention_bias": ...,
        "attention_dropout": ...,
        "mlp_bias": ...,
        "model_type": "mistral",
        "pretraining_tp": ...,
        "rope_scaling": ...,
        "sliding_window": 9,
        "torch_dtype": "float32",
    },
)


def mistral_variants():
    # A window of w shows a query w keys: itself and the w-1 before it.
    yield Variant(
        "mistral", "window", MISTRAL, contrasts=[{"sliding_window": w} for w in (8, 10, None)]
    )
    yield Variant(
        "mistral",
        "no_window",
        merged(MISTRAL, {"sliding_window": None}),
        contrasts=[{"sliding_window": 30}],
    )
    yield Variant(
        "mistral",
        "head_dim",
        merged(MISTRAL, {"head_dim": 12, "sliding_window": None, "rope_theta": 1e6}),
        contrasts=[{"rope_theta": 10000.0}],
    )


# Its temperature rises every 16 tokens, by a lot.
MINISTRAL_ROPE = {
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "factor": 4.0,
    "llama_4_scaling_beta": 0.5,
    "max_position_embeddings": 64,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 16,
    "rope_theta": 100.0,
    "rope_type": "yarn",
    "type": "yarn",
}
MINISTRAL3 = merged(
    MISTRAL,
    {
        "architectures": ["Ministral3ForCausalLM"],
        "head_dim": 12,
        "max_position_embeddings": 64,
        "model_type": "ministral3",
        "rope_parameters": MINISTRAL_ROPE,
        "rope_theta": ...,
        "sliding_window": None,
    },
)


def ministral3_variants():
    yield Variant(
        "ministral3",
        "temperature",
        MINISTRAL3,
        n_tokens=56,
        contrasts=[
            {"rope_parameters": MINISTRAL_ROPE | change}
            for change in (
                {"llama_4_scaling_beta": 0.6},
                {"factor": 3.0},
                {"mscale": 2.0},
                {"rope_theta": 10000.0},
                {"original_max_position_embeddings": 17},
            )
        ],
    )
    yield Variant("ministral3", "bf16", MINISTRAL3, n_tokens=56, dtype="bfloat16")
    yield Variant(
        "ministral3",
        "new_config",
        merged(MINISTRAL3, {"sliding_window": 9, "tie_word_embeddings": True}),
        n_tokens=56,
        new_style=True,
        contrasts=[{"sliding_window": 10}],
    )


def mistral3_variants():
    """Mistral Small, with its vision part."""
    text = {key: MISTRAL[key] for key in MISTRAL if key not in ("architectures", "torch_dtype")}
    text = text | {"head_dim": 12, "rope_theta": 1000000.0, "sliding_window": None}
    config = {
        "architectures": ["Mistral3ForConditionalGeneration"],
        "image_token_index": 10,
        "model_type": "mistral3",
        "multimodal_projector_bias": False,
        "projector_hidden_act": "gelu",
        "spatial_merge_size": 2,
        "text_config": text,
        "torch_dtype": "float32",
        "vision_config": {"hidden_size": 8, "model_type": "pixtral"},
        "vision_feature_layer": -1,
    }
    yield Variant(
        "mistral3",
        "beside_vision",
        config,
        extra="beside_vision",
        contrasts=[{"text_config": text | {"rope_theta": 10000.0}}],
    )
    yield Variant(
        "mistral3",
        "within_whole_tied",
        merged(config, {"text_config": text | {"tie_word_embeddings": True}}),
        extra="within_whole",
    )
    ministral = {key: MINISTRAL3[key] for key in text if key in MINISTRAL3}
    yield Variant(
        "mistral3",
        "ministral",
        merged(config, {"text_config": ministral | {"rope_parameters": MINISTRAL_ROPE}}),
        n_tokens=56,
        extra="beside_vision",
    )


QWEN2 = merged(
    LLAMA,
    {
        "architectures": ["Qwen2ForCausalLM"],
        "attention_bias": ...,
        "max_window_layers": 1,
        "mlp_bias": ...,
        "model_type": "qwen2",
        "pretraining_tp": ...,
        "rms_norm_eps": 1e-06,
        "rope_scaling": ...,
        "rope_theta": 1000000.0,
        # As in real checkpoints: a window is written down, then switched off. It must be ignored.
        "sliding_window": 9,
        "use_sliding_window": False,
    },
)


def qwen2_variants():
    yield Variant(
        "qwen2",
        "tied",
        merged(QWEN2, {"tie_word_embeddings": True}),
        contrasts=[{"use_sliding_window": True}],
    )
    yield Variant("qwen2", "untied_mha", merged(QWEN2, {"num_key_value_heads": 4}))
    # Layers below max_window_layers see everything, the others a window: here full, 9, 9.
    yield Variant(
        "qwen2",
        "window",
        merged(QWEN2, {"num_hidden_layers": 3, "use_sliding_window": True}),
        contrasts=[
            {"use_sliding_window": False},
            {"max_window_layers": 0},
            {"max_window_layers": 2},
            {"sliding_window": 8},
            {"sliding_window": 10},
        ],
    )
    # As Qwen2.5's documentation asks users to write it: max_position_embeddings stays the
    # original length, and `factor` counts, not the quotient of the two lengths.
    yarn = {"factor": 4.0, "original_max_position_embeddings": 32, "type": "yarn"}
    yield Variant(
        "qwen2",
        "yarn",
        merged(QWEN2, ROPE | {"max_position_embeddings": 32, "rope_scaling": yarn}),
        n_tokens=56,
        contrasts=[{"rope_scaling": None}, {"rope_scaling": yarn | {"factor": 2.0}}],
    )


QWEN3 = merged(
    QWEN2,
    {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "head_dim": 12,
        "max_window_layers": 2,
        "model_type": "qwen3",
        "rope_scaling": None,
        "sliding_window": None,
        "transformers_version": "4.51.0",
    },
)


def qwen3_variants():
    yield Variant(
        "qwen3",
        "gqa_head_dim",
        merged(QWEN3, {"rms_norm_eps": 0.01}),
        contrasts=[{"rms_norm_eps": 1e-6}],
    )
    yield Variant("qwen3", "tied", merged(QWEN3, {"head_dim": 8, "tie_word_embeddings": True}))
    yield Variant("qwen3", "biases", merged(QWEN3, {"attention_bias": True}))
    # An explicit list of layer types beats max_window_layers.
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    yield Variant(
        "qwen3",
        "layer_types",
        merged(
            QWEN3,
            {
                "head_dim": 8,
                "layer_types": kinds,
                "num_hidden_layers": 3,
                "sliding_window": 9,
                "use_sliding_window": True,
            },
        ),
        new_style=True,
        contrasts=[{"layer_types": kinds[::-1][1:] + kinds[:1]}, {"sliding_window": 10}],
    )


INTERNLM2 = {
    "architectures": ["InternLM2ForCausalLM"],
    "bias": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "model_type": "internlm2",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "pad_token_id": 2,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "vocab_size": 51,
}


def internlm2_variants():
    dynamic = {"factor": 2.0, "type": "dynamic"}
    yield Variant("internlm2", "gqa", INTERNLM2, stored="float32")
    yield Variant("internlm2", "biases", merged(INTERNLM2, {"bias": True}))
    yield Variant(
        "internlm2",
        "mha_head_dim_12",
        merged(INTERNLM2, {"hidden_size": 36, "num_attention_heads": 3, "num_key_value_heads": 3}),
    )
    yield Variant(
        "internlm2",
        "dynamic_inactive",
        merged(INTERNLM2, {"rope_scaling": dynamic}),
        contrasts=[{"max_position_embeddings": 20}],
    )
    yield Variant(
        "internlm2",
        "dynamic_active",
        merged(
            INTERNLM2, {"max_position_embeddings": 28, "rope_scaling": dynamic, "rope_theta": 10000}
        ),
        contrasts=[{"rope_scaling": None}],
        context=40,
    )


MIXTRAL = {
    "architectures": ["MixtralForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 12,
    "max_position_embeddings": 64,
    "model_type": "mixtral",
    "num_attention_heads": 4,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "num_local_experts": 5,
    "output_router_logits": False,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.02,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "transformers_version": "4.36.0.dev0",
    "use_cache": True,
    "vocab_size": 51,
}


PHIMOE = merged(
    MIXTRAL,
    {
        "architectures": ["PhiMoEForCausalLM"],
        "attention_bias": True,
        "input_jitter_noise": 0.01,
        "lm_head_bias": True,
        "model_type": "phimoe",
        "rope_theta": 10000.0,
        "router_jitter_noise": 0.2,
    },
)
# Factors and multipliers of cosines of 8 / 2 rotary pairs.
PHIMOE_LONGROPE = {
    "long_factor": [1.1, 2.5, 7.0, 30.0],
    "long_mscale": 1.243,
    "original_max_position_embeddings": 128,
    "short_factor": [1.0, 1.2, 1.9, 2.5],
    "short_mscale": 1.243,
    "type": "longrope",
}


def phimoe_variants():
    yield Variant(
        "phimoe",
        "near_scores",
        merged(PHIMOE, {"max_position_embeddings": 256}),
        n_tokens=70,
        contrasts=[{"router_jitter_noise": 0.01}],
    )
    yield Variant(
        "phimoe",
        "longrope",
        merged(
            PHIMOE,
            {
                "attention_bias": False,
                "lm_head_bias": False,
                "max_position_embeddings": 256,
                "num_local_experts": 3,
                "rope_scaling": PHIMOE_LONGROPE,
                "router_jitter_noise": 0.5,
            },
        ),
        n_tokens=40,
        context=100,
        contrasts=[{"rope_scaling": None}],
    )


def mixtral(name, overrides, **kwargs):
    return Variant("mixtral", name, merged(MIXTRAL, overrides), **kwargs)


def mixtral_variants():
    yield mixtral(
        "two_of_five",
        {"max_position_embeddings": 256},
        n_tokens=150,
        contrasts=[{"num_experts_per_tok": 1}, {"num_experts_per_tok": 3}],
    )
    yield mixtral(
        "one_expert_each",
        {"num_experts_per_tok": 1, "num_local_experts": 3, "rms_norm_eps": 0.01},
        contrasts=[{"num_experts_per_tok": 2}, {"rms_norm_eps": 1e-5}],
    )
    yield mixtral(
        "all_experts", {"num_experts_per_tok": 3, "num_local_experts": 3}, stored="float32"
    )
    yield mixtral("window", {"sliding_window": 9}, contrasts=[{"sliding_window": None}])
    yield mixtral("gelu_tied", {"hidden_act": "gelu", "tie_word_embeddings": True})
    # Eight experts of which a token takes two, rope_theta 1e6, no window, not tied.
    defaulted = """num_experts_per_tok num_local_experts rms_norm_eps rope_theta sliding_window
        tie_word_embeddings torch_dtype"""
    yield mixtral(
        "minimal_config",
        dict.fromkeys(defaulted.split(), ...) | {"intermediate_size": 6},
        contrasts=[{"rope_theta": 10000.0}, {"rms_norm_eps": 0.001}],
    )
    yield mixtral("bf16", {"intermediate_size": 20, "num_local_experts": 3}, dtype="bfloat16")
    yield mixtral("new_config", {}, new_style=True)


GLM = {
    "architectures": ["GlmForCausalLM"],
    "attention_bias": True,
    "attention_dropout": 0.0,
    "eos_token_id": [2, 3],
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "model_type": "glm",
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "num_key_value_heads": 1,
    "pad_token_id": 3,
    "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1.5625e-07,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "transformers_version": "4.46.0.dev0",
    "use_cache": True,
    "vocab_size": 51,
}


def glm(name, overrides, **kwargs):
    return Variant("glm", name, merged(GLM, overrides), **kwargs)


def glm_variants():
    yield glm(
        "half_rotary",
        {"max_position_embeddings": 256},
        n_tokens=150,
        contrasts=[{"partial_rotary_factor": 0.25}, {"rope_theta": 5000.0}],
    )
    yield glm(
        "full_rotary",
        {"partial_rotary_factor": 1.0, "attention_bias": False, "tie_word_embeddings": True},
        contrasts=[{"partial_rotary_factor": 0.5}],
    )
    yield glm(
        "odd_sizes",
        {
            "head_dim": 12,
            "hidden_size": 36,
            "num_attention_heads": 3,
            "num_key_value_heads": 3,
            "rms_norm_eps": 0.01,
        },
        contrasts=[{"rms_norm_eps": 1e-5}],
    )
    defaulted = "attention_bias partial_rotary_factor rms_norm_eps rope_theta tie_word_embeddings"
    yield glm("minimal_config", dict.fromkeys(defaulted.split(), ...))
    yield glm("bf16", {}, dtype="bfloat16")
    yield glm("new_config", {"partial_rotary_factor": 0.75}, new_style=True)
    glm4 = merged(GLM, {"architectures": ["Glm4ForCausalLM"], "model_type": "glm4"})
    yield Variant("glm4", "sandwich", glm4)
    yield Variant("glm4", "no_bias", merged(glm4, {"attention_bias": False}), new_style=True)
