"""--draft: the same text in fewer steps; godwit eval text, which says what it would save."""

import json
import unittest

from harness import TINY, CliTest

RUN = ["run", "-m", TINY, "-p", "Once upon a time", "-n", "300", "--ignore-eos", "-s", "3",
       "--json"]
INPUT, UNSUPPORTED = 2, 5


class DraftsTest(CliTest):
    def run_json(self, *arguments):
        return json.loads(self.ok(*RUN, *arguments))

    def test_the_text_stays(self):
        for flags in (["--temp", "0"], ["--temp", "1"],
                      ["--temp", "1", "--repeat-penalty", "1.2", "--repeat-last-n", "64"],
                      ["--temp", "0", "--kv", "sinks:4+60"], ["--temp", "0", "--weights", "int8"]):
            plain, drafted = self.run_json(*flags), self.run_json(*flags, "--draft", "ngram")
            self.assertEqual(drafted["tokens"], plain["tokens"], flags)
            self.assertEqual(drafted["text"], plain["text"])
            self.assertNotIn("drafts", plain)
            drafts = drafted["drafts"]
            self.assertEqual(list(drafts), ["steps", "guesses", "accepted", "sources"])
            # Every token but the first, which the prompt's last step gave.
            self.assertGreaterEqual(drafts["steps"] + drafts["accepted"], 299)
            self.assertEqual(sum(drafts["sources"].values()), drafts["accepted"])

    def test_a_part_of_a_long_text(self):
        prompt = self.folder / "prompt.txt"
        prompt.write_text("Once upon a time there was a cat. " * 60)
        flags = ["-f", prompt, "-n", "150", "--temp", "1", "--samples", "2"]
        run = [*RUN[:3], "-s", "3", "--ignore-eos", "--json"]
        plain = json.loads(self.ok(*run, *flags))
        for sources in ("partial:budget=256", "ngram,partial:budget=256"):
            drafted = json.loads(self.ok(*run, *flags, "--draft", sources))
            for a, b in zip(plain["answers"], drafted["answers"], strict=True):
                self.assertEqual(a["tokens"], b["tokens"])
                self.assertIn("partial", b["drafts"]["sources"])

    def test_samples_and_requests(self):
        flags = ["--temp", "1", "--samples", "2"]
        plain, drafted = self.run_json(*flags), self.run_json(*flags, "--draft", "ngram")
        for a, b in zip(plain["answers"], drafted["answers"], strict=True):
            self.assertEqual(a["tokens"], b["tokens"])
        requests = self.folder / "requests.jsonl"
        body = {"prompt": "Once upon a time", "max_tokens": 200, "temperature": 0,
                "ignore_eos": True}
        requests.write_text("".join(
            json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions",
                        "body": {**body, **more}}) + "\n"
            for i, more in enumerate(({}, {"draft": "ngram"}, {"draft": "x"}))))
        output = self.folder / "answers.jsonl"
        self.godwit("batch", "-m", TINY, "-f", requests, "-o", output)
        answers = {a["custom_id"]: a for a in map(json.loads, output.read_text().splitlines())}
        texts = [answers[i]["response"]["body"]["choices"][0] for i in "01"]
        self.assertEqual(texts[0]["text"], texts[1]["text"])
        self.assertIn("unknown source of drafts", json.dumps(answers["2"]))

    def test_bad_sources(self):
        for sources, why in (("eagle", "unknown source of drafts \"eagle\"; there are: ngram, heads, "
                              "partial"),
                             ("ngram,ngram", "named twice"), ("ngram,", "unknown source"),
                             ("partial:4096", "for example partial:budget=4096")):
            self.assertIn(why, self.refused(INPUT, *RUN, "--draft", sources))
        self.assertIn("blocks shows a part itself: leave it out, or take dense",
                      self.refused(UNSUPPORTED, *RUN, "--kv", "blocks", "--draft", "partial"))


class EvalTextTest(CliTest):
    def test_distinct_and_replay(self):
        text = self.folder / "text.txt"
        text.write_text("the cat sat on the mat. " * 60)
        result = json.loads(self.ok("eval", "text", "-m", TINY, "-f", text, "--json"))
        self.assertNotIn("replay", result)
        self.assertLess(result["distinct"][0], 0.1)
        self.assertAlmostEqual(sum(result["distinct"]) / 4, result["average"])
        replay = json.loads(self.ok("eval", "text", "-m", TINY, "-f", text, "--json", "--step-ms",
                                    "1:10,16:12", "--prompt-tokens", "20"))["replay"]
        self.assertEqual(replay["tokens"], result["tokens"] + 1 - 20)
        self.assertLess(replay["steps"], replay["tokens"] / 4)
        self.assertGreater(replay["plain_ms"], 3 * replay["ms"])
        people = self.ok("eval", "text", "-m", TINY, "-f", text, "--step-ms", "1:10,16:12")
        self.assertRegex(people, r"drafts +\d+\.\d\d tokens a step, of \d+\.\d rows: \d")

    def test_bad_input(self):
        text = ["eval", "text", "-m", TINY, "-p", "once upon a time"]
        for flags, why in ((["--step-ms", "8:24"], "says nothing of a step of one row"),
                           (["--step-ms", "8"], "is not ROWS:MS"),
                           (["--step-ms", "1:0"], "no milliseconds"),
                           (["--step-ms", "99:3"], "99"),
                           (["--prompt-tokens", "1000"], "nothing behind a prompt of 1000")):
            self.assertIn(why, self.refused(INPUT, *text, *flags))


if __name__ == "__main__":
    unittest.main()
