"""Programs for another processor, emulated, write what the machine's own programs write.

GODWIT_BINARY is the emulated program (programs.py), GODWIT_NATIVE_BINARY the machine's own.
"""

import json
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))

from harness import CliTest

NATIVE = os.environ["GODWIT_NATIVE_BINARY"]
MODEL = ROOT / "models/stories-3m"
PROMPT = "Once upon a time, there was a little girl"


class SameTextTest(CliTest):
    def setUp(self):
        super().setUp()
        self.assertTrue(pathlib.Path(NATIVE).exists(),
                        f"{NATIVE} is missing: cmake --build --preset release --target godwit_cli_main")

    def test_every_instruction_set_writes_the_first_text(self):
        run = ["run", "-m", MODEL, "-p", PROMPT, "-n", "48", "--temp", "0"]
        native = self.ok(*run, binary=NATIVE)
        self.assertGreater(len(native), 100)
        isas = json.loads(self.ok("inspect", "-m", MODEL, "--json"))["supported_isas"]
        self.assertIn("neon", isas)
        self.assertIn("scalar", isas)
        for isa in isas:
            with self.subTest(isa):
                self.assertEqual(self.ok(*run, "--isa", isa), native)

    def test_logits_have_the_same_bits(self):
        def logits(name, **options):
            out = self.folder / name
            self.ok("logits", "-m", MODEL, "-p", PROMPT, "--isa", "scalar", "-o", out, **options)
            return out.read_bytes()

        native = logits("native.npy", binary=NATIVE)
        self.assertGreater(len(native), 10_000)
        self.assertEqual(logits("emulated.npy"), native)


if __name__ == "__main__":
    unittest.main()
