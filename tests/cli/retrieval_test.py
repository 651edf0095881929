"""models/retrieval-induction: what stands in its text it finds, unless a policy has dropped it."""

import json
import random
import unittest

from harness import TESTS, CliTest

MODEL = TESTS.parent / "models" / "retrieval-induction"
FILLER = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again. "
FILLER_TOKENS = 22
KV_TYPES = ("f32", "f16", "bf16")


def passkey(draw, tokens, depth):
    """A text of about so many tokens with a number in it, that ends in the question for it; the
    number."""
    before = round(tokens / FILLER_TOKENS * depth)
    after = round(tokens / FILLER_TOKENS) - before
    key = f"{draw.randrange(10**5):05}"
    return (before * FILLER + f"The pass key is {key}. Remember it. {key} is the pass key. "
            + after * FILLER + "What is the pass key? The pass key is"), key


def numbers(draw, tokens, depth):
    """Nothing but needles, whose keys and numbers have words and digits in common."""
    words = "apple pear plum cherry grape lemon melon mango peach fig quince olive walnut".split()
    pairs = [f"{a} {b} {c}" for a in words for b in words for c in words]
    keys = draw.sample(pairs, tokens // 17)
    values = [f"{draw.randrange(10**7):07}" for _ in keys]
    asked = int(depth * (len(keys) - 1))
    lines = [f"One of the numbers for {key} is: {value}.\n" for key, value in zip(keys, values)]
    return "".join(lines) + f"One of the numbers for {keys[asked]} is:", values[asked]


def pairs(draw, tokens, depth):
    """JSON of random names and values, and the question of InfiniteBench, which puts other words
    between the two."""
    names = ["".join(draw.choice("0123456789abcdef") for _ in range(12)) for _ in range(tokens // 7)]
    keys, values = names[::2], names[1::2]
    asked = int(depth * (len(values) - 1))
    text = ", ".join(f'"{key}": "{value}"' for key, value in zip(keys, values))
    return (f'JSON data:\n{{{text}}}\n\nKey: "{keys[asked]}"\n'
            "The value associated with the specified key is: ", values[asked])


def niah(draw, tokens, depth):
    """Needles and the question of RULER, which says the key twice."""
    text, value = numbers(draw, tokens, depth)
    lines, asked = text.rsplit("\n", 1)
    key = asked.removeprefix("One of the numbers for ").removesuffix(" is:")
    return (f"{lines}\nWhat is the special magic number for {key} mentioned in the provided text? The "
            f"special magic number for {key} mentioned in the provided text is", value)


SUITES = (passkey, numbers, pairs, niah)


class Asking(CliTest):
    def right(self, questions, *flags, model=MODEL):
        """For each question: does its answer begin with the right one?"""
        file, out = self.folder / "requests.jsonl", self.folder / "out.jsonl"
        file.write_text("".join(
            json.dumps({"custom_id": str(i), "body": {"prompt": text, "max_tokens": 12}}) + "\n"
            for i, (text, _) in enumerate(questions)))
        out.unlink(missing_ok=True)
        self.ok("batch", "-m", model, "-f", file, "-o", out, *flags)
        answers = {int(result["custom_id"]): result["response"]["body"]["choices"][0]["text"]
                   for result in map(json.loads, out.read_text().splitlines())}
        return [answers[i].lstrip().startswith(expected) for i, (_, expected) in enumerate(questions)]


class RetrievalTest(Asking):
    def questions(self, lengths):
        draw = random.Random(7)
        return [suite(draw, tokens, depth) for suite in SUITES for tokens in lengths
                for depth in (0, 0.5, 1)]

    def test_every_type_of_cache_answers(self):
        questions = self.questions((100, 600, 1500))
        for kv_type in KV_TYPES:
            self.assertEqual(self.right(questions, "--kv-type", kv_type), [True] * len(questions))

    def test_an_int8_cache_loses_few(self):
        """The last words of a key weigh a hundredth of its first, which int8 rounds nearly away."""
        questions = self.questions((100, 600, 1500))
        right = sum(self.right(questions, "--kv-type", "int8"))
        self.assertGreaterEqual(right, 0.9 * len(questions))

    def test_other_weights_answer(self):
        questions = self.questions((600,))
        for weights in ("f32", "int8"):
            self.assertEqual(self.right(questions, "--weights", weights), [True] * len(questions))

    def test_dropped_facts_are_not_found(self):
        draw = random.Random(8)
        for suite in SUITES:
            far = [suite(draw, 600, depth) for depth in (0.1, 0.5, 0.8)]
            self.assertEqual(self.right(far, "--kv", "sinks:4+60"), [False] * len(far))
            # Its window, not the model, is what fails.
            near = [suite(draw, 600, 1) for _ in range(3)]
            self.assertEqual(self.right(near, "--kv", "sinks:4+60"), [True] * len(near))


if __name__ == "__main__":
    unittest.main()
