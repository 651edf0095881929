"""godwit eval recall: what policies show of the tokens that dense attention gives most weight."""

import json
import unittest

from harness import TINY, CliTest, changed

INPUT, IO, UNSUPPORTED, MEMORY = 2, 3, 5, 6
BLOCKS = "blocks:initial=0,local_windows_len=64,second_block_count=1"
TOKENS, ASKED = 400, 20


class EvalRecallTest(CliTest):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "text.txt"
        self.text.write_text(" ".join(f"Bird {i * 37 % 101} sees the sea." for i in range(200)))
        self.recall = ["eval", "recall", "-m", TINY, "-f", self.text, "--max-tokens", TOKENS,
                       "--query-tokens", ASKED]

    def measure(self, *arguments):
        return json.loads(self.ok(*self.recall, "--json", *arguments))

    def test_policies_side_by_side(self):
        result = self.measure("--kv", "dense", "--kv", "window:100", "--kv", "window:300", "--kv",
                              BLOCKS, "--kv", BLOCKS + ",estimate=True")
        self.assertEqual((result["tokens"], result["query_tokens"]), (TOKENS, ASKED))
        dense, narrow, wide, blocks, estimated = result["policies"]
        for share in ("recall_10", "recall_64", "recall_1024", "weight"):
            self.assertAlmostEqual(dense[share], 1, places=9)
            self.assertGreater(narrow[share], 0)
            self.assertLess(narrow[share], wide[share])
            self.assertLess(wide[share], 1)
        # The tokens at 380 to 399 see themselves, too.
        self.assertEqual(dense["seen_keys"], TOKENS - (ASKED - 1) / 2)
        self.assertEqual(narrow["seen_keys"], 101)
        # Of 400 tokens the share of the heaviest 1,024 is that of all.
        self.assertAlmostEqual(narrow["recall_1024"],
                               sum(101 / (t + 1) for t in range(380, 400)) / 20, places=9)
        self.assertEqual([p["index_bytes"] for p in (dense, narrow, wide)], [0, 0, 0])
        # A block, and the window, in whole blocks.
        self.assertGreater(blocks["index_bytes"], 0)
        self.assertLessEqual(blocks["seen_keys"], 64 + 128)
        self.assertAlmostEqual(dense["error"], 0, places=9)
        self.assertLess(wide["error"], narrow["error"])
        self.assertLess(estimated["error"], blocks["error"])
        self.assertEqual(estimated["seen_keys"], blocks["seen_keys"])
        self.assertGreater(estimated["index_bytes"], blocks["index_bytes"])
        for policy in result["policies"]:
            for share in ("recall_64", "weight", "error"):
                heads = [head[share] for head in policy["heads"]]
                self.assertAlmostEqual(sum(heads) / len(heads), policy[share], places=9)

    # Chunks, threads and other policies beside it change nothing.
    def test_the_same_however_it_is_read(self):
        [alone] = self.measure("--kv", BLOCKS, "-ub", "7", "-t", "1")["policies"]
        self.assertEqual(self.measure("--kv", "window:9", "--kv", BLOCKS, "-t", "2")["policies"][1],
                         alone)

    def test_files_are_one_text(self):
        text = self.text.read_text()
        halves = [self.folder / name for name in ("a", "b")]
        for half, part in zip(halves, (text[:900], text[900:])):
            half.write_text(part)
        one = self.measure("--kv", "window:9")
        self.recall = changed(self.recall, "-f", halves[0])
        both = self.measure("--kv", "window:9", "-f", halves[1])
        self.assertEqual(both["policies"], one["policies"])
        self.assertEqual(both["text"], [str(half) for half in halves])

    def test_a_sink_token_is_one_of_them(self):
        model = self.copy_of_tiny()
        config = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps(config | {"sink_token_id": 3}))
        self.recall = changed(self.recall, "-m", model, "--max-tokens", "100")
        result = self.measure("--kv", "window:9")
        self.assertEqual(result["tokens"], 100)

    def test_table(self):
        heading, *rows = self.ok(*self.recall, "--kv", "dense", "--kv", "window:100").splitlines()
        self.assertEqual(heading.split("  ")[0], "kv")
        self.assertRegex(rows[0], r"^dense +(1\.000 +){4}0\.000 +390 +0$")
        self.assertRegex(rows[1], r"^window:100 +(0\.\d{3} +){5}101 +0$")
        self.assertIn("Heads that see least", rows[-3])
        self.assertRegex(rows[-2], r"^  dense:(  \d\.\d 1\.000)+$")
        self.assertRegex(rows[-1], r"^  window:100:(  \d\.\d 0\.\d{3})+$")

    def test_refusals(self):
        def refused(*flags, code=INPUT):
            return self.refused(code, "eval", "recall", "-m", TINY, *flags)

        self.assertEqual(refused(), "a text is needed: give it with -f FILE")
        self.assertIn("no file", refused("-f", self.folder / "no file", code=IO))
        text = ["-f", self.text]
        self.assertIn("--query-tokens 400 leaves none before the question",
                      refused(*text, "--max-tokens", "400", "--query-tokens", "400"))
        self.assertIn("and the model reads up to 1024: shorten it with --max-tokens", refused(*text))
        text += ["--max-tokens", "100"]
        self.assertIn("--kv: expected dense, window:W", refused(*text, "--kv", "dens"))
        self.assertIn("keeps no cache to continue from", refused(*text, "--kv", "recompute:64"))
        self.assertIn("second_block_count", refused(*text, "--kv", "blocks:second_block_count=0"))
        self.assertIn("--query-tokens", refused(*text, "--query-tokens", "0"))
        self.assertIn("int8", refused(*text, "--kv-type", "f32", "--int8-attention", "on"))
        self.assertIn("KV cache needs", self.refused(MEMORY, *self.recall, "--kv-memory", "1K"))
        self.text.write_text("")
        self.assertIn("leaves none before the question", refused("-f", self.text))


if __name__ == "__main__":
    unittest.main()
