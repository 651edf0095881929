#!/usr/bin/env python3
"""Where the heads of models look: figures 1.4 and 4.5 of the thesis.

  python tools/pretrain/plot.py OUT.png BOOK RUN...

Attention is averaged over 256 sentences of 16 tokens from BOOK (corpus.py --text), for every head
of three layers: the first, the middle one and the last. RUN is a folder of train.py.
"""

import argparse
import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from tokenizers import Tokenizer

from attention_maps import attention_to
from decoder import Decoder, Shape

SENTENCES, TOKENS = 256, 16


def load(run):
    state = torch.load(run / "checkpoint.pt", map_location="cpu", weights_only=True)
    model = Decoder(Shape(**state["shape"]), state["variant"], state["sink"])
    model.load_state_dict(state["model"])
    return model.eval()


def sentences(tokenizer, book):
    """[SENTENCES, TOKENS] ids of sentences that are long enough."""
    rows = []
    for sentence in re.split(r"(?<=[.!?])\s+", book.read_text()):
        ids = tokenizer.encode(sentence, add_special_tokens=False).ids
        if len(ids) >= TOKENS:
            rows.append(ids[:TOKENS])
        if len(rows) == SENTENCES:
            return torch.tensor(rows)
    raise SystemExit(f"{book} has only {len(rows)} sentences of {TOKENS} tokens")


@torch.no_grad()
def attention_maps(out, book, runs):
    models = [load(run) for run in runs]
    layers, heads = models[0].shape.layers, models[0].shape.heads
    shown = sorted({0, layers // 2, layers - 1})
    figure, grid = plt.subplots(len(shown) * len(runs), heads, squeeze=False, layout="constrained",
                                figsize=(1.9 * heads, 2.0 * len(shown) * len(runs)))
    for row, (run, model) in enumerate(zip(runs, models)):
        ids = sentences(Tokenizer.from_file(str(run.parent / "tokenizer.json")), book)
        maps = []
        model(ids, maps)
        first = attention_to(maps, 1)
        for line, layer in enumerate(shown):
            for head in range(heads):
                axes = grid[row * len(shown) + line][head]
                image = axes.imshow(maps[layer][:, head].mean(0), vmin=0, vmax=1, cmap="viridis")
                axes.set(xticks=[], yticks=[])
                axes.set_title(f"layer {layer} head {head}: {first[layer, head]:.2f}", fontsize=7)
            grid[row * len(shown) + line][0].set_ylabel(run.name)
        print(f"{run.name}: attention to the first position, mean of every layer:",
              " ".join(f"{share:.3f}" for share in first.mean(1).tolist()))
    figure.colorbar(image, ax=grid.ravel().tolist(), shrink=0.5, label="attention")
    figure.savefig(out, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("book", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    options = parser.parse_args()
    attention_maps(options.out, options.book, [run.resolve() for run in options.runs])


if __name__ == "__main__":
    main()
