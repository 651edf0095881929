"""godwit quantize: a folder that is there whole or not at all, and every refusal by name."""

import hashlib
import json
import resource
import shutil
import signal
import unittest

from harness import GOLDEN, TINY, CliTest, Terminal, changed
from logits_test import read_npy

INPUT, IO, UNSUPPORTED = 2, 3, 5
TINY_GGUF = GOLDEN / "gguf" / "tiny_llama.gguf"  # in bf16


class QuantizeTest(CliTest):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "text"
        self.text.write_text("Once upon a time there was a small bird. " * 200)
        self.out = self.folder / "out"
        self.command = ["quantize", "-m", TINY, "-o", self.out, "--calib", self.text,
                        "--seq-len", "64", "--samples", "4"]

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def refuses(self, code, *flags, left=("text",), command=None, **options):
        message = self.refused(code, *(command or self.command), *flags, **options)
        self.assertEqual(self.files(), list(left))
        return message

    def test_makes_a_model(self):
        said = self.ok(*self.command)
        self.assertIn("scheme      w8a8", said)
        self.assertIn("alpha       0.5\n", said)
        self.assertEqual(self.files(), ["out", "text"])
        config = json.loads((self.out / "config.json").read_text())
        self.assertEqual(list(config)[:-1], list(json.loads((TINY / "config.json").read_text())))
        self.assertEqual(config["quantization_config"]["format"], "int-quantized")
        self.assertEqual((self.out / "tokenizer.json").read_bytes(),
                         (TINY / "tokenizer.json").read_bytes())

    def test_a_gguf_model(self):
        command = changed(self.command, "-m", TINY_GGUF)
        plan = self.ok("quantize", "-m", TINY_GGUF, "--dry-run")
        self.assertIn("model.layers.*.input_layernorm -> q_proj, k_proj, v_proj", plan)
        self.ok(*command)
        for file in ("config.json", "generation_config.json", "tokenizer.json",
                     "tokenizer_config.json"):
            json.loads((self.out / file).read_text())
        config = json.loads((self.out / "config.json").read_text())
        self.assertEqual((config["model_type"], config["architectures"], config["torch_dtype"]),
                         ("llama", ["LlamaForCausalLM"], "bfloat16"))
        self.assertEqual(config["quantization_config"]["format"], "int-quantized")
        text = "Hello <|endoftext|> two\n\nbirds"
        for flags in ([], ["--no-bos"]):
            tokenize = ["tokenize", "-p", text, "--ids", *flags]
            self.assertEqual(self.ok(*tokenize, "-m", self.out),
                             self.ok(*tokenize, "-m", TINY_GGUF))
        compared = json.loads(self.ok("eval", "quant", "-m", f"{TINY_GGUF}:f32", "-m", self.out,
                                      "-m", TINY_GGUF, "-f", self.text, "--max-tokens", "100",
                                      "--json"))["models"]
        self.assertLess(0, compared[1]["kl"])
        self.assertLess(compared[1]["kl"], 0.01)
        self.assertLess(compared[2]["kl"], compared[1]["kl"])

        # In float, as it was.
        floats = self.folder / "float"
        self.ok("quantize", "-m", TINY_GGUF, "-o", floats, "--scheme", "zeroquant", "--keep", "*")
        for verb in (["run", "-p", "Once upon a time"], ["chat"]):
            arguments = [*verb, "-n", "20", "--temp", "0"]
            self.assertEqual(self.ok(*arguments, "-m", floats, stdin="Hello!\n"),
                             self.ok(*arguments, "-m", TINY_GGUF, stdin="Hello!\n"))

    def test_a_model_of_4_bit_blocks(self):
        # The numbers of the blocks, rounded to bf16; and a folder that has one GGUF model.
        place = self.folder / "place"
        place.mkdir()
        shutil.copy(GOLDEN / "gguf" / "llama_q4_k.gguf", place / "a.gguf")
        self.ok("quantize", "-m", place, "-o", self.out, "--scheme", "zeroquant", "--keep", "*")
        logits = []
        for model in (place, self.out):
            file = self.folder / "logits.npy"
            self.ok("logits", "-m", model, "--weights", "f32", "--tokens", "1,2,3,4", "-o", file)
            logits.append(read_npy(file.read_bytes())[1])
        error = sum((a - b) ** 2 for a, b in zip(*logits)) / sum(a * a for a in logits[0])
        self.assertLess(error, 1e-4)
        # Nothing else of the folder is the model's.
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         ["config.json", "generation_config.json", "model.safetensors"])

    def test_same_bytes_again(self):
        sums = set()
        for name, threads in (("a", "1"), ("b", "3")):
            self.ok(*changed(self.command, "-o", self.folder / name), "-t", threads, "--scheme", "o3",
                    "--smooth", "all", "--alpha", "per-layer", "--clip-top", "2%")
            sums.add(hashlib.sha256((self.folder / name / "model.safetensors").read_bytes())
                     .hexdigest())
        self.assertEqual(len(sums), 1)

    def test_outlier_suppression(self):
        for name, threads in (("a", "1"), ("b", "3")):
            self.ok(*changed(self.command, "-o", self.folder / name), "-t", threads, "--scheme",
                    "outlier-suppression")
        files = [(self.folder / name / "model.safetensors").read_bytes() for name in "ab"]
        self.assertEqual(*files)
        said = self.ok("inspect", "-m", self.folder / "a", "--tensors")
        self.assertIn("model.layers.0.self_attn.q_proj.input_scale", said)
        compared = json.loads(self.ok("eval", "quant", "-m", f"{TINY}:f32", "-m", self.folder / "a",
                                      "-f", self.text, "--max-tokens", "100", "--json"))["models"][1]
        self.assertGreater(compared["kl"], 0)
        self.assertLess(compared["kl"], 0.1)
        self.assertIn("moves the gains of norms", self.refused(
            INPUT, *changed(self.command, "-o", self.out), "--scheme", "outlier-suppression",
            "--alpha", "0.5"))

    def test_json(self):
        said = self.ok(*self.command, "--alpha", "auto")
        self.assertEqual(said.count("  least\n"), 1)
        result = json.loads(self.ok(*changed(self.command, "-o", self.folder / "again"), "--alpha", "auto",
                                    "--json"))
        self.assertEqual((result["model"], result["scheme"], result["text"], result["tokens"]),
                         (str(TINY), "w8a8", str(self.text), 256))
        self.assertEqual(len(result["search"]), 21)
        least = min(result["search"], key=lambda point: point["error"])
        self.assertIn(f"{least['alpha']:>5g}  {least['error']:.3e}  least\n", said)
        self.assertEqual(result["alphas"], [least["alpha"]] * 4)
        self.assertLess(result["after_bytes"], result["before_bytes"])
        result = json.loads(self.ok("quantize", "-m", TINY, "-o", self.folder / "naive", "--scheme",
                                    "naive", "--json"))
        self.assertEqual((result["text"], result["tokens"], result["alphas"], result["search"]),
                         (None, None, [], None))

    def test_llm_int8_runs(self):
        self.ok("quantize", "-m", TINY, "-o", self.out, "--scheme", "llm-int8")
        self.assertIn("its elements of 6 or more in float", self.ok("inspect", "-m", self.out))
        self.assertIn(".SCB", self.ok("inspect", "-m", self.out, "--tensors"))
        compared = json.loads(self.ok("eval", "quant", "-m", f"{TINY}:f32", "-m", self.out, "-f",
                                      self.text, "--max-tokens", "100", "--json"))["models"][1]
        self.assertGreater(compared["kl"], 0)
        self.assertLess(compared["kl"], 0.01)

    def test_four_bits(self):
        sums = set()
        for name, threads in (("a", "1"), ("b", "3")):
            self.ok(*changed(self.command, "-o", self.folder / name), "-t", threads, "--scheme", "w4a16",
                    "--group-size", "32")
            sums.add(hashlib.sha256((self.folder / name / "model.safetensors").read_bytes())
                     .hexdigest())
        self.assertEqual(len(sums), 1)
        self.ok("quantize", "-m", TINY, "-o", self.folder / "nearest", "--scheme", "w4a8",
                "--group-size", "32", "--rounding", "nearest", "--smooth", "none")
        compared = json.loads(self.ok("eval", "quant", "-m", f"{TINY}:f32", "-m", self.folder / "a",
                                      "-m", self.folder / "nearest", "-f", self.text,
                                      "--max-tokens", "100", "--json"))["models"]
        self.assertLess(0, compared[1]["kl"])
        self.assertLess(compared[1]["kl"], compared[2]["kl"])
        self.ok("quantize", "-m", TINY, "-o", self.folder / "eight", "--scheme", "w4a8",
                "--group-size", "32", "--rounding", "nearest", "--smooth", "none", "--int8", "*")
        eight = json.loads(self.ok("eval", "quant", "-m", f"{TINY}:f32", "-m",
                                   self.folder / "eight", "-f", self.text, "--max-tokens", "100",
                                   "--json"))["models"][1]
        self.assertLess(4 * eight["kl"], compared[2]["kl"])
        config = json.loads((self.folder / "eight" / "config.json").read_text())
        self.assertIn("model.layers.1.mlp.down_proj", config["quantization_config"]
                      ["config_groups"]["group_1"]["targets"])
        for flag in (("--group-size", "32"), ("--rounding", "nearest"), ("--int8", "*.down_proj")):
            self.assertIn(f"{flag[0]} is for weights of 4 bits: it needs --scheme w4a8 or w4a16",
                          self.refused(INPUT, *self.command, "-o", self.out, *flag))
        self.assertIn("expected 32, 64 or 128", self.refused(
            INPUT, *self.command, "-o", self.out, "--scheme", "w4a8", "--group-size", "48"))

    def test_naive_needs_no_text(self):
        self.ok("quantize", "-m", TINY, "-o", self.out, "--scheme", "naive")
        self.assertIn("--scheme naive",
                      self.refused(INPUT, "quantize", "-m", TINY, "-o", self.folder / "other",
                                   "--scheme", "naive", "--smooth", "norm"))

    def test_dry_run_writes_nothing(self):
        said = self.ok("quantize", "-m", TINY, "--dry-run")
        for part in ("model.layers.*.self_attn.q_proj", "lm_head",
                     "model.layers.*.input_layernorm -> q_proj, k_proj, v_proj", "->"):
            self.assertIn(part, said)
        self.assertEqual(self.files(), ["text"])

    def test_flags(self):
        self.assertIn("--scheme: expected w8a8", self.refuses(INPUT, "--scheme", "w4"))
        self.assertIn("--alpha", self.refuses(INPUT, "--alpha", "1.5"))
        self.assertIn("--smooth", self.refuses(INPUT, "--smooth", "some"))
        self.assertIn("--clip-top", self.refuses(INPUT, "--clip-top", "60%"))
        self.assertIn("o3", self.refuses(INPUT, "--clip-top", "2%"))
        self.assertIn("--scheme llm-int8 has none",
                      self.refuses(INPUT, "--scheme", "llm-int8", "--alpha", "0.6"))
        self.assertIn("tools/plot", self.refuses(INPUT, "--plot", self.folder / "x.svg"))
        self.assertIn("--json", self.refuses(INPUT, "--dry-run", "--json"))
        self.assertIn("\"*.no\"", self.refuses(INPUT, "--keep", "*.no"))
        self.assertIn("but not", self.refuses(INPUT, "--keep", "*.q_proj"))
        self.assertIn("--calib", self.refused(INPUT, "quantize", "-m", TINY, "-o", self.out))
        self.assertIn("-o FOLDER", self.refused(INPUT, "quantize", "-m", TINY))

    def test_short_texts(self):
        result = self.godwit(*changed(self.command, "--samples", "512"))
        self.assertEqual(result.returncode, 0)
        self.assertIn("64 tokens, not for 512: using all of it", result.stderr)
        self.text.write_text("too short")
        other = changed(self.command, "-o", self.folder / "other")
        self.assertIn("expected at least 1000",
                      self.refuses(INPUT, command=other, left=("out", "text")))
        self.assertIn("pieces of 1025 tokens",
                      self.refuses(INPUT, command=changed(other, "--seq-len", "1025"),
                                   left=("out", "text")))

    def test_an_output_that_exists(self):
        self.out.mkdir()
        self.assertIn(f"{self.out}: exists already", self.refuses(INPUT, left=("out", "text")))

    def test_a_quantized_model(self):
        self.ok(*self.command)
        message = self.refused(UNSUPPORTED, "quantize", "-m", self.out, "-o", self.folder / "twice",
                               "--calib", self.text)
        self.assertIn("quantized already", message)

    def test_weights_that_are_not_finite(self):
        name = "model.layers.1.mlp.down_proj.weight"
        model = self.copy_of_tiny()
        data = bytearray((model / "model.safetensors").read_bytes())
        end = 8 + int.from_bytes(data[:8], "little")
        at = end + json.loads(data[8:end])[name]["data_offsets"][0]
        data[at:at + 2] = b"\xc0\x7f"
        (model / "model.safetensors").write_bytes(data)
        message = self.refused(UNSUPPORTED, "quantize", "-m", model, "-o", self.out, "--scheme",
                               "naive")
        self.assertIn(f"tensor {name} holds NaN", message)
        self.assertEqual(self.files(), ["model", "text"])

    # A limit on the size of files stands in for a disk that is full: both are errors of a write.
    def test_a_disk_that_is_full(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

        message = self.refuses(IO, preexec_fn=limit)
        self.assertIn("cannot write", message)
        self.assertIn("model.safetensors", message)

    def test_interrupted(self):
        terminal = Terminal(self, *changed(self.command, "--samples", "100000", "--calib",
                                           self.long_text()), "--isa", "scalar", "-t", "1")
        terminal.expect("calibrating: ")
        self.assertEqual(len(self.files()), 3)
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)
        self.assertEqual(self.files(), ["long", "text"])

    def test_killed(self):
        terminal = Terminal(self, *changed(self.command, "--samples", "100000", "--calib",
                                           self.long_text()), "--isa", "scalar", "-t", "1")
        terminal.expect("calibrating: ")
        terminal.process.send_signal(signal.SIGKILL)
        terminal.finish()
        left = f"out.tmp-{terminal.process.pid}"
        self.assertEqual(self.files(), ["long", left, "text"])
        # It is in nobody's way, and the next run says what it is.
        result = self.godwit(*self.command)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{left} was left by an interrupted run", result.stderr)

    def long_text(self):
        path = self.folder / "long"
        path.write_text("Once upon a time there was a small bird. " * 20000)
        return path


if __name__ == "__main__":
    unittest.main()
