"""tools/check_sizes must fail on long files, long functions and large trees, and only on those."""

import os
import pathlib
import shutil
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

    @unittest.skipUnless(shutil.which("git"), "needs git")
    def test_trees_over_50_million_bytes_fail(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}

            def run_here(*command):
                done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, text=True,
                                      capture_output=True, check=False)
                return done.returncode, done.stdout + done.stderr

            self.assertEqual(run_here("git", "init", "-q"), (0, ""))
            for name, size in (("a", 59_999_990), ("b", 10), ("built", 1000)):
                (pathlib.Path(folder) / name).touch()
                os.truncate(pathlib.Path(folder) / name, size)
            # Git's index has their names, and git does not read them.
            self.assertEqual(run_here("git", "add", "-N", "a", "b"), (0, ""))
            check = (sys.executable, CHECK, "--root", folder)
            self.assertEqual(run_here(*check), (0, "check_sizes: 0 files, 0 problems\n"))
            os.truncate(pathlib.Path(folder) / "b", 11)
            status, output = run_here(*check)
            self.assertEqual(status, 1)
            self.assertIn("60,000,001 bytes in the files of the tree, at most 60,000,000", output)
            self.assertIn("a 59,999,990, b 11\n", output)


if __name__ == "__main__":
    unittest.main()
