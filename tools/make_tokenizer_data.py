#!/usr/bin/env python3
"""Writes the two tiny tokenizers of tests/data/tokenizers and what Hugging Face makes of them; and,
where ../shared has the tokenizers of real models, what it makes of the same texts with those.

Needs the Python package `tokenizers`. Run it from the root of the repository:
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
}


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" \
            r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(split), "isolated"),
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
    """What transformers makes of a Llama 2 tokenizer.model: byte fallback, a space put in front."""
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


def cases(tokenizer):
    for case, text in TEXTS.items():
        ids = tokenizer.encode(text).ids
        yield {"name": case, "text": text, "ids": ids,
               "plain_ids": tokenizer.encode(text, add_special_tokens=False).ids,
               "decoded": tokenizer.decode(ids, skip_special_tokens=False),
               "decoded_skip": tokenizer.decode(ids, skip_special_tokens=True)}


def main():
    for name, tokenizer in (("byte_level", byte_level()), ("sentencepiece", sentencepiece())):
        folder = ROOT / name
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
