"""godwit plan: the price of a run, before it."""

import json
import unittest

from harness import TINY, CliTest

INPUT = 2


class PlanTest(CliTest):
    def plans(self, *arguments):
        return json.loads(self.ok("plan", "-m", TINY, "--json", *arguments))

    def test_a_table_has_each_way(self):
        text = self.ok("plan", "-m", TINY, "-p", "Once upon a time")
        self.assertRegex(text, r"\Athe prompt has 8 tokens\n")
        self.assertRegex(text, r"(?m)^kv +prefill +draft +cached +first token +each token +kv cache$")
        self.assertRegex(text, r"(?m)^dense +star .* 16\.0 KiB$")
        self.assertRegex(text, r"(?m)^blocks ")
        self.assertRegex(text, r"(?m)^sinks:4\+4092 ")
        self.assertIn("whose gain is known after a text", text)

    def test_the_flags_of_run_come_first(self):
        prompt = "Once upon a time " * 40
        plan = self.plans("-p", prompt, "--kv", "sinks:4+60", "--draft", "ngram")
        first = plan["plans"][0]
        self.assertEqual((first["kv"], first["prefill"], first["draft"]),
                         ("sinks:4+60", "", "ngram"))
        self.assertFalse(first["draft_measured"])
        self.assertEqual({p["draft"] for p in plan["plans"]}, {"ngram"})
        for one in plan["plans"]:
            self.assertGreater(one["first_token_s"], 0)
            self.assertGreater(one["token_s"], 0)
            self.assertGreater(one["kv_bytes"], 0)
        run = json.loads(self.ok("run", "-m", TINY, "--json", "-n", "1", "-p", prompt))
        self.assertEqual(plan["prompt_tokens"], run["prompt_tokens"])

    def test_texts_on_the_disk_count(self):
        prompt = "Once upon a time " * 40
        cache = ["--cache-dir", self.folder / "cache"]
        self.assertEqual(self.plans("-p", prompt, *cache)["plans"][0]["cached_tokens"], 0)
        self.ok("run", "-m", TINY, "-n", "1", "-p", prompt, *cache)
        first = self.plans("-p", prompt, *cache)["plans"][0]
        run = json.loads(self.ok("run", "-m", TINY, "-n", "1", "--json", "-p", prompt, *cache))
        self.assertGreater(first["disk_tokens"], 0)
        self.assertEqual(first["disk_tokens"], run["disk_tokens"])
        self.assertEqual(first["cached_tokens"], run["cached_tokens"])
        self.assertIn("from the disk", self.ok("plan", "-m", TINY, "-p", prompt, *cache))

    def test_a_chat_and_a_file(self):
        file = self.folder / "book.txt"
        file.write_text("A bird flew over the sea. " * 10)
        plan = self.plans("--chat", "-f", file, "-p", "Who flew?")
        run = json.loads(self.ok("run", "-m", TINY, "--json", "-n", "1", "--chat", "-f", file, "-p",
                                 "Who flew?"))
        self.assertEqual(plan["prompt_tokens"], run["prompt_tokens"])

    def test_passages(self):
        names = [self.folder / f"{i}.txt" for i in range(3)]
        for number, name in enumerate(names):
            name.write_text(f"Bird number {number} flew over the sea. " * 6)
        cache = ["--cache-dir", self.folder / "cache", "--chat", "--passages", "-p", "Who flew?"]
        files = [part for name in names for part in ("-f", name)]
        turned = [part for name in reversed(names) for part in ("-f", name)]
        cold = self.plans(*files, *cache)
        run = json.loads(self.ok("run", "-m", TINY, "-n", "1", "--json", *files, *cache))
        self.assertEqual(cold["prompt_tokens"], run["prompt_tokens"])
        # Passages begin alike, and the second one goes on from the first.
        self.assertEqual(cold["plans"][0]["cached_tokens"], run["passages"]["cached_tokens"])
        self.assertEqual(cold["plans"][0]["disk_tokens"], 0)
        warm = self.plans(*turned, *cache)["plans"]
        run = json.loads(self.ok("run", "-m", TINY, "-n", "1", "--json", *turned, *cache))
        self.assertEqual(warm[0]["cached_tokens"], run["passages"]["cached_tokens"])
        self.assertGreater(warm[0]["disk_tokens"], 0)
        self.assertIn("which forgets tokens",
                      next(p["refused"] for p in warm if p["kv"].startswith("sinks")))

    def test_refusals_are_those_of_run(self):
        for flags in (["-p", ""], ["-p", "x " * 2000], ["-p", "x", "--kv", "nonsense"],
                      ["-p", "x", "--draft", "nonsense"]):
            self.assertEqual(self.refused(INPUT, "plan", "-m", TINY, *flags),
                             self.refused(INPUT, "run", "-m", TINY, *flags))


if __name__ == "__main__":
    unittest.main()
