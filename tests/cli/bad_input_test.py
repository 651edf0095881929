"""Bad input gets one clear line and the documented exit code; nothing on standard output."""

import json
import os
import pathlib
import resource
import select
import shutil
import subprocess
import time
import unittest

from harness import BINARY, ENDLESS, GOLDEN, TINY, CliTest

RUN = ["run", "-m", TINY, "--temp", "0"]
INPUT, IO, FORMAT, UNSUPPORTED, MEMORY = 2, 3, 4, 5, 6


class UsageTest(CliTest):
    def test_verbs(self):
        self.assertIn("did you mean run?", self.refused(INPUT, "rnu"))
        self.assertIn("a verb is missing", self.refused(INPUT, "-p", "hello"))
        result = self.godwit()
        self.assertEqual((result.returncode, result.stdout), (INPUT, ""))
        self.assertIn("Usage: godwit VERB", result.stderr)

    def test_flags(self):
        self.assertIn("did you mean --top-k?", self.refused(INPUT, *RUN, "--topk", "3"))
        self.assertIn("unexpected argument \"hello\"", self.refused(INPUT, *RUN, "hello"))
        self.assertIn("-n needs a value", self.refused(INPUT, *RUN, "-n"))
        self.assertIn("-n: expected a whole number",
                      self.refused(INPUT, *RUN, "-p", "x", "-n", "many"))
        self.assertIn("-p and -f exclude each other",
                      self.refused(INPUT, "tokenize", "-m", TINY, "-p", "x", "-f", "y"))
        self.assertIn("--chat", self.refused(INPUT, *RUN, "-p", "x", "-sys", "y"))
        self.assertIn("GODWIT_TOP_K", self.refused(INPUT, *RUN, "-p", "x",
                                                   variables={"GODWIT_TOP_K": "all"}))

    def test_a_flag_is_no_value(self):
        self.assertIn("-p needs a value, found the flag --temp",
                      self.refused(INPUT, "run", "-m", TINY, "-p", "--temp", "0"))

    def test_one_flag_has_one_value(self):
        for first, second in (("-p", "--prompt"), ("-n", "-n"), ("-c", "--ctx-size"),
                              ("--kv", "--kv"), ("--logit-bias", "--logit-bias")):
            values = {"--kv": ("dense", "sinks:4+60"), "--logit-bias": ("5+1", "5+2")}
            one, other = values.get(first, ("1", "2"))
            with self.subTest(flag=first):
                message = self.refused(INPUT, *RUN, first, one, second, other)
                self.assertRegex(message, "contradict each other|has two biases")
                self.assertNotIn("\n", message)
        self.assertEqual(self.ok(*RUN, "-p", "Once", "-n", "3", "-n", "3"),
                         self.ok(*RUN, "-p", "Once", "-n", "3"))
        file = self.folder / "schema"
        file.write_text('{"type": "object"}')
        self.assertIn("exclude each other", self.refused(
            INPUT, *RUN, "-p", "x", "-j", '{"type": "array"}', "--json-schema-file", file))

    def test_flags_without_effect(self):
        text = ["-p", "Once"]
        for flags, missing in ((["-f", __file__, "-e"], "--prompt"),
                               ([*text, "--cache-size", "1G"], "--cache or --cache-dir"),
                               ([*text, "--logprobs", "1"], "--json")):
            self.assertIn(f"has no effect without {missing}", self.refused(INPUT, *RUN, *flags))
        for command, missing in ((["inspect", "-m", TINY, "--alpha", "0.6"], "--activations"),
                                 (["bench", "-m", TINY, "--network-us", "9"], "--ranks")):
            self.assertIn(f"has no effect without {missing}", self.refused(INPUT, *command))
        for command in (["perplexity", "-m", TINY, "-f", __file__, "--kv", "dense", "--compare",
                         "dense,window:9"],
                        ["tokenize", "-m", TINY, "--decode", "1", "--ids"],
                        ["tokenize", "-m", TINY, "--decode", "1", "--no-bos"]):
            self.assertIn("exclude each other", self.refused(INPUT, *command))

    def test_flags_of_llama_cpp(self):
        # Not -n with the value gl.
        self.assertIn("there is no \"-ngl\": models run on the processor",
                      self.refused(INPUT, *RUN, "-ngl", "99"))
        for flags in (["-fa", "on"], ["--mlock"], ["--no-mmap"], ["-hf", "org/name"],
                      ["-ctk", "f16"], ["-b", "64"], ["-cnv"], ["--log-disable"],
                      ["--alias", "x"], ["--prompt-cache", "x"], ["--keep", "4"],
                      ["--grammar", "x"], ["--lora", "x"], ["--rope-scale", "2"], ["-v"],
                      ["--draft-max", "8"], ["--no-display-prompt"], ["--jinja"],
                      ["--mirostat", "2"]):
            self.assertIn(f"there is no \"{flags[0]}\": ", self.refused(INPUT, *RUN, *flags))
        for verb, flag in (("serve", "--api-key"), ("serve", "-sys"), ("serve", "-a"),
                           ("batch", "-v"), ("chat", "-p"), ("tokenize", "-sys")):
            with self.subTest(verb=verb, flag=flag):
                self.assertIn(f"there is no \"{flag}\": ",
                              self.refused(INPUT, verb, "-m", TINY, flag, "x"))

    def test_earlier_names(self):
        for verb in (["perplexity"], ["eval", "quant"]):
            self.assertIn("--max-tokens now", self.refused(INPUT, *verb, "--tokens", "9"))
        self.assertIn("it is called -o now", self.refused(INPUT, "eval", "stream", "--jsonl", "x"))
        self.assertIn("--jsonl now", self.refused(INPUT, "perplexity", "--nll", "x"))

    def test_suggestions(self):
        for flag, value, meant in (("--KV", "dense", "--kv"), ("--weights", "BF16", "bf16"),
                                   ("--kv-type", "Int8", "int8"), ("--kv", "Sinks:4+60", "sinks"),
                                   ("--isa", "Scalar", "scalar"), ("--numa", "nnoe", "none")):
            with self.subTest(flag=flag):
                self.assertIn(f"; did you mean {meant}?", self.refused(INPUT, *RUN, flag, value))
        for flag, value, meant in (("--tasks", "piqa,Arc_easy", "arc_easy"),
                                   ("--tasks", "booolq", "boolq")):
            self.assertIn(f"; did you mean {meant}?",
                          self.refused(INPUT, "eval", "tasks", flag, value))
        self.assertIn("; did you mean llm-int8?",
                      self.refused(INPUT, "quantize", "--scheme", "llm_int8"))

    def test_values_that_make_no_sense(self):
        for flag, value in (("--temp", "-1"), ("--temp", "nan"), ("--top-p", "2"),
                            ("--top-k", "-1"), ("--repeat-penalty", "0"),
                            ("--logit-bias", "5"), ("--logit-bias", "512+1"), ("-c", "-1"),
                            ("-ub", "0"), ("-t", "-2"), ("-t", "100000"), ("-s", "-2"),
                            ("--isa", "abacus"), ("--stop", ""), ("--kv-type", "f64"),
                            ("-n", "-2"), ("-n", "99999999999999999999")):
            with self.subTest(flag=flag, value=value):
                self.refused(INPUT, *RUN, "-p", "x", flag, value)

    def test_kv_type_is_refused_before_anything_is_loaded(self):
        self.assertIn("--kv-type: expected auto, f32, f16, bf16, int8, k8v4 or int4 as KV type, "
                      "found \"f64\"",
                      self.refused(INPUT, "run", "-m", "/missing", "-p", "x", "--kv-type", "f64"))

    def test_weight_type_is_refused_before_anything_is_loaded(self):
        self.assertIn("--weights: expected auto, f32, bf16, int8 or int4 as weight type, found \"q4\"",
                      self.refused(INPUT, "run", "-m", "/missing", "-p", "x", "--weights", "q4"))

    def test_kv(self):
        message = self.refused(INPUT, *RUN, "-p", "x", "--kv", "dens")
        self.assertIn("dens", message)
        self.assertIn("sinks:S+W", message)
        for spec in ("sinks", "sinks:", "sinks:4", "sinks:4+0", "sinks:-1+4", "sinks:4+x",
                     "dense:3", "sinks:4+60,pin=64", "sinks:4+60,pin=x", ""):
            with self.subTest(spec=spec):
                self.refused(INPUT, *RUN, "-p", "x", "--kv", spec)


    def test_recompute_is_for_measurements(self):
        for command in (RUN + ["-p", "x"], ["chat", "-m", TINY], ["bench", "-m", TINY],
                        ["logits", "-m", TINY, "-p", "x", "-o", self.folder / "x.npy"]):
            with self.subTest(command=command):
                message = self.refused(INPUT, *command, "--kv", "recompute:9")
                self.assertIn("\"recompute:9\"", message)
                self.assertIn("only godwit perplexity and godwit eval stream take it", message)
                self.assertNotIn("recompute", self.ok(command[0], "--help"))

    def test_a_cache_longer_than_the_model_was_made_for_is_said(self):
        for flags, warned in ((["--kv", "sinks:4+1021"], True), (["--kv", "sinks:4+1020"], False),
                              (["-c", "1025"], True)):
            with self.subTest(flags=flags):
                result = self.godwit(*RUN, "-p", "x", "-n", "1", *flags)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual("keeps up to 1025 tokens, and the model was made for 1024"
                                 in result.stderr, warned)


class PromptTest(CliTest):
    def test_no_model_and_no_text(self):
        alone = shutil.copy(BINARY, self.folder)  # away from the project's own model
        self.assertIn("GODWIT_MODEL", self.refused(INPUT, "run", "-p", "hello", binary=alone))
        self.assertIn("-p TEXT", self.refused(INPUT, *RUN))

    def test_empty(self):
        empty = self.folder / "empty"
        empty.touch()
        for flags in (["-p", ""], ["-f", empty], ["-f", "-"], ["-p", "", "--chat"]):
            self.assertIn("empty", self.refused(INPUT, *RUN, *flags))
        self.assertIn("empty", self.refused(INPUT, "logits", "-m", TINY, "--tokens", "",
                                            "-o", self.folder / "out.npy"))

    def test_files(self):
        self.assertIn(str(self.folder), self.refused(IO, *RUN, "-f", self.folder))
        missing = self.folder / "missing.txt"
        self.assertIn(f"{missing}: No such file", self.refused(IO, *RUN, "-f", missing))

    def test_too_long(self):
        text = "bird " * 2000
        file = self.folder / "long.txt"
        file.write_text(text)
        for verb, tokens in ((RUN, 2004), ([*RUN, "--chat"], 2015)):
            message = self.refused(INPUT, *verb, "-f", file)
            for part in (f"the prompt has {tokens} tokens", "--kv sinks"):
                self.assertIn(part, message)
        message = self.refused(INPUT, *RUN, "-c", "10", "-p", "bird " * 20)
        self.assertIn("10", message)
        self.assertIn("-c", message)

    def test_longer_than_the_table_of_positions(self):
        opt = ["logits", "-m", GOLDEN / "opt" / "whole_table", "-o", self.folder / "out.npy",
               "--tokens", ",".join("7" * 65)]
        message = self.refused(INPUT, *opt)
        self.assertIn("the prompt has 65 tokens and the context holds 64", message)
        self.assertNotIn("sinks", message)
        self.assertIn("learned positions for 64 tokens", self.refused(INPUT, *opt, "-c", "65"))
        message = self.refused(UNSUPPORTED, *opt, "--kv", "sinks:4+8")
        self.assertIn("learned positions", message)

    def test_tokens(self):
        out = self.folder / "out.npy"
        self.assertIn("512", self.refused(INPUT, "logits", "-m", TINY, "--tokens", "1,512",
                                          "-o", out))
        self.refused(INPUT, "logits", "-m", TINY, "--tokens", "-1", "-o", out)
        self.refused(INPUT, "logits", "-m", TINY, "--tokens", "one", "-o", out)
        self.refused(INPUT, "tokenize", "-m", TINY, "--decode", "-1")
        self.assertIn("-o", self.refused(INPUT, "logits", "-m", TINY, "--tokens", "1"))
        self.assertEqual(list(self.folder.iterdir()), [])


class ModelTest(CliTest):
    def test_folder(self):
        for verb in (["run", "-p", "x"], ["inspect"], ["chat"]):
            self.assertIn("/missing", self.refused(IO, *verb, "-m", "/missing"))
            self.assertIn("expected the folder of the model",
                          self.refused(INPUT, *verb, "-m", TINY / "config.json"))
        self.refused(IO, "run", "-p", "x", "-m", self.folder)
        self.refused(IO, "tokenize", "-p", "x", "-m", self.folder)
        for verb in (["run", "-p", "x"], ["inspect"], ["chat"], ["tokenize", "-p", "x"]):
            self.assertIn("File name too long", self.refused(IO, *verb, "-m", "a" * 5000))

    def corrupt(self, name, change):
        model = self.copy_of_tiny()
        (model / name).write_bytes(change((TINY / name).read_bytes()))
        return model

    def test_corrupt_config(self):
        model = self.corrupt("config.json", lambda b: b[:100])
        for verb in (["run", "-p", "x"], ["inspect"]):
            self.assertIn("config.json", self.refused(FORMAT, *verb, "-m", model))

    def test_invalid_token_ids(self):
        model = self.copy_of_tiny()
        for file in ("config.json", "generation_config.json"):
            path = model / file
            before = path.read_text() if path.exists() else "{}"
            for ids in ("x", -5, 2**31, [2, -5]):
                path.write_text(json.dumps(json.loads(before) | {"eos_token_id": ids}))
                for verb in (["run", "-p", "x"], ["inspect"]):
                    message = self.refused(FORMAT, *verb, "-m", model)
                    self.assertIn(f'/{file}: "eos_token_id" must be a token id from 0 to 511', message)
            path.write_text(before)

    def test_unknown_family(self):
        model = self.corrupt("config.json", lambda b: b.replace(b'"llama"', b'"zebra"'))
        for verb in (["run", "-p", "x"], ["inspect"]):
            message = self.refused(UNSUPPORTED, *verb, "-m", model)
            self.assertIn("zebra", message)
            self.assertIn("the nearest family is llama", message)
            self.assertIn("its tensor names are those of that family", message)

    def test_other_quantization(self):
        other = b'"quantization_config": {"quant_method": "hqq"}, "model_type"'
        model = self.corrupt("config.json", lambda b: b.replace(b'"model_type"', other))
        for verb in (["run", "-p", "x"], ["inspect"]):
            self.assertIn("quantization_config.quant_method: expected compressed-tensors or "
                          "bitsandbytes or gptq or awq or mxfp4 or fp8 or fbgemm_fp8 or modelopt, found "
                          "\"hqq\"",
                          self.refused(UNSUPPORTED, *verb, "-m", model))

    def test_corrupt_weights(self):
        model = self.corrupt("model.safetensors", lambda b: b[:-1000])
        for verb in (["run", "-p", "x"], ["inspect"]):
            self.assertIn("model.safetensors", self.refused(FORMAT, *verb, "-m", model))

    def test_foreign_weights(self):
        model = self.corrupt("config.json",
                             lambda b: b.replace(b'"hidden_size": 64', b'"hidden_size": 32'))
        message = self.refused(FORMAT, "run", "-p", "x", "-m", model)
        self.assertIn("model.embed_tokens.weight", message)
        # inspect shows what there is, and then says what is wrong.
        result = self.godwit("inspect", "-m", model)
        self.assertEqual(result.returncode, FORMAT)
        self.assertIn("model.embed_tokens.weight", result.stdout)
        self.assertIn("model.embed_tokens.weight", result.stderr)

    def test_nan_weights_are_named(self):
        model = self.corrupt("model.safetensors", lambda b: b[:-2] + b"\xc0\x7f")
        result = self.godwit("run", "-m", model, "-p", "x", "-n", "1")
        self.assertRegex(result.stderr, r"^godwit: warning: tensor model\.\S+ holds NaN\n")

    def test_corrupt_tokenizer(self):
        model = self.corrupt("tokenizer.json", lambda b: b[:5000])
        for verb in ("run", "tokenize"):
            self.assertIn("tokenizer.json",
                          self.refused(FORMAT, verb, "-p", "x", "-m", model))

    def limited(self, address_space_bytes, *arguments):
        if b"__asan_init" in pathlib.Path(BINARY).read_bytes():
            self.skipTest("the address sanitizer takes terabytes of address space")
        return self.godwit(*arguments, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (address_space_bytes, address_space_bytes)))

    def test_a_long_prompt_and_little_memory(self):
        text = self.folder / "text"
        text.write_text("The bird flies over the sea. " * 690000)
        result = self.limited(500 << 20, *RUN, "-f", text)
        self.assertIn(result.returncode, (INPUT, MEMORY))  # whichever limit it meets first
        self.assertRegex(result.stderr, r"\Agodwit: [^\n]+\n\Z")

    def test_too_little_memory_for_a_tokenizer(self):
        for mebibytes in (20, 40, 60):
            result = self.limited(mebibytes << 20, "tokenize", "-m", TINY, "-p", "x")
            self.assertEqual(result.returncode, MEMORY)
            self.assertRegex(result.stderr, r"\Agodwit: [^\n]+memory[^\n]*\n\Z")

    def test_token_ids_beyond_the_vocabulary(self):
        def with_two_more(text):
            tokenizer = json.loads(text)
            for id in (512, 513):
                tokenizer["added_tokens"].append(
                    {**tokenizer["added_tokens"][0], "id": id, "content": f"<more {id}>"})
            return json.dumps(tokenizer).encode()

        model = self.corrupt("tokenizer.json", with_two_more)
        run = ["run", "-m", model, "--temp", "0", "-n", "5"]
        result = self.godwit(*run, "-p", "Once")
        self.assertEqual((result.returncode, result.stdout),
                         (0, self.ok(*RUN, "-n", "5", "-p", "Once")))
        self.assertEqual(result.stderr,
                         "godwit: warning: tokenizer.json has token ids up to 513, but the model's "
                         "vocab_size is 512: texts with one of the 2 higher ids are refused\n")
        for id in (512, 513):
            self.assertIn(f"token id {id} is outside the model's vocabulary of 512",
                          self.refused(INPUT, *run, "-q", "-p", f"Once <more {id}> upon"))
        text = self.folder / "beyond.txt"
        text.write_text("Once upon a time <more 513> " * 200)
        for verb in (["train-heads", "-t", "1", "-o", self.folder / "heads"],
                     ["eval", "text", "--step-ms", "1:20,8:21", "--draft", "ngram"]):
            self.assertIn("token id 513 is outside the model's vocabulary of 512",
                          self.refused(INPUT, *verb, "-m", model, "-f", text))

    def test_a_frame_beyond_the_vocabulary(self):
        def with_another_start(text):
            tokenizer = json.loads(text)
            tokenizer["added_tokens"].append(
                {**tokenizer["added_tokens"][0], "id": 512, "content": "<start>"})
            parts = tokenizer["post_processor"]
            parts = parts["processors"] if parts["type"] == "Sequence" else [parts]
            template, = [part for part in parts if part["type"] == "TemplateProcessing"]
            for token in template["special_tokens"].values():
                token["ids"] = [512]
            return json.dumps(tokenizer).encode()

        model = self.corrupt("tokenizer.json", with_another_start)
        self.assertIn("tokenizer.json adds token id 512 to every text, but the model's "
                      "vocab_size is 512", self.refused(FORMAT, "run", "-m", model, "-p", "Once"))

    # Beside the program comes first, whatever lies there.
    def test_a_worker_that_is_not_ours(self):
        program = self.folder / "godwit"
        shutil.copy(BINARY, program)
        worker = self.folder / "godwit-text"
        for script, reason in (("exit 90", "belongs to another version of this program"),
                               ("exit 7", "left with exit code 7"),
                               ("kill -TERM $$", "was ended by signal 15"),
                               ("echo nonsense, and more of it >&0; cat", "a reply of")):
            worker.write_text(f"#!/bin/sh\n{script}\n")
            worker.chmod(0o755)
            message = self.refused(IO, "tokenize", "-m", TINY, "-p", "x", binary=program)
            self.assertIn(reason, message)

    def test_no_tokenizer(self):
        model = self.copy_of_tiny()
        (model / "tokenizer.json").unlink()
        self.assertIn("tokenizer.json", self.refused(UNSUPPORTED, "run", "-p", "x", "-m", model))

    def test_templates(self):
        model = self.corrupt("tokenizer_config.json",
                             lambda b: b.replace(b"{%- endfor %}", b"{%- endfro %}"))
        self.assertIn("tokenizer_config.json",
                      self.refused(FORMAT, "run", "--chat", "-p", "x", "-m", model))

    def test_no_template(self):
        model = self.corrupt("tokenizer_config.json",
                             lambda b: b.replace(b'"chat_template"', b'"no_template"'))
        self.assertIn("chat template",
                      self.refused(UNSUPPORTED, "run", "--chat", "-p", "x", "-m", model))


class OutputTest(CliTest):
    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            for verb in ([*RUN, "-p", "x"], [*RUN, "-p", "x", "--json"], ["inspect", "-m", TINY],
                         ["tokenize", "-m", TINY, "-p", "x"], ["--help"], ["run", "--help"],
                         ["logits", "-m", TINY, "-p", "x", "-o", "-"]):
                self.assertIn("No space left", self.refused(IO, *verb, stdout=full))
        self.assertIn("No space left",
                      self.refused(IO, "logits", "-m", TINY, "-p", "x", "-o", "/dev/full"))

    def test_full_disk_leaves_no_half_file(self):
        out = self.folder / "out.npy"
        message = self.refused(
            IO, "logits", "-m", TINY, "--tokens", ",".join(["5"] * 100), "-o", out,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000)))
        self.assertIn("out.npy", message)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_unwritable(self):
        self.refused(IO, "logits", "-m", TINY, "-p", "x", "-o", self.folder / "no" / "out.npy")
        self.refused(IO, "logits", "-m", TINY, "-p", "x", "-o", self.folder)

    def test_full_disk_ends_an_endless_text(self):
        with open("/dev/full", "w") as full:
            self.refused(IO, "run", "-m", TINY, *ENDLESS, "-p", "x", stdout=full)

    def test_closed_pipe_is_quiet(self):
        for verb in ([*RUN, "-p", "x"], ["run", "-m", TINY, *ENDLESS, "-p", "x"], ["--help"]):
            reader, writer = os.pipe()
            os.close(reader)
            result = self.godwit(*verb, stdout=writer)
            os.close(writer)
            self.assertEqual((result.returncode, result.stderr), (IO, ""))

    def test_output_that_does_not_block(self):
        file = self.folder / "text"
        file.write_text("bird " * 20000)
        arguments = ["tokenize", "-m", TINY, "-f", file]
        expected = self.ok(*arguments)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        process = self.start(*arguments, stdout=writer)
        # Nobody reads before the pipe is full.
        while process.poll() is None and select.select([], [writer], [], 0)[1]:
            time.sleep(0.01)
        os.close(writer)
        with open(reader, "rb") as pipe:
            output = pipe.read().decode()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(output, expected)

    def test_no_standard_output(self):
        message = self.refused(IO, *RUN, "-p", "x", stdout=subprocess.DEVNULL,
                               preexec_fn=lambda: os.close(1))
        self.assertIn("standard output", message)


if __name__ == "__main__":
    unittest.main()
