#!/usr/bin/env python3
"""Where the heads of models look: figures 1.4 and 4.5 of the thesis, one JSON object for each model.

  python tools/pretrain/attention.py BOOK RUN... >maps.jsonl && tools/plot maps.jsonl -o OUT.png

Attention is averaged over 256 sentences of 16 tokens from BOOK (corpus.py --text). RUN is a folder of
train.py.
"""

import argparse
import json
import re
from pathlib import Path

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
def measure(run, book):
    """first: [layers][heads]; maps: [layers][heads][queries][keys]; means over the sentences."""
    model = load(run)
    maps = []
    model(sentences(Tokenizer.from_file(str(run.parent / "tokenizer.json")), book), maps)
    means = torch.stack([one.mean(0) for one in maps])
    return {"model": run.name, "text": str(book), "sentences": SENTENCES,
            "first": attention_to(maps, 1).tolist(), "maps": means.tolist()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("book", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    options = parser.parse_args()
    for run in options.runs:
        print(json.dumps(measure(run.resolve(), options.book)))


if __name__ == "__main__":
    main()
