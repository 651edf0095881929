"""godwit train-heads, and what --draft heads makes of what it writes."""

import json
import shutil
import signal
import time
import unittest

from harness import GOLDEN, TINY, CliTest

INPUT, INTERRUPTED = 2, 130
HEADS = "draft_heads.safetensors"


class TrainHeadsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.copy_of_tiny()
        self.text = self.folder / "text.txt"
        self.text.write_text("Once upon a time there was a small bird that sang. " * 400)
        self.train = ["train-heads", "-m", self.model, "-f", self.text, "--seq-len", "64"]

    def test_heads_draft_the_models_text(self):
        log = self.folder / "log.jsonl"
        trained = json.loads(self.ok(*self.train, "--steps", "40", "--batch", "256",
                                     "--log", log, "--json"))
        self.assertEqual(len(trained["heads"]), 3)
        for head in trained["heads"]:
            self.assertGreater(head["top_1"], 0.9)  # a text that says one thing
            self.assertGreaterEqual(head["top_10"], head["top_1"])
        self.assertFalse((self.model / (HEADS + ".training")).exists())
        steps = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([step["step"] for step in steps], list(range(1, 41)))
        self.assertLess(steps[-1]["loss"], steps[0]["loss"] / 4)
        self.assertIn("held_out", steps[-1])

        run = ["run", "-m", self.model, "-p", "Once upon a time", "-n", "200", "--ignore-eos",
               "--json"]
        for flags in (["--temp", "0"], ["--temp", "1", "-s", "5"],
                      ["--temp", "0", "--weights", "int8"]):
            plain = json.loads(self.ok(*run, *flags))
            for sources in ("heads", "heads,ngram"):
                drafted = json.loads(self.ok(*run, *flags, "--draft", sources))
                self.assertEqual(drafted["tokens"], plain["tokens"], (flags, sources))
                self.assertIn("heads", drafted["drafts"]["sources"])

        replay, slow = [json.loads(self.ok(
            "eval", "text", "-m", self.model, "-f", self.text, "--step-ms", "1:20,8:21",
            "--draft", "heads", "--json", *flags))["replays"][0]
            for flags in ([], ["--draft-ms", "heads:2"])]
        self.assertGreater(replay["sources"]["heads"], 50)
        self.assertGreater(slow["ms"], replay["ms"] + slow["steps"])

        self.assertIn("exists already", self.refused(INPUT, *self.train))
        # They go with a copy in int8, and with no other model.
        other = self.folder / "int8"
        self.ok("quantize", "-m", self.model, "-o", other, "--scheme", "zeroquant")
        self.ok("run", "-m", other, "-p", "Once", "-n", "5", "--draft", "heads")
        shutil.copy(self.model / HEADS, other)
        config = json.loads((other / "config.json").read_text())
        self.assertIn("quantization_config", config)

    def test_independent_heads(self):
        train = [*self.train, "--steps", "20", "--batch", "128", "--independent"]
        self.assertTrue(json.loads(self.ok(*train, "--json"))["independent"])
        chained = self.folder / "chained"
        self.ok(*train[:-1], "-o", chained)
        self.assertNotEqual((self.model / HEADS).read_bytes(), chained.read_bytes())
        run = ["run", "-m", self.model, "-p", "Once upon a time", "-n", "100", "--ignore-eos",
               "--temp", "0", "--json"]
        drafted = json.loads(self.ok(*run, "--draft", "heads"))
        self.assertEqual(drafted["tokens"], json.loads(self.ok(*run))["tokens"])
        self.assertIn("heads", drafted["drafts"]["sources"])

    def test_heads_for_an_int8_model(self):
        self.ok(*self.train, "--steps", "40", "--batch", "256", "--weights", "int8")
        run = ["run", "-m", self.model, "-p", "Once upon a time", "-n", "100", "--ignore-eos",
               "--temp", "0", "--weights", "int8", "--json"]
        drafted = json.loads(self.ok(*run, "--draft", "heads"))
        self.assertEqual(drafted["tokens"], json.loads(self.ok(*run))["tokens"])
        self.assertIn("heads", drafted["drafts"]["sources"])

        other = self.folder / "heads"
        self.ok(*self.train, "--steps", "40", "--batch", "256", "-o", other)
        self.assertNotEqual((self.model / HEADS).read_bytes(), other.read_bytes())

    def test_heads_for_a_gguf_model(self):
        gguf = self.folder / "a.gguf"
        shutil.copy(GOLDEN / "gguf" / "tiny_llama.gguf", gguf)
        train = ["train-heads", "-m", gguf, "-f", self.text, "--seq-len", "64", "--steps", "40",
                 "--batch", "256"]
        run = ["run", "-m", gguf, "-p", "Once upon a time", "-n", "100", "--ignore-eos", "--temp",
               "0", "--json"]
        error = self.refused(INPUT, *run, "--draft", "heads")
        self.assertIn(f"{gguf} has no a.{HEADS}", error)
        self.assertIn("train draft heads with godwit train-heads", error)
        heads = self.folder / f"a.{HEADS}"
        self.assertEqual(json.loads(self.ok(*train, "--json"))["output"], str(heads))
        plain = json.loads(self.ok(*run))
        drafted = json.loads(self.ok(*run, "--draft", "heads"))
        self.assertEqual(drafted["tokens"], plain["tokens"])
        self.assertIn("heads", drafted["drafts"]["sources"])
        self.assertIn("exists already", self.refused(INPUT, *train))
        self.ok("eval", "text", "-m", gguf, "-f", self.text, "--step-ms", "1:20,8:21", "--draft",
                "heads")

        # They go with what is made of the file.
        other = self.folder / "int8"
        self.ok("quantize", "-m", gguf, "-o", other, "--scheme", "zeroquant")
        self.assertEqual((other / HEADS).read_bytes(), heads.read_bytes())
        self.ok("run", "-m", other, "-p", "Once", "-n", "5", "--draft", "heads")

    def test_there_are_none(self):
        error = self.refused(INPUT, "run", "-m", self.model, "-p", "x", "--draft", "heads")
        self.assertIn(f"has no {HEADS}", error)
        self.assertIn("train draft heads with godwit train-heads", error)
        (self.model / HEADS).write_text("nothing")
        self.assertIn(HEADS, self.godwit("run", "-m", self.model, "-p", "x", "--draft",
                                         "heads").stderr)

    def test_heads_of_another_model(self):
        self.ok(*self.train, "--steps", "1")
        weights = self.model / "model.safetensors"
        data = bytearray(weights.read_bytes())
        header = int.from_bytes(data[:8], "little")
        norm = json.loads(data[8:8 + header])["model.norm.weight"]["data_offsets"][0]
        data[8 + header + norm] ^= 1
        weights.write_bytes(data)
        self.assertIn("heads of another model", self.refused(
            INPUT, "run", "-m", self.model, "-p", "x", "--draft", "heads"))

    def test_refusals(self):
        for flags, why in ((["--vocab", "100"], "a multiple of 64"),
                           (["--rate", "0"], "a rate above 0"),
                           (["--heads", "9"], "--heads"),
                           (["-o", self.folder / "none" / "heads"], "none"),
                           (["--log", self.text], "-f")):
            self.assertIn(why, self.godwit(*self.train, *flags).stderr)
        other = self.folder / "other.txt"
        other.write_text("Another text.")
        self.assertIn("--log", self.refused(INPUT, *self.train, "-f", other, "--log", other))
        self.assertIn("name it with -f", self.refused(INPUT, "train-heads", "-m", self.model))
        self.text.write_text("Too short.")
        self.assertIn("1000", self.refused(INPUT, *self.train))

    def test_training_resumes(self):
        command = [*self.train, "--steps", "10000000", "--batch", "16"]
        unfinished = self.model / (HEADS + ".training")

        def stop_after(seconds):
            process = self.start(*command)
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            error = process.communicate()[1].decode()
            self.assertEqual(process.returncode, INTERRUPTED, error)
            return error

        seconds = 0.5
        while not unfinished.exists():
            error = stop_after(seconds)
            seconds *= 2
        self.assertRegex(error, "stopped after [0-9]+ of 10000000 steps; the same command continues")
        self.assertRegex(stop_after(seconds), "continuing after [0-9]+ of 10000000 steps")
        self.assertIn("another model, text or settings",
                      self.refused(INPUT, *self.train, "--steps", "20"))
        self.assertIn("another model, text or settings",
                      self.refused(INPUT, *command, "--weights", "int8"))


if __name__ == "__main__":
    unittest.main()
