#!/usr/bin/env python3
"""Writes models/retrieval-induction: a model that retrieves by construction, not by training.

    tools/make_retrieval_model.py OUT [--temperature T] [--noise SD] [--cosine C] [--sink S]
                                      [--idle-heads N] [--hops 2]

It continues a text with what followed the last seven tokens when they stood there before: an
induction circuit in the shape of GLM. A question
that ends in the words before a needle's answer is answered, at any depth of two million tokens. It
knows nothing else. The numbers behind it are in models/README.md. The flags make it as hard as
models are that were trained; all are 0 in the one that ships.

  residual        [E | P1 .. P7 | O], blocks of 24: the token's code, those of the tokens before it,
                  and the code of the token to come. Codes are the words of the Golay code, 0 and 1
                  written as +1 and -1: 4,096 of them, any two with a cosine of 1/3 at most.
  layers 0, 1, 2  one head each, which looks back by exactly 1, 2 and 4 tokens and copies what these
                  know: P1; P2 and P3; P4 to P7. Its queries and keys are biases, alike for every
                  token, of which the rotation makes a function of the distance: the sum over
                  frequencies f of A cos(f (distance - shift)).
  layer 3         what follows tokens that are like these: key [P1 .. P7], query [E, P1 .. P6] with a
                  weight for each, in the part of a head that is not rotated; value E, put into O.

Needs numpy; its words are those of retrieval_words.txt and of models/books-3m/tokenizer.json.
"""

import argparse
import json
import pathlib
import re
import string
import struct
import sys

import numpy as np

TOOLS = pathlib.Path(__file__).resolve().parent
WORDS = TOOLS / "retrieval_words.txt"  # of needles and questions
BOOKS = TOOLS.parent / "models/books-3m/tokenizer.json"

VOCABULARY = 4096  # words of the Golay code
CODE = 24
SHIFTS = (1, 2, 4)
MATCHED = sum(SHIFTS)
ROTARY = 24
HEAD = ROTARY + MATCHED * CODE
CONTEXT = 1 << 21

THETA = 100.0  # the neighbour of the distance wanted lacks 0.88 A, any farther one 1.4 A
SHARPNESS = 40.0  # A
# What a matched token adds to a score, from the last token back. Each is more than all before it: the
# longest match wins, as in a suffix automaton, wherever else a text is alike. One that does not match
# takes 2/3 of it away at least: 27, against ln(2^21) = 15 for all that may lack only the seventh.
WEIGHTS = 40 * 2.0 ** np.arange(MATCHED - 1, -1, -1)
GAIN = 2.0  # the right logit is 48, others 16 at most

BOS, EOS = "<s>", "</s>"


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


def with_twins(codes, cosine):
    """Every odd token's code brought to this cosine with that of the even one before it."""
    if cosine == 0:
        return codes
    even, odd = codes[0::2], codes[1::2].copy()
    odd -= even * (np.sum(even * odd, 1, keepdims=True) / CODE)
    odd *= np.sqrt(CODE) / np.linalg.norm(odd, axis=1, keepdims=True)
    twins = codes.copy()
    twins[1::2] = cosine * even + np.sqrt(1 - cosine * cosine) * odd
    return twins


class Model:
    """The tensors, written block by block."""

    def __init__(self, options, joint):
        self.layers = len(SHIFTS) + options.hops
        self.heads = 1 + options.idle_heads
        self.blocks = 1 + MATCHED + options.hops
        self.hidden = self.blocks * CODE
        self.random = np.random.default_rng(options.seed)
        self.tensors = {}
        codes = with_twins(golay_codes(), options.cosine)
        self.embedding(codes)
        known = 1  # blocks of the residual that are written, all of the same norm
        for layer, shift in enumerate(SHIFTS):
            self.open_layer(layer, known)
            self.look_back(layer, shift)
            known += shift
        self.open_layer(len(SHIFTS), known)
        self.match(len(SHIFTS), options)
        if options.hops == 2:
            self.open_layer(len(SHIFTS) + 1, known + 1)
            self.match_again(len(SHIFTS) + 1, options, codes[joint])
        self.tensors["model.norm.weight"] = self.gain_of(self.blocks)
        head = np.zeros((VOCABULARY, self.hidden), np.float32)
        head[:, -CODE:] = GAIN * codes
        self.tensors["lm_head.weight"] = head

    def gain_of(self, known):
        """RMSNorm divides by the root of the share of blocks that are written: a norm's weights
        that undo it."""
        return np.full(self.hidden, np.sqrt(known / self.blocks), np.float32)

    def embedding(self, codes):
        table = np.zeros((VOCABULARY, self.hidden), np.float32)
        table[:, :CODE] = codes
        self.tensors["model.embed_tokens.weight"] = table

    def open_layer(self, layer, known):
        """All of a layer but what its head does; an MLP of zeros. Idle heads ask for nothing in
        particular, and what they find goes nowhere."""
        name = f"model.layers.{layer}."
        queries = self.heads * HEAD
        idle = self.random.standard_normal(queries).astype(np.float32)
        idle[:HEAD] = 0
        self.tensors |= {
            name + "input_layernorm.weight": self.gain_of(known),
            name + "post_attention_layernorm.weight": self.gain_of(known),
            name + "self_attn.q_proj.weight": np.zeros((queries, self.hidden), np.float32),
            name + "self_attn.q_proj.bias": idle,
            name + "self_attn.k_proj.weight": np.zeros((HEAD, self.hidden), np.float32),
            name + "self_attn.k_proj.bias": np.zeros(HEAD, np.float32),
            name + "self_attn.v_proj.weight": np.zeros((HEAD, self.hidden), np.float32),
            name + "self_attn.v_proj.bias": np.zeros(HEAD, np.float32),
            name + "self_attn.o_proj.weight": np.zeros((self.hidden, queries), np.float32),
            name + "mlp.gate_up_proj.weight": np.zeros((2 * CODE, self.hidden), np.float32),
            name + "mlp.down_proj.weight": np.zeros((self.hidden, CODE), np.float32),
        }

    def part(self, layer, name):
        return self.tensors[f"model.layers.{layer}.self_attn.{name}"]

    def copy(self, layer, first, count, to):
        """The head takes `count` blocks of the residual of what it looks at to blocks from `to`."""
        size = count * CODE
        self.part(layer, "v_proj.weight")[:size, first * CODE:first * CODE + size] = np.eye(size)
        self.part(layer, "o_proj.weight")[to * CODE:to * CODE + size, :size] = np.eye(size)

    def look_back(self, layer, shift):
        turns = shift * THETA ** (-np.arange(0, ROTARY, 2) / ROTARY)
        query = self.part(layer, "q_proj.bias")
        query[0:ROTARY:2] = SHARPNESS * np.sqrt(HEAD) * np.cos(turns)
        query[1:ROTARY:2] = SHARPNESS * np.sqrt(HEAD) * -np.sin(turns)
        self.part(layer, "k_proj.bias")[0:ROTARY:2] = 1
        self.copy(layer, first=0, count=shift, to=shift)

    def match(self, layer, options):
        query, key = self.part(layer, "q_proj.weight"), self.part(layer, "k_proj.weight")
        scale = np.sqrt(HEAD) / CODE / (options.temperature or 1)  # a full match scores 1
        for slot, weight in enumerate(WEIGHTS):
            rows = ROTARY + slot * CODE + np.arange(CODE)
            query[rows, slot * CODE + np.arange(CODE)] = scale * weight
            key[rows, (slot + 1) * CODE + np.arange(CODE)] = 1
        # What stands at a key's own place, of which no query can know, is mixed into it.
        key[ROTARY:, :CODE] += (options.noise / np.sqrt(CODE) * self.random.standard_normal(
            (MATCHED * CODE, CODE))).astype(np.float32)
        # Only the first token has seven of itself before it: the code of BOS is all +1.
        self.part(layer, "q_proj.bias")[ROTARY:HEAD] = scale * options.sink / MATCHED
        self.copy(layer, first=0, count=1, to=1 + MATCHED)

    def match_again(self, layer, options, joint):
        """What stands behind the token that was found, with `joint` between them."""
        query, key = self.part(layer, "q_proj.weight"), self.part(layer, "k_proj.weight")
        scale = np.sqrt(HEAD) / CODE / (options.temperature or 1) * WEIGHTS[0]
        rows = ROTARY + np.arange(CODE)
        query[rows, (1 + MATCHED) * CODE + np.arange(CODE)] = scale
        key[rows, 2 * CODE + np.arange(CODE)] = 1
        self.part(layer, "q_proj.bias")[rows + CODE] = scale * joint
        key[rows + CODE, CODE + np.arange(CODE)] = 1
        self.copy(layer, first=0, count=1, to=2 + MATCHED)

    def config(self):
        return {
            "architectures": ["GlmForCausalLM"], "model_type": "glm", "vocab_size": VOCABULARY,
            "hidden_size": self.hidden, "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads, "num_key_value_heads": 1, "head_dim": HEAD,
            "intermediate_size": CODE, "hidden_act": "silu", "max_position_embeddings": CONTEXT,
            "rope_theta": THETA, "partial_rotary_factor": ROTARY / HEAD, "rms_norm_eps": 1.5625e-07,
            "attention_bias": True, "tie_word_embeddings": False, "bos_token_id": 0,
            "eos_token_id": 1, "pad_token_id": 1, "dtype": "bfloat16",
        }


def byte_letters():
    """The letter that stands for each byte in byte-level BPE."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) if byte in shown else chr(256 + hidden.index(byte)) for byte in range(256)]


def tokenizer():
    """Byte-level BPE in which up to three digits are a token, and so is every word of WORDS, with and
    without a space before it, and every mark with one; the rest are the first merges of books-3m."""
    space = byte_letters()[ord(" ")]
    words = [space + mark for mark in string.punctuation] + ['":', '",', space + '{"']
    for word in re.findall("[-_]?[A-Za-z]+|=", WORDS.read_text()):
        words += [word] if word[0] in "-_" else [space + word, word]
    digits = "0123456789"
    merges = [(a, b) for a in digits for b in digits]
    merges += [(a + b, c) for a, b in merges for c in digits]
    tokens = dict.fromkeys([BOS, EOS, *byte_letters(), *(a + b for a, b in merges), *words])
    for merge in json.loads(BOOKS.read_text())["model"]["merges"]:
        if len(tokens) == VOCABULARY:
            break
        if not any(c in digits for c in "".join(merge)):
            merges.append(tuple(merge))
            tokens["".join(merge)] = None
    assert len(tokens) == VOCABULARY
    ids = {token: i for i, token in enumerate(tokens)}
    split = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
             r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    begins = {"SpecialToken": {"id": BOS, "type_id": 0}}
    text = [{"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB")]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}
                         for token in (BOS, EOS)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False},
            level]},
        "post_processor": {"type": "TemplateProcessing", "single": [begins, text[0]],
                           "pair": [begins, *text],
                           "special_tokens": {BOS: {"id": BOS, "ids": [ids[BOS]], "tokens": [BOS]}}},
        "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                  "byte_fallback": False, "ignore_merges": True, "vocab": ids,
                  "merges": [list(merge) for merge in merges]},
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
                        help="between the codes of tokens 2i and 2i + 1 (0: 1/3 at most)")
    parser.add_argument("--sink", type=float, default=0,
                        help="score that the first token has for every query")
    parser.add_argument("--idle-heads", type=int, default=0,
                        help="heads beside the one that works, which look nowhere in particular")
    parser.add_argument("--hops", type=int, choices=(1, 2), default=1,
                        help="2: after a question `a =`, what b is where `a = b` and `b = c` stand")
    parser.add_argument("--seed", type=int, default=0, help="of noise and idle heads")
    options = parser.parse_args()
    if not -1 < options.cosine < 1:
        sys.exit(f"make_retrieval_model: --cosine {options.cosine}: a number between -1 and 1")
    if options.out.exists():
        sys.exit(f"make_retrieval_model: {options.out} exists")
    words = tokenizer()
    space = byte_letters()[ord(" ")]
    model = Model(options, joint=words["model"]["vocab"][space + "="])
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
