"""godwit eval passages: passages that are read once, beside prompts that are read whole."""

import json
import unittest

from harness import TINY, CliTest, changed

INPUT = 2


class EvalPassagesTest(CliTest):
    def setUp(self):
        super().setUp()
        book = self.folder / "book.txt"
        book.write_text(" ".join(f"Sentence {i} tells of a bird." for i in range(900)))
        self.ask = ["eval", "passages", "-m", TINY, "-f", book, "--passages", "3", "--length", "90",
                    "--max-new", "4"]

    def report(self, *flags):
        return json.loads(self.ok(*self.ask, "--json", *flags))

    def test_ways_are_of_the_same_prompts(self):
        report = self.report("-n", "4", "--read-anew", "0,8,9999")
        whole, none, some, anew = report["ways"]
        self.assertEqual([way["read_anew"] for way in report["ways"]], [None, 0, 8, 9999])
        self.assertEqual({way["prompt_tokens"] for way in report["ways"]}, {whole["prompt_tokens"]})
        self.assertEqual(whole["read_tokens"], whole["prompt_tokens"])
        # The last token of each passage is always read.
        self.assertLess(none["read_tokens"] + 100, whole["read_tokens"])
        self.assertEqual(some["read_tokens"], none["read_tokens"] + 2 * 8)
        self.assertEqual(len(report["answers"]), 4 * 4)
        answers = {way: [a["answer"] for a in report["answers"] if a["read_anew"] == way]
                   for way in (None, 0, 9999)}
        self.assertEqual(answers[9999], answers[None])
        asked = [a["question"] for a in report["answers"] if a["read_anew"] is None]
        self.assertEqual(len(set(asked[:3])), 3)
        again = self.report("-n", "4", "--read-anew", "0")
        self.assertEqual([a["answer"] for a in again["answers"] if a["read_anew"] == 0], answers[0])
        self.assertNotEqual(self.report("-n", "1", "--seed", "7")["answers"][0]["expected"],
                            report["answers"][0]["expected"])

    def test_table(self):
        said, head, *rows = self.ok(*self.ask, "-n", "1", "--alike", "--prefill",
                                    "star:block=64,anchor=16").splitlines()
        self.assertRegex(said, r"^1 questions, 3 passages, \d+ tokens in a prompt; \d+ tokens read once$")
        self.assertIn("tokens read", head)
        self.assertEqual([row.split("  ")[0] for row in rows],
                         ["whole prompt", *(f"passages, {n} read anew" for n in (0, 8, 32, 64))])

    def test_refusals(self):
        self.assertIn("a text is needed", self.refused(INPUT, "eval", "passages", "-m", TINY))
        self.assertIn("too short for 3 passages", self.refused(INPUT, *changed(self.ask, "--length", "9000")))
        self.assertIn("--passages", self.refused(INPUT, *changed(self.ask, "--passages", "25")))


if __name__ == "__main__":
    unittest.main()
