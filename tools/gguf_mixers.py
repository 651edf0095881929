"""The work of converters to GGUF on gated DeltaNets and Mamba2, for make_gguf_goldens.py.

Qwen3-Next's rows of q, k, v and z lie by key heads, and come apart. Qwen3.5's value heads come in
turn: the first of each key head, then the second of each. Rates of decay are stored, times -1.
Mamba2's vectors are matrices: of one column, or of one row for each group. Matrices of Falcon-H1
take in its factors.
"""

import numpy as np


def sizes(config):
    heads = config["linear_num_key_heads"]
    group = config["linear_num_value_heads"] // heads
    return heads, group, config["linear_key_head_dim"], config["linear_value_head_dim"]


def is_tiled(config):
    return config["model_type"].startswith("qwen3_5")


def has_nets(config):
    return "linear_num_key_heads" in config


def in_turn(count, dim, config):
    """The places of `count` value heads' numbers, `dim` of each, in the file's order."""
    heads, group, _, _ = sizes(config)
    places = np.arange(count).reshape(heads, group, dim)
    return places.swapaxes(0, 1).reshape(-1)


def order(name, shape, config):
    """The axis and places of a tensor's numbers in the file's order, or None."""
    if not is_tiled(config) or ".linear_attn." not in name:
        return None
    heads, group, key_dim, value_dim = sizes(config)
    values, keys = heads * group * value_dim, 2 * heads * key_dim
    part = name.split(".linear_attn.")[1]
    if part in ("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias"):
        return 0, in_turn(heads * group, 1, config)
    if part == "in_proj_z.weight":
        return 0, in_turn(values, value_dim, config)
    if part in ("in_proj_qkv.weight", "conv1d.weight"):
        return 0, np.concatenate([np.arange(keys), keys + in_turn(values, value_dim, config)])
    if part == "out_proj.weight":
        return 1, in_turn(values, value_dim, config)
    return None


def reordered(name, weights, config):
    found = order(name, weights.shape, config)
    return weights if found is None else np.take(weights, found[1], axis=found[0])


def restored(name, weights, config):
    found = order(name, weights.shape, config)
    return weights if found is None else np.take(weights, np.argsort(found[1]), axis=found[0])


def own_numbers(name, weights, config):
    """The ending of the file's name and the numbers of a small tensor, or None: it stays as it is."""
    mamba, part = ".mamba." in name or ".mixer." in name, name.split(".")[-1]
    numbers = reordered(name, weights, config)
    if part == "dt_bias":
        return "ssm_dt.bias", numbers
    if part == "A_log":
        return "ssm_a", -np.exp(numbers).reshape((-1, 1) if mamba else -1)
    if mamba and part == "D":
        return "ssm_d", numbers.reshape(-1, 1)
    if name.endswith((".mamba.norm.weight", ".mixer.norm.weight")):
        groups = config["mamba_n_groups" if ".mamba." in name else "n_groups"]
        return "ssm_norm.weight", numbers.reshape(groups, -1)
    return None


def factor(name, config):
    """Falcon-H1's factor on a matrix, or on each of its rows."""
    if config["model_type"] != "falcon_h1":
        return 1
    if not name.endswith("proj.weight"):
        whole = {"model.embed_tokens.weight": "embedding_multiplier",
                 "lm_head.weight": "lm_head_multiplier"}
        return config.get(whole.get(name), 1)
    of_attention = config["attention_in_multiplier"]
    if name.endswith(".in_proj.weight"):
        values = config["mamba_d_ssm"]
        keys = config["mamba_n_groups"] * config["mamba_d_state"]
        widths = [values, values, keys, keys, config["mamba_n_heads"]]
        rows = np.repeat(np.array(config["ssm_multipliers"], "f4"), widths)
        return rows[:, None] * np.float32(config["ssm_in_multiplier"])
    return {"down": config["mlp_multipliers"][1], "gate": config["mlp_multipliers"][0], "up": 1,
            "k": config["key_multiplier"] * of_attention, "q": of_attention, "v": of_attention,
            "o": config["attention_out_multiplier"],
            "out": config["ssm_out_multiplier"]}[name.split(".")[-2].removesuffix("_proj")]


def apart(weights, config):
    """Rows of q, k, v and z by key heads -> all q, k and v, then all z."""
    heads, group, key_dim, value_dim = sizes(config)
    ends = np.cumsum([key_dim, key_dim, group * value_dim])
    parts = np.split(weights.reshape(heads, -1, weights.shape[-1]), ends, axis=1)
    q, k, v, z = (part.reshape(-1, weights.shape[-1]) for part in parts)
    return {"attn_qkv": np.concatenate([q, k, v]), "attn_gate": z}


def together(kept, config):
    """The way back."""
    heads, group, key_dim, value_dim = sizes(config)
    columns = kept[0].shape[-1]
    ends = np.cumsum([heads * key_dim, heads * key_dim])
    parts = [*np.split(kept[0], ends), kept[1]]
    by_heads = [part.reshape(heads, -1, columns) for part in parts]
    return np.concatenate(by_heads, axis=1).reshape(-1, columns)
