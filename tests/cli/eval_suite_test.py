"""godwit eval passkey, needle, kv-retrieval and lines: what they print and write, how they go on, what
they refuse. That samples and scores are right is shown by the tests of src/eval/suites."""

import json
import signal
import unittest

from harness import GOLDEN, TINY, CliTest, Terminal, changed, wait_for

INPUT, IO, FORMAT, UNSUPPORTED = 2, 3, 4, 5
SMALL = ["--lengths", "300,340", "--depths", "0,100", "-n", "2"]
TWO = ["--kv", "dense", "--kv", "sinks:4+60"]
FIELDS = ["task", "length", "depth", "index", "kv", "how", "prompt", "prompt_tokens", "needles",
          "expected", "answer", "score"]


class EvalSuiteTest(CliTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "results.jsonl"

    def asked(self, *arguments, suite="passkey"):
        return self.ok("eval", suite, "-m", TINY, *SMALL, "--tasks", "passkey", *TWO, *arguments)

    def lines(self):
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def test_every_answer_and_its_table(self):
        table = self.asked("-o", self.out).splitlines()
        rows = self.lines()
        self.assertEqual([(r["length"], r["index"], r["depth"], r["kv"]) for r in rows],
                         [(length, index, depth, kv) for length in (300, 340) for index in (0, 1)
                          for depth in (0, 100) for kv in ("dense", "sinks:4+60")])
        for row in rows:
            self.assertEqual(list(row), FIELDS)
            self.assertLessEqual(row["prompt_tokens"] + 6, row["length"])
            self.assertEqual(row["expected"], rows[4 * row["index"]]["expected"])
        self.assertEqual(table[0].split(), ["task", "length", "depth", "n", "dense", "sinks:4+60",
                                            "sinks:4+60", "less", "dense"])
        self.assertEqual([line.split()[1:4] for line in table[1:]],
                         [["300", "0", "2"], ["300", "100", "2"], ["300", "all", "4"],
                          ["340", "0", "2"], ["340", "100", "2"], ["340", "all", "4"]])

    def test_a_table_as_wide_as_the_terminal(self):
        terminal = Terminal(self, "eval", "passkey", "-m", TINY, *SMALL, *TWO, "--kv", "window:100",
                            "--tasks", "passkey", "-q", columns=60)
        self.assertEqual(terminal.finish(), 0)
        lines = terminal.seen.splitlines()
        self.assertLessEqual(max(map(len, lines)), 60)
        self.assertEqual(sum(line.startswith("task  ") for line in lines), 3)
        self.assertIn("window:100 less dense", terminal.seen)

    def test_a_terminal_sees_what_is_known_so_far(self):
        terminal = Terminal(self, "eval", "passkey", "-m", TINY, *SMALL, *TWO, "--tasks", "passkey")
        for row in ("300, depth 0", "300, depth 100", "300", "340, depth 0"):
            terminal.expect(f"passkey, length {row}: dense ")
            terminal.expect(", sinks:4+60 ")
            terminal.expect(f" of {2 if 'depth' in row else 4}\r\n")
        terminal.expect("task ")  # the table
        self.assertEqual(terminal.finish(), 0)

    def test_json(self):
        result = json.loads(self.asked("--json", "-s", "7"))
        self.assertEqual((result["suite"], result["seed"], result["samples"]), ("passkey", 7, 2))
        self.assertEqual(result["how"], "tiny-llama, weights auto, kv auto")
        self.assertEqual([(c["length"], c["depth"], c["kv"], c["n"]) for c in result["cells"][:6]],
                         [(300, depth, kv, 4 if depth is None else 2) for depth in (0, 100, None)
                          for kv in ("dense", "sinks:4+60")])
        for cell in result["cells"]:
            self.assertEqual("difference" in cell, cell["kv"] != "dense")
            mean, low, high = cell["score"]
            self.assertLessEqual(low, mean)
            self.assertLessEqual(mean, high)

    # Policies that read a text alike share one reading of it, and a saved text serves a later run.
    def test_answers_are_those_of_a_policy_alone(self):
        kvs = ["dense", "blocks:initial=64,local_windows_len=64,second_block_count=1", "sinks:4+60"]
        command = ["eval", "lines", "-m", TINY, "--lengths", "600,900", "--depths", "0,50,100", "-n",
                   "2", "--prefill", "star:block=64,anchor=64", "--query-tokens", "40"]

        def answers(name, kvs, *more):
            out = self.folder / name
            self.ok(*command, *(flag for kv in kvs for flag in ("--kv", kv)), "-o", out, *more)
            rows = [json.loads(line) for line in out.read_text().splitlines()]
            return {(r["kv"], r["length"], r["depth"], r["index"]): (r["prompt"], r["answer"])
                    for r in rows}

        alone = {}
        for kv in kvs:
            alone |= answers(f"alone-{len(alone)}", [kv])
        self.assertEqual(len(alone), 36)
        self.assertGreater(len({answer for _, answer in alone.values()}), 12)
        self.assertEqual(answers("together", kvs), alone)
        cache = self.folder / "cache"
        self.assertEqual(answers("saving", kvs, "--cache-dir", cache), alone)
        saved = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
        self.assertGreater(len(saved), 4)
        self.assertEqual(answers("saved", kvs, "--cache-dir", cache), alone)

    # As after kill -9, wherever it comes.
    def test_goes_on(self):
        table = self.asked("-o", self.out)
        whole = self.out.read_bytes()
        ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
        for cut in (0, 1, ends[0] - 1, ends[0], ends[0] + 20, ends[6] + 1, ends[-1] - 1):
            self.out.write_bytes(whole[:cut])
            self.assertEqual(self.asked("-o", self.out), table)
            self.assertEqual(self.out.read_bytes(), whole)
        self.asked("-o", self.out)
        self.assertEqual(self.out.read_bytes(), whole)

    def test_goes_on_after_kill_9(self):
        asked = [*SMALL, "--tasks", "passkey", *TWO]
        table = self.asked("-o", self.out)
        whole = self.out.read_text()
        self.out.unlink()
        for lines in (1, 5, 9):
            process = self.start("eval", "passkey", "-m", TINY, *asked, "-o", self.out)
            wait_for(lambda: process.poll() is not None
                     or self.out.exists() and self.out.read_text().count("\n") >= lines)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertEqual(self.asked("-o", self.out), table)
        self.assertEqual(self.out.read_text(), whole)

    def test_scores_of_the_file_count(self):
        self.asked("-o", self.out)
        rows = self.lines()
        self.out.write_text("".join(json.dumps({**row, "score": int(row["kv"] == "dense")}) + "\n"
                                    for row in rows))
        last = self.asked("-o", self.out).splitlines()[-1].split()
        self.assertEqual(last, ["passkey", "340", "all", "4", "1.000", "0.000", "-1.000",
                                "[-1.000,", "-1.000]"])

    def test_results_of_something_else_are_refused(self):
        self.asked("-o", self.out)
        line = self.refused(INPUT, "eval", "passkey", "-m", TINY, *SMALL, "-s", "1", "--tasks",
                            "passkey", "-o", self.out)
        self.assertIn("results.jsonl:1: passkey, length 300, depth 0, index 0, dense: expected the "
                      "prompt",
                      line)
        line = self.refused(INPUT, "eval", "passkey", "-m", TINY, *SMALL, "--tasks", "passkey", "-o",
                            self.out, "--kv-type", "f32")
        self.assertIn("expected an answer of tiny-llama, weights auto, kv f32, found", line)
        rows = self.out.read_text().splitlines()
        for broken, reason in (('{"task": 1', "results.jsonl:3: "),
                               ('{"task": 1}', "results.jsonl:3: expected an answer of this evaluation"),
                               (rows[0], "results.jsonl:3: answers passkey, length 300, depth 0, "
                                         "index 0, dense a second time")):
            self.out.write_text("\n".join([*rows[:2], broken, *rows[3:]]) + "\n")
            self.assertIn(reason, self.refused(FORMAT, "eval", "passkey", "-m", TINY, *SMALL,
                                               "--tasks", "passkey", "-o", self.out))

    # A window wider than the text reads it as dense does; one that is not says so.
    def test_a_text_that_is_read_by_a_window(self):
        table = self.asked("-o", self.out)
        other = self.folder / "window.jsonl"
        self.assertEqual(self.asked("--prefill", "window:400", "-o", other), table)
        rows = [json.loads(line) for line in other.read_text().splitlines()]
        self.assertEqual({row["how"] for row in rows},
                         {"tiny-llama, weights auto, kv auto, all but the question read by "
                          "window:400"})
        self.assertIn("read by window:8", self.refused(
            INPUT, "eval", "passkey", "-m", TINY, *SMALL, "--tasks", "passkey", "-o", self.out,
            "--prefill", "window:8"))

    def test_anchors_of_other_tokens(self):
        def rows(*how):
            out = self.folder / f"rows-{'-'.join(map(str, how))}".replace(":", "")
            self.ok("eval", "lines", "-m", TINY, "--lengths", "900", "--depths", "50", "-n", "3",
                    "--prefill", "star:block=64", *how, "-o", out)
            return [json.loads(line) for line in out.read_text().splitlines()]

        plain = rows()
        for kind in ("first", "shuffled", "random", "constant: the"):
            moved = rows("--anchor-tokens", kind)
            self.assertTrue(moved[0]["how"].endswith(f"foreign, anchors {kind}"))
            self.assertEqual([r["prompt_tokens"] - 64 for r in moved],
                             [r["prompt_tokens"] for r in plain])
        self.assertIn("needs --prefill star:block=N",
                      self.refused(INPUT, "eval", "lines", "-m", TINY, "--anchor-tokens", "random"))
        self.assertIn("a foreign anchor takes the place of the first block",
                      self.refused(INPUT, "eval", "lines", "-m", TINY, "--anchor-tokens", "random",
                                   "--prefill", "star:block=64,anchor=4"))

    def test_show(self):
        text = self.ok("eval", "lines", "-m", TINY, "--lengths", "500", "--show", "2", "--depths",
                       "0,50,100")
        self.assertEqual(text.count("=== lines, length 500, depth "), 2)
        self.assertEqual(text.count("Below is a record of lines"), 2)
        self.assertNotIn("depth 100", text)

    def test_every_suite(self):
        for suite in ("passkey", "needle", "kv-retrieval", "lines"):
            result = json.loads(self.ok("eval", suite, "-m", TINY, "--lengths", "700", "--depths",
                                        "50", "-n", "1", "--json"))
            self.assertEqual({cell["n"] for cell in result["cells"]}, {1})

    def test_babilong(self):
        (self.folder / "qa1_x_test.txt").write_text("1 John went to the garden.\n"
                                                    "2 Where is John? \tgarden\t1\n")
        book = self.folder / "book.txt"
        book.write_text("It was late. The end came. " * 200)
        arguments = ["eval", "babilong", "-m", TINY, "--lengths", "800", "-n", "1", "--tasks", "qa1"]
        table = self.ok(*arguments, "-d", self.folder, "-f", book)
        self.assertEqual([line.split()[:4] for line in table.splitlines()],
                         [["task", "length", "depth", "n"], ["qa1", "800", "-", "1"]])
        self.assertIn("-d FOLDER", self.refused(INPUT, *arguments, "-f", book))
        self.assertIn("-f FILE", self.refused(INPUT, *arguments, "-d", self.folder))
        self.assertIn("expected 2 or more, found 1", self.refused(
            INPUT, *changed(arguments, "-n", "2"), "-d", self.folder, "-f", book))

    def test_ruler(self):
        arguments = ["eval", "ruler", "-m", TINY, "--lengths", "900", "-n", "1", "--max-new", "4"]
        table = self.ok(*arguments, "--tasks", "niah_single_1,niah_multikey_2")
        self.assertEqual([line.split()[0] for line in table.splitlines()],
                         ["task", "niah_single_1", "niah_multikey_2"])
        self.assertIn("niah_single_2: needs a text to hide the answer in",
                      self.refused(INPUT, *arguments, "--tasks", "vt,niah_single_2"))

    def test_tasks_that_nothing_was_given_for_are_left_out(self):
        result = self.godwit("eval", "ruler", "-m", TINY, "--lengths", "2000", "-n", "1",
                             "--show", "9")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.splitlines(),
                         ["godwit: without -d FOLDER, left out: qa_1, qa_2",
                          "godwit: without -f FILE, left out: niah_single_2, niah_single_3, "
                          "niah_multikey_1, niah_multivalue, niah_multiquery"])
        self.assertIn("=== vt, ", result.stdout)

    def test_ruler_asks_about_documents(self):
        squad = {"data": [{"paragraphs": [
            {"context": f"Bird {i} lives in a large and quiet forest.",
             "qas": [{"question": f"Where lives {i}?", "answers": [{"text": "forest"}]}]}
            for i in range(40)]}]}
        (self.folder / "squad.json").write_text(json.dumps(squad))
        arguments = ["eval", "ruler", "-m", TINY, "--lengths", "600", "-n", "2", "--max-new", "4",
                     "--tasks"]
        text = self.ok(*arguments, "qa_1", "-d", self.folder, "--show", "1")
        self.assertIn("expected forest\n", text)
        self.assertIn("\n\nDocument 2:\nBird ", text)
        self.ok(*arguments, "qa_1", "-d", self.folder)
        self.assertIn("qa_1: needs a folder with squad.json or dev-v2.0.json of SQuAD: give it with "
                      "-d FOLDER", self.refused(INPUT, *arguments, "qa_1"))
        self.assertIn("expected hotpotqa.json", self.refused(IO, *arguments, "qa_2", "-d",
                                                             self.folder))

    def test_ruler_reads_what_the_original_wrote(self):
        made = self.folder / "made"
        (made / "vt").mkdir(parents=True)
        rows = [{"index": 0, "input": f"VAR A = {i}\nWhich?", "outputs": ["A"], "length": 9,
                 "answer_prefix": " It is"} for i in range(3)]
        file = made / "vt" / "validation.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        arguments = ["eval", "ruler", "-m", TINY, "--lengths", "100", "--generated", made]
        table = self.ok(*arguments, "-n", "3")
        self.assertEqual([line.split()[:4] for line in table.splitlines()],
                         [["task", "length", "depth", "n"], ["vt", "100", "-", "3"]])
        self.assertIn("VAR A = 1\nWhich? It is", self.ok(*arguments, "-n", "3", "--show", "2"))
        self.assertIn("found 3", self.refused(INPUT, *arguments, "-n", "4"))
        self.assertIn("-f", self.refused(INPUT, *arguments, "-f", file))
        self.assertIn("expected one value of --lengths", self.refused(INPUT, *arguments[:-4], "--lengths",
                                                                "90,100", "--generated", made))
        file.write_text(json.dumps(rows[0]) + "\nnot JSON\n")
        self.assertIn("validation.jsonl:2", self.refused(FORMAT, *arguments, "-n", "2"))
        self.assertIn("of a task of RULER", self.refused(IO, *arguments[:-1], self.folder))

    def test_chat(self):
        template = self.folder / "template.jinja"
        template.write_text("[{{ messages[0].content | trim }}]")
        arguments = ["eval", "passkey", "-m", TINY, "--tasks", "passkey", "--lengths", "400"]
        chat = ["--chat", "--chat-template", template]
        text = self.ok(*arguments, *chat, "--show", "1")
        self.assertIn("[There is an important info", text)
        self.assertIn("What is the pass key?]The pass key is\n", text)
        self.ok(*arguments, *chat, "--depths", "0", "-n", "1", "-o", self.out)
        self.assertIn(", as a chat", self.lines()[0]["how"])
        self.assertIn("has no chat template, which --chat needs",
                      self.refused(UNSUPPORTED, "eval", "passkey", "-m",
                                   GOLDEN / "opt" / "whole_table", "--chat"))
        self.assertIn("--chat-template is for chat models",
                      self.refused(INPUT, *arguments, *chat[1:]))

    def test_refused(self):
        text = self.folder / "short.txt"
        text.write_text("One sentence. And another.")
        for arguments, reason in (
                (["passkey", "--lengths", "40"],
                 "passkey: a sample of 40 tokens is too short for its question"),
                (["needle", "--lengths", "900", "-f", text], "and the text has "),
                (["passkey", "--lengths", "100000"],
                 "a sample has 100000 tokens and the context holds 1024"),
                (["passkey", "--kv", "dense", "--kv", "dense"], "--kv: dense is named twice"),
                (["passkey", "--kv", "blocks:", "--kv", "blocks"], "--kv: blocks is named twice"),
                (["passkey", "--tasks", "keys"], "unknown task \"keys\""),
                (["passkey", "--depths", "0,101"], "--depths"),
                (["lines", "--lengths", "400,400"], "400 is named twice"),
                (["needle", "-f", text, "-o", text], "-o")):
            self.assertIn(reason, self.refused(INPUT, "eval", arguments[0], "-m", TINY,
                                               *arguments[1:]))


if __name__ == "__main__":
    unittest.main()
