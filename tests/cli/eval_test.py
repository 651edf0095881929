"""godwit eval tasks: its figures against sums over the logits that godwit logits writes."""

import json
import math
import unittest

from harness import TINY, CliTest, Terminal
from logits_test import read_npy

INPUT, IO, FORMAT = 2, 3, 4
TASKS = ("arc_challenge", "arc_easy", "boolq", "copa", "lambada_openai", "openbook_qa", "piqa",
         "winograd_wsc", "winogrande")

COPA = [{"query": "The bird was hungry, therefore", "choices": ["she slept.", "she ate a fish."],
         "gold": 1},
        {"query": "The sea was cold, because", "choices": ["it was winter.", "a long bill."],
         "gold": 0},
        {"query": "She flew far, because", "choices": ["it was far.", "zoo."], "gold": 1}]
LAMBADA = [{"context": "Once upon a time there was a small", "continuation": "bird"},
           {"context": "Once upon a time", "continuation": "zebra"}]


class EvalTasksTest(CliTest):
    def data(self, **tasks):
        folder = self.folder / "data"
        folder.mkdir()
        for name, rows in tasks.items():
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    def evaluate(self, folder, *arguments):
        output = self.ok("eval", "tasks", "-m", TINY, "-d", folder, "--json", *arguments)
        return json.loads(output)

    def score(self, context, continuation):
        """(log-probability, greedy) of the continuation, out of the logits of every position."""
        def tokens(text):
            return json.loads(self.ok("tokenize", "-m", TINY, "-p", text, "--ids"))
        ids = tokens(context + continuation)
        head = len(tokens(context))
        out = self.folder / "out.npy"
        self.ok("logits", "-m", TINY, "--tokens", json.dumps(ids), "-o", out)
        (_, vocab), logits = read_npy(out.read_bytes())
        total, greedy = 0, True
        for i in range(head, len(ids)):
            row = logits[(i - 1) * vocab:i * vocab]
            total += row[ids[i]] - math.log(math.fsum(map(math.exp, row)))
            greedy = greedy and max(row) == row[ids[i]]
        return total, greedy

    def test_figures(self):
        results = self.evaluate(self.data(copa=COPA, lambada_openai=LAMBADA))["results"]
        self.assertEqual(list(results), ["copa", "lambada_openai"])

        right = 0
        for row in COPA:
            context = row["query"].replace(",", "")
            sums = [self.score(context, " " + choice)[0] for choice in row["choices"]]
            right += sums.index(max(sums)) == row["gold"]
        copa = results["copa"]
        self.assertEqual(list(copa), ["n", "skipped", "acc", "acc_stderr", "acc_norm",
                                      "acc_norm_stderr", "chance", "perplexity"])
        share = right / 3
        self.assertEqual((copa["n"], copa["skipped"], copa["chance"]), (3, 0, 0.5))
        self.assertAlmostEqual(copa["acc"], share)
        self.assertAlmostEqual(copa["acc_stderr"], math.sqrt(share * (1 - share) / 2))
        self.assertEqual([copa[key] for key in ("acc_norm", "acc_norm_stderr", "perplexity")],
                         [None] * 3)

        scores = [self.score(row["context"], " " + row["continuation"]) for row in LAMBADA]
        self.assertEqual([greedy for _, greedy in scores], [True, False])
        lambada = results["lambada_openai"]
        self.assertEqual((lambada["n"], lambada["acc"], lambada["chance"]), (2, 0.5, None))
        self.assertAlmostEqual(lambada["acc_stderr"], 0.5)
        expected = math.exp(-sum(total for total, _ in scores) / 2)
        self.assertAlmostEqual(lambada["perplexity"] / expected, 1, places=5)

    def test_same_whatever_the_pieces_and_threads(self):
        folder = self.data(copa=COPA, lambada_openai=LAMBADA)
        self.assertEqual(self.evaluate(folder), self.evaluate(folder, "-ub", "3", "-t", "1"))

    def test_table(self):
        rows = [{"query": "Birds eat", "choices": ["fish", "stones"], "gold": 0}] * 2
        lines = self.ok("eval", "tasks", "-m", TINY, "-d",
                        self.data(openbook_qa=rows, lambada_openai=LAMBADA)).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[0].split(),
                         ["task", "n", "acc", "acc_norm", "chance", "perplexity"])
        self.assertRegex(lines[1], r"^lambada_openai +2 +0\.5000 ± 0\.5000 +- +- +\d\S*$")
        self.assertRegex(lines[2], r"^openbook_qa +2 +[01]\.0000 ± 0\.0000 +[01]\.0000 ± 0\.0000 "
                                   r"+0\.5000 +-$")

    def test_tasks_and_limit(self):
        folder = self.data(copa=COPA, lambada_openai=LAMBADA)
        result = self.evaluate(folder, "--tasks", "lambada_openai,copa", "--limit", "1")
        self.assertEqual(list(result), ["model", "kv", "limit", "results"])
        self.assertEqual(result["limit"], 1)
        self.assertEqual(list(result["results"]), ["lambada_openai", "copa"])
        self.assertEqual([task["n"] for task in result["results"].values()], [1, 1])
        self.assertEqual(result["results"]["lambada_openai"]["acc"], 1)
        self.assertIsNone(result["results"]["lambada_openai"]["acc_stderr"])

    def test_rows_that_do_not_fit_are_skipped_and_counted(self):
        long = {"context": "bird " * 50, "continuation": "bird"}
        folder = self.data(lambada_openai=[*LAMBADA, long])
        arguments = ("eval", "tasks", "-m", TINY, "-d", folder, "-c", "40")
        self.assertEqual(self.ok(*arguments).splitlines()[-1],
                         "lambada_openai: 1 of 3 rows skipped, longer than the context of 40 "
                         "tokens")
        task = self.evaluate(folder, "-c", "40")["results"]["lambada_openai"]
        self.assertEqual((task["n"], task["skipped"]), (2, 1))
        task = self.evaluate(folder, "--kv", "sinks:4+60")["results"]["lambada_openai"]
        self.assertEqual((task["n"], task["skipped"]), (3, 0))
        none = self.evaluate(folder, "-c", "1")["results"]["lambada_openai"]
        self.assertEqual((none["n"], none["skipped"], none["acc"], none["perplexity"]),
                         (0, 3, None, None))

    def test_refusals(self):
        folder = self.data(copa=COPA, piqa=[{"query": "x"}])
        tasks = ["eval", "tasks", "-m", TINY]
        message = self.refused(INPUT, *tasks, "-d", folder, "--tasks", "copa,arc")
        self.assertIn('unknown task "arc"', message)
        for name in TASKS:
            self.assertIn(name, message)
        self.assertIn("named twice",
                      self.refused(INPUT, *tasks, "-d", folder, "--tasks", "copa,copa"))
        self.assertIn("-d FOLDER", self.refused(INPUT, *tasks))
        self.assertIn("boolq.jsonl", self.refused(IO, *tasks, "-d", folder, "--tasks", "boolq"))
        message = self.refused(IO, *tasks, "-d", self.folder)
        for name in TASKS:
            self.assertIn(name + ".jsonl", message)
        # Of a file that stands behind a good one, and though only a good row is wanted.
        (folder / "piqa.jsonl").write_text(
            '{"query": "Question: Eat\\n", "choices": ["a", "b"], "gold": 0}\n{"query": "x"}\n')
        message = self.refused(FORMAT, *tasks, "-d", folder, "--limit", "1")
        self.assertIn(f'{folder}/piqa.jsonl:2: "query": expected "Question: ...', message)

    def test_interrupt(self):
        # No two begin alike: what rows share is read once.
        rows = [{"context": f"{i} " + "bird " * 200, "continuation": "bird"} for i in range(2000)]
        folder = self.data(copa=COPA, lambada_openai=rows)
        terminal = Terminal(self, "eval", "tasks", "-m", TINY, "-d", folder, "--isa", "scalar",
                            "-ub", "1", "-t", "1")
        terminal.expect("evaluating lambada_openai: ")
        terminal.expect("left")
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)
        self.assertIn("\r\x1b[K", terminal.seen)  # the progress is gone


class EvalTest(CliTest):
    def test_help(self):
        text = self.ok("eval", "--help")
        self.assertIn("\n  tasks ", text)
        self.assertIn("\n  stream ", text)
        self.assertEqual(text, self.ok("help", "eval"))
        alone = self.godwit("eval")
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (INPUT, "", text))
        help_text = self.ok("eval", "tasks", "--help")
        self.assertIn("Usage: godwit eval tasks [-m MODEL]", help_text)
        for name in TASKS:
            self.assertIn(name, help_text)
        self.assertLessEqual(max(map(len, (text + help_text).splitlines())), 80)

    def test_unknown(self):
        self.assertIn("did you mean tasks?", self.refused(INPUT, "eval", "task"))
        self.assertIn("there are: tasks, stream", self.refused(INPUT, "eval", "everything"))


if __name__ == "__main__":
    unittest.main()
