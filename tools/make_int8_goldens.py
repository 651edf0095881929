#!/usr/bin/env python3
"""Makes the int8 checkpoints in tests/golden/int8 and their logits.

The weights are quantized, and config.json's quantization_config is written, by compressed-tensors
itself, or by transformers and bitsandbytes (LLM.int8()). The logits are those of the float model of
transformers with the dequantized weights. Its linear layers round their input to int8's grid, by the
formulas of vLLM's kernels:

  symmetric   scale = max|x| / 127 of a token or of all of them, or given; q = round(x / scale)
  asymmetric  scale = (max - min) / 255, zero point = round(-128 - min / scale), or both given;
              q = round(x / scale) + zero point; 0 always lies between min and max
  LLM.int8()  symmetric for a token, but for elements of the threshold or more, which stay as they
              are: bitsandbytes' formula for a single row (of several it takes whole columns)

All in float32. godwit leaves out -128 for symmetric inputs, where vLLM cuts numbers beyond the range
of a static scale at -128; so do these goldens.

Every golden is checked while it is made: rounding no inputs, or rounding them by another scheme,
must move the logits by far more than the test's tolerance, and weights of -128 must occur where
compressed-tensors made them. In its text no input lies near the middle between two integers. Thus
float32 rounding, which differs from one engine to another, leaves the integers as they are.

  python tools/make_int8_goldens.py             writes tests/golden/int8
  python tools/make_int8_goldens.py --check     makes them again elsewhere and compares
"""

import itertools
import json
import shutil
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import bitsandbytes
import compressed_tensors
import numpy as np
import safetensors.torch
import torch
from compressed_tensors.compressors.naive_quantized import IntQuantizationCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams
from compressed_tensors.utils.match import match_name
from golden_variant import Variant, merged
from golden_variants_gpt import NEOX
from golden_variants_llama import GLM, LLAMA, MIXTRAL
from make_goldens import ROOT as GOLDENS
from make_goldens import (
    build,
    effect,
    implementations,
    linear_layers,
    make_or_check,
    random_tokens,
    random_weights,
    run,
    save,
    save_logits,
    write_json,
)
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

ROOT = GOLDENS / "int8"
# The least change of the largest logit by another scheme. golden_test.cc accepts less.
MIN_EFFECT = 1e-2
# The least distance from the middle, in integers. float32 is off by some 1e-5 of them here.
MIN_MARGIN = 1e-4
N_TOKENS = 12  # in a longer text some input nearly always lies closer

TOKEN = {"strategy": "token", "dynamic": True}
DYNAMIC = {"strategy": "tensor", "dynamic": True}
STATIC = {"strategy": "tensor", "dynamic": False}
CHANNEL = {"strategy": "channel"}
TENSOR = {"strategy": "tensor"}


def group(weights, inputs, targets=("Linear",), **rest):
    return QuantizationScheme(
        targets=list(targets),
        weights=QuantizationArgs(**weights),
        input_activations=QuantizationArgs(**inputs),
        **rest,
    )


@dataclass
class Int8Variant:
    base: Variant
    groups: list
    ignore: list = field(default_factory=lambda: ["lm_head"])
    scale_dtype: torch.dtype = torch.float32
    scalar_scales: bool = False  # [] and [outputs] instead of [1] and [outputs, 1]
    edit: object = None  # turns quantization_config into an older writer's
    bitsandbytes: BitsAndBytesConfig | None = None  # set if compressed-tensors does not write the file

    @property
    def threshold(self):
        return self.bitsandbytes.llm_int8_threshold if self.bitsandbytes else 0

    def scheme(self, module):
        """The group of a linear layer: a name before an expression before a class."""
        if any(match_name(module, entry) for entry in self.ignore):
            return None
        for matches in (match_name, lambda _, target: target == "Linear"):
            for scheme in self.groups:
                if any(matches(module, target) for target in scheme.targets):
                    return scheme
        return None


# -------------------------------------------------------------------------------------------------
# The checkpoints


def before_2024(config):
    """The older spelling, and nothing that has a default."""
    groups = {}
    for name, scheme in config["config_groups"].items():
        groups[name] = {
            "targets": scheme["targets"],
            "weights": {"num_bits": 8, "group_size": -1, "observer": "memoryless"},
            "input_activations": {"dynamic": True, "strategy": "token"},
        }
    return "compression_config", {
        "config_groups": groups,
        "format": "naive-quantized",
        "ignore": config["ignore"],
        "quantization_status": "frozen",
    }


def variants():
    def of(base, name, groups, overrides=None, **rest):
        groups = groups if isinstance(groups, list) else [groups]
        config = merged(base, overrides or {})
        float_model = Variant(config["model_type"], name, config, stored="float32")
        return Int8Variant(float_model, groups, **rest)

    # As llm-compressor makes them.
    yield of(LLAMA, "channel_token", group(CHANNEL, TOKEN), scale_dtype=torch.bfloat16)
    # The levels of SmoothQuant, table 3.2.
    yield of(LLAMA, "tensor_token", group(TENSOR, TOKEN), scale_dtype=torch.float16)
    yield of(LLAMA, "tensor_dynamic", group(TENSOR, DYNAMIC), scalar_scales=True)
    biases = {"attention_bias": True, "mlp_bias": True}
    yield of(LLAMA, "tensor_static", group(TENSOR, STATIC), biases)

    asymmetric = {"symmetric": False}
    yield of(LLAMA, "asymmetric_token", group(CHANNEL, TOKEN | asymmetric), biases)
    yield of(LLAMA, "asymmetric_dynamic", group(TENSOR, DYNAMIC | asymmetric))
    yield of(LLAMA, "asymmetric_static", group(CHANNEL, STATIC | asymmetric))

    yield of(
        LLAMA,
        "before_2024",
        group({"group_size": -1}, TOKEN, ["re:.*_proj"]),
        ignore=["re:.*\\.1\\.mlp\\.(gate|up)_proj$", "model.layers.0.mlp.down_proj"],
        scalar_scales=True,
        edit=before_2024,
    )
    yield of(
        LLAMA,
        "several_groups",
        [
            group(CHANNEL, TOKEN, format="int-quantized"),
            group(TENSOR, STATIC, ["re:.*self_attn.[qkv]_proj"], format="naive-quantized"),
            group(CHANNEL, DYNAMIC, ["model.layers.1.mlp.down_proj"], format="int-quantized"),
        ],
    )
    # Rows of a fused weight in an order of their own.
    yield of(NEOX, "grouped", group(CHANNEL, STATIC), ignore=["embed_out", "lm_head"])
    yield of(GLM, "interleaved", group(CHANNEL, TOKEN | asymmetric))
    yield of(MIXTRAL, "experts", group(CHANNEL, TOKEN), ignore=["lm_head", "re:.*\\.gate$"])

    # Inputs of a model this small are small.
    def llm_int8(base, ignore, **rest):
        return of(
            base,
            "llm_int8",
            group(CHANNEL, TOKEN),
            ignore=ignore,
            bitsandbytes=BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=2.5, **rest),
        )

    yield llm_int8(LLAMA, ["lm_head"])
    yield llm_int8(merged(NEOX, {"num_hidden_layers": 3}), ["embed_out", "lm_head"])
    skip = ["lm_head", "model.layers.0.mlp", "o_proj"]
    yield llm_int8(GLM, ["lm_head", "re:.*0.mlp", "re:.*o_proj"], llm_int8_skip_modules=skip)


# -------------------------------------------------------------------------------------------------
# Rounding of inputs


class InputRounding:
    """Rounds the inputs of layers, and remembers how near the middle between integers they were."""

    def __init__(self, threshold):
        self.margin = 0.5
        self.threshold = threshold

    def to_integers(self, x):
        self.margin = min(self.margin, (x - x.floor() - 0.5).abs().min().item())
        return x.round()

    def __call__(self, x, args, scale, zero_point):
        if not self.threshold:
            return self.rounded(x, args, scale, zero_point)
        size = x.abs()
        self.margin = min(self.margin, (size - self.threshold).abs().min().item())
        outlier = size >= self.threshold
        rest = self.rounded(x.masked_fill(outlier, 0), args, scale, zero_point)
        return torch.where(outlier, x, rest)

    def rounded(self, x, args, scale, zero_point):
        dims = tuple(range(x.ndim)) if args.strategy == "tensor" else (-1,)
        if args.symmetric:
            if args.dynamic:
                scale = x.abs().amax(dims, keepdim=True) / 127
                scale = torch.where(scale == 0, torch.ones_like(scale), scale)
            return self.to_integers(x / scale).clamp(-127, 127) * scale
        if args.dynamic:
            low = x.amin(dims, keepdim=True).clamp(max=0)
            high = x.amax(dims, keepdim=True).clamp(min=0)
            scale = (high - low) / 255
            zero_point = self.to_integers(-128 - low / scale)
        integers = self.to_integers(x / scale) + zero_point
        return (integers.clamp(-128, 127) - zero_point) * scale


def weight_names(model, variant):
    """A weight's place in memory -> its module; experts' weights as in the checkpoint."""
    names = {
        module.weight.data_ptr(): name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
    }
    if variant.base.family == "mixtral":
        for i, layer in enumerate(model.model.layers):
            experts = f"model.layers.{i}.block_sparse_moe.experts"
            for e in range(variant.base.config["num_local_experts"]):
                names[layer.mlp.experts.gate_up_proj[e].data_ptr()] = f"{experts}.{e}.w1"
                names[layer.mlp.experts.down_proj[e].data_ptr()] = f"{experts}.{e}.w2"
    return names


def input_ranges(model, variant, tokens):
    """(smallest, largest) input of every linear layer, in float."""
    names = weight_names(model, variant)
    ranges = {}

    def watch(linear, x, weight, bias):
        if name := names.get(weight.data_ptr()):
            ranges[name] = x.min(), x.max()
        return linear(x, weight, bias)

    with linear_layers(watch):
        run(model, tokens)
    return ranges


def quantized_run(model, variant, tokens, state, scheme_of, threshold=None):
    """(logits, the smallest margin)"""
    names = weight_names(model, variant)
    round_input = InputRounding(variant.threshold if threshold is None else threshold)

    def rounding(linear, x, weight, bias):
        name = names.get(weight.data_ptr())
        if scheme := name and scheme_of(name):
            scale = state.get(f"{name}.input_scale")
            zero_point = state.get(f"{name}.input_zero_point")
            x = round_input(x, scheme.input_activations, scale, zero_point)
        return linear(x, weight, bias)

    with linear_layers(rounding):
        return run(model, tokens), round_input.margin


# -------------------------------------------------------------------------------------------------
# One folder


def texts(base):
    for i in itertools.count():
        generator = np.random.default_rng(zlib.crc32(f"{base.path}/input_ids/{i}".encode()))
        yield torch.from_numpy(generator.integers(0, base.config["vocab_size"], N_TOKENS))


def qparams(low, high, args):
    scale, zero_point = calculate_qparams(low, high, args)
    return scale.reshape(-1, 1) if args.strategy == "channel" else scale.reshape(1), zero_point


def quantize(state, variant, ranges):
    """The tensors of the checkpoint, and the same with float weights."""
    quantized, dequantized = {}, {}
    for name, tensor in state.items():
        module = name.removesuffix(".weight")
        scheme = variant.scheme(module) if tensor.ndim == 2 and "embed" not in name else None
        if scheme is None:
            quantized[name] = dequantized[name] = tensor
            continue
        dims = (1,) if scheme.weights.strategy == "channel" else (0, 1)
        scale, _ = qparams(tensor.amin(dims), tensor.amax(dims), scheme.weights)
        scale = scale.to(variant.scale_dtype)
        local = {"weight": tensor, "weight_scale": scale.float()}
        packed = IntQuantizationCompressor.compress(local, scheme)
        dequantized[name] = IntQuantizationCompressor.decompress(packed, scheme)["weight"]
        quantized[name] = packed["weight"]
        quantized[f"{module}.weight_scale"] = scale
        if scheme.input_activations.dynamic:
            continue
        scale, zero_point = qparams(*ranges[module], scheme.input_activations)
        quantized[f"{module}.input_scale"] = scale
        if not scheme.input_activations.symmetric:
            quantized[f"{module}.input_zero_point"] = zero_point.reshape(1).to(torch.int8)
    assert any((t == -128).any() for t in quantized.values() if t.dtype == torch.int8)
    return quantized, dequantized


def by_bitsandbytes(folder, variant):
    """The result of quantize, and quantization_config."""
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, quantization_config=variant.bitsandbytes, device_map="cpu"
    )
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved)
        quantized = safetensors.torch.load_file(f"{saved}/model.safetensors")
        config = json.loads(Path(saved, "config.json").read_text())
    dequantized = {}
    for name, tensor in quantized.items():
        module = name.removesuffix(".weight")
        if tensor.dtype == torch.int8:
            assert variant.scheme(module)
            tensor = tensor * (quantized[f"{module}.SCB"] / 127)[:, None]
        if not name.endswith((".SCB", ".weight_format")):
            dequantized[name] = tensor
    return quantized, dequantized, config["quantization_config"]


def quantization_config(variant):
    formats = {scheme.format for scheme in variant.groups}
    config = QuantizationConfig(
        config_groups={f"group_{i}": scheme for i, scheme in enumerate(variant.groups)},
        ignore=variant.ignore,
        format="mixed-precision" if len(formats) > 1 else "int-quantized",
        quantization_status="compressed",
    )
    config = json.loads(json.dumps(config.model_dump(mode="json")))
    return variant.edit(config) if variant.edit else ("quantization_config", config)


def check_teeth(model, variant, tokens, state, logits):
    def other(scheme):
        args = scheme.input_activations
        changed = {"strategy": "tensor" if args.strategy == "token" else "token", "dynamic": True}
        return group({}, changed | {"symmetric": args.symmetric})

    contrasts = {
        "no rounding of inputs": (lambda name: None, None),
        "another scheme": (lambda name: (s := variant.scheme(name)) and other(s), None),
    }
    if variant.threshold:
        contrasts["no outliers"] = variant.scheme, 0
    sizes = []
    for what, (scheme_of, threshold) in contrasts.items():
        other_logits, _ = quantized_run(model, variant, tokens, state, scheme_of, threshold)
        sizes.append(effect(logits, other_logits))
        if not sizes[-1] > MIN_EFFECT:
            sys.exit(f"{variant.base.path}: {what} moves the logits by {sizes[-1]:.1e} only")
    return min(sizes)


def make(variant, root):
    base = variant.base
    model = build(base.config)
    random_weights(model, base)
    folder = root / base.path
    save(model, base, folder)
    file = folder / "model.safetensors"
    ranges = input_ranges(model, variant, random_tokens(base))
    if variant.bitsandbytes:
        state, dequantized, block = by_bitsandbytes(folder, variant)
        key = "quantization_config"
    else:
        state, dequantized = quantize(safetensors.torch.load_file(file), variant, ranges)
        key, block = quantization_config(variant)

    safetensors.torch.save_file(dequantized, file, {"format": "pt"})
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, **implementations(base.config)
    ).eval()
    for tokens in texts(base):
        logits, margin = quantized_run(model, variant, tokens, state, variant.scheme)
        if margin > MIN_MARGIN:
            break
    weakest = check_teeth(model, variant, tokens, state, logits)

    if variant.scalar_scales:
        for name in state:
            if name.endswith("_scale"):
                state[name] = state[name].squeeze()
    safetensors.torch.save_file(state, file, {"format": "pt"})
    write_json(folder / "config.json", base.config | {key: block})
    packages = (compressed_tensors, bitsandbytes) if variant.bitsandbytes else (compressed_tensors,)
    save_logits(folder, tokens, logits, *packages)
    print(f"{base.path:28} weakest contrast {weakest:7.1e}  margin {margin:7.1e}")
    return {
        "path": f"int8/{base.path}",
        "family": base.family,
        "n_tokens": N_TOKENS,
        "dtype": "int8",
    }


def make_all(root):
    for folder in root.glob("*/"):
        shutil.rmtree(folder)
    write_json(root / "index.json", [make(variant, root) for variant in variants()])


if __name__ == "__main__":
    sys.exit(make_or_check(__doc__, ROOT, make_all))
