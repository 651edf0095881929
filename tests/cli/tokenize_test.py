"""godwit tokenize: does not read the weights."""

import json
import unittest

from harness import EXPECTED, TINY, CliTest


class TokenizeTest(CliTest):
    def test_encodes_as_hugging_face(self):
        for case in EXPECTED["encode"]:
            file = self.folder / "text"
            file.write_bytes(case["text"].encode())
            arguments = ["tokenize", "-m", TINY, "-f", file, "--ids"]
            self.assertEqual(json.loads(self.ok(*arguments)), case["tokens"])
            for flag in ("--no-bos", "--no-special"):
                self.assertEqual(json.loads(self.ok(*arguments, flag)),
                                 case["tokens_without_special"])

    def test_listing(self):
        self.assertEqual(self.ok("tokenize", "-m", TINY, "-p", "Hello two"),
                         "1 '<s>'\n388 'Hello'\n386 'Ġtwo'\n")

    def test_decodes(self):
        ids = self.ok("tokenize", "-m", TINY, "-p", "naïve 海\n", "--ids", "--no-bos")
        self.assertEqual(self.ok("tokenize", "-m", TINY, "--decode", ids), "naïve 海\n")

    def test_needs_no_weights(self):
        model = self.copy_of_tiny()
        (model / "model.safetensors").unlink()
        (model / "config.json").unlink()
        self.assertEqual(self.ok("tokenize", "-m", model, "-p", "Hello", "--ids"), "[1,388]\n")


if __name__ == "__main__":
    unittest.main()
