"""Families of 2025 and 2026: GLM-4.5, MiniMax M2, Kimi K2, Seed-OSS, EXAONE 4, Hunyuan,
ERNIE 4.5, Mistral 4, Apertus."""

from golden_variants_experts import DEEPSEEK, FLOATS, MSCALED, YARN
from golden_variants_kin import kin

# Sigmoids with a bias choose experts.
SIGMOID_EXPERTS = {
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 12,
    "n_group": 1,
    "n_routed_experts": 6,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 3,
    "routed_scaling_factor": 2.5,
    "topk_group": 1,
}
GLM4_MOE = SIGMOID_EXPERTS | {
    "attention_bias": True,
    "head_dim": 12,
    "max_position_embeddings": 128,
    "num_nextn_predict_layers": 1,
    "partial_rotary_factor": 0.5,
    "rope_theta": 100.0,
    "use_qk_norm": True,
}
glm4_moe = kin("glm4_moe", "Glm4MoeForCausalLM", GLM4_MOE)


def glm4_moe_variants():
    # As GLM-4.5, whose middle layers all have experts.
    yield glm4_moe(
        "experts",
        {},
        n_tokens=100,
        contrasts=[
            {"norm_topk_prob": False},
            {"num_experts_per_tok": 3},
            {"partial_rotary_factor": 1.0},
            {"rope_theta": 10000.0},
            {"routed_scaling_factor": 1.0},
        ],
    )
    # As GLM-4.5 Air: no norms of queries and keys. Experts are chosen in groups.
    yield glm4_moe(
        "air",
        {
            "first_k_dense_replace": 2,
            "n_group": 3,
            "n_shared_experts": 2,
            "num_experts_per_tok": 3,
            "topk_group": 2,
            "use_qk_norm": False,
        },
        n_tokens=100,
        contrasts=[{"topk_group": 3}],
    )
    yield glm4_moe("new_config", {"attention_bias": False}, n_tokens=100, new_style=True)


kimi_k2 = kin(
    "kimi_k2",
    "DeepseekV3ForCausalLM",
    DEEPSEEK
    | {
        "n_group": 1,
        "n_shared_experts": 1,
        "norm_topk_prob": True,
        "num_nextn_predict_layers": 0,
        "q_lora_rank": 14,
        "rope_scaling": MSCALED | {"mscale": 1.0, "mscale_all_dim": 1.0},
        "routed_scaling_factor": 2.827,
        "scoring_func": "sigmoid",
        "topk_group": 1,
        "topk_method": "noaux_tc",
    },
)


def kimi_k2_variants():
    yield kimi_k2(
        "one_group",
        {},
        n_tokens=100,
        **FLOATS,
        contrasts=[{"num_experts_per_tok": 2}, {"routed_scaling_factor": 1.0}],
    )


MINIMAX_M2 = {
    "attn_type_list": [1, 1],
    "head_dim": 12,
    "max_position_embeddings": 128,
    "num_experts_per_tok": 2,
    "num_local_experts": 6,
    "qk_norm_type": "per_layer",
    "rms_norm_eps": 1e-06,
    "rope_theta": 100.0,
    "rotary_dim": 6,
    "router_aux_loss_coef": 0.001,
    "router_jitter_noise": 0.0,
    "scoring_func": "sigmoid",
    "use_qk_norm": True,
    "use_routing_bias": True,
}
minimax_m2 = kin("minimax_m2", "MiniMaxM2ForCausalLM", MINIMAX_M2)


def minimax_m2_variants():
    yield minimax_m2(
        "two_of_six",
        {},
        n_tokens=100,
        contrasts=[
            {"num_experts_per_tok": 3},
            {"rotary_dim": 12},
            {"rope_theta": 10000.0},
        ],
    )
    yield minimax_m2(
        "new_config",
        {"num_experts_per_tok": 3, "tie_word_embeddings": True},
        n_tokens=100,
        new_style=True,
    )


seed_oss = kin(
    "seed_oss",
    "SeedOssForCausalLM",
    {
        "attention_bias": True,
        "attention_out_bias": False,
        "head_dim": 12,
        "mlp_bias": False,
        "residual_dropout": 0.1,
        "rms_norm_eps": 1e-06,
        "rope_scaling": {"rope_type": "default"},
        "rope_theta": 500.0,
    },
)


def seed_oss_variants():
    yield seed_oss("biases", {}, contrasts=[{"rope_theta": 10000.0}])
    yield seed_oss(
        "all_biases",
        {"attention_out_bias": True, "mlp_bias": True, "num_key_value_heads": 1},
        n_tokens=60,
    )
    yield seed_oss("new_config", {"tie_word_embeddings": True}, new_style=True)


LLAMA3 = {
    "factor": 16.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 32,
    "rope_type": "llama3",
}
WINDOWED, WHOLE = "sliding_attention", "full_attention"
EXAONE4 = {
    "head_dim": 12,
    "max_position_embeddings": 128,
    "num_hidden_layers": 3,
    "rope_scaling": LLAMA3,
    "rope_theta": 100.0,
    "sliding_window": 9,
}
exaone4 = kin("exaone4", "Exaone4ForCausalLM", EXAONE4)


def exaone4_variants():
    # As the 32B: the layer without a window has no positions.
    yield exaone4(
        "hybrid",
        {
            "layer_types": [WINDOWED, WHOLE, WINDOWED],
            "sliding_window_pattern": "LLLG",
        },
        n_tokens=100,
        contrasts=[
            {"sliding_window": 10},
            {"layer_types": [WINDOWED, WINDOWED, WHOLE]},
            {"rope_scaling": None},
            {"rope_theta": 10000.0},
        ],
    )
    # As the 1.2B: no windows, and so positions everywhere.
    yield exaone4(
        "no_windows",
        {
            "layer_types": [WHOLE, WHOLE],
            "num_hidden_layers": 2,
            "sliding_window": None,
            "sliding_window_pattern": None,
            "tie_word_embeddings": True,
        },
        n_tokens=70,
        contrasts=[{"rope_scaling": None}],
    )
    yield exaone4("period", {"sliding_window_pattern": 2}, n_tokens=70)
    yield exaone4("new_config", {"sliding_window_pattern": 3}, n_tokens=70, new_style=True)


# The base of the rotations is stretched once and for all.
ALPHA = {
    "alpha": 1000.0,
    "beta_fast": 32,
    "beta_slow": 1,
    "factor": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "type": "dynamic",
}
HUNYUAN = {
    "head_dim": 12,
    "max_position_embeddings": 128,
    "rope_scaling": ALPHA,
    "rope_theta": 100.0,
    "tie_word_embeddings": True,
    "use_cla": False,
    "use_qk_norm": True,
}
hunyuan_v1_dense = kin("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", HUNYUAN)
hunyuan_v1_moe = kin(
    "hunyuan_v1_moe",
    "HunYuanMoEV1ForCausalLM",
    HUNYUAN
    | {
        "moe_intermediate_size": [20, 20],
        "moe_topk": [2, 2],
        "num_experts": 6,
        "num_shared_expert": [1, 1],
    },
)


def hunyuan_v1_dense_variants():
    # Norms of queries and keys follow the rotations.
    yield hunyuan_v1_dense(
        "alpha",
        {},
        n_tokens=100,
        contrasts=[{"rope_scaling": ALPHA | {"alpha": 500.0}}, {"rope_theta": 10000.0}],
    )
    yield hunyuan_v1_dense(
        "biases",
        {"attention_bias": True, "rope_scaling": None, "tie_word_embeddings": False},
        n_tokens=70,
    )
    yield hunyuan_v1_dense("new_config", {"num_key_value_heads": 1}, n_tokens=70, new_style=True)


def hunyuan_v1_moe_variants():
    yield hunyuan_v1_moe("two_of_six", {}, n_tokens=100, contrasts=[{"moe_topk": [3, 3]}])
    yield hunyuan_v1_moe(
        "new_config", {"moe_topk": 3, "num_experts": 5}, n_tokens=100, new_style=True
    )


ERNIE = {
    "max_position_embeddings": 128,
    "rope_theta": 500.0,
    "tie_word_embeddings": True,
    "use_bias": False,
}
ernie4_5 = kin(
    "ernie4_5", "Ernie4_5ForCausalLM", ERNIE | {"attention_bias": ..., "head_dim": 12}
)


def ernie4_5_variants():
    yield ernie4_5("plain", {}, n_tokens=70, contrasts=[{"rope_theta": 10000.0}])
    yield ernie4_5("biases", {"num_key_value_heads": 1, "use_bias": True}, n_tokens=70)
    yield ernie4_5("new_config", {"tie_word_embeddings": False}, n_tokens=70, new_style=True)


ernie4_5_moe = kin(
    "ernie4_5_moe",
    "Ernie4_5_MoeForCausalLM",
    ERNIE
    | {
        "attention_bias": ...,
        "moe_intermediate_size": 12,
        "moe_k": 2,
        "moe_layer_end_index": 2,
        "moe_layer_interval": 1,
        "moe_layer_start_index": 1,
        "moe_num_experts": 6,
        "moe_num_shared_experts": 2,
        "num_hidden_layers": 3,
    },
)


def ernie4_5_moe_variants():
    yield ernie4_5_moe(
        "two_of_six",
        {},
        n_tokens=100,
        contrasts=[{"moe_k": 3}],
    )
    # The second of three layers has experts, none of which serve all tokens.
    yield ernie4_5_moe(
        "between",
        {
            "moe_k": 3,
            "moe_layer_end_index": 1,
            "moe_num_shared_experts": 0,
            "tie_word_embeddings": False,
        },
        n_tokens=100,
    )
    yield ernie4_5_moe(
        "new_config",
        {"moe_layer_end_index": -1, "moe_layer_interval": 2},
        n_tokens=100,
        new_style=True,
    )


MISTRAL4 = DEEPSEEK | {
    "first_k_dense_replace": 0,
    "moe_layer_freq": ...,
    "n_group": 1,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_hidden_layers": 2,
    "q_lora_rank": 14,
    "rope_parameters": YARN
    | {
        "llama_4_scaling_beta": 0.5,
        "mscale": 1.0,
        "mscale_all_dim": 1.5,
        "original_max_position_embeddings": 16,
        "rope_theta": 100.0,
        "type": "yarn",
    },
    "rope_scaling": ...,
    "rope_theta": ...,
    "routed_scaling_factor": 1.0,
    "topk_group": 1,
}
MISTRAL4["rope_parameters"].pop("truncate")
mistral4 = kin("mistral4", "Mistral4ForCausalLM", MISTRAL4)


def mistral4_variants():
    rope = MISTRAL4["rope_parameters"]
    yield mistral4(
        "one_group",
        {},
        n_tokens=100,
        **FLOATS,
        contrasts=[
            {"norm_topk_prob": False},
            {"num_experts_per_tok": 2},
            {"rope_parameters": rope | {"llama_4_scaling_beta": 0.1}},
            {"rope_parameters": rope | {"mscale_all_dim": 1.0}},
        ],
    )
    # A layer without experts, then experts that are chosen in groups.
    yield mistral4(
        "groups",
        {
            "first_k_dense_replace": 1,
            "n_group": 3,
            "norm_topk_prob": False,
            "q_lora_rank": None,
            "rope_interleave": False,
            "routed_scaling_factor": 1.5,
            "topk_group": 2,
        },
        n_tokens=100,
        **FLOATS,
        contrasts=[{"topk_group": 3}, {"rope_interleave": True}, {"routed_scaling_factor": 1.0}],
    )
    yield mistral4("new_config", {}, n_tokens=100, new_style=True, **FLOATS)


apertus = kin(
    "apertus",
    "ApertusForCausalLM",
    {
        "attention_bias": False,
        "head_dim": 12,
        "hidden_act": "xielu",
        "max_position_embeddings": 128,
        "mlp_bias": False,
        "post_norm": False,
        "qk_norm": True,
        "rope_scaling": LLAMA3,
        "rope_theta": 100.0,
    },
)


def apertus_variants():
    yield apertus(
        "xielu",
        {},
        n_tokens=100,
        contrasts=[{"rope_scaling": None}, {"rope_theta": 10000.0}],
    )
    yield apertus("new_config", {"attention_bias": True}, n_tokens=70, new_style=True)
