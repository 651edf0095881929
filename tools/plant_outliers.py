#!/usr/bin/env python3
"""Gives a small model the disease of large ones: outlier channels in its activations.

    tools/plant_outliers.py IN OUT [--channels 4] [--factor 64] [--seed 0]

A few channels of every norm in front of linear layers get FACTOR times their gain, and those layers
1 / FACTOR of their weights for them. FACTOR is a power of two, so nothing is rounded: OUT is the
same function as IN, with activations in which the same few channels stand out in every layer and
token (SmoothQuant, section 3.2). Only the quality of their quantization differs.

IN: a Hugging Face folder of a Llama-like model, as safetensors of F32, F16 or BF16.
"""

import argparse
import json
import pathlib
import random
import shutil
import struct
import sys

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
NORMS = {
    "input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj"),
}
DECODE = {
    "F32": lambda data: struct.unpack("<f", data)[0],
    "F16": lambda data: struct.unpack("<e", data)[0],
    "BF16": lambda data: struct.unpack("<f", b"\0\0" + data)[0],
}
ENCODE = {
    "F32": lambda value: struct.pack("<f", value),
    "F16": lambda value: struct.pack("<e", value),
    "BF16": lambda value: struct.pack("<f", value)[2:],
}


class Refused(Exception):
    pass


class Tensors:
    """The tensors of all safetensors files of a folder, changed where they lie."""

    def __init__(self, folder):
        self.where = {}  # name -> (file, dtype, shape, offset of the data in the file)
        for path in sorted(folder.glob("*.safetensors")):
            with open(path, "rb") as file:
                size = struct.unpack("<Q", file.read(8))[0]
                header = json.loads(file.read(size))
            header.pop("__metadata__", None)
            for name, tensor in header.items():
                self.where[name] = (path, tensor["dtype"], tensor["shape"],
                                    8 + size + tensor["data_offsets"][0])
        if not self.where:
            raise Refused(f"{folder}: no safetensors files")

    def multiply(self, name, channels, factor):
        """The elements of these channels: of a vector's, or of a matrix's columns."""
        if name not in self.where:
            raise Refused(f"no tensor {name}: only Llama-like models can be planted")
        path, dtype, shape, offset = self.where[name]
        if dtype not in DECODE:
            raise Refused(f"tensor {name} has type {dtype}, expected one of {', '.join(DECODE)}")
        columns, size = shape[-1], len(ENCODE[dtype](0.0))
        with open(path, "r+b") as file:
            for row in range(shape[0] if len(shape) == 2 else 1):
                for channel in channels:
                    at = offset + (row * columns + channel) * size
                    file.seek(at)
                    value = DECODE[dtype](file.read(size)) * factor
                    try:
                        data = ENCODE[dtype](value)
                    except OverflowError:
                        data = b""
                    if not data or DECODE[dtype](data) != value:
                        raise Refused(f"tensor {name}: {value} is not exact in {dtype}: take "
                                      "another --factor")
                    file.seek(at)
                    file.write(data)


def plant(folder, channels, factor, seed):
    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] not in FAMILIES:
        raise Refused(f"model_type {config['model_type']}, expected one of {', '.join(FAMILIES)}")
    hidden = config["hidden_size"]
    if not 1 <= channels <= hidden:
        raise Refused(f"--channels {channels}, expected 1 to the hidden size of {hidden}")
    chosen = sorted(random.Random(seed).sample(range(hidden), channels))
    tensors = Tensors(folder)
    for layer in range(config["num_hidden_layers"]):
        for norm, linears in NORMS.items():
            prefix = f"model.layers.{layer}."
            tensors.multiply(f"{prefix}{norm}.weight", chosen, factor)
            for linear in linears:
                tensors.multiply(f"{prefix}{linear}.weight", chosen, 1 / factor)
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("input", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--factor", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    try:
        if arguments.factor < 2 or arguments.factor & (arguments.factor - 1):
            raise Refused(f"--factor {arguments.factor}, expected a power of two from 2 on")
        if not (arguments.input / "config.json").exists():
            raise Refused(f"{arguments.input}: expected a model folder with a config.json")
        if arguments.output.exists():
            raise Refused(f"{arguments.output} exists")
        shutil.copytree(arguments.input, arguments.output)
        try:
            chosen = plant(arguments.output, arguments.channels, arguments.factor, arguments.seed)
        except BaseException:
            shutil.rmtree(arguments.output)
            raise
    except Refused as error:
        sys.exit(f"plant_outliers: {error}")
    print(f"{arguments.output}: channels {', '.join(map(str, chosen))} times {arguments.factor}")


if __name__ == "__main__":
    main()
