"""Names and shapes of published files that transformers 5.23 reads, but does not write."""

import torch


def kimi_linear(variant, tensors):
    """The MLP of a dense layer is not called experts."""
    published = {}
    for name, tensor in tensors.items():
        dense = name.replace(".block_sparse_moe.", ".mlp.")
        apart = ".experts." in name or ".shared_experts." in name or ".gate." in name
        published[name if apart else dense] = tensor
    return published


def olmo_hybrid(variant, tensors):
    """Convolutions of queries, keys and values have their widths. Norms have one of two names."""
    published = {}
    for name, tensor in tensors.items():
        layer = ".".join(name.split(".")[:3])
        attention = f"{layer}.self_attn.q_proj.weight"
        if variant.name == "published":
            name = name.replace(".attention_layer_norm.", ".input_layernorm.")
        if variant.name == "published" or attention in tensors:
            name = name.replace(".feedforward_layer_norm.", ".post_attention_layernorm.")
        published[name] = tensor
    for name in [name for name in tensors if name.endswith(".q_conv1d.weight")]:
        names = [name.replace(".q_conv1d.", f".{part}_conv1d.") for part in "qkv"]
        rows = [tensors[n.replace("conv1d", "proj")].shape[0] for n in names]
        parts = torch.cat([tensors[n] for n in names]).split(rows)
        published |= {n: part.contiguous() for n, part in zip(names, parts)}
    return published


PUBLISHED = {"kimi_linear": kimi_linear, "olmo_hybrid": olmo_hybrid}
