"""What a model thinks before it answers, in run and chat: it is no part of the answer.

The template begins a thought, and the tiny model, which knows of none, never ends it."""

import json
import unittest

from harness import TINY, CliTest, Terminal

TEMPLATE = ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n"
            "{% if m.reasoning_content %}thought: {{ m.reasoning_content }}\n{% endif %}{% endfor %}"
            "<think>\n")
TOKENS = 6


class ThoughtsTest(CliTest):
    def setUp(self):
        super().setUp()
        template = self.folder / "template.jinja"
        template.write_text(TEMPLATE)
        self.flags = ["-m", TINY, "--temp", "0", "-n", str(TOKENS), "--ignore-eos",
                      "--chat-template", template]
        self.run_chat = ["run", "--chat", *self.flags, "-p", "Hello"]
        result = json.loads(self.ok(*self.run_chat, "--json"))
        self.assertEqual((result["text"], result["reasoning_tokens"]), ("", TOKENS))
        self.thought = result["reasoning_content"]
        self.assertNotEqual(self.thought, "")

    def test_a_pipe_gets_the_answer_alone(self):
        result = self.godwit(*self.run_chat)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        result = self.godwit(*self.run_chat, "--thoughts", "show")
        self.assertEqual((result.stdout, result.stderr),
                         ("", f"{self.thought}\n(thought for {TOKENS} tokens)\n"))
        # A file before the question makes another prompt, whose thought is one all the same.
        file = self.folder / "file"
        file.write_text("A text.")
        asked = json.loads(self.ok(*self.run_chat, "-f", file, "--json"))
        self.assertEqual((asked["text"], asked["reasoning_tokens"]), ("", TOKENS))
        samples = json.loads(self.ok(*self.run_chat, "--samples", "2", "--json"))["answers"]
        self.assertEqual([(a["text"], a["reasoning_content"]) for a in samples],
                         2 * [("", self.thought)])
        for flags in (["--json"], ["--samples", "2"]):
            self.refused(2, *self.run_chat, "--thoughts", "hide", *flags)
        self.assertIn("show or hide", self.refused(2, *self.run_chat, "--thoughts", "no"))

    def test_a_terminal_shows_thoughts_dim(self):
        terminal = Terminal(self, *self.run_chat)
        terminal.expect("\x1b[2m")
        terminal.expect(f"(thought for {TOKENS} tokens)")
        terminal.finish()
        hidden = Terminal(self, *self.run_chat, "--thoughts", "hide")
        self.assertNotIn("\x1b[2m", hidden.expect(f"(thought for {TOKENS} tokens)"))
        hidden.finish()

    def test_a_chat_keeps_thoughts_apart_and_passes_them_to_the_template(self):
        saved = self.folder / "chat.json"
        lines = f"Hello\n/save {saved}\nBye\n/stats\n"
        result = self.godwit("chat", *self.flags, stdin=lines)
        self.assertEqual((result.returncode, result.stdout), (0, "\n\n"))
        answer = json.loads(saved.read_text())["messages"][1]
        self.assertEqual(answer, {"role": "assistant", "content": "",
                                  "reasoning_content": self.thought})
        # A conversation that was loaded goes on as the one that was saved.
        loaded = self.godwit("chat", *self.flags, stdin=f"/load {saved}\nBye\n/save {saved}\n")
        self.assertEqual(loaded.returncode, 0, loaded.stderr)
        self.assertEqual(json.loads(saved.read_text())["messages"][1], answer)


if __name__ == "__main__":
    unittest.main()
