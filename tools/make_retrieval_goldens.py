#!/usr/bin/env python3
"""Makes tests/golden/retrieval: the answers of transformers with models of ours.

Each tests/golden/retrieval/<model>/<text>.safetensors holds

  input_ids  I64 [n_tokens]         a text, its question, and all of its answer but the last token
  logits     F32 [rows, vocab_size] of the last rows, which are those of the answer

from one pass of models/<model> over the whole text: float32 arithmetic, eager attention, no cache,
weights as stored. The answer is that of greedy decoding. The model that retrieves must answer right,
or nothing is written. A model that was trained on stories continues one.

  python tools/make_retrieval_goldens.py

Takes what requirements-goldens.txt lists.
"""

import os
import random
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import safetensors.torch
import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

ROOT = Path(__file__).resolve().parent.parent
FILLER = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.\n"
ANSWER = 4  # tokens


def passkey(draw):
    key = f"{draw.randrange(10**7):07}"
    return (8 * FILLER + f"The pass key is {key}. Remember it. {key} is the pass key.\n" + 8 * FILLER
            + "What is the pass key?\n\nThe pass key is", key)


def pairs(draw):
    names = ["".join(draw.choice("0123456789abcdef") for _ in range(12)) for _ in range(40)]
    keys, values = names[::2], names[1::2]
    text = ", ".join(f'"{key}": "{value}"' for key, value in zip(keys, values))
    return (f'JSON data:\n{{{text}}}\n\nKey: "{keys[7]}"\n'
            "The value associated with the specified key is: ", values[7])


def needles(draw):
    keys = [f"{a}-{b}" for a in ("brave", "calm", "quiet", "rapid") for b in ("acorn", "otter", "zebra")]
    values = [f"{draw.randrange(10**6, 10**7)}" for _ in keys]
    lines = "".join(f"One of the special magic numbers for {key} is: {value}.\n"
                    for key, value in zip(keys, values))
    asked = f"special magic number for {keys[4]} mentioned in the provided text"
    return f"{lines}What is the {asked}? The {asked} is", values[4]


def story(draw):
    """Requires nothing: a trained model's next token is always right."""
    seen = ("bird", "ball", "big dog", "little cat", "red flower", "tree")
    places = ("park", "garden", "house", "box", "water")
    felt = ("happy", "sad", "very tired", "scared", "not alone")
    days = (f"One day, Lily saw a {draw.choice(seen)} in the {draw.choice(places)}. She was "
            f"{draw.choice(felt)}. \"{draw.choice(('Look', 'Come', 'Wait'))}, mom!\" she said.\n"
            for _ in range(16))
    return "Once upon a time, there was a little girl named Lily.\n" + "".join(days) + "Then", ""


MODELS = {"retrieval-induction": (passkey, pairs, needles), "stories-3m": (story,)}


def make(name, suite):
    folder = ROOT / "models" / name
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    text, expected = suite(random.Random(suite.__name__))
    ids = tokenizer(text, return_tensors="pt").input_ids
    prompt = ids.shape[1]
    for _ in range(ANSWER):
        logits = model(ids).logits[0]
        ids = torch.cat([ids, logits[-1:].argmax(-1, keepdim=True)], 1)
    answer = tokenizer.decode(ids[0, prompt:])
    if expected not in answer and not expected.startswith(answer):
        sys.exit(f"{name} answers {answer!r}, not {expected!r}")
    print(f"{name} {suite.__name__}: {prompt} tokens, {answer!r}")
    file = ROOT / "tests/golden/retrieval" / name / f"{suite.__name__}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    made_with = f"transformers {transformers.__version__}, torch {torch.__version__}"
    safetensors.torch.save_file(
        {"input_ids": ids[0, :-1].contiguous(), "logits": logits[-ANSWER:].contiguous()}, file,
        {"made_with": made_with})
    file.chmod(0o644)


def main():
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    for name, suites in MODELS.items():
        for suite in suites:
            make(name, suite)


if __name__ == "__main__":
    main()
