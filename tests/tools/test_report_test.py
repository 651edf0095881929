"""tools/test_report must count every test of a run, and those that a process which died did not reach."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REPORT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "test_report"


def run(entries, reports):
    """The lines of the report of ctest entries (name, status, output) and of {name: lines}."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cases = "".join(f'<testcase name="{name}" status="{status}"><system-out>{output}'
                        "</system-out></testcase>" for name, status, output in entries)
        (folder / "junit.xml").write_text(f"<testsuite>{cases}</testsuite>")
        (folder / "reports").mkdir()
        for name, lines in reports.items():
            (folder / "reports" / name).write_text("".join(f"{line}\n" for line in lines))
        done = subprocess.run([sys.executable, str(REPORT), str(folder / "junit.xml"),
                               str(folder / "reports")], text=True, capture_output=True, check=True)
        return done.stdout.splitlines()


PLAN = ["plan A.one 0", "plan A.two 0", "plan A.three 0"]


class TestReport(unittest.TestCase):
    def test_tests_of_a_program_and_other_programs_are_counted(self):
        lines = run([("a_test", "run", ""), ("script", "run", ""), ("other", "notrun", "")],
                    {"a_test": PLAN + ["run A.one 0", "passed A.one 3", "run A.two 0",
                                       "skipped A.two 0", "run A.three 0", "passed A.three 1"]})
        self.assertEqual(lines, ["3 0 2"])

    def test_a_failed_test_is_quoted(self):
        said = "[ RUN      ] A.one\nfine\n[ RUN      ] A.two\nx is 3\n[ RUN      ] A.three\n"
        lines = run([("a_test", "fail", said)],
                    {"a_test": PLAN + ["passed A.one 3", "failed A.two 0", "passed A.three 1"]})
        self.assertEqual(lines[-1], "2 1 0")
        self.assertIn("A.two failed:", lines)
        self.assertIn("x is 3", lines)
        self.assertNotIn("fine", lines)

    def test_tests_after_a_crash_count_as_failed(self):
        lines = run([("a_test", "fail", "[ RUN      ] A.two\nboom\n")],
                    {"a_test": PLAN + ["run A.one 0", "passed A.one 3", "run A.two 0"]})
        self.assertEqual(lines[-1], "1 2 0")
        self.assertIn("A.two died here, in a_test:", lines)
        self.assertIn("A.three never ran, in a_test:", lines)
        self.assertIn("boom", lines)

    def test_a_program_that_fails_without_a_failed_test_has_failed(self):
        # As a leak, which is found behind the last test.
        lines = run([("a_test", "fail", "LeakSanitizer: detected")],
                    {"a_test": ["plan A.one 0", "run A.one 0", "passed A.one 1"]})
        self.assertEqual(lines[-1], "1 1 0")
        self.assertIn("LeakSanitizer: detected", lines)


if __name__ == "__main__":
    unittest.main()
