"""The greedy text of a trained model is the same, however it is computed.

Small models say so of every combination (tests/same_bits, tests/laws). Weights of a trained model
have other sizes, types and large numbers, so that a sum in another order would show.
"""

import unittest

from real_models import GEMMA, LARGER_QWEN, QWEN, RealTest, main

NEW_TOKENS = 40


class GreedyTest:
    """Of one model: `model`, its file; `characters` of the prompt; `ways`, flags that change nothing;
    `cold` and `warm`, such flags of the run that saves the text, and of the one that goes on."""

    def setUp(self):
        super().setUp()
        self.prompt = self.book(self.characters)
        self.plain = self.run_it("-t", "2")

    def run_it(self, *flags):
        return self.result(self.model, "-f", self.prompt, "-n", NEW_TOKENS, "--ignore-eos", *flags)

    def same(self, *flags):
        result = self.run_it(*flags)
        self.assertEqual(result["tokens"], self.plain["tokens"], flags)
        self.assertEqual(result["text"], self.plain["text"])
        if "--draft" in flags:
            self.assertGreater(result["drafts"]["draft_tokens"], 0)
        return result

    def test_the_same_text(self):
        self.assertEqual(len(self.plain["tokens"]), NEW_TOKENS)
        self.assertGreater(len(set(self.plain["tokens"])), 4)
        for flags in self.ways:
            self.same(*flags)
        saved = ["--cache-dir", self.folder / "saved"]
        self.assertEqual(self.same(*saved, *self.cold)["disk_tokens"], 0)
        warm = self.same(*saved, *self.warm)
        self.assertEqual(warm["disk_tokens"], (warm["prompt_tokens"] - 1) // 64 * 64)
        self.batch()

    def batch(self):
        """Beside other texts, of which two begin alike, and one guesses."""
        body = {"prompt": self.prompt.read_text(), "max_tokens": NEW_TOKENS, "ignore_eos": True,
                "return_token_ids": True}
        bodies = [{**body, "prompt": "It was a bright cold day, and", "max_tokens": 20}, body,
                  {**body, "draft": "ngram"}, {**body, "prompt": body["prompt"][:700]}]
        together = self.answers(self.model, bodies, "-np", "4")
        for answer in together[1:3]:
            self.assertEqual(answer["choices"][0]["token_ids"], self.plain["tokens"])
        alone = self.answers(self.model, bodies[::3], "-np", "1")
        for a, b in zip(together[::3], alone, strict=True):
            self.assertEqual(a["choices"], [{**b["choices"][0], "index": a["choices"][0]["index"]}])


class QwenTest(GreedyTest, RealTest):
    model = QWEN
    characters = 1500
    ways = (("-t", "1", "-ub", "37"), ("--draft", "ngram"), ("--draft", "ngram,partial:budget=256"))
    cold, warm = (), ()


class DraftModelTest(RealTest):
    def test_the_same_text(self):
        prompt = self.book(600)
        flags = ["-f", prompt, "-n", NEW_TOKENS, "--ignore-eos"]
        plain = self.result(LARGER_QWEN, *flags)
        for draft, more in ((QWEN, []), (LARGER_QWEN, ["--draft", "ngram"])):
            drafted = self.result(LARGER_QWEN, *flags, "-md", draft, *more)
            self.assertEqual(drafted["tokens"], plain["tokens"])
            self.assertIn("model", drafted["drafts"]["sources"])
        self.assertIn("has another tokenizer than", self.refused(
            2, "run", "-m", GEMMA, "-p", "Once", "-n", "1", "-md", QWEN))


class GemmaTest(GreedyTest, RealTest):
    model = GEMMA  # which starts slowly: fewer runs
    characters = 3000  # more tokens than the 512 that most layers see
    ways = ()
    cold, warm = ("-t", "1", "-ub", "37"), ("--draft", "ngram")


if __name__ == "__main__":
    main(QWEN, LARGER_QWEN, GEMMA)
