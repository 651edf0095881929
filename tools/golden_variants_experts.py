"""Families with experts of their own kinds: Granite, gpt-oss, Llama 4, DeepSeek with latent attention."""

from golden_variants_kin import kin
from golden_variants_llama import ROPE

GRANITE_MOE = {
    "attention_multiplier": 0.2,
    "embedding_multiplier": 2.0,
    "logits_scaling": 8.0,
    "max_position_embeddings": 128,
    "num_experts_per_tok": 2,
    "num_local_experts": 6,
    "output_router_logits": False,
    "residual_multiplier": 0.22,
    "router_aux_loss_coef": 0.001,
    "tie_word_embeddings": True,
}
granitemoe = kin("granitemoe", "GraniteMoeForCausalLM", GRANITE_MOE)
granitemoeshared = kin(
    "granitemoeshared",
    "GraniteMoeSharedForCausalLM",
    GRANITE_MOE | {"residual_multiplier": 0.5, "shared_intermediate_size": 12},
)


def granitemoe_variants():
    yield granitemoe(
        "two_of_six",
        {"residual_multiplier": 0.5},
        n_tokens=100,
        contrasts=[
            {"num_experts_per_tok": 3},
            {"attention_multiplier": 0.25},
            {"embedding_multiplier": 12.0},
            {"logits_scaling": 9.0},
            {"residual_multiplier": 0.4},
        ],
    )
    yield granitemoe(
        "biases",
        {"attention_bias": True, "num_experts_per_tok": 3, "residual_multiplier": 1.0},
        n_tokens=100,
        score_gain=0.8,
    )
    yield granitemoe(
        "new_config",
        {"residual_multiplier": 0.5, "tie_word_embeddings": False},
        n_tokens=100,
        new_style=True,
    )


def granitemoeshared_variants():
    yield granitemoeshared("shared", {}, n_tokens=100, contrasts=[{"num_experts_per_tok": 1}])
    yield granitemoeshared("none_shared", {"shared_intermediate_size": 0}, n_tokens=100)
    yield granitemoeshared(
        "new_config", {"num_experts_per_tok": 3, "rope_theta": 25000.0}, n_tokens=100, new_style=True
    )


YARN = {
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
    "rope_type": "yarn",
    "truncate": False,
}
gpt_oss = kin(
    "gpt_oss",
    "GptOssForCausalLM",
    {
        "attention_bias": True,
        "experts_per_token": 2,
        "head_dim": 12,
        "initial_context_length": 32,
        "max_position_embeddings": 128,
        "num_experts_per_tok": 2,
        "num_local_experts": 6,
        "output_router_logits": False,
        "rope_scaling": YARN,
        "rope_theta": 100.0,
        "router_aux_loss_coef": 0.9,
        "sliding_window": 9,
        "swiglu_limit": 7.0,
    },
)


def gpt_oss_variants():
    # A layer with a window, then one without.
    yield gpt_oss(
        "window",
        {},
        n_tokens=100,
        contrasts=[
            {"sliding_window": 10},
            {"num_experts_per_tok": 3},
            {"rope_theta": 150000.0},
            {"rope_scaling": YARN | {"truncate": True}},
            {"rope_scaling": YARN | {"factor": 8.0}},
        ],
    )
    # Gates and their products are often beyond the limit.
    yield gpt_oss(
        "limit",
        {"swiglu_limit": 0.75},
        n_tokens=100,
        contrasts=[{"swiglu_limit": 0.8}, {"swiglu_limit": 7.0}],
    )
    # No biases in attention, no scaling of positions.
    yield gpt_oss(
        "plain",
        ROPE
        | {
            "attention_bias": False,
            "num_experts_per_tok": 4,
            "rope_scaling": {"rope_type": "default"},
        },
        n_tokens=100,
        stored="float32",
    )
    yield gpt_oss("bf16", {}, n_tokens=100, dtype="bfloat16")
    yield gpt_oss(
        "new_config",
        {
            "layer_types": ["full_attention", "sliding_attention", "full_attention"],
            "num_hidden_layers": 3,
        },
        n_tokens=100,
        new_style=True,
        contrasts=[{"layer_types": ["sliding_attention", "full_attention", "full_attention"]}],
    )


# The second of three layers has no positions; the others see chunks of 16.
LLAMA4 = {
    "attention_chunk_size": 16,
    "attn_scale": 0.5,
    "attn_temperature_tuning": True,
    "floor_scale": 9,
    "head_dim": 12,
    "interleave_moe_layer_step": 1,
    "intermediate_size_mlp": 28,
    "max_position_embeddings": 128,
    "no_rope_layer_interval": 2,
    "no_rope_layers": [],
    "num_experts_per_tok": 1,
    "num_hidden_layers": 3,
    "num_local_experts": 4,
    "output_router_logits": False,
    "rope_theta": 100.0,
    "router_aux_loss_coef": 0.001,
    "router_jitter_noise": 0.0,
    "use_qk_norm": True,
}
llama4_text = kin("llama4_text", "Llama4ForCausalLM", LLAMA4)
llama4 = kin(
    "llama4",
    "Llama4ForConditionalGeneration",
    {
        "boi_token_index": 7,
        "eoi_token_index": 8,
        "image_token_index": 9,
        "text_config": llama4_text("", {}).config,
        "vision_config": {"hidden_size": 8, "model_type": "llama4_vision_model"},
    },
)


def llama4_text_variants():
    yield llama4_text(
        "chunks",
        {},
        n_tokens=100,
        contrasts=[
            {"attention_chunk_size": 17},
            {"attn_scale": 0.4},
            {"attn_temperature_tuning": False},
            {"floor_scale": 10},
            {"no_rope_layer_interval": 3},
            {"num_experts_per_tok": 2},
            {"rope_theta": 10000.0},
            {"use_qk_norm": False},
        ],
    )
    # Experts in every other layer, as in Maverick; no ramp between kept and divided frequencies, as
    # in Scout. Every layer rotates: where none does, a bias of keys is the same for all.
    scaling = {
        "factor": 8.0,
        "high_freq_factor": 1.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 32,
        "rope_type": "llama3",
    }
    yield llama4_text(
        "interleaved",
        {
            "attention_bias": True,
            "interleave_moe_layer_step": 2,
            "no_rope_layer_interval": 4,
            "num_experts_per_tok": 2,
            "rope_scaling": scaling,
            "use_qk_norm": False,
        },
        n_tokens=100,
        contrasts=[{"rope_scaling": None}, {"num_experts_per_tok": 1}],
    )
    yield llama4_text(
        "listed",
        {
            "attn_temperature_tuning": False,
            "moe_layers": [0, 2],
            "no_rope_layers": [0, 1, 1],
            "tie_word_embeddings": True,
        },
        n_tokens=100,
        contrasts=[{"no_rope_layers": [1, 1, 1]}],
    )
    yield llama4_text("bf16", {}, n_tokens=100, dtype="bfloat16")
    yield llama4_text(
        "new_config",
        {"layer_types": ["full_attention", "chunked_attention", "chunked_attention"]},
        n_tokens=100,
        new_style=True,
        contrasts=[{"layer_types": ["chunked_attention", "full_attention", "chunked_attention"]}],
    )


def llama4_variants():
    yield llama4("beside_vision", {}, n_tokens=100, extra="beside_vision")


DEEPSEEK = {
    "aux_loss_alpha": 0.001,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 10,
    "max_position_embeddings": 128,
    "moe_intermediate_size": 12,
    "moe_layer_freq": 1,
    "n_routed_experts": 6,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
    "num_hidden_layers": 3,
    "num_key_value_heads": 4,
    "q_lora_rank": None,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 100.0,
    "seq_aux": True,
    "v_head_dim": 5,
}
MSCALED = YARN | {"mscale": 0.707, "mscale_all_dim": 1.5, "type": "yarn"}
MSCALED.pop("truncate")
MSCALED.pop("rope_type")
deepseek_v2 = kin(
    "deepseek_v2",
    "DeepseekV2ForCausalLM",
    DEEPSEEK | {"norm_topk_prob": False, "scoring_func": "softmax", "topk_method": "greedy"},
)
deepseek_v3 = kin(
    "deepseek_v3",
    "DeepseekV3ForCausalLM",
    DEEPSEEK
    | {
        "n_group": 3,
        "n_shared_experts": 1,
        "norm_topk_prob": True,
        "q_lora_rank": 14,
        "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid",
        "topk_group": 2,
        "topk_method": "noaux_tc",
    },
)
# --weights int8 keeps the stored type of the matrices that make keys and values of latent vectors,
# and computes their products in that type.
FLOATS = {"stored": "float32"}


def deepseek_v2_variants():
    # As V2 Lite: one matrix makes the queries.
    yield deepseek_v2(
        "lite",
        {"rope_scaling": MSCALED},
        n_tokens=100,
        **FLOATS,
        contrasts=[
            {"num_experts_per_tok": 2},
            {"rope_scaling": MSCALED | {"mscale_all_dim": 1.0}},
            {"rope_scaling": MSCALED | {"mscale": 1.5}},
            {"rope_theta": 10000.0},
        ],
    )
    groups = {
        "n_group": 3,
        "routed_scaling_factor": 1.5,
        "topk_group": 2,
        "topk_method": "group_limited_greedy",
    }
    yield deepseek_v2(
        "groups",
        groups | {"attention_bias": True, "q_lora_rank": 14},
        n_tokens=100,
        **FLOATS,
        contrasts=[
            {"topk_method": "greedy"},
            {"topk_group": 3},
            {"routed_scaling_factor": 1.0},
        ],
    )
    yield deepseek_v2("new_config", {"rope_scaling": MSCALED}, n_tokens=100, new_style=True, **FLOATS)


def deepseek_v3_variants():
    yield deepseek_v3(
        "groups",
        {"rope_scaling": MSCALED},
        n_tokens=100,
        **FLOATS,
        contrasts=[
            {"topk_group": 3},
            {"n_group": 1, "topk_group": 1},
            {"norm_topk_prob": False},
            {"num_experts_per_tok": 2},
            {"routed_scaling_factor": 1.0},
        ],
    )
    yield deepseek_v3(
        "sigmoids",
        {"norm_topk_prob": False, "q_lora_rank": None, "rope_interleave": False},
        n_tokens=100,
        **FLOATS,
        contrasts=[{"rope_interleave": True}],
    )
    yield deepseek_v3("new_config", {"attention_bias": True}, n_tokens=100, new_style=True, **FLOATS)
