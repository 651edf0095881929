#!/usr/bin/env python3
"""Writes the small tokenizers of tests/data/tokenizers, one of each kind that models come with, and
Hugging Face's ids with them. If ../shared has the tokenizers of real models, writes their ids of the
same texts, too.

Needs the Python package `tokenizers` (0.23.2 made the files). Run it from the root of the
repository:
    python3 tools/make_tokenizer_data.py
"""
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

ROOT = pathlib.Path("tests/data/tokenizers")
SHARED = pathlib.Path("../shared/data/tokenizers")
CORPUS = """The godwit flies from Alaska to New Zealand without a stop, and it does not eat or drink
on the way. It is the longest flight of any bird that lands. The bird is not large. The wind is its
friend, the sea is not. They'll say it's 11,000 kilometres; we've seen 12,000 in 2020 and 13,560 in
2022. Der Vogel fliegt über das Meer. L'oiseau vole là-bas, où l'été commence. 鳥は海を越える。""" * 3

TEXTS = {
    "empty": "",
    "space": " ",
    "spaces": "   three leading and two trailing  ",
    "plain": "The godwit flies without a stop.",
    "leading space": " The bird",
    "newlines": "a\n\n\nb\r\nc\td",
    "numbers": "1234567890 3.14159 1,000,000",
    "contractions": "It's they'll WE'VE don't",
    "emoji": "bird 🐦 family 👩‍👩‍👧‍👦 flag 🇳🇿 skin 👍🏽",
    "cjk": "鳥は海を越える。 한국어 中文字符",
    "combining": "e\u0301 a\u0308 n\u0303 \u1e69 s\u0323\u0307 z\u0351\u036b\u0343",
    "controls": "nul\x00bel\x07esc\x1bdel\x7fnel\x85zwsp\u200bbom\ufeff",
    "right to left": "שלום עולם مرحبا",
    "special": "<s>hi</s><|end|><tool> x <tool>",
    "special spaced": "a <|end|> b <s> c",
    "replacement": "\ufffd and \u2581 and \u0120",
    "code": "for (int i = 0; i < n; ++i) {\n    x[i] += y[i];\n}\n",
    "astral": "\U0001d518\U0001d52b \U0010fffd \ue000",
    "added": "a  <left> b <right>  c\n<right>\n\nd <word> e<word>f <Norm> <NORM> g    h        i",
    "compatible": "\ufb01sh \u2460 \uff21\uff22\u3000\uff11 \u00bd stra\u00dfe \u212b",
}
LLAMA_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" \
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA_3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([CORPUS], trainers.BpeTrainer(
        vocab_size=360, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<s>", "</s>", "<|end|>")])
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    bos = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                      special_tokens=[("<s>", bos)]),
    ])
    return tokenizer


def sentencepiece():
    """transformers' form of a Llama 2 tokenizer.model: byte fallback, a space put in front."""
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    # The limit leaves no choice between equally frequent characters: runs give equal files.
    letters = sorted(set("\u2581 \n',-.012345abcdefghiklmnorstuvwyDTZ"
                         "\u00e9\u00fc\u9ce5\u306f\u6d77\u3092"))
    pieces.train_from_iterator([CORPUS], trainers.BpeTrainer(
        vocab_size=160, show_progress=False, initial_alphabet=letters,
        limit_alphabet=len(letters)))
    trained = json.loads(pieces.to_str())["model"]
    vocab = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    vocab += sorted(trained["vocab"], key=trained["vocab"].get)
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in trained["merges"]]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(vocab)}, merges,
                                     unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                  for t in ("<unk>", "<s>", "</s>", "<|end|>")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return tokenizer


def like(tokenizer, words=(), **options):
    """A tokenizer with the BPE vocabulary of another, and words that no merges reach. White space
    and its neighbours merge, too."""
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    space, newline = "\u0120\u010a" if "\u0120" in model["vocab"] else "\u2581\n"
    merges += [(space, space), (space * 2, space * 2), (newline, newline), (".", newline),
               (newline, space), (space, newline)]
    words = [a + b for a, b in merges[-6:]] + list(words)
    vocab = model["vocab"] | {word: len(model["vocab"]) + i for i, word in enumerate(words)}
    return Tokenizer(models.BPE(vocab, merges, **options))


def add_tokens(tokenizer):
    """Special tokens that take the white space beside them, and others that are found only
    normalized."""
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<s>", "</s>", "<|end|>")])
    tokenizer.add_special_tokens([AddedToken("<left>", lstrip=True, normalized=False),
                                  AddedToken("<right>", rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<word>", single_word=True, normalized=False),
                          AddedToken("<Norm>", normalized=True),
                          AddedToken(" " * 8, normalized=True), AddedToken(" " * 4, normalized=True)])


def prefix_space():
    """As RoBERTa's."""
    tokenizer = like(byte_level())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    add_tokens(tokenizer)
    ends = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=True)
    return tokenizer


def ignore_merges():
    """As Llama 3's."""
    tokenizer = like(byte_level(), ["\u0120Alaska", "\u0120kilometres"], ignore_merges=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA_3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    add_tokens(tokenizer)
    return tokenizer


def sequences():
    """Normalizers as in GPT-NeoX and before it, pre-tokenizers as in Falcon."""
    tokenizer = like(byte_level())
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace("\u00df", "s")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    tokenizer.decoder = decoders.ByteLevel()
    add_tokens(tokenizer)
    return tokenizer


def metaspace():
    """As Mistral's: the space in front is the pre-tokenizer's."""
    tokenizer = like(sentencepiece(), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])
    add_tokens(tokenizer)
    return tokenizer


def words_of_corpus():
    return sorted({word.lower() for word in CORPUS.split() if word.isascii() and word.isalpha()})


def unigram():
    """As T5's, with the normalizer in parts."""
    text = CORPUS.lower().replace("\n", " ")
    pieces = sorted(set(text) - {" "}) + ["\u2581"] + ["\u2581" + word for word in words_of_corpus()]
    scores = [(piece, -12.0 + 1.5 * len(piece)) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0)] + scores, unk_id=0))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    add_tokens(tokenizer)
    return tokenizer


def word_piece():
    """As BERT's, with the normalizer in parts."""
    letters = sorted(set(CORPUS.lower()) - set(" \n"))
    pieces = ["[UNK]"] + letters + ["##" + letter for letter in letters] + words_of_corpus()
    vocab = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    add_tokens(tokenizer)
    return tokenizer


KINDS = (byte_level, ignore_merges, metaspace, prefix_space, sentencepiece, sequences, unigram,
         word_piece)


def cases(tokenizer):
    for case, text in TEXTS.items():
        ids = tokenizer.encode(text).ids
        yield {"name": case, "text": text, "ids": ids,
               "plain_ids": tokenizer.encode(text, add_special_tokens=False).ids,
               "decoded": tokenizer.decode(ids, skip_special_tokens=False),
               "decoded_skip": tokenizer.decode(ids, skip_special_tokens=True)}


def main():
    for kind in KINDS:
        tokenizer = kind()
        folder = ROOT / kind.__name__
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(
            json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False,
                       separators=(",", ":")) + "\n", encoding="utf-8")
        lines = ",\n".join(json.dumps(case) for case in cases(tokenizer))
        (folder / "cases.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    real = {path.parent.name: cases(Tokenizer.from_file(str(path)))
            for path in sorted(SHARED.glob("*/tokenizer.json"))}
    if real:
        lines = ",\n".join(f"{json.dumps(name)}: [\n" + ",\n".join(
            json.dumps({key: case[key] for key in ("text", "ids", "decoded")}) for case in cases_)
            + "]" for name, cases_ in real.items())
        (ROOT / "real_cases.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
