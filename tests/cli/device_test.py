"""--device and --gpu-memory, on the GPU that the CPU emulates, and on machines without one."""

import json
import re
import unittest

from harness import EXPECTED, GOLDEN, TINY, CliTest, changed

INPUT, UNSUPPORTED, MEMORY = 2, 5, 6
STORY = EXPECTED["complete"][0]["prompt"]
BF16 = ["--weights", "bf16"]
GLM = GOLDEN / "glm4_moe" / "air"  # experts in one of three layers
RUN = ["run", "-m", TINY, "--temp", "0", "-n", "12", *BF16, "-p", STORY]


class DeviceTest(CliTest):
    def test_an_emulated_gpu_writes_the_same_text(self):
        expected = self.ok(*RUN)
        self.assertEqual(self.ok(*RUN, "--device", "cpu"), expected)
        result = self.godwit(*RUN, "--device", "emulated")
        self.assertEqual(result.stdout, expected)
        self.assertRegex(result.stderr, r"godwit: the emulated GPU: (\d+) of \1 layers? and the "
                                        r"output head, .* of weights and .* for a step")

    def test_inspect_plans_what_an_engine_does(self):
        def plan(size):
            return json.loads(self.ok("inspect", "-m", TINY, *BF16, "--gpu-memory", size,
                                      "--json"))
        whole = plan("1G")
        gpu, layers = whole["gpu"], whole["layers"]
        self.assertEqual((gpu["layers"], gpu["head"], gpu["problem"]), (layers, True, ""))
        self.assertLess(gpu["host_weight_bytes"], whole["weights"]["loaded_bytes"])
        part = gpu["step_bytes"] + gpu["weight_bytes"] // 2
        planned = plan(str(part))["gpu"]
        self.assertTrue(0 < planned["layers"] < layers, planned)
        said = self.godwit(*RUN, "--device", "emulated", "--gpu-memory", part).stderr
        self.assertIn(f": {planned['layers']} of {layers} layers, ", said)
        text = self.ok("inspect", "-m", TINY, *BF16, "--gpu-memory", "1G")
        self.assertRegex(text, rf"GPU +{layers} of {layers} layers and the output head: .* stay here")
        self.assertIsNone(json.loads(self.ok("inspect", "-m", TINY, "--json")).get("gpu"))
        nothing = plan("1K")["gpu"]
        self.assertEqual(nothing["layers"], 0)
        self.assertIn("no layer fits into 1.0 KiB of a GPU", nothing["problem"])

    def test_inspect_tells_of_shared_experts(self):
        flags = ["inspect", "-m", GLM, *BF16, "--gpu-memory", "1G"]
        gpu = json.loads(self.ok(*flags, "--json"))["gpu"]
        self.assertEqual((gpu["layers"], gpu["host_mlps"], gpu["shared_mlps"]), (3, 1, 1))
        self.assertIn("(1 without experts or MLP, 1 with shared experts)", self.ok(*flags))

    def test_a_gpu_reads_the_context(self):
        read = [*RUN, "--device", "emulated", "--prefill", "gpu", "--query-tokens", "2"]
        result = self.godwit(*read)
        self.assertEqual(result.stdout, self.ok(*RUN))
        self.assertIn(" for a step with attention, of ", result.stderr)
        self.assertEqual(self.ok(*read, "-ub", "3"), result.stdout)
        self.assertIn("keeps every token, found sinks:4+60",
                      self.refused(UNSUPPORTED, *read, "--kv", "sinks:4+60"))
        self.assertIn("f32, f16 or bf16, found int8",
                      self.refused(UNSUPPORTED, *read, "--kv-type", "int8"))
        self.assertEqual(self.refused(INPUT, *RUN, "--prefill", "gpu"),
                         "--prefill gpu lets a GPU read contexts: name one with --device")

    def test_a_gpu_attends_to_near_tokens(self):
        near = [*RUN, "--device", "emulated", "--gpu-window", "64"]
        result = self.godwit(*near)
        self.assertEqual(result.stdout, self.ok(*RUN))
        self.assertIn(" of keys and values and ", result.stderr)
        self.assertEqual(self.ok(*near, "-ub", "3"), result.stdout)
        self.assertEqual(self.ok(*near, "--kv-type", "f32"), result.stdout)
        self.assertIn("a policy that keeps every token, found sinks:4+60",
                      self.refused(UNSUPPORTED, *near, "--kv", "sinks:4+60"))
        self.assertIn("the first 64 and the last 1024, not 1152",
                      self.refused(UNSUPPORTED, *changed(near, "--gpu-window", "1152"),
                                   "--kv", "blocks"))
        self.assertIn("a multiple of 64 tokens, found 100",
                      self.refused(INPUT, *changed(near, "--gpu-window", "100")))
        self.assertEqual(self.refused(INPUT, *RUN, "--gpu-window", "64"),
                         "--gpu-window lets a GPU attend: name one with --device")
        bench = ["bench", "-m", TINY, *BF16, "--device", "emulated", "-p", "8", "-n", "2", "-r", "1",
                 "--no-limits", "--gpu-window", "64", "--json"]
        self.assertGreater(json.loads(self.ok(*bench))[0]["device"]["layers"], 0)

    def test_inspect_plans_attention(self):
        def plan(*flags):
            return json.loads(self.ok("inspect", "-m", TINY, *BF16, "--json", "--gpu-memory", "1G",
                                      *flags))["gpu"]
        alone, attends = plan(), plan("--gpu-attention")
        self.assertGreater(attends["step_bytes"], alone["step_bytes"])
        self.assertEqual(attends["weight_bytes"], alone["weight_bytes"])
        self.assertIn("--gpu-memory", self.refused(INPUT, "inspect", "-m", TINY, "--gpu-attention"))
        near = plan("--gpu-window", "128")
        self.assertGreater(near["window_bytes"], alone["window_bytes"])
        self.assertEqual((alone["window_bytes"], near["weight_bytes"]), (0, alone["weight_bytes"]))
        self.assertRegex(self.ok("inspect", "-m", TINY, *BF16, "--gpu-memory", "1G",
                                 "--gpu-window", "128"), r"GPU .* of keys and values and .* for a")

    def test_bench_measures_the_limits_of_the_gpu(self):
        bench = ["bench", "-m", TINY, *BF16, "--device", "emulated", "-p", "8", "-n", "2", "-r", "1"]
        text = self.ok(*bench)
        self.assertRegex(text, r"\nit reads [\d.]+ GB/s; multiplies bf16 [\d.]+ Gop/s, int8 ")
        rows = json.loads(self.ok(*bench, "--json"))
        self.assertEqual(rows[0]["limit"]["kind"], "gpu_bf16_peak")
        device = rows[0]["device"]
        self.assertEqual(rows[0]["limit"]["value"], device["limits"]["bf16_peak"])
        self.assertTrue(all(rate > 0 for rate in device["limits"].values()), device)
        without = json.loads(self.ok(*bench, "--no-limits", "--json"))
        self.assertIsNone(without[0]["device"]["limits"])
        self.assertIsNone(without[0]["limit"])
        self.assertEqual(device["waits_per_step"], device["layers"] + 2)
        self.assertGreater(device["bus_bytes_per_token"], 0)
        self.assertNotIn("attention_bus_bytes_per_token", rows[0])
        read = json.loads(self.ok(*bench, "--prefill", "gpu", "--no-limits", "--json"))
        self.assertGreater(read[0]["attention_bus_bytes_per_token"], 0)
        self.assertNotIn("attention_bus_bytes_per_token", read[1])
        near = json.loads(self.ok(*bench, "--gpu-window", "64", "--no-limits", "--json"))
        self.assertNotIn("attention_bus_bytes_per_token", near[0])
        self.assertGreater(near[1]["attention_bus_bytes_per_token"], 0)
        here = json.loads(self.ok(*bench[:5], *bench[7:], "--no-limits", "--json"))
        self.assertIsNone(here[0]["device"])

    def test_refusals(self):
        self.assertIn("a device is cpu, cuda, cuda:N",
                      self.refused(INPUT, *RUN, "--device", "gpu"))
        self.assertEqual(self.refused(INPUT, *RUN, "--gpu-memory", "1G"),
                         "--gpu-memory has no effect without --device")
        self.assertRegex(self.refused(MEMORY, *RUN, "--device", "emulated", "--gpu-memory", "1K"),
                         r"\Ano layer fits into 1.0 KiB of the emulated GPU: a layer takes .*, and "
                         r"steps of 512 tokens .*; this machine has .* of memory available\Z")
        self.assertEqual(
            self.refused(UNSUPPORTED, *changed(RUN, "--weights", "f32"), "--device", "emulated"),
            "GPUs multiply weights in bf16, int8 and groups of 4 to 8 bits, found F32")

    def test_a_machine_without_a_gpu_says_so(self):
        message = self.refused(UNSUPPORTED, *RUN, "--device", "cuda:250")
        self.assertTrue(re.search(r"no kernels for GPUs|libcuda\.so\.1|no GPU", message), message)


if __name__ == "__main__":
    unittest.main()
