"""What the verbs write: nothing of the user's is replaced by mistake, nothing half-done remains."""

import os
import signal
import threading
import unittest

from harness import ENDLESS, TINY, CliTest, Terminal

INPUT = 2
SLOW = ["--isa", "scalar", "-t", "1", "-ub", "1"]


class ResultFilesTest(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.copy_of_tiny()
        self.text = self.folder / "text"
        self.text.write_text("Once upon a time there was a small bird. " * 5)
        self.tasks = self.folder / "tasks"
        self.tasks.mkdir()
        for task in ("piqa", "arc_easy"):
            (self.tasks / f"{task}.jsonl").write_text("{}\n")
        self.before = self.files()

    def files(self):
        return {path.relative_to(self.folder): path.read_bytes()
                for path in self.folder.rglob("*") if path.is_file()}

    def test_no_verb_replaces_its_input(self):
        m, f, d = ["-m", self.model], ["-f", self.text], ["-d", self.tasks]
        weights = self.model / "model.safetensors"
        for arguments in (["perplexity", *m, *f, "--jsonl", self.text],
                          ["perplexity", *m, *f, "--jsonl", weights],
                          ["batch", *m, *f, "-o", self.text],
                          ["batch", *m, *f, "-o", weights],
                          ["logits", *m, *f, "-o", self.text],
                          ["logits", *m, *f, "-o", weights],
                          ["eval", "quant", *m, "-m", f"{self.model}:int8", *f, "--jsonl", weights],
                          ["eval", "quant", *m, *m, *f, *d, "--jsonl", self.tasks / "piqa.jsonl"],
                          ["eval", "stream", *m, "-o", weights],
                          ["eval", "stream", *m, "--arc", self.tasks, "-o",
                           self.tasks / "arc_easy.jsonl"],
                          ["quantize", *m, "--calib", self.text, "-o", self.model / "int8"]):
            with self.subTest(arguments=arguments):
                self.assertRegex(self.refused(INPUT, *arguments),
                                 "choose (a place outside of it|another one)")
                self.assertEqual(self.files(), self.before)

    def test_standard_output_counts(self):
        out = self.folder / "out"
        with open(out, "w") as stdout:
            self.assertIn("standard output", self.refused(
                INPUT, "perplexity", "-m", self.model, "-f", self.text, "--jsonl", out,
                stdout=stdout))

    def test_links_are_followed(self):
        for name, target in (("link", "old.npy"), ("dangling", "new.npy")):
            (self.folder / name).symlink_to(target)
        (self.folder / "old.npy").write_text("old")
        for name in ("link", "dangling"):
            self.ok("logits", "-m", self.model, "-p", "x", "-o", self.folder / name)
            self.assertTrue((self.folder / name).is_symlink())
            self.assertEqual((self.folder / name).read_bytes()[:6], b"\x93NUMPY")

    def test_a_named_pipe(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        received = []
        reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
        reader.start()
        self.ok("perplexity", "-m", self.model, "-f", self.text, "--jsonl", pipe)
        reader.join(timeout=60)
        self.assertIn(b'"position":', received[0])

    def test_binary_output_is_not_for_terminals(self):
        terminal = Terminal(self, "logits", "-m", self.model, "-p", "x", "-o", "-")
        self.assertEqual(terminal.finish(), INPUT)
        self.assertIn("standard output is a terminal", terminal.seen)

    def test_history(self):
        weights = self.model / "model.safetensors"
        terminal = Terminal(self, "chat", "-m", self.model, "--history", weights)
        self.assertEqual(terminal.finish(), INPUT)
        self.assertIn("expected a file of typed lines", terminal.seen)
        self.assertEqual(self.files(), self.before)


class SignalTest(CliTest):
    """Each is sent when the unfinished result is there, and must take it away."""

    SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM),
               (signal.SIGHUP, -signal.SIGHUP)]

    def end_by(self, number, started, *arguments, presses=1):
        process = self.start(*arguments)
        while not started():
            self.assertIsNone(process.poll(), "it has ended by itself")
        for _ in range(presses):
            process.send_signal(number)
        process.communicate()
        return process.returncode

    def is_written(self):
        """What is probed at the start is empty, and gone at once."""
        try:
            return any(path.stat().st_size for path in self.folder.glob("out.*.tmp"))
        except FileNotFoundError:
            return False

    def test_files(self):
        text = self.folder / "text"
        text.write_text("bird " * 100000)
        flags = ["-m", TINY, "-f", text, "--kv", "sinks:4+60", *SLOW]
        for verb in (["logits", *flags, "-o", self.folder / "out"],
                     ["perplexity", *flags, "--jsonl", self.folder / "out"]):
            for number, code in self.SIGNALS:
                with self.subTest(verb=verb[0], signal=number):
                    self.assertEqual(self.end_by(number, self.is_written, *verb), code)
                    self.assertEqual([p.name for p in self.folder.iterdir()], ["text"])

    def test_a_folder(self):
        text = self.folder / "text"
        text.write_text("bird " * 100000)
        for number, code in self.SIGNALS:
            with self.subTest(signal=number):
                made = lambda: any(self.folder.glob("int8.tmp-*"))
                self.assertEqual(self.end_by(number, made, "quantize", "-m", TINY, "-o",
                                             self.folder / "int8", "--calib", text, "--samples",
                                             "5000", *SLOW[:4]), code)
                self.assertEqual([p.name for p in self.folder.iterdir()], ["text"])

    def test_an_ignored_hang_up_stays_ignored(self):
        file = self.folder / "text"
        file.write_text("bird " * 20000)
        out = self.folder / "out"
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which the program inherits
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        process = self.start("logits", "-m", TINY, "-f", file, "-o", out, "--kv", "sinks:4+60")
        while not self.is_written():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGHUP)
        process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertTrue(out.exists())

    def test_typed_lines_are_kept(self):
        terminal = Terminal(self, "chat", "-m", TINY, *ENDLESS)
        terminal.expect("\x1b[?2004h")
        terminal.type("Hello!\r")
        terminal.expect("Ask me about birds.")
        terminal.process.send_signal(signal.SIGTERM)  # in the middle of the answer
        self.assertEqual(terminal.finish(), -signal.SIGTERM)
        history = self.folder / ".local" / "state" / "godwit" / "history"
        self.assertIn("Hello!", history.read_text())
        self.assertEqual(history.stat().st_mode & 0o777, 0o600)


if __name__ == "__main__":
    unittest.main()
