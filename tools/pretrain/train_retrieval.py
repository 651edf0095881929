#!/usr/bin/env python3
"""Trains a small GLM to find facts in a long text; run it again to continue where it stopped.

  python tools/pretrain/train_retrieval.py --out WORK/retrieval --books BOOKS --tokens 20M \
      --lengths 512:1M,512/1024/2048:5M,1024/2048/4096:20M
  python -m torch.distributed.run --nproc-per-node 2 tools/pretrain/train_retrieval.py ...

Samples are those of retrieval_samples.py, with the tokenizer of models/retrieval-induction. --lengths
gives their lengths and the number of tokens until which these hold. Half of a head's elements rotates,
with wavelengths shorter than the texts, and the rest has no positions. Thus no distance is new in a
longer text. OUT gets checkpoint.pt and log.jsonl, and its parent folder tokenizer.json, in the form of
train.py and corpus.py; export.py makes a model of them.
"""

import argparse
import functools
import json
import os
import random
import signal
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import distributed
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from decoder import Decoder, Shape
from retrieval_samples import Samples
from train import Optimizers, count, learning_rate, precision

ROOT = Path(__file__).resolve().parent.parent.parent
TOKENIZER = ROOT / "models/retrieval-induction/tokenizer.json"
SHAPE = {"hidden": 256, "layers": 4, "heads": 4, "kv_heads": 4, "intermediate": 384,
         "positions": 131072, "rope_theta": 500.0, "rotary_dims": 32}
# Shares of the kinds in a batch: at first, and from BASICS steps on.
KINDS = {"repeats": (6, 0.5), "passkey": (1, 1), "needle": (2, 3), "lines": (4, 6), "pairs": (4, 6),
         "niah": (4, 9), "chains": (1, 4), "prose": (1, 0.5)}
BASICS = 150
STOPS = (signal.SIGINT, signal.SIGTERM)
HELD_OUT = 2  # of each kind, for the log


def begin(model, look=2.5, match=0.35, embedding=0.05):
    """Initializes the weights near those that training finds by itself, late (after Trockman and
    Kolter, 2023, "Mimetic initialization of self-attention layers").

    Head h of the first layer looks h + 1 tokens back, by its biases, with scores of `look` for each
    frequency, and writes the found tokens elsewhere (`aside`). In all other layers a token looks for
    tokens behind one like itself, by random elements of a size of `match`, and adds them.
    """
    shape, first = model.shape, model.model.layers[0].self_attn
    half, dims = shape.rotary_dims // 2, shape.head_dim
    frequency = shape.rope_theta ** (-torch.arange(half) / half)
    size = (look * dims ** 0.5) ** 0.5
    with torch.no_grad():
        model.model.embed_tokens.weight.normal_(std=embedding)
        for layer in model.model.layers:
            torch.nn.init.orthogonal_(layer.self_attn.v_proj.weight)
            layer.self_attn.o_proj.weight.copy_(4 * embedding * layer.self_attn.v_proj.weight.T)
        aside = torch.nn.init.orthogonal_(torch.empty(shape.hidden, shape.hidden))
        first.o_proj.weight.copy_(embedding * aside @ first.v_proj.weight.T)
        first.k_proj.bias.view(-1, dims)[:, :half] = size
        for head, bias in enumerate(first.q_proj.bias.view(-1, dims)):
            bias[:half] = size * torch.cos(frequency * (head + 1))
            bias[half:2 * half] = -size * torch.sin(frequency * (head + 1))
        seen = first.v_proj.weight[:dims]  # by head 0
        for layer in model.model.layers[1:]:
            alike = torch.randn(shape.heads, dims, dims) * match
            alike[:, :2 * half] *= 0.1  # these rotate
            layer.self_attn.q_proj.weight.copy_((alike @ seen).flatten(0, 1))
            layer.self_attn.k_proj.weight.copy_((alike @ seen @ aside.T).flatten(0, 1))


def loss_and_hits(forward, embedding, ids, weights):
    """The weighted mean of nats, and which of the predictions of weight 1 are right."""
    hidden = forward(ids[:, :-1])
    at = weights.flatten().nonzero().squeeze(1)
    logits = F.linear(hidden.flatten(0, 1)[at], embedding).float()
    expected, weight = ids[:, 1:].flatten()[at], weights.flatten()[at]
    nats = F.cross_entropy(logits, expected, reduction="none")
    return (nats * weight).sum() / weight.sum(), (logits.argmax(-1) == expected)[weight == 1]


class Steps(IterableDataset):
    """Batches of one rank from a step and its tokens on: [tokens of all ranks so far, length, ids,
    weights]. Workers of a DataLoader make them in turn, and their number does not change them."""

    def __init__(self, options, samples, rank, ranks, step, tokens):
        self.options, self.samples, self.rank, self.ranks = options, samples, rank, ranks
        self.step, self.tokens = step, tokens

    def __iter__(self):
        worker = get_worker_info()
        mine, count = (worker.id, worker.num_workers) if worker else (0, 1)
        step, tokens = self.step, self.tokens
        while tokens < self.options.tokens:
            length = self.length(step, tokens)
            size = max(self.ranks, self.options.step_tokens // length)
            tokens += size * length
            if (step - self.step) % count == mine:
                yield tokens, length, *self.batch(step, size, length)
            step += 1

    def length(self, step, tokens):
        for lengths, until in self.options.lengths:
            if tokens < until:
                break
        return random.Random(step).choice(lengths)

    def batch(self, step, size, length):
        shares = [share[step >= BASICS] for share in KINDS.values()]
        kinds = torch.multinomial(
            torch.tensor(shares, dtype=torch.float), size, replacement=True,
            generator=torch.Generator().manual_seed(self.options.seed * 10 ** 9 + step))
        kinds = [*enumerate([list(KINDS)[i] for i in kinds.tolist()], step * size)]
        return stacked(self.samples, kinds[self.rank::self.ranks], length)


def stacked(samples, kinds, length):
    """`kinds`: pairs of a number and a kind. ids [samples, length + 1], weights [samples, length]."""
    ids, weights = zip(*(samples.sample(kind, i, length) for i, kind in kinds))
    return [torch.stack([torch.from_numpy(one) for one in arrays]) for arrays in (ids, weights)]


def ignore_stops(_worker):
    """A stop reaches all processes of a terminal, and without its workers a run ends unsaved."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


class Run:
    def __init__(self, options):
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.cast = precision(self.device)
        self.ranks = int(os.environ.get("WORLD_SIZE", 1))
        self.rank = int(os.environ.get("RANK", 0))
        if self.ranks > 1:
            distributed.init_process_group("gloo")
        torch.manual_seed(options.seed)
        tokenizer = Tokenizer.from_file(str(TOKENIZER))
        if self.rank == 0:
            tokenizer.save(str(options.out.parent / "tokenizer.json"))
        self.model = Decoder(Shape(**{**SHAPE, **options.shape}), "vanilla", None)
        begin(self.model)
        self.model.to(self.device)
        books = options.books.read_text()
        at = len(books) - 1_000_000  # the end is for what is held out
        self.samples = Samples(tokenizer, books[:at], options.seed)
        self.held_out = Samples(tokenizer, books[at:], options.seed, held_out=True)
        self.optimizers = Optimizers(self.model, options,
                                     torch.bfloat16 if self.cast else torch.float32)
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.path = options.out / "checkpoint.pt"
        if self.path.exists():
            state = torch.load(self.path, map_location=self.device, weights_only=True)
            self.model.load_state_dict(state["model"])
            for optimizer, saved in zip(self.optimizers.all, state["optimizers"]):
                optimizer.load_state_dict(saved)
            for name in ("step", "tokens", "seconds"):
                setattr(self, name, state[name])
        self.forward = torch.compile(self.model) if options.compile else self.model

    def save(self):
        if self.rank > 0:
            return
        partial = self.path.with_suffix(".partial")
        torch.save({"model": self.model.state_dict(), "variant": "vanilla", "sink": None,
                    "shape": vars(self.model.shape), "step": self.step, "tokens": self.tokens,
                    "optimizers": [one.state_dict() for one in self.optimizers.all],
                    "seconds": self.seconds}, partial)
        os.replace(partial, self.path)

    def train_step(self, tokens, length, ids, weights, stop):
        """Ends a step of Steps. Returns whether to stop, and a line of the log."""
        options = self.options
        ids, weights = ids.to(self.device), weights.to(self.device)
        parts = max(1, len(ids) * length // options.micro_tokens)
        total = 0.0
        for some, weight in zip(ids.chunk(parts), weights.chunk(parts)):
            with torch.autocast(self.device, torch.bfloat16, enabled=self.cast):
                loss, _ = loss_and_hits(self.forward, self.model.model.embed_tokens.weight, some,
                                        weight)
            loss = loss * (weight.sum() / weights.sum())
            loss.backward()
            total += loss.item()
        stop = self.average_gradients(stop)
        share = learning_rate(self.tokens, options.tokens, options.warmup, options.decay)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizers.step(share)
        self.step += 1
        self.tokens = tokens
        return stop, {"step": self.step, "tokens": self.tokens, "length": length, "loss": total,
                      "lr": round(share, 3)}

    def average_gradients(self, stop):
        """Sums over the ranks, and whether one of them wants to stop."""
        if self.ranks == 1:
            return stop
        gradients = [weight.grad for weight in self.model.parameters()]
        vote = torch.tensor([float(stop)], device=self.device)
        flat = torch.cat([*(one.flatten() for one in gradients), vote])
        distributed.all_reduce(flat)
        flat /= self.ranks
        for one, mean in zip(gradients, flat.split([one.numel() for one in gradients] + [1])):
            one.copy_(mean.view_as(one))
        return bool(flat[-1] > 0)

    @functools.cached_property
    def asked(self):
        """Ids and weights of each kind, for `evaluate`."""
        length = max(self.options.lengths[-1][0])
        return {kind: stacked(self.held_out, [*enumerate([kind] * HELD_OUT)], length)
                for kind in KINDS if kind != "prose"}

    @torch.no_grad()
    def evaluate(self):
        """The share of right tokens in answers of each kind, in texts never seen."""
        hits = {}
        for kind, (ids, weights) in self.asked.items():
            with torch.autocast(self.device, torch.bfloat16, enabled=self.cast):
                right = loss_and_hits(self.model, self.model.model.embed_tokens.weight,
                                      ids.to(self.device), weights.to(self.device))[1]
            if len(right):
                hits[kind] = round(right.float().mean().item(), 4)
        return hits

    def batches(self):
        steps = Steps(self.options, self.samples, self.rank, self.ranks, self.step, self.tokens)
        return DataLoader(steps, batch_size=None, num_workers=self.options.workers,
                          worker_init_fn=ignore_stops)

    def train(self):
        options, stopping, stop = self.options, [], False
        for number in STOPS:
            signal.signal(number, lambda *_: stopping.append(True))
        saved = time.monotonic()
        began = saved - self.seconds
        losses = []
        with open(options.out / "log.jsonl" if self.rank == 0 else os.devnull, "a",
                  buffering=1) as log:
            for batch in self.batches():
                stop, line = self.train_step(*batch, bool(stopping))
                losses.append(line["loss"])
                self.seconds = time.monotonic() - began
                if self.step % options.log_steps == 0 or self.tokens >= options.tokens:
                    line["loss"] = round(sum(losses) / len(losses), 4)
                    line["seconds"] = round(self.seconds)
                    losses.clear()
                    if self.rank == 0 and self.step % (10 * options.log_steps) == 0:
                        line["right"] = self.evaluate()
                    log.write(json.dumps(line) + "\n")
                if time.monotonic() - saved > 60 * options.save_minutes:
                    self.save()
                    saved = time.monotonic()
                if stop:
                    break
        self.save()


def stages(text):
    """'512:1M,1024/2048:5M' -> [([512], 1000000), ([1024, 2048], 5000000)]."""
    return [([*map(int, lengths.split("/"))], count(until)) for lengths, until in
            (stage.split(":") for stage in text.split(","))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--books", type=Path, required=True, help="prose, of corpus.py --text")
    parser.add_argument("--tokens", type=count, required=True, help="in all, such as 40M")
    parser.add_argument("--lengths", type=stages, required=True, metavar="LENGTH/LENGTH:UNTIL,...")
    parser.add_argument("--shape", type=json.loads, default={}, help='such as {"hidden": 320}')
    parser.add_argument("--step-tokens", type=int, default=8192)
    parser.add_argument("--micro-tokens", type=int, default=8192, help="in a forward pass")
    parser.add_argument("--muon-lr", type=float, default=0.012)
    parser.add_argument("--adam-lr", type=float, default=0.001)
    parser.add_argument("--warmup", type=count, default=100_000, help="tokens")
    parser.add_argument("--decay", type=float, default=0.3, help="share of all tokens")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--log-steps", type=int, default=10)
    parser.add_argument("--save-minutes", type=float, default=3)
    parser.add_argument("--workers", type=int, default=0, metavar="N",
                        help="processes that make samples, for a GPU")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    Run(options).train()


if __name__ == "__main__":
    main()
