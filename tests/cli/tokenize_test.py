"""godwit tokenize and godwit inspect: neither reads the weights."""

import json
import os
import unittest

from harness import EXPECTED, GOLDEN, TINY, CliTest


class TokenizeTest(CliTest):
    def test_encodes_as_hugging_face(self):
        for case in EXPECTED["encode"]:
            file = self.folder / "text"
            file.write_bytes(case["text"].encode())
            arguments = ["tokenize", "-m", TINY, "-f", file, "--ids"]
            self.assertEqual(json.loads(self.ok(*arguments)), case["tokens"])
            for flag in ("--no-bos", "--no-special"):
                self.assertEqual(json.loads(self.ok(*arguments, flag)),
                                 case["tokens_without_special"])

    def test_listing(self):
        self.assertEqual(self.ok("tokenize", "-m", TINY, "-p", "Hello two"),
                         "1 '<s>'\n388 'Hello'\n386 'Ġtwo'\n")

    def test_decodes(self):
        ids = self.ok("tokenize", "-m", TINY, "-p", "naïve 海\n", "--ids", "--no-bos")
        self.assertEqual(self.ok("tokenize", "-m", TINY, "--decode", ids), "naïve 海\n")

    def test_needs_no_weights(self):
        model = self.copy_of_tiny()
        (model / "model.safetensors").unlink()
        (model / "config.json").unlink()
        self.assertEqual(self.ok("tokenize", "-m", model, "-p", "Hello", "--ids"), "[1,388]\n")


class InspectTest(CliTest):
    def test_json(self):
        result = json.loads(self.ok("inspect", "-m", TINY, "--json", "-t", "3", "--isa", "scalar"))
        self.assertEqual(result["family"], "llama")
        self.assertEqual(result["max_context"], 1024)
        self.assertEqual(result["threads"], 3)
        self.assertEqual(result["isa"], "scalar")
        self.assertIn("scalar", result["supported_isas"])
        self.assertEqual(result["tokenizer"], {"vocab_size": 512, "bos_id": 1, "eos_ids": [2, 4],
                                               "chat_template": True})
        # K and V of 2 heads of 16 in 2 layers.
        self.assertEqual(result["kv"]["f32"]["bytes_per_token"], 2 * 2 * 2 * 16 * 4)
        self.assertEqual(result["kv"]["bf16"]["bytes_per_token"], 2 * 2 * 2 * 16 * 2)
        tensors = result["tensors"]
        self.assertEqual(len(tensors), 20)
        elements = sum(t["bytes"] for t in tensors) // 2
        self.assertEqual(result["parameters"], elements)
        self.assertEqual(tensors[0], {"name": "model.embed_tokens.weight", "dtype": "BF16",
                                      "shape": [512, 64], "bytes": 512 * 64 * 2})
        self.assertGreater(result["memory"]["total_bytes"], result["memory"]["available_bytes"])

    def test_folder_of_any_name(self):
        model = self.folder / os.fsdecode(b"not UTF-8 \xff")
        model.symlink_to(TINY)
        result = json.loads(self.ok("inspect", "-m", model, "--json"))
        self.assertTrue(result["folder"].endswith("not UTF-8 \ufffd"), result["folder"])

    def test_text(self):
        text = self.ok("inspect", "-m", TINY)
        self.assertIn("model.layers.*.mlp.up_proj.weight", text)
        self.assertIn("x 2", text)
        self.assertIn("4 \"<|im_end|>\"", text)
        text = self.ok("inspect", "-m", TINY, "--tensors")
        self.assertIn("model.layers.0.mlp.up_proj.weight", text)
        self.assertIn("model.layers.1.mlp.up_proj.weight", text)
        self.assertNotIn("quantized", text)

    def test_int8_checkpoint(self):
        model = GOLDEN / "int8" / "llama" / "tensor_static"
        scheme = "int8 weights with a scale per tensor, input quantized with a static scale"
        self.assertIn(f"quantized   {scheme}\n", self.ok("inspect", "-m", model))
        result = json.loads(self.ok("inspect", "-m", model, "--json"))
        self.assertEqual(result["quantization"], [scheme])


if __name__ == "__main__":
    unittest.main()
