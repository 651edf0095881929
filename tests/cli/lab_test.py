"""godwit and godwit-lab are one program to who uses them, as far as the second one is there."""

import os
import shutil
import subprocess
import unittest

from harness import BINARY, TINY, CliTest, wait_for

UNSUPPORTED = 5


class LabTest(CliTest):
    def test_one_process(self):
        process = self.start("perplexity", "-m", TINY, "-f", "-", stdin=subprocess.PIPE)
        wait_for(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith("/godwit-lab"))
        out, err = process.communicate(b"")
        self.assertEqual((process.returncode, out), (2, b""))
        self.assertTrue(err.startswith(b"godwit: "), err)

    def test_help_of_its_verbs(self):
        for verb in (["bench"], ["eval", "tasks"]):
            page = self.ok(*verb, "--help")
            self.assertTrue(page.startswith(f"Usage: godwit {' '.join(verb)} "), page)
            for help in ("help", "--help", "-h"):
                self.assertEqual(self.ok(help, *verb), page)

    def test_commands_that_need_the_laboratory(self):
        def needs(*arguments, **options):
            result = self.godwit("--needs-lab", *arguments, **options)
            self.assertEqual(result.stdout + result.stderr, "")
            return result.returncode == 0

        for arguments in (["bench", "-m", "x"], ["help", "eval", "tasks"], ["eval"], ["man"],
                          ["completions", "bash"], ["inspect", "--activations", "0"]):
            self.assertTrue(needs(*arguments), arguments)
        self.assertTrue(needs("inspect", variables={"GODWIT_ACTIVATIONS": "0"}))
        for arguments in ([], ["--help"], ["--version"], ["run", "-p", "bench"], ["inspect"],
                          ["help", "run"], ["man", "--help"], ["no-verb"]):
            self.assertFalse(needs(*arguments), arguments)

    def test_without_it(self):
        alone = shutil.copy(BINARY, self.folder)
        for arguments in (["bench"], ["help", "eval", "tasks"], ["eval", "--help"],
                          ["inspect", "-m", TINY, "--activations", "0", "--calib", "x"]):
            message = self.refused(UNSUPPORTED, *arguments, binary=alone)
            self.assertIn(f"godwit-lab, which is missing ({self.folder}/godwit-lab): ", message)
            self.assertIn("with ./godwit VERB", message)
        self.assertEqual(self.ok("--help", binary=alone), self.ok("--help"))
        self.assertEqual(self.ok("inspect", "--help", binary=alone), self.ok("inspect", "--help"))
        for arguments in (["man"], ["completions", "bash"]):
            result = self.godwit(*arguments, binary=alone)
            self.assertEqual(result.returncode, 0)
            self.assertIn("tokenize", result.stdout)
            self.assertLess(len(result.stdout), len(self.ok(*arguments)))
            self.assertIn("the flags of logits, perplexity, eval tasks", result.stderr)

    def test_variables_of_the_other_one(self):
        command = ["-m", TINY, "-p", "x"]
        out = self.folder / "x.npy"
        for arguments, other in ((["run", *command, "-n", "1"], "GODWIT_GROUP_SIZE"),
                                 (["logits", *command, "-o", out], "GODWIT_TOP_K")):
            result = self.godwit(*arguments, variables={other: "4"})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("ignored", result.stderr)
            result = self.godwit(*arguments, variables={other + "X": "4"})
            self.assertIn(f"{other}X is ignored: there is no such flag; did you mean {other}?",
                          result.stderr)


if __name__ == "__main__":
    unittest.main()
