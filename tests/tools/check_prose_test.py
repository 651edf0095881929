"""tools/check_prose must find what the rule forbids and nothing else."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_prose"
LONG = "The cache " + "keeps a page " * 8  # 26 words


class CheckProse(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_check(self, *arguments):
        done = subprocess.run([sys.executable, str(CHECK), "--root", str(self.root), *arguments],
                              text=True, capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def findings(self, text, name="src/kv/x.h"):
        """The lines about a file, without its name."""
        path = self.write(name, text)
        status, output = self.run_check(str(path))
        lines = output.splitlines()
        self.assertEqual(lines.pop(), f"check_prose: 1 files, {len(lines)} problems")
        self.assertEqual(status, 1 if lines else 0)
        return [line.removeprefix(f"{name}: ").removeprefix(f"{name}:") for line in lines]

    def test_long_sentences_are_found_where_they_begin(self):
        self.assertEqual(self.findings("int x;\n// Good. " + LONG + "\n// in.\nint y;\n"),
                         ["2: a sentence of 27 words, at most 25 are allowed"])
        self.assertEqual(self.findings("// " + LONG[:60] + "\n// of it. Short.\n"), [])

    def test_code_shapes_and_lists_of_names_count_once(self):
        names = ", ".join(f"name_{i}" for i in range(30))
        quoted = '"int8", ' * 20
        for text in (f"One of {names} is chosen.", f"This is `{'word ' * 30}`.",
                     f"A shape [{'tokens, ' * 30}hidden].", f"The call of Sum({'a, ' * 30}b).",
                     "A sum: " + "+ - * " * 30, f"Types: {quoted}."):
            self.assertEqual(self.findings(f"// {text}\n"), [], text)

    def test_list_items_and_code_are_apart(self):
        item = "//  - " + LONG[:90] + "\n"
        self.assertEqual(self.findings("// A list:\n" + item * 3 + "//\n//    " + LONG * 2 + "\n"), [])

    def test_forbidden_beginnings(self):
        for begin in ("Of", "What", "Which", "Likewise,", "But", "That which", "So it", "In which", "From what",
                      "Whoever", "Whatever"):
            found = self.findings(f"// A page of keys. {begin} there is.\n")
            self.assertIn(f'1: no sentence begins with "{begin.rstrip(",")}" here', found)
        for good in ("Office", "So the page", "Whatsoever", "Where", "Whether", "Its"):
            self.assertEqual(self.findings(f"// A page of keys. {good} there is.\n"), [], good)

    def test_the_first_sentence_refers_to_nothing_before_it(self):
        for begin in ("It", "Its", "They", "Those", "That"):
            self.assertEqual(self.findings(f"// {begin} page is full. {begin} page is empty.\n"),
                             [f'1: no sentence begins with "{begin}" here'])

    def test_who_is_for_people(self):
        self.assertEqual(self.findings("// A page and who holds it.\n"), ['1: "who" is for people'])
        self.assertEqual(self.findings("// A whole page, whose size is 4.\n"), [])

    def test_comments_behind_code_may_refer_to_it(self):
        self.assertEqual(self.findings("int x;  // its size\n"), [])
        self.assertEqual(self.findings('auto x = f("//");  // of those who ask\n'), ['1: "who" is for people'])
        self.assertEqual(self.findings("int x;  // bytes. Of what it has\n"), ['1: no sentence begins with "Of" here'])
        self.assertEqual(self.findings('auto x = "http://who";\nchar c = \'"\';\n'), [])

    def test_abbreviations_end_no_sentence(self):
        half = "The cache " + "keeps a page " * 4
        self.assertEqual(len(self.findings(f"// {half}, e.g. {half}.\n")), 1)

    def test_wide_lines_of_documents(self):
        wide = "word " * 24 + "w"
        self.assertEqual(self.findings(wide + "\n", "docs/x.md"),
                         ["1: a line of 121 columns, at most 120 are allowed"])
        for good in (wide[:120], "| " + wide + " |", "  | " + wide + " |", "```\n" + wide + "\n```", "    " + wide,
                     "[text](" + wide + ")", "[text]: " + wide):
            self.assertEqual(self.findings(good + "\n", "docs/x.md"), [], good)

    def test_all_files_or_those_that_are_named(self):
        self.write("src/kv/x.h", "// Of pages.\n\n// What pages?\n")
        self.write("src/chat/y.cc", "// A page.\n")
        status, output = self.run_check()
        self.assertEqual(status, 1)
        self.assertIn('src/kv/x.h:3: no sentence begins with "What" here\n', output)
        self.assertIn("check_prose: 2 files, 2 problems\n", output)
        self.assertEqual(self.run_check(str(self.root / "src/chat")), (0, "check_prose: 1 files, 0 problems\n"))


if __name__ == "__main__":
    unittest.main()
