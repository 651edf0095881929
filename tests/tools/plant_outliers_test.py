"""tools/plant_outliers.py: the same function, to the bit, with outliers in it."""

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from harness import TINY, CliTest  # noqa: E402

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "plant_outliers.py"
TEXT = "Once upon a time there was a small bird"


class PlantOutliers(CliTest):
    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, str(TOOL), *map(str, arguments)], text=True,
                              capture_output=True, check=False)

    def planted(self, name, *arguments, model=TINY):
        folder = self.folder / name
        done = self.run_tool(model, folder, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return folder

    def weights(self, folder):
        return (folder / "model.safetensors").read_bytes()

    def logits(self, folder, *arguments):
        out = self.folder / "out.npy"
        self.ok("logits", "-m", folder, "-p", TEXT, "-o", out, *arguments)
        return out.read_bytes()

    def test_the_same_bits_from_other_weights(self):
        folder = self.planted("planted", "--channels", 3, "--factor", 128)
        self.assertNotEqual(self.weights(folder), self.weights(TINY))
        for weights in ("auto", "f32"):
            self.assertEqual(self.logits(folder, "--weights", weights),
                             self.logits(TINY, "--weights", weights))
        # The disease: one scale for a row of activations is now the outliers'.
        self.assertNotEqual(self.logits(folder, "--weights", "int8"),
                            self.logits(TINY, "--weights", "int8"))

    def test_the_seed_decides(self):
        first = self.weights(self.planted("first"))
        self.assertEqual(self.weights(self.planted("again")), first)
        self.assertNotEqual(self.weights(self.planted("other", "--seed", 1)), first)

    def test_refusals(self):
        for message, arguments in (("a power of two", ["--factor", 50]),
                                   ("hidden size of 64", ["--channels", 65]),
                                   ("hidden size of 64", ["--channels", 0]),
                                   ("not exact in BF16", ["--factor", 1 << 140])):
            out = self.folder / "out"
            done = self.run_tool(TINY, out, *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)
            self.assertFalse(out.exists())
        self.assertIn("exists", self.run_tool(TINY, self.folder).stderr)
        other = self.copy_of_tiny()
        config = json.loads((other / "config.json").read_text())
        (other / "config.json").write_text(json.dumps(config | {"model_type": "opt"}))
        self.assertIn("model_type opt", self.run_tool(other, self.folder / "out").stderr)


if __name__ == "__main__":
    unittest.main()
