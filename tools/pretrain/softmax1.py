"""SoftMax_1 ("zero sink") for transformers: a constant 0 beside every query's scores.

    import softmax1                     # registers it
    model = LlamaForCausalLM.from_pretrained(folder, attn_implementation="softmax1")

transformers ignores `"attention_sink": "softmax1"` in config.json, so the argument is needed.
"""

import torch
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask


def attention(module, query, key, value, attention_mask, scaling, dropout=0.0, **_):
    """query [batch, heads, queries, d], key and value [batch, kv_heads, keys, d], additive mask."""
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = query @ key.transpose(-1, -2) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask[..., :key.shape[-2]]
    weights = F.pad(scores.float(), (1, 0)).softmax(-1)[..., 1:].to(value.dtype)
    weights = F.dropout(weights, dropout, module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


AttentionInterface.register("softmax1", attention)
AttentionMaskInterface.register("softmax1", eager_mask)
