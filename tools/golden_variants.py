"""The list of golden checkpoints that make_goldens.py makes, one Variant each.

A new family adds a table and a function here, and its line in all_variants(). Sizes are odd on
purpose (vocabulary 51, intermediate 20): not multiples of any vector width. Two layers, three
where the kinds of layer alternate. To see a field's meaning, read Variant; why a variant exists
stands above it unless its name says so.
"""

import copy
from dataclasses import dataclass, field

# Of the largest logit; golden_test.cc accepts a quarter of it. A golden must show a mistake at ten
# times this.
TOLERANCE = 2e-4
MIN_EFFECT = 10 * TOLERANCE


@dataclass
class Variant:
    family: str
    name: str
    config: dict  # config.json in the published form, with model_type
    n_tokens: int = 40
    dtype: str = "float32"
    contrasts: list = field(default_factory=list)  # config overrides that must change the logits
    min_effect: float = MIN_EFFECT  # by at least this
    score_gain: float = 2.0  # scale of the query and key weights: how uneven attention is
    context: int | None = None  # length that the dynamic rotary base was computed for
    new_style: bool = False  # leave config.json as transformers writes it
    max_shard_size: str | None = None
    extra: str | None = None  # one of make_goldens.EXTRAS: tensors to tolerate

    @property
    def path(self):
        return f"{self.family}/{self.name}"


def merged(base, overrides):
    """base with overrides; a value of `...` removes the key."""
    result = copy.deepcopy(base) | copy.deepcopy(overrides)
    return {key: value for key, value in result.items() if value is not ...}


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
        contrasts=[{"rms_norm_eps": 1e-5}, {"rope_theta": 10500.0}],
    )
    yield llama("tied", {"tie_word_embeddings": True})
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
    yield llama("biases", {"attention_bias": True, "mlp_bias": True})
    yield llama("rope_theta", ROPE | {"rope_theta": 500000.0}, contrasts=[{"rope_theta": 10000.0}])
    # Only what the first Llama checkpoints wrote; every other field takes its default: as many
    # key/value heads as heads, rope_theta 10000, not tied, no biases.
    defaulted = """attention_bias attention_dropout mlp_bias num_key_value_heads pretraining_tp
        rope_scaling rope_theta tie_word_embeddings torch_dtype transformers_version"""
    yield llama("minimal_config", dict.fromkeys(defaulted.split(), ...))
    yield llama("legacy_tensors", {}, extra="llama_inv_freq")
    yield llama("bf16", {}, dtype="bfloat16")
    yield llama("f16", {}, dtype="float16")
    yield llama("sharded", {}, max_shard_size="30KB")
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
    yield Variant("internlm2", "gqa", INTERNLM2)
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


NEOX = {
    "architectures": ["GPTNeoXForCausalLM"],
    "attention_bias": True,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "hidden_act": "gelu",
    "hidden_dropout": 0.0,
    "hidden_size": 32,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "layer_norm_eps": 1e-05,
    "max_position_embeddings": 64,
    "model_type": "gpt_neox",
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "rope_scaling": None,
    "rotary_emb_base": 10000,
    "rotary_pct": 0.25,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "transformers_version": "4.24.0",
    "use_cache": True,
    "use_parallel_residual": True,
    "vocab_size": 51,
}


# The exact GELU and its two tanh forms are so close that only sharp attention tells them apart.
GELU = {"score_gain": 4.0, "min_effect": 2 * TOLERANCE}


def gpt_neox_variants():
    yield Variant(
        "gpt_neox",
        "parallel",
        merged(NEOX, {"layer_norm_eps": 0.01}),
        contrasts=[
            {"layer_norm_eps": 1e-5},
            {"rotary_pct": 0.5},
            {"rotary_emb_base": 5000},
            {"use_parallel_residual": False},
            {"hidden_act": "gelu_new"},
        ],
        **GELU,
    )
    yield Variant(
        "gpt_neox",
        "sequential",
        merged(NEOX, {"use_parallel_residual": False}),
        contrasts=[{"use_parallel_residual": True}],
    )
    yield Variant(
        "gpt_neox",
        "full_rotary",
        merged(
            NEOX,
            {
                "hidden_size": 36,
                "num_attention_heads": 3,
                "rotary_pct": 1.0,
                "rotary_emb_base": 25000,
            },
        ),
        contrasts=[{"rotary_pct": 0.5}, {"rotary_emb_base": 10000}],
    )
    yield Variant("gpt_neox", "no_attention_bias", merged(NEOX, {"attention_bias": False}))
    yield Variant("gpt_neox", "tied", merged(NEOX, {"tie_word_embeddings": True}))
    yield Variant(
        "gpt_neox",
        "gelu_new",
        merged(NEOX, {"hidden_act": "gelu_new"}),
        contrasts=[{"hidden_act": "gelu"}],
        **GELU,
    )
    yield Variant(
        "gpt_neox",
        "gelu_fast",
        merged(NEOX, {"hidden_act": "gelu_fast"}),
        contrasts=[{"hidden_act": "gelu"}],
        **GELU,
    )
    yield Variant(
        "gpt_neox",
        "rope_linear",
        merged(NEOX, {"rope_scaling": {"type": "linear", "factor": 3.0}, "rotary_pct": 0.5}),
        contrasts=[{"rope_scaling": None}],
    )
    # Pythia's files carry the causal mask and the frequencies as tensors; all are harmless.
    yield Variant(
        "gpt_neox", "legacy_tensors", merged(NEOX, {"attention_bias": ...}), extra="neox_masks"
    )
    yield Variant(
        "gpt_neox",
        "new_config",
        merged(NEOX, {"rotary_pct": 0.5}),
        new_style=True,
        contrasts=[{"rotary_pct": 0.25}],
    )


FALCON = {
    "alibi": False,
    "apply_residual_connection_post_layernorm": False,
    "architectures": ["FalconForCausalLM"],
    "attention_dropout": 0.0,
    "bias": False,
    "bos_token_id": 11,
    "eos_token_id": 11,
    "ffn_hidden_size": 20,
    "hidden_dropout": 0.0,
    "hidden_size": 40,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05,
    "model_type": "falcon",
    "multi_query": True,
    "new_decoder_architecture": False,
    "num_attention_heads": 5,
    "num_hidden_layers": 2,
    "parallel_attn": True,
    "torch_dtype": "float32",
    "use_cache": True,
    "vocab_size": 51,
}

# Falcon 40B: grouped KV heads, a norm for attention and one for the MLP.
FALCON_NEW = {
    "hidden_size": 48,
    "new_decoder_architecture": True,
    "num_attention_heads": 6,
    "num_kv_heads": 2,
}

# Falcon RW. Twelve heads are no power of two, and some of their slopes no bf16 numbers.
FALCON_RW = {
    "alibi": True,
    "bias": True,
    "hidden_size": 24,
    "multi_query": False,
    "num_attention_heads": 12,
    "parallel_attn": False,
}


def falcon(name, overrides, **kwargs):
    return Variant("falcon", name, merged(FALCON, overrides), **kwargs)


def falcon_variants():
    yield falcon(
        "multi_query",
        {"layer_norm_epsilon": 0.01},
        n_tokens=150,
        contrasts=[{"layer_norm_epsilon": 1e-5}, {"rope_theta": 9000.0}],
    )
    yield falcon("new_architecture", FALCON_NEW)
    # Falcon 11B.
    yield falcon("new_one_norm", FALCON_NEW | {"num_ln_in_parallel_attn": 1})
    yield falcon("sequential", {"parallel_attn": False})
    # Past position 256 the biases of whole stairs are equal.
    yield falcon("alibi", FALCON_RW, n_tokens=300, contrasts=[{"alibi": False}])
    yield falcon(
        "alibi_new_architecture",
        FALCON_NEW | {"alibi": True, "num_attention_heads": 12, "num_kv_heads": 4},
        contrasts=[{"alibi": False}],
    )
    yield falcon("head_of_its_own", {"multi_query": False, "bias": True})
    yield falcon("untied", {"tie_word_embeddings": False})
    yield falcon("relu", {"activation": "relu"}, contrasts=[{"activation": "gelu"}])
    # What falcon-7b's file leaves out, and what it could: 2048 tokens, 4 * hidden_size, tied.
    defaulted = "bias alibi ffn_hidden_size multi_query new_decoder_architecture parallel_attn"
    yield falcon("minimal_config", dict.fromkeys(defaulted.split(), ...) | {"hidden_size": 20})
    yield falcon(
        "rope_linear",
        {"rope_scaling": {"type": "linear", "factor": 3.0}, "rope_theta": 500.0},
        contrasts=[{"rope_scaling": None}, {"rope_theta": 10000.0}],
    )
    yield falcon("bf16", {}, dtype="bfloat16")
    yield falcon("new_config", FALCON_NEW | {"rope_theta": 25000.0}, new_style=True)

    # The first checkpoints.
    first = {
        "architectures": ["RWForCausalLM"],
        "ffn_hidden_size": ...,
        "n_layer": 2,
        "new_decoder_architecture": ...,
        "num_attention_heads": ...,
        "num_hidden_layers": ...,
    }
    yield Variant(
        "RefinedWebModel",
        "seven",
        merged(FALCON, first | {"model_type": "RefinedWebModel", "hidden_size": 20, "n_head": 5}),
    )
    rw = FALCON_RW | first
    yield Variant(
        "RefinedWebModel",
        "rw",
        merged(
            FALCON,
            rw
            | {"model_type": "RefinedWebModel", "n_head": 12}
            | {"multi_query": ..., "parallel_attn": ...},
        ),
        contrasts=[{"alibi": False}],
    )
    yield Variant(
        "RefinedWeb",
        "forty",
        merged(
            FALCON,
            first | {"model_type": "RefinedWeb", "hidden_size": 24, "n_head": 6, "n_head_kv": 2},
        ),
    )


MPT_ATTENTION = {
    "alibi": True,
    "alibi_bias_max": 8,
    "attn_impl": "torch",
    "attn_pdrop": 0,
    "attn_type": "multihead_attention",
    "attn_uses_sequence_id": False,
    "clip_qkv": None,
    "prefix_lm": False,
    "qk_ln": False,
    "softmax_scale": None,
}

MPT = {
    "architectures": ["MptForCausalLM"],
    "attn_config": MPT_ATTENTION,
    "d_model": 20,
    "emb_pdrop": 0,
    "embedding_fraction": 1.0,
    "expansion_ratio": 4,
    "init_device": "cpu",
    "learned_pos_emb": True,
    "logit_scale": None,
    "max_seq_len": 64,
    "model_type": "mpt",
    "n_heads": 4,
    "n_layers": 2,
    "no_bias": True,
    "norm_type": "low_precision_layernorm",
    "resid_pdrop": 0,
    "torch_dtype": "float32",
    "transformers_version": "4.28.1",
    "use_cache": False,
    "verbose": 0,
    "vocab_size": 51,
}


def mpt(name, overrides, attention=None, contrasts=(), **kwargs):
    """`contrasts`: of the attention's configuration."""
    attention = merged(MPT_ATTENTION, attention or {})
    config = merged(MPT, {"attn_config": attention} | overrides)
    changed = [{"attn_config": merged(attention, contrast)} for contrast in contrasts]
    return Variant("mpt", name, config, contrasts=changed, **kwargs)


def mpt_variants():
    yield mpt("alibi", {"max_seq_len": 160}, n_tokens=150, contrasts=[{"alibi_bias_max": 7}])
    # No power of two: the slopes of eight heads, the even ones first.
    yield mpt("five_heads", {"d_model": 25, "n_heads": 5}, contrasts=[{"alibi_bias_max": 7}])
    # As in MPT-7B-StoryWriter.
    yield mpt(
        "storywriter",
        {},
        {"alibi_bias_max": 16, "clip_qkv": 1.5},
        contrasts=[{"clip_qkv": None}, {"clip_qkv": 1.6}, {"alibi_bias_max": 8}],
    )
    yield mpt("softmax_scale", {}, {"softmax_scale": 0.3}, contrasts=[{"softmax_scale": None}])
    yield mpt("untied", {"tie_word_embeddings": False})
    defaulted = """attn_config embedding_fraction expansion_ratio learned_pos_emb logit_scale
        max_seq_len no_bias norm_type"""
    yield mpt("minimal_config", dict.fromkeys(defaulted.split(), ...))
    yield mpt("bf16", {}, dtype="bfloat16")
    yield Variant(
        "mpt",
        "new_config",
        merged(MPT, {"layer_norm_epsilon": 0.01}),
        new_style=True,
        contrasts=[{"layer_norm_epsilon": 1e-5}],
    )


def all_variants():
    for source in (
        llama_variants,
        mistral_variants,
        qwen2_variants,
        qwen3_variants,
        internlm2_variants,
        gpt_neox_variants,
        falcon_variants,
        mpt_variants,
    ):
        yield from source()
