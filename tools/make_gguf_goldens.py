#!/usr/bin/env python3
"""Makes the files in tests/golden/gguf with gguf's own Python package.

blocks.safetensors
    random blocks of every quantized type (TYPE.blocks, U8 [rows, bytes]) and their values by gguf's
    reference (TYPE.values, F32 [rows, elements]);
NAME.gguf and NAME.safetensors
    a tiny random model, with input_ids and logits. transformers computes these in float32 from the
    numbers that the file's types represent. Rows too short for blocks of 256 have Q8_0, as in real
    files. Names and rows change as in llama.cpp's converters: q and k of Llama have their rotary
    pairs side by side, fused q, k and v are ungrouped, experts are merged, and the gains of Gemma's
    norms are stored as they are used. If transformers can read such a file, it must find the same
    tensors in it.

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
from pathlib import Path

import gguf
import gguf_mixers
import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from gguf import GGMLQuantizationType as Type
from gguf_golden_models import OTHER_TYPES, TYPES, Model, all_models
from golden_variant import Variant, merged
from make_goldens import (
    MAX_NOISE,
    build,
    effect,
    random_tokens,
    random_weights,
    round_embedding_scale,
    run,
)
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

ROOT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "gguf"


# ---------------------------------------------------------------------------------------------
# Blocks


def finite_blocks(rng, qtype, count):
    """Random bytes whose scales are valid numbers. [count, bytes]"""
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
    for qtype in [*TYPES, *OTHER_TYPES]:
        rows = finite_blocks(rng, qtype, 12).reshape(4, -1)
        tensors[f"{qtype.name}.blocks"] = rows
        tensors[f"{qtype.name}.values"] = gguf.dequantize(rows, qtype)
    save(tensors, folder / "blocks.safetensors")


def save(tensors, path):
    safetensors.numpy.save_file(tensors, path)
    path.chmod(0o644)


# The places of scales in blocks of types that gguf's package cannot quantize to, and scales that
# give random codes weights of a usual size.
SCALES = {
    Type.Q4_K: {0: 4e-4, 2: 3e-3},
    Type.Q5_K: {0: 2e-4, 2: 3e-3},
    Type.Q6_K: {208: 4e-5},
    Type.IQ4_NL: {0: 1.2e-3},
    Type.IQ4_XS: {0: 6e-5},
    Type.Q2_K: {80: 8e-3, 82: 1.2e-2},
    Type.Q3_K: {108: 1.3e-3},
    Type.IQ2_XXS: {0: 1.1e-3},
    Type.IQ2_XS: {0: 1.1e-3},
    Type.IQ2_S: {0: 1.1e-3},
    Type.IQ3_XXS: {0: 3.7e-4},
    Type.IQ3_S: {0: 3.7e-4},
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
# The work of converters


def paired(weights, heads):
    """The rotary pairs (i, i + half) of each head side by side."""
    shape = weights.shape
    return weights.reshape(heads, 2, -1, *shape[1:]).swapaxes(1, 2).reshape(shape)


def ungrouped(weights, kv_heads, per_group):
    """All q, all k, all v, of rows by KV head."""
    groups = weights.reshape(kv_heads, per_group, -1, *weights.shape[1:])
    parts = [groups[:, :-2], groups[:, -2], groups[:, -1]]
    return np.concatenate([part.reshape(-1, *weights.shape[1:]) for part in parts])


def gguf_name(name, model):
    """The converter's name for a tensor of Hugging Face, by gguf's package."""
    block = f"blk.{name.split('.')[2]}." if name.startswith("model.layers.") else ""
    if name.endswith(".router.scale"):
        return f"{block}ffn_gate_inp.scale"
    if name.endswith(".per_expert_scale"):
        return f"{block}ffn_down_exps.scale"
    # Tensors that have no ending.
    if name.endswith((".layer_scalar", ".correct_output_scale")):
        name += ".weight"
    name = name.replace("e_score_correction_bias", "e_score_correction.bias")
    name = name.replace(".expert_bias", ".expert_bias.bias")
    name = name.replace("gate.moe_statics", "moe_statics").replace(".sinks", ".sinks.weight")
    module, ending = name.rsplit(".", 1)
    architectures = {text: key for key, text in gguf.MODEL_ARCH_NAMES.items()}
    config = model.variant.config
    layers = model.keys.get("block_count",
                            first_of(config, "num_hidden_layers", "n_layers", "n_layer"))
    names = gguf.get_tensor_name_map(architectures[model.architecture], layers)
    if exact := names.get_name(name):  # without an ending
        return exact
    if config["model_type"] == "nemotron_h":
        module = module.replace("model.", "backbone.")
    # BLOOM's converter takes the prefix off.
    known = names.get_name(module) or names.get_name(module.removeprefix("transformer."))
    assert known, name
    return f"{known}.{ending}"


def first_of(config, *names, fallback=None):
    return next((config[name] for name in names if name in config), fallback)


def head_counts(config):
    heads = first_of(config, "num_attention_heads", "n_head", "n_heads")
    return heads, config.get("num_key_value_heads", heads)


def convert(model, name, weights):
    """The matrix in GGUF's order of rows; the way back is its inverse."""
    heads, kv_heads = head_counts(model.variant.config)
    if weights.ndim > 1:
        weights = weights * np.float32(gguf_mixers.factor(name, model.variant.config))
    if model.paired and ".q_proj." in name:
        return paired(weights, heads)
    if model.paired and ".k_proj." in name:
        return paired(weights, kv_heads)
    if model.qkv and "query_key_value" in name:
        return ungrouped(weights, *model.qkv)
    return gguf_mixers.reordered(name, weights, model.variant.config)


def unconvert(model, name, weights):
    if ".linear_attn." in name:
        return gguf_mixers.restored(name, weights, model.variant.config)
    rows = np.arange(weights.shape[0])
    result = np.empty_like(weights)
    result[convert(model, name, rows)] = weights
    if weights.ndim > 1:
        result /= np.float32(gguf_mixers.factor(name, model.variant.config))
    return result


def stored(model, name, weights, rng):
    """The array and type in the file, and the numbers that they represent."""
    small = weights.ndim == 1 or name.endswith(("_norm.weight", "bias")) or "ffn_gate_inp" in name
    small = small or "shortconv.conv" in name or "ssm_conv1d" in name or weights.shape[-1] % 32 != 0
    qtype = Type.F32 if small else model.qtype
    if "attn_kv_b" in name:  # older files
        qtype = Type.F16
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


def transposed(weights):
    return np.ascontiguousarray(np.swapaxes(weights, -1, -2))


def stacked_pieces(name, weights, model):
    """Names and values of a tensor that holds several of GGUF's; {} if it is one there, too."""
    config = model.variant.config
    if ".in_proj_qkvz." in name:
        return gguf_mixers.apart(weights, config)
    if "kv_b_proj" in name and model.heads_apart:  # for each head: its keys, its values
        heads = weights.reshape(config["num_attention_heads"], -1, weights.shape[-1])
        keys, values = np.split(heads, [config["qk_nope_head_dim"]], axis=1)
        return {"attn_k_b": transposed(keys), "attn_v_b": np.ascontiguousarray(values)}
    if ".experts." in name and config["model_type"] in ("gpt_oss", "llama4_text"):
        ending = "bias" if name.endswith("_bias") else "weight"
        if ending == "weight":
            weights = transposed(weights)
        if "down_proj" in name:
            return {f"ffn_down_exps.{ending}": weights}
        gate, up = np.split(weights, 2, axis=1)
        if config["model_type"] == "gpt_oss":
            gate, up = weights[:, ::2], weights[:, 1::2]
        halves = {"gate": gate, "up": up}
        return {f"ffn_{half}_exps.{ending}": np.ascontiguousarray(part)
                for half, part in halves.items()}
    if ".experts.gate_up_proj" in name and model.gate_with_up:
        return {"ffn_gate_up_exps": weights}
    if ".experts.gate_up_proj" in name:
        return dict(zip(("ffn_gate_exps", "ffn_up_exps"), np.split(weights, 2, axis=1)))
    if ".experts.down_proj" in name:
        return {"ffn_down_exps": weights}
    if ".experts.up_proj" in name:
        return {"ffn_up_exps": weights}
    if "block_sparse_moe.router" in name:
        return {"ffn_gate_inp": weights}
    # Without experts the shared MLP is the only one.
    suffix = "" if config.get("num_local_experts") == 0 else "_shexp"
    if "shared_mlp.input_linear" in name:
        return dict(zip((f"ffn_gate{suffix}", f"ffn_up{suffix}"), np.split(weights, 2)))
    if "shared_mlp.output_linear" in name and not suffix:
        return {"ffn_down": weights}
    return {}


def unstacked(name, kept, model):
    """The way back."""
    config = model.variant.config
    if ".in_proj_qkvz." in name:
        return gguf_mixers.together(kept, config)
    if "kv_b_proj" in name:
        heads = np.concatenate([transposed(kept[0]), kept[1]], axis=1)
        return heads.reshape(-1, heads.shape[-1])
    if ".experts." in name and config["model_type"] in ("gpt_oss", "llama4_text"):
        whole = np.concatenate(kept, axis=1)
        if len(kept) == 2 and config["model_type"] == "gpt_oss":
            whole = np.stack(kept, axis=2).reshape(whole.shape)
        return whole if name.endswith("_bias") else transposed(whole)
    return np.concatenate(kept, axis=-2)


def add_lists(writer, hf):
    """xIELU's numbers of all layers, as Apertus's converter writes them."""
    state = hf.state_dict()
    for number in ("alpha_p", "alpha_n", "beta", "eps"):
        values = [values.item() for name, values in state.items()
                  if name.endswith(f".act_fn.{number}")]
        if values:
            writer.add_array(f"xielu.{number}", values)


def merged_norms(state, found):
    """StableLM's norms of heads, which are one matrix in GGUF."""
    for name in [name for name in state if name.endswith("_layernorm.norms.0.weight")]:
        start = name.removesuffix("0.weight")
        heads = sum(other.startswith(start) for other in state)
        rows = [state.pop(f"{start}{head}.weight").detach().numpy() for head in range(heads)]
        part = "attn_q_norm" if ".q_layernorm." in name else "attn_k_norm"
        found[f"blk.{name.split('.')[2]}.{part}.weight"] = (np.stack(rows), Type.F32)


def merged_streams(state, found, model, rng):
    """Gemma 3n's matrices of residual streams, which are one tensor in GGUF."""
    for module, part in (("altup_projections", "altup_proj"),
                         ("altup_unembed_projections", "altup_unembd_proj")):
        names = sorted(name for name in state if f".{module}." in name)
        if not names:
            continue
        parameters = [state.pop(name) for name in names]
        whole = np.stack([parameter.detach().numpy() for parameter in parameters])
        array, qtype, values = stored(model, f"{part}.weight", whole, rng)
        found[f"{part}.weight"] = (array, qtype)
        with torch.no_grad():
            for parameter, numbers in zip(parameters, values):
                parameter.copy_(torch.from_numpy(numbers))


def is_squeezed(name):
    return "moe_statics" in name or "conv.conv" in name or name.endswith("conv1d.weight")


def tensors_of(model, hf, rng):
    """GGUF's tensors: name -> (array, type). Puts the numbers that they represent into `hf`."""
    endings = ("e_score_correction_bias", "expert_bias", "layer_scalar")
    biases = (entry for entry in hf.named_buffers() if entry[0].endswith(endings))
    state = dict(hf.named_parameters()) | dict(biases)
    found = {}
    merged_norms(state, found)
    merged_streams(state, found, model, rng)
    for name, parameter in state.items():
        if ".act_fn." in name:  # a key holds them
            continue
        weights = parameter.detach().numpy()
        if own := gguf_mixers.own_numbers(name, weights, model.variant.config):
            found[f"blk.{name.split('.')[2]}.{own[0]}"] = (own[1], Type.F32)
            continue
        shifted = model.shifted_norms and not name.endswith("linear_attn.norm.weight")
        if shifted and name.endswith("norm.weight"):
            found[gguf_name(name, model)] = (weights + np.float32(1), Type.F32)
            continue
        if pieces := stacked_pieces(name, weights, model):
            block = f"blk.{name.split('.')[2]}."
            kept = []
            for piece, values in pieces.items():
                array, qtype, values = stored(model, piece, values, rng)
                whole_name = piece if "." in piece else f"{piece}.weight"
                found[f"{block}{whole_name}"] = (array, qtype)
                kept.append(values)
            values = unstacked(name, kept, model)
        else:
            new_name = gguf_name(name, model)
            flat = weights.squeeze() if is_squeezed(name) else weights
            array, qtype, values = stored(model, new_name, convert(model, name, flat), rng)
            found[new_name] = (array, qtype)
            values = unconvert(model, name, values).reshape(weights.shape)
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
    for key, value in merged(keys, model.keys).items():
        if isinstance(value, list):
            writer.add_array(f"{own}.{key}", value)
        elif isinstance(value, bool):
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


def longrope_factors(config):
    """Divisors for a context beyond the original one, and for one within."""
    scaling = config["rope_scaling"]
    return {f"rope_factors_{kind}.weight": (np.array(scaling[f"{kind}_factor"], "f4"), Type.F32)
            for kind in ("long", "short")}


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


def check_reads_as(folder, model, hf):
    """transformers finds the same numbers in the file, under their names."""
    tensors = load_gguf_checkpoint(folder / f"{model.name}.gguf", return_tensors=True,
                                   model_to_load=hf)["tensors"]
    tied = {"lm_head.weight"} if hf.config.tie_word_embeddings else set()
    assert set(tensors) == set(hf.state_dict()) - tied, (model.name, set(tensors))
    for name, values in tensors.items():  # 1 is taken off again
        assert torch.allclose(values, hf.state_dict()[name], atol=1e-6), (model.name, name)


def make_model(folder, model):
    rng = np.random.default_rng(2)
    hf = round_embedding_scale(build(model.variant.config), model.variant)
    random_weights(hf, model.variant)
    tokens = random_tokens(model.variant)
    tensors = tensors_of(model, hf, rng)
    scaling = model.variant.config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        tensors["rope_freqs.weight"] = (llama3_factors(model.variant.config), Type.F32)
    if model.still_pairs:
        turning, still = model.still_pairs
        factors = np.array([1.0] * turning + [1e30] * still, "f4")
        tensors["rope_freqs.weight"] = (factors, Type.F32)
    if scaling.get("type") == "longrope":
        tensors |= longrope_factors(model.variant.config)
    logits = run(hf, tokens)
    for contrast in model.variant.contrasts:
        other = round_embedding_scale(build(merged(model.variant.config, contrast)), model.variant)
        other.load_state_dict(hf.state_dict())
        assert effect(logits, run(other, tokens)) > model.variant.min_effect, (model.name, contrast)

    split = -(-len(tensors) // model.parts) if model.parts > 1 else 0
    write(folder, model, tensors, split, more_keys=lambda writer: add_lists(writer, hf))
    if model.reads_as:
        check_reads_as(folder, model, hf)
    context = model.variant.context
    save({"input_ids": tokens.numpy(), "logits": logits.numpy()}
         | ({"context": np.array([context])} if context else {}),
         folder / f"{model.name}.safetensors")


def add_tokenizer(writer, folder):
    """A byte-level BPE tokenizer of GPT-2's kind, as converters write it."""
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
    model = Model("tiny_llama", "llama", Variant("llama", "tiny", config), Type.BF16,
                  paired=True)
    hf = build(config)
    missing, unexpected = hf.load_state_dict(
        safetensors.torch.load_file(source / "model.safetensors"), strict=False)
    assert missing == ["lm_head.weight"] and not unexpected
    tensors = tensors_of(model, hf, np.random.default_rng(2))
    write(folder, model, tensors, more_keys=lambda writer: add_tokenizer(writer, source))


# ---------------------------------------------------------------------------------------------


def make(folder):
    make_blocks(folder)
    for model in all_models():
        make_model(folder, model)
    make_tiny_llama(folder)


def compare(made, kept):
    names = sorted({file.relative_to(folder) for folder in (made, kept)
                    for file in folder.rglob("*") if file.is_file()})

    def same(name):
        if not ((made / name).exists() and (kept / name).exists()):
            return False
        if filecmp.cmp(made / name, kept / name, shallow=False):
            return True
        # Another CPU may round logits otherwise.
        pair = [safetensors.torch.load_file(folder / name) for folder in (made, kept)
                if name.suffix == ".safetensors"]
        if not pair or any("logits" not in golden for golden in pair):
            return False
        logits = [golden.pop("logits") for golden in pair]
        others_same = pair[0].keys() == pair[1].keys() and all(
            torch.equal(tensor, pair[1][key]) for key, tensor in pair[0].items())
        return (others_same and logits[0].shape == logits[1].shape
                and effect(*logits) < MAX_NOISE)

    different = [name for name in names if not same(name)]
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
