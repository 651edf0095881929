"""Relatives of Llama: RMSNorm or LayerNorm, rotary positions, gated units, and one own feature."""

from golden_variant import Variant, merged
from golden_variants_llama import ROPE

BASE = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "transformers_version": "4.57.1",
    "use_cache": True,
    "vocab_size": 51,
}


def kin(family, architecture, own):
    """Makes the variants of a family."""
    base = merged(BASE, {"architectures": [architecture], "model_type": family} | own)

    def variant(name, overrides, **kwargs):
        return Variant(family, name, merged(base, overrides), **kwargs)

    return variant


phi3 = kin(
    "phi3",
    "Phi3ForCausalLM",
    {
        "attention_bias": ...,
        "embd_pdrop": 0.0,
        "original_max_position_embeddings": 64,
        "resid_pdrop": 0.0,
        "sliding_window": None,
    },
)


def phi3_variants():
    # As in Phi-3-mini-4k.
    yield phi3("window", {"sliding_window": 9}, contrasts=[{"sliding_window": None}])
    yield phi3("defaults", dict.fromkeys(["sliding_window", "rms_norm_eps", "rope_scaling"], ...))
    scaling = {
        "long_factor": [1.2, 1.9, 5.5, 17.0, 30.0, 31.5, 32.0, 40.0],
        "short_factor": [1.0, 1.05, 1.1, 1.3, 1.6, 2.0, 2.2, 2.5],
        "type": "longrope",
    }
    long = ROPE | {"max_position_embeddings": 128, "rope_scaling": scaling}
    changes = [
        {"rope_scaling": None},
        {"rope_scaling": scaling | {"attention_factor": 1.0}},
        {"max_position_embeddings": 512},
    ]
    # Within the original context the short factors count, beyond it the long ones.
    yield phi3(
        "longrope_short",
        long,
        contrasts=[*changes, {"rope_scaling": scaling | {"short_factor": [1.0] * 8}}],
    )
    yield phi3(
        "longrope_long",
        long | {"original_max_position_embeddings": 32},
        contrasts=[*changes, {"rope_scaling": scaling | {"long_factor": [1.0] * 8}}],
        context=40,
    )
    # As in Phi-4-mini: three quarters of a head rotate, the head is tied.
    part = {key: scaling[key][:6] for key in ("long_factor", "short_factor")}
    yield phi3(
        "part_tied",
        long
        | {
            "partial_rotary_factor": 0.75,
            "rope_scaling": part | {"type": "longrope"},
            "tie_word_embeddings": True,
        },
        contrasts=[{"rope_scaling": None}],
    )
    yield phi3("new_config", long, new_style=True, score_gain=1.5)


qwen3_moe = kin(
    "qwen3_moe",
    "Qwen3MoeForCausalLM",
    {
        "decoder_sparse_step": 1,
        "head_dim": 12,
        "max_position_embeddings": 128,
        "max_window_layers": 2,
        "mlp_only_layers": [],
        "moe_intermediate_size": 12,
        "norm_topk_prob": True,
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
        "sliding_window": None,
        "use_sliding_window": False,
    },
)


def qwen3_moe_variants():
    yield qwen3_moe(
        "two_of_six",
        {},
        n_tokens=100,
        contrasts=[{"norm_topk_prob": False}, {"num_experts_per_tok": 3}],
    )
    yield qwen3_moe(
        "shares_among_all",
        {"norm_topk_prob": False, "num_experts_per_tok": 3},
        n_tokens=100,
        contrasts=[{"norm_topk_prob": True}],
    )
    # The second of three layers has experts; then the first alone.
    yield qwen3_moe("sparse_step", {"decoder_sparse_step": 2, "num_hidden_layers": 3}, n_tokens=100)
    yield qwen3_moe("dense_layers", {"mlp_only_layers": [1]}, n_tokens=100)
    yield qwen3_moe(
        "window",
        {"sliding_window": 9, "use_sliding_window": True},
        n_tokens=100,
        contrasts=[{"use_sliding_window": False}],
    )
    yield qwen3_moe("new_config", {"attention_bias": True}, n_tokens=100, new_style=True)


smollm3 = kin(
    "smollm3",
    "SmolLM3ForCausalLM",
    {
        "mlp_bias": False,
        "no_rope_layer_interval": 2,
        "num_hidden_layers": 3,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
    },
)


def smollm3_variants():
    yield smollm3(
        "interval",
        {},
        contrasts=[{"no_rope_layer_interval": 3}, {"no_rope_layer_interval": 4}],
    )
    yield smollm3(
        "listed",
        {"no_rope_layers": [0, 1, 1]},
        contrasts=[{"no_rope_layers": [1, 1, 1]}],
    )
    # Every layer rotates: where none does, a bias of keys is the same for all.
    yield smollm3("biases", {"attention_bias": True, "mlp_bias": True, "no_rope_layer_interval": 4})
    # In layers without positions, unless told otherwise.
    yield smollm3(
        "window",
        {"sliding_window": 9, "use_sliding_window": True},
        stored="float32",  # see tests/golden/README.md
        contrasts=[{"use_sliding_window": False}, {"sliding_window": 10}],
    )
    yield smollm3(
        "new_config",
        {
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
            "sliding_window": 9,
            "use_sliding_window": True,
        },
        new_style=True,
        contrasts=[{"layer_types": ["full_attention"] * 3}],
    )


granite = kin(
    "granite",
    "GraniteForCausalLM",
    {
        "attention_multiplier": 0.2,
        "embedding_multiplier": 12.0,
        "logits_scaling": 8.0,
        "mlp_bias": False,
        "residual_multiplier": 0.22,
        "tie_word_embeddings": True,
    },
)


def granite_variants():
    yield granite(
        "factors",
        {"embedding_multiplier": 2.0},
        contrasts=[
            {"attention_multiplier": 0.25},
            {"embedding_multiplier": 12.0},
            {"logits_scaling": 9.0},
            {"residual_multiplier": 0.3},
        ],
    )
    yield granite("biases", {"attention_bias": True, "embedding_multiplier": 1.0, "mlp_bias": True})
    factors = "attention_multiplier embedding_multiplier logits_scaling residual_multiplier"
    yield granite("no_factors", dict.fromkeys(factors.split(), ...), score_gain=0.8)
    yield granite("new_config", {"tie_word_embeddings": False}, new_style=True)


olmo = kin("olmo", "OlmoForCausalLM", {"clip_qkv": None, "rms_norm_eps": ...})
olmo2 = kin("olmo2", "Olmo2ForCausalLM", {})
olmo3 = kin(
    "olmo3",
    "Olmo3ForCausalLM",
    {"num_hidden_layers": 4, "rope_theta": 500000.0, "sliding_window": 9},
)


def olmo_variants():
    yield olmo("mha", {"num_key_value_heads": 4})
    yield olmo("clipped", {"clip_qkv": 1.5}, contrasts=[{"clip_qkv": None}, {"clip_qkv": 1.6}])
    yield olmo2("mha", {"num_key_value_heads": 4})
    yield olmo2(
        "gqa",
        {"attention_bias": True, "max_position_embeddings": 256, "rms_norm_eps": 0.01},
        n_tokens=150,
        contrasts=[{"rms_norm_eps": 1e-5}],
    )
    yield olmo2("new_config", {}, new_style=True)
    # Three layers with a window, then one without, which alone is stretched.
    yarn = {"factor": 4.0, "original_max_position_embeddings": 16, "rope_type": "yarn"}
    yield olmo3(
        "pattern", {}, contrasts=[{"sliding_window": 8}, {"sliding_window": 10}]
    )
    yield olmo3("yarn", ROPE | {"rope_scaling": yarn}, contrasts=[{"rope_scaling": None}])
    yield olmo3(
        "new_config",
        ROPE
        | {
            "layer_types": ["full_attention", "sliding_attention"],
            "num_hidden_layers": 2,
            "rope_scaling": yarn,
        },
        new_style=True,
        contrasts=[{"layer_types": ["sliding_attention", "full_attention"]}],
    )


COHERE = {
    "layer_norm_eps": 1e-05,
    "logit_scale": 0.25,
    "rms_norm_eps": ...,
    "tie_word_embeddings": True,
}
cohere = kin("cohere", "CohereForCausalLM", COHERE | {"use_qk_norm": False})
cohere2 = kin(
    "cohere2",
    "Cohere2ForCausalLM",
    COHERE | {"num_hidden_layers": 3, "sliding_window": 9, "sliding_window_pattern": 3},
)


def cohere_variants():
    yield cohere(
        "command_r",
        {"layer_norm_eps": 0.01},
        contrasts=[{"layer_norm_eps": 1e-5}, {"logit_scale": 0.3}, {"rope_theta": 9000.0}],
    )
    yield cohere("command_r_plus", {"use_qk_norm": True})
    yield cohere("biases", {"attention_bias": True, "tie_word_embeddings": False})
    yield cohere("defaults", dict.fromkeys(["logit_scale", "rope_theta", "use_qk_norm"], ...))
    # Two layers with a window and positions, then one with neither.
    yield cohere2(
        "pattern",
        {},
        contrasts=[{"sliding_window": 8}, {"sliding_window": 10}, {"sliding_window_pattern": 2}],
    )
    yield cohere2(
        "new_config",
        {"layer_types": ["full_attention", "sliding_attention"], "num_hidden_layers": 2},
        new_style=True,
        contrasts=[{"layer_types": ["sliding_attention", "full_attention"]}],
    )


stablelm = kin(
    "stablelm",
    "StableLmForCausalLM",
    {
        "attention_bias": ...,
        "layer_norm_eps": 1e-05,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "partial_rotary_factor": 0.25,
        "rms_norm_eps": ...,
        "use_qkv_bias": False,
    },
)


def stablelm_variants():
    yield stablelm(
        "quarter",
        {"layer_norm_eps": 0.01},
        contrasts=[{"layer_norm_eps": 1e-5}, {"partial_rotary_factor": 0.5}],
    )
    yield stablelm("biases", {"use_qkv_bias": True, "num_key_value_heads": 2})
    yield stablelm(
        "parallel", {"use_parallel_residual": True, "partial_rotary_factor": 0.5}
    )
    # As in StableLM 2 12B: each head of queries and keys has a norm of its own.
    yield stablelm(
        "qk_norms",
        {"qk_layernorm": True, "num_attention_heads": 4, "num_key_value_heads": 2},
        contrasts=[{"layer_norm_eps": 0.01}],
    )
    yield stablelm("new_config", {"partial_rotary_factor": 0.75}, new_style=True)


starcoder2 = kin(
    "starcoder2",
    "Starcoder2ForCausalLM",
    {
        "attention_bias": ...,
        "hidden_act": "gelu_pytorch_tanh",
        "norm_epsilon": 1e-05,
        "rms_norm_eps": ...,
        "sliding_window": 9,
        "tie_word_embeddings": ...,
        "use_bias": True,
    },
)


def starcoder2_variants():
    yield starcoder2(
        "window",
        {"norm_epsilon": 0.01},
        contrasts=[{"sliding_window": 10}, {"norm_epsilon": 1e-5}],
    )
    yield starcoder2(
        "gelu",
        {"hidden_act": "gelu", "sliding_window": None},
        contrasts=[{"hidden_act": "relu"}],
    )
    yield starcoder2("no_bias", {"use_bias": False, "tie_word_embeddings": False})
    yield starcoder2("new_config", {}, new_style=True)
