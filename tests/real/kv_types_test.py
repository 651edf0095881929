"""What a type of KV cache costs a trained model in its predictions: bounds, by model.

Models of our own cannot say it: keys of trained ones have biases a hundred times as large as what
they differ in (docs/results/kv-types.md).
"""

import json
import unittest

from real_models import GEMMA, QWEN, RealTest, main

TOKENS = 256
# Model, type, the most that the mean divergence of predictions from those with a float32 cache may
# be, in nats, and the least share of positions with the same first choice. About three times what
# was measured. Weights are float32: those of the file round inputs, too, which makes 0.004 of the
# least difference.
BOUNDS = [
    (QWEN, "f16", 1e-5, 0.99),
    (QWEN, "bf16", 1e-3, 0.95),
    (QWEN, "int8", 2e-3, 0.95),
    (QWEN, "k8v4", 1e-2, 0.9),
    (GEMMA, "int8", 4e-3, 0.95),
    (GEMMA, "k8v4", 2e-2, 0.9),
]


class KvTypesTest(RealTest):
    def measure(self, model, kv_type):
        report = json.loads(self.ok("eval", "quant", "-m", f"{model}:f32", "-m", f"{model}:f32",
                                    "-f", self.book(1500), "--max-tokens", TOKENS, "--kv-type",
                                    kv_type, "--json"))
        self.assertGreater(report["tokens"], TOKENS - 2)
        self.assertLess(report["models"][0]["perplexity"], 100)
        return report["models"][1]

    def test_bounds(self):
        for model, kv_type, divergence, same in BOUNDS:
            with self.subTest(model=model.name, kv_type=kv_type):
                figures = self.measure(model, kv_type)
                print(f"{model.name} {kv_type}: {figures['kl']:.2g}, {figures['top1']:.1%} alike")
                self.assertGreater(figures["kl"], 0)
                self.assertLess(figures["kl"], divergence)
                self.assertGreater(figures["top1"], same)


if __name__ == "__main__":
    main(QWEN, GEMMA)
