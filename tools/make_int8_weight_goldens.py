#!/usr/bin/env python3
"""Makes tests/golden/int8_weights: what --weights int8 makes of some of the float goldens.

A forward pass of Llama and Mixtral in NumPy, written from their descriptions and in float64. Without
quantization it must give the logits that Hugging Face gave. Then every linear layer but a router is
quantized by the formulas that godwit documents (src/ops/quantize.h, src/ops/pack_weight.h):

  weights   of an output, in float32, since that says which integers there are:
            scale = max|w| / 127, q = round(w * (127 / max|w|))
  inputs    of a token: scale = max|x| / 127, q = round(x / scale)

A tied embedding is the quantized head. Every text is one that goes to every expert, and in which no
input lies near the middle between two integers and no expert near the choice of another, so that
float32 rounding, which differs from one engine to another, leaves integers and choices as they are.

Every golden is checked while it is made: any one layer whose scales are off by 2 percent moves the
logits by far more than golden_test.cc accepts.

  python tools/make_int8_weight_goldens.py            writes tests/golden/int8_weights
  python tools/make_int8_weight_goldens.py --check    makes them again and compares

Needs NumPy and safetensors alone (requirements-goldens.txt).
"""

import argparse
import itertools
import json
import sys
import zlib
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent / "tests" / "golden"
FOLDER = ROOT / "int8_weights"
MODELS = ["llama/gqa", "llama/tied", "llama/biases", "llama/bf16", "mixtral/two_of_five",
          "mixtral/all_experts", "mixtral/bf16"]
N_TOKENS = 12
MIN_MARGIN = 1e-4  # in integers; float32 is off by some 1e-5 of them here
MIN_CHOICE = 1e-3  # between the scores of the last expert that is chosen and the next
MAX_NOISE = 1e-5  # of the largest logit: the float32 rounding of Hugging Face's
MIN_EFFECT = 1e-3  # likewise, of 2 percent in one layer; golden_test.cc accepts a twentieth


def read_tensors(path):
    """As load_file, which knows no bfloat16: float32."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            array = np.frombuffer(data[begin:end], "<u2").astype(np.uint32) << 16
            array = array.view(np.float32)
        else:
            array = np.frombuffer(data[begin:end], {"F32": "<f4", "F16": "<f2"}[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"]).astype(np.float32)
    return tensors


def quantized_weight(weight):
    """float32 [outputs, inputs] -> the same after quantization, float64."""
    largest = np.abs(weight).max(axis=1, keepdims=True)
    integers = np.rint(weight * (np.float32(127) / largest))
    return integers.astype(np.float64) * (largest / np.float32(127)).astype(np.float64)


def silu(x):
    return x / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Model:
    """quantize: as --weights int8. off: the name of a layer whose scales are 2 percent too large."""

    def __init__(self, folder, quantize=False, off=None):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = read_tensors(folder / "model.safetensors")
        self.quantize = quantize
        self.margin, self.choice, self.used = 0.5, np.inf, set()
        self.head = "lm_head" if "lm_head.weight" in self.tensors else "model.embed_tokens"
        self.linears = [
            name.removesuffix(".weight")
            for name, tensor in self.tensors.items()
            if tensor.ndim == 2 and not name.endswith((".gate.weight", "embed_tokens.weight"))
        ]
        if self.head == "model.embed_tokens":
            self.linears.append(self.head)
        self.weights = {}
        for name in self.linears:
            weight = self.tensors[f"{name}.weight"]
            self.weights[name] = quantized_weight(weight) if quantize else weight.astype(np.float64)
        if off:
            self.weights[off] *= 1.02

    def tensor(self, name):
        return self.tensors[f"{name}.weight"].astype(np.float64)

    def linear(self, x, name):
        self.used.add(name)
        if self.quantize:
            scale = np.abs(x).max(axis=1, keepdims=True) / 127
            x = x / scale
            self.margin = min(self.margin, np.abs(x - np.floor(x) - 0.5).min())
            x = np.rint(x) * scale
        out = x @ self.weights[name].T
        bias = self.tensors.get(f"{name}.bias")
        return out if bias is None else out + bias.astype(np.float64)

    def norm(self, x, name):
        mean = (x * x).mean(axis=1, keepdims=True)
        return x / np.sqrt(mean + self.config["rms_norm_eps"]) * self.tensor(name)

    def rotate(self, x):
        """[tokens, heads, dim]"""
        dim = x.shape[2]
        frequencies = self.config.get("rope_theta", 10000.0) ** (-np.arange(0, dim, 2) / dim)
        angles = np.arange(len(x))[:, None, None] * frequencies
        first, second = x[..., : dim // 2], x[..., dim // 2 :]
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=2)

    def attention(self, x, layer):
        heads, kv_heads = self.config["num_attention_heads"], self.config["num_key_value_heads"]
        n, name = len(x), f"{layer}.self_attn"
        q, k, v = (self.linear(x, f"{name}.{p}_proj").reshape(n, h, -1)
                   for p, h in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
        q, k = self.rotate(q), self.rotate(k)
        k, v = (np.repeat(part, heads // kv_heads, axis=1) for part in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[2])
        scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        out = np.einsum("hij,jhd->ihd", softmax(scores), v)
        return self.linear(out.reshape(n, -1), f"{name}.o_proj")

    def mlp(self, x, gate, up, down):
        return self.linear(silu(self.linear(x, gate)) * self.linear(x, up), down)

    def mixture(self, x, name):
        scores = x @ self.tensor(f"{name}.gate").T
        chosen = self.config["num_experts_per_tok"]
        order = np.argsort(-scores, axis=1)
        if chosen < scores.shape[1]:
            ranked = np.take_along_axis(scores, order, axis=1)
            self.choice = min(self.choice, (ranked[:, chosen - 1] - ranked[:, chosen]).min())
        out = np.zeros_like(x)
        for row, experts in enumerate(order[:, :chosen]):
            for expert, share in zip(experts, softmax(scores[row, experts])):
                names = (f"{name}.experts.{expert}.w{i}" for i in (1, 3, 2))
                out[row] += share * self.mlp(x[row : row + 1], *names)[0]
        return out

    def logits(self, tokens):
        if self.head == "model.embed_tokens":
            x = self.weights[self.head][tokens]
        else:
            x = self.tensor("model.embed_tokens")[tokens]
        for i in range(self.config["num_hidden_layers"]):
            layer = f"model.layers.{i}"
            x = x + self.attention(self.norm(x, f"{layer}.input_layernorm"), layer)
            inner = self.norm(x, f"{layer}.post_attention_layernorm")
            if self.config["model_type"] == "mixtral":
                x = x + self.mixture(inner, f"{layer}.block_sparse_moe")
            else:
                names = (f"{layer}.mlp.{part}_proj" for part in ("gate", "up", "down"))
                x = x + self.mlp(inner, *names)
        return self.linear(self.norm(x, "model.norm"), self.head)


def effect(logits, other):
    return np.abs(other - logits).max() / np.abs(logits).max()


def make(path):
    folder = ROOT / path
    golden = load_file(folder / "golden.safetensors")
    noise = effect(golden["logits"], Model(folder).logits(golden["input_ids"]))
    if not noise < MAX_NOISE:
        sys.exit(f"{path}: the float model is off by {noise:.1e}")
    for i in itertools.count():
        generator = np.random.default_rng(zlib.crc32(f"{path}/int8_weights/{i}".encode()))
        model = Model(folder, quantize=True)
        tokens = generator.integers(0, model.config["vocab_size"], N_TOKENS)
        logits = model.logits(tokens)
        clear = model.margin > MIN_MARGIN and model.choice > MIN_CHOICE
        if clear and model.used == set(model.linears):
            break
    effects = {name: effect(logits, Model(folder, True, off=name).logits(tokens))
               for name in model.linears}
    weakest = min(effects, key=effects.get)
    if not effects[weakest] > MIN_EFFECT:
        sys.exit(f"{path}: 2 percent of {weakest} move the logits by {effects[weakest]:.1e} only")
    rounding = effect(logits, Model(folder).logits(tokens))
    print(f"{path:20} float {noise:7.1e}  int8 {rounding:7.1e}  margin {model.margin:7.1e}  "
          f"2 percent of {weakest} {effects[weakest]:7.1e}")
    return {"input_ids": tokens, "logits": logits.astype(np.float32)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare a fresh set with this one")
    options = parser.parse_args()
    for path in MODELS:
        fresh = make(path)
        file = FOLDER / f"{path}.safetensors"
        if not options.check:
            file.parent.mkdir(parents=True, exist_ok=True)
            save_file(fresh, file, {"made_with": f"numpy {np.__version__}"})
            file.chmod(0o644)
        elif any((load_file(file)[key] != fresh[key]).any() for key in fresh):
            sys.exit(f"{file} differs")


if __name__ == "__main__":
    main()
