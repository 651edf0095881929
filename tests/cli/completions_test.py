"""godwit completions and godwit man: all of the flags, in a form that their readers take.

What the help of every verb shows is what has to be there.
"""

import re
import shutil
import subprocess
import unittest

from harness import CliTest

FLAG = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


class CompletionsTest(CliTest):
    def setUp(self):
        super().setUp()
        verbs = re.findall(r"^  ([a-z-]+)  ", self.ok("--help"), re.MULTILINE)
        kinds = re.findall(r"^  ([a-z-]+)  ", self.ok("eval", "--help"), re.MULTILINE)
        self.commands = [[v] for v in verbs if v != "eval"] + [["eval", k] for k in kinds]
        self.assertIn(["run"], self.commands)
        self.assertIn(["eval", "quant"], self.commands)

    def flags(self, command):
        entries = re.findall(r"^  (-.*?)(?:  |$)", self.ok(*command, "--help"), re.MULTILINE)
        flags = {flag for entry in entries for flag in FLAG.findall(entry)}
        self.assertIn("--help", flags)
        return flags

    def script(self, shell):
        script = self.folder / f"godwit.{shell}"
        script.write_text(self.ok("completions", shell))
        return script

    def run_in(self, *command, **options):
        result = subprocess.run(command, env=self.environment(), cwd=self.folder, text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def in_bash(self, *words):
        """What Tab offers behind these words."""
        lines = self.run_in(
            "bash", "-c", 'compopt() { :; }; source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '_godwit; printf "%s\\n" "${COMPREPLY[@]}"', self.script("bash"), "godwit", *words)
        return set(lines.split())

    def in_fish(self, line):
        lines = self.run_in("fish", "--no-config", "-c", f"source {self.script('fish')}; complete -C '{line}'")
        return {entry.split("\t")[0] for entry in lines.splitlines()}

    def a_folder_a_file_and_a_cached_model(self):
        (self.folder / "folder").mkdir()
        (self.folder / "file").touch()
        (self.folder / "m.gguf").touch()
        (self.folder / ".cache/huggingface/hub/models--org--small-name").mkdir(parents=True)

    def test_bash(self):
        self.run_in("bash", "-n", self.script("bash"))
        for command in self.commands:
            self.assertEqual(self.in_bash(*command, "-"), self.flags(command), command)
        self.assertLessEqual({c[0] for c in self.commands} | {"eval", "help"}, self.in_bash(""))
        self.assertEqual(self.in_bash("eval", "s"), {"stream"})
        self.assertEqual(self.in_bash("help", "ch"), {"chat"})
        self.assertEqual(self.in_bash("run", "--weights", "b"), {"bf16"})
        self.assertEqual(self.in_bash("run", "--kv", "s"), {"sinks:"})
        self.assertEqual(self.in_bash("run", "-n", ""), set())
        self.a_folder_a_file_and_a_cached_model()
        self.assertEqual(self.in_bash("run", "-f", "f"), {"file", "folder"})
        self.assertEqual(self.in_bash("eval", "tasks", "-d", "f"), {"folder"})
        for more in (["-f", "a", "f"], ["--file", "a", "-", "b", "f"]):
            self.assertEqual(self.in_bash("run", *more), {"file", "folder"})
        self.assertEqual(self.in_bash("run", "-f", "a", "--weights", "b"), {"bf16"})
        self.assertIn("--file", self.in_bash("run", "-f", "a", "--fi"))
        self.assertEqual(self.in_bash("run", "-n", "1", "f"), set())
        self.assertEqual(self.in_bash("run", "-m", "f"), {"folder"})
        self.assertEqual(self.in_bash("run", "-m", "m"), {"m.gguf"})
        self.assertEqual(self.in_bash("run", "--model", "o"), {"org/small-name"})

    def test_zsh(self):
        script = self.script("zsh")
        text = script.read_text()
        for command in self.commands:
            part = text.split(f"    '{' '.join(command)}')\n", 1)[1].split("      ;;\n", 1)[0]
            self.assertEqual(set(re.findall(r"'\*(-[\w-]+)\[", part)), self.flags(command))
        self.assertIn("'*:FILE:_files'", text.split("'run')\n", 1)[1].split(";;\n", 1)[0])
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        self.run_in("zsh", "-fn", script)

    def test_fish(self):
        script = self.script("fish")
        text = script.read_text()
        for command in self.commands:
            lines = re.findall(rf"""'__godwit_at "{' '.join(command)}"'(.*?) -d '""", text)
            flags = {dashes + name for line in lines
                     for kind, name in re.findall(r" -([slo]) ([\w-]+)", line)
                     for dashes in ["--" if kind == "l" else "-"]}
            self.assertEqual(flags, self.flags(command))
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        self.run_in("fish", "-n", script)
        self.assertEqual(self.in_fish("godwit eval s"), {"stream"})
        self.assertEqual(self.in_fish("godwit run --weights b"), {"bf16"})
        self.assertEqual(self.in_fish("godwit run --kv=s"), {"--kv=sinks:"})
        self.assertLessEqual({"--kv", "--kv-type"}, self.in_fish("godwit run --k"))
        self.a_folder_a_file_and_a_cached_model()
        self.assertEqual(self.in_fish("godwit run -f f"), {"file", "folder/"})
        self.assertEqual(self.in_fish("godwit run -m o"), {"org/small-name"})

    def test_man(self):
        page = self.folder / "godwit.1"
        page.write_text(self.ok("man"))
        text = page.read_text().replace("\\-", "-")
        for command in self.commands:
            part = text.split(f".SH \"GODWIT {' '.join(command)}\"", 1)[1].split(".SH", 1)[0]
            self.assertLessEqual(self.flags(command), set(FLAG.findall(part)))
        if shutil.which("mandoc"):
            lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], text=True,
                                  stdout=subprocess.PIPE).stdout
            # A date would be that of the build.
            self.assertEqual([line for line in lint.splitlines() if "missing date" not in line], [])
        if shutil.which("man"):
            shown = self.run_in("man", "--warnings", "-l", page)
            self.assertIn("--top-k N", shown)

    def test_wrong_use(self):
        for arguments in ([], ["tcsh"], ["bash", "zsh"]):
            self.refused(2, "completions", *arguments)
        self.assertIn("bash, zsh or fish", self.refused(2, "completions", "tcsh"))
        self.refused(2, "man", "run")


if __name__ == "__main__":
    unittest.main()
