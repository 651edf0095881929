#!/usr/bin/env python3
"""Writes models/retrieval-induction: a model that retrieves by construction, not by training.

    tools/make_retrieval_model.py OUT [--temperature T] [--noise SD] [--cosine C] [--sink S]
                                      [--idle-heads N] [--hops 2]

It finds the question's words in the text and answers with the words behind them. It is an induction
circuit in the shape of GLM, in which a value is bound to the key before it. Words that only join the
two ("joints"), such as "is" or "mentioned in the provided text", all count the same. It answers a
question that ends in a key and joints, at any depth of two million tokens. It knows nothing else. The
numbers behind it are in models/README.md. The flags make retrieval as hard as for trained models; all
are 0 in the model that ships.

  residual        [E | P1 .. P4 | B1 .. B4 | F], blocks of 24, and flags: the token's code, those of
                  the four before it, those of the key it is bound to. Codes are the words of the
                  Golay code, 0 and 1 written as +1 and -1: 4,096 of them, any two with a cosine of
                  1/3 at most. All joints have the same one.
  layers 0, 1, 2  one head each, which looks back by exactly 1, 2 and 4 tokens and copies their codes:
                  P1; P2 and P3; P4. Its queries and keys are biases, the same for every token. The
                  rotation turns them into a function of the distance: the sum over frequencies f of
                  A cos(f (distance - shift)).
  layer 3         looks for the nearest joint behind a token that is none. There a key has ended, and
                  B1 .. B4 are its P1 .. P4.
  layer 4         finds the token behind matching tokens: key [P1 P2 P3 B1 .. B4], query [E P1 P2 B1
                  .. B4] with a weight for each, in the part of a head that is not rotated. Its value
                  E is added to E, much enlarged. The output head, which is the embedding, reads it.

Needs numpy.
"""

import argparse
import json
import pathlib
import struct
import sys

import numpy as np
from retrieval_tokenizer import BOS, EOS, STOPS, VOCABULARY, is_mark, kinds, tokenizer

CODE = 24
BEFORE = 4  # tokens that a token knows before it, and tokens of a key
SHIFTS = (1, 2, 4)
ROTARY = 24
SPARE = ROTARY + (3 + BEFORE) * CODE  # from here on a head has flags, each in eight dimensions
HEAD = SPARE + 24
MLP = 8  # of zeros
CONTEXT = 1 << 21
THETA = 1e4

# Blocks of the residual, by their first dimension.
E = 0
P = CODE
B = P + BEFORE * CODE
FLAGS = B + BEFORE * CODE
JOINT, MARK, FIRST, AFTER_JOINT = range(FLAGS, FLAGS + 4)  # each +1 or -1
FOUND = FLAGS + 8  # with two hops

SHARPNESS = 60.0  # A: the neighbour of the distance wanted lacks 35, any farther one 100
# Cosines and sines, by frequency, of a function of the distance. It falls by 24 or more from every
# distance d < 45 to all from d + 2 to 2^21; from d > 6 on, to all from d + 2 + 0.6 (d - 6). Among such
# functions it has the least sum. It prefers the nearer of two joints, as far back as a value is long.
NEAREST = ((1, 2, 8, 30, 82, 221, 138, 206, 297, 233, 219, 403),
           (-1, 1, -10, -72, -13, 0, 0, 0, 15, 0, 30, -36))
KEY_END = 1500.0  # what that joint scores above other tokens; the function spans 300 over a value

# Scores of a matching token: of the tokens before, and of the key's, from the last one back. One that
# does not match takes away 2/3 of its score at least, 4/3 at most. Most important is whether a joint
# has just ended or, in a value, its last token. The key's last word comes next. The last token but one
# follows, since other words may stand before the key. 160, the least loss by a wrong key, is more than
# ln(2^21) = 15.
RECENT = 10240.0, 2560.0, 112.0
BOUND = 5120.0, 600.0, 400.0, 240.0
NO_ANSWER = 5120.0  # lost by a joint as a next token, and by a mark behind a joint
TIES = 0.01  # share of NEAREST, by which the place decides among equal matches

ENLARGED = 32.0
GAIN = 0.75  # the right logit is about 48, others 16 at most


def golay_codes():
    """[4096, 24] of +1 and -1: the extended binary Golay code; the first is all +1."""
    codes = np.empty((VOCABULARY, CODE), np.float32)
    for message in range(VOCABULARY):
        word = 0
        for bit in range(12):
            if message >> bit & 1:
                word ^= 0b110001110101 << bit
        bits = [word >> i & 1 for i in range(23)]
        codes[message] = [1 - 2 * bit for bit in [*bits, sum(bits) % 2]]
    return codes


def token_codes(ids, cosine, random):
    """[4096, 24]. Numbers, adjectives, nouns and cities each share a part within their kind, so that
    they have a cosine of about `cosine` with each other."""
    codes = golay_codes()
    codes[[ids[token] for token in STOPS]] = codes[ids[":"]]
    for kind in kinds(ids) if cosine else []:
        shared = random.standard_normal(CODE)
        shared /= np.linalg.norm(shared)
        own = codes[kind] - np.outer(codes[kind] @ shared, shared)
        own /= np.linalg.norm(own, axis=1, keepdims=True)
        codes[kind] = np.sqrt(CODE) * (np.sqrt(cosine) * shared + np.sqrt(1 - cosine) * own)
    return codes


class Model:
    """The tensors, written block by block."""

    def __init__(self, options, ids):
        self.layers = len(SHIFTS) + 1 + options.hops
        self.heads = 1 + options.idle_heads
        self.hidden = FOUND + (CODE if options.hops == 2 else 0)
        self.random = np.random.default_rng(options.seed)
        self.tensors = {}
        self.embed(ids, options.cosine)
        written = CODE + 3  # dimensions of the residual that are not 0, all of the same norm
        for layer, shift in enumerate(SHIFTS):
            self.open_layer(layer, written)
            written += self.look_back(layer, shift)
        self.open_layer(layer + 1, written)
        self.bind(layer + 1)
        written += BEFORE * CODE
        self.open_layer(layer + 2, written)
        self.match(layer + 2, options)
        if options.hops == 2:
            self.open_layer(layer + 3, written + CODE)
            self.match_again(layer + 3, options)
        self.tensors["model.norm.weight"] = np.zeros(self.hidden, np.float32)
        self.tensors["model.norm.weight"][:CODE] = GAIN

    def embed(self, ids, cosine):
        table = np.zeros((VOCABULARY, self.hidden), np.float32)
        table[:, E:E + CODE] = token_codes(ids, cosine, self.random)
        table[:, [JOINT, MARK, FIRST]] = -1
        table[[ids[token] for token in STOPS], JOINT] = 1
        table[[ids[token] for token in ids if is_mark(token)], MARK] = 1
        table[ids[BOS], FIRST] = 1
        self.tensors["model.embed_tokens.weight"] = table

    def open_layer(self, layer, written):
        """A layer without its head's work, with an MLP of zeros. RMSNorm divides by the root of the
        written share, which its weights undo. Idle heads ask for nothing in particular, and their
        values are dropped."""
        name = f"model.layers.{layer}."
        queries = self.heads * HEAD
        idle = self.random.standard_normal(queries).astype(np.float32)
        idle[:HEAD] = 0
        gain = np.full(self.hidden, np.sqrt(written / self.hidden), np.float32)
        self.tensors |= {
            name + "input_layernorm.weight": gain,
            name + "post_attention_layernorm.weight": gain,
            name + "self_attn.q_proj.weight": np.zeros((queries, self.hidden), np.float32),
            name + "self_attn.q_proj.bias": idle,
            name + "self_attn.k_proj.weight": np.zeros((HEAD, self.hidden), np.float32),
            name + "self_attn.k_proj.bias": np.zeros(HEAD, np.float32),
            name + "self_attn.v_proj.weight": np.zeros((HEAD, self.hidden), np.float32),
            name + "self_attn.v_proj.bias": np.zeros(HEAD, np.float32),
            name + "self_attn.o_proj.weight": np.zeros((self.hidden, queries), np.float32),
            name + "mlp.gate_up_proj.weight": np.zeros((2 * MLP, self.hidden), np.float32),
            name + "mlp.down_proj.weight": np.zeros((self.hidden, MLP), np.float32),
        }

    def part(self, layer, name):
        return self.tensors[f"model.layers.{layer}.self_attn.{name}"]

    def copy(self, layer, first, count, to, gain=1.0, value=0):
        """The head adds `count` dimensions of the tokens it finds to those from `to`, as its value."""
        self.part(layer, "v_proj.weight")[value:value + count, first:first + count] = np.eye(count)
        self.part(layer, "o_proj.weight")[to:to + count, value:value + count] = gain * np.eye(count)

    def ask_distance(self, layer, cosines, sines):
        """The score gets the sum over frequencies of cosine cos(f d) + sine sin(f d)."""
        query = self.part(layer, "q_proj.bias")
        query[0:ROTARY:2] = np.sqrt(HEAD) * np.asarray(cosines)
        query[1:ROTARY:2] = np.sqrt(HEAD) * -np.asarray(sines)
        self.part(layer, "k_proj.bias")[0:ROTARY:2] = 1

    def look_back(self, layer, shift):
        """Returns how many dimensions it writes."""
        turns = shift * THETA ** (-np.arange(0, ROTARY, 2) / ROTARY)
        self.ask_distance(layer, SHARPNESS * np.cos(turns), SHARPNESS * np.sin(turns))
        size = min(shift, BEFORE - shift + 1) * CODE
        self.copy(layer, E, size, to=P + (shift - 1) * CODE)
        if shift > 1:
            return size
        self.copy(layer, JOINT, 1, to=AFTER_JOINT, value=size)
        return size + 1

    def bind(self, layer):
        self.ask_distance(layer, *NEAREST)
        flags = slice(ROTARY, HEAD, 8)
        self.part(layer, "q_proj.bias")[flags] = np.sqrt(HEAD) * KEY_END / len(range(HEAD)[flags])
        self.part(layer, "k_proj.weight")[flags, JOINT] = 0.5
        self.part(layer, "k_proj.weight")[flags, AFTER_JOINT] = -0.5
        self.copy(layer, P, BEFORE * CODE, to=B)

    def match(self, layer, options):
        query, key = self.part(layer, "q_proj.weight"), self.part(layer, "k_proj.weight")
        blunt = options.temperature or 1
        scale = np.sqrt(HEAD) / CODE / blunt  # a code that is alike scores 1
        bound = [B + slot * CODE for slot in range(BEFORE)]
        asked = [E, P, P + CODE, *bound]
        known = [P, P + CODE, P + 2 * CODE, *bound]
        code = np.arange(CODE)
        for slot, (ask, know, weight) in enumerate(zip(asked, known, RECENT + BOUND)):
            rows = ROTARY + slot * CODE + code
            query[rows, ask + code] = scale * weight
            key[rows, know + code] = 1
        # The token at a key's own place, which no query can know, is mixed into it.
        key[ROTARY:SPARE, E:E + CODE] += options.noise / np.sqrt(CODE) * self.random.standard_normal(
            (SPARE - ROTARY, CODE))
        self.ask_distance(layer, *(TIES / blunt * np.asarray(NEAREST)))
        # Flags have eight dimensions each; a token with a flag loses NO_ANSWER.
        lack = np.sqrt(HEAD) * NO_ANSWER / 8 / 2
        bias = self.part(layer, "q_proj.bias")
        for first, flag in zip(range(SPARE, HEAD, 8), (JOINT, MARK, FIRST)):
            key[first:first + 8, flag] = 1
        bias[SPARE:SPARE + 8] = -lack
        bias[SPARE + 8:SPARE + 16] = -lack / 2
        query[SPARE + 8:SPARE + 16, JOINT] = -lack / 2
        bias[SPARE + 16:HEAD] = np.sqrt(HEAD) * options.sink / 8 / 2
        if options.hops == 2:
            self.copy(layer, E, CODE, to=FOUND)
        else:
            self.copy(layer, E, CODE, to=E, gain=ENLARGED)

    def match_again(self, layer, options):
        """The token bound to the found one, behind a joint."""
        query, key = self.part(layer, "q_proj.weight"), self.part(layer, "k_proj.weight")
        rows = ROTARY + np.arange(CODE)
        query[rows, FOUND + np.arange(CODE)] = (
            np.sqrt(HEAD) / CODE / (options.temperature or 1) * BOUND[0])
        key[rows, B + np.arange(CODE)] = 1
        self.part(layer, "q_proj.bias")[SPARE:SPARE + 8] = np.sqrt(HEAD) * NO_ANSWER / 8 / 2
        key[SPARE:SPARE + 8, AFTER_JOINT] = 1
        key[SPARE:SPARE + 8, JOINT] = -1
        self.copy(layer, E, CODE, to=E, gain=ENLARGED)

    def config(self):
        return {
            "architectures": ["GlmForCausalLM"], "model_type": "glm", "vocab_size": VOCABULARY,
            "hidden_size": self.hidden, "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads, "num_key_value_heads": 1, "head_dim": HEAD,
            "intermediate_size": MLP, "hidden_act": "silu", "max_position_embeddings": CONTEXT,
            "rope_theta": THETA, "partial_rotary_factor": ROTARY / HEAD, "rms_norm_eps": 1.5625e-07,
            "attention_bias": True, "tie_word_embeddings": True, "bos_token_id": 0,
            "eos_token_id": 1, "pad_token_id": 1, "dtype": "bfloat16",
        }


def bf16(array):
    """The bits, rounded to nearest even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def write_safetensors(path, tensors):
    header, offset, data = {"__metadata__": {"format": "pt"}}, 0, []
    for name, tensor in sorted(tensors.items()):
        data.append(bf16(tensor).tobytes())
        header[name] = {"dtype": "BF16", "shape": tensor.shape,
                        "data_offsets": [offset, offset + len(data[-1])]}
        offset += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def write_json(path, value, indent=2):
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path, help="a folder to make")
    parser.add_argument("--temperature", type=float, default=0,
                        help="divides the scores of what matches (0: as they are)")
    parser.add_argument("--noise", type=float, default=0,
                        help="standard deviation of what is added to keys, whose elements are +-1")
    parser.add_argument("--cosine", type=float, default=0,
                        help="between the codes of tokens of one kind: numbers, adjectives, nouns, "
                             "cities (0: 1/3 at most)")
    parser.add_argument("--sink", type=float, default=0,
                        help="score that the first token has for every query")
    parser.add_argument("--idle-heads", type=int, default=0,
                        help="heads beside the one that works, which look nowhere in particular")
    parser.add_argument("--hops", type=int, choices=(1, 2), default=1,
                        help="2: after a question `a =`, what b is where `a = b` and `b = c` stand")
    parser.add_argument("--seed", type=int, default=0, help="of noise, likeness and idle heads")
    options = parser.parse_args()
    if not 0 <= options.cosine < 1:
        sys.exit(f"make_retrieval_model: --cosine {options.cosine}: a number from 0 to below 1")
    if options.out.exists():
        sys.exit(f"make_retrieval_model: {options.out} exists")
    words = tokenizer()
    model = Model(options, words["model"]["vocab"])
    options.out.mkdir(parents=True)
    write_safetensors(options.out / "model.safetensors", model.tensors)
    write_json(options.out / "config.json", model.config())
    write_json(options.out / "generation_config.json",
               {"bos_token_id": 0, "eos_token_id": 1, "do_sample": False})
    write_json(options.out / "tokenizer.json", words, indent=None)
    write_json(options.out / "tokenizer_config.json",
               {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BOS, "eos_token": EOS,
                "model_max_length": CONTEXT, "clean_up_tokenization_spaces": False})


if __name__ == "__main__":
    main()
