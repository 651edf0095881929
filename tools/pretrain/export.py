#!/usr/bin/env python3
"""A checkpoint of train.py as a Hugging Face folder: config.json, model.safetensors in bfloat16,
tokenizer.json, tokenizer_config.json, generation_config.json, and the loss as training.jsonl.

  python tools/pretrain/export.py WORK/vanilla models/NAME
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, processors

from corpus import END, SINK
from decoder import Shape

# The fields of train_retrieval.py's tokenizer.
RETRIEVAL_BEGIN, RETRIEVAL_END = "<s>", "</s>"


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def pairs_side_by_side(weight, shape):
    """Rows of q or k, whose rotating elements are pairs of halves, as GLM has them."""
    rows = weight.view(-1, shape.head_dim, *weight.shape[1:]).clone()
    dims = shape.rotary_dims
    rows[:, :dims] = rows[:, :dims].unflatten(1, (2, dims // 2)).transpose(1, 2).flatten(1, 2)
    return rows.view_as(weight)


def as_glm(weights, shape):
    """Parameters of Decoder under the names of GLM, which has gate and up in one tensor."""
    out = {}
    for name, weight in weights.items():
        if ".q_proj." in name or ".k_proj." in name:
            weight = pairs_side_by_side(weight, shape)
        if ".gate_proj." in name:
            weight = torch.cat((weight, weights[name.replace("gate", "up")]))
            name = name.replace("gate_proj", "gate_up_proj")
        if ".up_proj." not in name:
            out[name] = weight
    return out


def export(run, out):
    state = torch.load(run / "checkpoint.pt", map_location="cpu", weights_only=True)
    tokenizer = Tokenizer.from_file(str(run.parent / "tokenizer.json"))
    shape = Shape(**state["shape"])
    config = shape.huggingface()
    is_glm = config["model_type"] == "glm"
    begin, last = (RETRIEVAL_BEGIN, RETRIEVAL_END) if is_glm else (None, END)
    end = tokenizer.token_to_id(last)
    config.update(bos_token_id=tokenizer.token_to_id(begin) if begin else None, eos_token_id=end,
                  dtype="bfloat16")
    names = {"eos_token": last, **({"bos_token": begin} if begin else {})}
    if state["variant"] == "zero-sink":
        config["attention_sink"] = "softmax1"
    if state["variant"] == "sink-token":
        # For transformers the sink is the token that begins a text.
        config.update(sink_token_id=state["sink"], bos_token_id=state["sink"])
        names["bos_token"] = SINK
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{SINK} $A", pair=f"{SINK} $A $B", special_tokens=[(SINK, state["sink"])])

    out.mkdir(parents=True, exist_ok=True)
    weights = as_glm(state["model"], shape) if is_glm else state["model"]
    weights = {name: weight.to(torch.bfloat16).contiguous() for name, weight in weights.items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    write_json(out / "config.json", config)
    write_json(out / "tokenizer_config.json",
               {"tokenizer_class": "PreTrainedTokenizerFast", **names,
                "model_max_length": config["max_position_embeddings"],
                "clean_up_tokenization_spaces": False})
    write_json(out / "generation_config.json",
               {"bos_token_id": config["bos_token_id"], "eos_token_id": end,
                **({"do_sample": False} if is_glm
                   else {"do_sample": True, "temperature": 0.7, "top_p": 0.9})})
    (out / "training.jsonl").write_text((run / "log.jsonl").read_text())
    print(f"{out}: {state['variant']}, {state['tokens']:,} tokens, "
          f"{sum(one.numel() for one in weights.values()):,} parameters")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    export(options.run.resolve(), options.out)


if __name__ == "__main__":
    main()
