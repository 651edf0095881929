"""What a policy drops is said, wherever standard error goes; nothing is where nothing was dropped."""

import unittest

from harness import TINY, CliTest, Terminal

SINKS = ["--kv", "sinks:4+12"]
LINE = r"godwit: sinks:4\+12: dropped \d+ tokens? after the first 4"


class DroppedTest(CliTest):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "text"
        self.text.write_text("Once upon a time there was a small bird. " * 5)
        self.short = self.folder / "short"
        self.short.write_text("Once upon")
        self.tasks = self.folder / "tasks"
        self.tasks.mkdir()
        (self.tasks / "copa.jsonl").write_text(
            '{"query": "Once upon a time there was a small bird who was hungry, therefore", '
            '"choices": ["she slept.", "she ate a fish."], "gold": 1}\n')

    def says(self, *arguments, where="", **options):
        result = self.godwit(*arguments, *SINKS, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, rf"\A({LINE}{where}\n)+\Z")
        dense = self.godwit(*arguments, **options)
        self.assertEqual((dense.returncode, dense.stderr), (0, ""))

    def test_run_and_logits(self):
        run = ["run", "-m", TINY, "--temp", "0", "-n", "40", "-p", "Once upon a time"]
        self.says(*run)
        self.says(*run, "--json")
        self.says("logits", "-m", TINY, "-f", self.text, "-o", self.folder / "x")
        kept = self.godwit("run", "-m", TINY, "--temp", "0", "-n", "2", "-p", "Once", *SINKS)
        self.assertEqual(kept.stderr, "")

    def test_chat(self):
        chat = ["chat", "-m", TINY, "--temp", "0", "-n", "20"]
        self.says(*chat, stdin="Hello!\nWho are you?\n")
        terminal = Terminal(self, *chat, *SINKS)
        terminal.expect("\x1b[?2004h")
        terminal.type("Hello!\r")
        terminal.expect("(dropped ")

    def test_perplexity(self):
        perplexity = ["perplexity", "-m", TINY, "-f", self.text]
        self.says(*perplexity)
        # The last window and the last text are short: nothing is dropped there.
        self.says(*perplexity, "--window", "40", "--max-tokens", "45", where=" in the longest window")
        self.says(*perplexity, "-f", self.short, "--reset", where=" in the longest text")

    def test_eval(self):
        self.says("eval", "tasks", "-m", TINY, "-d", self.tasks, where=" in the longest row of copa")
        self.says("eval", "quant", "-m", TINY, "-m", f"{TINY}:int8", "-f", self.text,
                  "--window", "40", "--max-tokens", "45", where=" in the longest window")
        self.says("eval", "stream", "-m", TINY, "--lines", "10", "--distance", "2", "--every", "8",
                  where=" in the last stream")


if __name__ == "__main__":
    unittest.main()
