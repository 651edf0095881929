"""godwit doctor: findings about this machine, whatever it is. Fake machines are in examine_test.cc."""

import json
import re
import unittest

from harness import CliTest, Terminal

CHECKS = ["processor", "cores", "clock", "load", "memory", "huge pages", "swap", "NUMA", "cache disk",
          "open files", "MPI", "downloads"]


class DoctorTest(CliTest):
    def test_json(self):
        report = json.loads(self.ok("doctor", "--json"))
        self.assertEqual(list(report), ["godwit", "advice", "checks"])
        self.assertEqual(self.ok("--version").splitlines()[0], f"godwit {report['godwit']}")
        self.assertEqual([check["check"] for check in report["checks"]], CHECKS)
        for check in report["checks"]:
            self.assertIn(check["status"], ("good", "advice", "unknown"))
            self.assertRegex(check["finding"], r"\.$")
            self.assertEqual(check["command"] is not None, check["status"] == "advice")
        self.assertEqual(report["advice"],
                         sum(check["status"] == "advice" for check in report["checks"]))

    def test_text_says_the_same(self):
        # The load changes between two runs, and so may the memory.
        report = json.loads(self.ok("doctor", "--json"))
        text = self.ok("doctor")
        for check in report["checks"]:
            self.assertIn(f"  {check['check']}  ", text)
            if check["check"] not in ("load", "memory"):
                self.assertIn(check["finding"], re.sub(r"\s+", " ", text))
                self.assertIn(f"\n{' ' * 17}{check['command']}\n" if check["command"] else "", text)
        self.assertRegex(text, r"\n(no piece|1 piece|\d+ pieces) of advice\n\Z")

    def test_folder_of_saved_texts(self):
        def disk(**options):
            report = json.loads(self.ok("doctor", "--json", **options))
            return report["checks"][CHECKS.index("cache disk")]

        named = json.loads(self.ok("doctor", "--json", "--cache-dir", self.folder / "no" / "such"))
        self.assertIn(str(self.folder), named["checks"][CHECKS.index("cache disk")]["finding"])
        self.assertIn(str(self.folder), disk()["finding"])
        self.assertEqual(disk(variables={"HOME": ""})["status"], "unknown")

    def test_instruction_set_by_name(self):
        best = self.ok("--version").split("best is ")[1].strip()
        report = json.loads(self.ok("doctor", "--json", variables={"GODWIT_ISA": "scalar"}))
        processor = report["checks"][0]
        if best != "scalar":
            self.assertEqual(processor["command"], "unset GODWIT_ISA")
            self.assertIn(best, processor["finding"])

    def test_width_of_a_terminal(self):
        terminal = Terminal(self, "doctor", columns=60)
        self.assertEqual(terminal.finish(), 0)
        commands = [line for line in terminal.seen.splitlines() if line.startswith(" " * 17)]
        for line in terminal.seen.splitlines():
            self.assertTrue(len(line) <= 60 or line in commands, line)


if __name__ == "__main__":
    unittest.main()
