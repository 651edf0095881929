"""The families of GPT's shape: LayerNorm, plain units, positions of every kind."""

from golden_variant import GELU, Variant, merged

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


def gpt_neox_variants():
    yield Variant(
        "gpt_neox",
        "parallel",
        merged(NEOX, {"layer_norm_eps": 0.01}),
        stored="float32",
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
    yield falcon("new_architecture", FALCON_NEW, stored="float32")
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
    # Fields that falcon-7b's file leaves out, or could: 2048 tokens, 4 * hidden_size, tied.
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
    """`contrasts`: overrides of the attention's configuration."""
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


OPT = {
    "_remove_final_layer_norm": False,
    "activation_dropout": 0.0,
    "activation_function": "relu",
    "architectures": ["OPTForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 2,
    "do_layer_norm_before": True,
    "dropout": 0.1,
    "eos_token_id": 2,
    "ffn_dim": 20,
    "hidden_size": 32,
    "init_std": 0.02,
    "layerdrop": 0.0,
    "max_position_embeddings": 64,
    "model_type": "opt",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "pad_token_id": 1,
    "prefix": "</s>",
    "torch_dtype": "float32",
    "transformers_version": "4.21.0.dev0",
    "use_cache": True,
    "vocab_size": 51,
    "word_embed_proj_dim": 32,
}


def opt(name, overrides, **kwargs):
    return Variant("opt", name, merged(OPT, overrides), **kwargs)


def opt_variants():
    # To the last row of the position table.
    yield opt("whole_table", {}, n_tokens=64, stored="float32",
              contrasts=[{"activation_function": "gelu"}])
    # As in OPT 350M: norms after the blocks, none at the end, narrow embeddings.
    yield opt("post_norm", {"do_layer_norm_before": False, "word_embed_proj_dim": 12})
    yield opt("post_norm_wide", {"do_layer_norm_before": False})
    yield opt("projected", {"word_embed_proj_dim": 44, "num_attention_heads": 2})
    yield opt("untied", {"tie_word_embeddings": False, "word_embed_proj_dim": 20})
    yield opt("no_final_norm", {"_remove_final_layer_norm": True})
    # As in Galactica.
    yield opt(
        "no_bias_gelu",
        {"enable_bias": False, "activation_function": "gelu"},
        contrasts=[{"activation_function": "gelu_new"}],
        **GELU,
    )
    yield opt("norms_without_weights", {"layer_norm_elementwise_affine": False})
    yield opt("three_heads", {"hidden_size": 36, "num_attention_heads": 3, "word_embed_proj_dim": 36})
    defaulted = """_remove_final_layer_norm activation_function do_layer_norm_before torch_dtype
        word_embed_proj_dim"""
    yield opt("minimal_config", dict.fromkeys(defaulted.split(), ...))
    yield opt("bare_model", {}, extra="bare_model")
    yield opt("bf16", {}, dtype="bfloat16")
    yield opt("new_config", {"word_embed_proj_dim": 12}, new_style=True)


BLOOM = {
    "apply_residual_connection_post_layernorm": False,
    "architectures": ["BloomForCausalLM"],
    "attention_dropout": 0.0,
    "attention_softmax_in_fp32": True,
    "bias_dropout_fusion": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_dropout": 0.0,
    "hidden_size": 16,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05,
    "masked_softmax_fusion": True,
    "model_type": "bloom",
    "n_head": 4,
    "n_inner": None,
    "n_layer": 2,
    "offset_alibi": 100,
    "pad_token_id": 3,
    "pretraining_tp": 1,
    "skip_bias_add": True,
    "skip_bias_add_qkv": False,
    "slow_but_exact": False,
    "transformers_version": "4.26.0",
    "unk_token_id": 0,
    "use_cache": True,
    "vocab_size": 51,
}


def bloom(name, overrides, **kwargs):
    return Variant("bloom", name, merged(BLOOM, overrides), **kwargs)


def bloom_variants():
    yield bloom(
        "alibi", {"layer_norm_epsilon": 0.01}, n_tokens=150, contrasts=[{"layer_norm_epsilon": 1e-5}]
    )
    # No power of two: the slopes of four heads, then every other one of eight. As the first
    # checkpoints spell it.
    renamed = {"hidden_size": ..., "n_embed": 28, "n_head": ..., "num_attention_heads": 7}
    yield bloom("seven_heads", renamed)
    yield bloom("untied", {"tie_word_embeddings": False})
    yield bloom("bare_model", {}, extra="bare_model")
    yield bloom("bf16", {}, dtype="bfloat16")
    yield bloom("new_config", {}, new_style=True)


GPT2 = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "bos_token_id": 50,
    "embd_pdrop": 0.1,
    "eos_token_id": 50,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_ctx": 64,
    "n_embd": 32,
    "n_head": 4,
    "n_inner": 20,
    "n_layer": 2,
    "n_positions": 64,
    "resid_pdrop": 0.1,
    "summary_type": "cls_index",
    "vocab_size": 51,
}


def gpt2(name, overrides, **kwargs):
    return Variant("gpt2", name, merged(GPT2, overrides), **kwargs)


def gpt2_variants():
    # To the last row of the position table.
    yield gpt2("whole_table", {}, n_tokens=64, stored="float32",
               contrasts=[{"activation_function": "relu"}])
    yield gpt2("relu", {"activation_function": "relu"}, contrasts=[{"activation_function": "gelu"}])
    # Its MLP is four times as wide unless told.
    yield gpt2("three_heads", {"n_embd": 24, "n_head": 3, "n_inner": None})
    # As OpenAI's files name their tensors, with the causal mask among them.
    yield gpt2("first_names", {"layer_norm_epsilon": 0.01}, extra="gpt2_first_names",
               contrasts=[{"layer_norm_epsilon": 1e-5}])
    yield gpt2("bf16", {}, dtype="bfloat16")
    yield gpt2("new_config", {}, new_style=True)
