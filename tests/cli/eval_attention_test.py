"""godwit eval attention: where the heads of a model look."""

import json
import unittest

from harness import TINY, CliTest

INPUT, MEMORY = 2, 6


class EvalAttentionTest(CliTest):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "text.txt"
        self.text.write_text(" ".join(f"Bird {i} sees the wide sea, e.g. at No.3 of the bay."
                                      for i in range(40)) + " Short. And an end without a stop")
        self.measure = ["eval", "attention", "-m", TINY, "-f", self.text, "--seq-len", "9"]

    def test_maps(self):
        result = json.loads(self.ok(*self.measure, "--sentences", "30", "--json"))
        self.assertEqual((result["sentences"], result["tokens"]), (30, 9))
        for layer, first in zip(result["maps"], result["first"]):
            self.assertEqual(len(layer), len(first))
            for head, share in zip(layer, first):
                self.assertAlmostEqual(head[0][0], 1, places=12)
                for query, weights in enumerate(head):
                    self.assertAlmostEqual(sum(weights[:query + 1]), 1, places=9)
                    self.assertEqual(sum(weights[query + 1:]), 0)
                self.assertAlmostEqual(share, sum(row[0] for row in head[5:]) / 4, places=12)
        again = self.ok(*self.measure, "--sentences", "30", "--json", "-t", "2")
        self.assertEqual(json.loads(again), result)

    def test_table(self):
        one, *rows = self.ok(*self.measure, "--sentences", "3").splitlines()
        self.assertEqual(one, "3 sentences of 9 tokens; means over the queries from the 6th token on")
        self.assertIn("to the first four", rows[0])
        self.assertGreater(len(rows), 1)

    def test_fewer_sentences_than_asked_for(self):
        result = self.godwit(*self.measure, "--sentences", "500")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"warning: .*text.txt has only \d+ sentences of 9 tokens")

    def test_on_a_gpu(self):
        measure = [*self.measure, "--sentences", "3", "--weights", "bf16", "--device", "emulated"]
        self.assertIn("3 sentences of 9 tokens", self.ok(*measure))
        self.assertIn("no layer fits", self.refused(MEMORY, *measure, "--gpu-memory", "1K"))

    def test_refusals(self):
        self.assertIn("no sentence of 4000 tokens", self.refused(
            INPUT, *self.measure[:-1], "4000"))
        self.assertIn("a text is needed", self.refused(INPUT, "eval", "attention", "-m", TINY))


if __name__ == "__main__":
    unittest.main()
