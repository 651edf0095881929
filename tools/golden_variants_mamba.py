"""Families with Mamba2. Texts reach beyond a tile of 64 tokens, where states are handed on."""

from golden_variant import Variant, merged

COMMON = {
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 256,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "use_cache": True,
    "vocab_size": 51,
}

# Fields of Bamba's, Granite's and Falcon's layers.
MAMBA = {
    "hidden_act": "silu",
    "mamba_chunk_size": 16,
    "mamba_conv_bias": True,
    "mamba_d_conv": 4,
    "mamba_d_head": 8,
    "mamba_d_state": 12,
    "mamba_expand": 2,
    "mamba_n_groups": 1,
    "mamba_n_heads": 8,
    "mamba_proj_bias": False,
    "rms_norm_eps": 1e-05,
}

BAMBA = merged(
    COMMON | MAMBA,
    {
        "architectures": ["BambaForCausalLM"],
        "attention_bias": False,
        "attn_layer_indices": [1],
        "mlp_bias": False,
        "model_type": "bamba",
        "num_logits_to_keep": 1,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "transformers_version": "4.48.0",
        "z_loss_coefficient": 0.0,
    },
)

GRANITE = merged(
    COMMON | MAMBA,
    {
        "architectures": ["GraniteMoeHybridForCausalLM"],
        "attention_bias": False,
        "attention_multiplier": 0.2,
        "embedding_multiplier": 12,
        "layer_types": ["mamba", "attention"],
        "logits_scaling": 8,
        "model_type": "granitemoehybrid",
        "normalization_function": "rmsnorm",
        "num_hidden_layers": 2,
        "num_experts_per_tok": 2,
        "num_local_experts": 6,
        "output_router_logits": False,
        "position_embedding_type": "nope",
        "residual_multiplier": 0.22,
        "rope_scaling": None,
        "rope_theta": 10000,
        "router_aux_loss_coef": 0.01,
        "shared_intermediate_size": 28,
        "transformers_version": "4.56.0",
    },
)

FALCON = merged(
    COMMON | MAMBA,
    {
        "architectures": ["FalconH1ForCausalLM"],
        "attention_bias": False,
        "attention_in_multiplier": 1.25,
        "attention_out_multiplier": 0.75,
        "embedding_multiplier": 2.5,
        "head_dim": 12,
        "key_multiplier": 0.6,
        "lm_head_multiplier": 0.4,
        "mamba_d_head": 6,
        "mamba_d_ssm": 48,
        "mamba_norm_before_gate": False,
        "mamba_rms_norm": False,
        "mlp_bias": False,
        "mlp_multipliers": [0.7, 1.3],
        "model_type": "falcon_h1",
        "num_hidden_layers": 2,
        "num_logits_to_keep": 1,
        "projectors_bias": False,
        "rope_scaling": None,
        "rope_theta": 100000000000.0,
        "ssm_in_multiplier": 1.5,
        "ssm_multipliers": [0.8, 0.6, 1.2, 0.9, 0.5],
        "ssm_out_multiplier": 0.7,
        "transformers_version": "4.52.0",
    },
)

NEMOTRON = merged(
    COMMON,
    {
        "architectures": ["NemotronHForCausalLM"],
        "attention_bias": False,
        "chunk_size": 16,
        "conv_kernel": 4,
        "expand": 2,
        "head_dim": 12,
        "hidden_dropout": 0.0,
        "hybrid_override_pattern": "MEM*-",
        "layer_norm_epsilon": 1e-05,
        "mamba_head_dim": 7,
        "mamba_hidden_act": "silu",
        "mamba_num_heads": 6,
        "mamba_proj_bias": False,
        "mlp_bias": False,
        "mlp_hidden_act": "relu2",
        "model_type": "nemotron_h",
        "moe_intermediate_size": 12,
        "moe_shared_expert_intermediate_size": 28,
        "n_group": 1,
        "n_groups": 2,
        "n_routed_experts": 6,
        "n_shared_experts": 1,
        "norm_topk_prob": True,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 5,
        "num_logits_to_keep": 1,
        "rescale_prenorm_residual": True,
        "residual_in_fp32": False,
        "routed_scaling_factor": 2.5,
        "sliding_window": None,
        "ssm_state_size": 12,
        "time_step_floor": 0.0001,
        "time_step_limit": [0.0, float("inf")],
        "time_step_max": 0.1,
        "time_step_min": 0.001,
        "topk_group": 1,
        "transformers_version": "4.55.0",
        "use_bias": False,
        "use_conv_bias": True,
        "use_mamba_kernels": True,
    },
)


def without_one_of(key):
    """Falcon's list of factors with one of them neutral, for each."""
    factors = FALCON[key]
    return [{key: [*factors[:i], 1.0, *factors[i + 1 :]]} for i in range(len(factors))]


def mamba_variants():
    yield Variant(
        "bamba",
        "listed",
        merged(BAMBA, {"mamba_d_head": "auto"}),
        n_tokens=70,
        contrasts=[{"rms_norm_eps": 0.01}, {"rope_theta": 10.0}],
    )
    # Norms of two groups, bounds of the steps, and biases everywhere.
    yield Variant(
        "bamba",
        "groups",
        merged(
            BAMBA,
            {
                "attention_bias": True,
                "attn_layer_indices": [1],
                "mamba_conv_bias": False,
                "mamba_d_conv": 3,
                "mamba_n_groups": 2,
                "mamba_proj_bias": True,
                "mlp_bias": True,
                "num_hidden_layers": 2,
                "time_step_limit": [0.8, 1.6],
            },
        ),
        n_tokens=70,
        contrasts=[{"time_step_limit": [0.0, 1.6]}, {"time_step_limit": [0.8, 9.0]}],
    )
    yield Variant(
        "granitemoehybrid",
        "experts",
        GRANITE,
        n_tokens=70,
        contrasts=[
            {"num_experts_per_tok": 3},
            {"position_embedding_type": "rope"},
            {"residual_multiplier": 1.0},
            {"attention_multiplier": 1.0},
        ],
    )
    # As in Granite 4 1B and 350M: one MLP, positions, and a tied head.
    yield Variant(
        "granitemoehybrid",
        "dense",
        merged(
            GRANITE,
            {
                "attention_bias": True,
                "layer_types": ["attention", "mamba"],
                "num_experts_per_tok": 0,
                "num_local_experts": 0,
                "position_embedding_type": "rope",
                "tie_word_embeddings": True,
            },
        ),
        n_tokens=70,
        contrasts=[{"position_embedding_type": None}, {"embedding_multiplier": 1}],
    )
    yield Variant(
        "falcon_h1",
        "factors",
        FALCON,
        n_tokens=70,
        contrasts=[
            {"attention_in_multiplier": 1.0},
            {"attention_out_multiplier": 1.0},
            {"embedding_multiplier": 1.0},
            {"key_multiplier": 1.0},
            {"lm_head_multiplier": 1.0},
            {"ssm_in_multiplier": 1.0},
            {"ssm_out_multiplier": 1.0},
            *without_one_of("mlp_multipliers"),
            *without_one_of("ssm_multipliers"),
        ],
    )
    normed = {
        "attention_in_multiplier": 1.0,
        "mamba_n_groups": 2,
        "mamba_rms_norm": True,
        "num_hidden_layers": 1,
        "ssm_in_multiplier": 1.0,
    }
    yield Variant(
        "falcon_h1",
        "norm_behind_gate",
        merged(FALCON, normed | {"mamba_d_ssm": None, "mamba_d_head": "auto"}),
        n_tokens=70,
        contrasts=[{"mamba_norm_before_gate": True}],
    )
    yield Variant(
        "falcon_h1",
        "norm_before_gate",
        merged(
            FALCON,
            normed
            | {
                "attention_bias": True,
                "mamba_norm_before_gate": True,
                "mamba_proj_bias": True,
                "mlp_bias": True,
                "projectors_bias": True,
                "tie_word_embeddings": True,
            },
        ),
        n_tokens=70,
        contrasts=[{"mamba_norm_before_gate": False}],
    )
    yield Variant(
        "nemotron_h",
        "experts",
        NEMOTRON,
        n_tokens=70,
        contrasts=[
            {"norm_topk_prob": False},
            {"num_experts_per_tok": 3},
            {"routed_scaling_factor": 1.0},
            {"layer_norm_epsilon": 0.01},
        ],
    )
    # No experts, as in Nemotron Nano 2.
    yield Variant(
        "nemotron_h",
        "dense",
        merged(
            NEMOTRON,
            {
                "hybrid_override_pattern": "M-*-",
                "mlp_bias": True,
                "num_hidden_layers": 4,
                "use_bias": True,
                "use_conv_bias": False,
            },
        ),
        n_tokens=70,
    )
    yield Variant("nemotron_h", "new_config", NEMOTRON, n_tokens=70, new_style=True)
    # As Nemotron 3 Super: experts read and write a narrower vector.
    yield Variant(
        "nemotron_h",
        "latent",
        merged(
            NEMOTRON,
            {"hybrid_override_pattern": "E*M", "moe_latent_size": 20, "num_hidden_layers": 3},
        ),
        contrasts=[{"num_experts_per_tok": 3}],
    )
