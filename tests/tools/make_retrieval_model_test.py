"""tools/make_retrieval_model.py: the model that ships, and what the flags make of it."""

import pathlib
import random
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "make_retrieval_model.py"
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from retrieval_test import FILLER, MODEL, Asking, numbers  # noqa: E402

try:
    import numpy  # noqa: F401
except ImportError:
    numpy = None


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

    def test_harder(self):
        self.assertEqual(self.rights(), 8)
        for flags in (["--temperature", 3000], ["--noise", 6], ["--sink", 20000]):
            self.assertLess(self.rights(*flags), 6, flags)

    def test_idle_heads_find_nothing(self):
        self.assertEqual(self.rights("--idle-heads", 3), 8)

    def test_twins_are_told_apart(self):
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
