#!/usr/bin/env python3
"""Makes tests/golden/mtp: layers that predict tokens, for goldens of tests/golden, and their logits.

transformers has no code for these layers, so they are defined here, in float64, a token and a head at
a time, from the papers and from what published checkpoints hold (DeepSeek-V3, arXiv 2412.19437, section
2.2). At position p the layer reads the token there and the model's output at p - 1, behind the final
norm, which transformers computes:

    x = join [norm(embedding of the token), norm(output at p - 1)]      (zeros at p = 0)
    x = x + attention(norm(x)), which sees the layer's keys at 0 .. p
    x = x + experts(norm(x))
    output = norm(x), and the model's output head makes logits of the token at p + 1

Behind the text, the next token is the model's likeliest. Each further one is the layer's likeliest,
and the output at the position before is the layer's own.

For a golden FAMILY/VARIANT there is

  FAMILY.safetensors          the layer's tensors, as checkpoints name them: those of the model's last
                              layer with attention and experts, each in another order
  FAMILY.golden.safetensors   input_ids  I64 [n_tokens], of the golden
                              logits     F32 [n_tokens, vocab], of the layer at every position
                              chain_ids  I64 [4], the tokens behind the text: those that are read
                              chain_logits  F32 [4, vocab]

Every tensor is replaced by a neutral one while they are made, and the logits must move.

  python tools/make_mtp_goldens.py            writes tests/golden/mtp
  python tools/make_mtp_goldens.py --check    makes them again and compares
"""

import argparse
import json
import math
import sys
import zlib

import numpy as np
import safetensors.torch
import torch
from golden_variant import MIN_EFFECT
from golden_variants import all_variants
from make_goldens import ROOT, be_reproducible, effect, load, made_with

FOLDER = ROOT / "mtp"
GOLDENS = ("deepseek_v3/new_config", "glm4_moe/air", "qwen3_next/experts")
CHAIN = 4


def norm(x, gain, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * gain


def rotate(x, position, dim, theta, side_by_side):
    """Rotates the first `dim` numbers of a head."""
    result = x.clone()
    half = dim // 2
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if side_by_side else (i, i + half)
        angle = position * theta ** (-2 * i / dim)
        result[a] = x[a] * math.cos(angle) - x[b] * math.sin(angle)
        result[b] = x[b] * math.cos(angle) + x[a] * math.sin(angle)
    return result


class Layer:
    """tensors: of the layer, by their names behind its own; the others by what they are."""

    def __init__(self, config, tensors, gains_less_one):
        self.config, self.w = config, {name: t.double() for name, t in tensors.items()}
        self.theta = (config.get("rope_parameters") or config)["rope_theta"]
        self.less_one = 1.0 if gains_less_one else 0.0
        self.keys, self.values = [], []  # [positions][heads] vectors

    def norm(self, x, name):
        return norm(x, self.w[name] + self.less_one, self.config["rms_norm_eps"])

    def linear(self, x, name):
        y = self.w[f"{name}.weight"] @ x
        return y + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else y

    def mlp(self, x, name):
        gate = self.linear(x, f"{name}.gate_proj")
        return self.linear(gate * torch.sigmoid(gate) * self.linear(x, f"{name}.up_proj"), f"{name}.down_proj")

    def latent_qkv(self, x, position):
        c = self.config
        heads, plain, rotary = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"]
        rank, value = c["kv_lora_rank"], c["v_head_dim"]

        def turn(v):
            return rotate(v, position, rotary, self.theta, side_by_side=True)

        q = self.linear(x, "self_attn.q_a_proj")
        # transformers leaves these norms at 1e-6.
        q = norm(q, self.w["self_attn.q_a_layernorm.weight"], 1e-6)
        q = self.linear(q, "self_attn.q_b_proj").view(heads, plain + rotary)
        down = self.linear(x, "self_attn.kv_a_proj_with_mqa")
        latent = norm(down[:rank], self.w["self_attn.kv_a_layernorm.weight"], 1e-6)
        kv = self.linear(latent, "self_attn.kv_b_proj").view(heads, plain + value)
        common = turn(down[rank:])
        queries = [torch.cat([q[h, :plain], turn(q[h, plain:])]) for h in range(heads)]
        keys = [torch.cat([kv[h, :plain], common]) for h in range(heads)]
        return queries, keys, [kv[h, plain:] for h in range(heads)], None

    def plain_qkv(self, x, position):
        c = self.config
        heads, kv_heads, dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        rotary = int(dim * c["partial_rotary_factor"])
        q = self.linear(x, "self_attn.q_proj").view(heads, -1)
        k = self.linear(x, "self_attn.k_proj").view(kv_heads, dim)
        v = self.linear(x, "self_attn.v_proj").view(kv_heads, dim)
        gates = q[:, dim:] if q.shape[1] == 2 * dim else None
        q = q[:, :dim]
        if "self_attn.q_norm.weight" in self.w:
            q, k = self.norm(q, "self_attn.q_norm.weight"), self.norm(k, "self_attn.k_norm.weight")

        def turn(v):
            return rotate(v, position, rotary, self.theta, side_by_side=False)

        queries = [turn(q[h]) for h in range(heads)]
        keys = [turn(k[h * kv_heads // heads]) for h in range(heads)]
        return queries, keys, [v[h * kv_heads // heads] for h in range(heads)], gates

    def attention(self, x, position):
        latent = "kv_lora_rank" in self.config
        queries, keys, values, gates = (self.latent_qkv if latent else self.plain_qkv)(x, position)
        del self.keys[position:], self.values[position:]
        self.keys.append(keys)
        self.values.append(values)
        results = []
        for head, query in enumerate(queries):
            scores = torch.stack([query @ past[head] for past in self.keys]) / len(query) ** 0.5
            shares = torch.softmax(scores, 0)
            result = sum(share * past[head] for share, past in zip(shares, self.values))
            results.append(result if gates is None else result * torch.sigmoid(gates[head]))
        return self.linear(torch.cat(results), "self_attn.o_proj")

    def shares(self, x):
        """The chosen experts, and the share of each."""
        c = self.config
        scores = self.w["mlp.gate.weight"] @ x
        if "mlp.gate.e_score_correction_bias" not in self.w:
            scores = torch.softmax(scores, 0)
            chosen = scores.topk(c["num_experts_per_tok"]).indices.tolist()
            total = sum(scores[i] for i in chosen) if c["norm_topk_prob"] else 1.0
            return [(i, scores[i] / total) for i in chosen]
        scores = torch.sigmoid(scores)
        choice = scores + self.w["mlp.gate.e_score_correction_bias"]
        groups = choice.view(c["n_group"], -1)
        of_group = groups.topk(min(2, groups.shape[1])).values.sum(-1)
        best = set(of_group.topk(c["topk_group"]).indices.tolist())
        allowed = [i for i in range(len(choice)) if i // groups.shape[1] in best]
        chosen = sorted(allowed, key=lambda i: -choice[i])[: c["num_experts_per_tok"]]
        total = sum(scores[i] for i in chosen) if c["norm_topk_prob"] else 1.0
        return [(i, scores[i] / total * c["routed_scaling_factor"]) for i in chosen]

    def experts(self, x):
        result = sum(share * self.mlp(x, f"mlp.experts.{i}") for i, share in self.shares(x))
        if "mlp.shared_expert_gate.weight" in self.w:
            share = torch.sigmoid(self.w["mlp.shared_expert_gate.weight"][0] @ x)
            return result + share * self.mlp(x, "mlp.shared_expert")
        return result + self.mlp(x, "mlp.shared_experts")

    def step(self, embedding, before, position):
        pair = [self.norm(embedding, "embedding_norm"), self.norm(before, "output_norm")]
        x = self.w["join"] @ torch.cat(pair)
        x = x + self.attention(self.norm(x, "input_layernorm.weight"), position)
        x = x + self.experts(self.norm(x, "post_attention_layernorm.weight"))
        return self.norm(x, "norm")


def names_of(family, layers):
    """The layer's beginning, and the names of its other tensors."""
    if family.startswith("qwen"):
        return "mtp.layers.0.", {
            "embedding_norm": "mtp.pre_fc_norm_embedding.weight",
            "output_norm": "mtp.pre_fc_norm_hidden.weight",
            "join": "mtp.fc.weight",
            "norm": "mtp.norm.weight",
        }
    layer = f"model.layers.{layers}."
    return layer, {
        "embedding_norm": layer + "enorm.weight",
        "output_norm": layer + "hnorm.weight",
        "join": layer + "eh_proj.weight",
        "norm": layer + "shared_head.norm.weight",
    }


def shuffled(tensor, name):
    order = np.random.default_rng(zlib.crc32(name.encode())).permutation(tensor.numel())
    return tensor.flatten()[torch.from_numpy(order)].view(tensor.shape).clone()


def layer_tensors(state, config, names):
    """By the names that Layer has."""
    source = f"model.layers.{config['num_hidden_layers'] - 1}."
    tensors = {}
    for name, tensor in state.items():
        if name.startswith(source):
            tensors[name.removeprefix(source)] = shuffled(tensor, "mtp " + name)
    gains = tensors["input_layernorm.weight"]
    for name in ("embedding_norm", "output_norm", "norm"):
        tensors[name] = shuffled(gains, name)
    hidden = config["hidden_size"]
    join = np.random.default_rng(1).standard_normal((hidden, 2 * hidden), dtype="f4")
    tensors["join"] = torch.from_numpy(1.3 * join / (2 * hidden) ** 0.5).to(gains.dtype)
    return tensors


@torch.no_grad()
def run_layer(model, layer, ids):
    """Returns logits at every position, the tokens of the chain, and their logits."""
    model = model.double()
    outputs = model.model(input_ids=ids[None], use_cache=False).last_hidden_state[0]
    embed, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    logits = []
    before = torch.zeros_like(outputs[0])
    for position, token in enumerate(ids.tolist()):
        logits.append(head @ layer.step(embed[token], before, position))
        before = outputs[position]
    chain, chain_logits = [int((head @ before).argmax())], []
    for position in range(len(ids), len(ids) + CHAIN):
        before = layer.step(embed[chain[-1]], before, position)
        chain_logits.append(head @ before)
        chain.append(int(chain_logits[-1].argmax()))
    return torch.stack(logits), torch.tensor(chain[:-1]), torch.stack(chain_logits)


def check_teeth(model, config, tensors, less_one, ids, logits):
    smallest = []
    for name, tensor in tensors.items():
        gain = tensor.ndim == 1 and "norm" in name
        neutral = torch.full_like(tensor, (0.0 if less_one else 1.0) if gain else 0.0)
        other = Layer(config, tensors | {name: neutral}, less_one)
        moved = effect(logits, run_layer(model, other, ids)[0])
        smallest.append((moved, name))
        if not moved > MIN_EFFECT:
            sys.exit(f"{config['model_type']}: {name} moves the logits by {moved:.1e} only")
    return min(smallest)


def make(variant, folder):
    config = json.loads((ROOT / variant.path / "config.json").read_text())
    state = safetensors.torch.load_file(ROOT / variant.path / "model.safetensors")
    ids = safetensors.torch.load_file(ROOT / variant.path / "golden.safetensors")["input_ids"]
    model = load(variant, ROOT / variant.path)
    beginning, names = names_of(variant.family, config["num_hidden_layers"])
    tensors = layer_tensors(state, config, names)
    less_one = variant.family.startswith("qwen")
    logits, chain, chain_logits = run_layer(model, Layer(config, tensors, less_one), ids)
    weakest = check_teeth(model, config, tensors, less_one, ids, logits)
    folder.mkdir(parents=True, exist_ok=True)
    stored = {names.get(name, beginning + name): t.contiguous() for name, t in tensors.items()}
    safetensors.torch.save_file(stored, folder / f"{variant.family}.safetensors", {"format": "pt"})
    safetensors.torch.save_file(
        {
            "input_ids": ids,
            "logits": logits.float(),
            "chain_ids": chain,
            "chain_logits": chain_logits.float(),
        },
        folder / f"{variant.family}.golden.safetensors",
        {"made_with": made_with()},
    )
    for file in folder.iterdir():
        file.chmod(0o644)
    print(f"{variant.path:30} std {logits.std():4.2f}  weakest {weakest[1]} {weakest[0]:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    be_reproducible()
    variants = {variant.path: variant for variant in all_variants()}
    folder = FOLDER.with_name("mtp.fresh") if check else FOLDER
    for path in GOLDENS:
        make(variants[path], folder)
    if not check:
        return
    differ = [f.name for f in sorted(folder.iterdir()) if f.read_bytes() != (FOLDER / f.name).read_bytes()]
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    sys.exit(f"other bytes: {', '.join(differ)}" if differ else 0)


if __name__ == "__main__":
    main()
