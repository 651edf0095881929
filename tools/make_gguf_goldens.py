#!/usr/bin/env python3
"""Makes the files in tests/golden/gguf with gguf's own Python package.

blocks.safetensors
    of every quantized type, random blocks (TYPE.blocks, U8 [rows, bytes]) and what gguf's reference
    makes of them (TYPE.values, F32 [rows, elements]);
NAME.gguf and NAME.safetensors
    a tiny random model, and input_ids and logits: those of transformers in float32, with the numbers
    that the types of the file stand for. Rows too short for blocks of 256 have Q8_0, as in real
    files. What the converters of llama.cpp do to names and rows is done here likewise: q and k of
    Llama have their rotary pairs side by side, fused q, k and v are ungrouped, experts are merged.

tiny_llama.gguf
    tests/data/tiny-llama, with its tokenizer, in BF16.

  python tools/make_gguf_goldens.py             writes tests/golden/gguf
  python tools/make_gguf_goldens.py --check     makes them again elsewhere and compares
"""

import argparse
import filecmp
import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from gguf import GGMLQuantizationType as Type
from golden_variant import Variant, merged
from golden_variants_gpt import BLOOM, FALCON, MPT, NEOX
from golden_variants_llama import GLM, LLAMA, MIXTRAL, QWEN2, QWEN3
from make_goldens import build, effect, random_tokens, random_weights, run

ROOT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "gguf"
TYPES = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q4_K, Type.Q5_K, Type.Q6_K,
         Type.IQ4_NL, Type.IQ4_XS]


# ---------------------------------------------------------------------------------------------
# Blocks


def finite_blocks(rng, qtype, count):
    """Random bytes, of which the scales are numbers. [count, bytes]"""
    _, size = gguf.GGML_QUANT_SIZES[qtype]
    blocks = np.empty((0, size), np.uint8)
    with np.errstate(all="ignore"):
        while len(blocks) < count:
            more = rng.integers(0, 256, (4 * count, size), dtype=np.uint8)
            finite = np.isfinite(gguf.dequantize(more, qtype)).all(axis=1)
            blocks = np.concatenate([blocks, more[finite]])
    return blocks[:count]


def make_blocks(folder):
    rng = np.random.default_rng(1)
    tensors = {}
    for qtype in TYPES:
        rows = finite_blocks(rng, qtype, 12).reshape(4, -1)
        tensors[f"{qtype.name}.blocks"] = rows
        tensors[f"{qtype.name}.values"] = gguf.dequantize(rows, qtype)
    save(tensors, folder / "blocks.safetensors")


def save(tensors, path):
    safetensors.numpy.save_file(tensors, path)
    path.chmod(0o644)


# Of types that gguf's package cannot quantize to: where the scales stand in a block, and scales that
# make weights of a usual size of random codes.
SCALES = {
    Type.Q4_K: {0: 4e-4, 2: 3e-3},
    Type.Q5_K: {0: 2e-4, 2: 3e-3},
    Type.Q6_K: {208: 4e-5},
    Type.IQ4_NL: {0: 1.2e-3},
    Type.IQ4_XS: {0: 6e-5},
}


def quantized(weights, qtype, rng):
    """Blocks for a matrix, [rows, bytes]."""
    block, size = gguf.GGML_QUANT_SIZES[qtype]
    if qtype not in SCALES:
        return gguf.quantize(weights, qtype)
    rows, columns = weights.shape
    blocks = rng.integers(0, 256, (rows, columns // block, size), dtype=np.uint8)
    for offset, scale in SCALES[qtype].items():
        factors = rng.uniform(0.7, 1.3, blocks.shape[:2]) * scale
        halves = factors.astype(np.float16)[..., None].view(np.uint8)
        blocks[..., offset : offset + 2] = halves
    return blocks.reshape(rows, -1)


# ---------------------------------------------------------------------------------------------
# What converters do


def paired(weights, heads):
    """The rotary pairs (i, i + half) of each head side by side."""
    shape = weights.shape
    return weights.reshape(heads, 2, -1, *shape[1:]).swapaxes(1, 2).reshape(shape)


def ungrouped(weights, kv_heads, per_group):
    """All q, all k, all v, of rows by KV head."""
    groups = weights.reshape(kv_heads, per_group, -1, *weights.shape[1:])
    parts = [groups[:, :-2], groups[:, -2], groups[:, -1]]
    return np.concatenate([part.reshape(-1, *weights.shape[1:]) for part in parts])


LLAMA_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "model.layers.{}.input_layernorm": "attn_norm", "model.layers.{}.self_attn.q_proj": "attn_q",
    "model.layers.{}.self_attn.k_proj": "attn_k", "model.layers.{}.self_attn.v_proj": "attn_v",
    "model.layers.{}.self_attn.q_norm": "attn_q_norm",
    "model.layers.{}.self_attn.k_norm": "attn_k_norm",
    "model.layers.{}.self_attn.o_proj": "attn_output",
    "model.layers.{}.post_attention_layernorm": "ffn_norm",
    "model.layers.{}.mlp.gate_proj": "ffn_gate", "model.layers.{}.mlp.up_proj": "ffn_up",
    "model.layers.{}.mlp.down_proj": "ffn_down",
    "model.layers.{}.mlp.gate": "ffn_gate_inp",
    "model.layers.{}.mlp.gate_up_proj": "ffn_up",
    "model.layers.{}.post_self_attn_layernorm": "post_attention_norm",
    "model.layers.{}.post_mlp_layernorm": "post_ffw_norm",
}
NEOX_NAMES = {
    "gpt_neox.embed_in": "token_embd", "gpt_neox.final_layer_norm": "output_norm",
    "embed_out": "output", "lm_head": "output",
    "gpt_neox.layers.{}.input_layernorm": "attn_norm",
    "gpt_neox.layers.{}.attention.query_key_value": "attn_qkv",
    "gpt_neox.layers.{}.attention.dense": "attn_output",
    "gpt_neox.layers.{}.post_attention_layernorm": "ffn_norm",
    "gpt_neox.layers.{}.mlp.dense_h_to_4h": "ffn_up",
    "gpt_neox.layers.{}.mlp.dense_4h_to_h": "ffn_down",
}
BLOCK_NAMES = {  # Falcon, BLOOM and MPT
    "transformer.word_embeddings": "token_embd", "transformer.wte": "token_embd",
    "transformer.word_embeddings_layernorm": "token_embd_norm",
    "transformer.ln_f": "output_norm", "transformer.norm_f": "output_norm", "lm_head": "output",
    "transformer.h.{}.input_layernorm": "attn_norm", "transformer.h.{}.ln_mlp": "attn_norm",
    "transformer.h.{}.ln_attn": "attn_norm_2",
    "transformer.h.{}.self_attention.query_key_value": "attn_qkv",
    "transformer.h.{}.self_attention.dense": "attn_output",
    "transformer.h.{}.post_attention_layernorm": "ffn_norm",
    "transformer.h.{}.mlp.dense_h_to_4h": "ffn_up",
    "transformer.h.{}.mlp.dense_4h_to_h": "ffn_down",
    "transformer.blocks.{}.norm_1": "attn_norm", "transformer.blocks.{}.norm_2": "ffn_norm",
    "transformer.blocks.{}.attn.Wqkv": "attn_qkv",
    "transformer.blocks.{}.attn.out_proj": "attn_output",
    "transformer.blocks.{}.ffn.up_proj": "ffn_up",
    "transformer.blocks.{}.ffn.down_proj": "ffn_down",
}


def gguf_name(name, names):
    """Of one tensor of Hugging Face: GGUF's, and the layer."""
    module, ending = name.rsplit(".", 1)
    parts = module.split(".")
    numbers = [part for part in parts if part.isdigit()]
    pattern = ".".join("{}" if part.isdigit() else part for part in parts)
    block = f"blk.{numbers[0]}." if numbers else ""
    return f"{block}{names[pattern]}.{ending}"


@dataclass
class Model:
    name: str
    architecture: str  # of GGUF
    variant: Variant
    names: dict
    qtype: Type
    keys: dict = field(default_factory=dict)  # beside the common ones
    qkv: tuple | None = None  # KV heads and heads of a group, where q, k and v are ungrouped
    paired: bool = False  # q and k
    parts: int = 1


def first_of(config, *names, fallback=None):
    return next((config[name] for name in names if name in config), fallback)


def head_counts(config):
    heads = first_of(config, "num_attention_heads", "n_head", "n_heads")
    return heads, config.get("num_key_value_heads", heads)


def convert(model, name, weights):
    """To GGUF's order of rows; the way back is its inverse."""
    heads, kv_heads = head_counts(model.variant.config)
    if model.paired and ".q_proj." in name:
        return paired(weights, heads)
    if model.paired and ".k_proj." in name:
        return paired(weights, kv_heads)
    if model.qkv and "query_key_value" in name:
        return ungrouped(weights, *model.qkv)
    return weights


def unconvert(model, name, weights):
    rows = np.arange(weights.shape[0])
    result = np.empty_like(weights)
    result[convert(model, name, rows)] = weights
    return result


def stored(model, name, weights, rng):
    """The array and the type as they go into the file, and the numbers they stand for."""
    vector = weights.ndim == 1
    qtype = Type.F32 if vector or "ffn_gate_inp" in name else model.qtype
    if qtype in (Type.F32, Type.F16):
        array = weights.astype(np.float32 if qtype == Type.F32 else np.float16)
        return array, qtype, array.astype(np.float32)
    if qtype == Type.BF16:
        array = gguf.quantize(weights, qtype)
        return array, qtype, gguf.dequantize(array, qtype)
    if weights.shape[-1] % gguf.GGML_QUANT_SIZES[qtype][0] != 0:
        qtype = Type.Q8_0
    shape = weights.shape
    array = quantized(weights.reshape(-1, shape[-1]), qtype, rng)
    values = gguf.dequantize(array, qtype).reshape(shape)
    return array.reshape(*shape[:-1], -1), qtype, values


def tensors_of(model, hf, rng):
    """Of GGUF: name -> (array, type). Puts into `hf` the numbers that they stand for."""
    state = dict(hf.named_parameters())
    found = {}
    for name, parameter in state.items():
        weights = parameter.detach().numpy()
        if ".mlp.experts." in name:  # [experts, rows, columns], gate and up in one
            block = f"blk.{name.split('.')[2]}."
            if name.endswith("gate_up_proj"):
                pieces = dict(zip(("ffn_gate_exps", "ffn_up_exps"), np.split(weights, 2, axis=1)))
            else:
                pieces = {"ffn_down_exps": weights}
            kept = []
            for piece, values in pieces.items():
                array, qtype, values = stored(model, piece, values, rng)
                found[f"{block}{piece}.weight"] = (array, qtype)
                kept.append(values)
            values = np.concatenate(kept, axis=1)
        else:
            new_name = gguf_name(name, model.names)
            array, qtype, values = stored(model, new_name, convert(model, name, weights), rng)
            found[new_name] = (array, qtype)
            values = unconvert(model, name, values)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(values)))
    return found


def add_keys(writer, model):
    config, own = model.variant.config, model.architecture
    heads, kv_heads = head_counts(config)
    hidden = first_of(config, "hidden_size", "d_model")
    keys = {
        "block_count": first_of(config, "num_hidden_layers", "n_layer", "n_layers"),
        "context_length": first_of(config, "max_position_embeddings", "seq_length", "max_seq_len",
                                   fallback=2048),
        "embedding_length": hidden,
        "feed_forward_length": config.get("intermediate_size", 4 * hidden),
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
    }
    if "rms_norm_eps" in config:
        keys["attention.layer_norm_rms_epsilon"] = config["rms_norm_eps"]
    if "rope_theta" in config:
        keys["rope.freq_base"] = config["rope_theta"]
    if "head_dim" in config:
        keys["attention.key_length"] = keys["attention.value_length"] = config["head_dim"]
    for key, value in (keys | model.keys).items():
        if isinstance(value, bool):
            writer.add_bool(f"{own}.{key}", value)
        elif isinstance(value, str):
            writer.add_string(f"{own}.{key}", value)
        elif isinstance(value, float):
            writer.add_float32(f"{own}.{key}", value)
        else:
            writer.add_uint32(f"{own}.{key}", value)


def llama3_factors(config):
    """The divisors of the frequencies, which the converter writes as a tensor."""
    scaling = config["rope_scaling"]
    dim = config["head_dim"]
    frequencies = config["rope_theta"] ** -(np.arange(0, dim, 2) / dim)
    context = scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = context * frequencies / (2 * np.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - smooth) / scaling["factor"] + smooth)).astype(np.float32)


def write(folder, model, tensors, split=0, more_keys=lambda writer: None):
    writer = gguf.GGUFWriter(folder / f"{model.name}.gguf", model.architecture,
                             split_max_tensors=split)
    writer.add_name(model.name)
    add_keys(writer, model)
    more_keys(writer)
    for name, (array, qtype) in tensors.items():
        writer.add_tensor(name, array, raw_dtype=qtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_model(folder, model):
    rng = np.random.default_rng(2)
    hf = build(model.variant.config)
    random_weights(hf, model.variant)
    tokens = random_tokens(model.variant)
    tensors = tensors_of(model, hf, rng)
    scaling = model.variant.config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        tensors["rope_freqs.weight"] = (llama3_factors(model.variant.config), Type.F32)
    logits = run(hf, tokens)
    for contrast in model.variant.contrasts:
        other = build(merged(model.variant.config, contrast))
        other.load_state_dict(hf.state_dict())
        assert effect(logits, run(other, tokens)) > model.variant.min_effect, (model.name, contrast)

    split = -(-len(tensors) // model.parts) if model.parts > 1 else 0
    write(folder, model, tensors, split)
    save({"input_ids": tokens.numpy(), "logits": logits.numpy()},
         folder / f"{model.name}.safetensors")


def add_tokenizer(writer, folder):
    """As converters write a byte-level BPE of the kind of GPT-2."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    config = json.loads((folder / "tokenizer_config.json").read_text())
    added = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    tokens = {id: text for text, id in tokenizer["model"]["vocab"].items()} | added
    kinds = [gguf.TokenType.CONTROL if id in added else gguf.TokenType.NORMAL
             for id in sorted(tokens)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([tokens[id] for id in sorted(tokens)])
    writer.add_token_types(kinds)
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    ids = {text: id for id, text in tokens.items()}
    writer.add_bos_token_id(ids[config["bos_token"]])
    writer.add_eos_token_id(ids[config["eos_token"]])
    writer.add_add_bos_token(config["add_bos_token"])
    writer.add_chat_template(config["chat_template"])


def make_tiny_llama(folder):
    source = ROOT.parents[1] / "data" / "tiny-llama"
    config = json.loads((source / "config.json").read_text())
    model = Model("tiny_llama", "llama", Variant("llama", "tiny", config), LLAMA_NAMES, Type.BF16,
                  paired=True)
    hf = build(config)
    missing, unexpected = hf.load_state_dict(
        safetensors.torch.load_file(source / "model.safetensors"), strict=False)
    assert missing == ["lm_head.weight"] and not unexpected
    tensors = tensors_of(model, hf, np.random.default_rng(2))
    write(folder, model, tensors, more_keys=lambda writer: add_tokenizer(writer, source))


# ---------------------------------------------------------------------------------------------
# Which models


def llama(name, qtype, overrides=None, **kwargs):
    # Rows of 256 for the blocks of 256, and of 32 for what falls back to Q8_0.
    hidden = 256 if "K" in qtype.name or "XS" in qtype.name else 64
    config = merged(LLAMA, {"hidden_size": hidden, "head_dim": 16, "num_attention_heads": 2,
                            "num_key_value_heads": 1, "intermediate_size": 32} | (overrides or {}))
    options = {key: kwargs.pop(key) for key in ("keys", "parts") if key in kwargs}
    return Model(f"llama_{name}", "llama", Variant("gguf", name, config, **({"n_tokens": 24} | kwargs)),
                 LLAMA_NAMES, qtype, paired=True, **options)


def other(name, architecture, base, overrides, names, qtype=Type.Q8_0, **options):
    config = merged(base, overrides)
    return Model(name, architecture, Variant("gguf", name, config, n_tokens=24), names, qtype,
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


def all_models():
    for qtype in [Type.F32, Type.F16, Type.BF16, *TYPES]:
        yield llama(qtype.name.lower(), qtype)
    yield llama("tied", Type.Q8_0, {"tie_word_embeddings": True}, parts=3)
    yield llama("biases", Type.Q8_0, {"attention_bias": True, "mlp_bias": True})
    # What is scaled turns slowly: a longer text shows it.
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
    yield other("mixtral", "llama", MIXTRAL, WIDE | {"num_key_value_heads": 2}, LLAMA_NAMES,
                paired=True, keys={"expert_count": MIXTRAL["num_local_experts"],
                                   "expert_used_count": MIXTRAL["num_experts_per_tok"]})
    yield other("qwen2", "qwen2", QWEN2, WIDE | {"num_key_value_heads": 2}, LLAMA_NAMES)
    yield other("qwen3", "qwen3", QWEN3, WIDE | {"num_key_value_heads": 2, "head_dim": 32},
                LLAMA_NAMES)
    yield other("qwen3moe", "qwen3moe", QWEN3,
                WIDE | QWEN3_MOE | {"num_key_value_heads": 2, "head_dim": 32}, LLAMA_NAMES,
                keys={"expert_count": QWEN3_MOE["num_experts"],
                      "expert_used_count": QWEN3_MOE["num_experts_per_tok"],
                      "expert_feed_forward_length": QWEN3_MOE["moe_intermediate_size"]})
    yield other("glm4", "glm4", GLM, WIDE | {"model_type": "glm4", "num_key_value_heads": 2,
                                             "head_dim": 16},
                LLAMA_NAMES, keys={"rope.dimension_count": 8})
    yield other("gpt_neox", "gptneox", NEOX, WIDE, NEOX_NAMES, qkv=(4, 3),
                keys={LAYER_NORM: NEOX["layer_norm_eps"], "use_parallel_residual": True,
                      "rope.dimension_count": int(16 * NEOX["rotary_pct"])})
    yield other("falcon_7b", "falcon", FALCON,
                {"hidden_size": 64, "num_attention_heads": 4, "ffn_hidden_size": 256},
                BLOCK_NAMES, qkv=(1, 6),
                keys={LAYER_NORM: FALCON["layer_norm_epsilon"], "attention.head_count_kv": 1})
    yield other("falcon_40b", "falcon", FALCON,
                {"hidden_size": 64, "num_attention_heads": 4, "ffn_hidden_size": 256,
                 "num_kv_heads": 2,
                 "new_decoder_architecture": True, "multi_query": False},
                BLOCK_NAMES, qkv=(2, 4),
                keys={LAYER_NORM: FALCON["layer_norm_epsilon"], "attention.head_count_kv": 2})
    yield other("mpt", "mpt", MPT, {"d_model": 64, "n_heads": 4}, BLOCK_NAMES,
                keys={LAYER_NORM: 1e-5, "attention.max_alibi_bias": 8.0})
    yield other("bloom", "bloom", BLOOM, {"hidden_size": 64, "n_head": 4}, BLOCK_NAMES, qkv=(4, 3),
                keys={LAYER_NORM: BLOOM["layer_norm_epsilon"]})


# ---------------------------------------------------------------------------------------------


def make(folder):
    make_blocks(folder)
    for model in all_models():
        make_model(folder, model)
    make_tiny_llama(folder)


def compare(made, kept):
    names = sorted({file.relative_to(folder) for folder in (made, kept)
                    for file in folder.rglob("*") if file.is_file()})
    different = [name for name in names
                 if not ((made / name).exists() and (kept / name).exists()
                         and filecmp.cmp(made / name, kept / name, shallow=False))]
    for name in different:
        print(f"differs: {name}")
    return 1 if different else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder))
            return compare(Path(folder), ROOT)
    ROOT.mkdir(parents=True, exist_ok=True)
    make(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
