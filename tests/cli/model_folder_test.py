"""What -m may name, and what is said of everything else that people name there."""

import json
import shutil
import unittest

from harness import GOLDEN, TINY, CliTest

INPUT, IO, FORMAT, UNSUPPORTED = 2, 3, 4, 5
TINY_GGUF = GOLDEN / "gguf" / "tiny_llama.gguf"
VOCABULARIES = TINY.parent / "vocabularies"
RUN = ["run", "--temp", "0", "-p", "Once", "-n", "3"]
VERBS = (RUN, ["inspect"], ["bench"], ["chat"], ["perplexity", "-f", TINY / "config.json"], ["eval", "stream"],
         ["logits", "-p", "x", "-o", "/dev/null"], ["quantize", "--dry-run"])


class CacheTest(CliTest):
    def cache(self, hub, name="org--name"):
        cached = hub / f"models--{name}"
        (cached / "refs").mkdir(parents=True)
        (cached / "refs/main").write_text("c0ffee")
        (cached / "snapshots").mkdir()
        # As huggingface_hub has them: links to blobs.
        shutil.copytree(TINY, cached / "blobs")
        (cached / "snapshots/c0ffee").mkdir()
        for file in (cached / "blobs").iterdir():
            (cached / "snapshots/c0ffee" / file.name).symlink_to(f"../../blobs/{file.name}")
        return cached

    def test_places(self):
        expected = self.ok(*RUN, "-m", TINY)
        for place, variables in ((".cache/huggingface/hub", {}),
                                 ("xdg/huggingface/hub", {"XDG_CACHE_HOME": "xdg"}),
                                 ("home/hub", {"HF_HOME": "home"}), ("hub", {"HF_HUB_CACHE": "hub"})):
            variables = {k: str(self.folder / v) for k, v in variables.items()}
            self.refused(IO, *RUN, "-m", "org/name", variables=variables)
            cached = self.cache(self.folder / place)
            self.assertEqual(self.ok(*RUN, "-m", "org/name", variables=variables), expected)
            self.assertEqual(self.ok(*RUN, "-m", cached, variables=variables), expected)
            shutil.rmtree(cached)

    def test_a_folder_comes_first(self):
        self.cache(self.folder / "hub")
        shutil.copytree(TINY, self.folder / "org" / "name")
        facts = json.loads(self.ok("inspect", "--json", "-m", "org/name", cwd=self.folder,
                                   variables={"HF_HUB_CACHE": str(self.folder / "hub")}))
        self.assertEqual(facts["folder"], "org/name")

    def test_the_name_is_the_models(self):
        self.cache(self.folder / "hub")
        report = json.loads(self.ok("bench", "-m", "org/name", "-p", "0", "-n", "1", "-r", "1",
                                    "--no-limits", "--json",
                                    variables={"HF_HUB_CACHE": str(self.folder / "hub")}))
        self.assertEqual(report[0]["model"], "org/name")

    def gguf_cache(self, *names):
        """Of repositories of GGUF models, which may be in folders of their own."""
        cached = self.folder / "hub/models--Org--Tiny-GGUF"
        (cached / "refs").mkdir(parents=True)
        (cached / "refs/main").write_text("c0ffee\n")
        (cached / "blobs").mkdir()
        shutil.copy(TINY_GGUF, cached / "blobs/b10b")
        for name in names:
            file = cached / "snapshots/c0ffee" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.symlink_to(cached / "blobs/b10b")
        return {"HF_HUB_CACHE": str(self.folder / "hub")}

    def test_quants(self):
        variables = self.gguf_cache("Tiny-Q4_K_M.gguf", "Q8_0/Tiny-Q8_0.gguf", "mmproj-F16.gguf",
                                    "config.json")
        expected = self.ok(*RUN, "-m", TINY_GGUF)
        for quant in ("Q4_K_M", "q8_0", "Tiny-Q8_0.gguf"):
            self.assertEqual(self.ok(*RUN, "-m", f"Org/Tiny-GGUF:{quant}", variables=variables), expected)
        choice = "choose one of Org/Tiny-GGUF:Q8_0 and Org/Tiny-GGUF:Q4_K_M"
        for verb in VERBS:
            self.assertIn(f"Org/Tiny-GGUF has 2 GGUF models, expected one: {choice}",
                          self.refused(INPUT, *verb, "-m", "Org/Tiny-GGUF", variables=variables))
        message = self.refused(IO, *RUN, "-m", "Org/Tiny-GGUF:Q5_0", variables=variables)
        self.assertIn("Org/Tiny-GGUF:Q5_0: no such GGUF model in ", message)
        self.assertIn("; there is Org/Tiny-GGUF:Q8_0 and Org/Tiny-GGUF:Q4_K_M; ", message)
        self.assertIn("godwit pull Org/Tiny-GGUF:Q5_0", message)
        # The name is that by which it is found again.
        report = json.loads(self.ok("bench", "-m", "Org/Tiny-GGUF:q8_0", "-p", "0", "-n", "1", "-r", "1",
                                    "--no-limits", "--json", variables=variables))
        self.assertEqual(report[0]["model"], "Org/Tiny-GGUF:Q8_0")

    def test_one_quant_needs_no_word(self):
        variables = self.gguf_cache("Q4_K_M/Tiny.gguf")
        self.assertEqual(self.ok(*RUN, "-m", "Org/Tiny-GGUF", variables=variables),
                         self.ok(*RUN, "-m", TINY_GGUF))

    def test_quants_of_a_folder(self):
        folder = self.folder / "models"
        folder.mkdir()
        for name in ("a-Q4_0.gguf", "b-Q4_0.gguf", "b-Q6_K.gguf"):
            shutil.copy(TINY_GGUF, folder / name)
        expected = self.ok(*RUN, "-m", TINY_GGUF)
        self.assertEqual(self.ok(*RUN, "-m", f"{folder}:q6_k"), expected)
        words = [f"{folder}:{word}" for word in ("a-Q4_0", "b-Q4_0", "Q6_K")]
        self.assertIn(f"choose one of {words[0]}, {words[1]} and {words[2]}",
                      self.refused(INPUT, *RUN, "-m", folder))
        self.assertIn(f"matches 2 GGUF models, expected one: choose one of {words[0]} and {words[1]}",
                      self.refused(INPUT, *RUN, "-m", f"{folder}:Q4_0"))
        self.assertEqual(self.ok(*RUN, "-m", words[1]), expected)
        self.assertIn("no such GGUF model", self.refused(IO, *RUN, "-m", f"{folder}:Q2_K"))
        self.assertIn(", which has none", self.refused(IO, *RUN, "-m", f"{TINY}:Q2_K"))

    def test_a_missing_model(self):
        self.assertIn("godwit pull org/name-GGUF",
                      self.refused(IO, *RUN, "-m", "org/name-GGUF"))
        for verb in VERBS:
            message = self.refused(IO, *verb, "-m", "org/name")
            self.assertIn("godwit pull org/name", message)
            self.assertIn(str(self.folder / ".cache/huggingface/hub"), message)
        for name in ("/org/name", "./org/name", "org/name/", "a b/c", "org"):
            self.assertNotIn("godwit pull", self.refused(IO, *RUN, "-m", name))
        # A download that was broken off.
        cached = self.cache(self.folder / ".cache/huggingface/hub")
        (cached / "refs/main").unlink()
        self.assertIn("godwit pull", self.refused(IO, *RUN, "-m", "org/name"))


class OtherThingsTest(CliTest):
    def test_spellings(self):
        expected = self.ok(*RUN, "-m", TINY)
        self.assertEqual(self.ok(*RUN, "-m", f"{TINY}/"), expected)
        for file in ("config.json", "model.safetensors", "tokenizer.json"):
            message = self.refused(INPUT, *RUN, "-m", TINY / file)
            self.assertIn(f"{file}: expected the folder of the model, which is {TINY}", message)
        self.assertIn("which is .", self.refused(INPUT, *RUN, "-m", "config.json", cwd=TINY))
        self.assertIn(f"in one inside it: {TINY}", self.refused(IO, *RUN, "-m", TINY.parent))

    def test_gguf(self):
        """The tiny model in BF16: the same text to the token."""
        expected = self.ok(*RUN, "-m", TINY)
        self.assertEqual(self.ok(*RUN, "-m", TINY_GGUF), expected)
        shutil.copy(TINY_GGUF, self.folder)
        self.assertEqual(self.ok(*RUN, "-m", self.folder), expected)
        for arguments in (["chat", "--temp", "0"], ["tokenize", "-p", "Hello two", "--ids"]):
            self.assertEqual(self.ok(*arguments, "-m", TINY_GGUF, stdin="Hello!\n"),
                             self.ok(*arguments, "-m", TINY, stdin="Hello!\n"))

    def test_gguf_with_a_schema(self):
        arguments = (*RUN[:-1], "9", "--json-schema", '{"enum": ["a", "b"]}')
        self.assertEqual(self.ok(*arguments, "-m", TINY_GGUF), self.ok(*arguments, "-m", TINY))

    def test_broken_gguf(self):
        gguf = self.folder / "model.gguf"
        gguf.write_bytes(b"GGUF" + bytes(20))
        for verb in VERBS[:-1]:  # quantize takes none
            for model in (gguf, self.folder):
                self.assertIn("expected version 2 or 3 of GGUF, found 0",
                              self.refused(FORMAT, *verb, "-m", model))
        whole = TINY_GGUF.read_bytes()
        gguf.write_bytes(whole[:-100])
        self.assertIn("the file is cut short", self.refused(FORMAT, *RUN, "-m", gguf))
        gguf.write_bytes(whole.replace(b"llama", b"mamba"))
        self.assertIn('general.architecture: expected llama, qwen2', self.refused(UNSUPPORTED, *RUN, "-m", gguf))
        shutil.copy(TINY_GGUF, self.folder)
        self.assertIn("has 2 GGUF models, expected one", self.refused(INPUT, *RUN, "-m", self.folder))

    def test_a_file_that_is_no_gguf(self):
        for name, content, code, message in (
                ("random.gguf", bytes(range(128, 256)), FORMAT, "no GGUF magic"),
                ("short.gguf", b"GG", FORMAT, "no GGUF magic"),
                ("page.GGUF", b"<!DOCTYPE html>", FORMAT, 'found "<!DO"'),
                ("empty.gguf", b"", IO, "the file is empty"),
                ("missing.gguf", None, IO, "no such file, expected a GGUF file"),
                ("folder/missing.gguf", None, IO, "no such file, expected a GGUF file")):
            if content is not None:
                (self.folder / name).write_bytes(content)
            for verb in (RUN, ["inspect"], ["chat"], ["tokenize", "-p", "x"], ["serve"], ["pack"]):
                for path in (self.folder / name, name):
                    said = self.refused(code, *verb, "-m", path, cwd=self.folder)
                    self.assertIn(f"{path}: ", said)
                    self.assertIn(message, said)
                    self.assertNotIn("expected the folder of the model", said)

    def test_names_are_looked_at_first(self):
        """Before the vocabulary, which in a real one takes a second to read."""
        gguf = self.folder / "model.gguf"
        data = TINY_GGUF.read_bytes()
        spoilt = data.replace(b"blk.1.attn_q.weight", b"blk.1.attn_Q.weight")
        gguf.write_bytes(spoilt.replace(b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokenX"))
        message = self.refused(FORMAT, *RUN, "-m", gguf)
        self.assertIn("this checkpoint is not the llama model that its GGUF metadata describes", message)
        self.assertIn('"blk.1.attn_Q.weight"', message)
        self.assertNotIn("config.json", message)

    def test_errors_are_short(self):
        """A model of another depth: one line for each kind of problem."""
        model = self.copy_of_tiny()
        fields = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**fields, "num_hidden_layers": 9}))
        message = self.refused(FORMAT, *RUN, "-m", model)
        self.assertEqual(len(message.splitlines()), 2)
        self.assertRegex(message, r", and 6\d more like it")

    def test_ids_outside_the_vocabulary(self):
        model = self.copy_of_tiny()
        (model / "generation_config.json").write_text('{"bos_token_id": 1, "eos_token_id": 32000}')
        warning = (f"godwit: warning: {model}/generation_config.json: eos_token_id 32000 is ignored: it is "
                   "outside the vocabulary of 512\n")
        for verb in (RUN, ["inspect"]):
            result = self.godwit(*verb, "-m", model)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr.count(warning), 1, result.stderr)
            self.assertNotIn("no token ends a text", result.stderr)
        # Nothing else ends a text either.
        for name in ("config.json", "tokenizer_config.json"):
            fields = json.loads((model / name).read_text())
            fields.pop("eos_token_id", None)
            fields.pop("eos_token", None)
            (model / name).write_text(json.dumps(fields))
        (model / "special_tokens_map.json").unlink(missing_ok=True)
        self.assertIn("no token ends a text: an answer goes on until its limit",
                      self.godwit(*RUN, "-m", model).stderr)

    def test_adapter(self):
        (self.folder / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')
        (self.folder / "tokenizer.json").touch()
        for verb in VERBS:
            self.assertIn('an adapter (LoRA) of "org/base", which is not supported',
                          self.refused(UNSUPPORTED, *verb, "-m", self.folder))
        (self.folder / "adapter_config.json").write_text("[")
        self.assertIn("is an adapter (LoRA), which is not supported", self.refused(UNSUPPORTED, *RUN, "-m", self.folder))

    def test_weights_of_pytorch(self):
        model = self.copy_of_tiny()
        (model / "model.safetensors").rename(model / "pytorch_model.bin")
        for verb in (*VERBS[:3], ["quantize", "--dry-run"]):
            message = self.refused(UNSUPPORTED, *verb, "-m", model)
            self.assertIn("pytorch_model.bin", message)
            self.assertIn("save_pretrained", message)

    def test_other_quantizations(self):
        for config in ({"quant_method": "gptq", "bits": 3, "group_size": 128},
                       {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"},
                       {"quant_method": "fp8", "fmt": "e5m2"},
                       {"quant_method": "bitsandbytes", "load_in_4bit": True,
                        "bnb_4bit_quant_type": "fp4"},
                       {"quant_method": "compressed-tensors", "format": "pack-quantized",
                        "config_groups": {"group_0": {"targets": ["Linear"], "weights": {
                            "num_bits": 3, "strategy": "group", "group_size": 32}}}}):
            model = self.copy_of_tiny()
            fields = json.loads((model / "config.json").read_text())
            (model / "config.json").write_text(
                json.dumps({**fields, "quantization_config": config}))
            for verb in (RUN, ["inspect"], ["bench"]):
                self.assertIn("use --weights int8",
                              self.refused(UNSUPPORTED, *verb, "-m", model))
            shutil.rmtree(model)

    def test_no_tokenizer(self):
        model = self.copy_of_tiny()
        (model / "tokenizer.json").unlink()
        (model / "model.safetensors").write_bytes(b"never read")
        text = ["-f", TINY / "config.json"]
        for verb in (RUN, ["chat"], ["perplexity", *text], ["eval", "stream"], ["tokenize", *text],
                     ["logits", "-p", "x", "-o", "/dev/null"]):
            self.assertIn("has no tokenizer",
                          self.refused(UNSUPPORTED, *verb, "-m", model))
        (model / "vocab.txt").touch()
        self.assertIn("save_pretrained", self.refused(UNSUPPORTED, *RUN, "-m", model))
        # Ids need none, nor does a tokenizer that is not supported stand in their way.
        (model / "tokenizer.model").write_text("IQ== 0\n")
        self.assertIn("a list of tiktoken's", self.refused(UNSUPPORTED, *RUN, "-m", model))
        (model / "model.safetensors").unlink()
        shutil.copy(TINY / "model.safetensors", model)
        self.ok("logits", "--tokens", "1,2", "-o", "/dev/null", "-m", model)
        self.ok("bench", "-p", "0", "-n", "1", "-r", "1", "--no-limits", "-m", model)
        self.assertRegex(self.ok("inspect", "-m", model), "tokenizer +none: .*a list of tiktoken's")


    def test_other_tokenizers(self):
        for name, file in (("llama", "tokenizer.model"), ("qwen2", "vocab.json")):
            model = self.copy_of_tiny()
            (model / "tokenizer.json").unlink()
            for path in (VOCABULARIES / name).iterdir():
                shutil.copy(path, model)
            self.assertIn(f"tokens of {file}", self.ok("inspect", "-m", model))
            cases = json.loads((model / "cases.json").read_text())
            for case in (case for case in cases if case["name"] in ("plain", "emoji")):
                ids = self.ok("tokenize", "--ids", "-m", model, "-p", case["text"])
                self.assertEqual(json.loads(ids), case["ids"])
            self.ok(*RUN, "-m", model)
            shutil.rmtree(model)


class ConfigAloneTest(CliTest):
    def test_inspect(self):
        for model, weights in ((TINY, "auto"), (TINY, "int8"), (GOLDEN / "mixtral" / "all_experts", "auto")):
            whole = json.loads(self.ok("inspect", "--json", "-m", model, "--weights", weights))
            alone = self.folder / "alone"
            alone.mkdir()
            shutil.copy(model / "config.json", alone)
            arguments = ["inspect", "-m", alone, "--weights", weights]
            planned = json.loads(self.ok(*arguments, "--json"))
            self.assertTrue(whole["weights"].pop("present"))
            self.assertFalse(planned["weights"].pop("present"))
            for fact in ("weights", "parameters"):
                self.assertEqual(planned[fact], whole[fact])
            for kv, facts in whole["kv"].items():
                self.assertEqual(planned["kv"][kv]["bytes_per_token"], facts["bytes_per_token"])
            text = self.ok(*arguments)
            self.assertIn("no file of weights is here", text)
            self.refused(IO, "bench", "-m", alone)
            shutil.rmtree(alone)


if __name__ == "__main__":
    unittest.main()
