"""godwit eval quant: its figures against sums over the logits that godwit logits writes."""

import json
import math
import shutil
import struct
import unittest

from harness import GOLDEN, TINY, CliTest, Terminal
from logits_test import read_npy

INPUT, IO, FORMAT, UNSUPPORTED = 2, 3, 4, 5
TEXT = "Once upon a time there was a small bird who wanted to see the other side of the sea. "
LAMBADA = [{"context": "Once upon a time there was a small", "continuation": "bird"},
           {"context": "Once upon a time", "continuation": "zebra"}]
COPA = [{"query": "The bird was hungry, therefore", "choices": ["she slept.", "she ate a fish."],
         "gold": 1}]


class EvalQuantTest(CliTest):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)
        self.quant = ["eval", "quant", "-m", f"{TINY}:f32", "-f", self.text]

    def measure(self, *arguments):
        return json.loads(self.ok(*self.quant, "--json", *arguments))

    def data(self, **tasks):
        folder = self.folder / "data"
        folder.mkdir()
        for name, rows in tasks.items():
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    def log_softmax(self, weights):
        """Of every position, as floats of Python; and the tokens."""
        out = self.folder / "out.npy"
        ids = json.loads(self.ok("tokenize", "-m", TINY, "-p", TEXT, "--ids"))
        self.ok("logits", "-m", TINY, "--weights", weights, "--kv-type", "f32", "--tokens",
                json.dumps(ids), "-o", out)
        (_, vocab), logits = read_npy(out.read_bytes())
        rows = [logits[i * vocab:(i + 1) * vocab] for i in range(len(ids))]
        return ids, [[x - math.log(math.fsum(map(math.exp, row))) for x in row] for row in rows]

    def test_figures(self):
        ids, reference = self.log_softmax("f32")
        _, other = self.log_softmax("int8")
        divergences = [math.fsum(math.exp(p) * (p - q) for p, q in zip(*rows))
                       for rows in zip(reference, other)][:-1]
        agree = [p.index(max(p)) == q.index(max(q)) for p, q in zip(reference, other)][:-1]
        # The first id is the frame.
        nll = [-row[token] for row, token in zip(other, ids[1:])]
        reference_nll = [-row[token] for row, token in zip(reference, ids[1:])]
        n = len(ids) - 1

        jsonl = self.folder / "tokens.jsonl"
        result = self.measure("-m", f"{TINY}:int8", "--kv-type", "f32", "--jsonl", jsonl)
        self.assertEqual((result["kv"], result["window"], result["tokens"]), ("dense", 512, n))
        float_model, int8 = result["models"]
        self.assertEqual(list(float_model), ["model", "perplexity", "nll"])
        self.assertEqual(float_model["model"], f"{TINY}:f32")
        self.assertAlmostEqual(float_model["nll"], math.fsum(reference_nll) / n, places=5)
        self.assertAlmostEqual(int8["nll"], math.fsum(nll) / n, places=5)
        self.assertAlmostEqual(int8["perplexity"], math.exp(int8["nll"]), places=6)
        self.assertAlmostEqual(int8["change"],
                               int8["perplexity"] / float_model["perplexity"] - 1)
        self.assertGreater(int8["kl"], 0)
        self.assertAlmostEqual(int8["kl"] / (math.fsum(divergences) / n), 1, places=3)
        self.assertAlmostEqual(int8["worst"]["kl"] / max(divergences), 1, places=3)
        self.assertEqual(int8["worst"]["position"], divergences.index(max(divergences)))
        self.assertAlmostEqual(int8["top1"], sum(agree) / n)

        rows = [json.loads(line) for line in jsonl.read_text().splitlines()]
        self.assertEqual(list(rows[0]), ["model", "text", "position", "token", "reference_nll",
                                         "nll", "kl", "agrees"])
        self.assertEqual([row["token"] for row in rows], ids[1:])
        self.assertEqual([row["agrees"] for row in rows], agree)
        self.assertAlmostEqual(math.fsum(row["kl"] for row in rows) / n, int8["kl"])

    def test_the_same_whatever_the_threads_and_pieces(self):
        arguments = ["-m", f"{TINY}:int8", "--window", "9"]
        self.assertEqual(self.measure(*arguments), self.measure(*arguments, "-ub", "4", "-t", "1"))

    def test_cache_and_attention_of_the_others(self):
        both = ["-m", f"{TINY}:f32", "--kv-type", "int8"]
        cache = self.measure(*both, "--int8-attention", "off")["models"][1]
        attention = self.measure(*both)["models"][1]
        self.assertEqual(attention, self.measure(*both, "--int8-attention", "on")["models"][1])
        self.assertGreater(cache["kl"], 0)
        self.assertGreater(attention["kl"], cache["kl"])
        self.assertLess(attention["kl"], 0.01)
        for kv_type in ("auto", "f32", "bf16"):
            message = self.refused(INPUT, *self.quant, "-m", TINY, "--int8-attention", "on",
                                   "--kv-type", kv_type)
            self.assertIn("--kv-type int8", message)

    def test_a_model_beside_itself(self):
        result = self.measure("-m", f"{TINY}:f32", "--max-tokens", "5")
        self.assertEqual(result["tokens"], 5)
        same = result["models"][1]
        self.assertEqual((same["kl"], same["top1"], same["change"], same["worst"]["kl"]),
                         (0, 1, 0, 0))

    def test_tables(self):
        folder = self.data(copa=COPA, lambada_openai=LAMBADA)
        lines = self.ok(*self.quant, "-m", TINY, "-d", folder, "--tasks", "all").splitlines()
        self.assertEqual(lines[0].split(), ["model", "perplexity", "change", "mean", "KL", "top-1",
                                            "worst", "KL"])
        self.assertRegex(lines[1], rf"^{TINY}:f32  +\d+\.\d+$")
        self.assertRegex(lines[2], rf"^{TINY}  +\d+\.\d+ +[+-]\d\.\d\d%  +\S+ +\d+\.\d\d%  +\S+$")
        self.assertRegex(lines[3], r"^\d+ tokens; ")
        self.assertEqual(lines[4], "")
        self.assertEqual(lines[5].split(), ["model", "copa", "lambada_openai", "mean"])
        self.assertRegex(lines[6], rf"^{TINY}:f32 +[01]\.0000 +0\.5000 ± 0\.5000 +0\.[27]500$")
        self.assertEqual(len(lines), 8)

    # As godwit eval tasks has them, which needs no text.
    def test_tasks(self):
        folder = self.data(copa=COPA, lambada_openai=LAMBADA)
        result = json.loads(self.ok("eval", "quant", "-m", TINY, "-m", f"{TINY}:int8", "-d", folder,
                                    "--json", "--limit", "1"))
        self.assertEqual(list(result), ["kv", "limit", "models"])
        for model, weights in zip(result["models"], ("auto", "int8")):
            self.assertEqual(list(model), ["model", "results"])
            alone = json.loads(self.ok("eval", "tasks", "-m", TINY, "--weights", weights, "-d",
                                       folder, "--json", "--limit", "1"))
            self.assertEqual(list(model["results"]), ["copa", "lambada_openai"])
            for cell in alone["cells"]:
                self.assertAlmostEqual(model["results"][cell["task"]][cell["figure"]],
                                       cell["score"][0])

    # Table 3.1: the float model with inputs that int8 can hold.
    def test_simulated_inputs(self):
        calibration = self.folder / "calibration.txt"
        calibration.write_text(TEXT * 40)
        folder = self.data(copa=COPA, lambada_openai=LAMBADA)
        simulate = ["--simulate", "per-channel", "--simulate", "per-tensor", "--calib",
                    calibration, "--seq-len", "128", "--samples", "4"]
        result = self.measure(*simulate, "-d", folder)
        self.assertEqual([model["model"] for model in result["models"]],
                         [f"{TINY}:f32", "inputs per-channel", "inputs per-tensor"])
        reference, channel, tensor = result["models"]
        self.assertGreater(channel["kl"], 0)
        self.assertGreater(tensor["kl"], channel["kl"])
        self.assertLess(tensor["kl"], 0.01)
        for model in (channel, tensor):
            self.assertAlmostEqual(model["change"],
                                   model["perplexity"] / reference["perplexity"] - 1)
            self.assertAlmostEqual(model["results"]["lambada_openai"]["perplexity"] /
                                   reference["results"]["lambada_openai"]["perplexity"], 1,
                                   delta=0.3)
        self.assertEqual(result, self.measure(*simulate, "-d", folder, "-t", "1"))
        self.assertIn("--calib FILE",
                      self.refused(INPUT, *self.quant, "--simulate", "per-token"))
        self.assertIn("per-tensor, per-token or per-channel",
                      self.refused(INPUT, *self.quant, "--simulate", "o1"))
        self.assertIn("--simulate", self.refused(INPUT, *self.quant, "-m", TINY, "--calib",
                                                 calibration))

    def olmo(self):
        """The tiny model with its norms behind the blocks, as OLMo 2 has them; nobody trained it."""
        folder = self.folder / "olmo"
        shutil.copytree(TINY, folder)
        data = (folder / "model.safetensors").read_bytes()
        size = 8 + int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8:size]), data[size:]
        header.pop("__metadata__", None)
        config = json.loads((folder / "config.json").read_text())
        dim = config["hidden_size"] // config["num_attention_heads"]
        for layer in range(config["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            norm = header.pop(name + "input_layernorm.weight")
            header[name + "post_feedforward_layernorm.weight"] = norm
            for kind, heads in (("q", config["num_attention_heads"]),
                                ("k", config["num_key_value_heads"])):
                ones = struct.pack(f"<{heads * dim}f", *[1.0] * (heads * dim))
                header[f"{name}self_attn.{kind}_norm.weight"] = {
                    "dtype": "F32", "shape": [heads * dim],
                    "data_offsets": [len(body), len(body) + len(ones)]}
                body += ones
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
        config.update(model_type="olmo2", architectures=["Olmo2ForCausalLM"])
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    # Section 3.3: factors where a layer reads the residual sum itself.
    def test_factors_on_the_residual_branch(self):
        calibration = self.folder / "calibration.txt"
        calibration.write_text(TEXT * 40)
        kinds = ["per-tensor", "per-tensor:residual", "per-token:residual=0.75",
                 "per-token:residual=0"]
        simulate = [flag for kind in kinds for flag in ("--simulate", kind)]
        shared = ["--calib", calibration, "--seq-len", "128", "--samples", "4"]
        result = json.loads(self.ok("eval", "quant", "-m", self.olmo(), "-f", self.text, "--json",
                                    *simulate, *shared))
        self.assertEqual([model["model"] for model in result["models"]][1:],
                         [f"inputs {kind}" for kind in kinds])
        divergences = [model["kl"] for model in result["models"][1:]]
        self.assertGreater(min(divergences), 0)
        self.assertLess(max(divergences), 0.1)
        self.assertEqual(len(set(divergences)), len(kinds))
        for kind, why in (("per-channel:residual", "each channel has a scale of its own"),
                          ("per-token:residual=2", "an alpha from 0 to 1"),
                          ("per-token:all", "expected per-token:residual or")):
            self.assertIn(why, self.refused(INPUT, *self.quant, "--simulate", kind, *shared))
        self.assertIn("its norms take the factors",
                      self.refused(UNSUPPORTED, *self.quant, "--simulate", kinds[1], *shared))

    def test_refusals(self):
        other = ["-m", f"{TINY}:int8"]
        for message, arguments in (
                ("with -m FOLDER", ["-f", self.text]),
                ("nothing to compare", ["-m", TINY, "-f", self.text]),
                ("a text (-f FILE) or", ["-m", TINY, *other]),
                ("--tasks and --limit", [*self.quant[2:], *other, "--limit", "1"]),
                ("--jsonl", ["-m", TINY, *other, "-d", self.folder, "--jsonl", "x"]),
                ("--jsonl", [*self.quant[2:], *other, "--jsonl", "-"]),
                ("windows of", [*self.quant[2:], *other, "-c", "5", "--window", "10"])):
            self.assertIn(message, self.refused(INPUT, "eval", "quant", *arguments))
        # A storage that does not exist is part of the name.
        self.assertIn("no such GGUF model",
                      self.refused(IO, *self.quant, "-m", f"{TINY}:int2"))

    def test_models_that_do_not_compare(self):
        size = self.refused(INPUT, *self.quant, "-m", GOLDEN / "llama" / "gqa")
        self.assertRegex(size, r"has a vocabulary of \d+ and .* one of 512")
        # Two tokens that exchange their ids.
        model = self.copy_of_tiny()
        path = model / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        vocab = tokenizer["model"]["vocab"]
        one, two = [token for token in vocab if len(token) == 1 and token.isalpha()][:2]
        vocab[one], vocab[two] = vocab[two], vocab[one]
        path.write_text(json.dumps(tokenizer))
        self.text.write_text(TEXT + f"{one} {two}{one}{one}{two}")
        message = self.refused(INPUT, *self.quant, "-m", model)
        self.assertIn("different tokens of this text", message)

    def test_interrupt(self):
        self.text.write_text(TEXT * 300)
        terminal = Terminal(self, *self.quant, "-m", f"{TINY}:int8", "--isa", "scalar", "-t", "1",
                            "-ub", "1", "--jsonl", self.folder / "tokens.jsonl")
        terminal.expect("comparing ")
        terminal.expect("left")
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)
        self.assertFalse((self.folder / "tokens.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
