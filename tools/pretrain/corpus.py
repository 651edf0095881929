#!/usr/bin/env python3
"""Books to one long array of token ids.

  python tools/pretrain/corpus.py --out WORK FILE[xREPEAT]...     tokenizer.json and ids.npy
  python tools/pretrain/corpus.py --out WORK --tokenizer MODEL/tokenizer.json FILE...
  python tools/pretrain/corpus.py --text FILE >BOOK.txt           one book as the models saw theirs

The text is taken as it is read, not as it was typeset: the header and footer of Project Gutenberg
go, the lines of a paragraph become one line, and headings, lists, tables and indexes are left out.
Evaluate on files treated in the same way (--text); otherwise only line breaks are measured.
"""

import argparse
import lzma
import re
import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

# The order is the numbering. `<|sink|>` is in every vocabulary, so that all models share one.
END, SINK = "<|endoftext|>", "<|sink|>"

# The boundary between books of one file: END, or the transcriber's note that opens a book.
BOOK = re.compile(r"^(?=(?:Produced by|E-text prepared by|This eBook was produced) )|"
                  + re.escape(END), re.MULTILINE)


def read(path):
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline=None) as file:
        return file.read()


def is_prose(paragraph):
    """Mostly small letters, and ends as a sentence does."""
    other = re.sub("[a-z ]+", "", paragraph)
    return len(other) <= 0.15 * len(paragraph) and paragraph[-1] in ".!?\"'”’"


def plain(text):
    """The prose of `text`, a paragraph a line, blank lines between."""
    start = re.search(r"^\*\*\* ?START OF.*$", text, re.MULTILINE)
    end = re.search(r"^(\*\*\* ?END OF|End of (the )?Project Gutenberg).*$", text, re.MULTILINE)
    text = text[start.end() if start else 0:end.start() if end else len(text)]
    paragraphs = (" ".join(one.split()) for one in re.split(r"\n\s*\n", text.replace("_", "")))
    return "\n\n".join(one for one in paragraphs if one and is_prose(one))


def documents(argument):
    """The books of FILE or FILExREPEAT."""
    match = re.fullmatch(r"(.+?)(?:x(\d+))?", argument)
    path, repeat = Path(match[1]), int(match[2] or 1)
    return [book for book in map(plain, BOOK.split(read(path))) if book] * repeat


def train_tokenizer(books, vocabulary):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(books, trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=[END, SINK], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def encode(tokenizer, books):
    """uint16 ids of all books, each followed by END."""
    end = tokenizer.token_to_id(END)
    ids = [np.array(one.ids + [end], np.uint16) for one in tokenizer.encode_batch(books)]
    return np.concatenate(ids)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, metavar="WORK")
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--tokenizer", type=Path, metavar="FILE", help="instead of a new one")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if options.text:
        print(plain(read(options.text)))
        return
    if not options.out or not options.files:
        parser.error("--out and at least one FILE are needed")
    books = [book for argument in options.files for book in documents(argument)]
    tokenizer = (Tokenizer.from_file(str(options.tokenizer)) if options.tokenizer
                 else train_tokenizer(books, options.vocabulary))
    ids = encode(tokenizer, books)
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(options.out / "tokenizer.json"))
    np.save(options.out / "ids.npy", ids)
    characters = sum(map(len, books))
    print(f"{len(books)} books, {characters:,} characters, {len(ids):,} tokens "
          f"({characters / len(ids):.2f} characters each)", file=sys.stderr)


if __name__ == "__main__":
    main()
