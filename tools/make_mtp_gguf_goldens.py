#!/usr/bin/env python3
"""Makes tests/golden/mtp/FAMILY.gguf: models with layers that predict tokens, as llama.cpp's converters
name and change the tensors. That of GLM-4.5 has the numbers of make_mtp_goldens.py's, and so its logits.
That of Qwen3-Next has FAMILY.gguf.golden.safetensors.

  python tools/make_mtp_gguf_goldens.py           writes the files
"""

import json
import tempfile

import numpy as np
import safetensors.torch
import torch
from gguf import GGMLQuantizationType as Type
from gguf_golden_models import Model
from golden_variant import Variant, merged
from golden_variants import all_variants
from make_gguf_goldens import convert, gguf_name, stored, tensors_of, write
from make_goldens import (ROOT, be_reproducible, build, load, made_with, random_tokens,
                          random_weights)
from make_mtp_goldens import FOLDER, Layer, layer_tensors, names_of, run_layer

OUTER = {"embedding_norm": "enorm", "output_norm": "hnorm", "join": "eh_proj",
         "norm": "shared_head_norm"}


def keys_of(config):
    experts = {"expert_count": config.get("n_routed_experts", config.get("num_experts")),
               "expert_feed_forward_length": config["moe_intermediate_size"],
               "expert_used_count": config["num_experts_per_tok"]}
    layers = {"block_count": config["num_hidden_layers"] + 1, "nextn_predict_layers": 1}
    theta = (config.get("rope_parameters") or config)["rope_theta"]
    common = experts | layers | {"rope.freq_base": float(theta)}
    if config["model_type"] == "qwen3_next":
        values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
        return common | {
            "expert_shared_feed_forward_length": config["shared_expert_intermediate_size"],
            "full_attention_interval": config["full_attention_interval"],
            "rope.dimension_count": int(config["head_dim"] * config["partial_rotary_factor"]),
            "ssm.conv_kernel": config["linear_conv_kernel_dim"],
            "ssm.group_count": config["linear_num_key_heads"], "ssm.inner_size": values,
            "ssm.state_size": config["linear_key_head_dim"],
            "ssm.time_step_rank": config["linear_num_value_heads"]}
    sigmoid = common | {
        "expert_gating_func": 2, "expert_shared_count": config["n_shared_experts"],
        "expert_group_count": config["n_group"], "expert_group_used_count": config["topk_group"],
        "expert_weights_norm": config["norm_topk_prob"],
        "expert_weights_scale": float(config["routed_scaling_factor"]),
        "leading_dense_block_count": config["first_k_dense_replace"]}
    rotated = int(config["head_dim"] * config["partial_rotary_factor"])
    return sigmoid | {"rope.dimension_count": rotated}


def layer_of(model, tensors):
    """The layer's tensors in GGUF: name -> (array, type)."""
    layers = model.variant.config["num_hidden_layers"]
    beginning, outer = names_of(model.variant.family, layers)
    found, inner, experts = {}, {}, {}
    own = {name: part for part, name in outer.items()}
    for name, tensor in tensors.items():
        numbers = tensor.float().numpy()
        if name in own:
            part = OUTER[own[name]]
            norm = part != "eh_proj"
            if norm and model.shifted_norms:
                numbers = numbers + np.float32(1)
            if norm:
                found[f"blk.{layers}.nextn.{part}.weight"] = (numbers, Type.F32)
            else:
                array, qtype, _ = stored(model, part, numbers, None)
                found[f"blk.{layers}.nextn.{part}.weight"] = (array, qtype)
            continue
        rest = name.removeprefix(beginning)
        pieces = rest.split(".")
        if pieces[:2] == ["mlp", "experts"]:
            experts.setdefault(pieces[3], {})[int(pieces[2])] = numbers
        else:
            inner[f"model.layers.{layers}.{rest}"] = numbers
    for projection, matrices in experts.items():
        whole = np.stack([matrices[i] for i in range(len(matrices))])
        array, qtype, _ = stored(model, "exps", whole, None)
        half = projection.removesuffix("_proj")
        found[f"blk.{layers}.ffn_{half}_exps.weight"] = (array, qtype)
    for name, numbers in inner.items():
        if model.shifted_norms and name.endswith("norm.weight"):
            found[gguf_name(name, model)] = (numbers + np.float32(1), Type.F32)
        else:
            new_name = gguf_name(name, model)
            array, qtype, _ = stored(model, new_name, convert(model, name, numbers), None)
            found[new_name] = (array, qtype)
    return found


def gguf_model(variant, config):
    config = (config.get("rope_parameters") or {}) | config
    architecture = {"glm4_moe": "glm4moe", "qwen3_next": "qwen3next"}[variant.family]
    named = Variant(variant.family, variant.name, config)
    return Model(variant.family, architecture, named, Type.BF16, keys=keys_of(config),
                 shifted_norms=architecture == "qwen3next")


def make_of_golden(variant):
    """The golden's own numbers, to which its logits belong."""
    model = gguf_model(variant, json.loads((ROOT / variant.path / "config.json").read_text()))
    tensors = tensors_of(model, load(variant, ROOT / variant.path), None)
    layer = safetensors.torch.load_file(FOLDER / f"{variant.family}.safetensors")
    write(FOLDER, model, tensors | layer_of(model, layer))


def make_new(variant):
    """A model in which all layers have experts, as in GGUF files, and its logits."""
    hf = build(variant.config)
    random_weights(hf, variant)
    model = gguf_model(variant, variant.config)
    tensors = tensors_of(model, hf, None)
    with tempfile.TemporaryDirectory() as folder:
        hf.save_pretrained(folder)
        state = safetensors.torch.load_file(f"{folder}/model.safetensors")
    beginning, names = names_of(variant.family, variant.config["num_hidden_layers"])
    layer = layer_tensors(state, variant.config, names)
    layer = {name: tensor.bfloat16().float() if tensor.ndim > 1 else tensor
             for name, tensor in layer.items()}
    ids = random_tokens(variant)
    results = run_layer(hf, Layer(variant.config, layer, gains_less_one=True), ids)
    stored_names = {names.get(name, beginning + name): tensor for name, tensor in layer.items()}
    write(FOLDER, model, tensors | layer_of(model, stored_names))
    named = dict(zip(("logits", "chain_ids", "chain_logits"), results))
    named = {name: t.float() if t.is_floating_point() else t for name, t in named.items()}
    file = FOLDER / f"{variant.family}.gguf.golden.safetensors"
    safetensors.torch.save_file(named | {"input_ids": ids}, file, {"made_with": made_with()})
    file.chmod(0o644)


def main():
    be_reproducible()
    torch.set_grad_enabled(False)
    variants = {variant.path: variant for variant in all_variants()}
    make_of_golden(variants["glm4_moe/air"])
    config = variants["qwen3_next/experts"].config
    make_new(Variant("qwen3_next", "mtp", merged(config, {"full_attention_interval": 2,
                                                         "mlp_only_layers": [],
                                                         "num_hidden_layers": 2}), n_tokens=24))


if __name__ == "__main__":
    main()
