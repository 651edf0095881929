"""Runs the built program: what the tests of the command line share.

The program is named by the variable GODWIT_BINARY. Every run gets an environment without GODWIT_*
variables and a home of its own. Timeouts are there to end a hanging test, never to measure.
"""

import fcntl
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

BINARY = os.path.abspath(os.environ["GODWIT_BINARY"])
TESTS = pathlib.Path(__file__).resolve().parent.parent
TINY = TESTS / "data" / "tiny-llama"
GOLDEN = TESTS / "golden"
EXPECTED = json.loads((TINY / "expected.json").read_text())
HANG_S = 300

# A text without end in constant memory.
ENDLESS = ["--kv", "sinks:4+60", "--ignore-eos", "--temp", "0"]


def changed(command, *flags):
    """`command` with these flags, each with its value, in place of what it has of them."""
    kept = list(command)
    for flag in flags[::2]:
        if flag in kept:
            del kept[kept.index(flag):kept.index(flag) + 2]
    return [*kept, *flags]


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="godwit-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def environment(self, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_")}
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "NO_COLOR"):
            kept.pop(name, None)
        return {**kept, "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "TERM": "xterm",
                **variables}

    def godwit(self, *arguments, stdin="", variables=None, binary=BINARY, **options):
        return subprocess.run([binary, *map(str, arguments)], timeout=HANG_S,
                              input=stdin, env=self.environment(**(variables or {})),
                              **{"text": True, "stdout": subprocess.PIPE,
                                 "stderr": subprocess.PIPE, **options})

    def ok(self, *arguments, **options):
        result = self.godwit(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, code, *arguments, **options):
        """The message of a run that must fail with `code` and print nothing: one line, and at most
        an indented list under it."""
        result = self.godwit(*arguments, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        if result.stdout is not None:
            self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\Agodwit: [^\n]+\n(  [^\n]+\n)*\Z")
        return result.stderr[len("godwit: "):-1]

    def start(self, *arguments, variables=None, **options):
        """Popen with SIGINT as a terminal would have it, whoever runs the tests."""
        process = subprocess.Popen(
            [BINARY, *map(str, arguments)], env=self.environment(**(variables or {})),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               **options})
        self.addCleanup(end, process)
        return process

    def copy_of_tiny(self):
        copy = self.folder / "model"
        shutil.copytree(TINY, copy)
        return copy


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def wait_until_sigint_is_handled(process):
    """A signal that comes before main would end the process in its own way."""
    bit = 1 << (signal.SIGINT - 1)
    for _ in range(HANG_S * 100):
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) & bit:
            return
        time.sleep(0.01)
    raise AssertionError("SIGINT is never handled")


def wait_for(condition):
    for _ in range(HANG_S * 100):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never happens")


def workers(process):
    """The processes that serve its tokenizer and template: pid, and whether it has computed for
    0.1 s or more, which is longer than any of ours takes for all it does."""
    try:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        found = []
        for pid in children.split():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks = int(fields[11]) + int(fields[12])
            found.append((int(pid), ticks >= os.sysconf("SC_CLK_TCK") / 10))
        return found
    except FileNotFoundError:
        return []


def doublings(letter):
    """Steps of a tokenizer that make 2^40 of every letter."""
    return 40 * [{"type": "Replace", "pattern": {"String": letter}, "content": 2 * letter}]


class Terminal:
    """The program at a terminal of its own: what a person would see and type."""

    def __init__(self, test, *arguments, columns=100, **options):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

        def take_terminal():
            os.setsid()
            fcntl.ioctl(2, termios.TIOCSCTTY, 0)  # 0 and 1 may be something else
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        self.process = subprocess.Popen(
            [BINARY, *map(str, arguments)], env=test.environment(), preexec_fn=take_terminal,
            **{"stdin": slave, "stdout": slave, "stderr": slave, **options})
        os.close(slave)
        test.addCleanup(os.close, self.master)
        test.addCleanup(end, self.process)
        self.seen = ""  # not yet consumed by expect

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self):
        """More output; "" at the end."""
        if not select.select([self.master], [], [], HANG_S)[0]:
            raise AssertionError(f"nothing comes; so far: {self.seen!r}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other side is closed
            return ""
        return data.decode(errors="replace")

    def expect(self, text):
        """Waits for `text`; returns what came before it."""
        while text not in self.seen:
            more = self.read()
            if not more:
                raise AssertionError(f"{text!r} never came; the last was {self.seen!r}")
            self.seen += more
        before, self.seen = self.seen.split(text, 1)
        return before

    def finish(self):
        """Waits for the end; returns the exit code."""
        while more := self.read():
            self.seen += more
        return self.process.wait(timeout=HANG_S)
