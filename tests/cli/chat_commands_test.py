"""godwit chat: a context that fills up, conversations in files, and what the terminal shows of them."""

import json
import pathlib
import signal
import termios
import time
import unittest

from chat_test import CHAT, FAR, HELLO, READY
from harness import ENDLESS, HANG_S, TINY, CliTest, Terminal


class ChatTest(CliTest):
    def start_chat(self, *flags, **options):
        terminal = Terminal(self, *CHAT, *flags, **options)
        terminal.expect(READY)
        return terminal

    def say(self, terminal, line):
        """What comes between a line and the next prompt."""
        terminal.type(line + "\r")
        return terminal.expect(READY)

    def script(self, *lines, flags=()):
        return self.godwit(*CHAT, *flags, stdin="\n".join(lines) + "\n")


class ContextTest(ChatTest):
    def test_warns_before_the_context_is_full(self):
        tokens = len(json.loads(self.ok("run", "-m", TINY, "--temp", "0", "--chat", "-p", "Hello!",
                                        "--json"))["tokens"])
        self.assertGreater(tokens, 5)
        terminal = self.start_chat("-c", "40")
        shown = self.say(terminal, "Hello!")
        self.assertRegex(shown, r"\(the context is 8\d % full \(3\d of 40 tokens\); make space with "
                                r"/undo, /clear or /kv sinks:4\+36 ")
        self.assertRegex(self.say(terminal, "/stats"), r"\[8\d%\] > ")
        self.assertNotIn("make space", self.say(terminal, "/regen"))
        self.assertNotIn("%", self.say(terminal, "/clear").split("(a new conversation)")[1])

    def test_says_which_limit_ended_an_answer(self):
        terminal = self.start_chat("-n", "5")
        self.assertIn("(stopped by -n 5 tokens)", self.say(terminal, "Hello!"))
        terminal = self.start_chat("-r", HELLO[-5:])
        self.assertIn(f'(stopped at "{HELLO[-5:]}")', self.say(terminal, "Hello!"))
        terminal = self.start_chat("-c", "50", "--ignore-eos")
        self.assertIn("(stopped: the context of 50 tokens is full; make space with ",
                      self.say(terminal, "Hello!"))

    def test_a_full_context_goes_on_with_another_policy(self):
        terminal = self.start_chat("-c", "50", "--ignore-eos", "-n", "40", columns=300)
        self.say(terminal, "Hello!")
        self.assertRegex(self.say(terminal, "Who are you?"),
                         r"godwit: the conversation with this question has \d+ tokens, which leaves no "
                         r"space for an answer in the context of 50; use /undo, /clear or "
                         r"/kv sinks:4\+46 [^;]* or a restart with -c \d+")
        self.assertIn("(sinks:4+46 from now on; the next question also processes the 50 tokens so far "
                      "again",
                      self.say(terminal, "/kv sinks:4+46"))
        self.assertIn("(stopped by -n 40 tokens)", self.say(terminal, "Who are you?"))
        self.assertRegex(self.say(terminal, "/kv"), r"\(sinks:4\+46: 50 of \d+ tokens kept")
        # Nothing changes where a policy is refused.
        self.assertRegex(self.say(terminal, "/kv dense"),
                         r"godwit: dense holds 50 tokens, and the conversation has \d+")
        self.assertIn("godwit: ", self.say(terminal, "/kv sinks:x"))
        self.assertIn("only godwit perplexity", self.say(terminal, "/kv recompute:9"))
        self.assertIn("(sinks:4+46: ", self.say(terminal, "/kv"))

    def test_switching_the_policy_keeps_the_conversation(self):
        result = self.script("Hello!", "/kv sinks:4+500", "How far can a godwit fly?")
        self.assertEqual(result.stdout, f"{HELLO}\n{FAR}\n")
        self.assertEqual(self.script("/kv sinks:x").returncode, 2)


class FileTest(ChatTest):
    def test_a_conversation_goes_on_in_another_process(self):
        file = self.folder / "talk.json"
        self.assertEqual(self.script("Hello!", f"/save {file}").returncode, 0)
        self.assertEqual(json.loads(file.read_text()), {"messages": [
            {"role": "user", "content": "Hello!"}, {"role": "assistant", "content": HELLO}]})
        result = self.script("Forget me", f"/load {file}", "How far can a godwit fly?")
        self.assertEqual(result.stdout.splitlines()[1:], [FAR])

    def test_the_system_message_is_saved_too(self):
        file = self.folder / "talk.json"
        self.script("/system Be brief.", f"/save {file}")
        self.assertEqual(json.loads(file.read_text()),
                         {"messages": [{"role": "system", "content": "Be brief."}]})
        self.assertIn("(system: Be brief.)", self.script(f"/load {file}", "/system").stderr)

    def test_saving_replaces_conversations_only(self):
        other = self.folder / "notes.txt"
        other.write_text("mine")
        self.assertEqual(self.script("Hello!", f"/save {other}").returncode, 2)
        self.assertEqual(other.read_text(), "mine")
        talk = self.folder / "talk.json"
        for lines in (["Hello!"], ["Hello!", "Who are you?"]):
            self.assertEqual(self.script(*lines, f"/save {talk}").returncode, 0)
            self.assertEqual(len(json.loads(talk.read_text())["messages"]), 2 * len(lines))
        model = self.copy_of_tiny()
        result = self.godwit("chat", "-m", model, stdin=f"/save {model}/talk.json\n")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertFalse((model / "talk.json").exists())

    def test_hostile_files_are_refused_in_one_sentence(self):
        file = self.folder / "talk.json"
        for content, code in ((b"", 4), (b"\xff\x00", 4), (b"[" * 100000, 4), (b'{"messages": 5}', 4),
                              (b'{"messages": [{"role": "user", "content": "\\u001b[31m"}]}', 4)):
            file.write_bytes(content)
            result = self.script(f"/load {file}")
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertRegex(result.stderr, r"\Agodwit: [^\n\x1b]+\n\Z")
        self.assertEqual(self.script(f"/load {self.folder}").returncode, 3)
        self.assertEqual(self.script("/load").returncode, 2)

    def test_a_slip_does_not_end_the_talk(self):
        terminal = self.start_chat()
        self.say(terminal, "Hello!")
        self.assertIn("godwit: ", self.say(terminal, "/load /no/such/file"))
        self.assertIn("godwit: ", self.say(terminal, "/save /no/such/folder/file"))
        self.assertIn("(1 question saved in ", self.say(terminal, "/save ~/talk.json"))
        self.assertTrue((self.folder / "talk.json").exists())
        self.say(terminal, "/clear")
        self.assertIn("(1 question loaded)", self.say(terminal, "/load ~/talk.json"))
        self.assertIn(FAR, self.say(terminal, "How far can a godwit fly?"))


class ScreenTest(ChatTest):
    def echo(self, terminal):
        return bool(termios.tcgetattr(terminal.master)[3] & termios.ECHO)

    def stopped(self, terminal):
        stat = pathlib.Path(f"/proc/{terminal.process.pid}/stat").read_text()
        return stat.rsplit(")", 1)[1].split()[0] == "T"

    def wait_until(self, condition):
        for _ in range(HANG_S * 100):
            if condition():
                return
            time.sleep(0.01)
        self.fail("it never happens")

    def test_early_typing_waits_for_the_prompt(self):
        terminal = self.start_chat(*ENDLESS, "-n", "3000")
        terminal.type("Hello!\r")
        terminal.expect("Ask me about birds.")
        terminal.type("/system\r")
        answer = terminal.expect(READY)
        self.assertIn("(stopped by -n", answer)
        self.assertNotIn("/system", answer.split("(stopped by -n")[0])
        terminal.expect("(no system message")

    def test_words_are_not_cut_at_the_edge(self):
        terminal = self.start_chat(columns=30)
        terminal.type("How far can a godwit fly?\r")
        shown = terminal.expect(READY).split("\r\n")
        answer = self.ok(*CHAT, stdin="How far can a godwit fly?\n").strip()
        self.assertGreater(len(answer), 30)
        text = [line.removeprefix("\x1b[?2004l") for line in shown[1:-1]]
        self.assertEqual(" ".join(text), answer)
        self.assertLessEqual(max(map(len, text)), 30)

    def test_nor_is_what_the_program_says(self):
        terminal = Terminal(self, *CHAT, "-c", "40", columns=30)
        shown = terminal.expect(READY)
        terminal.type("Hello! " * 30 + "\r")
        shown += terminal.expect("godwit: ")
        shown += "godwit: " + terminal.expect(READY)
        lines = [line.removeprefix("\x1b[?2004l") for line in shown.split("\r\n")]
        lines = [line for line in lines if "Hello!" not in line]
        self.assertGreater(len(lines), 8)
        self.assertLessEqual(max(map(len, lines)), 30, lines)
        # What has lines of its own keeps them.
        terminal.type("/help\r")
        self.assertIn("/system TEXT\r\n      set the", terminal.expect(READY))

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        terminal = self.start_chat(*ENDLESS)
        terminal.type("Hello!\r")
        terminal.expect("Ask me about birds.")
        self.assertFalse(self.echo(terminal))
        terminal.process.send_signal(signal.SIGTERM)
        terminal.finish()
        self.assertTrue(self.echo(terminal))

    def test_ctrl_z_leaves_the_terminal_as_it_was(self):
        terminal = self.start_chat(*ENDLESS)
        terminal.type("Hello!\r")
        terminal.expect("Ask me about birds.")
        terminal.type("\x1a")
        self.wait_until(lambda: self.stopped(terminal))
        self.assertTrue(self.echo(terminal))
        terminal.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: not self.echo(terminal))
        terminal.type("\x03")
        terminal.expect("(stopped)")
        terminal.expect(READY)


if __name__ == "__main__":
    unittest.main()
