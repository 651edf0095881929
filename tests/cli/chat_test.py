"""godwit chat: through a pipe, and at a terminal."""

import os
import re
import unittest

from harness import ENDLESS, EXPECTED, TINY, CliTest, Terminal

CHAT = ["chat", "-m", TINY, "--temp", "0"]
ANSWERS = {tuple(m["content"] for m in case["messages"]): case["new_text"]
           for case in EXPECTED["chat"]}
HELLO = ANSWERS[("Hello!",)]
WHO = ANSWERS[("Who are you?",)]
FAR = ANSWERS[("Hello!", HELLO, "How far can a godwit fly?")]
BRIEF = ANSWERS[("You are brief.", "Hello!")]

# Asked of the terminal when a line can be typed: pasted text shall be bracketed.
READY = "\x1b[?2004h"


class PipeTest(CliTest):
    def chat(self, *lines, flags=()):
        return self.ok(*CHAT, *flags, stdin="\n".join(lines) + "\n")

    def test_conversation(self):
        result = self.godwit(*CHAT, stdin="Hello!\nHow far can a godwit fly?\n")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, f"{HELLO}\n{FAR}\n")

    def test_last_line_needs_no_newline(self):
        self.assertEqual(self.ok(*CHAT, stdin="\n\nHello!"), HELLO + "\n")

    def test_a_line_without_end_is_refused(self):
        message = self.refused(2, *CHAT, stdin="a" * (65 << 20))
        self.assertIn("expected lines of at most 64 MiB on standard input", message)

    def test_system(self):
        self.assertEqual(self.chat("Hello!", flags=["-sys", "You are brief."]), BRIEF + "\n")
        self.assertEqual(self.chat("/system You are brief.", "Hello!"), BRIEF + "\n")

    def test_clear_undo_and_regen(self):
        self.assertEqual(self.chat("Hello!", "/clear", "Who are you?"), f"{HELLO}\n{WHO}\n")
        self.assertEqual(self.chat("Hello!", "Who are you?", "/undo", "How far can a godwit fly?")
                         .splitlines()[-1], FAR)
        self.assertEqual(self.chat("Hello!", "/regen"), f"{HELLO}\n{HELLO}\n")

    def test_exit(self):
        self.assertEqual(self.chat("/exit", "Hello!"), "")

    def test_stats_show_the_cache_at_work(self):
        result = self.godwit(*CHAT, stdin="Hello!\nHow far can a godwit fly?\n/stats\n")
        self.assertRegex(result.stderr, r"prompt  \d\d tokens, \d\d of them cached")

    def test_a_pinned_prefix_ends_with_a_message(self):
        stats = "kv +sinks:4\\+60,pin=(\\d+): "
        told = ["-sys", "You are brief.", "--kv", "sinks:4+60,pin=1"]
        result = self.godwit(*CHAT, *told, stdin="Hello!\n/stats\n")
        self.assertEqual(result.stdout, BRIEF + "\n", "nothing is dropped yet")
        system = int(re.search(stats, result.stderr)[1])
        self.assertGreater(system, 4)
        # The opening of the answer is not pinned, however much is asked for.
        result = self.godwit(*CHAT, *told[:3], "sinks:4+60,pin=50", stdin="Hello!\n/stats\n")
        self.assertGreater(int(re.search(stats, result.stderr)[1]), system)
        # A long conversation goes on, and what is pinned stays what it was.
        result = self.godwit(*CHAT, *told, "-n", "40", stdin="Hello!\nWho are you?\n" * 3 + "/stats\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, rf"dropped \d+ tokens after the first {system}\n")
        message = self.refused(2, *CHAT, *told[:3], "sinks:4+8,pin=5", stdin="Hello!\n")
        self.assertIn("pins whole messages", message)

    def test_the_last_message_is_the_question(self):
        def second_prompt(*flags):
            told = ["--prefill", "window:1", *flags]
            result = self.godwit(*CHAT, *told, stdin="Hello!\nWho are you?\n/stats\n")
            return re.search(r"prompt .*", result.stderr)[0]

        # What was question is context in the next turn, and is read again as such.
        self.assertNotIn("cached", second_prompt())
        self.assertIn("cached", second_prompt("--query-tokens", "1"))

    def test_several_lines(self):
        for lines in (["Hello!\\", "Who are you?"], ["\"\"\"Hello!", "Who are you?\"\"\""]):
            self.assertEqual(len(self.chat(*lines).splitlines()), 1)

    def test_commands(self):
        result = self.godwit(*CHAT, stdin="/help\n")
        self.assertIn("/regen", result.stderr)
        self.assertIn("did you mean /regen?", self.refused(2, *CHAT, stdin="/rgen\n"))

    def test_too_long_a_question(self):
        message = self.refused(2, *CHAT, "-c", "20", stdin="bird " * 100 + "\n")
        self.assertIn("20", message)
        # Far more than the model was made for: refused before it is read to its end.
        message = self.refused(2, *CHAT, stdin="bird " * 2_000_000 + "\n")
        self.assertRegex(message, r"the question has more than \d+ tokens")


class TerminalTest(CliTest):
    def start_chat(self, *flags, **options):
        terminal = Terminal(self, *CHAT, *flags, **options)
        terminal.expect(READY)
        return terminal

    def test_conversation(self):
        terminal = self.start_chat()
        terminal.type("Hello!\r")
        terminal.expect(HELLO)
        terminal.expect(READY)
        terminal.type("How far can a godwit flx\x7fy?\r")  # with a correction
        terminal.expect(FAR)
        terminal.expect(READY)
        terminal.type("\x04")
        self.assertEqual(terminal.finish(), 0)

    def test_history(self):
        terminal = self.start_chat()
        terminal.type("Hello!\r")
        terminal.expect(HELLO)
        terminal.expect(READY)
        terminal.type("/exit\r")
        self.assertEqual(terminal.finish(), 0)
        file = self.folder / ".local" / "state" / "godwit" / "history"
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)

        terminal = self.start_chat()
        terminal.type("\x1b[A\x1b[A\r")  # up, up: before /exit
        terminal.expect(HELLO)
        terminal.expect(READY)

    def test_history_is_kept_in_regular_files_only(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe, 0o644)
        before = pipe.stat().st_mode
        terminal = self.start_chat("--history", pipe)
        terminal.type("/exit\r")
        self.assertEqual(terminal.finish(), 0)
        self.assertEqual(pipe.stat().st_mode, before)

    def test_ctrl_c_stops_the_answer_only(self):
        terminal = self.start_chat(*ENDLESS)
        terminal.type("Hello!\r")
        terminal.expect("Ask me about birds.")
        terminal.type("\x03")
        terminal.expect("(stopped)")
        terminal.expect(READY)
        terminal.type("/stats\r")
        terminal.expect("cancelled")
        terminal.expect(READY)
        terminal.type("/exit\r")
        self.assertEqual(terminal.finish(), 0)

    def test_ctrl_c_at_the_prompt(self):
        terminal = self.start_chat()
        terminal.type("never sent")
        terminal.expect("never sent")
        terminal.type("\x03")
        terminal.expect(READY)
        terminal.type("\x03")
        terminal.expect("to leave)")
        terminal.expect(READY)
        terminal.type("Hello!\r")
        terminal.expect(HELLO)
        terminal.expect(READY)
        terminal.type("\x03")
        terminal.expect("to leave)")
        terminal.expect(READY)
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 0)

    def test_paste_is_one_message(self):
        terminal = self.start_chat()
        terminal.type("\x1b[200~Hello!\rWho are you?\x1b[201~\r")
        terminal.expect("Who are you?")
        terminal.expect(READY)
        terminal.type("/undo\r")
        terminal.expect("(taken back; 0 questions left before it)")

    def test_pasted_tabs_stay(self):
        terminal = self.start_chat()
        terminal.type("\x1b[200~/system a\tb\x1b[201~\r")
        terminal.expect(READY)
        terminal.type("/system\r")
        terminal.expect("(system: a\tb)")

    def test_characters_beyond_ascii(self):
        terminal = self.start_chat()
        terminal.type("/system höflich 海🐦\r")
        terminal.expect(READY)
        terminal.type("/system\r")
        terminal.expect("(system: höflich 海🐦)")

    def test_errors_do_not_end_it(self):
        terminal = self.start_chat("-c", "40")
        terminal.type("bird " * 60 + "\r")
        terminal.expect("leaves no space for an answer")
        terminal.expect(READY)
        terminal.type("/nonsense\r")
        terminal.expect("unknown command")
        terminal.expect(READY)
        terminal.type("Hello!\r")
        terminal.expect(HELLO)

    def test_a_question_that_cannot_be_regenerated_is_taken_back(self):
        terminal = self.start_chat("-c", "40")
        terminal.type("Hello!\r")
        terminal.expect(HELLO)
        terminal.expect(READY)
        terminal.type("/system " + "bird " * 60 + "\r")
        terminal.expect("for the whole conversation)")
        terminal.expect(READY)
        terminal.type("/regen\r")
        terminal.expect("leaves no space for an answer")
        terminal.expect(READY)
        terminal.type("/undo\r")
        terminal.expect("(there is no question to take back)")


if __name__ == "__main__":
    unittest.main()
