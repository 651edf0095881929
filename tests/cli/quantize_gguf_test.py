"""godwit quantize --to gguf: a file that runs like its source, and every refusal by name."""

import hashlib
import json
import shutil
import unittest

from harness import GOLDEN, TESTS, TINY, CliTest

INPUT, UNSUPPORTED = 2, 5
STORIES = TESTS.parent / "models" / "stories-3m"
RUN = ["-p", "Lily and Tom", "-n", "40", "--temp", "0", "--repeat-penalty", "1", "-q"]


class QuantizeGgufTest(CliTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.gguf"

    def command(self, model=STORIES, *flags):
        return ["quantize", "-m", model, "--to", "gguf", "-o", self.out, *flags]

    def test_the_same_text(self):
        said = self.ok(*self.command())
        self.assertIn("tensors     13 of F32, 43 of Q8_0\n", said)
        self.assertNotIn("fallbacks", said)
        expected = self.ok("run", "-m", STORIES, *RUN)
        self.assertGreater(len(expected), 60)
        self.assertEqual(self.ok("run", "-m", self.out, *RUN), expected)
        # Its own file is a model for it, too.
        again = self.folder / "again.gguf"
        self.ok("quantize", "-m", self.out, "--to", "gguf", "--type", "f32", "-o", again)
        self.assertEqual(self.ok("run", "-m", again, *RUN), expected)

    def test_same_tokens(self):
        text = "It's 12345 o'clock,  she said:\n\n\"na\u00efve\"! \U0001f642"
        for model in (STORIES, TINY):
            self.out.unlink(missing_ok=True)
            self.ok(*self.command(model))
            self.assertEqual(self.ok("tokenize", "-m", self.out, "-p", text),
                             self.ok("tokenize", "-m", model, "-p", text))

    def test_same_bytes_again(self):
        sums = set()
        for threads in ("1", "3"):
            self.out.unlink(missing_ok=True)
            self.ok(*self.command(STORIES, "--type", "q4_k", "-t", threads))
            sums.add(hashlib.sha256(self.out.read_bytes()).hexdigest())
        self.assertEqual(len(sums), 1)

    def test_json_and_fallbacks(self):
        result = json.loads(self.ok(*self.command(STORIES, "--type", "q4_k", "--json")))
        self.assertEqual(result["tensors"], {"F32": 13, "Q4_K": 6, "Q8_0": 37})
        self.assertEqual(result["fallbacks"], {"Q8_0": 36})
        self.assertEqual(result["after_bytes"], self.out.stat().st_size)
        inspected = json.loads(self.ok("inspect", "-m", self.out, "--json"))
        self.assertEqual(inspected["format"], "gguf")
        compared = json.loads(self.ok(
            "eval", "quant", "-m", STORIES, "-m", self.out, "-f",
            self.text("Once upon a time there was a small bird. She liked to sing. " * 8),
            "--max-tokens", "100", "--json"))["models"][1]
        self.assertGreater(compared["kl"], 0)
        self.assertLess(compared["kl"], 0.02)

    def text(self, content):
        file = self.folder / "text"
        file.write_text(content)
        return file

    def test_dry_run_writes_nothing(self):
        said = self.ok("quantize", "-m", STORIES, "--to", "gguf", "--type", "q4_k", "--dry-run")
        self.assertIn("36 of Q8_0, because their rows are not whole blocks of Q4_K", said)
        self.assertEqual(list(self.folder.iterdir()), [])

    def refuses(self, code, *arguments):
        before = sorted(self.folder.iterdir())
        message = self.refused(code, *arguments)
        self.assertEqual(sorted(self.folder.iterdir()), before)
        return message

    def test_flags(self):
        self.assertIn("--type: expected q8_0, q4_k, f16, bf16 or f32, found \"q5\"",
                      self.refuses(INPUT, *self.command(STORIES, "--type", "q5")))
        self.assertIn("--to: expected gguf, found \"onnx\"",
                      self.refuses(INPUT, "quantize", "-m", STORIES, "--to", "onnx", "-o", self.out))
        self.assertIn("--to", self.refuses(INPUT, "quantize", "-m", STORIES, "--type", "q8_0"))
        for flag, value in (("--scheme", "w4a8"), ("--calib", __file__), ("--keep", "*.q_proj")):
            self.assertIn(flag, self.refuses(INPUT, *self.command(STORIES, flag, value)))
        self.assertIn("name it with -o FILE.gguf",
                      self.refuses(INPUT, "quantize", "-m", STORIES, "--to", "gguf"))
        self.assertIn("a name that ends with .gguf",
                      self.refuses(INPUT, "quantize", "-m", STORIES, "--to", "gguf", "-o",
                                   self.folder / "out"))
        self.out.touch()
        self.assertIn(f"{self.out}: exists already", self.refuses(INPUT, *self.command()))

    def test_models_without_a_form(self):
        self.assertIn("this model cannot be written as GGUF: expected one of the families RefinedWeb, ",
                      self.refuses(UNSUPPORTED, *self.command(GOLDEN / "opt" / "untied")))
        self.assertIn("no GGUF key holds the kind of rope scaling",
                      self.refuses(UNSUPPORTED,
                                   *self.command(GOLDEN / "llama" / "rope_dynamic_active")))
        self.assertIn("the model is quantized already",
                      self.refuses(UNSUPPORTED,
                                   *self.command(GOLDEN / "int8" / "llama" / "channel_token")))

    def test_a_tokenizer_without_a_form(self):
        model = self.folder / "model"
        shutil.copytree(TINY, model)
        shutil.copy(TESTS / "data/tokenizers/unigram/tokenizer.json", model)
        self.assertIn("its tokenizer cannot be written to GGUF: it is Unigram, expected BPE",
                      self.refuses(UNSUPPORTED, *self.command(model)))


if __name__ == "__main__":
    unittest.main()
