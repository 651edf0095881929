#!/usr/bin/env python3
"""Makes the packed checkpoints in tests/golden/packed and their logits.

compressed-tensors ("pack-quantized") and bitsandbytes (nf4) pack and read their checkpoints
themselves. GPTQ's and AWQ's own packages want a GPU: their checkpoints are packed here by the
published definitions of the formats,

  GPTQ   w[o, i] = scales[g, o] * (q[i, o] - z[g, o]),  g = g_idx[i]
         qweight[i / n, o] has q of n = 32 / bits inputs, the first one in the lowest bits;
         qzeros[g, o / n] likewise z of n outputs, less one in the first version of the format
  AWQ    w[o, i] = scales[g, o] * (q[i, o] - z[g, o]),  g = i / group
         qweight[i, o / 8] has q of outputs 0, 2, 4, 6, 1, 3, 5, 7 from the lowest bits up;
         qzeros[g, o / 8] likewise

  FP8    w[o, i] = scale_inv[o / m, i / n] * code[o, i], a float of 8 bits, in blocks of m by n,
         or with a scale for a tensor
  NVFP4  w[o, i] = weight_scale[o, i / 16] * weight_scale_2 * code[o, i], as NVIDIA's ModelOpt
         stores it; weight[o, i / 2] has a float of 4 bits (E2M1) of two inputs, the first one low

and unpacked again from the written tensors, by code that shares nothing with the packing. The logits
are those of the float model of transformers with the unpacked weights, in float32.

mxfp4.safetensors has random blocks of MXFP4, the format of gpt-oss's experts, and their values by
transformers.

Every golden is checked while it is made: weights whose inputs, outputs or zero points are one off
must move the logits by far more than the test's tolerance.

  python tools/make_packed_goldens.py             writes tests/golden/packed
  python tools/make_packed_goldens.py --check     makes them again elsewhere and compares
"""

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import bitsandbytes
import compressed_tensors
import numpy as np
import safetensors.torch
import torch
from bitsandbytes.functional import QuantState
from compressed_tensors.compressors.mxfp4 import MXFP4PackedCompressor
from compressed_tensors.compressors.mxfp8 import MXFP8QuantizationCompressor
from compressed_tensors.compressors.naive_quantized import (
    FloatQuantizationCompressor,
    IntQuantizationCompressor,
)
from compressed_tensors.compressors.nvfp4 import NVFP4PackedCompressor
from compressed_tensors.compressors.pack_quantized import PackedQuantizationCompressor
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme
from compressed_tensors.quantization.quant_scheme import PRESET_SCHEMES
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from golden_variant import Variant, merged
from golden_variants_experts import gpt_oss_variants, granitemoe, llama4_text
from golden_variants_llama import LLAMA, MIXTRAL
from make_goldens import ROOT as GOLDENS
from make_goldens import (
    build,
    effect,
    implementations,
    made_with,
    make_or_check,
    random_tokens,
    random_weights,
    run,
    save,
    save_logits,
    write_json,
)
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

ROOT = GOLDENS / "packed"
MIN_EFFECT = 1e-2  # of the largest logit; the test accepts 5e-5
N_TOKENS = 12
SIZES = {"hidden_size": 64, "intermediate_size": 96}
SMALL = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 24}
AWQ_OUTPUTS = [0, 2, 4, 6, 1, 3, 5, 7]  # outputs of a word, from the lowest bits up


@dataclass
class Packing:
    base: Variant
    method: object  # pack(name, weight, packing) -> tensors; unpack(tensors, packing) -> weight
    bits: int = 4
    group: int | None = 32  # none: all inputs
    symmetric: bool = True
    act_order: bool = False
    scale_dtype: torch.dtype = torch.float16
    first_version: bool = True  # of GPTQ
    skipped: tuple = ("lm_head", "embed_tokens", "norm")

    def packs(self, name, tensor):
        if hasattr(self.method, "packs"):
            return self.method.packs(name, tensor)
        return tensor.ndim == 2 and not any(part in name for part in self.skipped)

    def groups(self, inputs):
        """The group of every input. Layers that read the same inputs have the same."""
        size = self.group or inputs
        groups = torch.arange(inputs) // size
        if self.act_order:
            generator = np.random.default_rng(inputs)
            groups = groups[torch.from_numpy(generator.permutation(inputs))]
        return groups.to(torch.int32)


def rounded(weight, packing):
    """(q [outputs, inputs], scales and zero points [outputs, groups]) to the nearest."""
    groups = packing.groups(weight.shape[1])
    n = int(groups.max()) + 1
    low = torch.stack([weight[:, groups == g].amin(1) for g in range(n)], 1).clamp(max=0)
    high = torch.stack([weight[:, groups == g].amax(1) for g in range(n)], 1).clamp(min=0)
    top = 2**packing.bits - 1
    if packing.symmetric:
        high = torch.maximum(high, -low)
        low = -high
    scales = ((high - low) / top).to(packing.scale_dtype)
    zeros = torch.round(-low / scales.float()) if not packing.symmetric else (top + 1) // 2
    zeros = torch.broadcast_to(torch.as_tensor(zeros, dtype=torch.float32), scales.shape)
    q = torch.round(weight / scales.float()[:, groups]) + zeros[:, groups]
    return q.clamp(0, top).to(torch.int64), scales, zeros.clamp(1, top).to(torch.int64)


def words(q, bits, places=None):
    """[.., n] -> [.., n * bits / 32] I32, the first of each word in its lowest bits."""
    n = 32 // bits
    q = q.reshape(*q.shape[:-1], -1, n)
    q = q[..., places] if places else q
    shifted = q << (bits * torch.arange(n))
    return shifted.sum(-1).to(torch.int32)


def bytes_of(tensor):
    return torch.from_numpy(tensor.numpy().copy().view(np.uint8)).to(torch.int64)


class CompressedTensors:
    @staticmethod
    def scheme(packing):
        strategy = {"strategy": "group", "group_size": packing.group}
        weights = QuantizationArgs(
            num_bits=packing.bits,
            symmetric=packing.symmetric,
            **(strategy if packing.group else {"strategy": "channel"}),
        )
        return QuantizationScheme(targets=["Linear"], weights=weights)

    def pack(self, weight, packing):
        scheme = self.scheme(packing)
        groups = packing.groups(weight.shape[1])
        # Older versions packed groups of other inputs than neighbours; g_idx tells which.
        n = int(groups.max()) + 1
        low = torch.stack([weight[:, groups == g].amin(1) for g in range(n)], 1)
        high = torch.stack([weight[:, groups == g].amax(1) for g in range(n)], 1)
        scales, zeros = calculate_qparams(low, high, scheme.weights)
        scales = scales.to(packing.scale_dtype)
        order = torch.argsort(groups, stable=True)
        local = {"weight": weight[:, order], "weight_scale": scales.float()}
        local["weight_zero_point"] = zeros
        packed = PackedQuantizationCompressor.compress(local, scheme)
        if packing.act_order:
            # The codes lie as the inputs do.
            n = 32 // packing.bits
            places = torch.arange(n) * packing.bits
            codes = (packed["weight_packed"][..., None] >> places) & (2**packing.bits - 1)
            codes = codes.reshape(weight.shape)[:, torch.argsort(order)]
            packed["weight_packed"] = words(codes.to(torch.int64), packing.bits)
            packed["weight_g_idx"] = groups
        return packed | {"weight_scale": scales}

    def unpack(self, packed, packing):
        local = dict(packed)
        groups = local.pop("weight_g_idx", None)
        scheme = self.scheme(packing)
        local["weight_scale"] = local["weight_scale"].float()
        if groups is None:
            return PackedQuantizationCompressor.decompress(local, scheme)["weight"]
        q = unpack_from_int32(local["weight_packed"], packing.bits, local["weight_shape"])
        weight = q.float()
        if not packing.symmetric:
            shape = local["weight_scale"].shape
            zeros = unpack_from_int32(
                local["weight_zero_point"], packing.bits, shape, packed_dim=0
            )
            weight -= zeros.float()[:, groups]
        return weight * local["weight_scale"][:, groups]

    def config(self, packing):
        config = QuantizationConfig(
            config_groups={"group_0": self.scheme(packing)},
            ignore=["lm_head"],
            format="pack-quantized",
            quantization_status="compressed",
        )
        config = json.loads(json.dumps(config.model_dump(mode="json")))
        if packing.act_order:
            config["config_groups"]["group_0"]["weights"]["actorder"] = "group"
        return config


class IntQuantized(CompressedTensors):
    """A byte for each code, as compressed-tensors stores W4A8."""

    @staticmethod
    def scheme(packing):
        scheme = CompressedTensors.scheme(packing)
        scheme.input_activations = QuantizationArgs(num_bits=8, strategy="token", dynamic=True)
        return scheme

    def pack(self, weight, packing):
        scheme = self.scheme(packing)
        grouped = weight.reshape(weight.shape[0], -1, packing.group)
        scales, zeros = calculate_qparams(grouped.amin(2), grouped.amax(2), scheme.weights)
        scales = scales.to(packing.scale_dtype)
        local = {"weight": weight, "weight_scale": scales.float(), "weight_zero_point": zeros}
        packed = IntQuantizationCompressor.compress(local, scheme)
        return {"weight": packed["weight"], "weight_scale": scales}

    def unpack(self, packed, packing):
        local = packed | {"weight_scale": packed["weight_scale"].float()}
        return IntQuantizationCompressor.decompress(local, self.scheme(packing))["weight"]

    def config(self, packing):
        return super().config(packing) | {"format": "int-quantized"}


# The format and compressor of some of compressed-tensors' own schemes.
FLOAT_SCHEMES = {
    "FP8": ("float-quantized", FloatQuantizationCompressor),
    "FP8_DYNAMIC": ("float-quantized", FloatQuantizationCompressor),
    "FP8_BLOCK": ("float-quantized", FloatQuantizationCompressor),
    "NVFP4": ("nvfp4-pack-quantized", NVFP4PackedCompressor),
    "MXFP4": ("mxfp4-pack-quantized", MXFP4PackedCompressor),
    "MXFP8": ("mxfp8-quantized", MXFP8QuantizationCompressor),
}


class FloatScheme:
    """Floats of 4 and 8 bits, as compressed-tensors' scheme of this name stores them."""

    def __init__(self, name, block=None):
        self.name = name
        self.format, self.compressor = FLOAT_SCHEMES[name]
        self.scheme = QuantizationScheme(targets=["Linear"], **PRESET_SCHEMES[name])
        self.weights = self.scheme.weights.model_copy()
        self.scheme.weights = self.weights
        if block:
            self.weights.block_structure = list(block)

    def ranges(self, weight):
        strategy = self.weights.strategy
        if strategy == "tensor":
            grouped = weight.reshape(1, -1)
        elif strategy == "block":
            m, n = self.weights.block_structure
            grouped = weight.unflatten(0, (-1, m)).unflatten(2, (-1, n)).transpose(1, 2).flatten(2)
        elif strategy == "channel":
            grouped = weight[:, None]
        else:
            grouped = weight.unflatten(1, (-1, self.weights.group_size))
        return grouped.amin(-1), grouped.amax(-1)

    def pack(self, weight, packing):
        low, high = self.ranges(weight)
        local = {"weight": weight}
        if self.name == "NVFP4":
            local["weight_global_scale"] = generate_gparam(weight.amin(), weight.amax())
        scales, zeros = calculate_qparams(
            low, high, self.weights, global_scale=local.get("weight_global_scale")
        )
        local |= {"weight_scale": scales.to(packing.scale_dtype).float(), "weight_zero_point": zeros}
        packed = self.compressor.compress(local, self.scheme)
        if packed["weight_scale"].dtype == torch.float32:
            packed["weight_scale"] = packed["weight_scale"].to(packing.scale_dtype)
        inputs = self.scheme.input_activations
        if self.name == "NVFP4":
            packed["input_global_scale"] = torch.tensor([37.0])
        elif inputs and not inputs.dynamic:
            packed["input_scale"] = torch.tensor([0.25])
        return packed

    def unpack(self, packed, packing):
        local = dict(packed)
        if local["weight_scale"].is_floating_point() and self.name != "NVFP4":
            local["weight_scale"] = local["weight_scale"].float()
        weight = self.compressor.decompress(local, self.scheme)["weight"].float()
        if self.name != "NVFP4":
            return weight
        # That was rounded to bf16.
        exact = fp4_values(packed["weight_packed"]) * (
            packed["weight_scale"].float() / packed["weight_global_scale"]
        ).repeat_interleave(16, 1)
        assert torch.equal(exact.bfloat16().float(), weight)
        return exact

    def config(self, packing):
        config = QuantizationConfig(
            config_groups={"group_0": self.scheme},
            ignore=["lm_head"],
            format=self.format,
            quantization_status="compressed",
        )
        return json.loads(json.dumps(config.model_dump(mode="json")))


FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def fp4_codes(x):
    codes = (x.abs()[..., None] - FP4).abs().argmin(-1) + 8 * (x < 0)
    codes = codes.to(torch.uint8)
    return codes[..., 0::2] | codes[..., 1::2] << 4


def fp4_values(packed):
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).long()
    return torch.cat([FP4, -FP4])[codes]


class Fp8Wholes:
    """FP8 with a scale for a tensor, in a format with these names."""

    def __init__(self, names, config):
        self.names, self.block = names, config

    def pack(self, weight, packing):
        scale = (weight.abs().max() / 448).to(packing.scale_dtype)
        codes = (weight / scale.float()).to(torch.float8_e4m3fn)
        return {"weight": codes, self.names[0]: scale, self.names[1]: torch.tensor(0.25)}

    def unpack(self, packed, packing):
        return packed["weight"].float() * packed[self.names[0]].float()

    def config(self, packing):
        return self.block


def modelopt_config(algorithm, bits, **rest):
    floats = {"dynamic": False, "num_bits": bits, "type": "float"} | rest
    return {
        "config_groups": {
            "group_0": {"input_activations": floats, "weights": floats, "targets": ["Linear"]}
        },
        "ignore": ["lm_head", "model.layers.*.block_sparse_moe.gate"],
        "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"},
        "producer": {"name": "modelopt", "version": "0.33.0"},
        "quant_algo": algorithm,
        "quant_method": "modelopt",
    }


class ModelOptFp8(Fp8Wholes):
    def __init__(self):
        super().__init__(("weight_scale", "input_scale"), modelopt_config("FP8", 8))

    @staticmethod
    def others(names):
        return {
            f"{name.removesuffix('weight')}{kind}_scale": torch.tensor(0.5)
            for name in names
            for kind in "kv"
            if f"{kind}_proj" in name
        }


class ModelOptNvfp4:
    def pack(self, weight, packing):
        whole = weight.abs().max() / (6 * 448)
        groups = weight.unflatten(1, (-1, 16))
        scales = (groups.abs().amax(2) / 6 / whole).to(torch.float8_e4m3fn)
        codes = fp4_codes((groups / (scales.float() * whole)[..., None]).flatten(1))
        return {
            "weight": codes,
            "weight_scale": scales,
            "weight_scale_2": whole,
            "input_scale": torch.tensor(0.01),
        }

    def unpack(self, packed, packing):
        scales = packed["weight_scale"].float() * packed["weight_scale_2"]
        return fp4_values(packed["weight"]) * scales.repeat_interleave(16, 1)

    def config(self, packing):
        return modelopt_config("NVFP4", 4, group_size=16)


class Mxfp4:
    """gpt-oss's experts: [experts, inputs, outputs] in blocks of 32 inputs."""

    @staticmethod
    def packs(name, tensor):
        return tensor.ndim == 3

    def pack(self, weight, packing):
        blocks = weight.transpose(1, 2).unflatten(2, (-1, 32))
        exponents = torch.floor(torch.log2(blocks.abs().amax(3))) - 2
        x = blocks / torch.exp2(exponents)[..., None]
        return {
            "_blocks": fp4_codes(x),
            "_scales": (exponents + 127).to(torch.uint8),
        }

    def unpack(self, packed, packing):
        blocks, scales = packed["_blocks"], packed["_scales"]
        return convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)

    def config(self, packing):
        return {
            "modules_to_not_convert": [
                "model.layers.*.self_attn",
                "model.layers.*.mlp.router",
                "model.embed_tokens",
                "lm_head",
            ],
            "quant_method": "mxfp4",
        }


class Gptq:
    def pack(self, weight, packing):
        q, scales, zeros = rounded(weight, packing)
        stored = zeros - 1 if packing.first_version else zeros
        return {
            "qweight": words(q, packing.bits).T.contiguous(),
            "qzeros": words(stored.T, packing.bits),
            "scales": scales.T.contiguous(),
            "g_idx": packing.groups(weight.shape[1]),
        }

    def unpack(self, packed, packing):
        def codes(across):  # [n, m] words -> [n, m * codes of a word]
            data = bytes_of(across)
            if packing.bits == 8:
                return data
            return torch.stack([data % 16, data // 16], -1).reshape(data.shape[0], -1)

        q = codes(packed["qweight"].T.contiguous())
        zeros = codes(packed["qzeros"]) + (1 if packing.first_version else 0)
        groups = packed["g_idx"].long()
        return packed["scales"].float()[groups].T * (q - zeros[groups].T)

    def config(self, packing):
        return {
            "bits": packing.bits,
            "checkpoint_format": "gptq" if packing.first_version else "gptq_v2",
            "damp_percent": 0.01,
            "desc_act": packing.act_order,
            "group_size": packing.group or -1,
            "quant_method": "gptq",
            "static_groups": False,
            "sym": packing.symmetric,
            "true_sequential": True,
        }


class Awq:
    def pack(self, weight, packing):
        q, scales, zeros = rounded(weight, packing)
        return {
            "qweight": words(q.T, 4, AWQ_OUTPUTS),
            "qzeros": words(zeros.T, 4, AWQ_OUTPUTS),
            "scales": scales.T.contiguous(),
        }

    def unpack(self, packed, packing):
        def codes(packed_words):
            data = bytes_of(packed_words).reshape(*packed_words.shape, 4)
            low, high = data % 16, data // 16
            # Bytes have the outputs 0 and 2, 4 and 6, 1 and 3, 5 and 7.
            pairs = [low[..., 0], low[..., 2], high[..., 0], high[..., 2]]
            pairs += [low[..., 1], low[..., 3], high[..., 1], high[..., 3]]
            return torch.stack(pairs, -1).reshape(packed_words.shape[0], -1)

        groups = packing.groups(packed["qweight"].shape[0]).long()
        q, zeros = codes(packed["qweight"]), codes(packed["qzeros"])
        return (packed["scales"].float()[groups] * (q - zeros[groups])).T

    def config(self, packing):
        return {
            "bits": 4,
            "group_size": packing.group or -1,
            "modules_to_not_convert": ["gate"] if "gate." in packing.skipped else None,
            "quant_method": "awq",
            "version": "gemm",
            "zero_point": True,
        }


class Fp8Blocks:
    """weight_block_size of Packing.group: outputs and inputs of a block."""

    def pack(self, weight, packing):
        m, n = packing.group
        codes = torch.empty(weight.shape, dtype=torch.float8_e4m3fn)
        scales = torch.empty(-(-weight.shape[0] // m), -(-weight.shape[1] // n))
        for i, rows in enumerate(weight.split(m, 0)):
            for j, block in enumerate(rows.split(n, 1)):
                scale = (block.abs().max() / 448).to(packing.scale_dtype).float()
                scales[i, j] = scale
                codes[i * m : (i + 1) * m, j * n : (j + 1) * n] = (block / scale).to(codes.dtype)
        return {"weight": codes, "weight_scale_inv": scales.to(packing.scale_dtype)}

    def unpack(self, packed, packing):
        codes, scales = packed["weight"].float(), packed["weight_scale_inv"].float()
        m, n = packing.group
        every = scales.repeat_interleave(m, 0).repeat_interleave(n, 1)
        return codes * every[: codes.shape[0], : codes.shape[1]]

    def config(self, packing):
        return {
            "activation_scheme": "dynamic",
            "fmt": "e4m3",
            "quant_method": "fp8",
            "weight_block_size": list(packing.group),
        }


class Fp8Stacked(Fp8Blocks):
    """FP8 of experts that are one tensor, [experts, outputs, inputs] or [experts, inputs, outputs].

    Scales are those of blocks, or with fbgemm one for each output of the latter. tensor: the end of
    the name of such a tensor.
    """

    def __init__(self, tensor="", fbgemm=False):
        self.tensor, self.fbgemm = tensor, fbgemm
        self.scales = f"{tensor}_scale" if fbgemm else f"{tensor}_scale_inv"

    @staticmethod
    def packs(name, tensor):
        return tensor.ndim == 3

    def pack(self, weight, packing):
        if self.fbgemm:
            scales = (weight.abs().amax(1, keepdim=True) / 448).to(packing.scale_dtype)
            codes = (weight / scales.float()).to(torch.float8_e4m3fn)
            return {self.tensor: codes, self.scales: scales}
        of_experts = [Fp8Blocks.pack(self, matrix, packing) for matrix in weight]
        return {
            self.tensor: torch.stack([packed["weight"] for packed in of_experts]),
            self.scales: torch.stack([packed["weight_scale_inv"] for packed in of_experts]),
        }

    def unpack(self, packed, packing):
        codes, scales = packed[self.tensor], packed[self.scales]
        if self.fbgemm:
            return codes.float() * scales.float()
        matrices = [{"weight": c, "weight_scale_inv": s} for c, s in zip(codes, scales)]
        return torch.stack([Fp8Blocks.unpack(self, matrix, packing) for matrix in matrices])

    def config(self, packing):
        if not self.fbgemm:
            return super().config(packing)
        return {"activation_scale_ub": 1200.0, "quant_method": "fbgemm_fp8"}


class Nf4:
    """transformers packs and saves with bitsandbytes, and bitsandbytes unpacks."""

    def __init__(self, double):
        self.options = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=double,
            bnb_4bit_compute_dtype=torch.float32,
        )

    def pack_model(self, folder):
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, quantization_config=self.options, device_map="cpu"
        )
        with tempfile.TemporaryDirectory() as saved:
            model.save_pretrained(saved)
            packed = safetensors.torch.load_file(f"{saved}/model.safetensors")
            self.block = json.loads(Path(saved, "config.json").read_text())["quantization_config"]
        return packed

    def unpack_weight(self, packed, name):
        parts = {k.removeprefix(f"{name}."): v for k, v in packed.items() if k.startswith(f"{name}.")}
        state = QuantState.from_dict(parts, device="cpu")
        return bitsandbytes.functional.dequantize_4bit(packed[name], state).float()

    def config(self, packing):
        return self.block


FLOATS = (FloatScheme, Fp8Wholes, ModelOptNvfp4)


def packings():
    def of(name, method, overrides=None, base=LLAMA, **rest):
        sizes = SMALL if isinstance(method, FLOATS) else SIZES
        config = merged(base, sizes | (overrides or {}))
        float_model = Variant(config["model_type"], name, config, N_TOKENS, stored="float32")
        return Packing(float_model, method, **rest)

    ct = CompressedTensors()
    yield of("w4a16", ct, scale_dtype=torch.bfloat16)
    yield of("w4a16_zeros", ct, group=16, symmetric=False, scale_dtype=torch.bfloat16)
    yield of("w4a16_order", ct, symmetric=False, act_order=True)
    yield of("w4a16_channel", ct, {"attention_bias": True}, group=None, scale_dtype=torch.float32)
    yield of("w8a16", ct, bits=8, scale_dtype=torch.bfloat16)
    yield of("w8a16_channel_zeros", ct, bits=8, group=None, symmetric=False)

    yield of("w4a8", IntQuantized(), scale_dtype=torch.bfloat16)

    gptq = Gptq()
    biases = {"attention_bias": True, "mlp_bias": True}
    yield of("gptq", gptq)
    yield of("gptq_order", gptq, biases, act_order=True)
    yield of("gptq_zeros", gptq, symmetric=False, act_order=True)
    yield of("gptq_v2", gptq, symmetric=False, first_version=False, group=16)
    yield of("gptq_int8", gptq, bits=8, group=None, act_order=True)
    yield of("gptq_experts", gptq, base=MIXTRAL, skipped=Packing.skipped + ("gate.",))

    awq = Awq()
    yield of("awq", awq, symmetric=False)
    yield of("awq_channel", awq, group=None, symmetric=False)
    yield of("awq_experts", awq, base=MIXTRAL, symmetric=False, skipped=Packing.skipped + ("gate.",))


    fp8 = Fp8Blocks()
    biases = {"attention_bias": True}
    yield of("fp8", fp8, biases, bits=8, group=(40, 48), scale_dtype=torch.float32)
    narrow = {"hidden_size": 32, "intermediate_size": 48}
    yield of("fp8_experts", fp8, narrow, base=MIXTRAL, bits=8, group=(32, 32),
             scale_dtype=torch.bfloat16, skipped=Packing.skipped + ("gate.",))

    sizes = {"hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 1, "vocab_size": 24}
    granite = granitemoe("", sizes | {"num_local_experts": 3}).config
    yield of("fp8_stacked", Fp8Stacked("weight"), sizes, base=granite, bits=8, group=(20, 12),
             scale_dtype=torch.float32)
    llama4 = llama4_text("", {"num_hidden_layers": 2, "num_local_experts": 3}).config
    yield of("fp8_llama4", Fp8Stacked(fbgemm=True), sizes | {"num_hidden_layers": 2}, base=llama4,
             bits=8, scale_dtype=torch.float32)

    bf16, f32 = {"scale_dtype": torch.bfloat16}, {"scale_dtype": torch.float32}
    yield of("fp8_channel", FloatScheme("FP8_DYNAMIC"), bits=8, **bf16)
    yield of("fp8_tensor", FloatScheme("FP8"), biases, bits=8, **bf16)
    yield of("fp8_compressed_blocks", FloatScheme("FP8_BLOCK", (16, 32)), bits=8, **f32)
    static = {"activation_scheme": "static", "quant_method": "fp8"}
    inverse = ("weight_scale_inv", "activation_scale")
    mistral = Fp8Wholes(inverse, static | {"weight_block_size": None})
    yield of("fp8_mistral", mistral, bits=8, **bf16)
    yield of("fp8_modelopt", ModelOptFp8(), bits=8, **f32)
    yield of("mxfp8", FloatScheme("MXFP8"), bits=8, **f32)
    yield of("mxfp4", FloatScheme("MXFP4"), **f32)
    yield of("nvfp4", FloatScheme("NVFP4"), {"intermediate_size": 48}, **f32)
    experts = {"intermediate_size": 48, "num_local_experts": 3}
    yield of("nvfp4_experts", ModelOptNvfp4(), experts, base=MIXTRAL, **f32,
             skipped=Packing.skipped + ("gate.",))

    yield of("gpt_oss_mxfp4", Mxfp4(), base=next(gpt_oss_variants()).config)

    yield of("nf4", Nf4(double=False), {"intermediate_size": 128}, group=64)
    yield of("nf4_nested", Nf4(double=True), {"intermediate_size": 320}, group=64)


# -------------------------------------------------------------------------------------------------
# One folder


def logits_of(folder, base, state, tokens):
    safetensors.torch.save_file(state, folder / "model.safetensors", {"format": "pt"})
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, **implementations(base.config)
    )
    return run(model.eval(), tokens)


def check_teeth(folder, base, floats, packed_names, tokens, logits):
    wrong = {
        "inputs": lambda w: w.roll(1, 1),
        "outputs": lambda w: w.roll(1, 0),
        "pairs of inputs": lambda w: w.reshape(w.shape[0], -1, 2).flip(2).reshape(w.shape),
        "zero points": lambda w: w + w.abs().amax() / 16,
    }
    sizes = []
    for what, change in wrong.items():
        changed = {k: change(v).contiguous() if k in packed_names else v for k, v in floats.items()}
        sizes.append(effect(logits, logits_of(folder, base, changed, tokens)))
        if not sizes[-1] > MIN_EFFECT:
            sys.exit(f"{base.path}: wrong {what} move the logits by {sizes[-1]:.1e} only")
    return min(sizes)


def make(packing, root):
    base = packing.base
    model = build(base.config)
    random_weights(model, base)
    folder = root / base.name
    save(model, base, folder)
    state = safetensors.torch.load_file(folder / "model.safetensors")
    packed, floats, names = {}, {}, set()
    whole = isinstance(packing.method, Nf4)
    if whole:
        packed = packing.method.pack_model(folder)
    for name, tensor in state.items():
        if not packing.packs(name, tensor):
            packed[name] = floats[name] = tensor
            continue
        names.add(name)
        if whole:
            floats[name] = packing.method.unpack_weight(packed, name).contiguous()
        else:
            tensors = packing.method.pack(tensor, packing)
            packed |= {name.removesuffix("weight") + suffix: t for suffix, t in tensors.items()}
            floats[name] = packing.method.unpack(tensors, packing).contiguous()
        error = (floats[name] - tensor).norm() / tensor.norm()
        of_floats = isinstance(packing.method, FLOATS + (Fp8Blocks,))
        most = 0.2 if packing.bits == 4 else 0.04 if of_floats else 0.02
        assert error < most, (name, error)
    if hasattr(packing.method, "others"):
        packed |= packing.method.others(names)

    tokens = random_tokens(base)
    logits = logits_of(folder, base, floats, tokens)
    weakest = check_teeth(folder, base, floats, names, tokens, logits)
    safetensors.torch.save_file(packed, folder / "model.safetensors", {"format": "pt"})
    write_json(
        folder / "config.json", base.config | {"quantization_config": packing.method.config(packing)}
    )
    save_logits(folder, tokens, logits, compressed_tensors, bitsandbytes)
    print(f"{base.name:24} weakest contrast {weakest:7.1e}")


def make_mxfp4(root):
    generator = torch.Generator().manual_seed(4)
    experts, outputs, groups = 2, 6, 3
    blocks = torch.randint(
        0, 256, (experts, outputs, groups, 16), dtype=torch.uint8, generator=generator
    )
    scales = torch.randint(
        100, 136, (experts, outputs, groups), dtype=torch.uint8, generator=generator
    )
    # [experts, inputs, outputs]
    weights = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    safetensors.torch.save_file(
        {
            "experts.gate_up_proj_blocks": blocks,
            "experts.gate_up_proj_scales": scales,
            "weights": weights.transpose(1, 2).contiguous(),
        },
        root / "mxfp4.safetensors",
        {"made_with": made_with()},
    )


def make_all(root):
    make_mxfp4(root)
    for folder in root.glob("*/"):
        shutil.rmtree(folder)
    for packing in packings():
        make(packing, root)


if __name__ == "__main__":
    sys.exit(make_or_check(__doc__, ROOT, make_all))
