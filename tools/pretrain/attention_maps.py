"""The attention that tokens get: figures 1.4 and 4.5 of the thesis, and the loss that plants sinks.
"""

import torch

# As many first tokens as StreamingLLM keeps.
SINKS = 4


def attention_to(maps, positions):
    """Mean share that queries past the first SINKS + 1 give to the first `positions`, [layer, head].

    maps: one [batch, heads, queries, keys] per layer.
    """
    return torch.stack([one[:, :, SINKS + 1:, :positions].sum(-1).mean((0, 2)) for one in maps])


@torch.no_grad()
def first_positions(model, ids):
    """For the log: attention to the first position and to the first four, mean and greatest head."""
    maps = []
    model(ids[:, :-1], maps)
    one, four = attention_to(maps, 1), attention_to(maps, SINKS)
    return {"first": round(one.mean().item(), 4), "first_max": round(one.max().item(), 4),
            "first_four": round(four.mean().item(), 4), "first_four_max": round(four.max().item(), 4)}


def plant(maps, share):
    """0 where every query past the first four gives these at least `share`; else the mean shortfall
    in nats."""
    given = torch.stack([one[:, :, SINKS:, :SINKS].sum(-1) for one in maps])
    return (share / given.clamp_min(1e-6)).clamp_min(1).log().mean()
