"""tools/check_sizes must fail on long files and long functions, and only on those."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_sizes"


def run(name, text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        done = subprocess.run([sys.executable, str(CHECK), "--root", folder], text=True,
                              capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr


def function(lines, head="int Sum(int a,\n        int b) {\n"):
    """A definition of `lines` lines, its two head lines and the brace included."""
    return head + "  a += b;\n" * (lines - 3) + "}\n"


class CheckSizes(unittest.TestCase):
    def test_short_files_pass_in_silence(self):
        status, output = run("src/ops/x.cc", "int x;\n" * 500)
        self.assertEqual((status, output), (0, "check_sizes: 1 files, 0 problems\n"))

    def test_files_over_500_are_listed(self):
        status, output = run("src/ops/x.cc", "int x;\n" * 501)
        self.assertEqual(status, 0)
        self.assertIn("src/ops/x.cc: 501 lines", output)

    def test_files_over_800_fail(self):
        for name in ("src/ops/x.cc", "src/text/worker/src/main.rs", "tools/script", "tests/x.py"):
            self.assertEqual(run(name, "x\n" * 800)[0], 0, name)
            self.assertEqual(run(name, "x\n" * 801)[0], 1, name)

    def test_build_folders_do_not_count(self):
        self.assertEqual(run("src/text/worker/target/x.rs", "x\n" * 900)[0], 0)

    def test_functions_over_120_fail(self):
        self.assertEqual(run("src/ops/x.cc", function(120))[0], 0)
        status, output = run("src/ops/x.cc", "\n" + function(121))
        self.assertEqual(status, 1)
        self.assertIn("src/ops/x.cc:2: a function of 121 lines", output)

    def test_each_function_counts_alone(self):
        text = "namespace godwit {\n\n" + "int x;\n" + (function(100) + "\n") * 4 + "}  // namespace\n"
        self.assertEqual(run("src/ops/x.cc", text)[0], 0)

    def test_classes_and_tables_are_not_functions(self):
        for head in ("class X {\n", "constexpr int kTable[] = {\n"):
            self.assertEqual(run("src/ops/x.cc", head + "  1,\n" * 300 + "};\n")[0], 0, head)


if __name__ == "__main__":
    unittest.main()
