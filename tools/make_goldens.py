#!/usr/bin/env python3
"""Makes the golden checkpoints in tests/golden: tiny random models and their logits.

Each folder tests/golden/<family>/<variant>/ holds

  config.json           as published checkpoints write it ("classic"), or as the pinned transformers
                        writes it ("new": `rope_parameters`, `dtype`, `layer_types`)
  model.safetensors     (or shards and model.safetensors.index.json) the random weights
  golden.safetensors    input_ids  I64 [n_tokens]
                        logits     F32 [n_tokens, vocab_size]

The logits are Hugging Face's: one forward pass over the whole sequence, float32 arithmetic, eager
attention, no cache, weights exactly as stored, bf16 and f16 widened to float32. Most weights are
stored in bf16, which an engine must widen as well (`stored` and `dtype` in index.json differ): a file
of half the size tests float32 arithmetic just as well. Some variants are stored in float32. Gemma's
embeddings are scaled by the scale rounded to the stored type. Two mistakes of transformers 5.23 are
avoided:
  falcon    with ALiBi has its attention from torch ("sdpa", which is the default): the eager code
            adds the bias twice, once to the scores and once with the causal mask;
  mpt       follows alibi_bias_max as MPT's own code does; transformers leaves it at 8.
Where an index chooses keys of the best scores, the earlier one of equals is chosen; torch.topk leaves
that open.

How to read the variants whose rotary frequencies depend on a length:
  dynamic   the rotary base is computed for the length of the whole sequence, since it was seen in
            one shot. `context` in index.json is that length; an engine that fixes the base for a
            context must be told this one. Where n_tokens <= max_position_embeddings the scaling is
            inactive, `context` is absent and the base is rope_theta.
  yarn, llama3, linear
            do not depend on the length of the sequence; they apply from the first token.

The goldens are only worth something if a wrong engine fails them, so every variant is checked
while it is made:
  * every single parameter tensor matters: neutralising it (norm weight 1, bias 0, matrix 0) moves
    the logits by far more than the tests' tolerance;
  * every contrast matters: the configuration values that the variant is about are replaced by
    another value, with the same weights, and the logits must move;
  * the folder as written, loaded again with from_pretrained, gives the same bits;
  * arithmetic in float64 agrees to a small fraction of the tolerance.

  python tools/make_goldens.py             writes tests/golden
  python tools/make_goldens.py FAMILY...   of it, these
  python tools/make_goldens.py --check     makes them again elsewhere and compares

Runs are reproducible to the byte on one machine; another CPU may round logits differently, which
--check reports apart. The variants are listed in golden_variants*.py, the versions pinned in
requirements-goldens.txt.
"""

import argparse
import copy
import filecmp
import json
import os
import shutil
import sys
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

sys.path.insert(0, str(Path(__file__).resolve().parent / "pretrain"))

import numpy as np
import safetensors.torch
import softmax1  # noqa: F401  registers it
import torch
import transformers
from golden_published import PUBLISHED
from golden_variant import TOLERANCE, merged
from golden_variants import all_variants
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.deepseek_v32.modeling_deepseek_v32 import DeepseekV32Indexer
from transformers.models.glm_moe_dsa.modeling_glm_moe_dsa import GlmMoeDsaIndexer
from transformers.models.mistral4 import Mistral4Config, Mistral4ForCausalLM
from transformers.models.mpt import modeling_mpt

ROOT = Path(__file__).resolve().parent.parent / "tests" / "golden"

# A golden's own rounding must stay below a tenth of the tests' tolerance.
MAX_NOISE = TOLERANCE / 10

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


# ---------------------------------------------------------------------------------------------
# Tensors that are in real files and mean nothing


def redundant_head(variant, state):
    return {"lm_head.weight": state["model.embed_tokens.weight"].clone()}


def llama_inv_freq(variant, state):
    # Deliberately wrong numbers: an engine that used them would fail.
    return {
        f"model.layers.{i}.self_attn.rotary_emb.inv_freq": torch.linspace(1.0, 0.5, 4)
        for i in range(variant.config["num_hidden_layers"])
    }


def neox_masks(variant, state):
    config = variant.config
    length = config["max_position_embeddings"]
    rotary = int(config["hidden_size"] // config["num_attention_heads"] * config["rotary_pct"])
    result = {}
    for i in range(config["num_hidden_layers"]):
        prefix = f"gpt_neox.layers.{i}.attention."
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        result[prefix + "bias"] = mask.reshape(1, 1, length, length)
        result[prefix + "masked_bias"] = torch.tensor(-1e9)
        result[prefix + "rotary_emb.inv_freq"] = torch.linspace(1.0, 0.5, rotary // 2)
    return result


def bare_model(variant, state):
    """Names of tensors in checkpoints of the model without its head."""
    prefix = {"opt": "model.", "bloom": "transformer."}[variant.family]
    return {name.removeprefix(prefix): state.pop(name) for name in list(state)}


def gpt2_first_names(variant, state):
    """As the first files name them, with the causal mask of every layer."""
    first = {name.removeprefix("transformer."): state.pop(name) for name in list(state)}
    length = variant.config["n_positions"]
    mask = torch.ones(length, length).tril().reshape(1, 1, length, length)
    return first | {f"h.{i}.attn.bias": mask.clone() for i in range(variant.config["n_layer"])}


# Some tensors of a vision part.
VISION = {
    "multi_modal_projector.mm_input_projection_weight": torch.ones(8, 32),
    "vision_tower.vision_model.embeddings.patch_embedding.weight": torch.ones(8, 3, 2, 2),
    "vision_tower.vision_model.post_layernorm.bias": torch.ones(8),
}


def vision_of(family):
    """Llama 4 has no tower around it."""
    old = "vision_tower." if family == "llama4" else ""
    return {name.removeprefix(old): tensor for name, tensor in VISION.items()}


def beside_vision(variant, state):
    """The text model under the names that published files of the whole one have."""
    text = {f"language_model.{name}": state.pop(name) for name in list(state)}
    return text | vision_of(variant.family)


def within_whole(variant, state):
    """As transformers has named it since 4.52."""

    def whole(name):
        return name.replace("model.", "model.language_model.", 1)

    text = {whole(name): state.pop(name) for name in list(state)}
    return text | {f"model.{name}": tensor.clone() for name, tensor in VISION.items()}


def within_gemma4(variant, state):
    """As Gemma 4 has been published, beside modules that see and hear."""
    others = {f"model.{module}.embedding_projection.weight": torch.ones(8, 8) for module in ("embed_vision", "embed_audio")}
    return within_whole(variant, state) | others | {"model.audio_tower.output_proj.bias": torch.ones(8)}


def unused_keys(variant, state):
    """Published files keep projections of layers that read other layers' keys. Wrong ones, here."""
    names = [name for name in state if name.startswith("model.layers.1.self_attn.") and ".o_" not in name]
    return {name.replace("layers.1", "layers.3"): torch.ones_like(state[name]) for name in names if ".q_" not in name}


def within_qwen(variant, state):
    """As Qwen3.5 has been published: matrices of all experts in one tensor, its vision part, and the
    layer behind the last one."""
    whole = {}
    for name in list(state):
        tensor = state.pop(name)
        before, experts, after = name.partition(".experts.")
        if experts:
            name = before + experts + after.split(".")[1]
        whole.setdefault(name.replace("model.", "model.language_model.", 1), []).append(tensor)
    for name, parts in list(whole.items()):
        if name.endswith(".gate_proj") and ".experts." in name:
            up = whole.pop(name.replace("gate_proj", "up_proj"))
            gate_up = [torch.cat(pair) for pair in zip(whole.pop(name), up)]
            whole[name.replace("gate_proj", "gate_up_proj")] = gate_up
    text = {n: torch.stack(p) if ".experts." in n else p[0] for n, p in whole.items()}
    return text | {
        "model.visual.patch_embed.proj.weight": torch.ones(8, 3, 2, 2),
        "mtp.norm.weight": torch.ones(8),
    }


SEES = {
    "audio_tower",
    "embed_audio",
    "embed_vision",
    "mtp",
    "multi_modal_projector",
    "vision_model",
    "vision_tower",
    "visual",
}


def text_of_whole(state):
    """The text model of either, under its own names."""
    text = {}
    for name, tensor in state.items():
        if name.removeprefix("model.").split(".")[0] not in SEES:
            text[name.replace("model.language_model.", "model.").removeprefix("language_model.")] = tensor
    return text


EXTRAS = {
    f.__name__: f
    for f in (
        redundant_head,
        llama_inv_freq,
        neox_masks,
        bare_model,
        gpt2_first_names,
        beside_vision,
        within_whole,
        within_qwen,
        within_gemma4,
        unused_keys,
    )
}


# ---------------------------------------------------------------------------------------------
# Models


def falcon_twin(config):
    """The first Falcon checkpoints, by the defaults of the code that came with them."""
    grouped = config["model_type"] == "RefinedWeb"
    return merged(
        config,
        {
            "architectures": ["FalconForCausalLM"],
            "model_type": "falcon",
            "num_attention_heads": config["n_head"],
            "num_hidden_layers": config["n_layer"],
            "num_kv_heads": config.get("n_head_kv"),
            "new_decoder_architecture": grouped,
            "multi_query": config.get("multi_query", False),
            "parallel_attn": config.get("parallel_attn", False),
        },
    )


def twin_config(config):
    """The configuration with which transformers can run it: InternLM2 is a Llama, Kimi K2 a DeepSeek."""
    if "text_config" in config:
        return config["text_config"]
    if config["model_type"].startswith("RefinedWeb"):
        return falcon_twin(config)
    if config["model_type"] == "kimi_k2":
        return merged(config, {"model_type": "deepseek_v3"})
    if config["model_type"] != "internlm2":
        return config
    return merged(
        config,
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "attention_bias": config["bias"],
            "mlp_bias": False,
            "bias": ...,
        },
    )


def configured_alibi(model, num_heads, sequence_length, device=None):
    bias_max = model.config.attn_config.alibi_bias_max
    return modeling_mpt.build_mpt_alibi_tensor(num_heads, sequence_length, bias_max, device)


modeling_mpt.MptModel.build_mpt_alibi_tensor = configured_alibi


def by_position(forward):
    """An indexer whose choice among equal scores is the earlier key: topk leaves it open."""

    def topk(scores, k, dim):
        ranked = scores.sort(stable=True, dim=dim, descending=True)
        return SimpleNamespace(indices=ranked.indices[..., :k])

    def ordered(self, *args, **kwargs):
        usual, torch.Tensor.topk = torch.Tensor.topk, topk
        try:
            return forward(self, *args, **kwargs)
        finally:
            torch.Tensor.topk = usual

    return ordered


for indexer in (DeepseekV32Indexer, GlmMoeDsaIndexer):
    indexer.forward = by_position(indexer.forward)


def attention_of(config):
    """Every softmax written out; "softmax1" is our own field, which transformers does not read."""
    if twin_config(config)["model_type"] == "falcon" and config.get("alibi"):
        return "sdpa"
    return "softmax1" if config.get("attention_sink") == "softmax1" else "eager"


def implementations(config):
    """Everything written out; the default for experts has neither float64 nor odd sizes."""
    return {"attn_implementation": attention_of(config), "experts_implementation": "eager"}


# transformers knows it as a part of Mistral 3 alone.
AutoModelForCausalLM.register(Mistral4Config, Mistral4ForCausalLM, exist_ok=True)


def hf_config_of(config):
    fields = copy.deepcopy(twin_config(config))
    return AutoConfig.for_model(fields.pop("model_type"), **fields)


def build(config):
    model = AutoModelForCausalLM.from_config(hf_config_of(config), **implementations(config))
    return model.to(torch.float32).eval()


def query_key_rows(values, config):
    """The rows of queries and keys of a fused q, k, v weight, as a view."""
    if config["model_type"] == "mpt":
        return values[: 2 * config["d_model"]]
    if config["model_type"] == "gpt2":  # [inputs, outputs]
        return values[:, : 2 * config["n_embd"]]
    if config["model_type"] == "phi3":
        head_dim = config["hidden_size"] // config["num_attention_heads"]
        heads = config["num_attention_heads"] + config["num_key_value_heads"]
        return values[: heads * head_dim]
    config = twin_config(config)
    heads = kv_heads = config["n_head" if "n_head" in config else "num_attention_heads"]
    if config["model_type"] == "falcon":
        if config.get("new_decoder_architecture"):
            kv_heads = config.get("num_kv_heads") or heads
        elif config.get("multi_query", True):
            kv_heads = 1
    # By KV head: its queries, its key, its value.
    return values.view(kv_heads, heads // kv_heads + 2, -1, values.shape[1])[:, :-1]


def neutral_gain(variant, name):
    """The gain of a norm, as it is stored. Qwen's norm behind a recurrent layer stores it whole."""
    less_one = variant.family.startswith(("gemma", "qwen3_next", "qwen3_5"))
    less_one &= not variant.family.startswith(("gemma3n", "gemma4"))
    return 0.0 if less_one and not name.endswith("linear_attn.norm.weight") else 1.0


def is_gain(name, parameter):
    return not name.endswith(".bias") and (parameter.ndim == 1 or "norm" in name)


def random_weights(model, variant):
    """Gives every tensor values that matter: order 1 logits, uneven attention, no neutral norms."""

    def draw(name, shape):
        # One stream per tensor, so that adding a variant or a tensor changes no other file.
        key = zlib.crc32(f"{variant.path}/{name}".encode())
        return torch.from_numpy(np.random.default_rng(key).standard_normal(shape, dtype="f4"))

    embedding = model.get_input_embeddings().weight
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = draw(name, tuple(parameter.shape))
            if parameter is embedding:
                values *= 0.3
            elif name.endswith("e_score_correction_bias"):  # ERNIE's, a matrix of one row
                values *= 0.1
            elif name.endswith(".bias"):
                values *= 0.3
            elif name.endswith(".A_log"):
                values -= 2.0  # states that remember some tokens
            elif is_gain(name, parameter):
                values = neutral_gain(variant, name) + 0.3 * values
                if variant.family.startswith(("gemma3n", "gemma4")) and name.endswith("q_norm.weight"):
                    values *= 0.5  # scores have no scale of their own
            else:
                transposed = variant.family == "gpt2" and "transformer.h." in name
                inputs = parameter.shape[0 if transposed else -1]
                values *= (2.0 if "lm_head" in name else 1.3) / inputs**0.5
                if "q_proj" in name or "k_proj" in name:
                    values *= variant.score_gain / 1.3
                if any(part in name for part in ("query_key_value", "Wqkv", "qkv_proj", "c_attn")):
                    query_key_rows(values, variant.config).mul_(variant.score_gain / 1.3)
            parameter.copy_(values)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(0.1 * draw(name, tuple(buffer.shape)))
            elif name.endswith("layer_scalar"):
                buffer.copy_(1 + 0.3 * draw(name, tuple(buffer.shape)))


def random_tokens(variant):
    generator = np.random.default_rng(zlib.crc32(f"{variant.path}/input_ids".encode()))
    vocab = twin_config(variant.config)["vocab_size"]
    tokens = generator.integers(0, vocab, variant.n_tokens)
    tokens[3], tokens[5] = 0, vocab - 1  # the first and last rows of the tables
    return torch.from_numpy(tokens)


@torch.no_grad()
def run(model, tokens):
    logits = model(input_ids=tokens[None], use_cache=False).logits[0]
    assert torch.isfinite(logits).all()
    return logits


@contextmanager
def linear_layers(patched):
    """Every product with a weight goes through patched(linear, x, weight, bias)."""
    linear = torch.nn.functional.linear
    torch.nn.functional.linear = lambda x, w, b=None: patched(linear, x, w, b)
    try:
        yield
    finally:
        torch.nn.functional.linear = linear


def effect(logits, other):
    return ((logits - other).abs().max() / logits.abs().max()).item()


# ---------------------------------------------------------------------------------------------
# InternLM2's layout


def fuse_internlm2(state, config):
    """Llama tensors under InternLM2's names, with q, k and v fused.

    wqkv's rows go by key/value head: the rows of that group's query heads, then the key head,
    then the value head, each head_dim rows.
    """
    names = {
        "model.embed_tokens.weight": "model.tok_embeddings.weight",
        "lm_head.weight": "output.weight",
        ".self_attn.o_proj.": ".attention.wo.",
        ".input_layernorm.": ".attention_norm.",
        ".post_attention_layernorm.": ".ffn_norm.",
        ".mlp.gate_proj.": ".feed_forward.w1.",
        ".mlp.up_proj.": ".feed_forward.w3.",
        ".mlp.down_proj.": ".feed_forward.w2.",
    }
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    kv_heads = config["num_key_value_heads"]
    group = config["num_attention_heads"] // kv_heads
    fused = {}
    for name, tensor in state.items():
        if ".k_proj." in name or ".v_proj." in name:
            continue
        if ".q_proj." in name:
            q = tensor.split(head_dim)
            k = state[name.replace("q_proj", "k_proj")].split(head_dim)
            v = state[name.replace("q_proj", "v_proj")].split(head_dim)
            rows = []
            for g in range(kv_heads):
                rows += [*q[g * group : (g + 1) * group], k[g], v[g]]
            fused[name.replace("self_attn.q_proj", "attention.wqkv")] = torch.cat(rows)
            continue
        for old, new in names.items():
            name = name.replace(old, new)
        fused[name] = tensor.contiguous()
    return fused


def unfuse_internlm2(fused, config):
    """The way back, written on its own in terms of views, so that the two check each other."""
    kv_heads = config["num_key_value_heads"]
    per_group = config["num_attention_heads"] // kv_heads + 2
    names = {
        "tok_embeddings": "embed_tokens",
        "attention.wo": "self_attn.o_proj",
        "attention_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "feed_forward.w1": "mlp.gate_proj",
        "feed_forward.w3": "mlp.up_proj",
        "feed_forward.w2": "mlp.down_proj",
        "output.weight": "lm_head.weight",
    }
    state = {}
    for name, tensor in fused.items():
        if "wqkv" in name:
            rest = tensor.shape[1:]
            grouped = tensor.reshape(kv_heads, per_group, -1, *rest)
            parts = {"q_proj": grouped[:, :-2], "k_proj": grouped[:, -2], "v_proj": grouped[:, -1]}
            for part, rows in parts.items():
                key = name.replace("attention.wqkv", f"self_attn.{part}")
                state[key] = rows.reshape(-1, *rest)
            continue
        for old, new in names.items():
            name = name.replace(old, new)
        state[name] = tensor
    return state


# ---------------------------------------------------------------------------------------------
# Making one folder


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def save(model, variant, folder):
    """Writes config and weights; leaves the model with the weights as stored, in float32."""
    dtype = DTYPES[variant.stored_dtype]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(dtype))
        for name, buffer in model.named_buffers():
            if name in model.state_dict():
                buffer.copy_(buffer.to(dtype))
    # A copy, since .to() would round the model's rotary frequencies too.
    stored = copy.deepcopy(model).to(dtype)
    folder.mkdir(parents=True)
    if variant.family == "internlm2":
        fused = fuse_internlm2(stored.state_dict(), variant.config)
        safetensors.torch.save_file(fused, folder / "model.safetensors", {"format": "pt"})
    else:
        sharding = {"max_shard_size": variant.max_shard_size} if variant.max_shard_size else {}
        stored.save_pretrained(folder, **sharding)
        (folder / "generation_config.json").unlink(missing_ok=True)
    if variant.family in PUBLISHED:
        file = folder / "model.safetensors"
        tensors = PUBLISHED[variant.family](variant, safetensors.torch.load_file(file))
        safetensors.torch.save_file(tensors, file, {"format": "pt"})
    if variant.extra:
        file = folder / "model.safetensors"
        tensors = safetensors.torch.load_file(file)
        tensors |= EXTRAS[variant.extra](variant, tensors)
        safetensors.torch.save_file(tensors, file, {"format": "pt"})
    if not variant.new_style:
        config = copy.deepcopy(variant.config)
        if "torch_dtype" in config:
            config["torch_dtype"] = variant.stored_dtype
        write_json(folder / "config.json", config)


def round_embedding_scale(model, variant):
    """The scales of Gemma's embeddings in a model that computes in the stored type."""
    for module in model.modules():
        scale = getattr(module, "embed_scale", None)
        if isinstance(scale, torch.Tensor):
            scale.copy_(scale.to(DTYPES[variant.stored_dtype]))
    return model


def load(variant, folder):
    return round_embedding_scale(load_float32(variant, folder), variant)


def load_float32(variant, folder):
    """The folder as any user of transformers would load it, in float32."""
    if variant.family == "internlm2":
        config = json.loads((folder / "config.json").read_text())
        fused = safetensors.torch.load_file(folder / "model.safetensors")
        model = build(config)
        model.load_state_dict(unfuse_internlm2(fused, config))
        return model
    if variant.family.startswith("RefinedWeb"):
        model = build(json.loads((folder / "config.json").read_text()))
        state = safetensors.torch.load_file(folder / "model.safetensors")
        assert model.load_state_dict(state, strict=False).missing_keys == ["lm_head.weight"]  # tied
        return model
    if "text_config" in variant.config:
        state = safetensors.torch.load_file(folder / "model.safetensors")
        model = build(json.loads((folder / "config.json").read_text()))
        missing = model.load_state_dict(text_of_whole(state), strict=False).missing_keys
        assert missing == (["lm_head.weight"] if model.config.tie_word_embeddings else [])
        return model
    # Kimi K2's config names code of its own.
    twin = {"config": hf_config_of(variant.config)} if variant.family == "kimi_k2" else {}
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, **implementations(variant.config), **twin
    ).eval()


def parts_that_matter(model, variant):
    """(name, view) of every parameter, the experts one by one."""
    for name, parameter in model.named_parameters():
        if variant.family == "opt" and name.endswith("k_proj.bias"):
            continue  # the same for every key of a query where positions do not rotate it
        if parameter.ndim == 3 and not name.endswith("conv1d.weight"):
            yield from ((f"{name}[{i}]", expert) for i, expert in enumerate(parameter.detach()))
        else:
            yield name, parameter.detach()


def check_teeth(model, variant, tokens, logits):
    """Returns (smallest effect of a parameter, smallest effect of a contrast)."""
    weakest = []
    for name, parameter in parts_that_matter(model, variant):
        saved = parameter.clone()
        neutral = neutral_gain(variant, name) if is_gain(name, parameter) else 0.0
        parameter.fill_(neutral)
        weakest.append((effect(logits, run(model, tokens)), name))
        parameter.copy_(saved)
    contrasts = []
    for overrides in variant.contrasts:
        other = build(merged(variant.config, overrides))
        other.load_state_dict(model.state_dict())
        contrasts.append((effect(logits, run(other, tokens)), str(overrides)))
    for size, what in weakest + contrasts:
        if not size > variant.min_effect:
            sys.exit(f"{variant.path}: {what} moves the logits by {size:.1e} only")
    return min(weakest)[0], min(contrasts)[0] if contrasts else None


def made_with(*others):
    packages = (transformers, torch, *others)
    return ", ".join(f"{p.__name__.replace('_', '-')} {p.__version__}" for p in packages)


def save_logits(folder, tokens, logits, *packages):
    """Writes the last file of a golden. packages: its makers besides transformers and torch."""
    safetensors.torch.save_file(
        {"input_ids": tokens, "logits": logits.contiguous()},
        folder / "golden.safetensors",
        {"made_with": made_with(*packages)},
    )
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes for its owner only


def make(variant, root):
    model = build(variant.config)
    random_weights(model, variant)
    folder = root / variant.path
    save(model, variant, folder)
    round_embedding_scale(model, variant)

    tokens = random_tokens(variant)
    logits = run(model, tokens)
    if not torch.equal(logits, run(load(variant, folder), tokens)):
        sys.exit(f"{variant.path}: the folder as written does not give the same logits")
    parameter_effect, contrast_effect = check_teeth(model, variant, tokens, logits)
    noise = effect(logits.double(), run(copy.deepcopy(model).double(), tokens))
    if noise > MAX_NOISE:
        sys.exit(f"{variant.path}: float32 rounding alone moves the logits by {noise:.1e}")

    save_logits(folder, tokens, logits)
    size = sum(file.stat().st_size for file in folder.iterdir())
    contrast = f"{contrast_effect:8.1e}" if contrast_effect else "       -"
    print(
        f"{variant.path:38} {size / 1024:6.1f} KiB  std {logits.std():4.2f}  "
        f"noise {noise:7.1e}  weakest parameter {parameter_effect:7.1e}  contrast {contrast}"
    )

    entry = {
        "path": variant.path,
        "family": variant.family,
        "n_tokens": variant.n_tokens,
        "dtype": variant.dtype,
        "stored": variant.stored_dtype,
    }
    return entry | ({"context": variant.context} if variant.context else {})


def make_all(root, families):
    """families: all, if there are none."""
    variants = list(all_variants())
    assert len({v.path for v in variants}) == len(variants)
    kept = json.loads((root / "index.json").read_text()) if families else []
    entries = {entry["path"]: entry for entry in kept}
    chosen = [v for v in variants if not families or v.family in families]
    for variant in chosen:  # stale folders of renamed variants go too
        shutil.rmtree(root / variant.family, ignore_errors=True)
    for variant in chosen:
        entries[variant.path] = make(variant, root)
    write_json(root / "index.json", [entries[v.path] for v in variants if v.path in entries])
    total = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    print(f"{len(variants)} goldens, {total / 2**20:.2f} MiB")


def compare(fresh, committed):
    """Prints what differs; returns the process's exit code."""
    files = {p.relative_to(fresh) for p in fresh.rglob("*") if p.is_file()}
    committed_files = {p.relative_to(committed) for p in committed.rglob("*") if p.is_file()}
    # Those of make_int8_goldens.py and others.
    others = {"eagle3", "gguf", "int8", "int8_weights", "mtp", "packed", "retrieval"}
    by_hand = {".cc", ".h", ".md"}
    committed_files = {
        p for p in committed_files if p.parts[0] not in others and p.suffix not in by_hand
    }
    status = 0
    for name in sorted(files ^ committed_files):
        print(f"{name}: only in {'the fresh set' if name in files else committed}")
        status = 1
    for name in sorted(files & committed_files):
        if filecmp.cmp(fresh / name, committed / name, shallow=False):
            continue
        rounding = float("inf")
        if name.name == "golden.safetensors":
            old = safetensors.torch.load_file(committed / name)
            new = safetensors.torch.load_file(fresh / name)
            if torch.equal(old["input_ids"], new["input_ids"]):
                rounding = effect(old["logits"], new["logits"])
        harmless = rounding < MAX_NOISE
        print(f"{name}: differs" + (f", by rounding only ({rounding:.1e})" if harmless else ""))
        status |= not harmless
    print("the goldens are as committed" if status == 0 else "the goldens have changed")
    return int(status)


def be_reproducible():
    torch.set_num_threads(1)  # one order of every sum
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()


def make_or_check(doc, root, make_all):
    """The command line of tools with a folder of goldens of their own: make_all(folder) fills it."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare a fresh set with this one")
    options = parser.parse_args()
    be_reproducible()
    if not options.check:
        root.mkdir(parents=True, exist_ok=True)
        return make_all(root)
    with tempfile.TemporaryDirectory() as fresh:
        make_all(Path(fresh))
        return compare(Path(fresh), root)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT, help="default: tests/golden")
    parser.add_argument("families", nargs="*", help="default: all")
    parser.add_argument("--check", action="store_true", help="compare a fresh set with --out")
    options = parser.parse_args()

    be_reproducible()
    if not options.check:
        options.out.mkdir(parents=True, exist_ok=True)
        return make_all(options.out, options.families)
    with tempfile.TemporaryDirectory() as fresh:
        make_all(Path(fresh), [])
        return compare(Path(fresh), options.out)


if __name__ == "__main__":
    sys.exit(main())
