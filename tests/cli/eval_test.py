"""godwit eval tasks: its figures against sums over the logits that godwit logits writes."""

import json
import math
import signal
import unittest

from harness import TINY, CliTest, Terminal, wait_for
from logits_test import read_npy

INPUT, IO, FORMAT = 2, 3, 4
TASKS = ("arc_challenge", "arc_easy", "boolq", "copa", "hellaswag", "lambada_openai",
         "mmlu", "mnli", "openbook_qa", "piqa", "qnli", "rte", "winograd_wsc", "winogrande")

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

    def cells(self, folder, *arguments):
        return {(cell["task"], cell["figure"], cell["kv"]): cell
                for cell in self.evaluate(folder, *arguments)["cells"]}

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
        cells = self.cells(self.data(copa=COPA, lambada_openai=LAMBADA))
        self.assertEqual(list(cells), [("copa", "acc", "dense"), ("lambada_openai", "acc", "dense"),
                                       ("lambada_openai", "perplexity", "dense")])
        copa, lambada, perplexity = cells.values()

        right = 0
        for row in COPA:
            context = row["query"].replace(",", "")
            sums = [self.score(context, " " + choice)[0] for choice in row["choices"]]
            right += sums.index(max(sums)) == row["gold"]
        self.assertEqual((copa["n"], copa["chance"]), (3, 0.5))
        self.assertAlmostEqual(copa["score"][0], right / 3)

        scores = [self.score(row["context"], " " + row["continuation"]) for row in LAMBADA]
        self.assertEqual([greedy for _, greedy in scores], [True, False])
        self.assertEqual((lambada["n"], lambada["score"], lambada["chance"]), (2, [0.5, 0, 1], None))
        mean, low, high = perplexity["score"]
        self.assertAlmostEqual(mean / math.exp(-sum(total for total, _ in scores) / 2), 1, places=5)
        for bound, one in zip((low, high), sorted(-total for total, _ in scores)):
            self.assertAlmostEqual(bound / math.exp(one), 1, places=5)

    def test_policies_side_by_side(self):
        folder = self.data(copa=COPA, lambada_openai=LAMBADA)
        cells = self.cells(folder, "--kv", "dense", "--kv", "window:3")
        alone = self.cells(folder, "--kv", "window:3")
        for (task, figure, kv), cell in alone.items():
            both = cells[task, figure, kv]
            self.assertEqual(both["score"], cell["score"])
            first = cells[task, figure, "dense"]["score"][0]
            if figure == "perplexity":
                self.assertAlmostEqual(both["times"][0], cell["score"][0] / first)
            else:
                self.assertAlmostEqual(both["difference"][0], cell["score"][0] - first)

    # Read by a window that holds all, a context is what it was; the continuation sees --kv.
    def test_a_context_that_is_read_by_a_window(self):
        folder = self.data(lambada_openai=LAMBADA)
        plain = self.evaluate(folder)["cells"]
        wide = self.evaluate(folder, "--prefill", "window:100", "--query-tokens", "3")
        self.assertEqual(wide["cells"], plain)
        self.assertIn("all but the last 3 tokens read by window:100", wide["how"])
        narrow = self.evaluate(folder, "--prefill", "window:1")["cells"]
        self.assertNotEqual(narrow, plain)
        self.assertEqual(self.evaluate(folder, "--prefill", "window:1", "--query-tokens",
                                       "100")["cells"], plain)

    def test_goes_on_after_kill_9(self):
        folder = self.data(copa=COPA * 40, lambada_openai=LAMBADA * 40)
        out = self.folder / "answers.jsonl"
        asked = ["eval", "tasks", "-m", TINY, "-d", folder, "--kv", "dense", "--kv", "window:3"]
        table = self.ok(*asked, "-o", out)
        whole = out.read_text()
        out.unlink()
        for lines in (1, 90, 250):
            process = self.start(*asked, "-o", out)
            wait_for(lambda: process.poll() is not None
                     or out.exists() and out.read_text().count("\n") >= lines)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertEqual(self.ok(*asked, "-o", out), table)
        self.assertEqual(out.read_text(), whole)
        self.assertIn("answers.jsonl:1: copa, row 0, dense: expected an answer of",
                      self.refused(INPUT, *asked, "-o", out, "--kv-type", "f32"))
        self.assertIn("-o", self.refused(INPUT, *asked, "-o", folder / "copa.jsonl"))

    def test_show(self):
        text = self.ok("eval", "tasks", "-m", TINY, "-d", self.data(copa=COPA, lambada_openai=LAMBADA),
                       "--show", "4", "-o", self.folder / "out")
        self.assertEqual(text.splitlines()[:4],
                         ["=== copa, row 0, choice 1 of 2", "<s>The bird was hungry therefore she slept.",
                          "=== copa, row 0, choice 2 of 2, the right one",
                          "<s>The bird was hungry therefore she ate a fish."])
        self.assertEqual(text.count("==="), 7)
        self.assertFalse((self.folder / "out").exists())

    def test_same_whatever_the_pieces_and_threads(self):
        folder = self.data(copa=COPA, lambada_openai=LAMBADA)
        self.assertEqual(self.evaluate(folder), self.evaluate(folder, "-ub", "3", "-t", "1"))

    def test_table(self):
        rows = [{"query": "Birds eat", "choices": ["fish", "stones"], "gold": 0}] * 2
        lines = self.ok("eval", "tasks", "-m", TINY, "-d",
                        self.data(openbook_qa=rows, lambada_openai=LAMBADA)).splitlines()
        self.assertEqual([line.split()[:4] for line in lines],
                         [["task", "figure", "chance", "n"], ["lambada_openai", "acc", "-", "2"],
                          ["lambada_openai", "perplexity", "-", "2"],
                          ["openbook_qa", "acc", "0.5", "2"], ["openbook_qa", "acc_norm", "0.5", "2"]])
        self.assertRegex(lines[1], r" 0\.500 \[0\.000, 1\.000\]$")

    def test_tasks_and_limit(self):
        folder = self.data(copa=COPA, lambada_openai=LAMBADA)
        result = self.evaluate(folder, "--tasks", "lambada_openai,copa", "--limit", "1")
        self.assertEqual(list(result), ["model", "suite", "how", "seed", "limit", "skipped", "cells"])
        self.assertEqual(result["limit"], 1)
        self.assertEqual([(cell["task"], cell["figure"], cell["n"]) for cell in result["cells"]],
                         [("lambada_openai", "acc", 1), ("lambada_openai", "perplexity", 1),
                          ("copa", "acc", 1)])
        self.assertEqual(result["cells"][0]["score"], [1, 1, 1])

    def test_rows_that_do_not_fit_are_skipped_and_counted(self):
        long = {"context": "bird " * 50, "continuation": "bird"}
        folder = self.data(lambada_openai=[*LAMBADA, long])
        arguments = ("eval", "tasks", "-m", TINY, "-d", folder, "-c", "40")
        self.assertEqual(self.ok(*arguments).splitlines()[-1],
                         "lambada_openai: 1 of 3 rows skipped, longer than the context of 40 "
                         "tokens")
        def rows(*flags):
            result = self.evaluate(folder, *flags)
            return [cell["n"] for cell in result["cells"]], result["skipped"]
        self.assertEqual(rows("-c", "40"), ([2, 2], {"lambada_openai": 1}))
        self.assertEqual(rows("--kv", "sinks:4+60"), ([3, 3], {"lambada_openai": 0}))
        self.assertEqual(rows("-c", "1"), ([], {"lambada_openai": 3}))

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
