#!/usr/bin/env python3
"""Has a small trained model write text for another to learn from, one story after another.

  python tools/pretrain/write_stories.py --model stories260K --characters 10M >stories.txt

Only complete stories are kept, with `<|endoftext|>` after each, as corpus.py wants it.
Same seed, same text on the same machine.
"""

import argparse
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from corpus import END
from train import count


def write(model, tokenizer, stories):
    config = model.config
    first = torch.full((stories, 1), config.bos_token_id)
    ends = [config.bos_token_id, config.eos_token_id]
    with torch.inference_mode():
        rows = model.generate(first, attention_mask=torch.ones_like(first), do_sample=True,
                              temperature=0.8, top_p=0.95, top_k=0, eos_token_id=ends,
                              pad_token_id=config.eos_token_id,
                              max_length=config.max_position_embeddings)
    for row in rows[:, 1:].tolist():
        length = next((i for i, token in enumerate(row) if token in ends), None)
        if length:
            yield tokenizer.decode(row[:length]).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="Hugging Face folder")
    parser.add_argument("--characters", type=count, required=True, help="in all, such as 10M")
    parser.add_argument("--batch", type=int, default=512, help="stories at a time")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    written = 0
    while written < options.characters:
        for story in write(model, tokenizer, options.batch):
            print(f"{story}\n{END}", flush=True)
            written += len(story)
        print(f"{written:,} characters", file=sys.stderr)


if __name__ == "__main__":
    main()
