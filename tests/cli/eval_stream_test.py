"""godwit eval stream: what it asks, its forms of output, what it refuses. That it counts right is
shown on scripted models by the tests of src/eval."""

import json
import math
import unittest

from harness import TINY, CliTest, Terminal

INPUT, IO, FORMAT = 2, 3, 4
FIELDS = ["sample", "line", "distance_lines", "distance_tokens", "position", "expected", "answer",
          "right"]
SMALL = ["--lines", "12", "--distance", "4", "--every", "3", "--max-new", "6"]
ENDLESS = ["--kv", "sinks:4+60"]
ARC = [{"query": f"Question: What did bird {i} see?", "choices": ["The sea.", "A hill.", "A zoo."],
        "gold": i % 3} for i in range(6)]


class EvalStreamTest(CliTest):
    def stream(self, *arguments):
        return json.loads(self.ok("eval", "stream", "-m", TINY, "--json", *arguments))

    def rows(self, *arguments):
        out = self.folder / "rows.jsonl"
        result = self.stream("--jsonl", out, *arguments)
        return result, [json.loads(line) for line in out.read_text().splitlines()]

    def arc(self, **files):
        folder = self.folder / "arc"
        folder.mkdir()
        for name, rows in files.items():
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    def tokens(self, text):
        return len(json.loads(self.ok("tokenize", "-m", TINY, "-p", text, "--ids")))

    def test_recompute(self):
        result, rows = self.rows(*SMALL, "--kv", "recompute:1000")
        dense, same = self.rows(*SMALL)
        self.assertEqual(rows, same)  # nothing has slid out
        self.assertEqual(result["last_kv"]["policy"], "recompute:1000")
        result = self.stream(*SMALL, "--kv", "recompute:20")
        self.assertEqual((result["kv"], result["last_kv"]["kept"]), ("recompute:20", 20))
        self.assertEqual(result["distances"][0]["queries"], dense["distances"][0]["queries"])

    def test_every_query(self):
        result, rows = self.rows(*SMALL, *ENDLESS, "--samples", "2", "--distance", "0,1")
        self.assertEqual(list(rows[0]), FIELDS)
        asked = [(row["sample"], row["distance_lines"], row["line"]) for row in rows]
        self.assertEqual(asked, [(sample, distance, line) for sample in (0, 1)
                                 for distance in (4, 0, 1)
                                 for line in range(0, 12 - distance, 3)])
        values = {(row["sample"], row["line"]): row["expected"] for row in rows}
        for row in rows:
            self.assertEqual(values[row["sample"], row["line"]], row["expected"])
            self.assertNotIn("\n", row["answer"])
        self.assertEqual([d["distance_lines"] for d in result["distances"]], [4, 0, 1])
        for distance in result["distances"]:
            mine = [r for r in rows if r["distance_lines"] == distance["distance_lines"]]
            right = sum(row["right"] for row in mine)
            self.assertEqual((distance["queries"], distance["right"]), (len(mine), right))
            self.assertEqual(distance["accuracy"], right / len(mine))
            self.assertTrue(math.isclose(distance["distance_tokens"],
                                         sum(r["distance_tokens"] for r in mine) / len(mine)))
        self.assertEqual((result["lines"], result["every"], result["samples"], result["seed"],
                          result["feed"], result["max_new"], result["kv"]),
                         (12, 3, 2, 0, "answer", 6, "sinks:4+60"))
        self.assertEqual(result["last_kv"]["kept"], 64)

    # The text of the gold stream is known, so its tokens can be counted from outside.
    def test_positions(self):
        _, rows = self.rows(*SMALL, *ENDLESS, "--feed", "gold")
        values = {row["line"]: row["expected"] for row in rows}
        # Lines 1 and 2 are nobody's answer at this distance, but at others.
        for distance in ("0", "1", "2"):
            _, more = self.rows("--lines", "12", "--every", "1", *ENDLESS, "--distance", distance)
            values |= {row["line"]: row["expected"] for row in more}
        text = "Below is a record of lines I want you to remember.\n"
        begins, asked = [], 0
        for line in range(12):
            begins.append(self.tokens(text))
            text += f"The REGISTER_CONTENT in line {line} is <{values[line]}>\n"
            if line < 4 or (line - 4) % 3:
                continue
            row = rows[asked]
            self.assertEqual(row["line"], line - 4)
            text += f"Query: The REGISTER_CONTENT in line {line - 4} is"
            self.assertEqual(row["position"], self.tokens(text) - 1)
            self.assertEqual(row["distance_tokens"], row["position"] - begins[line - 4])
            text += f" <{row['expected']}>\n"
            asked += 1
        self.assertEqual(asked, len(rows))

    def test_seeds_repeat_and_differ(self):
        first = self.rows(*SMALL, *ENDLESS)[1]
        self.assertEqual(self.rows(*SMALL, *ENDLESS, "-ub", "7", "-t", "1")[1], first)
        other = self.rows(*SMALL, *ENDLESS, "--seed", "1")[1]
        self.assertNotEqual([r["expected"] for r in other], [r["expected"] for r in first])

    def test_what_is_fed(self):
        tokens = {feed: self.stream(*SMALL, *ENDLESS, "--feed", feed)["tokens"]
                  for feed in ("answer", "gold", "nothing")}
        self.assertLess(tokens["nothing"], tokens["gold"])
        self.assertLess(tokens["nothing"], tokens["answer"])

    def test_table(self):
        lines = self.ok("eval", "stream", "-m", TINY, *SMALL, *ENDLESS, "--distance",
                        "2").splitlines()
        self.assertEqual(lines[0].split(), ["lines", "tokens", "queries", "accuracy"])
        self.assertRegex(lines[1], r"^ +4 +\d+ +3 +[01]\.\d{4} ± 0\.\d{4}$")
        self.assertRegex(lines[2], r"^ +2 +\d+ +4 +[01]\.\d{4} ± 0\.\d{4}$")
        self.assertRegex(lines[4], r"^last stream: sinks:4\+60: 64 of \d+ tokens kept, ")
        self.assertRegex(lines[5], r"^read: \d+ tokens, ")
        self.assertEqual(len(lines), 6)

    def test_arc(self):
        folder = self.arc(arc_easy=ARC, arc_challenge=ARC[:4])
        arc = ["--arc", folder, *ENDLESS, "--max-new", "8"]
        result, rows = self.rows(*arc)
        self.assertEqual(list(result["results"]), ["arc_easy", "arc_challenge"])
        self.assertEqual([task["questions"] for task in result["results"].values()], [6, 4])
        self.assertEqual(list(rows[0]), ["task", "row", "position", "expected", "answer", "right"])
        self.assertEqual([(row["task"], row["row"]) for row in rows],
                         [("arc_easy", i) for i in range(6)]
                         + [("arc_challenge", i) for i in range(4)])
        for row in rows:
            self.assertEqual(row["expected"], ARC[row["row"]]["choices"][row["row"] % 3])
            self.assertEqual(row["right"], row["answer"] == row["expected"])
        for name, task in result["results"].items():
            right = sum(row["right"] for row in rows if row["task"] == name)
            self.assertEqual(task["right"], right)
        prompt = ARC[0]["query"] + "\n- The sea.\n- A hill.\n- A zoo.\nAnswer:"
        self.assertEqual(rows[0]["position"], self.tokens(prompt) - 1)
        table = self.ok("eval", "stream", "-m", TINY, *arc, "--limit", "2").splitlines()
        self.assertEqual(table[0].split(), ["task", "questions", "accuracy", "tokens", "kv"])
        self.assertRegex(table[1], r"^arc_easy +2 +[01]\.\d{4} ± 0\.\d{4} +\d+  sinks:4\+60: ")
        self.assertEqual(len(table), 3)

    def test_refusals(self):
        base = ["eval", "stream", "-m", TINY]
        message = self.refused(INPUT, *base, "--lines", "200")
        for part in ("context holds 1024", "--kv sinks:4+1020", "-c "):
            self.assertIn(part, message)
        for flags in (["--lines", "0"], ["--every", "0"], ["--samples", "0"], ["--distance", ""],
                      ["--distance", "20,x"], ["--distance", "-1"], ["--seed", "-1"],
                      ["--max-new", "-1"], ["--feed", "both"], ["--jsonl", "-"], ["--plot", "x.svg"],
                      ["--kv", "sinks"], ["--limit", "3"]):
            with self.subTest(flags=flags):
                self.refused(INPUT, *base, *flags)
        self.assertIn("expected 0 to 19", self.refused(INPUT, *base, "--lines", "20"))
        self.assertIn("twice", self.refused(INPUT, *base, "--distance", "20", "--distance", "20"))
        self.assertIn("No such file", self.refused(IO, *base, "--jsonl",
                                                   self.folder / "missing" / "rows"))
        self.assertIn("arc_easy.jsonl", self.refused(IO, *base, "--arc", self.folder))
        self.assertIn("--arc", self.refused(INPUT, *base, "--arc", self.folder, "--lines", "9"))
        folder = self.arc(arc_easy=[*ARC, {"query": "x"}])
        self.assertIn("arc_easy.jsonl:7: ", self.refused(FORMAT, *base, "--arc", folder))

    def test_interrupt(self):
        slow = ["eval", "stream", "-m", TINY, "--isa", "scalar", "-ub", "1", "-t", "1", *ENDLESS]
        folder = self.arc(arc_easy=ARC * 5000)
        before = sorted(self.folder.iterdir())
        for flags in (["--lines", "100000"], ["--arc", folder]):
            terminal = Terminal(self, *slow, *flags, "--jsonl", self.folder / "rows")
            terminal.expect("streaming")
            terminal.expect(" left")
            terminal.type("\x03")
            self.assertEqual(terminal.finish(), 130)
            self.assertNotIn("accuracy", terminal.seen)
            self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_help(self):
        text = self.ok("eval", "stream", "--help")
        self.assertIn("Usage: godwit eval stream [-m MODEL]", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)


if __name__ == "__main__":
    unittest.main()
