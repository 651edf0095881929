"""godwit run: the continuation, its JSON, its flags and their environment variables."""

import json
import math
import pathlib
import re
import shutil
import unittest

from harness import BINARY, ENDLESS, EXPECTED, TINY, CliTest, Terminal
from logits_test import read_npy

STORY = EXPECTED["complete"][0]
GREEDY = ["run", "-m", TINY, "--temp", "0"]


class RunTest(CliTest):
    def test_greedy_continuations(self):
        for case in EXPECTED["complete"]:
            self.assertEqual(self.ok(*GREEDY, "-p", case["prompt"]), case["new_text"])

    def test_chat_template(self):
        for case in EXPECTED["chat"]:
            messages = case["messages"]
            arguments = ["--chat", "-p", messages[-1]["content"]]
            if messages[0]["role"] == "system":
                arguments += ["-sys", messages[0]["content"]]
            if len(messages) > 2:
                continue
            self.assertEqual(self.ok(*GREEDY, *arguments), case["new_text"])

    def test_json(self):
        result = json.loads(self.ok(*GREEDY, "-p", STORY["prompt"], "--json", "-s", "7"))
        self.assertEqual(list(result), ["text", "tokens", "prompt_tokens", "cached_tokens",
                                        "disk_tokens", "read_tokens", "generated_tokens",
                                        "finish_reason", "sampler", "seed", "kv", "timings", "load"])
        load = result["load"]
        self.assertAlmostEqual(load["ms"], load["weights_ms"] + load["tokenizer_ms"] +
                               load["other_ms"], delta=1e-6)
        self.assertGreater(min(load.values()), 0)
        self.assertEqual(result["text"], STORY["new_text"])
        self.assertEqual(result["tokens"], STORY["new_tokens"])
        self.assertEqual(result["prompt_tokens"], len(STORY["tokens"]))
        self.assertEqual(result["cached_tokens"], 0)
        self.assertEqual(result["read_tokens"], len(STORY["tokens"]))
        self.assertEqual(result["generated_tokens"], len(STORY["new_tokens"]))
        self.assertEqual(result["finish_reason"], "stop")
        self.assertEqual(result["seed"], 7)
        # The last token was never read.
        seen = len(STORY["tokens"]) + len(STORY["new_tokens"]) - 1
        self.assertEqual({k: result["kv"][k] for k in ("policy", "seen", "kept")},
                         {"policy": "dense", "seen": seen, "kept": seen})
        self.assertGreater(result["kv"]["bytes"], 0)
        self.assertEqual(list(result["timings"]), ["prompt_ms", "prompt_per_second",
                                                   "predicted_ms", "predicted_per_second"])
        for value in result["timings"].values():
            self.assertGreater(value, 0)

    def test_limit(self):
        result = json.loads(self.ok(*GREEDY, "-p", STORY["prompt"], "-n", "5", "--json"))
        self.assertEqual(result["tokens"], STORY["new_tokens"][:5])
        self.assertEqual(result["finish_reason"], "length")

    def test_dropped_tokens_are_reported(self):
        result = json.loads(self.ok("run", "-m", TINY, *ENDLESS, "-p", STORY["prompt"], "-n",
                                    "100", "--json"))
        self.assertEqual(result["kv"]["policy"], "sinks:4+60")
        self.assertEqual(result["kv"]["seen"], len(STORY["tokens"]) + 99)
        self.assertEqual(result["kv"]["kept"], 64)
        self.assertEqual(result["kv"]["dropped"], len(STORY["tokens"]) + 35)
        self.assertEqual(result["kv"]["dropped_spans"],
                         [[4, 4 + result["kv"]["dropped"]]])

    def test_a_context_read_by_a_window(self):
        def run(*flags):
            return json.loads(self.ok(*GREEDY, "-p", STORY["prompt"], "-n", "5", "--json", *flags))

        n = len(STORY["tokens"])
        result = run("--prefill", "window:1", "--query-tokens", "3", "--logprobs", "0")
        self.assertEqual(result["kv"]["policy"], "dense, read by window:1")
        self.assertEqual(result["kv"]["context_tokens"], n - 3)
        self.assertEqual(result["kv"]["kept"], n + 4)
        plain = run("--logprobs", "0")
        self.assertNotIn("context_tokens", plain["kv"])
        self.assertNotEqual(result["logprobs"], plain["logprobs"])
        for ample in (["--prefill", f"window:{n}"],
                      ["--prefill", "window:1", "--query-tokens", str(n)]):
            self.assertEqual(run("--logprobs", "0", *ample)["logprobs"], plain["logprobs"])
        star = run("--prefill", "star", "--logprobs", "0")
        self.assertEqual(star["kv"]["policy"], "dense, read by star:block=32768,anchor=32768")
        self.assertEqual(star["logprobs"], plain["logprobs"])
        short = run("--prefill", "star:block=2,anchor=1", "--logprobs", "0")
        self.assertNotEqual(short["logprobs"], plain["logprobs"])
        self.assertIn("an anchor of 3 tokens is longer than a block of 2",
                      self.refused(2, *GREEDY, "-p", "x", "--prefill", "star:block=2,anchor=3"))
        for wrong in ("window:0", "window", "dense"):
            self.assertIn("W >= 1", self.refused(2, *GREEDY, "-p", "x", "--prefill", wrong))
        self.refused(2, *GREEDY, "-p", "x", "--query-tokens", "0")
        self.refused(2, "perplexity", "-m", TINY, "-f", __file__, "--prefill", "window:9")

    def test_stop_strings(self):
        for flag in ("-r", "--reverse-prompt", "--stop"):
            text = self.ok(*GREEDY, "-p", STORY["prompt"], flag, "small bird", flag, "never")
            self.assertEqual(text, " there was a ")

    def test_seed_repeats_a_run(self):
        arguments = ["run", "-m", TINY, "-p", "The", "-n", "30", "--temp", "3", "--top-k", "0",
                     "--top-p", "1", "--min-p", "0", "--json"]
        first = json.loads(self.ok(*arguments))
        again = json.loads(self.ok(*arguments, "-s", first["seed"]))
        self.assertEqual(first["tokens"], again["tokens"])
        other = json.loads(self.ok(*arguments))
        self.assertNotEqual(first["seed"], other["seed"])

    LOTS = ["--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-n", "30"]

    def test_samples(self):
        run = ["run", "-m", TINY, "-p", STORY["prompt"] * 20, *self.LOTS, "-s", "3"]
        result = json.loads(self.ok(*run, "--samples", "3", "--json"))
        self.assertEqual(list(result), ["answers", "sampler", "seed", "load"])
        answers = result["answers"]
        self.assertEqual(len({str(answer["tokens"]) for answer in answers}), 3)
        self.assertEqual(answers[0]["tokens"], json.loads(self.ok(*run, "--json"))["tokens"])
        # The others read no more of the prompt than what does not fill a page of 64 tokens.
        for answer in answers[1:]:
            self.assertGreater(answer["prompt_tokens"], 64)
            self.assertLess(answer["read_tokens"], 64)
            self.assertEqual(answer["read_tokens"] + answer["cached_tokens"],
                             answer["prompt_tokens"])
        for answer in answers:
            self.assertEqual(len(answer["logprobs"]), len(answer["tokens"]))
            self.assertEqual({str(entry["top_logprobs"]) for entry in answer["logprobs"]}, {"[]"})
        # Any number of them has the same ones.
        fewer = json.loads(self.ok(*run, "--samples", "2", "--json"))["answers"]
        self.assertEqual([answer["tokens"] for answer in fewer],
                         [answer["tokens"] for answer in answers[:2]])
        texts = "".join(f"{chr(10) if i else ''}--- {i + 1} of 3 ---\n{answer['text']}"
                        f"{'' if answer['text'].endswith(chr(10)) else chr(10)}"
                        for i, answer in enumerate(answers))
        self.assertEqual(self.ok(*run, "--samples", "3"), texts)
        self.assertEqual(self.ok(*run, "--samples", "1").splitlines()[0], "--- 1 of 1 ---")

    def test_samples_of_other_verbs(self):
        samples = lambda **variables: len(json.loads(self.ok(
            *GREEDY, "-p", "The", "--json", variables=variables)).get("answers", []))
        self.assertEqual(samples(GODWIT_RUN_SAMPLES="2"), 2)
        self.assertEqual(samples(GODWIT_SAMPLES="2", GODWIT_QUANTIZE_SAMPLES="2"), 0)

    def test_number_of_samples(self):
        for count in ("0", "-1", "129", "many"):
            self.assertIn(f'--samples: expected a whole number from 1 to 128, found "{count}"',
                          self.refused(2, *GREEDY, "-p", "x", "--samples", count))

    def test_log_probabilities(self):
        run = ["run", "-m", TINY, "-p", STORY["prompt"], *self.LOTS, "-s", "3", "--json"]
        result = json.loads(self.ok(*run, "--logprobs", "3"))
        tokens = STORY["tokens"] + result["tokens"]
        out = self.folder / "out.npy"
        self.ok("logits", "-m", TINY, "--tokens", json.dumps(tokens), "-o", out)
        (_, vocab), logits = read_npy(out.read_bytes())
        text = ""
        for i, entry in enumerate(result["logprobs"]):
            at = len(STORY["tokens"]) - 1 + i
            row = logits[at * vocab:(at + 1) * vocab]
            log_sum = math.log(math.fsum(map(math.exp, row)))
            self.assertAlmostEqual(entry["logprob"], row[result["tokens"][i]] - log_sum, places=4)
            self.assertEqual([round(top["logprob"], 3) for top in entry["top_logprobs"]],
                             [round(logit - log_sum, 3) for logit in sorted(row)[:-4:-1]])
            if entry["bytes"] is not None:
                self.assertEqual(bytes(entry["bytes"]).decode(), entry["token"])
            text += entry["token"]
        if result["finish_reason"] == "length":
            self.assertEqual(text, result["text"])
        self.assertNotIn("logprobs", json.loads(self.ok(*run)))
        self.assertEqual("--logprobs has no effect without --json",
                         self.refused(2, *GREEDY, "-p", "x", "--logprobs", "3"))

    # A page of the cache is what there must be; with less than the text takes it is refused.
    def test_kv_memory(self):
        long = ["-p", STORY["prompt"] * 30]
        self.assertEqual(self.ok(*GREEDY, "-n", "5", *long, "--kv-memory", "1G"),
                         self.ok(*GREEDY, "-n", "5", *long))
        self.assertIn("KV memory", self.refused(6, *GREEDY, *long, "--kv-memory", "1K"))
        longer = [*GREEDY, "-n", "1", "-p", STORY["prompt"] * 60, "--kv-memory", "100K"]
        message = self.refused(6, *longer)
        self.assertNotIn("--kv sinks", message, "a step takes more tokens than that")
        self.ok(*longer, "--kv-type", message.split("--kv-type ")[1])
        longest = [*GREEDY, "-n", "1", "-p", STORY["prompt"] * 143, "--kv-memory", "250K"]
        self.ok(*longest, "--kv", re.search(r"--kv (sinks\S+),", self.refused(6, *longest))[1])
        self.assertIn("--kv-memory: expected an amount of memory such as 8G or 512M, found \"all\"",
                      self.refused(2, *GREEDY, *long, "--kv-memory", "all"))

    # The same text, whether or not its cache is in memory.
    def test_kv_file(self):
        long = [*GREEDY, "-n", "5", "-p", STORY["prompt"] * 30]
        kv = json.loads(self.ok(*long, "--json"))["kv"]
        self.assertNotIn("in_memory_bytes", kv)
        disk = self.folder / "disk"
        disk.mkdir()
        for path in (disk, f"{disk}:64M", disk / "new", f"{disk / 'new'}:64M"):
            flags = ["--kv-file", path, "--kv-memory", kv["bytes"] // 4]
            self.assertEqual(self.ok(*long, *flags), self.ok(*long))
            in_file = json.loads(self.ok(*long, *flags, "--json"))["kv"]
            self.assertLess(in_file["in_memory_bytes"], in_file["bytes"])
            self.assertGreater(in_file["file_read_bytes"], 0)
            self.assertEqual(list(disk.iterdir()), [])
        self.assertIn("are available for KV caches",
                      self.refused(6, *long, "--kv-file", f"{disk}:{kv['bytes'] // 4}"))
        (disk / "mine").write_text("text")
        self.assertIn("mine: cannot make a file", self.refused(3, *long, "--kv-file", disk / "mine"))
        self.assertEqual((disk / "mine").read_text(), "text")
        self.assertIn("--kv-file: expected an amount of memory",
                      self.refused(2, *long, "--kv-file", f"{disk}:5X"))
        self.refused(2, *long, "--kv-file", "")

    def recommending(self, **fields):
        """A model whose generation_config.json says so."""
        model = self.folder / "recommending"
        if not model.exists():
            shutil.copytree(TINY, model)
        (model / "generation_config.json").write_text(json.dumps(fields))
        return model

    def sampler(self, model, *flags):
        return json.loads(self.ok("run", "-m", model, "-p", "The", "-n", "2", "--json",
                                  *flags))["sampler"]

    def test_sampling_as_the_model_recommends_unless_told(self):
        model = self.recommending(do_sample=True, temperature=0.6, top_p=0.8,
                                  repetition_penalty=1.05)
        sampler = self.sampler(model)
        self.assertEqual(sampler, {
            "samplers": ["penalties", "top_k", "top_p", "min_p", "eta", "temperature"],
            "repeat_last_n": -1, "repeat_penalty": 1.05, "presence_penalty": 0,
            "frequency_penalty": 0, "top_k": 40, "top_p": 0.8, "min_p": 0.05, "eta": 0,
            "temperature": 0.6,
            "from_model": ["repeat_last_n", "repeat_penalty", "temperature", "top_p"]})
        sampler = self.sampler(model, "--temp", "0.8", "--repeat-penalty", "1")
        self.assertEqual((sampler["temperature"], sampler["from_model"]), (0.8, ["top_p"]))

    def test_do_sample_false_is_greedy(self):
        model = self.recommending(do_sample=False, temperature=0.6)
        run = ["run", "-m", model, "-p", STORY["prompt"], "-n", "20"]
        self.assertEqual(self.ok(*run), self.ok(*run, "--temp", "0"))
        self.assertEqual(self.sampler(model)["temperature"], 0)

    def test_bad_recommendations_are_refused_unless_overridden(self):
        model = self.recommending(top_p=7)
        run = ["run", "-m", model, "-p", "The", "-n", "2"]
        message = f"{model}/generation_config.json: top_p: expected a number from 0 to 1, found 7"
        self.assertEqual(self.refused(4, *run), message)
        result = self.godwit(*run, "--top-p", "0.9")
        self.assertEqual((result.returncode, result.stderr), (0, f"godwit: warning: {message}\n"))
        self.ok("tokenize", "-m", model, "-p", "The")  # which does not sample

    def test_unsupported_recommendations_give_a_warning(self):
        result = self.godwit("run", "-m", self.recommending(num_beams=4), "-p", "The", "-n", "2")
        self.assertEqual(result.returncode, 0)
        self.assertIn("generation_config.json: num_beams: 4 is ignored", result.stderr)

    def test_samplers_name_an_order(self):
        self.assertEqual(self.sampler(TINY, "--samplers", "min-p;temperature")["samplers"],
                         ["min_p", "temperature"])
        self.assertIn("did you mean top_k?",
                      self.refused(2, *GREEDY, "-p", "x", "--samplers", "top_l;temperature"))
        self.refused(5, *GREEDY, "-p", "x", "--samplers", "dry;temperature")

    def test_logit_bias_bans_a_token(self):
        banned = STORY["new_tokens"][0]
        result = json.loads(self.ok(*GREEDY, "-p", STORY["prompt"], "-n", "1", "--json",
                                    "--logit-bias", f"{banned}-inf"))
        self.assertNotEqual(result["tokens"], [banned])

    def test_results_do_not_depend_on_pieces_and_threads(self):
        for flags in (["-ub", "1"], ["--ubatch-size=7"], ["-t", "1"], ["--isa", "scalar"]):
            self.assertEqual(self.ok(*GREEDY, *flags, "-p", STORY["prompt"]), STORY["new_text"])

    def test_prompt_from_file_and_standard_input(self):
        file = self.folder / "prompt.txt"
        file.write_text(STORY["prompt"])
        self.assertEqual(self.ok(*GREEDY, "-f", file), STORY["new_text"])
        self.assertEqual(self.ok(*GREEDY, "-f", "-", stdin=STORY["prompt"]), STORY["new_text"])
        self.assertEqual(self.ok(*GREEDY, stdin=STORY["prompt"]), STORY["new_text"])
        terminal = Terminal(self, *GREEDY)
        self.assertEqual(terminal.finish(), 2)
        self.assertIn("a text is needed: give it with -p TEXT or -f FILE, or pipe it in",
                      terminal.seen)

    def test_escapes_only_on_demand(self):
        def tokens(*flags):
            arguments = [*GREEDY, "-p", "a\\nb", "-n", "1", "--json", *flags]
            return json.loads(self.ok(*arguments))["prompt_tokens"]
        self.assertEqual(tokens("-e"), tokens() - 1)

    def test_without_a_model(self):
        # The project's own is found from where the program was built.
        built = self.folder / "build" / "release"
        built.mkdir(parents=True)
        program = shutil.copy(BINARY, built)
        shutil.copy(pathlib.Path(BINARY).with_name("godwit-text"), built)
        shutil.copytree(TINY, self.folder / "models" / "stories-3m")
        flags = ["run", "--temp", "0", "-p", STORY["prompt"]]
        self.assertEqual(self.ok(*flags, binary=program), STORY["new_text"])

    def test_environment(self):
        variables = {"GODWIT_MODEL": str(TINY), "GODWIT_TEMP": "0", "GODWIT_N_PREDICT": "5",
                     "GODWIT_JSON": "1", "GODWIT_PROMPT": STORY["prompt"]}
        result = json.loads(self.ok("run", variables=variables))
        self.assertEqual(result["tokens"], STORY["new_tokens"][:5])
        result = json.loads(self.ok("run", "-n", "3", variables=variables))
        self.assertEqual(result["tokens"], STORY["new_tokens"][:3])
        # Flags of other verbs are known too.
        variables |= {"GODWIT_TMEP": "0", "GODWIT_SCHEME": "o1"}
        loud = self.godwit("run", variables=variables)
        self.assertEqual(loud.stderr, "godwit: warning: the environment variable GODWIT_TMEP is "
                                      "ignored: there is no such flag; did you mean GODWIT_TEMP?\n")
        self.assertEqual(self.godwit("run", "-q", variables=variables).stderr, "")

    def test_quiet_leaves_out_warnings(self):
        arguments = ["-p", STORY["prompt"], "-n", "3", "-c", "1025"]  # more than it was made for
        loud = self.godwit(*GREEDY, *arguments)
        self.assertIn("godwit: warning: ", loud.stderr)
        for quiet in (["-q"], ["--quiet"]):
            result = self.godwit(*GREEDY, *arguments, *quiet)
            self.assertEqual((result.stdout, result.stderr), (loud.stdout, ""))
        self.assertIn("needs a value", self.refused(2, "run", "-q", "-n"))

    def test_quiet_leaves_out_the_summary(self):
        for quiet in (False, True):
            terminal = Terminal(self, *GREEDY, "-p", STORY["prompt"], *(["-q"] if quiet else []))
            self.assertEqual(terminal.finish(), 0)
            self.assertEqual("seed  " in terminal.seen, not quiet)


class HelpTest(CliTest):
    def test_help(self):
        text = self.ok("--help")
        for verb in ("run", "chat", "tokenize", "logits", "inspect"):
            self.assertIn(f"\n  {verb} ", text)
            help_text = self.ok(verb, "--help")
            self.assertEqual(help_text, self.ok("help", verb))
            self.assertIn("--model MODEL", help_text)
            self.assertIn("Exit codes:", help_text)
            self.assertLessEqual(max(map(len, help_text.splitlines())), 80)
        self.assertIn("130 cancelled", text)
        self.assertEqual(self.ok("eval", "quant", "--help"), self.ok("help", "eval", "quant"))

    def test_numbers_have_their_default_in_the_help(self):
        # What the text, or the other flags, decide where they are not given.
        without = {"perplexity": {"--max-tokens", "--window"}, "eval quant": {"--max-tokens"}}
        for verb in ("run", "chat", "tokenize", "logits", "perplexity", "eval tasks", "eval stream",
                     "eval quant", "bench", "quantize", "inspect"):
            entries = re.split(r"^  (?=-)", self.ok(*verb.split(), "--help"), flags=re.MULTILINE)
            for entry in entries[1:]:
                flag = re.match(r"(?:-\w+, )?(--[\w-]+)(?:, --[\w-]+)* (?:N|X|N,\.\.\.|P%)\s", entry)
                if flag:
                    self.assertEqual("[default: " in entry.split("\n\n")[0],
                                     flag[1] not in without.get(verb, ()), (verb, entry))
        self.assertIn("--temp, --temperature X     the temperature (0: always the most likely token)\n"
                      "                              [default: the model's, or 0.8]\n",
                      self.ok("run", "--help"))

    def test_help_fits_the_terminal(self):
        for columns in (60, 72, 80):
            for verb in ([], ["run"], ["eval"], ["eval", "stream"], ["quantize"]):
                terminal = Terminal(self, *verb, "--help", columns=columns)
                self.assertEqual(terminal.finish(), 0)
                self.assertLessEqual(max(map(len, terminal.seen.splitlines())), columns, verb)

    def test_version(self):
        first, *others = self.ok("--version").splitlines()
        self.assertRegex(first, r"^godwit \d+\.\d+\.\d+$")
        facts = dict(re.split("  +", line, maxsplit=1) for line in others)
        self.assertEqual(list(facts), ["commit", "compiler", "build type", "instruction sets",
                                       "this machine"])
        self.assertRegex(facts["commit"], r"^([0-9a-f]{12}( with changes)?|unknown)$")
        self.assertRegex(facts["compiler"], r"^\w+ \d+\.")
        built, best = facts["instruction sets"].split(", "), facts["this machine"].split("; best is ")
        self.assertEqual(built[-1], "scalar")
        self.assertLessEqual(set(best[0].split(", ")), set(built))
        self.assertIn(best[1], best[0].split(", "))


if __name__ == "__main__":
    unittest.main()
