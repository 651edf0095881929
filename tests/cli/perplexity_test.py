"""godwit perplexity: its figures against godwit logits, its forms of output, what it refuses."""

import json
import math
import signal
import struct
import unittest

from harness import TINY, CliTest, Terminal, wait_until_sigint_is_handled

INPUT, IO = 2, 3
STORY = "Once upon a time there was a small bird who wanted to see the other side of the sea. "
SHARED = TINY.parents[3] / "shared" / "data"


class PerplexityTest(CliTest):
    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def measure(self, *arguments, model=TINY):
        result = json.loads(self.ok("perplexity", "-m", model, "--json", *arguments))
        self.assertTrue(math.isclose(result["perplexity"], math.exp(result["nll"])))
        scored = sum(bucket["tokens"] for bucket in result["buckets"])
        self.assertEqual(scored, result["tokens"])
        total = sum(bucket["tokens"] * bucket["nll"] for bucket in result["buckets"])
        self.assertTrue(math.isclose(total / scored, result["nll"]))
        return result

    def ids(self, path, *flags):
        return json.loads(self.ok("tokenize", "-m", TINY, "-f", path, "--ids", *flags))

    def nll_from_logits(self, path, *flags):
        out = self.folder / "out.npy"
        self.ok("logits", "-m", TINY, "-f", path, "-o", out, *flags)
        ids = self.ids(path)
        data = out.read_bytes()
        rows = struct.unpack(f"<{512 * len(ids)}f", data[-4 * 512 * len(ids):])
        total = 0
        for i, token in enumerate(ids[1:]):
            row = rows[512 * i:512 * (i + 1)]
            top = max(row)
            total += top + math.log(sum(math.exp(x - top) for x in row)) - row[token]
        return total / (len(ids) - 1)

    def test_agrees_with_the_logits(self):
        text = self.write("text", STORY * 5)
        for flags in ([], ["--kv", "sinks:4+16"], ["--kv-type", "f16", "-ub", "7"]):
            with self.subTest(flags=flags):
                result = self.measure("-f", text, *flags)
                self.assertAlmostEqual(result["nll"], self.nll_from_logits(text, *flags), places=9)
                self.assertEqual(result["tokens"], len(self.ids(text)) - 1)

    def test_comparison(self):
        text = self.write("text", STORY * 12)
        specs = ["dense", "sinks:2+30", "recompute:32"]
        flags = ["-f", text, "--bucket", "50"]
        result = json.loads(self.ok("perplexity", "-m", TINY, *flags, "--json", "--compare",
                                    ",".join(specs)))
        self.assertEqual((result["model"], result["texts"]), (str(TINY), [str(text)]))
        compared = result["compare"]
        self.assertEqual([run["kv"]["policy"] for run in compared], specs)
        for spec, run in zip(specs, compared):
            alone = self.measure("-f", text, "--bucket", "50", "--kv", spec)
            self.assertEqual((alone["model"], alone["texts"]), (str(TINY), [str(text)]))
            self.assertEqual(run["nll"], alone["nll"])
            for bucket in run["buckets"] + alone["buckets"]:
                self.assertGreater(bucket.pop("ms"), 0)
            self.assertEqual(run["buckets"], alone["buckets"])
        self.assertEqual(len({run["nll"] for run in compared}), 3)
        table = self.ok("perplexity", "-m", TINY, *flags, "--compare", ",".join(specs))
        for spec in specs:
            self.assertEqual(table.count(spec), 2)
        for wrong in (["--compare", "dense,none"], ["--compare", ""], ["--plot", "x.svg"],
                      ["--compare", "dense", "--jsonl", self.folder / "nll"]):
            self.refused(INPUT, "perplexity", "-m", TINY, "-f", text, *wrong)

    def test_recompute(self):
        text = self.write("text", STORY * 12)
        again = self.measure("-f", text, "--kv", "recompute:32")
        self.assertEqual((again["kv"]["policy"], again["kv"]["kept"]), ("recompute:32", 32))
        self.assertEqual(again["kv"]["seen"], again["tokens"])
        self.assertEqual(self.measure("-f", text, "--kv", "recompute:1000")["nll"],
                         self.measure("-f", text)["nll"])
        for wrong in ("recompute", "recompute:0", "recompute:x"):
            self.assertIn("recompute:W", self.refused(INPUT, "perplexity", "-m", TINY, "-f", text,
                                                      "--kv", wrong))
        result = self.godwit("perplexity", "-m", TINY, "-f", text, "--max-tokens", "2",
                             "--kv", "recompute:1025")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("recompute:1025 keeps up to 1025 tokens, and the model was made for 1024",
                      result.stderr)

    def test_an_endless_text(self):
        text = self.write("text", STORY * 300)
        tokens = len(self.ids(text, "--no-bos"))
        self.assertGreater(tokens, 1024)
        result = self.measure("-f", text, "--kv", "sinks:4+60", "--bucket", "1000")
        self.assertEqual(result["tokens"], tokens)
        self.assertEqual(result["kv"]["policy"], "sinks:4+60")
        self.assertEqual((result["kv"]["seen"], result["kv"]["kept"]), (tokens, 64))
        self.assertEqual([b["begin"] for b in result["buckets"]], list(range(0, tokens, 1000)))
        self.assertEqual(result["buckets"][-1]["end"], tokens)

    def test_too_long_says_how_to_go_on(self):
        text = self.write("text", STORY * 300)
        message = self.refused(INPUT, "perplexity", "-m", TINY, "-f", text)
        for part in (str(len(self.ids(text, "--no-bos"))), "1024", "--kv sinks:4+1020",
                     "--window 1024", "-c "):
            self.assertIn(part, message)
        self.assertNotIn("\n", message)
        self.measure("-f", text, "--window", "1024")
        self.assertIn("--window 1024", self.refused(INPUT, "perplexity", "-m", TINY, "-f", text,
                                                    "--window", "1025"))
        self.measure("-f", text, "--window", "1025", "-c", "1025")

    def test_windows(self):
        text = self.write("text", STORY * 6)
        tokens = len(self.ids(text, "--no-bos"))
        side_by_side = self.measure("-f", text, "--window", "16")
        self.assertEqual((side_by_side["tokens"], side_by_side["window"], side_by_side["stride"]),
                         (tokens, 16, 16))
        overlapping = self.measure("-f", text, "--window", "16", "--stride", "5")
        self.assertEqual((overlapping["tokens"], overlapping["stride"]), (tokens, 5))
        self.assertNotEqual(overlapping["nll"], side_by_side["nll"])
        whole = self.measure("-f", text)
        self.assertEqual(self.measure("-f", text, "--window", "1000")["nll"], whole["nll"])

    def test_a_question_behind_its_context(self):
        text = self.write("text", STORY * 6)
        windows = ["-f", text, "--window", "64", "--query-tokens"]
        asked = self.measure(*windows, "8")
        self.assertEqual(asked["query_tokens"], 8)
        total = len(self.ids(text, "--no-bos"))
        self.assertEqual(asked["tokens"], 8 * (total // 64) + min(8, total % 64))
        every = self.folder / "every"
        self.measure("-f", text, "--window", "64", "--jsonl", every)
        last = [row["nll"] for row in map(json.loads, every.read_text().splitlines())
                if row["position"] % 64 >= 56 or row["position"] >= max(total - 8, total // 64 * 64)]
        self.assertAlmostEqual(asked["nll"], sum(last) / len(last), places=9)
        # A context that another mask has read foretells the question differently; one block does not.
        star = ["8", "--prefill"]
        self.assertEqual(self.measure(*windows, *star, "star:block=64,anchor=64")["nll"], asked["nll"])
        for prefill in ("star:block=16,anchor=8", "window:4"):
            self.assertNotEqual(self.measure(*windows, *star, prefill)["nll"], asked["nll"])

    def test_files_are_one_text_or_several(self):
        # This tokenizer, like most, does not look over the boundary between these two.
        both, one, two = (self.write(*pair) for pair in (
            ("both", STORY + "\n" + STORY), ("one", STORY + "\n"), ("two", STORY)))
        self.assertEqual(self.ids(both, "--no-bos"),
                         self.ids(one, "--no-bos") + self.ids(two, "--no-bos"))
        joined = self.measure("-f", one, "-f", two)
        self.assertEqual(joined["nll"], self.measure("-f", both)["nll"])
        apart = self.measure("-f", one, "-f", two, "--reset")
        alone = [self.measure("-f", path) for path in (one, two)]
        self.assertEqual(apart["tokens"], joined["tokens"])
        self.assertAlmostEqual(apart["nll"] * apart["tokens"],
                               sum(r["nll"] * r["tokens"] for r in alone), places=9)
        self.assertLess(apart["buckets"][-1]["end"], joined["buckets"][-1]["end"])

    def test_tokens(self):
        text = self.write("text", STORY * 300)
        short = self.write("short", STORY)
        self.assertEqual(self.measure("-f", text, "--max-tokens", "10")["tokens"], 10)  # and fits
        self.assertEqual(self.measure("-f", short, "--max-tokens", str(2**62))["nll"],
                         self.measure("-f", short)["nll"])

    def test_nll_of_every_token(self):
        text, out = self.write("text", STORY), self.folder / "nll.jsonl"
        result = self.measure("-f", text, "--jsonl", out)
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([row["token"] for row in rows], self.ids(text, "--no-bos"))
        self.assertEqual([row["position"] for row in rows], list(range(len(rows))))
        self.assertEqual({row["text"] for row in rows}, {0})
        self.assertAlmostEqual(sum(row["nll"] for row in rows) / len(rows), result["nll"],
                               places=9)

    def test_a_table_for_people(self):
        text = self.write("text", STORY * 8)
        result = self.measure("-f", text)
        self.assertGreater(result["tokens"], 128)
        output = self.ok("perplexity", "-m", TINY, "-f", "-", stdin=text.read_text())
        lines = output.splitlines()
        self.assertRegex(lines[0], rf"^perplexity  {result['perplexity']:.3f} "
                                   rf"\({result['nll']:.4f} nats per token\)$")
        self.assertRegex(lines[1], rf"^scored      {result['tokens']} tokens, .* tokens/s\)$")
        self.assertRegex(lines[2], r"^kv          dense: ")
        self.assertRegex(lines[4], r"^positions +tokens +nll +perplexity +tokens/s$")
        first = result["buckets"][0]
        self.assertRegex(lines[5], rf"^0 to 127 +128 +{first['nll']:.4f} +")
        self.assertEqual(len(lines), 5 + len(result["buckets"]))

    def test_refused(self):
        text, empty = self.write("text", STORY), self.write("empty", "")
        base = ["perplexity", "-m", TINY]
        self.assertIn("-f FILE", self.refused(INPUT, *base))
        self.assertIn(f"{empty} is empty", self.refused(INPUT, *base, "-f", text, "-f", empty))
        self.assertIn("standard input is empty", self.refused(INPUT, *base, "-f", "-"))
        self.assertIn("No such file", self.refused(IO, *base, "-f", self.folder / "missing"))
        self.assertIn("No such file", self.refused(IO, *base, "-f", text, "--jsonl",
                                                   self.folder / "missing" / "nll"))
        base += ["-f", text]
        for flags in (["--max-tokens", "0"], ["--max-tokens", "-1"], ["--max-tokens", "many"],
                      ["--window", "0"], ["--stride", "0", "--window", "4"], ["--bucket", "-1"],
                      ["--bucket", "99999999999999999999"], ["--kv", "sinks"], ["--jsonl", "-"],
                      ["--kv-type", "f64"], ["-c", "-1"], ["-c", "1"], ["-p", "text"]):
            with self.subTest(flags=flags):
                self.refused(INPUT, *base, *flags)
        self.assertIn("--window", self.refused(INPUT, *base, "--stride", "4"))
        self.assertIn("more than the --window of 4",
                      self.refused(INPUT, *base, "--window", "4", "--stride", "5"))
        self.assertIn("--query-tokens", self.refused(INPUT, *base, "--prefill", "star"))
        self.assertIn("cannot be used with recompute:8",
                      self.refused(INPUT, *base, "--prefill", "star", "--query-tokens", "4", "--kv",
                                   "recompute:8"))
        self.assertIn("did you mean --window?", self.refused(INPUT, *base, "--windw", "4"))

    def test_interrupt(self):
        text = self.write("text", "bird " * 200000)
        slow = ["perplexity", "-m", TINY, "-f", text, "--kv", "sinks:4+60", "--isa", "scalar",
                "-ub", "1", "-t", "1"]
        process = self.start(*slow)
        wait_until_sigint_is_handled(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(), (b"", b""))
        self.assertEqual(process.returncode, 130)
        for flags in ([], ["--jsonl", self.folder / "nll"]):
            terminal = Terminal(self, *slow, *flags)
            terminal.expect("scoring: ")
            terminal.expect(" left; sinks:4+60: perplexity ")
            terminal.type("\x03")
            self.assertEqual(terminal.finish(), 130)
            self.assertNotIn("nats per token", terminal.seen)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["text"])

    # What another implementation computed: windows of 511 tokens, a BOS in front of each.
    @unittest.skipUnless(SHARED.exists(), "no shared data beside the project")
    def test_reference_figures(self):
        with open(SHARED / "corpora" / "tinystories" / "tinystories_197k.txt", "rb") as file:
            text = self.write("text", file.read(60000))
        result = self.measure("-f", text, "--window", "511", model=SHARED / "models" / "stories260K")
        self.assertEqual(round(result["nll"], 4), 1.7513)


if __name__ == "__main__":
    unittest.main()
