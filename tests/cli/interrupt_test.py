"""Ctrl-C. Nothing here measures time: a program that did not stop would hang the test."""

import json
import os
import signal
import subprocess
import time
import unittest

from harness import (ENDLESS, TINY, CliTest, Terminal, doublings, wait_for,
                     wait_until_sigint_is_handled, workers)

ENDLESS_RUN = ["run", "-m", TINY, *ENDLESS, "-p", "Once upon a time"]


class InterruptTest(CliTest):
    def test_while_generating(self):
        process = self.start(*ENDLESS_RUN)
        text = process.stdout.read(100)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate()
        self.assertEqual(process.returncode, 130)
        # A fast machine is beyond the window by then, which is always told.
        self.assertRegex(errors, rb"^(godwit: sinks:[^\n]*: dropped [^\n]*\n)?$")
        self.assertTrue((text + rest).startswith(b" there was a small bird"))
        (text + rest).decode()  # whole characters

    def test_while_waiting_for_input(self):
        process = self.start("run", "-m", TINY, "-f", "-", stdin=subprocess.PIPE)
        wait_until_sigint_is_handled(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)

    def test_second_press_ends_it_at_once(self):
        process = self.start(*ENDLESS_RUN)
        process.stdout.read(100)
        # Nobody reads: the writer gets stuck in its full pipe, where cancelling does not reach.
        # Presses that are not yet handled count as one.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        self.assertEqual(process.wait(), 130)

    def test_while_computing_logits(self):
        out = self.folder / "out.npy"
        tokens = self.folder / "text"
        tokens.write_text("bird " * 200000)
        terminal = Terminal(self, "logits", "-m", TINY, "-f", tokens, "-o", out, "--kv",
                            "sinks:4+60", "--isa", "scalar", "-ub", "1", "-t", "1")
        terminal.expect("computing logits: ")
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["text"])

    def test_while_reading_the_prompt(self):
        file = self.folder / "prompt"
        file.write_text("bird " * 200000)
        terminal = Terminal(self, "run", "-m", TINY, *ENDLESS, "-f", file, "--isa", "scalar",
                            "-ub", "1", "-t", "1")
        terminal.expect("reading the prompt: ")
        terminal.expect("tokens/s")
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)
        self.assertIn("\r\x1b[K", terminal.seen)  # the progress is gone
        self.assertIn("cancelled", terminal.seen)

    # A script is not to go on with its next question.
    def test_while_reading_a_piped_question(self):
        script = self.folder / "script"
        script.write_text("bird " * 200000 + "\nHello!\n")
        with open(script) as stdin:
            terminal = Terminal(self, "chat", "-m", TINY, "--temp", "0", "--kv", "sinks:4+60",
                                "--isa", "scalar", "-ub", "1", "-t", "1", stdin=stdin)
        terminal.expect("reading the prompt: ")
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)
        self.assertIn("godwit: cancelled", terminal.seen)

    # The wait is longer than a progress line's patience. A slow machine can only miss a mistake.
    def test_progress_ends_with_the_prompt(self):
        terminal = Terminal(self, "run", "-m", TINY, *ENDLESS, "-p", "The tide", "--json")
        time.sleep(2)
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)
        self.assertNotIn("reading the prompt", terminal.seen)

    # What a decoder does is up to the model: this one doubles every e forty times.
    def test_while_a_decoder_computes_without_end(self):
        model = self.copy_of_tiny()
        file = model / "tokenizer.json"
        tokenizer = json.loads(file.read_text())
        tokenizer["decoder"] = {"type": "Sequence", "decoders": doublings("e")}
        file.write_text(json.dumps(tokenizer))
        process = self.start("run", "-m", model, *ENDLESS, "-p", "Once upon a time")
        wait_for(lambda: any(busy for _, busy in workers(process)))
        process.send_signal(signal.SIGINT)
        self.assertEqual((process.wait(), process.stderr.read()), (130, b""))

    def test_while_a_template_computes_without_end(self):
        process = self.busy_template()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)

    def test_while_a_template_computes_in_a_chat(self):
        model = self.endless_template("{% if messages[0].content == 'go' %}", "{% endif %}")
        terminal = Terminal(self, "chat", "-m", model)
        terminal.expect("> ")
        terminal.type("go\r")
        wait_for(lambda: any(busy for _, busy in workers(terminal.process)))
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)

    # The worker has a limit of its own, but not to wait for.
    def test_no_worker_is_left_behind(self):
        for stop in (signal.SIGKILL, signal.SIGINT):
            process = self.busy_template()
            worker = next(pid for pid, busy in workers(process) if busy)
            process.send_signal(stop)
            process.wait()
            wait_for(lambda: not os.path.exists(f"/proc/{worker}"))
        process = self.start(*ENDLESS_RUN)
        process.stdout.read(100)
        idle = [pid for pid, _ in workers(process)]
        self.assertTrue(idle)
        process.kill()
        process.wait()
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in idle))

    def endless_template(self, before="", behind=""):
        model = self.folder / "endless"
        if not model.exists():
            self.copy_of_tiny().rename(model)
        (model / "chat_template.jinja").write_text(
            before + "{% for i in range(99999) %}{% if i in range(99999) %}{% endif %}{% endfor %}"
            + behind)
        return model

    def busy_template(self):
        process = self.start("run", "--chat", "-m", self.endless_template(), "-p", "x")
        wait_for(lambda: any(busy for _, busy in workers(process)))
        return process

    def test_summary_at_a_terminal(self):
        terminal = Terminal(self, "run", "-m", TINY, "--temp", "0", "-p", "The tide",
                            "--kv", "sinks:4+12", "-n", "50")
        self.assertEqual(terminal.finish(), 0)
        self.assertIn("dropped ", terminal.seen)
        self.assertIn("after the first 4", terminal.seen)

    def test_no_summary_without_a_terminal(self):
        result = self.godwit("run", "-m", TINY, "--temp", "0", "-p", "The tide")
        self.assertEqual(result.stderr, "")
        self.assertFalse(result.stdout.endswith("\n"))


if __name__ == "__main__":
    unittest.main()
