"""The models that make_gguf_goldens.py makes: in config.json's form, and in GGUF's."""

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import gguf
from gguf import GGMLQuantizationType as Type
from golden_variant import Variant, merged
from golden_variants_experts import DEEPSEEK, GRANITE_MOE, LLAMA4, MSCALED
from golden_variants_experts import YARN as YARN_WHOLE
from golden_variants_gemma import GEMMA, GEMMA2, GEMMA3
from golden_variants_gpt import BLOOM, FALCON, MPT, NEOX
from golden_variants_hybrids import LFM2, LFM2_MOE, QWEN3_5_MOE_TEXT, QWEN3_5_TEXT, QWEN3_NEXT
from golden_variants_gemma3n import GEMMA3N
from golden_variants_gemma4 import EXPERTS as GEMMA4_EXPERTS, GEMMA4, LARGE as GEMMA4_LARGE
from golden_variants_kin import BASE, COHERE
from golden_variants_mamba import BAMBA, FALCON as FALCON_H1, GRANITE as GRANITE_HYBRID, NEMOTRON
from golden_variants_late import (ALPHA, ERNIE, EXAONE4, GLM4_MOE, HUNYUAN, MINIMAX_M2,
                                  MISTRAL4)
from golden_variants_llama import GLM, LLAMA, MIXTRAL, QWEN2, QWEN3

TYPES = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q4_K, Type.Q5_K, Type.Q6_K,
         Type.IQ4_NL, Type.IQ4_XS]
# Types of later additions: the random blocks of those before stay as they are.
OTHER_TYPES = [Type.MXFP4, Type.Q2_K, Type.Q3_K, Type.IQ2_XXS, Type.IQ2_XS, Type.IQ2_S, Type.IQ3_XXS,
               Type.IQ3_S]


@dataclass
class Model:
    name: str
    architecture: str  # GGUF's name of it
    variant: Variant
    qtype: Type
    keys: dict = field(default_factory=dict)  # beside the common ones
    qkv: tuple | None = None  # KV heads and heads of a group, where q, k and v are ungrouped
    paired: bool = False  # whether rows of q and k are paired
    shifted_norms: bool = False  # the file's gains include the 1 that is added to them
    reads_as: bool = False  # transformers can read it, too
    heads_apart: bool = False  # whether latent attention has tensors for each head
    gate_with_up: bool = False  # whether experts' gate and up are one tensor in the file, too
    still_pairs: tuple | None = None  # rotary pairs that turn, and pairs that do not
    parts: int = 1


def llama(name, qtype, overrides=None, **kwargs):
    # Rows of 256 for blocks of 256, and of 32 for matrices that fall back to Q8_0.
    hidden = 256 if gguf.GGML_QUANT_SIZES[qtype][0] == 256 else 64
    config = merged(LLAMA, {"hidden_size": hidden, "head_dim": 16, "num_attention_heads": 2,
                            "num_key_value_heads": 1, "intermediate_size": 32} | (overrides or {}))
    options = {key: kwargs.pop(key) for key in ("keys", "parts") if key in kwargs}
    return Model(f"llama_{name}", "llama", Variant("gguf", name, config, **({"n_tokens": 24} | kwargs)),
                 qtype, paired=True, **options)


# Models that are large for a golden, and so have blocks of half the size.
LARGE = {"mixtral", "qwen3", "falcon_7b", "falcon_40b", "mpt", "bloom", "granitemoe",
         "granitemoe_shared", "olmo3", "cohere2", "gpt_oss", "llama4", "glm4moe", "ernie4_5_moe",
         "hunyuan_moe", "minimax_m2", "deepseek_v3", "deepseek_lite", "exaone4",
         "lfm2", "lfm2_moe", "qwen3_next", "qwen3_5", "qwen3_5_moe", "granite_hybrid", "bamba",
         "falcon_h1", "falcon_h1_norm", "nemotron_h", "nemotron_h_moe", "mistral4"}


def other(name, architecture, base, overrides, variant=None, **options):
    config = merged(base, overrides)
    qtype = Type.Q4_0 if name in LARGE else Type.Q8_0
    variant = {"family": "gguf", "n_tokens": 24} | (variant or {})
    return Model(name, architecture, Variant(name=name, config=config, **variant), qtype,
                 **options)


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
        "beta_fast": 4.0, "beta_slow": 0.5, "attention_factor": 1.5}
QWEN3_MOE = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"],
             "moe_intermediate_size": 64, "num_experts": 6, "num_experts_per_tok": 2,
             "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}
WIDE = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 32}
LAYER_NORM = "attention.layer_norm_epsilon"
# Their scale of embeddings is rounded to bf16, as in published models.
GEMMA_GAINS = {"family": "gemma", "dtype": "bfloat16"}
LONGROPE = {"type": "longrope", "long_factor": [1.2, 1.9, 5.5, 17.0, 30.0, 31.5],
            "short_factor": [1.0, 1.05, 1.1, 1.3, 1.6, 2.0]}


def all_models():
    for qtype in [Type.F32, Type.F16, Type.BF16, *TYPES, *OTHER_TYPES]:
        yield llama(qtype.name.lower(), qtype)
    yield llama("tied", Type.Q8_0, {"tie_word_embeddings": True}, parts=3)
    yield llama("biases", Type.Q8_0, {"attention_bias": True, "mlp_bias": True})
    # Scaled dimensions turn slowly, so only a longer text shows the scaling.
    yield llama("rope_llama3", Type.Q8_0,
                {"rope_scaling": LLAMA3, "head_dim": 32, "max_position_embeddings": 131072},
                n_tokens=160, contrasts=[{"rope_scaling": None}])
    yield llama("rope_yarn", Type.Q8_0, {"rope_scaling": YARN, "max_position_embeddings": 128},
                contrasts=[{"rope_scaling": None}],
                keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                      "rope.scaling.original_context_length": 32,
                      "rope.scaling.yarn_beta_fast": 4.0, "rope.scaling.yarn_beta_slow": 0.5,
                      "rope.scaling.yarn_attn_factor": 1.5})
    yield llama("rope_linear", Type.Q8_0,
                {"rope_scaling": {"rope_type": "linear", "factor": 2.0},
                 "max_position_embeddings": 128},
                contrasts=[{"rope_scaling": None}],
                keys={"rope.scaling.type": "linear", "rope.scaling.factor": 2.0})
    yield other("mixtral", "llama", MIXTRAL, WIDE | {"num_key_value_heads": 2},
                paired=True, keys={"expert_count": MIXTRAL["num_local_experts"],
                                   "expert_used_count": MIXTRAL["num_experts_per_tok"]})
    yield other("qwen2", "qwen2", QWEN2, WIDE | {"num_key_value_heads": 2})
    yield other("qwen3", "qwen3", QWEN3, WIDE | {"num_key_value_heads": 2, "head_dim": 32})
    yield other("qwen3moe", "qwen3moe", QWEN3,
                WIDE | QWEN3_MOE | {"num_key_value_heads": 2, "head_dim": 32},
                keys={"expert_count": QWEN3_MOE["num_experts"],
                      "expert_used_count": QWEN3_MOE["num_experts_per_tok"],
                      "expert_feed_forward_length": QWEN3_MOE["moe_intermediate_size"]})
    yield other("glm4", "glm4", GLM, WIDE | {"model_type": "glm4", "num_key_value_heads": 2,
                                             "head_dim": 16}, keys={"rope.dimension_count": 8})
    yield other("gpt_neox", "gptneox", NEOX, WIDE, qkv=(4, 3),
                keys={LAYER_NORM: NEOX["layer_norm_eps"], "use_parallel_residual": True,
                      "rope.dimension_count": int(16 * NEOX["rotary_pct"])})
    yield other("falcon_7b", "falcon", FALCON,
                {"hidden_size": 64, "num_attention_heads": 4, "ffn_hidden_size": 256}, qkv=(1, 6),
                keys={LAYER_NORM: FALCON["layer_norm_epsilon"], "attention.head_count_kv": 1})
    yield other("falcon_40b", "falcon", FALCON,
                {"hidden_size": 64, "num_attention_heads": 4, "ffn_hidden_size": 256,
                 "num_kv_heads": 2,
                 "new_decoder_architecture": True, "multi_query": False}, qkv=(2, 4),
                keys={LAYER_NORM: FALCON["layer_norm_epsilon"], "attention.head_count_kv": 2})
    yield other("mpt", "mpt", MPT, {"d_model": 64, "n_heads": 4},
                keys={LAYER_NORM: 1e-5, "attention.max_alibi_bias": 8.0})
    yield other("bloom", "bloom", BLOOM, {"hidden_size": 64, "n_head": 4}, qkv=(4, 3),
                keys={LAYER_NORM: BLOOM["layer_norm_epsilon"]})
    yield from gemma_models()
    yield from kin_models()
    yield from late_models()
    yield from latent_models()
    yield from hybrid_models()
    yield from delta_net_models()
    yield from mamba_models()
    yield from late_gemma_models()


def gemma_models():
    small = {"hidden_size": 32, "head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1,
             "intermediate_size": 32}
    windows = [{"sliding_window": window} for window in (8, 10)]
    yield other("gemma", "gemma", GEMMA, small, shifted_norms=True, variant=GEMMA_GAINS,
                keys={"rope.freq_base": ...})
    yield other("gemma2", "gemma2", GEMMA2, small | {"query_pre_attn_scalar": 16},
                shifted_norms=True, reads_as=True,
                variant=GEMMA_GAINS | {"contrasts": windows + [{"attn_logit_softcapping": 3.0},
                                                               {"final_logit_softcapping": 3.5}]},
                keys={"rope.freq_base": ..., "attn_logit_softcapping": 2.5,
                      "final_logit_softcapping": 3.0, "attention.sliding_window": 9})
    linear = {"factor": 8.0, "rope_type": "linear"}
    yield other("gemma3", "gemma3", GEMMA3,
                small | {"query_pre_attn_scalar": 16, "num_hidden_layers": 6,
                         "sliding_window_pattern": 6, "rope_scaling": linear,
                         "final_logit_softcapping": 3.0},
                shifted_norms=True, reads_as=True,
                variant=GEMMA_GAINS | {"contrasts": windows + [{"rope_scaling": None},
                                                               {"rope_local_base_freq": 9000.0},
                                                               {"sliding_window_pattern": 3}]},
                keys={"attention.sliding_window": 9, "final_logit_softcapping": 3.0,
                      "rope.scaling.type": "linear", "rope.scaling.factor": 8.0})


def late_gemma_models():
    """Gemma 3n and 4, whose gains are stored as they are used."""
    windowed = [True, False]
    four = {"attention.sliding_window": 9, "attention.key_length": 32, "attention.value_length": 32,
            "attention.key_length_swa": 16, "attention.value_length_swa": 16,
            "rope.dimension_count": 32, "rope.dimension_count_swa": 16, "rope.freq_base": 10000.0,
            "rope.freq_base_swa": 100.0}
    sizes = {"global_head_dim": 32, "head_dim": 16, "hidden_size_per_layer_input": 32,
             "intermediate_size": 32}
    variant = {"family": "gemma4", "dtype": "bfloat16"}
    # As E2B: half of the layers reads keys of the others, with wider MLPs.
    yield other("gemma4", "gemma4", GEMMA4, sizes, still_pairs=(4, 12),
                variant=variant | {"contrasts": [{"sliding_window": 10}]},
                keys=four | {"attention.shared_kv_layers": 2, "final_logit_softcapping": 3.0,
                             "attention.sliding_window_pattern": windowed * 2,
                             "embedding_length_per_layer_input": 32,
                             "feed_forward_length": [32, 32, 64, 64]})
    # As 26B-A4B: experts beside the MLP, and values that are made of keys.
    yield other("gemma4_moe", "gemma4", GEMMA4,
                sizes | GEMMA4_LARGE | GEMMA4_EXPERTS
                | {"hidden_size_per_layer_input": 0, "final_logit_softcapping": None,
                   "layer_types": GEMMA4["layer_types"][:2], "moe_intermediate_size": 32,
                   "num_hidden_layers": 2},
                still_pairs=(4, 12), gate_with_up=True, variant=variant,
                keys=four | {"attention.head_count_kv": [2, 1], "expert_count": 4,
                             "attention.sliding_window_pattern": windowed,
                             "embedding_length_per_layer_input": 0,
                             "expert_feed_forward_length": 32, "expert_used_count": 2})
    deviations = [NormalDist().inv_cdf(part) if part > 0 else -np.inf
                  for part in GEMMA3N["activation_sparsity_pattern"]]
    yield other("gemma3n", "gemma3n", GEMMA3N,
                {"head_dim": 16, "hidden_size_per_layer_input": 32,
                 "intermediate_size": [32, 32, 64, 64], "laurel_rank": 32,
                 "vocab_size_per_layer_input": 51},
                variant={"family": "gemma3n", "dtype": "bfloat16",
                         "contrasts": [{"activation_sparsity_pattern": [0.5, 0.0, 0.3, 0.0]}]},
                keys={"activation_sparsity_scale": deviations, "altup.active_idx": 0,
                      "altup.num_inputs": 3, "attention.shared_kv_layers": 2,
                      "attention.sliding_window": 9,
                      "attention.sliding_window_pattern": windowed * 2,
                      "embedding_length_per_layer_input": 32,
                      "feed_forward_length": [32, 32, 64, 64], "final_logit_softcapping": 3.0,
                      "rope.freq_base_swa": 100.0})


def kin(architecture, model_type, own):
    """config.json of a relative of Llama, with rows for blocks of 32."""
    return merged(BASE, {"architectures": [architecture], "model_type": model_type,
                         "hidden_size": 64, "intermediate_size": 32} | own)


def kin_models():
    phi3 = kin("Phi3ForCausalLM", "phi3",
               {"original_max_position_embeddings": 64, "sliding_window": 9})
    yield other("phi3", "phi3", phi3, {}, reads_as=True,
                variant={"contrasts": [{"sliding_window": 10}]},
                keys={"rope.dimension_count": 16, "attention.sliding_window": 9})
    # As in Phi-4-mini, within the original context and beyond it.
    for name, original in (("short", 64), ("long", 16)):
        factor = np.sqrt(1 + np.log(128 / original) / np.log(original))
        contrasts = [{"rope_scaling": LONGROPE | {f"{name}_factor": [1.0] * 6}},
                     {"rope_scaling": LONGROPE | {"attention_factor": 1.0}}]
        yield other(f"phi3_{name}", "phi3", phi3,
                    {"original_max_position_embeddings": original, "rope_scaling": LONGROPE,
                     "max_position_embeddings": 128, "partial_rotary_factor": 0.75,
                     "sliding_window": None, "tie_word_embeddings": True},
                    variant={"contrasts": contrasts, "context": 24 if name == "long" else None},
                    keys={"rope.dimension_count": 12, "attention.sliding_window": 0,
                          "rope.scaling.original_context_length": original,
                          "rope.scaling.attn_factor": float(factor)})
    factors = {"attention_multiplier": 0.2, "embedding_multiplier": 2.0, "logits_scaling": 8.0,
               "residual_multiplier": 0.5}
    scales = {"attention.scale": 0.2, "embedding_scale": 2.0, "logit_scale": 8.0,
              "residual_scale": 0.5, "rope.dimension_count": 16}
    yield other("granite", "granite", kin("GraniteForCausalLM", "granite", factors),
                {"tie_word_embeddings": True}, paired=True, keys=scales)
    experts = {"expert_count": GRANITE_MOE["num_local_experts"],
               "expert_used_count": GRANITE_MOE["num_experts_per_tok"]}
    moe = kin("GraniteMoeForCausalLM", "granitemoe", GRANITE_MOE | factors)
    yield other("granitemoe", "granitemoe", moe, {}, paired=True, keys=scales | experts)
    yield other("granitemoe_shared", "granitemoe", moe,
                {"architectures": ["GraniteMoeSharedForCausalLM"], "model_type": "granitemoeshared",
                 "shared_intermediate_size": 32}, paired=True,
                keys=scales | experts | {"expert_shared_feed_forward_length": 32})
    yield other("olmo", "olmo",
                kin("OlmoForCausalLM", "olmo", {"clip_qkv": 1.5, "rms_norm_eps": ...}), {},
                paired=True, variant={"contrasts": [{"clip_qkv": None}]},
                keys={LAYER_NORM: 1e-5, "attention.clamp_kqv": 1.5})
    yield other("olmo2", "olmo2", kin("Olmo2ForCausalLM", "olmo2", {}), {})
    # The first and the third of three layers have windows, and rotations that are not stretched.
    yarn = {"factor": 4.0, "original_max_position_embeddings": 16, "rope_type": "yarn",
            "attention_factor": 1.2}
    windowed = [True, False, True]
    kinds = {True: "sliding_attention", False: "full_attention"}
    yield other("olmo3", "olmo2", kin("Olmo3ForCausalLM", "olmo3",
                                      {"sliding_window": 9, "rope_theta": 500000.0}),
                {"layer_types": [kinds[each] for each in windowed], "num_hidden_layers": 3,
                 "rope_scaling": yarn},
                variant={"contrasts": [{"rope_scaling": None}, {"sliding_window": 10}]},
                keys={"attention.sliding_window": 9,
                      "attention.sliding_window_pattern": windowed,
                      "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                      "rope.scaling.original_context_length": 16,
                      "rope.scaling.yarn_attn_factor": 1.2})
    stablelm = kin("StableLmForCausalLM", "stablelm",
                   {"layer_norm_eps": 0.01, "partial_rotary_factor": 0.25, "rms_norm_eps": ...})
    # The first one says that its blocks are side by side, as files of the first models do.
    keys = {LAYER_NORM: 0.01, "rope.dimension_count": 4, "use_parallel_residual": True}
    yield other("stablelm", "stablelm", stablelm, {"use_qkv_bias": True}, reads_as=True, keys=keys)
    yield other("stablelm_heads", "stablelm", stablelm,
                {"qk_layernorm": True, "use_parallel_residual": True}, keys=keys)
    yield other("starcoder2", "starcoder2",
                kin("Starcoder2ForCausalLM", "starcoder2",
                    {"hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 0.01, "rms_norm_eps": ...,
                     "sliding_window": 4096, "use_bias": True}),
                {"tie_word_embeddings": True}, reads_as=True, keys={LAYER_NORM: 0.01})
    cohere = kin("CohereForCausalLM", "cohere", COHERE | {"layer_norm_eps": 0.01})
    logits = {LAYER_NORM: 0.01, "logit_scale": 0.25, "rope.scaling.type": "none"}
    yield other("command_r", "command-r", cohere, {"use_qk_norm": False}, keys=logits)
    yield other("command_r_plus", "command-r", cohere, {"use_qk_norm": True}, keys=logits)
    yield other("cohere2", "cohere2", cohere,
                {"architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2",
                 "num_hidden_layers": 4, "sliding_window": 9, "sliding_window_pattern": 4},
                variant={"contrasts": [{"sliding_window": 10}, {"sliding_window_pattern": 2}]},
                keys=logits | {"attention.sliding_window": 9, "rope.dimension_count": 16})


def late_models():
    experts = {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 32}
    yarn = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 32}
    yield other("gpt_oss", "gpt-oss",
                kin("GptOssForCausalLM", "gpt_oss",
                    {"attention_bias": True, "head_dim": 32, "max_position_embeddings": 128,
                     "num_experts_per_tok": 2, "num_local_experts": 6, "rope_scaling": YARN_WHOLE,
                     "rope_theta": 100.0, "sliding_window": 9, "swiglu_limit": 7.0}), {},
                variant={"contrasts": [{"sliding_window": 10}, {"rope_scaling": None}]},
                keys=experts | yarn | {"attention.sliding_window": 9})
    # No key has the published sizes of chunks and temperatures.
    yield other("llama4", "llama4",
                kin("Llama4ForCausalLM", "llama4_text",
                    LLAMA4 | {"attention_chunk_size": 8192, "attn_scale": 0.1, "floor_scale": 8192,
                              "head_dim": 32, "interleave_moe_layer_step": 2,
                              "intermediate_size_mlp": 64, "no_rope_layer_interval": 4,
                              "num_hidden_layers": 4}), {},
                variant={"contrasts": [{"use_qk_norm": False}, {"no_rope_layer_interval": 3}]},
                keys={"expert_count": 4, "expert_used_count": 1, "expert_feed_forward_length": 32,
                      "feed_forward_length": 64, "interleave_moe_layer_step": 2})
    sigmoid = {"expert_gating_func": 2, "expert_shared_count": 1, "expert_weights_norm": True,
               "expert_weights_scale": 2.5, "leading_dense_block_count": 1}
    # The file counts a layer that predicts one more token.
    yield other("glm4moe", "glm4moe",
                kin("Glm4MoeForCausalLM", "glm4_moe",
                    GLM4_MOE | {"head_dim": 16, "moe_intermediate_size": 32,
                                "num_hidden_layers": 2}), {},
                variant={"contrasts": [{"routed_scaling_factor": 1.0}]},
                keys=experts | sigmoid | {"block_count": 3, "nextn_predict_layers": 1,
                                          "rope.dimension_count": 8})
    yield other("seed_oss", "seed_oss",
                kin("SeedOssForCausalLM", "seed_oss", {"attention_bias": True, "head_dim": 32}), {})
    windowed = [True, False, True]
    kinds = {True: "sliding_attention", False: "full_attention"}
    yield other("exaone4", "exaone4",
                kin("Exaone4ForCausalLM", "exaone4",
                    EXAONE4 | {"head_dim": 16, "layer_types": [kinds[each] for each in windowed],
                               "rope_scaling": None}), {},
                variant={"contrasts": [{"sliding_window": 10}]},
                keys={"attention.sliding_window": 9,
                      "attention.sliding_window_pattern": windowed})
    yield other("apertus", "apertus",
                kin("ApertusForCausalLM", "apertus",
                    {"head_dim": 32, "hidden_act": "xielu", "max_position_embeddings": 131072,
                     "rope_scaling": LLAMA3}), {},
                variant={"n_tokens": 160, "contrasts": [{"rope_scaling": None}]})
    ernie = ERNIE | {"attention_bias": ..., "head_dim": 32}
    yield other("ernie4_5", "ernie4_5", kin("Ernie4_5ForCausalLM", "ernie4_5", ernie), {})
    yield other("ernie4_5_moe", "ernie4_5-moe",
                kin("Ernie4_5_MoeForCausalLM", "ernie4_5_moe",
                    ernie | {"head_dim": ..., "moe_intermediate_size": 32, "moe_k": 2,
                             "moe_layer_start_index": 1, "moe_num_experts": 6,
                             "moe_num_shared_experts": 2}), {},
                keys=experts | {"expert_shared_feed_forward_length": 64,
                                "interleave_moe_layer_step": 1, "leading_dense_block_count": 1})
    # The base of the rotations is stretched in the file.
    hunyuan = HUNYUAN | {"head_dim": 16}
    base = {"rope.freq_base": HUNYUAN["rope_theta"] * ALPHA["alpha"] ** (16 / 14)}
    yield other("hunyuan_dense", "hunyuan-dense",
                kin("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", hunyuan), {}, keys=base)
    yield other("hunyuan_moe", "hunyuan-moe",
                kin("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe",
                    hunyuan | {"moe_topk": 2, "num_experts": 6}), {},
                keys=base | experts | {"expert_shared_count": 1})
    yield other("minimax_m2", "minimax-m2",
                kin("MiniMaxM2ForCausalLM", "minimax_m2",
                    MINIMAX_M2 | {"head_dim": 16, "rotary_dim": 8}), {},
                keys=experts | {"expert_gating_func": 2, "rope.dimension_count": 8})


def hybrid_models():
    """LFM2, whose layers without KV heads are convolutions."""
    keys = {"attention.layer_norm_rms_epsilon": 1e-5, "shortconv.l_cache": 3}
    yield other("lfm2", "lfm2", LFM2,
                {"block_auto_adjust_ff_dim": False, "block_ff_dim": ..., "intermediate_size": 64,
                 "hidden_size": 64, "layer_types": ["conv", "full_attention", "conv"],
                 "full_attn_idxs": ..., "num_hidden_layers": 3, "rope_theta": 100.0},
                keys=keys | {"attention.head_count_kv": [0, 2, 0]})
    yield other("lfm2_moe", "lfm2moe", LFM2_MOE,
                {"intermediate_size": 64, "hidden_size": 64, "moe_intermediate_size": 32,
                 "rope_theta": 100.0},
                keys=keys | {"attention.head_count_kv": [0, 2, 0], "expert_count": 6,
                             "expert_feed_forward_length": 32, "expert_gating_func": 2,
                             "expert_used_count": 2, "leading_dense_block_count": 1})


def delta_net_models():
    """Gated DeltaNets: their projections apart, value heads in turn, gains that include the 1."""
    sizes = {"hidden_size": 64, "head_dim": 16, "linear_key_head_dim": 16,
             "linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_value_head_dim": 32}
    keys = {"attention.layer_norm_rms_epsilon": 1e-6, "rope.dimension_count": 4,
            "ssm.conv_kernel": 4, "ssm.group_count": 2, "ssm.inner_size": 192, "ssm.state_size": 16,
            "ssm.time_step_rank": 6}
    widths = {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 64}
    experts = {"expert_count": 6, "expert_feed_forward_length": 32,
               "expert_shared_feed_forward_length": 64, "expert_used_count": 2}
    sections = {"rope.dimension_sections": [1, 1, 0, 0]}
    yield other("qwen3_next", "qwen3next", QWEN3_NEXT,
                sizes | widths | {"intermediate_size": 64, "num_hidden_layers": 4},
                shifted_norms=True,
                keys=keys | experts | {"full_attention_interval": 4})
    every_second = ["linear_attention", "full_attention", "linear_attention", "full_attention"]
    interval = {"full_attention_interval": 2, "rope.freq_base": 1e7}
    yield other("qwen3_5", "qwen35", QWEN3_5_TEXT,
                sizes | {"intermediate_size": 64, "layer_types": every_second[:3],
                         "num_hidden_layers": 3},
                shifted_norms=True, keys=keys | sections | interval)
    yield other("qwen3_5_moe", "qwen35moe", QWEN3_5_MOE_TEXT,
                sizes | widths | {"layer_types": every_second[:2], "num_hidden_layers": 2},
                shifted_norms=True, keys=keys | experts | sections | interval)


def mamba_models():
    """Granite 4-H, with experts and without, Bamba, Falcon-H1 and Nemotron-H."""
    sizes = {"hidden_size": 64, "mamba_d_head": 16, "mamba_d_state": 32, "mamba_expand": 2,
             "mamba_n_heads": 8, "mamba_n_groups": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "shared_intermediate_size": 64, "intermediate_size": 32,
             "num_hidden_layers": 2, "layer_types": ["mamba", "attention"]}
    keys = {"attention.head_count_kv": [0, 2], "attention.layer_norm_rms_epsilon": 1e-5,
            "attention.scale": 0.2, "embedding_scale": 12.0, "logit_scale": 8.0,
            "residual_scale": 0.22, "ssm.conv_kernel": 4, "ssm.group_count": 2,
            "ssm.inner_size": 128, "ssm.state_size": 32, "ssm.time_step_rank": 8}
    yield other("granite_hybrid", "granitehybrid", GRANITE_HYBRID, sizes,
                keys=keys | {"expert_count": 6, "expert_used_count": 2,
                             "expert_shared_feed_forward_length": 64,
                             "rope.scaling.finetuned": False})
    yield other("granite_hybrid_dense", "granitehybrid", GRANITE_HYBRID,
                sizes | {"num_local_experts": 0, "position_embedding_type": "rope"}, paired=True,
                keys=keys | {"feed_forward_length": 64})
    ssm = {key: value for key, value in keys.items() if key.startswith("ssm.")}
    own = {key: sizes[key] for key in sizes if "shared" not in key and key != "layer_types"}
    yield other("bamba", "granitehybrid", BAMBA, own | {"attn_layer_indices": [1]}, paired=True,
                keys=ssm | {"attention.head_count_kv": [0, 2], "rope.dimension_count": 8,
                            "rope.scaling.finetuned": True})
    # Factors that change no digit.
    halves = {"attention_in_multiplier": 2.0, "attention_out_multiplier": 0.5,
              "embedding_multiplier": 4.0, "key_multiplier": 0.5, "lm_head_multiplier": 0.5,
              "mlp_multipliers": [0.5, 2.0], "ssm_in_multiplier": 2.0,
              "ssm_multipliers": [0.5, 1.0, 0.25, 2.0, 4.0], "ssm_out_multiplier": 0.5}
    falcon = {key: own[key] for key in own if key != "mamba_expand"} | {
        "head_dim": 16, "mamba_d_ssm": 96, "mamba_n_heads": 6, "rope_theta": 1e6}
    ssm |= {"ssm.inner_size": 96, "ssm.time_step_rank": 6}
    yield other("falcon_h1", "falcon-h1", FALCON_H1, falcon | halves,
                variant={"contrasts": [{"ssm_in_multiplier": 1.0}, {"key_multiplier": 1.0}]},
                keys=ssm)
    yield other("falcon_h1_norm", "falcon-h1", FALCON_H1,
                falcon | {key: [1.0] * len(value) if isinstance(value, list) else 1.0
                          for key, value in halves.items()}
                | {"attention_bias": True, "mamba_conv_bias": False, "mamba_rms_norm": True,
                   "mlp_bias": True, "num_hidden_layers": 1, "tie_word_embeddings": True},
                variant={"contrasts": [{"mamba_norm_before_gate": True}]}, keys=ssm)
    nemotron = {"head_dim": 16, "hidden_size": 64, "mamba_head_dim": 16, "mamba_num_heads": 6,
                "num_hidden_layers": 3, "ssm_state_size": 32}
    blocks = ssm | {"attention.layer_norm_rms_epsilon": 1e-5, "attention.layer_norm_epsilon": 1e-5,
                    "rope.scaling.finetuned": False}
    yield other("nemotron_h", "nemotron_h", NEMOTRON,
                nemotron | {"hybrid_override_pattern": "M-*", "intermediate_size": 64}, paired=True,
                keys=blocks | {"attention.head_count_kv": [0, 0, 2],
                               "feed_forward_length": [0, 64, 0]})
    yield other("nemotron_h_moe", "nemotron_h_moe", NEMOTRON,
                nemotron | {"hybrid_override_pattern": "ME*", "moe_intermediate_size": 32,
                            "moe_latent_size": 32, "moe_shared_expert_intermediate_size": 64},
                paired=True,
                variant={"contrasts": [{"routed_scaling_factor": 1.0}]},
                keys=blocks | {"attention.head_count_kv": [0, 0, 2], "expert_count": 6,
                               "expert_feed_forward_length": 32, "expert_group_count": 1,
                               "expert_shared_count": 1, "expert_shared_feed_forward_length": 64,
                               "expert_used_count": 2, "expert_weights_norm": True,
                               "expert_weights_scale": 2.5, "feed_forward_length": [0, 32, 0], "moe_latent_size": 32})


def latent_models():
    sizes = {"kv_lora_rank": 32, "moe_intermediate_size": 32, "num_attention_heads": 2,
             "num_hidden_layers": 2, "num_key_value_heads": 2, "qk_nope_head_dim": 32,
             "qk_rope_head_dim": 16, "rope_scaling": MSCALED | {"mscale": 1.0, "mscale_all_dim": 1.0},
             "v_head_dim": 32}
    keys = {"attention.key_length": 48, "attention.kv_lora_rank": 32, "attention.value_length": 32,
            "expert_count": 6, "expert_feed_forward_length": 32, "expert_used_count": 3,
            "leading_dense_block_count": 1, "rope.dimension_count": 16,
            "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 32, "rope.scaling.yarn_log_multiplier": 0.1}
    # Keys and values are cached as one head, with tensors for each head.
    yield other("deepseek_v3", "deepseek2",
                kin("DeepseekV3ForCausalLM", "deepseek_v3",
                    DEEPSEEK | sizes | {"n_group": 3, "n_shared_experts": 1, "norm_topk_prob": True,
                                        "q_lora_rank": 32, "routed_scaling_factor": 2.5,
                                        "scoring_func": "sigmoid", "topk_group": 2,
                                        "topk_method": "noaux_tc"}), {},
                heads_apart=True,
                variant={"contrasts": [{"topk_group": 3}, {"rope_scaling": None}]},
                keys=keys | {"attention.head_count_kv": 1, "attention.key_length": 48,
                             "attention.key_length_mla": 48, "attention.q_lora_rank": 32,
                             "attention.value_length_mla": 32, "expert_gating_func": 2,
                             "expert_group_count": 3, "expert_group_used_count": 2,
                             "expert_shared_count": 1, "expert_weights_norm": True,
                             "expert_weights_scale": 2.5})
    rotation = MISTRAL4["rope_parameters"] | {"mscale_all_dim": 1.0}
    yield other("mistral4", "mistral4",
                kin("Mistral4ForCausalLM", "mistral4",
                    MISTRAL4 | sizes | {"rope_scaling": ..., "rope_parameters": rotation,
                                        "first_k_dense_replace": 1, "q_lora_rank": 32}), {},
                heads_apart=True, gate_with_up=True,
                variant={"contrasts": [{"rope_parameters": rotation | {"llama_4_scaling_beta": 0.0}}]},
                keys=keys | {"attention.head_count_kv": 1, "attention.key_length": 48,
                             "attention.key_length_mla": 48, "attention.q_lora_rank": 32,
                             "attention.value_length_mla": 32, "expert_shared_count": 1,
                             "attention.temperature_scale": rotation["llama_4_scaling_beta"],
                             "expert_weights_norm": True, "expert_weights_scale": 1.0,
                             "rope.freq_base": rotation["rope_theta"],
                             "rope.scaling.factor": float(rotation["factor"]),
                             "rope.scaling.original_context_length":
                                 rotation["original_max_position_embeddings"],
                             "rope.scaling.yarn_beta_fast": float(rotation["beta_fast"]),
                             "rope.scaling.yarn_beta_slow": float(rotation["beta_slow"])})
    # As older files: one tensor makes the keys and values of all heads.
    yield other("deepseek_lite", "deepseek2",
                kin("DeepseekV2ForCausalLM", "deepseek_v2",
                    DEEPSEEK | sizes | {"norm_topk_prob": False, "scoring_func": "softmax",
                                        "topk_method": "greedy"}), {},
                keys=keys | {"expert_gating_func": 1, "expert_shared_count": 2,
                             "expert_weights_norm": False, "expert_weights_scale": 1.0})
