#!/usr/bin/env python3
"""Makes tests/golden/int8_weights: the logits of every float golden under --weights int8.

The models are those of transformers, in float64, except for norms, softmaxes and rotations that they
widen or round to float32 themselves. Every linear layer is quantized by the formulas that godwit
documents (src/ops/quantize.h, src/ops/pack_weight.h), except routers, other gates of tokens, and the
layers that make keys and values of latent vectors or the weights of an index:

  weights   of an output, in float32, since that says which integers there are:
            scale = max|w| / 127, q = round(w * (127 / max|w|))
  inputs    of a token: scale = max|x| / 127, q = round(x / scale)

A tied embedding is the quantized head. Every text goes to every expert. No input lies near the middle
between two integers, and no choice of an expert is close. Thus float32 rounding, which differs from
one engine to another, leaves integers and choices as they are.

Every golden is checked while it is made: any one layer with half of its scales off by 2 percent moves
the logits by far more than golden_test.cc accepts. (A norm would undo the same change of all scales.)

  python tools/make_int8_weight_goldens.py            writes tests/golden/int8_weights
  python tools/make_int8_weight_goldens.py FAMILY...  of it, these
  python tools/make_int8_weight_goldens.py --check    makes them again and compares
"""

import argparse
import itertools
import shutil
import sys
import types
import zlib

import numpy as np
import safetensors.torch
import torch
import transformers
from golden_variants import all_variants
from make_goldens import (
    ROOT,
    be_reproducible,
    effect,
    linear_layers,
    load,
    made_with,
    run,
    twin_config,
)
from transformers.models.falcon.modeling_falcon import FalconLinear
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts
from transformers.models.llama4.modeling_llama4 import Llama4Router, Llama4TextExperts

FOLDER = ROOT / "int8_weights"
N_TOKENS = 12  # in a longer text some input nearly always lies closer
MIN_MARGIN = 1e-4  # in integers; float32 is off by some 1e-5 of them here
MIN_CHOICE = 1e-3  # between the scores of the last expert that is chosen and the next
MIN_EFFECT = 1e-3  # of the largest logit, of 2 percent in one layer; golden_test.cc accepts 5e-5

# Linear layers that stay as they are: of keys and values, and gates.
FLOAT_LAYERS = (
    "kv_b_proj",
    "mlp.router",
    "in_proj_ba",
    "in_proj_a",
    "in_proj_b",
    ".a_proj",  # OLMo Hybrid
    ".b_proj",
    "f_a_proj",  # Kimi Linear
    "f_b_proj",
    "shared_expert_gate",
    "modality_router",
    "prediction_coefs",
    "correction_coefs",
    "indexer.weights_proj",
)

# A product written out, which linear_layers() would not see.
FalconLinear.forward = torch.nn.Linear.forward


def quantized(weight):
    """[outputs, inputs] -> the same after quantization."""
    weight = weight.to(torch.float32)
    largest = weight.abs().amax(1, keepdim=True)
    # A number over a tensor would be the number times the tensor's reciprocal, rounded twice.
    integers = (weight * torch.div(torch.tensor(127.0), largest)).round()
    return integers.double() * (largest / 127).double()


def is_router(name, module):
    """Those of most families are no such layers."""
    return isinstance(module, Llama4Router) or name.endswith(("mlp.gate.wg", "router.proj"))


class Int8Model:
    """A model whose weights are quantized once, and whose inputs are quantized in every run."""

    def __init__(self, model):
        self.model = model.double()
        self.layers = {}  # name -> weight [outputs, inputs], a view
        self.float_weights = set()
        for name, module in model.named_modules():
            if name.endswith(FLOAT_LAYERS):
                self.float_weights.add(module.weight.data_ptr())
            elif isinstance(module, torch.nn.Linear) and not is_router(name, module):
                self.layers[name] = module.weight.detach()
        for name, parameter in model.named_parameters():
            if parameter.ndim == 3 and not name.endswith(("conv.weight", "conv1d.weight")):  # experts
                for i, expert in enumerate(parameter.detach()):
                    self.layers[f"{name}.{i}"] = expert
        for weight in self.layers.values():
            weight.copy_(quantized(weight))
        self.names = {weight.data_ptr(): name for name, weight in self.layers.items()}

    def run(self, tokens):
        self.margin, self.choice, self.used = 0.5, np.inf, set()
        with linear_layers(self._linear):
            return run(self.model, tokens)

    def _linear(self, linear, x, weight, bias):
        name = self.names.get(weight.data_ptr())
        if weight.data_ptr() in self.float_weights:
            return linear(x, weight, bias)
        if name is None:
            return self._route(linear(x, weight, bias))
        self.used.add(name)
        scale = x.abs().amax(-1, keepdim=True) / 127
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        x = x / scale
        self.margin = min(self.margin, (x - x.floor() - 0.5).abs().min().item())
        return linear(x.round() * scale, weight, bias)

    def _route(self, scores):
        config = self.model.config
        chosen = getattr(config, "num_experts_per_tok", None) or config.top_k_experts
        chosen = np.max(chosen)  # Hunyuan has one for each layer
        if chosen < scores.shape[-1]:
            ranked = scores.sort(-1, descending=True).values
            gap = (ranked[..., chosen - 1] - ranked[..., chosen]).min().item()
            self.choice = min(self.choice, gap)
        return scores

    def effects(self, tokens, logits):
        """name -> how far the logits move by 2 percent on every other scale of that layer."""
        effects = {}
        for name, weight in self.layers.items():
            if ".indexer." in name:  # what it chooses need not change
                continue
            saved = weight.clone()
            weight[::2] *= 1.02
            effects[name] = effect(logits, self.run(tokens))
            weight.copy_(saved)
        return effects


def gpt_oss_experts(self, x, router_indices, routing_weights):
    """gpt-oss's experts, with weights [experts, outputs, inputs]."""
    out = torch.zeros_like(x)
    for expert in range(self.num_experts):
        token, place = torch.where(router_indices == expert)
        if len(token) == 0:
            continue
        up = torch.nn.functional.linear(
            x[token], self.gate_up_proj[expert], self.gate_up_proj_bias[expert]
        )
        down = torch.nn.functional.linear(
            self._apply_gate(up), self.down_proj[expert], self.down_proj_bias[expert]
        )
        out.index_add_(0, token, down * routing_weights[token, place, None])
    return out


def llama4_experts(self, x):
    """Llama 4's experts, with weights [experts, outputs, inputs]: the router scales their rows."""
    out = []
    for expert, rows in enumerate(x.view(self.num_experts, -1, self.hidden_size)):
        up = torch.nn.functional.linear(rows, self.gate_up_proj[expert])
        gate, up = up.chunk(2, dim=-1)
        inner = up * self.act_fn(gate)
        out.append(torch.nn.functional.linear(inner, self.down_proj[expert]))
    return torch.cat(out)


EXPERTS = {GptOssExperts: gpt_oss_experts, Llama4TextExperts: llama4_experts}


def linearized(model):
    """The matrices of GPT-2 and of such experts transposed, as in other models."""
    for module in list(model.modules()):
        if type(module) in EXPERTS:
            for name in ("gate_up_proj", "down_proj"):
                weight = getattr(module, name).detach().transpose(1, 2).contiguous()
                setattr(module, name, torch.nn.Parameter(weight))
            module.forward = types.MethodType(EXPERTS[type(module)], module)
        for name, child in list(module.named_children()):
            if not isinstance(child, transformers.pytorch_utils.Conv1D):
                continue
            linear = torch.nn.Linear(*child.weight.shape)
            linear.weight.copy_(child.weight.T)
            linear.bias.copy_(child.bias)
            setattr(module, name, linear)
    return model


def make(variant):
    float_model = load(variant, ROOT / variant.path).eval()
    model = Int8Model(linearized(load(variant, ROOT / variant.path).eval()))
    for i in itertools.count():
        generator = np.random.default_rng(zlib.crc32(f"{variant.path}/int8_weights/{i}".encode()))
        vocab = twin_config(variant.config)["vocab_size"]
        tokens = torch.from_numpy(generator.integers(0, vocab, N_TOKENS))
        logits = model.run(tokens)
        margin = model.margin
        clear = margin > MIN_MARGIN and model.choice > MIN_CHOICE
        if not clear or len(model.used) < len(model.layers):
            continue
        effects = model.effects(tokens, logits)
        weakest = min(effects, key=effects.get)
        if effects[weakest] > MIN_EFFECT:
            break
    rounding = effect(logits, run(float_model.double(), tokens))
    print(f"{variant.path:38} int8 {rounding:7.1e}  margin {margin:7.1e}  text {i:4}  "
          f"2 percent of {weakest} {effects[weakest]:7.1e}", flush=True)
    return {"input_ids": tokens, "logits": logits.to(torch.float32).contiguous()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help="default: all")
    parser.add_argument("--check", action="store_true", help="compare a fresh set with this one")
    options = parser.parse_args()
    be_reproducible()
    torch.set_grad_enabled(False)
    variants = [v for v in all_variants() if not options.families or v.family in options.families]
    if not options.check:
        for variant in variants:
            shutil.rmtree(FOLDER / variant.family, ignore_errors=True)
    for variant in variants:
        fresh = make(variant)
        file = FOLDER / f"{variant.path}.safetensors"
        if not options.check:
            file.parent.mkdir(parents=True, exist_ok=True)
            safetensors.torch.save_file(fresh, file, {"made_with": made_with()})
            file.chmod(0o644)
            continue
        committed = safetensors.torch.load_file(file)
        # Another CPU may round float32 otherwise.
        if not (torch.equal(committed["input_ids"], fresh["input_ids"])
                and effect(committed["logits"], fresh["logits"]) < 1e-6):
            sys.exit(f"{file} differs")


if __name__ == "__main__":
    main()
