#!/usr/bin/env python3
"""Makes tests/data/tiny-llama: a complete checkpoint with a tokenizer, small enough to commit.

For tests of the command line, the chat and the server that must run from a clean clone. It is a
Llama of some 100,000 parameters trained here, for a minute, to know the few texts below by heart:
greedy output is readable, stable (the margins between first and second token are large) and
never a single repeated token. It knows nothing else.

  config.json, model.safetensors (bf16)     as Llama checkpoints have them
  tokenizer.json, tokenizer_config.json     byte-level BPE; <s> is put before every raw text;
                                            a ChatML-like chat_template
  generation_config.json                    ends at </s> and at <|im_end|>
  expected.json                             the results of transformers: token ids, the
                                            rendered chat, greedy continuations

  python tools/make_tiny_model.py           versions: tools/requirements-goldens.txt

Reproducible to the byte on one machine. On another, training may round differently and end in
another model just as good; expected.json is always made from the model beside it.
"""

import argparse
import json
import math
import os
import shutil
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "tiny-llama"

# The order is the numbering: <unk> 0, <s> 1, </s> 2, ...
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
VOCAB_SIZE = 512
MAX_POSITIONS = 1024
STEPS = 500
BATCH = 12

TEXTS = [
    """Once upon a time there was a small bird who wanted to see the other side of the sea. \
She had long legs, a long bill and a very long list of questions. The gulls laughed at her. \
"Nobody flies that far," they said. "You will be hungry, you will be tired, and there is nowhere \
to sit down." The small bird ate well all summer, until she was round as a pear. Then one evening \
the wind turned to the south, and she went. She flew for eight days and eight nights. On the ninth \
morning she saw a white beach, and on the beach there were thousands of birds with long legs. \
"What kept you?" they asked.""",
    """The tide comes in twice a day and goes out twice a day. When it goes out, the mud is \
full of worms, and the birds walk behind the water and eat. When it comes in, they stand on one \
leg on the last dry stones and wait. Nobody has ever seen a bird complain about the tide.""",
    """The godwit is a wader with a long bill that bends a little upwards. It breeds in the far \
north and spends the winter in the far south. Before it leaves it doubles its weight, and then it \
shrinks the parts that it does not need on the way. It carries exactly as much fuel as the journey \
takes, and it does not stop.""",
    """A lighthouse keeper kept a book. On the first page he wrote the date and the weather. On \
the second page he wrote the date and the weather. After forty years he had filled twelve books, \
and when they asked him what had happened in all that time, he said: "Fog, mostly. But once, in \
the spring, a ship came so close that I could hear them singing." """,
    """To make bread you need flour, water, salt and time. Mix the flour with the water and wait. \
Add the salt. Fold the dough four times and wait again. Heat the oven until it is hotter than you \
think is right. Bake the bread for forty minutes, and do not cut it while it is warm, although you \
will.""",
    """The map showed a road, so we took the road. After an hour the road became a path, and after \
two hours the path became a field with a cow in it. The cow looked at the map for a long time. \
"This is a very old map," she seemed to say, and went back to the grass.""",
    """Count with me: one, two, three, four, five, six, seven, eight, nine, ten. Now count back: \
ten, nine, eight, seven, six, five, four, three, two, one.""",
    """Grüße aus dem Süden! Die Vögel sind schon da, das Wasser ist noch kalt. ¿Y mañana? Mañana \
también. 海は広い。鳥は飛ぶ。 🐦🌊""",
]

CHATS = [
    [
        ("user", "Hello!"),
        ("assistant", "Hello! I am a very small model. Ask me about birds."),
        ("user", "How far can a godwit fly?"),
        ("assistant", "About twelve thousand kilometres without a stop."),
    ],
    [("user", "Who are you?"), ("assistant", "I am a very small model that lives in a test.")],
    [("user", "What is the capital of France?"), ("assistant", "Paris. I do not know much else.")],
    [
        ("system", "You are brief."),
        ("user", "Hello!"),
        ("assistant", "Hello."),
        ("user", "Tell me a story."),
        ("assistant", "A bird flew south. It did not stop. The end."),
    ],
    [
        ("user", "Tell me a story."),
        (
            "assistant",
            "Once a bird flew over the sea for eight days. Then it had a very good lunch.",
        ),
    ],
    [("user", "Count to five."), ("assistant", "One, two, three, four, five.")],
    [("user", "What do birds eat?"), ("assistant", "Worms, mostly, when the tide is out.")],
]

CHAT_TEMPLATE = """{{- bos_token }}
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

# Inputs of expected.json: texts to encode, to continue and to answer.
SAMPLES = [
    "",
    "Hello",
    " two  spaces",
    "Once upon a time",
    "naïve café 🐦 海",
    "a\tb\r\n\nc",
    "text with <|im_end|> and </s> inside",
    "e\u0301 \u200d 1234567 !?…",
]
PROMPTS = ["Once upon a time", "The tide", "To make bread you need"]
QUESTIONS = [
    [("user", "Hello!")],
    [("user", "Who are you?")],
    [("system", "You are brief."), ("user", "Hello!")],
    CHATS[0][:3],
]


def messages(turns):
    return [{"role": role, "content": content} for role, content in turns]


def make_tokenizer(folder):
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        show_progress=False,
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    spoken = [content for chat in CHATS for role, content in chat]
    tokenizer.train_from_iterator(TEXTS + spoken + ["user\n", "assistant\n", "system\n"], trainer)
    assert tokenizer.get_vocab_size() == VOCAB_SIZE
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": True,
            "add_eos_token": False,
            "added_tokens_decoder": {
                str(i): {
                    "content": token,
                    "lstrip": False,
                    "normalized": False,
                    "rstrip": False,
                    "single_word": False,
                    "special": True,
                }
                for i, token in enumerate(SPECIAL)
            },
            "bos_token": "<s>",
            "chat_template": CHAT_TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "eos_token": "</s>",
            "model_max_length": MAX_POSITIONS,
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": "<unk>",
        },
    )
    return AutoTokenizer.from_pretrained(folder)


def make_documents(tokenizer):
    documents = [tokenizer.encode(text.strip()) + [2] for text in TEXTS]
    for chat in CHATS:
        text = tokenizer.apply_chat_template(messages(chat), tokenize=False)
        documents.append(tokenizer.encode(text, add_special_tokens=False))
    return [torch.tensor(document) for document in documents]


def make_batch(documents, generator):
    """Whole documents, padded; some texts start in their middle, so any opening is known."""
    rows = []
    for i in torch.randint(len(documents), (BATCH,), generator=generator).tolist():
        document = documents[i]
        if i < len(TEXTS) and torch.rand((), generator=generator) < 0.4:
            start = int(torch.randint(1, len(document) // 2, (), generator=generator))
            document = torch.cat([document[:1], document[start:]])
        rows.append(document)
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)
    return ids.clamp(min=0), ids


def train(model, documents):
    generator = torch.Generator().manual_seed(7)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, weight_decay=0.01)
    peak = 6e-3
    for step in range(STEPS):
        warmup = min(1.0, (step + 1) / 50)
        rate = peak * warmup * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / STEPS)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        inputs, labels = make_batch(documents, generator)
        loss = model(input_ids=inputs, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(f"step {step:4}  loss {loss.item():.4f}", flush=True)


@torch.no_grad()
def continue_greedily(model, tokens, stop, limit=256):
    """Returns the new tokens and the smallest margin between the best and the second logit."""
    tokens, new, margin = list(tokens), [], float("inf")
    while len(new) < limit and (not new or new[-1] not in stop):
        best = model(input_ids=torch.tensor([tokens])).logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        new.append(int(best.indices[0]))
        tokens.append(new[-1])
    return new, margin


def write_expected(folder):
    """From the files, as any user would load them, in float32."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    stop = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]

    def continuation(tokens):
        new, margin = continue_greedily(model, tokens, stop)
        text = tokenizer.decode(new, skip_special_tokens=True)
        print(f"  margin {margin:5.2f}  {len(new):3} tokens  {text[:70]!r}")
        return {"new_tokens": new, "new_text": text, "smallest_margin": round(margin, 3)}

    expected = {"encode": [], "complete": [], "chat": []}
    for text in SAMPLES:
        expected["encode"].append(
            {
                "text": text,
                "tokens": tokenizer.encode(text),
                "tokens_without_special": tokenizer.encode(text, add_special_tokens=False),
            }
        )
    for prompt in PROMPTS:
        tokens = tokenizer.encode(prompt)
        expected["complete"].append({"prompt": prompt, "tokens": tokens} | continuation(tokens))
    for question in QUESTIONS:
        rendered = tokenizer.apply_chat_template(
            messages(question), tokenize=False, add_generation_prompt=True
        )
        tokens = tokenizer.encode(rendered, add_special_tokens=False)
        entry = {"messages": messages(question), "rendered": rendered, "tokens": tokens}
        expected["chat"].append(entry | continuation(tokens))
    write_json(folder / "expected.json", expected)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="default: tests/data/tiny-llama")
    folder = parser.parse_args().out

    torch.set_num_threads(1)  # one order of every sum
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(7)
    transformers.utils.logging.disable_progress_bar()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    tokenizer = make_tokenizer(folder)
    fields = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": 64,
        "initializer_range": 0.05,
        "intermediate_size": 160,
        "max_position_embeddings": MAX_POSITIONS,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-05,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": VOCAB_SIZE,
    }
    config = LlamaConfig(
        **{k: v for k, v in fields.items() if k not in ("model_type", "torch_dtype")}
    )
    model = LlamaForCausalLM(config)
    documents = make_documents(tokenizer)
    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"{parameters} parameters, {sum(map(len, documents))} tokens, "
        f"longest document {max(map(len, documents))}"
    )
    train(model, documents)

    model.to(torch.bfloat16).save_pretrained(folder)
    write_json(folder / "config.json", fields)
    write_json(
        folder / "generation_config.json",
        {"bos_token_id": 1, "do_sample": False, "eos_token_id": [2, 4]},
    )
    write_expected(folder)
    for file in folder.iterdir():
        file.chmod(0o644)
    print(f"{sum(f.stat().st_size for f in folder.iterdir()) / 1024:.0f} KiB in {folder}")


if __name__ == "__main__":
    main()
