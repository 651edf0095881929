#!/usr/bin/env python3
"""Makes tests/golden/eagle3: EAGLE-3 heads for goldens of tests/golden, and their logits.

transformers has no code for these heads, so they are defined here, in float64, a token and a head of
attention at a time, from the paper (arXiv 2503.01840) and from what published heads hold. At position
p the head reads the token there and the model's residual stream at p - 1, at three places, which
transformers computes:

    h = fc [low, middle, high]                      (nothing lies before p = 0, which has no key)
    pair = [norm(embedding of the token), norm(h)]
    x = h + attention(pair), which sees the head's keys at 1 .. p     (or norm(h) + ...)
    x = x + mlp(norm(x))
    lm_head norm(x) makes logits of the token at p + 1, over the tokens that the head knows

Behind the text, the next token is the model's likeliest. Each further one is the head's likeliest,
and h is the head's own x at the position before.

For each head there is a folder, with

  config.json, model.safetensors  as published heads have them; the three differ in names, types,
                                  widths and options
  golden.safetensors   input_ids  I64 [n_tokens], of the model's golden
                       logits     F32 [n_tokens, draft vocab], of the head at every position; 0 at the first
                       chain_ids  I64 [4], the tokens behind the text: those that are read
                       chain_logits  F32 [4, draft vocab]

Every tensor is replaced by a neutral one while they are made, and the logits must move.

  python tools/make_eagle3_goldens.py            writes tests/golden/eagle3
  python tools/make_eagle3_goldens.py --check    makes them again and compares
"""

import argparse
import json
import math
import shutil
import sys
import zlib

import numpy as np
import safetensors.torch
import torch
from golden_variant import MIN_EFFECT
from golden_variants import all_variants
from make_goldens import ROOT, be_reproducible, effect, load, made_with

FOLDER = ROOT / "eagle3"
CHAIN = 4
VOCAB = 51

COMMON = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "attention_bias": False,
    "hidden_act": "silu",
    "model_type": "llama",
    "num_hidden_layers": 1,
    "tie_word_embeddings": False,
    "use_cache": True,
    "vocab_size": VOCAB,
}
IDS = "eagle_aux_hidden_state_layer_ids"

# By name: the model, the type of the tensors, the layer's name, the places of the states in layers
# behind which they are read, and the config.
HEADS = {
    "llama": (
        "llama/gqa",
        torch.bfloat16,
        "midlayer.",
        (0, 1, 2),
        {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 128,
            "rms_norm_eps": 1e-5,
            "rope_theta": 500.0,
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            },
            "draft_vocab_size": 33,
            IDS: [0, 1, 2],
        },
    ),
    "qwen3": (
        "qwen3/layer_types",
        torch.float16,
        "midlayer.",
        (1, 2, 3),
        {
            "hidden_size": 24,
            "target_hidden_size": 32,
            "intermediate_size": 40,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "head_dim": 12,
            "max_position_embeddings": 128,
            "rms_norm_eps": 1e-6,
            "rope_theta": 1000000.0,
            "rope_scaling": None,
            "sliding_window": None,
            "norm_before_residual": True,
            "eagle_config": {IDS: [0, 1, 2], "use_aux_hidden_state": True},
        },
    ),
    "gpt_oss": (
        "gpt_oss/new_config",
        torch.float32,
        "layers.0.",
        (2, 1, 3),
        {
            "hidden_size": 32,
            "intermediate_size": 56,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 20,
            "max_position_embeddings": 128,
            "rms_norm_eps": 1e-5,
            "rope_theta": 150000.0,
            "draft_vocab_size": 21,
            "eagle_config": {IDS: [1, 0, 2]},
        },
    ),
}


def norm(x, gain, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * gain


def frequencies(config, dim):
    plain = [config["rope_theta"] ** (-2 * i / dim) for i in range(dim // 2)]
    scaling = config.get("rope_scaling")
    if not scaling:
        return plain
    turned = []
    for frequency in plain:
        turns = scaling["original_max_position_embeddings"] * frequency / (2 * math.pi)
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        kept = min(1.0, max(0.0, (turns - low) / (high - low)))
        turned.append(kept * frequency + (1 - kept) * frequency / scaling["factor"])
    return turned


class Head:
    """tensors: by their names without that of the layer, and without ".weight"."""

    def __init__(self, config, tensors):
        self.config, self.w = config, {name: t.double() for name, t in tensors.items()}
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.dim = config.get("head_dim") or config["hidden_size"] // self.heads
        self.frequencies = frequencies(config, self.dim)
        self.keys, self.values = {}, {}  # by position, [kv_heads] vectors

    def norm(self, x, name):
        return norm(x, self.w[name], self.config["rms_norm_eps"])

    def rotate(self, x, position):
        half = self.dim // 2
        result = x.clone()
        for i, frequency in enumerate(self.frequencies):
            cos, sin = math.cos(position * frequency), math.sin(position * frequency)
            result[i] = x[i] * cos - x[i + half] * sin
            result[i + half] = x[i + half] * cos + x[i] * sin
        return result

    def attention(self, pair, position):
        q = (self.w["self_attn.q_proj"] @ pair).view(self.heads, self.dim)
        k = (self.w["self_attn.k_proj"] @ pair).view(self.kv_heads, self.dim)
        v = (self.w["self_attn.v_proj"] @ pair).view(self.kv_heads, self.dim)
        self.keys[position] = [self.rotate(key, position) for key in k]
        self.values[position] = list(v)
        seen = range(1, position + 1)
        results = []
        for head in range(self.heads):
            query, group = self.rotate(q[head], position), head * self.kv_heads // self.heads
            scores = torch.stack([query @ self.keys[p][group] for p in seen]) / self.dim**0.5
            shares = torch.softmax(scores, 0)
            results.append(sum(s * self.values[p][group] for s, p in zip(shares, seen)))
        return self.w["self_attn.o_proj"] @ torch.cat(results)

    def step(self, embedding, h, position):
        s = self.norm(h, "hidden_norm")
        pair = torch.cat([self.norm(embedding, "input_layernorm"), s])
        x = s if self.config.get("norm_before_residual") else h
        x = x + self.attention(pair, position)
        y = self.norm(x, "post_attention_layernorm")
        gate = self.w["mlp.gate_proj"] @ y
        x = x + self.w["mlp.down_proj"] @ (gate * torch.sigmoid(gate) * (self.w["mlp.up_proj"] @ y))
        return x, self.w["lm_head"] @ self.norm(x, "norm")


def random_head(name, config, dtype):
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    wide = config.get("target_hidden_size", hidden)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    dim = config.get("head_dim") or hidden // heads
    shapes = {
        "fc": (hidden, 3 * wide),
        "self_attn.q_proj": (heads * dim, 2 * hidden),
        "self_attn.k_proj": (kv_heads * dim, 2 * hidden),
        "self_attn.v_proj": (kv_heads * dim, 2 * hidden),
        "self_attn.o_proj": (hidden, heads * dim),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
        "lm_head": (config.get("draft_vocab_size", VOCAB), hidden),
        "input_layernorm": (hidden,),
        "hidden_norm": (hidden,),
        "post_attention_layernorm": (hidden,),
        "norm": (hidden,),
    }
    if wide != hidden:
        shapes["embed_tokens"] = (VOCAB, hidden)
    tensors = {}
    for tensor, shape in shapes.items():
        random = np.random.default_rng(zlib.crc32(f"{name} {tensor}".encode()))
        values = random.standard_normal(shape)
        values = 1 + 0.3 * values if len(shape) == 1 else 1.6 * values / shape[-1] ** 0.5
        tensors[tensor] = torch.from_numpy(values).to(dtype)
    return tensors


def known_tokens(name, config):
    count = config.get("draft_vocab_size", VOCAB)
    random = np.random.default_rng(zlib.crc32(f"{name} tokens".encode()))
    return sorted(random.permutation(VOCAB)[:count].tolist())


def states_of(model, ids, places):
    """The residual stream [n_tokens, hidden] behind so many layers, for each place."""
    taken = {0: model.get_input_embeddings()(ids)}
    hooks = []
    for i, layer in enumerate(model.model.layers):

        def keep(_module, _inputs, output, behind=i + 1):
            taken[behind] = (output[0] if isinstance(output, tuple) else output).reshape(len(ids), -1)

        hooks.append(layer.register_forward_hook(keep))
    logits = model(input_ids=ids[None], use_cache=False).logits[0]
    for hook in hooks:
        hook.remove()
    return torch.cat([taken[place] for place in places], -1), logits


@torch.no_grad()
def run_head(states, embed, head, ids, tokens, first):
    """Returns logits at every position, the tokens of the chain, and their logits."""
    reduced = states @ head.w["fc"].T
    embed = head.w.get("embed_tokens", embed)
    logits = [torch.zeros(len(tokens), dtype=torch.float64)]
    for position in range(1, len(ids)):
        logits.append(head.step(embed[ids[position]], reduced[position - 1], position)[1])
    chain, chain_logits, h = [first], [], reduced[-1]
    for position in range(len(ids), len(ids) + CHAIN):
        h, made = head.step(embed[chain[-1]], h, position)
        chain_logits.append(made)
        chain.append(tokens[int(made.argmax())])
    return torch.stack(logits), torch.tensor(chain[:-1]), torch.stack(chain_logits)


def make(name, variants, folder):
    path, dtype, layer, places, own = HEADS[name]
    config = COMMON | own
    variant = variants[path]
    model = load(variant, ROOT / path).double()
    ids = safetensors.torch.load_file(ROOT / path / "golden.safetensors")["input_ids"]
    tensors, tokens = random_head(name, config, dtype), known_tokens(name, config)
    with torch.no_grad():
        states, of_model = states_of(model, ids, places)
        embed = model.get_input_embeddings().weight

    def run(weights):
        return run_head(states, embed, Head(config, weights), ids, tokens, int(of_model[-1].argmax()))

    logits, chain, chain_logits = run(tensors)
    smallest = []
    for tensor, values in tensors.items():
        neutral = torch.ones_like(values) if values.ndim == 1 else torch.zeros_like(values)
        moved = effect(logits, run(tensors | {tensor: neutral})[0])
        smallest.append((moved, tensor))
        if not moved > MIN_EFFECT:
            sys.exit(f"{name}: {tensor} moves the logits by {moved:.1e} only")
    moved = effect(logits, run_head(states.roll(states.shape[1] // 3, 1), embed, Head(config, tensors), ids, tokens, 0)[0])
    if not moved > MIN_EFFECT:
        sys.exit(f"{name}: the order of the states moves the logits by {moved:.1e} only")
    top = ("fc", "lm_head", "norm", "embed_tokens")
    stored = {f"{t if t in top else layer + t}.weight": v.contiguous() for t, v in tensors.items()}
    if len(tokens) < VOCAB:
        stored["d2t"] = torch.tensor([token - i for i, token in enumerate(tokens)])
        if name == "llama":
            stored["t2d"] = torch.tensor([token in tokens for token in range(VOCAB)])
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    safetensors.torch.save_file(stored, target / "model.safetensors", {"format": "pt"})
    safetensors.torch.save_file(
        {
            "input_ids": ids,
            "logits": logits.float(),
            "chain_ids": chain,
            "chain_logits": chain_logits.float(),
        },
        target / "golden.safetensors",
        {"made_with": made_with()},
    )
    for file in target.iterdir():
        file.chmod(0o644)
    print(f"{name:10} std {logits[1:].std():4.2f}  weakest {min(smallest)[1]} {min(smallest)[0]:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    be_reproducible()
    variants = {variant.path: variant for variant in all_variants()}
    folder = FOLDER.with_name("eagle3.fresh") if check else FOLDER
    for name in HEADS:
        make(name, variants, folder)
    if not check:
        return
    files = [file.relative_to(folder) for file in sorted(folder.glob("*/*"))]
    differ = [str(f) for f in files if (folder / f).read_bytes() != (FOLDER / f).read_bytes()]
    shutil.rmtree(folder)
    sys.exit(f"other bytes: {', '.join(differ)}" if differ else 0)


if __name__ == "__main__":
    main()
