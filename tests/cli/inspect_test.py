"""godwit inspect: what a model is, without reading the weights; and its layers at work."""

import json
import os
import shutil
import unittest

from harness import GOLDEN, TINY, CliTest, Terminal, changed

INPUT, UNSUPPORTED = 2, 5


class InspectTest(CliTest):
    def test_json(self):
        result = json.loads(self.ok("inspect", "-m", TINY, "--json", "-t", "3", "--isa", "scalar"))
        self.assertEqual(result["family"], "llama")
        self.assertEqual(result["max_context"], 1024)
        self.assertEqual(result["threads"], 3)
        self.assertEqual(result["isa"], "scalar")
        self.assertIn("scalar", result["supported_isas"])
        self.assertEqual(result["tokenizer"], {"file": "tokenizer.json", "vocab_size": 512,
                                               "bos_id": 1, "begins_with": [1], "eos_ids": [2, 4],
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
        self.assertIn("512 tokens of tokenizer.json, begins with", text)
        text = self.ok("inspect", "-m", TINY, "--tensors")
        self.assertIn("model.layers.0.mlp.up_proj.weight", text)
        self.assertIn("model.layers.1.mlp.up_proj.weight", text)
        self.assertNotIn("quantized", text)

    def test_layer_that_predicts(self):
        air = GOLDEN / "glm4_moe" / "air"
        model = self.folder / "predicts"
        model.mkdir()
        shutil.copy(air / "config.json", model)
        weights = {}
        for shard in (air / "model.safetensors", GOLDEN / "mtp" / "glm4_moe.safetensors"):
            name = f"{shard.parent.name}-{shard.name}"
            shutil.copy(shard, model / name)
            header = shard.read_bytes()
            names = json.loads(header[8:8 + int.from_bytes(header[:8], "little")])
            weights |= {tensor: name for tensor in names if tensor != "__metadata__"}
        (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
        self.assertIn("a layer that predicts tokens (--draft mtp)", self.ok("inspect", "-m", model))
        for folder, predicts in ((model, True), (air, False)):
            result = json.loads(self.ok("inspect", "-m", folder, "--json"))
            self.assertEqual(result["predicts_tokens"], predicts)

    def test_leading_tokens_are_those_that_tokenize_shows(self):
        model = self.copy_of_tiny()
        file = model / "tokenizer.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "post_processor": None}))
        config = model / "tokenizer_config.json"
        fields = json.loads(config.read_text())
        for name in ("add_bos_token", "add_eos_token", "tokenizer_class"):
            fields.pop(name, None)
        config.write_text(json.dumps(fields))
        self.assertNotIn(1, json.loads(self.ok("tokenize", "--ids", "-m", model, "-p", "a")))
        text = self.ok("inspect", "-m", model)
        self.assertNotIn("begins with", text)
        self.assertIn('adds no leading token (its BOS is 1 "', text)
        told = json.loads(self.ok("inspect", "-m", model, "--json"))["tokenizer"]
        self.assertEqual((told["bos_id"], told["begins_with"]), (1, []))
        ids = json.loads(self.ok("tokenize", "--ids", "-m", TINY, "-p", "a"))
        told = json.loads(self.ok("inspect", "-m", TINY, "--json"))["tokenizer"]
        self.assertEqual(told["begins_with"], ids[:1])

    def test_facts_of_a_model(self):
        text = self.ok("inspect", "-m", GOLDEN / "llama4_text" / "chunks")
        self.assertIn("chunks of 16 in 2 layers, 4 experts, 1 of them for a token and a shared one, "
                      "no positions in 1 layer, queries scaled by their position\n", text)
        text = self.ok("inspect", "-m", GOLDEN / "ministral3" / "new_config")
        self.assertIn("a window of 9 in 2 layers, queries scaled by their position\n", text)

    def test_gguf(self):
        model = GOLDEN / "gguf" / "llama_q4_k.gguf"
        text = self.ok("inspect", "-m", model)
        self.assertIn('llama "llama_q4_k": Q4_K in 12 tensors, F32 in 5 tensors, Q8_0 in 4 tensors', text)
        self.assertIn("when loaded, in mostly Q4_K", text)
        result = json.loads(self.ok("inspect", "-m", model, "--json"))
        self.assertEqual(result["format"], "gguf")
        self.assertEqual(result["weights"]["type"], "mostly Q4_K")
        self.assertIsNone(result["tokenizer"])
        self.assertEqual(result["tensors"][0]["dtype"], "Q4_K")

    def test_int8_checkpoint(self):
        model = GOLDEN / "int8" / "llama" / "tensor_static"
        scheme = "int8 weights with a scale per tensor, input quantized with a static scale"
        self.assertIn(f"quantized   {scheme}\n", self.ok("inspect", "-m", model))
        result = json.loads(self.ok("inspect", "-m", model, "--json"))
        self.assertEqual(result["quantization"], [scheme])
        self.assertEqual(result["weights"]["type"], "int8 (head f32)")
        self.assertIn("when loaded, in int8 (head f32)\n", self.ok("inspect", "-m", model))


    def test_packed_checkpoint(self):
        model = GOLDEN / "packed" / "nf4"
        scheme = "4-bit weights (bitsandbytes nf4) with a scale for each 64 inputs"
        text = self.ok("inspect", "-m", model)
        self.assertIn(f"quantized   {scheme}\n", text)
        self.assertIn("when loaded, in NF4 (head f32)\n", text)
        roundings = [
            "f32 scales to f16: by at most 1/2048",
            "the 16 levels of NF4 to int8: by 0.0029 of a group's largest",
        ]
        for rounding in roundings:
            self.assertIn(rounding, text)
        result = json.loads(self.ok("inspect", "-m", model, "--json"))
        self.assertEqual(result["quantization"], [scheme])
        self.assertEqual(result["weights"]["rounded"], roundings)
        exact = json.loads(self.ok("inspect", "-m", GOLDEN / "packed" / "gptq_order", "--json"))
        self.assertEqual(exact["weights"]["type"], "GPTQ-Int4 (head f32)")
        self.assertEqual(exact["weights"]["rounded"], [])


class KvTest(CliTest):
    BLOCKS = "blocks:initial=0,local_windows_len=64,second_block_count=1"

    # What is said before there is a text is what bench counts of one.
    def test_costs(self):
        for kv in ("dense", "window:100", "sinks:4+100", self.BLOCKS,
                   self.BLOCKS + ",dense_layer_num=1"):
            said = json.loads(self.ok("inspect", "-m", TINY, "--kv", kv, "-c", "301", "--json",
                                      "--kv-type", "int8", "--weights", "int8"))
            [policy] = said["policies"]
            [cost] = policy["contexts"]
            [row] = json.loads(self.ok("bench", "-m", TINY, "--kv", kv, "-p", "0", "-n", "1", "-d",
                                       "300", "--kv-type", "int8", "--weights", "int8", "-r", "1",
                                       "--no-limits", "--json"))
            self.assertEqual(row["bytes_per_token"], cost["step_bytes"], kv)
            self.assertEqual(row["kv_bytes"], cost["cache_bytes"] + cost["index_bytes"], kv)
            self.assertEqual(cost["index_bytes"] > 0, kv.startswith("blocks"))

    # By hand: 32 KiB of bf16 for a token, of int8 and its scales 17; the weights as work_test.cc
    # has them.
    def test_a_shape(self):
        said = json.loads(self.ok("inspect", "--shape", "1b", "--kv", "dense", "--kv", "sinks:4+60",
                                  "--json"))
        self.assertEqual((said["model"], said["weights"], said["kv_type"], said["bytes_per_token"]),
                         ("1b", "bf16", "bf16", 32768))
        self.assertEqual(said["step_weight_bytes"], 2 * (973078528 + 65536000))
        dense, sinks = said["policies"]
        self.assertEqual([cost["context_tokens"] for cost in dense["contexts"]],
                         [4096, 16384, 131072, 1048576])
        for cost in dense["contexts"]:
            self.assertEqual(cost["cache_bytes"], 32768 * cost["context_tokens"])
            self.assertEqual(cost["step_cache_bytes"], cost["cache_bytes"])
        for cost in sinks["contexts"]:
            self.assertEqual(cost["step_cache_bytes"], 32768 * 65)

    def test_text(self):
        said = self.ok("inspect", "--shape", "1b", "--kv", "blocks", "--kv", "recompute:512", "-c",
                       "131072")
        self.assertIn("the 48 blocks between that score highest", " ".join(said.split()))
        self.assertIn("As in KTransformers' text and its config.yaml: layer_step.",
                      " ".join(said.split()))
        self.assertIn("index  dense reads\n", said)
        self.assertIn("for every token the last 512 are processed again", " ".join(said.split()))
        self.assertLessEqual(max(map(len, said.splitlines())), 80)

    def test_refusals(self):
        def refused(*flags, code=INPUT):
            return self.refused(code, "inspect", *flags)

        self.assertIn("--shape shows what a cache policy costs: it needs --kv", refused("--shape", "1b"))
        self.assertIn("-c shows what a cache policy costs: it needs --kv",
                      refused("-c", "5", "-m", TINY))
        self.assertIn("exclude each other", refused("--kv", "dense", "--tensors"))
        self.assertIn("--kv: expected dense, window:W", refused("--kv", "dens"))
        self.assertIn("block_size is given twice",
                      refused("-m", TINY, "--kv", "blocks:block_size=64,block_size=128"))


class ActivationsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "text"
        self.text.write_text("Once upon a time there was a small bird. " * 200)
        self.command = ["inspect", "-m", TINY, "--calib", self.text, "--seq-len", "64",
                        "--samples", "4"]

    def test_a_layer(self):
        said = self.ok(*self.command, "--activations", "1")
        self.assertIn("text        4 pieces, 256 tokens\nalpha       0.5\n", said)
        names = [line for line in said.splitlines() if line.startswith("model.")]
        self.assertEqual(names, ["model.layers.1.self_attn.q_proj, k_proj, v_proj",
                                 "model.layers.1.self_attn.o_proj",
                                 "model.layers.1.mlp.gate_proj, up_proj",
                                 "model.layers.1.mlp.down_proj"])
        self.assertEqual(said.count("|x| smoothed"), 2)
        self.assertEqual(said.count("not smoothed"), 2)

    # By the formula, alpha 0.5 makes both the same: sqrt(A W), but for gains that stay exact.
    def test_every_channel(self):
        said = self.ok(*self.command, "--activations", "*.k_proj", "--json")
        result = json.loads(said)
        self.assertEqual((result["text"], result["tokens"]), (str(self.text), 256))
        self.assertEqual(len(result["linears"]), 2)
        for linear in result["linears"]:
            before, after = ([linear[of][when] for of in ("inputs", "weights")]
                             for when in ("before", "after"))
            for x, w, smooth_x, smooth_w in zip(*before, *after, strict=True):
                self.assertAlmostEqual(x * w, smooth_x * smooth_w, delta=1e-5 * x * w)
                self.assertAlmostEqual(smooth_x / smooth_w, 1, delta=0.02)
        self.assertEqual(said, self.ok(*self.command, "--activations", "*.k_proj", "--json", "-t",
                                       "3"))

    # The tiny model's own numbers; and a file without a vocabulary.
    def test_activations_of_a_gguf_model(self):
        def linears(model):
            said = self.ok(*changed(self.command, "-m", model), "--activations", "1", "--smooth",
                           "none", "--json")
            return json.loads(said)["linears"]
        self.assertEqual(linears(GOLDEN / "gguf" / "tiny_llama.gguf"), linears(TINY))
        error = self.refused(5, *changed(self.command, "-m", GOLDEN / "gguf" / "llama_q4_k.gguf"),
                             "--activations", "0")
        self.assertIn("has no vocabulary", error)

    # What is behind a layer is not computed, and the search for one alpha needs it.
    def test_a_search(self):
        for alpha in ("auto", "per-layer"):
            said = json.loads(self.ok(*self.command, "--activations", "0", "--alpha", alpha,
                                      "--smooth", "all", "--json"))
            self.assertEqual(len(said["alphas"]), 8 if alpha == "auto" else 4)
            self.assertNotIn(None, [linear["inputs"]["after"] for linear in said["linears"]])

    def test_refusals(self):
        def refused(*flags, code=INPUT):
            return self.refused(code, *self.command, *flags)

        for layer in ("2", "*.nothing", "q_proj", "lm_head", "-1"):
            self.assertIn(f"\"{layer}\": expected the number of a decoder layer, 0 to 1, or a name",
                          refused(f"--activations={layer}"))
        self.assertIn("--activations", refused("--activations", "0", "--tensors"))
        self.assertIn("--activations", refused("--activations", "0", "--weights", "int8"))
        self.assertIn("--calib has no effect without --activations", refused())
        self.assertIn("tools/plot", refused("--activations", "0", "--plot", "x.svg"))
        self.assertIn("--calib FILE",
                      self.refused(INPUT, "inspect", "-m", TINY, "--activations", "0"))
        self.assertIn("quantized already",
                      self.refused(UNSUPPORTED, *changed(
                          self.command, "-m", GOLDEN / "int8" / "llama" / "tensor_static"),
                          "--activations", "0"))

    def test_interrupted(self):
        self.text.write_text("Once upon a time there was a small bird. " * 20000)
        terminal = Terminal(self, *changed(self.command, "--samples", "100000"), "--activations",
                            "1", "--isa", "scalar", "-t", "1")
        terminal.expect("calibrating: ")
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)


if __name__ == "__main__":
    unittest.main()
