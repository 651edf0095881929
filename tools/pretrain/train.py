#!/usr/bin/env python3
"""Pre-trains a small Llama on the ids of corpus.py; run it again to go on where it stopped.

  python tools/pretrain/train.py --variant vanilla --work WORK --out WORK/vanilla --tokens 100M

Same seed, same order of samples, whatever the variant. OUT gets
  checkpoint.pt   weights, optimizer state, options; written every --save-minutes and at the end
  log.jsonl       step, tokens, loss, learning rate, seconds, and now and then the held-out loss and
                  the attention that the first positions get

On a CPU in float32 (in bfloat16 where the CPU multiplies it), on a GPU in bfloat16.
"""

import argparse
import json
import math
import os
import signal
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from attention_maps import first_positions, plant
from corpus import SINK
from decoder import VARIANTS, Decoder, Shape
from muon import Muon

# Samples at the end of the ids that are never trained on: the loss that shows over-fitting while a
# run goes on. The figures of the model cards come from whole books that were not in the ids at all.
HELD_OUT_SAMPLES = 64

# Tokens in which attention is measured: a map is quadratic.
MAP_TOKENS = 512

# One micro-batch in this many plants sinks: attention that returns its weights is slow.
PLANT_EVERY = 4


def count(text):
    """'100M' -> 100000000."""
    scale = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:].upper(), 1)
    return int(float(text[:-1] if scale > 1 else text) * scale)


class Samples:
    """Windows of length + 1 ids. Every epoch cuts the text at another offset, in another order."""

    def __init__(self, ids, length, seed):
        self.ids, self.length, self.seed = ids, length, seed
        self.held_out = self.windows(ids[-HELD_OUT_SAMPLES * length - 1:], 0)
        self.train = ids[:-HELD_OUT_SAMPLES * length - 1]
        self.per_epoch = len(self.train) // length - 1
        self.epoch = None

    def windows(self, ids, offset):
        rows = (len(ids) - 1 - offset) // self.length
        starts = offset + np.arange(rows)[:, None] * self.length
        return ids[starts + np.arange(self.length + 1)].astype(np.int64)

    def batch(self, first, size):
        """Samples first .. first + size - 1 of the endless order."""
        rows = []
        for index in range(first, first + size):
            epoch, place = divmod(index, self.per_epoch)
            if epoch != self.epoch:
                random = np.random.default_rng([self.seed, epoch])
                self.offset = int(random.integers(self.length))
                self.order, self.epoch = random.permutation(self.per_epoch), epoch
            start = self.offset + int(self.order[place]) * self.length
            rows.append(self.train[start:start + self.length + 1])
        return torch.from_numpy(np.stack(rows).astype(np.int64))


def learning_rate(done, total, warmup, decay):
    """Share of the peak: up over `warmup` tokens, flat, down to 0 over the last share `decay`. A run
    that stopped in the flat part can be continued for any number of tokens."""
    return min(1.0, (done + 1) / warmup, (total - done) / (decay * total))


class Optimizers:
    """Muon for the matrices inside the layers, AdamW for the embedding and the norms."""

    def __init__(self, model, options, dtype):
        inner = [w for n, w in model.named_parameters() if w.dim() == 2 and ".layers." in n]
        outer = [w for n, w in model.named_parameters() if w.dim() != 2 or ".layers." not in n]
        self.all = [
            Muon(inner, options.muon_lr, dtype=dtype),
            torch.optim.AdamW(outer, lr=options.adam_lr, weight_decay=0.0, betas=(0.9, 0.95)),
        ]
        self.peaks = [options.muon_lr, options.adam_lr]

    def step(self, share):
        for optimizer, peak in zip(self.all, self.peaks):
            optimizer.param_groups[0]["lr"] = peak * share
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def precision(device):
    flags = Path("/proc/cpuinfo").read_text() if device == "cpu" else ""
    return device == "cuda" or "avx512_bf16" in flags


class Run:
    def __init__(self, options):
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.cast = precision(self.device)
        torch.manual_seed(options.seed)
        tokenizer = Tokenizer.from_file(str(options.work / "tokenizer.json"))
        shape = Shape(vocabulary=tokenizer.get_vocab_size(), **options.shape)
        self.model = Decoder(shape, options.variant, tokenizer.token_to_id(SINK)).to(self.device)
        ids = np.load(options.work / "ids.npy", mmap_mode="r")
        self.samples = Samples(ids, shape.positions, options.seed)
        self.optimizers = Optimizers(self.model, options,
                                     torch.bfloat16 if self.cast else torch.float32)
        self.step, self.tokens, self.seconds, self.start = 0, 0, 0.0, 0
        self.path = options.out / "checkpoint.pt"
        if self.path.exists():
            self.resume()
        elif options.go_on_from:
            self.go_on_from(options.go_on_from)
        self.loss = torch.compile(self.model.loss) if options.compile else self.model.loss

    def resume(self):
        state = torch.load(self.path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers.all, state["optimizers"]):
            optimizer.load_state_dict(saved)
        for name in ("step", "tokens", "seconds", "start"):
            setattr(self, name, state[name])

    def go_on_from(self, folder):
        """A model of export.py: its weights, its place in the order of samples, its log. The momenta
        begin anew, which a hundred steps make up for."""
        weights = load_file(folder / "model.safetensors")
        self.model.load_state_dict({name: weight.float() for name, weight in weights.items()})
        log = (folder / "training.jsonl").read_text()
        (self.options.out / "log.jsonl").write_text(log)
        last = json.loads(log.splitlines()[-1])
        self.step, self.tokens, self.seconds = last["step"], last["tokens"], last["seconds"]
        self.start = self.tokens

    def save(self):
        partial = self.path.with_suffix(".partial")
        torch.save({
            "model": self.model.state_dict(), "variant": self.options.variant,
            "shape": vars(self.model.shape), "sink": self.model.sink,
            "optimizers": [one.state_dict() for one in self.optimizers.all],
            "step": self.step, "tokens": self.tokens, "seconds": self.seconds,
            "start": self.start,
        }, partial)
        os.replace(partial, self.path)

    def autocast(self):
        return torch.autocast(self.device, torch.bfloat16, enabled=self.cast)

    @torch.no_grad()
    def evaluate(self):
        held_out = torch.from_numpy(self.samples.held_out).to(self.device)
        with self.autocast():
            loss = torch.stack([self.model.loss(part) for part in held_out.split(8)]).mean()
        some = held_out[:8, :MAP_TOKENS + 1]
        return {"held_out": loss.item(), **first_positions(self.model, some)}

    def train_step(self):
        options = self.options
        first = self.tokens // self.samples.length
        batch = self.samples.batch(first, options.batch).to(self.device)
        total = 0.0
        for i, part in enumerate(batch.split(options.micro_batch)):
            with self.autocast():
                if options.plant and i % PLANT_EVERY == 0:
                    maps = []
                    loss = self.model.loss(part, maps)
                    loss = loss + PLANT_EVERY * plant(maps, options.plant)
                else:
                    loss = self.loss(part)
            loss = loss * (len(part) / len(batch))
            loss.backward()
            total += loss.detach()
        share = learning_rate(self.tokens - self.start, options.tokens - self.start,
                              options.warmup, options.decay)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizers.step(share)
        self.step += 1
        self.tokens += batch.shape[0] * (batch.shape[1] - 1)
        return {"step": self.step, "tokens": self.tokens, "loss": total, "lr": share}

    def train(self):
        options, stopping = self.options, []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.append(True))
        saved = logged = time.monotonic()
        began = saved - self.seconds
        losses = []
        with open(options.out / "log.jsonl", "a", buffering=1) as log:
            while self.tokens < options.tokens and not stopping:
                line = self.train_step()
                losses.append(line["loss"])
                self.seconds = time.monotonic() - began
                last = self.tokens >= options.tokens
                if self.step % options.log_steps == 0 or last:
                    line["loss"] = float(sum(losses) / len(losses))
                    line["seconds"] = round(self.seconds)
                    losses.clear()
                    if self.step % (10 * options.log_steps) == 0 or last:
                        line.update(self.evaluate())
                    if not math.isfinite(line["loss"]):
                        raise SystemExit(f"the loss is {line['loss']} at step {self.step}")
                    log.write(json.dumps(line) + "\n")
                if time.monotonic() - saved > 60 * options.save_minutes:
                    self.save()
                    saved = time.monotonic()
        self.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variant", choices=VARIANTS, required=True)
    parser.add_argument("--work", type=Path, required=True, help="folder of corpus.py")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=count, required=True, help="in all, such as 100M")
    parser.add_argument("--shape", type=json.loads, default={}, help='such as {"hidden": 320}')
    parser.add_argument("--batch", type=int, default=16, help="samples per step")
    parser.add_argument("--micro-batch", type=int, default=8, help="samples per forward pass")
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=0.004)
    parser.add_argument("--warmup", type=count, default=500_000, help="tokens")
    parser.add_argument("--decay", type=float, default=0.3, help="share of all tokens")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--go-on-from", type=Path, metavar="FOLDER",
                        help="a model of export.py to train on, until --tokens in all")
    parser.add_argument("--plant", type=float, metavar="SHARE",
                        help="plant sinks: every head gives the first four positions this much")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--log-steps", type=int, default=10)
    parser.add_argument("--save-minutes", type=float, default=10)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    Run(options).train()


if __name__ == "__main__":
    main()
