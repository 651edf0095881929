#!/usr/bin/env python3
"""Makes the files in tests/golden/gguf with gguf's own Python package.

blocks.safetensors: of every quantized type, random blocks (TYPE.blocks, U8 [rows, bytes]) and what
gguf's reference makes of them (TYPE.values, F32 [rows, elements]).

  python tools/make_gguf_goldens.py             writes tests/golden/gguf
  python tools/make_gguf_goldens.py --check     makes them again elsewhere and compares
"""

import argparse
import filecmp
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
import safetensors.numpy
from gguf import GGMLQuantizationType as Type

ROOT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "gguf"
TYPES = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q4_K, Type.Q5_K, Type.Q6_K,
         Type.IQ4_NL, Type.IQ4_XS]


def finite_blocks(rng, qtype, count):
    """Random bytes, of which the scales are numbers. [count, bytes]"""
    _, size = gguf.GGML_QUANT_SIZES[qtype]
    blocks = np.empty((0, size), np.uint8)
    with np.errstate(all="ignore"):
        while len(blocks) < count:
            more = rng.integers(0, 256, (4 * count, size), dtype=np.uint8)
            finite = np.isfinite(gguf.dequantize(more, qtype)).all(axis=1)
            blocks = np.concatenate([blocks, more[finite]])
    return blocks[:count]


def make_blocks(folder):
    rng = np.random.default_rng(1)
    tensors = {}
    for qtype in TYPES:
        rows = finite_blocks(rng, qtype, 12).reshape(4, -1)
        tensors[f"{qtype.name}.blocks"] = rows
        tensors[f"{qtype.name}.values"] = gguf.dequantize(rows, qtype)
    safetensors.numpy.save_file(tensors, folder / "blocks.safetensors")


def make(folder):
    make_blocks(folder)


def compare(made, kept):
    names = sorted({file.relative_to(folder) for folder in (made, kept)
                    for file in folder.rglob("*") if file.is_file()})
    different = [name for name in names
                 if not ((made / name).exists() and (kept / name).exists()
                         and filecmp.cmp(made / name, kept / name, shallow=False))]
    for name in different:
        print(f"differs: {name}")
    return 1 if different else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder))
            return compare(Path(folder), ROOT)
    ROOT.mkdir(parents=True, exist_ok=True)
    make(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
