"""godwit bench: its forms of output, what it refuses. Nothing here looks at how fast anything is."""

import csv
import io
import json
import signal
import time
import unittest

from harness import GOLDEN, TINY, CliTest, wait_until_sigint_is_handled

INPUT, IO, UNSUPPORTED, MEMORY = 2, 3, 5, 6
SHAPE = ["--shape", TINY / "config.json"]
FIELDS = ["test", "model", "weights", "kv_type", "threads", "tokens_per_second", "stddev", "limit",
          "fraction", "logits_hash"]


class BenchTest(CliTest):
    def bench(self, *arguments):
        rows = json.loads(self.ok("bench", "-r", "1", "--no-warmup", "--no-limits", "--json",
                                  *arguments))
        for row in rows:
            self.assertEqual(list(row)[:len(FIELDS)], FIELDS)
            self.assertGreater(row["tokens_per_second"], 0)
            self.assertRegex(row["logits_hash"], r"\A[0-9a-f]{16}\Z")
            self.assertEqual((row["limit"], row["fraction"], row["machine"]), (None,) * 3)
        return rows

    def test_limits(self):
        output = self.ok("bench", *SHAPE, "-p", "8", "-n", "2", "-r", "1", "--json")
        for row in json.loads(output):
            prompt = row["n_prompt"] > 0
            self.assertEqual(row["limit"]["kind"] == "read_bandwidth", not prompt)
            work = row["operations_per_token" if prompt else "bytes_per_token"]
            # Tokens of a model as small as this are read out of the cache.
            self.assertEqual(row["fits_cache"], not prompt)
            self.assertGreater(work, 0)
            if prompt:
                self.assertAlmostEqual(row["fraction"],
                                       work * row["tokens_per_second"] / row["limit"]["value"])
            else:
                self.assertIsNone(row["fraction"])
            for key in ("read_bandwidth", "read_buffer_bytes", "f32_peak", "fork_join_us"):
                self.assertGreater(row["machine"][key], 0)

    def hashes(self, *arguments):
        return [row["logits_hash"] for row in self.bench(*arguments)]

    def test_the_tests_of_llama_bench(self):
        rows = self.bench(*SHAPE, "-p", "8,0", "-p", "16", "-n", "4", "-d", "0,20", "-t", "1,2")
        self.assertEqual([row["test"] for row in rows],
                         ["pp8", "pp16", "tg4", "pp8 @ d20", "pp16 @ d20", "tg4 @ d20"] * 2)
        self.assertEqual([row["threads"] for row in rows], [1] * 6 + [2] * 6)
        # Not a bit depends on the threads.
        self.assertEqual([row["logits_hash"] for row in rows[:6]],
                         [row["logits_hash"] for row in rows[6:]])
        self.assertEqual({row["kv_type"] for row in rows}, {"bf16"})
        self.assertEqual({row["weights"] for row in rows}, {"bf16"})

    def test_one_text_has_one_hash(self):
        # 20 tokens in one go, in pieces, one by one, after a depth.
        together, one_by_one = self.hashes(*SHAPE, "-p", "20", "-n", "20")
        self.assertEqual(together, one_by_one)
        self.assertEqual(self.hashes(*SHAPE, "-p", "20", "-n", "0", "-ub", "7"), [together])
        self.assertEqual(self.hashes(*SHAPE, "-p", "8", "-n", "8", "-d", "12"), [together] * 2)
        self.assertNotEqual(self.hashes(*SHAPE, "-p", "8", "-n", "0", "-d", "12", "--fill-kv"),
                            [together])
        self.assertNotEqual(self.hashes(*SHAPE, "-p", "20", "-n", "0", "--weights", "f32"),
                            [together])
        for weights in ("int8", "int4"):
            hashes = self.hashes(*SHAPE, "-p", "20", "-n", "20", "--weights", weights)
            self.assertEqual(len(set(hashes)), 1)

    def test_a_prompt_read_by_a_mask(self):
        test = [*SHAPE, "-p", "64", "-n", "0", "-d", "64"]
        work = {}
        for prefill in ([], ["--prefill", "star:block=128,anchor=128"],
                        ["--prefill", "star:block=32,anchor=16"]):
            row, = json.loads(self.ok("bench", *test, *prefill, "-r", "1", "--no-warmup", "--json"))
            work["".join(prefill)] = row["operations_per_token"]
        dense, whole, star = work.values()
        self.assertEqual(whole, dense)
        self.assertLess(star, dense)  # the keys that it met are what its limit counts

    def test_several_texts_at_once(self):
        rows = self.bench(*SHAPE, "-p", "8", "-n", "4", "-np", "1,2", "-np", "8", "-d", "16")
        self.assertEqual([row["test"] for row in rows],
                         ["pp8 @ d16", "tg4 @ d16", "tg4 np2 @ d16", "tg4 np8 @ d16"])
        self.assertEqual([row["n_parallel"] for row in rows], [1, 1, 2, 8])
        # The first text is the same.
        self.assertEqual(len({row["logits_hash"] for row in rows[1:]}), 1)
        self.assertEqual(rows[3]["kv_bytes"], 8 * rows[1]["kv_bytes"])
        # The weights are read once for all of them.
        self.assertLess(rows[3]["bytes_per_token"], rows[1]["bytes_per_token"])

    def test_a_checkpoint(self):
        row, = self.bench("-m", TINY, "-p", "8", "-n", "0", "--kv", "sinks:4+60", "--isa", "scalar")
        self.assertEqual((row["model"], row["kv"], row["isa"]), (TINY.name, "sinks:4+60", "scalar"))
        row, = self.bench("-m", TINY, "-p", "8", "-n", "0", "--weights", "int8", "--kv-type", "int8")
        self.assertEqual((row["weights"], row["kv_type"]), ("int8", "int8"))
        # A checkpoint is what its layers are, whatever the head is.
        row, = self.bench("-m", GOLDEN / "int8" / "llama" / "channel_token", "-p", "8", "-n", "0")
        self.assertEqual((row["weights"], row["kv_type"]), ("int8 (head f32)", "bf16"))
        self.assertIn("f32, bf16, int8 or int4", self.refused(INPUT, "bench", "-m", TINY, "--weights", "f16"))

    def test_kv_types(self):
        for kv_type in ("f32", "f16", "bf16", "int8"):
            row, = self.bench(*SHAPE, "-p", "0", "-n", "2", "--kv-type", kv_type)
            self.assertEqual(row["kv_type"], kv_type)
        row, = self.bench(*SHAPE, "-p", "0", "-n", "2", "--weights", "f32")
        self.assertEqual(row["kv_type"], "f32")

    def test_a_table_for_people(self):
        flags = ["-p", "8", "-n", "2", "-d", "0,16", "-r", "2", "--weights", "f32"]
        output = self.ok("bench", *SHAPE, *flags)
        for part in ("reads ", "multiplies f32 ", "fork-join ", "% of limit", "| pp8 ",
                     "| tg2 @ d16 ", " in cache |", "in cache: the ",
                     "fit into the processor's cache of ",
                     " (of a buffer of ", "GB/s read bandwidth",
                     "Gop/s f32 peak", " ± "):
            self.assertIn(part, output)
        table = [line for line in output.splitlines() if line.startswith("|")]
        self.assertEqual(len({len(line) for line in table}), 1, output)

    def test_the_limit_is_that_of_the_weights(self):
        for weights in ("f32", "bf16", "int8"):
            output = self.ok("bench", *SHAPE, "-p", "8", "-n", "0", "-r", "1", "--weights", weights)
            # Types that the instruction set has no products of are held against f32's.
            limit = "f32" if f"{weights} as f32" in output else weights
            self.assertRegex(output, rf"\d Gop/s {limit} peak")

    def test_a_profile(self):
        flags = [*SHAPE, "-p", "40", "-n", "2", "-t", "1,2", "--weights", "int8"]
        plain = self.bench(*flags)
        rows = self.bench(*flags, "--profile")
        for row, alone in zip(rows, plain, strict=True):
            self.assertEqual(row["logits_hash"], alone["logits_hash"])
            self.assertNotIn("shares", alone)
            shares = row["shares"]
            self.assertAlmostEqual(sum(shares.values()), 1)
            for part in ("products", "attention", "quantizing", "norms", "activation", "rope_and_kv"):
                self.assertGreater(shares[part], 0)
            self.assertEqual(shares["others"], 0)
            self.assertEqual(shares["expert_products"], 0)
            self.assertEqual(shares["waiting_for_one_thread"] > 0, row["threads"] == 2)
            self.assertGreater(row["step_ms"], 0)
            self.assertGreater(row["step_fork_joins"], 10)
        output = self.ok("bench", *flags, "--profile", "-r", "1", "--no-limits")
        for part in ("% of the threads' time", "pp40, 2 threads", "| rope and kv ",
                     "| waiting at joins ", "| a step, ms ", "| fork-joins of a step "):
            self.assertIn(part, output)
        self.assertNotIn("expert products", output)
        output = self.ok("bench", *flags, "--profile", "-r", "1", "--no-limits", "--csv")
        self.assertIn("shares_waiting_at_joins", output)

    def test_the_parts_of_a_layer(self):
        flags = ["bench", *SHAPE, "--layer", "-p", "20,40", "-d", "30", "-r", "1"]
        counts = json.loads(self.ok(*flags, "--json"))
        self.assertEqual([count["rows"] for count in counts], [20, 40])
        for count in counts:
            names = [part["part"] for part in count["parts"]]
            for name in ("norm, twice", "quantizing", "qkv", "attention", "down", "activation"):
                self.assertIn(name, names)
            self.assertLessEqual(count["overlapped_s"], count["limit_s"])
            self.assertAlmostEqual(count["alone_s"], sum(part["alone_s"] for part in count["parts"]
                                                         if not part["inside"]))
        output = self.ok(*flags)
        for part in ("20 rows behind 30 tokens", "| gate and up ", "if all parts overlapped: "):
            self.assertIn(part, output)
        self.assertIn("-p 512", self.refused(INPUT, "bench", *SHAPE, "--layer", "-p", "0"))
        self.refused(UNSUPPORTED, "bench", "--shape", "mla", "--layer")
        for flag in (["--profile"], ["-t", "1"], ["-n", "4"], ["--csv"]):
            self.refused(INPUT, *flags, *flag)

    def test_csv(self):
        output = self.ok("bench", *SHAPE, "-p", "8", "-n", "2", "-r", "2", "--no-limits", "--csv")
        rows = list(csv.DictReader(io.StringIO(output)))
        self.assertEqual([row["test"] for row in rows], ["pp8", "tg2"])
        for row in rows:
            self.assertGreater(float(row["tokens_per_second"]), 0)
            self.assertNotIn(None, row)

    def test_several_hosts(self):
        output = self.ok("bench", *SHAPE, "-r", "1", "--no-limits", "-p", "64", "-n", "4", "-d",
                         "0,512", "--prefill", "star:block=256", "--ranks", "1,2,8", "--contexts",
                         "1024", "--network-gbit", "2.5")
        self.assertIn("An estimate, not a measurement", output)
        self.assertIn("Links of 2.5 Gbit/s, 50 us", output)
        rows = [[cell.strip() for cell in line.split("|")[1:-1]]
                for line in output.splitlines() if "1024" in line]
        texts = [[f"text, {how}", "1024", hosts] for how in ("star:block=256", "ring")
                 for hosts in ("1", "2", "8")]
        weights = [["weights", "1024", hosts] for hosts in ("1", "2")]
        self.assertEqual([row[:3] for row in rows], texts + weights)
        self.assertEqual(rows[2][4], "too short")
        self.assertIn("8 ranks cannot share the weights", output)
        # 2 hosts, heads x (head_dim + 2) floats
        config = json.loads((TINY / "config.json").read_text())
        heads, dim = config["num_attention_heads"], config["hidden_size"]
        self.assertEqual(int(rows[1][8]), 2 * heads * (dim // heads + 2) * 4)
        # 2 hosts send a sum for the embedding and two in each layer, and half of the logits each.
        layers, vocab = config["num_hidden_layers"], config["vocab_size"]
        self.assertEqual(int(rows[7][8]), (2 * (2 * layers + 1) * dim + vocab) * 4 // layers)
        self.assertIn("Links of 100 Gbit/s", self.ok(
            "bench", *SHAPE, "-r", "1", "--no-limits", "-p", "64", "-n", "0", "-d", "0,512",
            "--ranks", "2", "--contexts", "1024"))

    def test_refusals_for_several_hosts(self):
        hosts = ["bench", *SHAPE, "--ranks", "2"]
        self.assertIn("at two depths", self.refused(INPUT, *hosts))
        self.assertIn("at two depths", self.refused(INPUT, *hosts, "-p", "0", "-d", "0,64"))
        hosts += ["-d", "0,64"]
        self.assertIn("one value of -t", self.refused(INPUT, *hosts, "-t", "1,2"))
        self.assertIn("exclude each other", self.refused(INPUT, *hosts, "--json"))
        self.assertIn("--kv dense", self.refused(UNSUPPORTED, *hosts, "--kv", "sinks:4+8"))
        for network in (("gbit", "0"), ("gbit", "-1"), ("gbit", "10,"), ("gbit", "inf"),
                        ("us", "-1"), ("us", "nan")):
            self.refused(INPUT, *hosts, f"--network-{network[0]}={network[1]}")

    def test_numa(self):
        result = self.godwit("bench", *SHAPE, "-p", "8", "-n", "0", "-r", "1", "--numa",
                             "distribute", "--no-limits", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("threads are pinned to CPUs", result.stderr)
        plain = self.hashes(*SHAPE, "-p", "8", "-n", "0")
        self.assertEqual([row["logits_hash"] for row in json.loads(result.stdout)], plain)
        self.ok("run", "-m", TINY, "-p", "x", "-n", "1", "--numa", "distribute")

    def test_more_threads_than_cores_are_warned_about(self):
        result = self.godwit("bench", *SHAPE, "-p", "0", "-n", "1", "-r", "1", "--no-warmup",
                             "-t", "500", "--no-limits", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"\Agodwit: warning: 500 threads for \d+ cores?: ")

    def test_refusals(self):
        for wrong in (["--shape", "9b"], ["--weights", "f64"], ["-p", "0", "-n", "0"],
                      ["-p", "many"], ["-p", "4-1"], ["-d", "-1"], ["-r", "0"], ["-t", "-1"], ["-np", "0"],
                      ["--kv", "dens"], ["--kv-type", "f64"], ["--isa", "abacus"],
                      ["--numa", "isolate"], ["--json", "--csv"], ["--plot", "x.svg"],
                      ["-m", TINY]):
            with self.subTest(wrong=wrong):
                self.refused(INPUT, "bench", *SHAPE, *wrong)
        self.refused(IO, "bench", "--shape", "/missing/config.json")
        self.refused(IO, "bench", "-m", "/missing")

    def test_an_overlarge_test_is_refused_before_memory_is_taken(self):
        # 4 Mi tokens of 70b take 1.3 TiB. The weights alone are 131 GiB.
        message = self.refused(MEMORY, "bench", "--shape", "70b", "-d", "4194304", "--fill-kv")
        self.assertRegex(message, r"131\.\d GiB of weights, 1\.\d TiB of KV cache and .* of scratch "
                                  r"memory \(a text of up to \d+ tokens, in BF16\) take 1\.\d TiB, "
                                  r"and .* are free of the .* that this process may use")

    # A hint that is followed leads into no further refusal.
    def test_what_the_refusal_advises_fits(self):
        tests = [*SHAPE, "-p", "0", "-n", "2", "-r", "1", "--no-limits", "--fill-kv"]
        refused = [*tests, "--kv-memory", "2100K", "-d", "4096,8192"]
        message = self.refused(MEMORY, "bench", *refused)
        self.assertTrue(message.endswith(": use --kv-type int8, or -d 8192"), message)
        self.ok("bench", *refused, "--kv-type", "int8")
        self.ok("bench", *refused[:-1], "8192")
        # No flag alone is enough.
        refused = [*tests, "--kv-memory", "300K", "-np", "2", "-d", "20000"]
        message = self.refused(MEMORY, "bench", *refused)
        self.assertTrue(message.endswith(": use --kv-type int4 -d 1024"), message)
        self.ok("bench", *refused[:-1], "1024", "--kv-type", "int4")

    def test_an_instruction_set_that_is_missing(self):
        isas = json.loads(self.ok("inspect", "-m", TINY, "--json"))["supported_isas"]
        if "avx512-amx" in isas:
            self.skipTest("this machine has everything")
        message = self.refused(UNSUPPORTED, "bench", *SHAPE, "--isa", "avx512-amx")
        self.assertIn("this machine lacks", message)

    def test_ctrl_c_ends_it(self):
        process = self.start("bench", *SHAPE, "-p", "512", "-n", "512", "-r", "10000", "-t", "1",
                             "--isa", "scalar", "--no-limits")
        wait_until_sigint_is_handled(process)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertEqual(process.stdout.read(), b"")


if __name__ == "__main__":
    unittest.main()
