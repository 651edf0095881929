"""godwit eval stream: what it asks, its forms of output, what it refuses. That it counts right is
shown on scripted models by the tests of src/eval."""

import json
import math
import signal
import unittest

from harness import TINY, CliTest, Terminal, wait_for

INPUT, IO, FORMAT = 2, 3, 4
FIELDS = ["sample", "distance", "line", "kv", "how", "prompt", "distance_tokens", "position",
          "expected", "answer", "fed", "score"]
SMALL = ["--lines", "12", "--distance", "4", "--every", "3", "--max-new", "6"]
ENDLESS = ["--kv", "sinks:4+60"]
ARC = [{"query": f"Question: What did bird {i} see?", "choices": ["The sea.", "A hill.", "A zoo."],
        "gold": i % 3} for i in range(6)]


class EvalStreamTest(CliTest):
    def stream(self, *arguments):
        return json.loads(self.ok("eval", "stream", "-m", TINY, "--json", *arguments))

    def rows(self, *arguments):
        out = self.folder / "rows.jsonl"
        out.unlink(missing_ok=True)
        result = self.stream("-o", out, *arguments)
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
        # With a window of 1000 nothing slides out.
        result, rows = self.rows(*SMALL, "--kv", "dense", "--kv", "recompute:1000", "--kv",
                                 "recompute:20")
        dense, wide, narrow = ([{**row, "kv": None} for row in rows if row["kv"] == kv]
                               for kv in ("dense", "recompute:1000", "recompute:20"))
        self.assertEqual(wide, dense)
        self.assertNotEqual(narrow, dense)
        self.assertEqual([cell["difference"] for cell in result["cells"][1:2]], [[0, 0, 0]])
        self.assertIn("--prefill", self.refused(INPUT, "eval", "stream", "-m", TINY, "--kv",
                                                "recompute:20", "--prefill", "window:8"))

    def test_a_text_that_is_read_by_a_window(self):
        plain, rows = self.rows(*SMALL)
        wide, same = self.rows(*SMALL, "--prefill", "window:2000")
        self.assertEqual([{**row, "how": None} for row in same],
                         [{**row, "how": None} for row in rows])
        self.assertEqual(wide["cells"], plain["cells"])
        self.assertIn("all but the question read by window:2000, fed answer", wide["how"])
        narrow = self.rows(*SMALL, "--prefill", "window:2", "--query-tokens", "4")[1]
        self.assertNotEqual([row["answer"] for row in narrow], [row["answer"] for row in rows])

    # Wherever it ends: the text goes on with what was said before.
    def test_goes_on(self):
        out = self.folder / "rows.jsonl"
        folder = self.arc(arc_easy=ARC)
        for asked in ([*SMALL, "-n", "2", "--kv", "dense", "--kv", "sinks:4+60"],
                      [*SMALL, "--feed", "gold"], ["--arc", folder, "--max-new", "8"]):
            asked = ["eval", "stream", "-m", TINY, *asked, "-o", out]
            out.unlink(missing_ok=True)
            table = self.ok(*asked)
            whole = out.read_text()
            lines = whole.splitlines(keepends=True)
            for count in (0, 1, len(lines) - 1, len(lines)):
                out.write_text("".join(lines[:count]) + ("" if count == len(lines) else "{"))
                self.assertEqual(self.ok(*asked), table)
                self.assertEqual(out.read_text(), whole)
            out.unlink()
            process = self.start(*asked)
            wait_for(lambda: process.poll() is not None
                     or out.exists() and out.read_text().count("\n") >= 2)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.assertEqual(self.ok(*asked), table)
            self.assertEqual(out.read_text(), whole)
        self.assertIn("rows.jsonl:1: arc_easy, row 0, dense: expected an answer of",
                      self.refused(INPUT, *asked, "--feed", "gold"))
        broken = json.loads(whole.splitlines()[0]) | {"fed": ["x"]}
        (self.folder / "broken").write_text(json.dumps(broken) + "\n")
        self.assertIn("broken:1: expected an answer of this evaluation",
                      self.refused(FORMAT, *asked[:-1], self.folder / "broken"))
        (folder / "arc_easy.jsonl").write_text(json.dumps(ARC[1]) + "\n")
        self.assertIn("expected the prompt", self.refused(INPUT, *asked))

    def test_show(self):
        shown = self.ok("eval", "stream", "-m", TINY, *SMALL, "--show", "2")
        self.assertEqual(shown.count("Query: "), 2)
        self.assertTrue(shown.endswith("Query: The REGISTER_CONTENT in line 3 is\n"))
        values = [line["expected"] for line in self.rows(*SMALL)[1]]
        self.assertIn(f"in line 0 is <{values[0]}>\nThe REGISTER_CONTENT in line 5 ", shown)
        shown = self.ok("eval", "stream", "-m", TINY, "--arc", self.arc(arc_easy=ARC), "--show", "3")
        self.assertIn("Answer: A hill.\nQuestion: What did bird 2 see?", shown)

    def test_every_query(self):
        result, rows = self.rows(*SMALL, *ENDLESS, "--samples", "2", "--distance", "0,1")
        self.assertEqual(list(rows[0]), FIELDS)
        asked = [(row["sample"], row["distance"], row["line"]) for row in rows]
        self.assertEqual(asked, [(sample, distance, line) for sample in (0, 1)
                                 for distance in (4, 0, 1)
                                 for line in range(0, 12 - distance, 3)])
        values = {(row["sample"], row["line"]): row["expected"] for row in rows}
        for row in rows:
            self.assertEqual(values[row["sample"], row["line"]], row["expected"])
            self.assertNotIn("\n", row["answer"])
        self.assertEqual([cell["distance"] for cell in result["cells"]], [4, 0, 1])
        for cell in result["cells"]:
            mine = [row for row in rows if row["distance"] == cell["distance"]]
            self.assertEqual(cell["n"], len(mine))
            self.assertAlmostEqual(cell["score"][0], sum(row["score"] for row in mine) / len(mine))
            self.assertTrue(math.isclose(cell["tokens"],
                                         sum(r["distance_tokens"] for r in mine) / len(mine)))
        self.assertEqual([result[key] for key in ("lines", "every", "samples", "seed", "feed", "how")],
                         [12, 3, 2, 0, "answer",
                          "tiny-llama, weights auto, kv auto, fed answer, answers of 6 tokens"])

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

    def test_fed_texts(self):
        tokens = {feed: self.rows(*SMALL, *ENDLESS, "--feed", feed)[1][-1]["position"]
                  for feed in ("answer", "gold", "nothing")}
        self.assertLess(tokens["nothing"], tokens["gold"])
        self.assertLess(tokens["nothing"], tokens["answer"])

    def test_table(self):
        lines = self.ok("eval", "stream", "-m", TINY, *SMALL, *ENDLESS, "--distance",
                        "2").splitlines()
        self.assertEqual(lines[0].split(), ["distance", "tokens", "n", "sinks:4+60"])
        self.assertRegex(lines[1], r"^ *4 +[\d.]+ +3 +[01]\.\d{3} \[")
        self.assertRegex(lines[2], r"^ *2 +[\d.]+ +4 +[01]\.\d{3} \[")
        self.assertEqual(len(lines), 3)

    def test_arc(self):
        folder = self.arc(arc_easy=ARC, arc_challenge=ARC[:4])
        arc = ["--arc", folder, *ENDLESS, "--max-new", "8"]
        result, rows = self.rows(*arc)
        self.assertEqual([(cell["task"], cell["n"]) for cell in result["cells"]],
                         [("arc_easy", 6), ("arc_challenge", 4)])
        self.assertEqual(list(rows[0]), ["task", "row", *FIELDS[3:6], *FIELDS[7:]])
        self.assertEqual([(row["task"], row["row"]) for row in rows],
                         [("arc_easy", i) for i in range(6)]
                         + [("arc_challenge", i) for i in range(4)])
        for row in rows:
            self.assertEqual(row["expected"], ARC[row["row"]]["choices"][row["row"] % 3])
            self.assertEqual(row["score"], row["answer"] == row["expected"])
        prompt = ARC[0]["query"] + "\n- The sea.\n- A hill.\n- A zoo.\nAnswer:"
        self.assertEqual(rows[0]["position"], self.tokens(prompt) - 1)
        table = self.ok("eval", "stream", "-m", TINY, *arc, "--limit", "2").splitlines()
        self.assertEqual([line.split()[:2] for line in table], [["task", "n"], ["arc_easy", "2"],
                                                                ["arc_challenge", "2"]])

    def test_refusals(self):
        base = ["eval", "stream", "-m", TINY]
        message = self.refused(INPUT, *base, "--lines", "200")
        for part in ("context holds 1024", "--kv sinks:4+1020", "-c "):
            self.assertIn(part, message)
        for flags in (["--lines", "0"], ["--every", "0"], ["--samples", "0"], ["--distance", ""],
                      ["--distance", "20,x"], ["--distance", "-1"], ["--seed", "-1"],
                      ["--max-new", "-1"], ["--feed", "both"], ["-o", "-"], ["--plot", "x.svg"],
                      ["--kv", "sinks"], ["--limit", "3"]):
            with self.subTest(flags=flags):
                self.refused(INPUT, *base, *flags)
        self.assertIn("expected 0 to 19", self.refused(INPUT, *base, "--lines", "20"))
        self.assertIn("twice", self.refused(INPUT, *base, "--distance", "20", "--distance", "20"))
        self.assertIn("No such file", self.refused(IO, *base, "-o",
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
            terminal = Terminal(self, *slow, *flags, "-o", self.folder / "rows")
            terminal.expect("streaming")
            terminal.expect(" left")
            terminal.type("\x03")
            self.assertEqual(terminal.finish(), 130)
            self.assertNotIn("accuracy", terminal.seen)
            (self.folder / "rows").unlink(missing_ok=True)  # it has what was answered
            self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_help(self):
        text = self.ok("eval", "stream", "--help")
        self.assertIn("Usage: godwit eval stream [-m MODEL]", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)


if __name__ == "__main__":
    unittest.main()
