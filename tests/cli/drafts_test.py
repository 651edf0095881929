"""--draft: the same text in fewer steps; godwit eval text, which says what it would save."""

import array
import json
import random
import struct
import unittest

from harness import GOLDEN, TESTS, TINY, CliTest

RUN = ["run", "-m", TINY, "-p", "Once upon a time", "-n", "300", "--ignore-eos", "-s", "3",
       "--json"]
MODELS = TESTS.parent / "models"
INPUT, UNSUPPORTED = 2, 5


def write_random_head(folder):
    """An EAGLE-3 head for the tiny model, which knows its first 100 tokens."""
    hidden, inner, known = 64, 80, 100
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": hidden,
        "intermediate_size": inner, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "hidden_act": "silu", "rms_norm_eps": 1e-5, "vocab_size": 512,
        "draft_vocab_size": known, "tie_word_embeddings": False,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 0, 1]}}))
    shapes = {"fc": (hidden, 3 * hidden), "norm": (hidden,), "lm_head": (known, hidden)}
    for name, shape in (("hidden_norm", (hidden,)), ("input_layernorm", (hidden,)),
                        ("post_attention_layernorm", (hidden,)),
                        ("self_attn.q_proj", (hidden, 2 * hidden)),
                        ("self_attn.k_proj", (hidden // 2, 2 * hidden)),
                        ("self_attn.v_proj", (hidden // 2, 2 * hidden)),
                        ("self_attn.o_proj", (hidden, hidden)), ("mlp.gate_proj", (inner, hidden)),
                        ("mlp.up_proj", (inner, hidden)), ("mlp.down_proj", (hidden, inner))):
        shapes["midlayer." + name] = shape
    numbers = random.Random(1)
    header, data = {}, b""

    def add(name, dtype, shape, values):
        nonlocal data
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values

    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = array.array("f", (numbers.uniform(-0.3, 0.3) for _ in range(count)))
        add(name + ".weight", "F32", shape, values.tobytes())
    add("d2t", "I64", (known,), bytes(8 * known))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


class DraftsTest(CliTest):
    def run_json(self, *arguments):
        return json.loads(self.ok(*RUN, *arguments))

    def test_the_text_stays(self):
        for flags in (["--temp", "0"], ["--temp", "1"],
                      ["--temp", "1", "--repeat-penalty", "1.2", "--repeat-last-n", "64"],
                      ["--temp", "0", "--kv", "sinks:4+60"], ["--temp", "0", "--weights", "int8"]):
            plain, drafted = self.run_json(*flags), self.run_json(*flags, "--draft", "ngram")
            self.assertEqual(drafted["tokens"], plain["tokens"], flags)
            self.assertEqual(drafted["text"], plain["text"])
            self.assertNotIn("drafts", plain)
            drafts = drafted["drafts"]
            self.assertEqual(list(drafts), ["steps", "draft_tokens", "accepted", "sources",
                                            "skipped_steps", "steps_short_of_memory"])
            # Every token but the first, which the prompt's last step gave.
            self.assertGreaterEqual(drafts["steps"] + drafts["accepted"], 299)
            self.assertEqual(sum(drafts["sources"].values()), drafts["accepted"])

    def test_a_part_of_a_long_text(self):
        prompt = self.folder / "prompt.txt"
        prompt.write_text("Once upon a time there was a cat. " * 60)
        flags = ["-f", prompt, "-n", "150", "--temp", "1", "--samples", "2"]
        run = [*RUN[:3], "-s", "3", "--ignore-eos", "--json"]
        plain = json.loads(self.ok(*run, *flags))
        for sources in ("partial:budget=256", "ngram,partial:budget=256"):
            drafted = json.loads(self.ok(*run, *flags, "--draft", sources))
            for a, b in zip(plain["answers"], drafted["answers"], strict=True):
                self.assertEqual(a["tokens"], b["tokens"])
                self.assertIn("partial", b["drafts"]["sources"])

    def test_two_levels_of_drafts(self):
        prompt = self.folder / "prompt.txt"
        prompt.write_text("Once upon a time there was a cat. " * 60)
        run = [*RUN[:3], "-f", prompt, "-n", "100", "-s", "3", "--ignore-eos", "--json"]
        for flags in (["--temp", "0"], ["--temp", "1"]):
            plain = json.loads(self.ok(*run, *flags))
            drafted = json.loads(self.ok(*run, *flags, "-md", TINY, "--draft",
                                         "triforce:budget=256:inner=3:outer=6:small=128"))
            self.assertEqual(drafted["tokens"], plain["tokens"], flags)
            self.assertEqual(list(drafted["drafts"]["sources"]), ["triforce"])

    def test_samples_and_requests(self):
        flags = ["--temp", "1", "--samples", "2"]
        plain, drafted = self.run_json(*flags), self.run_json(*flags, "--draft", "ngram")
        for a, b in zip(plain["answers"], drafted["answers"], strict=True):
            self.assertEqual(a["tokens"], b["tokens"])
        requests = self.folder / "requests.jsonl"
        body = {"prompt": "Once upon a time", "max_tokens": 200, "temperature": 0,
                "ignore_eos": True}
        requests.write_text("".join(
            json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions",
                        "body": {**body, **more}}) + "\n"
            for i, more in enumerate(({}, {"draft": "ngram"}, {"draft": "x"}))))
        output = self.folder / "answers.jsonl"
        self.godwit("batch", "-m", TINY, "-f", requests, "-o", output)
        answers = {a["custom_id"]: a for a in map(json.loads, output.read_text().splitlines())}
        texts = [answers[i]["response"]["body"]["choices"][0] for i in "01"]
        self.assertEqual(texts[0]["text"], texts[1]["text"])
        self.assertIn("unknown draft source", json.dumps(answers["2"]))

    def test_an_eagle3_head(self):
        head = self.folder / "head"
        write_random_head(head)
        for flags in (["--temp", "0"], ["--temp", "1", "--kv", "sinks:4+60"]):
            plain = self.run_json(*flags)
            for sources in (f"eagle3:{head}", f"ngram,eagle3:{head}"):
                drafted = self.run_json(*flags, "--draft", sources)
                self.assertEqual(drafted["tokens"], plain["tokens"], flags)
                self.assertIn("eagle3", drafted["drafts"]["sources"])
        # The model may lie in a GGUF file.
        gguf = [*RUN[:2], GOLDEN / "gguf" / "tiny_llama.gguf", *RUN[3:], "--temp", "0"]
        self.assertEqual(json.loads(self.ok(*gguf, "--draft", f"eagle3:{head}"))["tokens"],
                         json.loads(self.ok(*gguf))["tokens"])
        # A request names the source alone, and no folder.
        requests, output = self.folder / "requests.jsonl", self.folder / "answers.jsonl"
        requests.write_text("".join(
            json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions",
                        "body": {"prompt": "Once", "max_tokens": 5, "draft": draft}}) + "\n"
            for i, draft in enumerate(("eagle3", "eagle3:/etc"))))
        self.godwit("batch", "-m", TINY, "-f", requests, "-o", output, "--draft", f"eagle3:{head}")
        answers = {a["custom_id"]: a for a in map(json.loads, output.read_text().splitlines())}
        self.assertEqual(answers["0"]["response"]["status_code"], 200)
        self.assertIn("names another folder", json.dumps(answers["1"]))
        self.assertIn("start with --draft eagle3:FOLDER",
                      self.refused(INPUT, *RUN, "--draft", "eagle3"))
        config = json.loads((head / "config.json").read_text())
        (head / "config.json").write_text(json.dumps({**config, "vocab_size": 500}))
        self.assertIn("vocab_size: expected 512, as the model has it, found 500",
                      self.refused(INPUT, *RUN, "--draft", f"eagle3:{head}"))

    def test_a_draft_model(self):
        stories, books = MODELS / "stories-3m", MODELS / "books-3m"
        run = ["run", "-m", stories, "-p", "Once upon a time", "-n", "120", "-s", "3",
               "--ignore-eos", "--json"]
        for flags in (["--temp", "0"], ["--temp", "1", "--repeat-penalty", "1.2"],
                      ["--temp", "0", "--kv", "sinks:4+60", "--weights", "int8"]):
            plain = json.loads(self.ok(*run, *flags))
            for more, sources in ((["-md", books], ["model"]),
                                  (["--model-draft", stories], ["model"]),
                                  (["--draft", "ngram", "-md", books], ["ngram", "model"]),
                                  (["--draft", "model", "-md", books], ["model"])):
                drafted = json.loads(self.ok(*run, *flags, *more))
                self.assertEqual(drafted["tokens"], plain["tokens"], (flags, more))
                self.assertEqual("ngram" in drafted["drafts"]["sources"], "ngram" in sources)
                self.assertIn("model", drafted["drafts"]["sources"])
        self.assertEqual(self.ok("chat", "-m", stories, "-n", "20", "--temp", "0", "-md", books,
                                 stdin="Once\n"),
                         self.ok("chat", "-m", stories, "-n", "20", "--temp", "0", stdin="Once\n"))
        message = self.refused(INPUT, *RUN, "-md", books)
        self.assertIn("has another tokenizer than", message)
        self.assertIn("expected", message)
        for source in ("model", "triforce:budget=256"):
            self.assertIn("start with -md MODEL", self.refused(INPUT, *RUN, "--draft", source))
        self.assertIn("for example triforce:budget=4096:inner=2:outer=6", self.refused(
            INPUT, "run", "-m", stories, "-p", "Once", "-md", books, "--draft", "triforce:inner=9"))
        # A request names the source alone.
        requests, output = self.folder / "requests.jsonl", self.folder / "answers.jsonl"
        requests.write_text("".join(
            json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions",
                        "body": {"prompt": "Once", "max_tokens": 30, "temperature": 0, **draft}})
            + "\n" for i, draft in enumerate(({}, {"draft": "model"}, {"draft": ""}))))
        self.godwit("batch", "-m", stories, "-f", requests, "-o", output, "-md", books)
        answers = [json.loads(line) for line in output.read_text().splitlines()]
        texts = {a["response"]["body"]["choices"][0]["text"] for a in answers}
        self.assertEqual(len(texts), 1)

    def test_shapes_and_tables(self):
        flags = ["--temp", "1", "--repeat-penalty", "1.2"]
        plain = self.run_json(*flags)
        for sources in ("ngram", "ngram-table:k=10", "ngram-table,ngram"):
            for shape in ([], ["--draft-tree", "1,3,3,3"], ["--draft-tree", "rows=3"]):
                drafted = self.run_json(*flags, "--draft", sources, *shape)
                self.assertEqual(drafted["tokens"], plain["tokens"])
        self.assertIn("add --draft or -md", self.refused(INPUT, *RUN, "--draft-tree", "3x3"))
        for shape, why in (("3,3,3,3", "begins with 3, expected 1"),
                           ("1,9,9,9", "has 820 rows with the text's last token, expected 64")):
            self.assertIn(why, self.refused(INPUT, *RUN, "--draft", "ngram", "--draft-tree", shape))

    def test_memory_of_a_draft_model(self):
        stories, books = MODELS / "stories-3m", MODELS / "books-3m"
        alone = json.loads(self.ok("inspect", "-m", stories, "--json"))
        both = json.loads(self.ok("inspect", "-m", stories, "-md", books, "--json"))
        self.assertNotIn("draft_model", alone)
        self.assertEqual(both["draft_model"]["loaded_bytes"],
                         json.loads(self.ok("inspect", "-m", books, "--json"))
                         ["weights"]["loaded_bytes"])
        self.assertIn("draft model", self.ok("inspect", "-m", stories, "-md", books))
        self.assertIn("has another tokenizer than",
                      self.refused(INPUT, "inspect", "-m", TINY, "-md", books))

    def test_bad_sources(self):
        for sources, why in (("eagle", "unknown draft source \"eagle\"; there are: ngram, "
                              "ngram-table, model, mtp, eagle3, heads, partial, triforce"),
                             ("ngram,ngram", "named twice"), ("ngram,", "unknown draft source"),
                             ("partial:4096", "for example partial:budget=4096")):
            self.assertIn(why, self.refused(INPUT, *RUN, "--draft", sources))
        self.assertIn("this llama model has no layer that predicts tokens",
                      self.refused(UNSUPPORTED, *RUN, "--draft", "mtp"))
        self.assertIn("blocks shows a part of the text itself: leave it out, or use dense",
                      self.refused(UNSUPPORTED, *RUN, "--kv", "blocks", "--draft", "partial"))


class EvalTextTest(CliTest):
    def test_distinct_and_replay(self):
        text = self.folder / "text.txt"
        text.write_text("the cat sat on the mat. " * 60)
        result = json.loads(self.ok("eval", "text", "-m", TINY, "-f", text, "--json"))
        self.assertNotIn("replays", result)
        self.assertLess(result["distinct"][0], 0.1)
        self.assertAlmostEqual(sum(result["distinct"]) / 4, result["average"])
        replay = json.loads(self.ok("eval", "text", "-m", TINY, "-f", text, "--json", "--step-ms",
                                    "1:10,16:12", "--prompt-tokens", "20"))["replays"][0]
        self.assertEqual(replay["draft"], "ngram")
        self.assertEqual(replay["tokens"], result["tokens"] + 1 - 20)
        self.assertLess(replay["steps"], replay["tokens"] / 4)
        self.assertGreater(replay["plain_ms"], 3 * replay["ms"])
        people = self.ok("eval", "text", "-m", TINY, "-f", text, "--step-ms", "1:10,16:12")
        self.assertRegex(people, r"\nngram +\d+\.\d\d +\d+\.\d +\d+\.\d\d\n")

    def test_sources_are_compared(self):
        text = self.folder / "text.txt"
        text.write_text("Once upon a time there was a cat. " * 80)
        sources = ["ngram", "partial:budget=256", "ngram,partial:budget=256"]
        command = ["eval", "text", "-m", TINY, "-f", text, "--json", "--prompt-tokens", "600",
                   "--step-ms", "1:10,16:11"]
        drafts = [flag for name in sources for flag in ("--draft", name)]
        replays = json.loads(self.ok(*command, *drafts, "--draft-ms", "partial:1"))["replays"]
        self.assertEqual([replay["draft"] for replay in replays], sources)
        self.assertEqual(len({replay["tokens"] for replay in replays}), 1)
        self.assertGreater(replays[0]["sources"]["ngram"], 100)
        self.assertNotIn("ngram", replays[1]["sources"])
        # What it guesses takes time beside the steps', 11 ms at most each.
        self.assertGreater(replays[1]["ms"], 10 * replays[1]["steps"])
        self.assertIn("add --draft-ms partial:MS", self.refused(INPUT, *command, *drafts))
        self.assertIn("blocks shows a part of the text itself", self.refused(
            UNSUPPORTED, *command, *drafts, "--draft-ms", "partial:1", "--kv", "blocks"))

    def test_shapes_of_trees(self):
        text = self.folder / "text.txt"
        text.write_text("the cat sat on the mat. " * 60)

        def rows(shape):
            replay = json.loads(self.ok("eval", "text", "-m", TINY, "-f", text, "--json",
                                        "--step-ms", "1:10,64:11", *shape))["replays"][0]
            return 1 + replay["draft_tokens"] / replay["steps"]
        self.assertGreater(rows([]), 8)
        self.assertLessEqual(rows(["--draft-tree", "rows=4"]), 4)
        self.assertLessEqual(rows(["--draft-tree", "depth=2,children=1"]), 3)
        self.assertLessEqual(rows(["--draft-tree", "2x1"]), 5)

    def test_bad_input(self):
        text = ["eval", "text", "-m", TINY, "-p", "once upon a time"]
        for flags, why in ((["--step-ms", "8:24"], "has no time for a step of one row"),
                           (["--step-ms", "8"], "is not ROWS:MS"),
                           (["--step-ms", "1:0"], "expected milliseconds"),
                           (["--step-ms", "99:3"], "99"),
                           (["--draft", "ngram"], "add --step-ms"),
                           (["--draft-ms", "heads:2"], "add --step-ms"),
                           (["--draft-tree", "3x3"], "add --step-ms"),
                           (["--draft-ms", "ngram:2"], "expected heads or partial"),
                           (["--draft-tree", "width=3"], "found \"width=3\""),
                           (["--draft-tree", "3x"], "--draft-tree"),
                           (["--prompt-tokens", "1000"], "nothing follows a prompt of 1000")):
            self.assertIn(why, self.refused(INPUT, *text, *flags))


if __name__ == "__main__":
    unittest.main()
