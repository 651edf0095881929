"""What the tests of the Python package share. They test the package that `import godwit` finds."""

import os
import pathlib
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "tests" / "data" / "tiny-llama"
STORIES = ROOT / "models" / "stories-3m"

try:
    import numpy
except ImportError:
    numpy = None

needs_numpy = unittest.skipIf(numpy is None, "NumPy is not there: logits and hidden states are untested")


def run_python(code, **options):
    """Runs code in another Python, whose output it returns as it comes: a process.

    SIGINT is as a terminal would have it: a shell's jobs in the background ignore it.
    """
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=os.environ,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                            **options)


def run_program(*arguments):
    """What the program godwit prints, if there is one to ask; else the test is skipped."""
    program = os.environ.get("GODWIT_BINARY")
    if not program:
        raise unittest.SkipTest("GODWIT_BINARY names no program to compare with")
    return subprocess.run([program, *map(str, arguments)], check=True, text=True,
                          capture_output=True).stdout
