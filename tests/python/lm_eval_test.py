#!/usr/bin/env python3
"""godwit.lm_eval under lm-evaluation-harness, on a task of a few lines that needs no network.

Exit code 77: lm-evaluation-harness is not there.
"""

import json
import pathlib
import sys
import tempfile
import unittest

try:
    import lm_eval
    from lm_eval.tasks import TaskManager
except ImportError as error:
    print(f"lm-evaluation-harness is not there ({error}): godwit.lm_eval is untested")
    sys.exit(77)

from support import STORIES, TINY

import godwit
from godwit.lm_eval import GodwitLM

CHOICES = """
task: godwit_choices
dataset_path: json
dataset_kwargs: {data_files: {test: "%s"}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{text}}"
doc_to_choice: ["there was a bird", "zzz qqq xxx"]
doc_to_target: 0
metric_list: [{metric: acc}]
"""
WRITTEN = """
task: godwit_written
dataset_path: json
dataset_kwargs: {data_files: {test: "%s"}}
output_type: generate_until
test_split: test
doc_to_text: "{{text}}"
doc_to_target: "{{target}}"
generation_kwargs: {until: ["."], max_gen_toks: 8}
metric_list: [{metric: exact_match}]
"""


class LmEvalTest(unittest.TestCase):
    def test_tasks(self):
        engine = godwit.Engine(STORIES)
        text = "Once upon a time"
        target = engine.session().generate(text, max_tokens=8, temperature=0, stop=["."]).text
        with tempfile.TemporaryDirectory() as folder:
            data = pathlib.Path(folder, "data.json")
            data.write_text("\n".join(json.dumps({"text": text, "target": target})
                                      for _ in range(3)))
            for name, task in (("choices", CHOICES), ("written", WRITTEN)):
                pathlib.Path(folder, f"{name}.yaml").write_text(task % data)
            results = lm_eval.simple_evaluate(
                model="godwit", model_args=f"model={STORIES}",
                tasks=["godwit_choices", "godwit_written"], bootstrap_iters=0,
                task_manager=TaskManager(include_path=folder, include_defaults=False))["results"]
        self.assertEqual(results["godwit_choices"]["acc,none"], 1.0)
        self.assertEqual(results["godwit_written"]["exact_match,none"], 1.0)

    def test_loglikelihoods_are_the_engines(self):
        model = GodwitLM(str(TINY))
        engine = model.engine
        context, behind = engine.tokenize("Once upon"), engine.tokenize(" a time", False)
        session = engine.session()
        expected = sum(score for score, _ in session.logprobs(context + behind, len(context)))
        requests = [(("", ""), context, behind), (("", ""), context, behind[:1])]
        found = model._loglikelihood_tokens(requests, disable_tqdm=True)
        self.assertAlmostEqual(found[0][0], expected, places=5)
        self.assertGreater(found[1][0], found[0][0])


if __name__ == "__main__":
    unittest.main()
