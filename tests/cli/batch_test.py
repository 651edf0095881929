"""godwit batch: each answer is that of `godwit run`, whatever ends the program between two of them."""

import json
import resource
import signal
import unittest

from harness import EXPECTED, GOLDEN, TINY, CliTest, Terminal, wait_for

INPUT, IO, FORMAT, UNSUPPORTED, SOME_FAILED, CANCELLED = 2, 3, 4, 5, 7, 130
STORY = EXPECTED["complete"][0]
CHAT = EXPECTED["chat"][0]
SLOW = ["--isa", "scalar", "-t", "1", "-ub", "1"]


class BatchTest(CliTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.jsonl"

    def requests(self, *rows):
        """A file of requests: bodies, named by their place, or whole rows."""
        file = self.folder / "requests.jsonl"
        rows = [row if "body" in row or "custom_id" in row else {"custom_id": str(i), "body": row}
                for i, row in enumerate(rows)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file

    def command(self, file, *flags):
        return ["batch", "-m", TINY, "-f", file, "-o", self.out, *flags]

    def results(self):
        """custom_id -> result."""
        lines = [json.loads(line) for line in self.out.read_text().splitlines()]
        self.assertEqual(len({line["custom_id"] for line in lines}), len(lines))
        return {line["custom_id"]: line for line in lines}

    def answers(self, file, *flags):
        """custom_id -> body of the answer, of requests that all succeed."""
        self.assertEqual(self.ok(*self.command(file, *flags)), "")
        for result in self.results().values():
            self.assertIsNone(result["error"])
            self.assertEqual(result["response"]["status_code"], 200)
        return {name: result["response"]["body"] for name, result in self.results().items()}

    def run_tokens(self, *flags):
        return json.loads(self.ok("run", "-m", TINY, "--json", *flags))["tokens"]

    def test_passages(self):
        texts = ["".join(f"Bird {which}{i} sang. " for i in range(12)) for which in "ab"]

        def chat(order, **fields):
            parts = [{"type": "text", "text": texts[i]} for i in order]
            parts.append({"type": "text", "text": "Who sang?"})
            return {"messages": [{"role": "user", "content": parts}], "temperature": 0,
                    "max_tokens": 8, "ignore_eos": True, "return_token_ids": True, **fields}

        file = self.requests(chat([0, 1], passages=True), chat([1, 0], passages={"read_anew": 3}),
                             chat([1, 0], passages={"read_anew": 99999}), chat([1, 0]))
        answers = self.answers(file, "-np", "1")
        tokens = [answers[str(i)]["choices"][0]["token_ids"] for i in range(4)]
        labels = [answers[str(i)]["usage"].get("passages") for i in range(4)]
        self.assertEqual([label["exact"] for label in labels[:3]], [False, False, True])
        self.assertIsNone(labels[3])
        self.assertEqual(labels[1]["anew_tokens"], 3)
        self.assertLess(labels[0]["cached_tokens"], 64)
        self.assertGreater(labels[1]["cached_tokens"], 128)
        self.assertEqual(tokens[2], tokens[3])
        # Several at once have the same answers.
        self.out.unlink()
        again = self.answers(file, "-np", "4", "--resume")
        self.assertEqual([again[str(i)]["choices"][0]["token_ids"] for i in range(4)], tokens)
        for bad in ("yes", {"read_anew": "x"}):
            self.out.unlink()
            self.assertIn("\"passages\": expected true, false or",
                          self.refused(FORMAT, *self.command(self.requests(chat([0], passages=bad)))))
            self.out.touch()

    def test_the_question_of_a_chat_is_its_last_message(self):
        chat = {"messages": [{"role": "user", "content": "A small bird sang all day. "},
                             {"role": "assistant", "content": "It did. "},
                             {"role": "user", "content": "Who sang in the morning?"}],
                "temperature": 0, "max_tokens": 2, "logprobs": True, "top_logprobs": 3}
        asked = [{**chat, "query_tokens": n} for n in range(1, 60)]
        answers = self.answers(self.requests(chat, *asked), "--prefill", "window:1")
        logprobs = [answers[str(i)]["choices"][0]["logprobs"] for i in range(60)]
        alike = [n for n in range(1, 60) if logprobs[n] == logprobs[0]]
        self.assertEqual(len(alike), 1)
        ids = json.loads(self.ok("tokenize", "-m", TINY, "-p", chat["messages"][-1]["content"], "--ids",
                                 "--no-bos"))
        self.assertGreaterEqual(alike[0], len(ids))
        self.assertLess(alike[0], 2 * len(ids) + 10)

    def test_a_text(self):
        body = self.answers(self.requests({"prompt": STORY["prompt"], "temperature": 0}))["0"]
        self.assertEqual(list(body), ["id", "object", "created", "model", "choices", "usage",
                                      "seed"])
        self.assertEqual((body["object"], body["model"]), ("text_completion", "tiny-llama"))
        self.assertEqual(body["choices"], [{"index": 0, "text": STORY["new_text"],
                                            "logprobs": None, "finish_reason": "stop"}])
        read, written = len(STORY["tokens"]), len(STORY["new_tokens"])
        usage = body["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"],
                          usage["total_tokens"]), (read, written, read + written))

    def test_chats(self):
        rows = [{"custom_id": f"chat {i}", "method": "POST", "url": "/v1/chat/completions",
                 "body": {"model": "any", "messages": case["messages"]}}
                for i, case in enumerate(EXPECTED["chat"])]
        answers = self.answers(self.requests(*rows), "--temp", "0")
        for i, case in enumerate(EXPECTED["chat"]):
            body = answers[f"chat {i}"]
            self.assertEqual(body["object"], "chat.completion")
            self.assertEqual(body["choices"][0]["message"],
                             {"role": "assistant", "content": case["new_text"]})

    def test_the_same_tokens_as_run(self):
        cases = [({"temperature": 3.0, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 5},
                  ["--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-s", "5"]),
                 ({"temperature": 1.5, "top_k": 9, "seed": 6, "logit_bias": {"263": -100}},
                  ["--temp", "1.5", "--top-k", "9", "-s", "6", "--logit-bias", "263-100"]),
                 ({"temperature": 0, "stop": ["small bird"]}, ["--temp", "0", "-r", "small bird"]),
                 ({"temperature": 0, "repeat_penalty": 1.5, "frequency_penalty": 1,
                   "presence_penalty": 0.5, "repeat_last_n": -1, "ignore_eos": True},
                  ["--temp", "0", "--repeat-penalty", "1.5", "--frequency-penalty", "1",
                   "--presence-penalty", "0.5", "--repeat-last-n", "-1", "--ignore-eos"]),
                 ({"max_completion_tokens": 0}, ["-n", "0"]),
                 ({}, ["-s", "9"])]
        rows = [{"prompt": STORY["prompt"], "return_token_ids": True, **fields}
                for fields, _ in cases]
        answers = self.answers(self.requests(*rows), "-s", "9", "-n", "40", "-np", "3")
        for i, (fields, flags) in enumerate(cases):
            with self.subTest(fields=fields):
                limit = [] if "-n" in flags else ["-n", "40"]
                self.assertEqual(answers[str(i)]["choices"][0]["token_ids"],
                                 self.run_tokens("-p", STORY["prompt"], *limit, *flags))

    def test_tokens_as_a_prompt(self):
        body = self.answers(self.requests({"prompt": STORY["tokens"], "temperature": 0}))["0"]
        self.assertEqual(body["choices"][0]["text"], STORY["new_text"])

    def test_several_answers(self):
        row = {"prompt": "The", "n": 3, "max_tokens": 20, "temperature": 3, "top_k": 0, "top_p": 1,
               "min_p": 0, "return_token_ids": True}
        body = self.answers(self.requests(row))["0"]
        self.assertEqual([choice["index"] for choice in body["choices"]], [0, 1, 2])
        tokens = [choice["token_ids"] for choice in body["choices"]]
        self.assertEqual(len({str(each) for each in tokens}), 3)
        self.assertEqual(body["usage"]["completion_tokens"], sum(map(len, tokens)))
        # The first is what run answers with the seed that the result names.
        self.assertEqual(tokens[0], self.run_tokens(
            "-p", "The", "-n", "20", "--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0",
            "-s", body["seed"]))

    def test_log_probabilities(self):
        fields = {"max_tokens": 9, "seed": 3, "logprobs": True, "top_logprobs": 2}
        file = self.requests({"prompt": STORY["prompt"], "return_token_ids": True, **fields},
                             {"messages": CHAT["messages"], **fields})
        answers = self.answers(file)
        expected = json.loads(self.ok("run", "-m", TINY, "-p", STORY["prompt"], "-n", "9", "-s",
                                      "3", "--json", "--logprobs", "2"))["logprobs"]
        lists = answers["0"]["choices"][0]["logprobs"]
        self.assertEqual(lists["tokens"], [entry["token"] for entry in expected])
        self.assertEqual(lists["token_logprobs"], [entry["logprob"] for entry in expected])
        self.assertEqual(lists["top_logprobs"],
                         [{top["token"]: top["logprob"] for top in entry["top_logprobs"]}
                          for entry in expected])
        content = answers["1"]["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(content), 9)
        for entry in content:
            self.assertEqual(list(entry), ["token", "logprob", "bytes", "top_logprobs"])
            self.assertEqual(len(entry["top_logprobs"]), 2)

    # Memory for one text and a half: the others wait, or are paused and read again.
    def test_little_memory(self):
        rows = [{"prompt": STORY["prompt"] * (i % 5 + 1), "max_tokens": 150, "seed": i,
                 "temperature": 2, "ignore_eos": True, "return_token_ids": True, "n": i % 3 + 1}
                for i in range(9)]
        file = self.requests(*rows)
        tokens = lambda answers: {name: [choice["token_ids"] for choice in body["choices"]]
                                  for name, body in answers.items()}
        expected = tokens(self.answers(file))
        kv = json.loads(self.ok("run", "-m", TINY, "-p", STORY["prompt"] * 5, "--ignore-eos", "-n",
                                "150", "--json"))["kv"]
        self.out.unlink()
        answers = self.answers(file, "-np", "8", "--kv-memory", 3 * kv["bytes"] // 2)
        self.assertEqual(tokens(answers), expected)
        self.assertTrue(any("pauses" in choice for body in answers.values()
                            for choice in body["choices"]))

    def test_seeds(self):
        file = self.requests({"prompt": "The", "max_tokens": 1}, {"prompt": "The", "max_tokens": 1})
        seeds = {body["seed"] for body in self.answers(file).values()}
        self.assertEqual(len(seeds), 2)  # the same question is asked for other answers
        self.out.unlink()
        self.assertEqual({body["seed"] for body in self.answers(file, "-s", "3").values()}, {3})

    def test_a_models_own_sampling(self):
        model = self.copy_of_tiny()
        (model / "generation_config.json").write_text(
            json.dumps({"do_sample": False, "repetition_penalty": 1.3}))
        story = {"prompt": STORY["prompt"], "max_tokens": 40, "return_token_ids": True}
        file = self.requests(story, {**story, "repeat_penalty": 1.4})
        self.ok("batch", "-m", model, "-f", file, "-o", self.out)
        for name, flags in (("0", []), ("1", ["--repeat-penalty", "1.4"])):
            tokens = json.loads(self.ok("run", "-m", model, "-p", STORY["prompt"], "-n", "40",
                                        "--json", *flags))["tokens"]
            body = self.results()[name]["response"]["body"]
            self.assertEqual(body["choices"][0]["token_ids"], tokens)

    def test_template_variables(self):
        model = self.copy_of_tiny()
        (model / "chat_template.jinja").write_text("{{ name }} {{ other }}:{{ messages[-1].content }}")
        hello = {"messages": CHAT["messages"], "max_tokens": 1}
        file = self.requests(hello, {**hello, "chat_template_kwargs": {"name": "the bird"}})
        self.ok("batch", "-m", model, "-f", file, "-o", self.out,
                "--chat-template-kwargs", '{"name": "a", "other": "b"}')
        for name, text in (("0", "a b:"), ("1", "the bird b:")):
            text += CHAT["messages"][-1]["content"]
            # Framed by the template: no BOS of the tokenizer's.
            tokens = json.loads(self.ok("tokenize", "-m", model, "-p", text, "--ids"))[1:]
            self.assertEqual(self.results()[name]["response"]["body"]["usage"]["prompt_tokens"],
                             len(tokens))

    def test_dropped_tokens_are_reported(self):
        row = {"prompt": STORY["prompt"], "max_tokens": 100, "ignore_eos": True}
        result = self.godwit(*self.command(self.requests(row, {**row, "max_tokens": 1}), "--kv",
                                           "sinks:4+60", "--temp", "0"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"\Agodwit: sinks:4\+60: dropped \d+ tokens after the "
                                        r"first 4 in the longest text\n\Z")
        choices = [self.results()[name]["response"]["body"]["choices"][0] for name in "01"]
        self.assertEqual(choices[0]["kv"]["dropped"], len(STORY["tokens"]) + 35)
        self.assertNotIn("kv", choices[1])

    def test_a_context_read_by_a_window(self):
        row = {"prompt": STORY["prompt"], "max_tokens": 2}
        n = len(STORY["tokens"])
        self.ok(*self.command(self.requests(row, {**row, "query_tokens": 3},
                                            {**row, "query_tokens": n}), "--prefill", "window:5"))
        choices = [self.results()[name]["response"]["body"]["choices"][0] for name in "012"]
        self.assertEqual(choices[0]["kv"]["policy"], "dense, read by window:5")
        self.assertEqual(choices[0]["kv"]["context_tokens"], n - 1)
        self.assertEqual(choices[1]["kv"]["context_tokens"], n - 3)
        self.assertNotIn("kv", choices[2])

    def test_one_request_fails_and_the_others_do_not(self):
        file = self.requests({"prompt": STORY["prompt"], "temperature": 0},
                             {"prompt": [1, 600]},
                             {"prompt": "bird " * 2000},
                             {"prompt": "x", "logit_bias": {"512": 1}},
                             {"messages": CHAT["messages"], "temperature": 0})
        for _ in range(2):  # a failure is a result, too: it is not asked again
            result = self.godwit(*self.command(file, "-np", "2"))
            self.assertEqual((result.returncode, result.stdout), (SOME_FAILED, ""))
            self.assertIn("3 requests failed, see ", result.stderr)
            results = self.results()
            self.assertEqual(list(sorted(results)), ["0", "1", "2", "3", "4"])
        self.assertEqual(results["0"]["response"]["body"]["choices"][0]["text"],
                         STORY["new_text"])
        self.assertEqual(results["4"]["response"]["body"]["choices"][0]["message"]["content"],
                         CHAT["new_text"])
        for name, reason in (("1", "token id 600 is outside"), ("2", "the prompt has 2004 tokens"),
                             ("3", "logit_bias names token 512")):
            response, error = results[name]["response"], results[name]["error"]
            self.assertEqual(response["status_code"], 400)
            self.assertIn(reason, error["message"])
            self.assertEqual(response["body"]["error"]["message"], error["message"])
            self.assertEqual(error["code"], "invalid_request_error")

    def test_failed_requests_are_repeated(self):
        file = self.requests({"prompt": "The", "max_tokens": 3, "seed": 1},
                             {"prompt": "bird " * 30, "max_tokens": 3, "seed": 1},
                             {"prompt": [1, 600]})
        self.assertEqual(self.godwit(*self.command(file, "-c", "20")).returncode, SOME_FAILED)
        first = self.results()
        self.assertEqual([first[name]["response"]["status_code"] for name in "012"],
                         [200, 400, 400])
        for _ in range(2):
            result = self.godwit(*self.command(file, "--retry-failed"))
            self.assertEqual(result.returncode, SOME_FAILED, result.stderr)
            self.assertIn("of them failed and will run again", result.stderr)
            self.assertIn("1 request failed, see ", result.stderr)
            again = self.results()  # one for each
            self.assertEqual(again["0"], first["0"])
            self.assertEqual([again[name]["response"]["status_code"] for name in "012"],
                             [200, 200, 400])
        written = self.out.read_bytes()
        # Nothing is taken away for a model that cannot be read.
        broken = self.folder / TINY.name
        broken.mkdir()
        self.refused(IO, "batch", "-m", broken, "-f", file, "-o", self.out, "--retry-failed", "-q")
        self.assertEqual(self.out.read_bytes(), written)

    def many(self, count):
        return self.requests(*({"prompt": STORY["prompt"], "max_tokens": 30, "seed": i,
                                "temperature": 2, "return_token_ids": True}
                               for i in range(count)))

    def without_times(self):
        results = self.results()
        for result in results.values():
            result["response"]["body"].pop("created")
            result["response"]["body"]["usage"].pop("prompt_tokens_details")
        return results

    def begin(self, file, *flags):
        """A batch that has written some results and has more to do."""
        written = lambda: self.out.read_bytes().count(b"\n") if self.out.exists() else 0
        before = written()
        process = self.start(*self.command(file, *SLOW, *flags))
        wait_for(lambda: process.poll() is not None or written() >= before + 2)
        self.assertIsNone(process.poll(), "it has ended by itself")
        return process

    def test_killed_and_continued(self):
        file = self.many(300)
        self.answers(file, "-np", "4")
        expected = self.without_times()
        self.out.unlink()
        for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, -signal.SIGTERM),
                             (signal.SIGINT, CANCELLED)):
            process = self.begin(file, "-np", "3")
            process.send_signal(number)
            errors = process.communicate()[1].decode()
            self.assertEqual(process.returncode, code, errors)
            finished = self.out.read_bytes()
        self.assertRegex(errors, r"cancelled: \d+ of 300 requests are answered")
        # As if it had been killed while it wrote.
        self.out.write_bytes(finished[:-7])
        result = self.godwit(*self.command(file))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("removing the last result, which was not finished", result.stderr)
        count = finished.count(b"\n")
        self.assertIn(f"{count - 1} of 300 requests are answered already", result.stderr)
        self.assertTrue(self.out.read_bytes().startswith(finished[:finished[:-1].rindex(b"\n")]))
        self.assertEqual(self.without_times(), expected)
        # Nothing is left to do: not even the model is read.
        written = self.out.read_bytes()
        self.assertEqual(self.ok(*self.command(file)), "")
        self.assertEqual(self.out.read_bytes(), written)

    def test_a_full_disk(self):
        file = self.many(20)
        self.answers(file)
        expected = self.without_times()
        self.out.unlink()
        full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        self.assertIn("cannot write to", self.refused(IO, *self.command(file), preexec_fn=full))
        self.assertEqual(self.out.stat().st_size, 3000)
        self.answers(file)
        self.assertEqual(self.without_times(), expected)

    def test_requests_that_came_later(self):
        self.answers(self.many(2))
        first = self.out.read_text()
        self.answers(self.many(3))
        self.assertTrue(self.out.read_text().startswith(first))
        self.assertEqual(list(sorted(self.results())), ["0", "1", "2"])

    def test_results_of_something_else_are_refused(self):
        self.answers(self.many(2))
        before = self.out.read_bytes()
        for rows, words in ((({"prompt": "x"}, {"prompt": "y"}), "found one of an earlier request"),
                            (({"custom_id": "x", "body": {"prompt": "x"}},), "is no request of")):
            message = self.refused(INPUT, *self.command(self.requests(*rows)))
            self.assertIn(words, message)
            self.assertIn("out.jsonl:1", message)
            self.assertEqual(self.out.read_bytes(), before)
        file = self.many(2)
        other = self.copy_of_tiny()
        self.assertIn('of the model "tiny-llama", expected one of "model"', self.refused(
            INPUT, "batch", "-m", other, "-f", file, "-o", self.out))
        self.out.write_text("a diary\n")
        self.refused(FORMAT, *self.command(file))
        self.out.write_text("a diary")
        self.refused(FORMAT, *self.command(file))
        self.assertEqual(self.out.read_text(), "a diary")

    def test_one_run_at_a_time(self):
        file = self.many(200)
        self.begin(file)
        self.assertIn("another process", self.refused(INPUT, *self.command(file)))

    def test_requests_are_refused_before_anything_is_done(self):
        good = {"prompt": "x"}
        for rows, words in (
                (({"prompt": "x", "temprature": 1},),
                 'line 1: unknown field "temprature" (did you mean "temperature"?)'),
                ((good, {"prompt": "x", "n": 0}),
                 'line 2: "n": expected a whole number from 1 to 128, found 0'),
                (({"custom_id": "a", "body": good}, {"custom_id": "a", "body": good}),
                 'line 2: "custom_id": expected a new one, found "a" of line 1'),
                (({"custom_id": "a"},), 'line 1: a request needs "body"'),
                (({"prompt": "x", "temperature": -1},), "line 1: temperature must be")):
            with self.subTest(rows=rows):
                self.assertIn(words, self.refused(FORMAT, *self.command(self.requests(*rows))))
                self.assertFalse(self.out.exists())
        file = self.folder / "requests.jsonl"
        for content, words in ((b"", "expected at least one request"),
                               (b"\n\n", "expected at least one request"),
                               (b'{"custom_id": "\xff"}\n', "line 1: "),
                               (b'{"custom_id": "a"', "line 1: "),
                               (b" " * (64 << 20) + b" \n", "1: a line of more than")):
            file.write_bytes(content)
            self.assertIn(words, self.refused(FORMAT, *self.command(file)))
        self.assertIn("No such file", self.refused(IO, *self.command(self.folder / "none")))
        self.assertIn("expected a file", self.refused(IO, *self.command(TINY.parent)))
        self.assertIn("read twice", self.refused(INPUT, *self.command("-")))

    def test_flags(self):
        file = self.requests({"prompt": "x"})
        self.assertIn("-f FILE", self.refused(INPUT, "batch", "-m", TINY, "-o", self.out))
        self.assertIn("-o FILE", self.refused(INPUT, "batch", "-m", TINY, "-f", file))
        for out in ("-", "/dev/stdout", "/dev/null"):
            self.assertIn("a regular file", self.refused(INPUT, "batch", "-m", TINY, "-f", file,
                                                         "-o", out))
        self.assertIn("the file that -f reads",
                      self.refused(INPUT, "batch", "-m", TINY, "-f", file, "-o", file))
        self.refused(INPUT, *self.command(file, "-np", "0"))

    def test_chats_need_a_template(self):
        model = GOLDEN / "opt" / "whole_table"
        file = self.requests({"messages": CHAT["messages"]})
        self.assertIn("has no chat template", self.refused(
            UNSUPPORTED, "batch", "-m", model, "-f", file, "-o", self.out))
        self.assertFalse(self.out.exists())

    def test_at_a_terminal(self):
        file = self.many(20000)
        terminal = Terminal(self, *self.command(file, *SLOW))
        terminal.expect("answering: ")
        terminal.expect(" left")
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), CANCELLED)
        self.assertIn("of 20000 requests are answered; the same command continues", terminal.seen)
        self.assertTrue(self.out.read_text().endswith("\n"))
        # Requests end in another order than they begin.
        count = max(map(int, self.results())) + 4
        left = count - len(self.results())
        terminal = Terminal(self, *self.command(self.many(count)))
        self.assertEqual(terminal.finish(), 0)
        self.assertRegex(terminal.seen,
                         rf"{left} requests in \d:\d\d: {8 * left} tokens in, \d+ tokens out")


if __name__ == "__main__":
    unittest.main()
