#!/usr/bin/env python3
"""Engines: loading, facts, tokens, errors, requests beside each other, saved texts."""

import json
import tempfile
import threading
import unittest

import godwit
from support import ROOT, STORIES, TINY, run_program


class EngineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = godwit.Engine(TINY)

    @classmethod
    def tearDownClass(cls):
        cls.engine.close()

    def test_facts(self):
        config = json.loads((TINY / "config.json").read_text())
        self.assertEqual(self.engine.vocab_size, config["vocab_size"])
        self.assertEqual(self.engine.hidden_size, config["hidden_size"])
        self.assertIn(config["eos_token_id"], self.engine.end_tokens)
        self.assertIsNone(self.engine.sink_token)
        self.assertGreater(self.engine.weight_bytes, 0)
        self.assertGreater(self.engine.kv_bytes(1000), self.engine.kv_bytes(1000, kv="sinks:4+60"))
        self.assertTrue(self.engine.isa)
        self.assertEqual(godwit.__version__, self.engine.isa and godwit.__version__)

    def test_version_is_that_of_the_project(self):
        project = (ROOT / "CMakeLists.txt").read_text()
        self.assertIn(f"project(godwit VERSION {godwit.__version__} ", project)

    def test_tokens_go_there_and_back(self):
        text = "Once upon a time, naïve \u2603"
        ids = self.engine.tokenize(text, add_special=False)
        self.assertEqual(self.engine.detokenize(ids), text)
        self.assertEqual(self.engine.detokenize([]), "")

    def test_text_is_that_of_the_program(self):
        expected = json.loads(run_program("run", "-m", TINY, "-p", "Once upon a time", "-n", 24,
                                          "--temp", 0, "--json", "--kv", "sinks:4+60"))
        result = self.engine.generate("Once upon a time", max_tokens=24, temperature=0,
                                      kv="sinks:4+60")
        self.assertEqual(result.text, expected["text"])
        self.assertEqual(result.tokens, expected["tokens"])
        self.assertEqual(result.kv.policy, expected["kv"]["policy"])

    def test_sampled_text_is_that_of_the_program(self):
        expected = json.loads(run_program("run", "-m", STORIES, "-p", "Once", "-n", 16, "-s", 7,
                                          "--json"))
        engine = godwit.Engine(STORIES)
        result = engine.generate("Once", max_tokens=16, seed=7)
        self.assertEqual(result.tokens, expected["tokens"])

    def test_errors_have_numbers(self):
        with self.assertRaises(godwit.InputError) as caught:
            self.engine.generate([5] * 20, context_tokens=8)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.code, "prompt_too_long")
        self.assertEqual((caught.exception.found, caught.exception.limit), (20, 8))
        with self.assertRaises(godwit.IoError) as caught:
            godwit.Engine("/nowhere/model")
        self.assertIsInstance(caught.exception, OSError)
        self.assertIn("/nowhere/model", str(caught.exception))

    def test_wrong_arguments_are_refused(self):
        with self.assertRaises(TypeError):
            self.engine.generate("Once", no_such_option=1)
        with self.assertRaises(TypeError):
            self.engine.generate(5)
        with self.assertRaises(ValueError):
            self.engine.generate("Once", steps=["top_q"])
        with self.assertRaises(godwit.InputError):
            self.engine.session(kv="nonsense")

    def test_closed_engine_is_refused(self):
        engine = godwit.Engine(TINY)
        session = engine.session()
        engine.close()
        with self.assertRaises(ValueError):
            engine.session()
        self.assertEqual(len(session.generate([5], max_tokens=3, ignore_eos=True, temperature=0)
                             .tokens), 3)

    def test_progress_tells_and_cancels(self):
        seen, stages = [], []
        with godwit.Engine(TINY, packed="none", on_stage=stages.append,
                           on_progress=lambda done, total: seen.append((done, total))):
            pass
        self.assertIn("reading the tokenizer", stages)
        self.assertEqual(seen[-1][0], seen[-1][1])

        def refuse(done, total):
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            godwit.Engine(TINY, packed="none", on_progress=refuse)

    def test_samples_differ_and_repeat(self):
        wild = {"max_tokens": 12, "temperature": 9.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 3}
        first = self.engine.samples("Once", 3, **wild)
        again = self.engine.samples("Once", 3, **wild)
        self.assertEqual([one.tokens for one in first], [one.tokens for one in again])
        self.assertGreater(len({tuple(one.tokens) for one in first}), 1)

    def test_logprobs_come_with_tokens(self):
        result = self.engine.generate("Once", max_tokens=6, logprobs=2, temperature=0)
        self.assertEqual([one.token for one in result.logprobs], result.tokens)
        for one in result.logprobs:
            self.assertEqual(one.top[0], (one.token, one.logprob))
            self.assertGreaterEqual(one.top[0][1], one.top[1][1])
        self.assertEqual(self.engine.generate("Once", max_tokens=2).logprobs, [])

    def test_threads_get_the_same_text(self):
        expected = self.engine.generate("Once", max_tokens=16, temperature=0).tokens
        found = []

        def work():
            found.append(self.engine.session().generate("Once", max_tokens=16, temperature=0))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([one.tokens for one in found], [expected] * 4)

    def test_texts_are_saved_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            with godwit.Engine(TINY, cache_dir=folder) as engine:
                session = engine.session()
                session.generate("Once upon a time", max_tokens=100, temperature=0,
                                 ignore_eos=True, keep_as="story")
                self.assertEqual(session.save(), 64)
                text = session.tokens
                later = engine.session()
                count = later.load("story")
                self.assertEqual(later.tokens, text[:count])
                saved = engine.saved()
                self.assertEqual(saved[0].names, ["story"])
                self.assertTrue(engine.stop_keeping("story"))
                self.assertTrue(engine.remove_saved(saved[0].id))
                self.assertFalse(engine.remove_saved(saved[0].id))
                with self.assertRaises(godwit.InputError):
                    later.load("other")
                session.close()
                later.close()
        with self.assertRaises(godwit.UnsupportedError):
            self.engine.session().save()

    def test_groups_share_memory(self):
        group = godwit.Group(kv_memory_bytes=1 << 26)
        one, two = godwit.Engine(TINY, group=group), godwit.Engine(TINY, group=group)
        self.assertEqual(one.kv_memory_bytes, 1 << 26)
        session = two.session()
        session.generate("Once", max_tokens=4)
        self.assertGreater(group.used_kv_bytes, 0)
        group.forget_texts()
        one.close()


if __name__ == "__main__":
    unittest.main()
