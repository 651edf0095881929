"""Several ranks under mpirun, where godwit was built with MPI; else it says so."""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import unittest
import urllib.request

from harness import BINARY, TINY, CliTest, end, wait_for

HAS_MPI = os.environ.get("GODWIT_HAS_MPI") == "1" and shutil.which("mpirun") is not None
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader"]
TEXT = "Once upon a time there was a small bird. " * 12


def run(tokens=12, sampling=("--temp", "0"), model=TINY):
    return ["run", "-m", str(model), "-t", "1", *sampling, "--ignore-eos", "-n", str(tokens), "-f",
            "-"]


RUN = run()
BY_STAR = ["--prefill", "star:block=32"]
BY_RING = ["--prefill", "ring:chunk=64"]
STAR, RING = [*RUN, *BY_STAR], [*RUN, *BY_RING]


class RanksTest(CliTest):
    def test_a_time_of_silence_has_limits(self):
        for seconds in ("0", "3601", "1.5", "ten"):
            self.assertIn("--rank-silence", self.refused(2, *STAR, "--rank-silence", seconds))

    def test_one_process_cannot_share_its_weights(self):
        errors = self.refused(2, *RUN, "--tensor-parallel", "2", stdin=TEXT)
        self.assertIn("1 rank cannot share the weights in groups of 2", errors)
        self.refused(2, *RUN, "--tensor-parallel", "0", stdin=TEXT)

    def test_the_memory_of_a_share_is_planned(self):
        def plan(*more):
            return json.loads(self.ok("inspect", "-m", TINY, "--weights", "f32", "--json", *more))

        alone, half = plan(), plan("--tensor-parallel", "2")
        self.assertLess(half["weights"]["loaded_bytes"], alone["weights"]["loaded_bytes"])
        self.assertEqual(half["kv"]["f32"]["bytes_per_token"] * 2,
                         alone["kv"]["f32"]["bytes_per_token"])
        self.assertIn("on one of 2 ranks",
                      self.ok("inspect", "-m", TINY, "--tensor-parallel", "2"))
        self.assertIn("3 ranks cannot share the weights: the llama model has 4 query heads",
                      self.refused(5, "inspect", "-m", TINY, "--tensor-parallel", "3"))

    @unittest.skipIf(HAS_MPI, "godwit was built with MPI")
    def test_without_mpi_ranks_are_refused(self):
        errors = self.refused(5, *STAR, stdin=TEXT,
                              variables={"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"})
        self.assertIn("built without MPI", errors)


@unittest.skipUnless(HAS_MPI, "no mpirun, or godwit was built without MPI")
class MpiTest(CliTest):
    def environment(self, **variables):
        # Open MPI unloads its plugins with memory of theirs still taken: a leak of its own, which
        # a sanitizer then cannot even name.
        return super().environment(ASAN_OPTIONS="detect_leaks=0", **variables)

    def ranks(self, count, *arguments, text=TEXT):
        return subprocess.run([*MPIRUN, "-n", str(count), BINARY, *map(str, arguments)],
                              input=text.encode(), capture_output=True, check=False,
                              env=self.environment(), timeout=120)

    def refusals(self, result):
        # A warning may say that a rank is slow to reach, as it is when others are at work.
        return re.findall(r"^godwit: (?!warning).*$", result.stderr.decode(), re.MULTILINE)

    def test_ranks_say_what_one_says(self):
        alone = self.ok(*STAR, stdin=TEXT)
        for count in (1, 2):
            result = self.ranks(count, *STAR)
            self.assertEqual(result.returncode, 0, result.stderr)
            # mpirun gives rank 0 a terminal, on which a line is ended.
            self.assertEqual(result.stdout.decode().rstrip("\r\n"), alone)

    def test_ranks_read_an_anchor_together(self):
        star, text = [*RUN, "--prefill", "star:block=160"], TEXT * 3
        alone = self.ok(*star, stdin=text)
        for more in ("", ",by-speed"):
            result = self.ranks(2, *star[:-1], star[-1] + more, text=text)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout.decode().rstrip("\r\n"), alone)

    def test_ranks_in_a_ring_say_what_dense_attention_says(self):
        text = TEXT * 3
        self.assertEqual(self.ok(*RING, stdin=text), self.ok(*RUN, stdin=text))
        for kv_type in ("f32", "int8", "int4"):
            dense = self.ok(*RUN, "--kv-type", kv_type, stdin=text)
            for count in (2, 3):
                result = self.ranks(count, *RING, "--kv-type", kv_type, text=text)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout.decode().rstrip("\r\n"), dense)

    def test_ranks_go_on_from_what_they_saved(self):
        command = [*RUN, *BY_RING, "--query-tokens", "9", "--json", "--cache-dir",
                   self.folder / "saved", "--cache"]
        first, second = (self.ranks(2, *command, text=TEXT * 2) for _ in range(2))
        for result in first, second:
            self.assertEqual(result.returncode, 0, result.stderr)
        first, second = json.loads(first.stdout), json.loads(second.stdout)
        self.assertEqual(first["disk_tokens"], 0)
        self.assertEqual(second["disk_tokens"], first["prompt_tokens"] - 9)
        self.assertEqual(first["text"], second["text"])

    def test_ranks_share_the_weights(self):
        f32 = ["--weights", "f32"]  # sums in another order are then all that differs
        alone = self.ok(*RUN, *f32, stdin=TEXT)
        for count, more in ((2, []), (4, BY_RING), (2, ["--kv", "sinks:4+60"])):
            expected = self.ok(*RUN, *f32, *more, stdin=TEXT) if "--kv" in more else alone
            result = self.ranks(count, *RUN, *f32, *more, "--tensor-parallel", "2")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout.decode().rstrip("\r\n"), expected)
        result = self.ranks(3, *RUN, "--tensor-parallel", "2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("3 ranks cannot share the weights in groups of 2",
                      result.stderr.decode())

    def test_auto_is_one_of_the_two(self):
        alone = self.ok(*RUN, "--prefill", "auto", stdin=TEXT)
        self.assertEqual(alone, self.ok(*RUN, stdin=TEXT))
        result = self.ranks(2, *RUN, "--prefill", "auto")
        self.assertEqual(result.returncode, 0, result.stderr)
        told = re.findall(r"dense, read by (?:ring|star):", result.stderr.decode())
        self.assertEqual(len(told), 1, result.stderr)
        # This text is too short for the blocks of a star, whatever the links.
        self.assertEqual(result.stdout.decode().rstrip("\r\n"), alone)

    def test_rank_zero_drafts_for_all(self):
        model, text = self.copy_of_tiny(), self.folder / "text.txt"
        text.write_text("Once upon a time there was a small bird that sang. " * 400)
        self.ok("train-heads", "-m", model, "-f", text, "--seq-len", "64", "--steps", "40",
                "--batch", "256")
        rest = [*BY_STAR, "--draft", "heads", "--json"]
        ranks = [["-n", "1", BINARY, *run(100, model=of), *rest] for of in (model, TINY)]
        result = subprocess.run([*MPIRUN, *ranks[0], ":", *ranks[1]], input=TEXT.encode(),
                                capture_output=True, check=False, env=self.environment(),
                                timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        drafted = json.loads(result.stdout)
        alone = json.loads(self.ok(*run(100), *BY_STAR, "--json", stdin=TEXT))
        self.assertEqual(drafted["tokens"], alone["tokens"])
        self.assertIn("heads", drafted["drafts"]["sources"])

    def test_speed_and_bytes_of_shared_weights_are_measured(self):
        result = self.ranks(2, "bench", "-m", TINY, "-r", "2", "-t", "1", "--no-limits", "-p",
                            "100", "-n", "3", "--tensor-parallel", "2", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = json.loads(result.stdout)
        self.assertEqual([row["test"] for row in rows], ["pp100", "tg3"])
        config = json.loads((TINY / "config.json").read_text())
        layers, hidden = config["num_hidden_layers"], config["hidden_size"]
        sums = (2 * layers + 1) * hidden * 4 * 2  # for a token, of both ranks
        logits = config["vocab_size"] * 4
        for row, tokens, answers in zip(rows, (100, 3), (1, 3)):
            self.assertEqual(row["ranks"], 2)
            self.assertAlmostEqual(row["sent_bytes_per_token_and_layer"],
                                   (sums + logits * answers / tokens) / layers)

    def test_speed_and_bytes_are_measured(self):
        bench = ["bench", "-m", TINY, "-r", "2", "-t", "1", "--no-limits"]
        tests = ["-p", "200", "-n", "3", "-d", "0,150"]
        for how in ("star:block=32", "ring:chunk=64"):
            result = self.ranks(2, *bench, *tests, "--prefill", how, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            rows = json.loads(result.stdout)
            self.assertEqual([row["test"] for row in rows],
                             ["pp200", "pp200 @ d150", "tg3 @ d150"])
            for row in rows:
                self.assertEqual(row["ranks"], 2)
                self.assertEqual(len(row["rank_cpu_seconds"]), 2)
                self.assertRegex(row["logits_hash"], r"\A[0-9a-f]{16}\Z")
            self.assertGreater(rows[2]["sent_bytes_per_token_and_layer"], 0)
        for arguments, message in (
                (tests, "with prefill ring, star or auto"),
                ([*tests, "--prefill", "star:block=256"], "too few for 2 ranks"),
                (["--prefill", "ring", "-p", "0"], "nothing to measure"),
                ([*tests, "--prefill", "ring", "--ranks", "2"], "without mpirun")):
            result = self.ranks(2, *bench, *arguments)
            self.assertNotEqual(result.returncode, 0, arguments)
            self.assertIn(message, result.stderr.decode())

    def test_samples_share_their_prompt(self):
        sampling = ["--samples", "3", "--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0",
                    "-s", "5"]
        for how in (BY_STAR, BY_RING):
            command = [*run(sampling=sampling), *how]
            alone = json.loads(self.ok(*command, "--json", stdin=TEXT))["answers"]
            result = self.ranks(2, *command, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            answers = json.loads(result.stdout)["answers"]
            self.assertEqual([answer["text"] for answer in answers],
                             [answer["text"] for answer in alone])
            read = answers[0]["prompt_tokens"]
            self.assertEqual([answer["cached_tokens"] for answer in answers],
                             [0, read - 1, read - 1])
        result = self.ranks(2, *command)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.decode().replace("\r\n", "\n").rstrip("\n"),
                         self.ok(*command, stdin=TEXT).rstrip("\n"))
        self.assertNotEqual(answers[0]["text"], answers[1]["text"])

    def test_the_perplexity_of_a_question(self):
        text = self.folder / "text.txt"
        text.write_text(TEXT * 3)
        command = ["perplexity", "-m", TINY, "-t", "1", "-f", text, "--query-tokens", "40", "--json",
                   "--compare", "dense,blocks",
                   "--prefill", "star:block=64"]
        alone = json.loads(self.ok(*command))["compare"]
        result = self.ranks(2, *command)
        self.assertEqual(result.returncode, 0, result.stderr)
        shared = json.loads(result.stdout)["compare"]
        self.assertEqual(len(shared), 2)
        for one, other in zip(shared, alone):
            self.assertEqual(one["tokens"], other["tokens"])
            self.assertAlmostEqual(one["nll"], other["nll"], places=4)

    def test_refusals_of_ranks_are_printed_once(self):
        for arguments, sentence in [
                (RUN, "with prefill ring, star or auto"),
                ([*RING, "--kv", "blocks"], "the KV policy dense only"),
                ([*RUN, "--prefill", "ring:chunk=65"], "a multiple of 64 tokens"),
                ([*STAR, "--kv", "sinks:4+60"], "only dense and blocks"),
                ([*STAR, "--kv", "blocks:snapkv"], "with preselect_block the question"),
                ([*STAR, "-c", "20"], "the context holds 20"),
                ([*RUN, "--prefill", "star:block=4K"], "too few for 2 ranks"),
                ([*STAR, "--samples", "2", "--kv-memory", "40K"], "use more ranks"),
                (["perplexity", "-m", TINY, "-f", TINY / "config.json"],
                 "with prefill ring, star or auto"),
                (["logits", "-m", TINY], "godwit logits uses one")]:
            result = self.ranks(2, *arguments)
            self.assertNotEqual(result.returncode, 0)
            said = self.refusals(result)
            self.assertEqual(len(said), 1, result.stderr)
            self.assertIn(sentence, said[0])
            self.assertNotIn("stream it", said[0])

    def test_each_rank_chooses_among_its_blocks(self):
        def logprobs(kv):
            result = self.ranks(2, *RUN, "--prefill", "star:block=64", "--json", "--logprobs", "0",
                                "--kv", kv)
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout)["logprobs"]

        dense = logprobs("dense")
        self.assertEqual(logprobs("blocks:second_block_count=16"), dense)
        few = "blocks:initial=0,local_windows_len=1,second_block_count=1"
        self.assertNotEqual(logprobs(few), dense)

    def test_a_rank_that_fails_alone_says_why(self):
        here, nowhere = (["-n", "1", BINARY, *run(model=of), *BY_STAR] for of in (TINY, "/nowhere"))
        result = subprocess.run([*MPIRUN, *here, ":", *nowhere], input=TEXT.encode(),
                                capture_output=True, check=False, env=self.environment(),
                                timeout=120)
        self.assertNotEqual(result.returncode, 0)
        said = self.refusals(result)
        self.assertEqual(len(said), 1, result.stderr)
        self.assertRegex(said[0], "^godwit: rank 1: .*/nowhere")

    def start_two(self, *arguments):
        process = subprocess.Popen(
            [*MPIRUN, "-n", "2", BINARY, *map(str, arguments)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
        self.addCleanup(end, process)
        return process

    # Two ranks in the midst of an answer.
    def answering(self, *arguments):
        process = self.start_two(*run(50000), *BY_STAR, "-c", "100000", *arguments)
        process.stdin.write(TEXT.encode())
        process.stdin.close()
        process.stdout.read(50)
        return process

    def signal_rank(self, process, rank, number):
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)],
                                  capture_output=True, check=True).stdout.split()
        os.kill(int(children[rank]), number)

    # What is said until it has ended.
    def errors_of(self, process):
        process.stdout.read()
        errors = process.stderr.read().decode()
        self.assertNotEqual(process.wait(), 0)
        return errors

    def test_a_rank_that_is_killed_ends_all(self):
        process = self.answering()
        self.signal_rank(process, 1, signal.SIGKILL)
        self.errors_of(process)

    def test_a_rank_that_is_stopped_is_lost(self):
        process = self.answering("--rank-silence", "2")
        self.signal_rank(process, 1, signal.SIGSTOP)
        self.assertRegex(self.errors_of(process),
                         r"godwit: rank 1 \(.*\) is lost: nothing was heard of it for 2 s")

    def test_ctrl_c_ends_all(self):
        process = self.answering()
        process.send_signal(signal.SIGINT)
        self.assertNotIn("godwit: rank", self.errors_of(process))

    def batch(self, *bodies):
        """The command that answers these, and where it writes."""
        requests, results = self.folder / "requests.jsonl", self.folder / "results.jsonl"
        requests.write_text("".join(
            json.dumps({"custom_id": str(i), "body": {"ignore_eos": True, "temperature": 0,
                                                      "max_tokens": 12, **body}}) + "\n"
            for i, body in enumerate(bodies)))
        return ["batch", "-m", TINY, "-t", "1", "-f", requests, "-o", results], results

    def read(self, results):
        rows = [json.loads(line) for line in results.read_text().splitlines()]
        return {row["custom_id"]: row for row in rows}

    def texts(self, rows):
        return {name: [choice["text"] for choice in row["response"]["body"]["choices"]]
                for name, row in rows.items() if row["error"] is None}

    def test_a_batch_has_the_answers_of_run(self):
        texts = [TEXT, TEXT * 2, "A bird. " * 50]
        for how in (BY_STAR, BY_RING):
            command, results = self.batch(*({"prompt": text} for text in texts))
            result = self.ranks(2, *command, *how, "-np", "8")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, b"")
            answers = self.texts(self.read(results))
            for i, text in enumerate(texts):
                one = self.ranks(2, *RUN, *how, "--json", text=text)
                self.assertEqual([json.loads(one.stdout)["text"]], answers[str(i)])
            results.unlink()

    # Requests run together, also one whose prompt is too short for two ranks. A reader that goes
    # ends its own request.
    def test_a_server_has_the_answers_of_run(self):
        process = self.start_two("serve", "-m", TINY, "-t", "1", *BY_RING, "--port", "0")
        process.stdin.close()
        said = ""
        while not (found := re.search(r"answers at (http://\S+)", said)):
            line = process.stderr.readline().decode()
            self.assertTrue(line, said)
            said += line
        url = found[1] + "/v1/completions"

        def ask(text, tokens):
            body = {"prompt": text, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
                    "stream": tokens > 1000}
            return urllib.request.urlopen(urllib.request.Request(
                url, json.dumps(body).encode(), {"Content-Type": "application/json"}), timeout=100)

        endless = ask(TEXT * 3, 50000)
        endless.read(100)
        texts = [TEXT, "A bird", TEXT * 2, "A bird. " * 50]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            replies = list(pool.map(lambda text: json.load(ask(text, 12)), texts))
        endless.close()
        for text, reply in zip(texts, replies):
            self.assertEqual(reply["choices"][0]["text"], self.ok(*RUN, stdin=text))
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=100)

    def test_several_answers_read_their_prompt_once(self):
        command, results = self.batch({"prompt": TEXT, "n": 3, "temperature": 3, "seed": 5,
                                       "top_k": 0, "min_p": 0, "top_p": 1})
        alone = self.folder / "alone.jsonl"
        self.ok(*command[:-1], alone, *BY_STAR)
        self.assertEqual(self.ranks(2, *command, *BY_STAR).returncode, 0)
        answers = self.texts(self.read(results))["0"]
        self.assertEqual(answers, self.texts(self.read(alone))["0"])
        self.assertEqual(len(set(answers)), 3)

    def test_a_request_that_fails_lets_the_others_pass(self):
        good = {"prompt": TEXT}
        command, results = self.batch(
            good, {"prompt": "short"}, {"prompt": TEXT * 40}, good,
            {"prompt": TEXT, "max_tokens": 900}, {"prompt": [3] * 500 + [9999]}, good)
        # Of one page more than a prompt takes on each of them.
        result = self.ranks(2, *command, *BY_STAR, "--kv-type", "f32", "--kv-memory", "200K")
        self.assertEqual(result.returncode, 7, result.stderr)
        rows = self.read(results)
        self.assertEqual(len(rows), 7)
        answers = self.texts(rows)
        self.assertEqual(sorted(answers), ["0", "3", "6"])
        self.assertEqual(answers["3"], answers["0"])
        self.assertEqual(answers["6"], answers["0"])
        for name, sentence in (("1", "too few for 2 ranks"), ("2", "the context holds"),
                               ("4", "rank 0 "), ("5", "token id 9999")):
            self.assertIn(sentence, rows[name]["error"]["message"])
        # Run again, with what a batch of one process has left.
        again = self.ranks(2, *command, *BY_STAR)
        self.assertEqual(again.returncode, 7)
        self.assertIn(b"7 of 7 requests are answered already", again.stderr)
        self.assertEqual(self.read(results), rows)

    # Two ranks that have answered a request, and are in the midst of the next.
    def answering_a_batch(self, *arguments):
        command, results = self.batch({"prompt": TEXT}, {"prompt": TEXT, "max_tokens": 50000})
        process = self.start_two(*command, *BY_STAR, "-c", "100000", *arguments)
        process.stdin.close()
        wait_for(lambda: results.exists() and results.read_text().endswith("\n"))
        return process, command, results

    def test_a_batch_of_which_a_rank_is_lost_ends_and_goes_on(self):
        process, command, results = self.answering_a_batch("--rank-silence", "2")
        self.signal_rank(process, 1, signal.SIGSTOP)
        self.assertRegex(self.errors_of(process),
                         r"godwit: rank 1 \(.*\) is lost: nothing was heard of it for 2 s")
        self.assertEqual(list(self.read(results)), ["0"])
        self.batch({"prompt": TEXT}, {"prompt": TEXT, "max_tokens": 50000})
        result = self.ranks(2, *command, *BY_STAR, "-c", "500")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(list(self.texts(self.read(results))), ["0", "1"])

    def test_a_killed_or_interrupted_rank_ends_the_batch(self):
        for rank, number, said in ((1, signal.SIGKILL, ""), (0, signal.SIGINT, "1 of 2 requests are")):
            process, _, results = self.answering_a_batch()
            self.signal_rank(process, rank, number)
            self.assertIn(said, self.errors_of(process))
            self.assertEqual(list(self.read(results)), ["0"])
            results.unlink()

    def test_ctrl_c_ends_a_batch(self):
        process, _, results = self.answering_a_batch()
        process.send_signal(signal.SIGINT)
        self.assertNotIn("godwit: rank", self.errors_of(process))
        self.assertEqual(list(self.read(results)), ["0"])


if __name__ == "__main__":
    unittest.main()
