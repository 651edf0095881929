#!/usr/bin/env python3
"""Writes tests/data/vocabularies: small model folders without a tokenizer.json, one for each way in
which models come without, and the ids that sentencepiece and transformers find with them.

Needs the Python packages of requirements-goldens.txt and ../shared/data. Run it from the root of
the repository:
    python3 tools/make_vocabulary_data.py
"""
import io
import json
import pathlib
import tempfile

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

from make_tokenizer_data import TEXTS

ROOT = pathlib.Path("tests/data/vocabularies")
BOOK = pathlib.Path("../shared/data/corpora/gutenberg/frankenstein.txt")
END = "<|endoftext|>"


def corpus():
    return [line for line in BOOK.read_text(encoding="utf-8")[2_000:120_000].split("\n") if line]


def train_pieces(**options):
    """The bytes of a tokenizer.model. It is not made by file name, which the model would keep."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, num_threads=1,
        hard_vocab_limit=False, minloglevel=2, **options)
    return model.getvalue()


def train_pairs():
    """Byte-level BPE: vocab.json and merges.txt."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=400, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [" ".join(merge) for merge in model["merges"]]


def token(text, **flags):
    return {"content": text, "lstrip": False, "normalized": False, "rstrip": False,
            "single_word": False, "special": True} | flags


def llama_pieces():
    return train_pieces(model_type="bpe", vocab_size=480, byte_fallback=True, split_digits=True,
                        normalization_rule_name="identity", remove_extra_whitespaces=False,
                        allow_whitespace_only_pieces=True, control_symbols=["<|end|>"],
                        user_defined_symbols=["<tool>"])


def gemma_pieces():
    return train_pieces(model_type="bpe", vocab_size=480, byte_fallback=True, split_digits=True,
                        normalization_rule_name="identity", remove_extra_whitespaces=False,
                        allow_whitespace_only_pieces=True, add_dummy_prefix=False,
                        pad_id=0, eos_id=1, bos_id=2, unk_id=3, bos_piece="<bos>",
                        eos_piece="<eos>", control_symbols=["<|end|>"],
                        user_defined_symbols=["\n", "\n\n", "\u2581\u2581", "\u2581" * 4])


def rules():
    """A normalizer of a few rules, as the usual one has 240 KB."""
    pairs = {"\u00e9": "e", "\ufb01": "fi", "\u3000": " ", "\t": " ", "\n": " ", "e\u0301": "e",
             "\u2460": "1", "\u00bd": "1/2"}
    file = tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8")
    for of, to in pairs.items():
        spell = lambda text: " ".join(f"{ord(c):X}" for c in text)
        file.write(f"{spell(of)}\t{spell(to)}\n")
    file.flush()
    return file


def unigram_pieces():
    with rules() as file:
        model = train_pieces(model_type="unigram", vocab_size=300, normalization_rule_tsv=file.name)
    return without_path(model, file.name)


def without_path(model, path):
    """The model file keeps the name of the rules' file, too."""
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    assert proto.normalizer_spec.normalization_rule_tsv == path
    proto.normalizer_spec.normalization_rule_tsv = ""
    return proto.SerializeToString(deterministic=True)


def folders():
    """name: (files, whether transformers is asked, or else sentencepiece)"""
    llama, unigram, (vocab, merges) = llama_pieces(), unigram_pieces(), train_pairs()
    merges = "#version: 0.2\n" + "\n".join(merges) + "\n"
    size = len(vocab)
    roles = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return {
        # transformers 5 no longer puts a space in front of every stretch; sentencepiece does.
        "llama_legacy": ({"tokenizer.model": llama, "tokenizer_config.json": {
            "tokenizer_class": "LlamaTokenizer", "add_bos_token": False, **roles}}, False),
        "llama": ({"tokenizer.model": llama, "tokenizer_config.json": {
            "tokenizer_class": "LlamaTokenizer", "legacy": False, "add_bos_token": True, **roles,
            "added_tokens_decoder": {
                "0": token("<unk>"), "1": token("<s>"), "2": token("</s>"),
                "480": token("<left>", lstrip=True), "481": token("<right>", rstrip=True),
                "482": token("<word>", single_word=True, special=False)}}}, True),
        "llama_old": ({"tokenizer.model": llama, "added_tokens.json": {"<left>": 480, "<|im|>": 481},
                       "special_tokens_map.json": {
                           **roles, "pad_token": token("<|im|>"),
                           "additional_special_tokens": ["<|end|>"]},
                       "tokenizer_config.json": {
                           "tokenizer_class": "LlamaTokenizerFast", "legacy": False,
                           "add_bos_token": True, "add_eos_token": True}}, True),
        "internlm2": ({"tokenizer.model": llama, "tokenizer_config.json": {
            "tokenizer_class": "InternLM2Tokenizer", "add_bos_token": False}}, False),
        "gemma": ({"tokenizer.model": gemma_pieces(), "tokenizer_config.json": {
            "tokenizer_class": "GemmaTokenizer", "add_bos_token": True, "bos_token": "<bos>",
            "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"}}, True),
        "unigram": ({"tokenizer.model": unigram}, False),
        "gpt2": ({"vocab.json": vocab | {END: size}, "merges.txt": merges,
                  "config.json": {"model_type": "gpt2"}}, True),
        "opt": ({"vocab.json": vocab | {"<s>": size, "<pad>": size + 1, "</s>": size + 2},
                 "merges.txt": merges.replace("\n", "\r\n"),
                 "tokenizer_config.json": {
                     "tokenizer_class": "GPT2Tokenizer", "add_bos_token": True,
                     "add_prefix_space": True,
                     **{role: {"__type": "AddedToken"} | token("</s>", normalized=True)
                        for role in ("bos_token", "eos_token", "unk_token")},
                     "pad_token": {"__type": "AddedToken"} | token("<pad>")}}, True),
        "qwen2": ({"vocab.json": vocab, "merges.txt": merges, "tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer", "bos_token": None, "unk_token": None,
            "eos_token": "<|end|>", "pad_token": END, "additional_special_tokens": ["<|end|>"],
            "added_tokens_decoder": {str(size): token(END), str(size + 1): token("<|end|>"),
                                     str(size + 2): token("<tool>", special=False)}}}, True),
    }


def cases(folder, by_transformers):
    """Texts with special tokens are left out where sentencepiece is asked: it knows none in a text."""
    if by_transformers:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        for name, text in TEXTS.items():
            yield {"name": name, "text": text, "ids": tokenizer.encode(text)}
        return
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    for name, text in TEXTS.items():
        if "<s>" not in text and "<tool>" not in text and "<|end|>" not in text:
            yield {"name": name, "text": text, "ids": pieces.encode(text)}


def main():
    for name, (files, by_transformers) in folders().items():
        folder = ROOT / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            if isinstance(content, dict):
                content = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
            if isinstance(content, str):
                content = content.encode("utf-8")
            (folder / file).write_bytes(content)
        lines = ",\n".join(json.dumps(case) for case in cases(folder, by_transformers))
        (folder / "cases.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
