"""Text that is not ours, at a terminal and in a pipe: what a model writes, what its files say, and
what things are called."""

import csv
import io
import json
import unittest

from harness import TINY, CliTest, Terminal

INPUT, IO = 2, 3
ESCAPE_TOKEN = 220
# Greedily, the model writes escape characters.
ESCAPES = ["--temp", "0", "--logit-bias", f"{ESCAPE_TOKEN}+1000", "-n", "3"]
HOSTILE = "a\x1b]0;owned\x07\x1b[31m\u009b2J\u202e"
SHOWN = r"a\x1b]0;owned\x07\x1b[31m\xc2\x9b2J\xe2\x80\xae"


class ForeignTextTest(CliTest):
    def seen_at_a_terminal(self, *arguments, code=0):
        terminal = Terminal(self, *arguments)
        self.assertEqual(terminal.finish(), code, terminal.seen)
        ours = terminal.seen.replace("\r\x1b[K", "")  # a progress line that is taken away
        for character in "\x1b\x07\u009b\u202e":
            self.assertNotIn(character, ours)
        return ours

    def named(self, name):
        model = self.folder / name
        model.symlink_to(TINY)
        return model

    def test_output_of_a_model(self):
        run = ["run", "-m", TINY, "--chat=0", "-p", "x", *ESCAPES]
        self.assertEqual(self.ok(*run), "\x1b\x1b\x1b")
        self.assertTrue(self.seen_at_a_terminal(*run).startswith(r"\x1b\x1b\x1b"))
        chat = ["chat", "-m", TINY, *ESCAPES]
        self.assertEqual(self.ok(*chat, stdin="Hello!\n"), "\x1b\x1b\x1b\n")
        terminal = Terminal(self, *chat)
        terminal.expect("\x1b[?2004h")
        terminal.type("Hello!\r")
        terminal.expect(r"\x1b\x1b\x1b")

    def test_text_of_tokens(self):
        decode = ["tokenize", "-m", TINY, "--decode", f"{ESCAPE_TOKEN},202"]
        self.assertEqual(self.ok(*decode), "\x1b\t")
        self.assertEqual(self.seen_at_a_terminal(*decode), "\\x1b\t\r\n")

    def test_message_of_a_template(self):
        model = self.copy_of_tiny()
        config = json.loads((model / "tokenizer_config.json").read_text())
        config["chat_template"] = "{{ raise_exception(messages[0].content) }}"
        (model / "tokenizer_config.json").write_text(json.dumps(config))
        run = ["run", "-m", model, "--chat", "-p", HOSTILE]
        self.assertIn(SHOWN, self.seen_at_a_terminal(*run, code=INPUT))
        self.assertIn(SHOWN, self.refused(INPUT, *run))  # a log may be looked at, too

    def test_paths(self):
        missing = self.folder / HOSTILE
        for arguments in (["run", "-p", "x", "-m", missing], ["inspect", "-m", missing],
                          ["run", "-m", TINY, "-f", missing],
                          ["perplexity", "-m", TINY, "-f", missing],
                          ["logits", "-m", TINY, "-p", "x", "-o", missing / "x"]):
            with self.subTest(arguments=arguments):
                self.assertIn(SHOWN, self.seen_at_a_terminal(*arguments, code=IO))
                self.assertIn(SHOWN, self.refused(IO, *arguments))

    def test_a_path_is_no_second_line(self):
        forged = self.folder / "x\ngodwit: all is well"
        self.assertIn(r"x\x0agodwit: all is well", self.refused(IO, "run", "-m", TINY, "-f", forged))

    def test_a_model_in_the_table_of_bench(self):
        bench = ["bench", "-m", self.named(HOSTILE), "-p", "4", "-n", "0", "-r", "1", "--no-limits"]
        self.assertIn(SHOWN, self.seen_at_a_terminal(*bench))
        self.assertIn(SHOWN, self.ok(*bench).splitlines()[0])

    def test_a_model_in_the_csv_of_bench(self):
        name = 'a "b", c\nd'
        rows = list(csv.DictReader(io.StringIO(self.ok(
            "bench", "-m", self.named(name), "-p", "4", "-n", "0,2", "-r", "1", "--no-limits",
            "--csv"), newline="")))
        self.assertEqual([row["model"] for row in rows], [name] * 2)
        self.assertTrue(all(None not in row and None not in row.values() for row in rows))


if __name__ == "__main__":
    unittest.main()
