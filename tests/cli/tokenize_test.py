"""godwit tokenize: does not read the weights."""

import json
import unittest

from harness import EXPECTED, TINY, CliTest

INPUT = 2


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

    def test_ids_without_a_token_are_refused(self):
        for id in ("99999", "2147483647"):
            message = self.refused(INPUT, "tokenize", "-m", TINY, "--decode", "1," + id)
            self.assertIn(f"no token has the id {id};", message)

    def test_invalid_utf8_is_refused_or_replaced(self):
        file = self.folder / "latin1.txt"
        file.write_bytes("é naïve".encode("utf-8") + b" caf\xe9 \xff")
        for verb in (["tokenize"], ["run"], ["logits", "-o", self.folder / "x.npy"],
                     ["perplexity"], ["eval", "quant", "-m", TINY]):
            message = self.refused(INPUT, *verb, "-m", TINY, "-f", file)
            self.assertIn(f"{file} is not UTF-8: found byte 0xe9 at offset 13", message)
        self.assertIn("offset 13", self.refused(INPUT, "quantize", "-m", TINY, "-o",
                                                self.folder / "q", "--calib", file))
        self.assertIn("-p is not UTF-8: found byte 0xff at offset 1",
                      self.refused(INPUT, "tokenize", "-m", TINY, "-e", "-p", "a\\xff"))
        arguments = ["tokenize", "-m", TINY, "--ids", "--no-bos", "--lossy"]
        self.assertEqual(self.ok(*arguments, "-f", file),
                         self.ok(*arguments, "-p", "é naïve caf\ufffd \ufffd"))

    def test_needs_no_weights(self):
        model = self.copy_of_tiny()
        (model / "model.safetensors").unlink()
        (model / "config.json").unlink()
        self.assertEqual(self.ok("tokenize", "-m", model, "-p", "Hello", "--ids"), "[1,388]\n")


if __name__ == "__main__":
    unittest.main()
