"""The vocabulary of the constructed models, and the role of each token.

Its words are those of retrieval_words.txt and of models/books-3m/tokenizer.json.
"""

import itertools
import json
import pathlib
import re
import string

TOOLS = pathlib.Path(__file__).resolve().parent
WORDS = TOOLS / "retrieval_words.txt"  # of needles and questions
BOOKS = TOOLS.parent / "models/books-3m/tokenizer.json"

VOCABULARY = 4096
BOS, EOS = "<s>", "</s>"
DIGITS = "0123456789"


def byte_letters():
    """The letter that stands for each byte in byte-level BPE."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) if byte in shown else chr(256 + hidden.index(byte)) for byte in range(256)]


SPACE, NEWLINE = (byte_letters()[ord(c)] for c in " \n")

# Words between a key and its value, in texts and in questions: mere joints.
STOP_WORDS = "The the value associated with specified key is are mentioned in provided text = REGISTER"
STOPS = {SPACE, SPACE + '"', '":', '"' + NEWLINE, ":", "_CONTENT"}
STOPS |= {before + word for word in STOP_WORDS.split() for before in ("", SPACE)}


def paragraphs():
    """The tokens of WORDS by paragraph: templates, adjectives, nouns, cities."""
    for paragraph in WORDS.read_text().split("\n\n"):
        yield [token for word in re.findall("[-_]?[A-Za-z]+|=", paragraph)
               for token in ([word] if word[0] in "-_" else [SPACE + word, word])]


def is_mark(token):
    """Punctuation and line ends, except those inside a value."""
    return token not in STOPS and bool(re.fullmatch(f"{SPACE}?[^\\w{SPACE}<-]+", token))


def kinds(ids):
    """Lists of the ids of tokens that can take each other's place: numbers, adjectives, nouns, cities."""
    _, *words = paragraphs()
    numbers = [token for token in ids if token.isascii() and token.isdigit()]
    found, lists = set(STOPS), []
    for kind in [numbers, *words]:
        lists.append(sorted({ids[token] for token in kind} - {ids.get(token) for token in found}))
        found |= set(kind)
    return lists


def tokenizer():
    """A byte-level BPE tokenizer. Its tokens are up to three digits, up to three letters of a UUID,
    every word of WORDS with and without a space before it, and every mark with one. The rest are
    the first merges of books-3m."""
    words = [SPACE + mark for mark in string.punctuation]
    words += ["".join(letters) for n in (2, 3) for letters in itertools.product("abcdef", repeat=n)]
    words += ['":', '",', '"' + NEWLINE, SPACE + '{"', *(token for p in paragraphs() for token in p)]
    merges = [(a, b) for a in DIGITS for b in DIGITS]
    merges += [(a + b, c) for a, b in merges for c in DIGITS]
    tokens = dict.fromkeys([BOS, EOS, *byte_letters(), *(a + b for a, b in merges), *words])
    for merge in json.loads(BOOKS.read_text())["model"]["merges"]:
        if len(tokens) == VOCABULARY:
            break
        if not any(c in DIGITS for c in "".join(merge)):
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
