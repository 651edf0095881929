"""tools/pretrain/retrieval_samples.py: questions in the words of godwit eval, answers that stand in the
text, and nothing of what is held out."""

import pathlib
import re
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from harness import CliTest  # noqa: E402

sys.path.insert(0, str(ROOT / "tools" / "pretrain"))
try:
    import retrieval_samples
except ImportError:  # numpy
    retrieval_samples = None

MODEL = ROOT / "models" / "retrieval-induction"
BOOKS = " ".join(f"Sentence {chr(97 + i % 26)} of a book goes on and on." for i in range(400))
KINDS = ("passkey", "needle", "lines", "pairs", "niah")


class Bytes:
    """A tokenizer: <s>, </s>, then a token for each byte."""

    def encode(self, text, add_special_tokens):
        assert not add_special_tokens
        return types.SimpleNamespace(ids=[2 + byte for byte in text.encode()])

    def token_to_id(self, token):
        return ["<s>", "</s>"].index(token)

    def get_vocab_size(self):
        return 258


def shape(text):
    """What is left of a text without its numbers and names."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "N", text)
    return re.sub(r"[a-z]+-[a-z]+(?= |:|\?)|(?<=magic )[A-Z][a-z]+", "W", text).strip()


@unittest.skipUnless(retrieval_samples, "needs numpy")
class RetrievalSamples(CliTest):
    def samples(self, held_out=False):
        return retrieval_samples.Samples(Bytes(), BOOKS, 1, held_out)

    def read(self, kind, index, held_out=False, length=6000):
        """The text, and the answers as pairs of the place where they begin and what they are."""
        ids, weights = self.samples(held_out).sample(kind, index, length)
        text = "".join(chr(one - 2) for one in ids if one > 1)
        learnt = "".join("x" if weight == 1 else "." for weight in weights)
        return text, [(found.start(), text[found.start():found.end()])
                      for found in re.finditer("x+", learnt)]

    def test_a_sample_is_a_function_of_its_index(self):
        for kind in (*KINDS, "chains", "prose", "repeats"):
            first, again, other = (self.samples().sample(kind, index, 500) for index in (3, 3, 4))
            for one, same in zip(first, again):
                self.assertEqual(one.tolist(), same.tolist(), kind)
            self.assertNotEqual(first[0].tolist(), other[0].tolist(), kind)
            self.assertEqual([len(one) for one in first], [501, 500])

    def test_every_answer_stands_in_the_text_before_it(self):
        for kind in KINDS:
            for index in range(12):
                text, answers = self.read(kind, index)
                self.assertTrue(answers, kind)
                for begin, answer in answers:
                    for value in answer.strip(" .\n<>").split(", "):
                        self.assertRegex(value, r"^[0-9a-f-]+$")
                        self.assertIn(value, text[:begin], kind)

    def test_a_chain_is_what_follows_from_its_number(self):
        for index in range(12):
            text, answers = self.read("chains", index)
            self.assertTrue(answers)
            for begin, answer in answers:
                asked = re.findall(r"assigned the value (\d+)", text[:begin])[-1]
                values = {}
                for name, value in re.findall(r"VAR (\w+) = (?:VAR )?(\w+)", text[:begin]):
                    values[name] = values.get(value, value)
                self.assertEqual(answer.split(),
                                 [name for name, value in values.items() if value == asked])

    def test_held_out_words_are_never_an_answer(self):
        for held_out in (False, True):
            seen = 0
            for kind in ("needle", "lines"):
                for index in range(40):
                    for _, answer in self.read(kind, index, held_out)[1]:
                        number = int(answer.strip(" .\n<>"))
                        self.assertEqual(retrieval_samples.is_held_out(number), held_out)
                        seen += 1
            self.assertGreater(seen, 80)

    def test_questions_are_those_of_godwit_eval(self):
        book = self.folder / "book.txt"
        book.write_text(BOOKS)
        for kind, verb, flags in (
                ("passkey", "passkey", []), ("needle", "needle", []), ("lines", "lines", []),
                ("pairs", "kv-retrieval", []), ("niah", "ruler", ["--tasks", "niah_multikey_1"]),
                ("chains", "ruler", ["--tasks", "vt"])):
            with self.subTest(kind):
                flags += ["-f", book] if kind == "niah" else []
                shown = self.ok("eval", verb, "-m", MODEL, "--lengths", "900", "--show", "1", *flags)
                asked = shape(shown)[-60:]
                ours = [shape(text[:begin])[-60:]
                        for text, answers in (self.read(kind, index) for index in range(12))
                        for begin, _ in answers]
                self.assertIn(asked, ours)


if __name__ == "__main__":
    unittest.main()
