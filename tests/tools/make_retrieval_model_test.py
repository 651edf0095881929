"""tools/make_retrieval_model.py: the model that ships, and what the flags make of it."""

import hashlib
import json
import pathlib
import random
import struct
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "make_retrieval_model.py"
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from retrieval_test import FILLER, MODEL, Asking, numbers  # noqa: E402

sys.path.insert(0, str(ROOT / "tools"))
try:
    import make_retrieval_model as tool
    import numpy
    import retrieval_tokenizer as words
except ImportError:
    numpy = None


def tensors(folder):
    """Of a model that the tool wrote: name -> float32."""
    data = (folder / "model.safetensors").read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    del header["__metadata__"]
    found = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        bits = numpy.frombuffer(data[begin:end], numpy.uint16).astype(numpy.uint32) << 16
        found[name] = bits.view(numpy.float32).reshape(entry["shape"])
    return found


@unittest.skipUnless(numpy, "needs numpy")
class MakeRetrievalModel(Asking):
    def make(self, *flags):
        out = self.folder / "-".join(["made", *map(str, flags)])
        subprocess.run([sys.executable, TOOL, out, *map(str, flags)], check=True)
        return out

    def rights(self, *flags):
        draw = random.Random(9)
        questions = [numbers(draw, 800, i / 7) for i in range(8)]
        return sum(self.right(questions, model=self.make(*flags)))

    def test_the_shipped_model_is_made_by_it(self):
        made = self.make()
        names = sorted(path.name for path in MODEL.iterdir())
        self.assertEqual(sorted(path.name for path in made.iterdir()), names)
        for name in names:
            self.assertEqual((made / name).read_bytes(), (MODEL / name).read_bytes(), name)

    # Of which docs/results has figures; its other files are those of the one that ships.
    def test_the_hard_model_is_made_by_it(self):
        made = self.make(*"--temperature 100 --noise 0.02 --cosine 0.3 --sink 60".split())
        self.assertEqual(hashlib.sha256((made / "model.safetensors").read_bytes()).hexdigest(),
                         "8b2e91d8e96d6b82472ba4e1bad5319e174393a1b5df78b962590578ccc0a73f")

    def test_flags_shape_the_weights(self):
        flags = {"--temperature": 50, "--noise": 0.3, "--cosine": 0.6, "--sink": 70,
                 "--idle-heads": 2}
        plain = tensors(MODEL)
        made = tensors(self.make(*(word for flag in flags.items() for word in flag)))
        attention = "model.layers.4.self_attn."
        query, key = attention + "q_proj.weight", attention + "k_proj.weight"
        matched = slice(tool.ROTARY, tool.SPARE)
        numpy.testing.assert_allclose(made[query][matched] * 50, plain[query][matched], rtol=0.01)
        # A key's elements are those of `plain`, which are +-1, and noise of a code of 24 times +-1.
        noise = (made[key] - plain[key])[matched, :tool.CODE]
        self.assertAlmostEqual(noise.std() * tool.CODE**0.5, 0.3, delta=0.02)
        numpy.testing.assert_array_equal(made[key][:, tool.CODE:], plain[key][:, tool.CODE:])
        # Alike are the words of a kind.
        for kind in words.kinds(words.tokenizer()["model"]["vocab"]):
            others = ~numpy.eye(len(kind), dtype=bool)
            plain_cosines, cosines = (
                (codes @ codes.T / tool.CODE)[others] for codes in
                (model["model.embed_tokens.weight"][kind, :tool.CODE] for model in (plain, made)))
            self.assertLess(plain_cosines.max(), 0.334)
            self.assertAlmostEqual(cosines.mean(), 0.6, delta=0.1)
            self.assertGreater(cosines.min(), 0.1)
        # Of a query, the first token's key scores 70 more than one that differs by its flag alone.
        flag = numpy.zeros(plain[key].shape[1])
        flag[tool.FIRST] = 2
        bias = made[attention + "q_proj.bias"][:tool.HEAD]
        self.assertAlmostEqual(bias @ (made[key] @ flag) / tool.HEAD**0.5, 70, delta=0.5)
        # Idle queries score about 1 for whatever key, so none gets much of the attention.
        idle = made[attention + "q_proj.bias"][tool.HEAD:].reshape(2, tool.HEAD)
        self.assertAlmostEqual(idle.std(), 1, delta=0.1)
        self.assertFalse(made[attention + "o_proj.weight"][:, tool.HEAD:].any())

    def test_harder(self):
        self.assertEqual(self.rights(), 8)
        for flags in (["--temperature", 3000], ["--noise", 6], ["--sink", 20000]):
            self.assertLess(self.rights(*flags), 6, flags)

    def test_idle_heads_find_nothing(self):
        self.assertEqual(self.rights("--idle-heads", 3), 8)

    def test_twins_are_distinguished(self):
        self.assertEqual(self.rights("--cosine", 0.8), 8)

    def test_two_hops(self):
        facts = [" apple = pear ;", " plum = fig ;", " pear = lemon ;", " fig = melon ;"]
        text = " ".join(FILLER + fact for fact in facts) + " " + 5 * FILLER
        questions = [(text + "; plum =", "melon"), (text + "; apple =", "lemon")]
        self.assertEqual(self.right(questions, model=self.make("--hops", 2)), [True, True])
        self.assertEqual(self.right(questions), [False, False])

    def test_refusals(self):
        for flags in (["--cosine", "1"], ["--hops", "3"]):
            done = subprocess.run([sys.executable, TOOL, self.folder / "out", *flags], text=True,
                                  capture_output=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(flags[0], done.stderr)
        done = subprocess.run([sys.executable, TOOL, self.folder], text=True, capture_output=True,
                              check=False)
        self.assertIn("exists", done.stderr)


if __name__ == "__main__":
    unittest.main()
