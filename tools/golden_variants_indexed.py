"""Families in which a trained index chooses the keys that a token sees: DeepSeek V3.2, GLM-5."""

from golden_variants_experts import DEEPSEEK, FLOATS, MSCALED
from golden_variants_kin import kin

INDEXED = DEEPSEEK | {
    "aux_loss_alpha": ...,
    "hidden_size": 24,
    "index_head_dim": 10,
    "index_n_heads": 8,
    "index_topk": 8,
    "max_position_embeddings": 256,
    "moe_intermediate_size": 8,
    "n_group": 1,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 2,
    "q_lora_rank": 14,
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "seq_aux": ...,
    "topk_group": 1,
    "topk_method": "noaux_tc",
}
deepseek_v32 = kin("deepseek_v32", "DeepseekV32ForCausalLM", INDEXED)
glm_moe_dsa = kin("glm_moe_dsa", "GlmMoeDsaForCausalLM", INDEXED | {"indexer_rope_interleave": True})


def deepseek_v32_variants():
    yield deepseek_v32(
        "chosen",
        {"rope_scaling": MSCALED},
        n_tokens=100,
        **FLOATS,
        contrasts=[{"index_topk": 9}, {"index_topk": 100}],
    )
    # More chosen keys than a tile has. A width of heads that is no multiple of anything.
    yield deepseek_v32(
        "new_config",
        {"index_head_dim": 13, "index_n_heads": 5, "index_topk": 70},
        n_tokens=150,
        new_style=True,
        **FLOATS,
        contrasts=[{"index_topk": 150}],
    )


def glm_moe_dsa_variants():
    # The last layer sees what the one before it chose.
    yield glm_moe_dsa(
        "shared",
        {
            "first_k_dense_replace": 2,
            "indexer_types": ["full", "full", "shared"],
            "num_hidden_layers": 3,
        },
        n_tokens=100,
        **FLOATS,
        contrasts=[{"index_topk": 9}, {"index_topk": 100}],
    )
    yield glm_moe_dsa(
        "new_config",
        {"attention_bias": True, "index_topk": 70},
        n_tokens=150,
        new_style=True,
        **FLOATS,
        contrasts=[{"index_topk": 150}],
    )
