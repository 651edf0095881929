"""--cache: what is read of a text is saved while it is read; godwit cache, which shows what is there."""

import json
import re
import time
import unittest

from harness import TINY, CliTest, Terminal

INPUT, IO, FORMAT = 2, 3, 4
STORY = "Once upon a time there was a little cat who lived in a house near the sea. " * 30


class CacheTest(CliTest):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "saved"
        self.prompt = self.folder / "prompt.txt"
        self.prompt.write_text(STORY)

    def run_json(self, *arguments, text=None):
        if text is not None:
            self.prompt.write_text(text)
        return json.loads(self.ok("run", "-m", TINY, "-f", self.prompt, "-n", "20", "--temp", "0",
                                  "--ignore-eos", "--json", *arguments))

    def saved(self, *arguments):
        return self.run_json("--cache-dir", self.cache, *arguments)

    def files(self):
        return sorted(self.cache.glob("*.kv"))

    def list(self):
        return json.loads(self.ok("cache", "list", "--cache-dir", self.cache, "--json"))

    def test_a_second_run_goes_on(self):
        plain = self.run_json()
        self.assertEqual(plain["disk_tokens"], 0)
        first, second = self.saved(), self.saved()
        for result in (first, second):
            self.assertEqual(result["tokens"], plain["tokens"])
            self.assertEqual(result["prompt_tokens"], plain["prompt_tokens"])
        self.assertEqual((first["cached_tokens"], first["disk_tokens"]), (0, 0))
        whole = (plain["prompt_tokens"] - 1) // 64 * 64
        self.assertEqual(second["disk_tokens"], whole)
        self.assertEqual(second["cached_tokens"], whole)
        self.assertEqual(second["read_tokens"], plain["prompt_tokens"] - whole)
        other = self.run_json("--cache-dir", self.cache, text=STORY[:1000] + "And so it was.")
        self.assertGreater(other["disk_tokens"], 0)
        self.assertEqual(other["tokens"],
                         self.run_json(text=STORY[:1000] + "And so it was.")["tokens"])

    def test_every_type_of_cache_is_taken_up(self):
        for kv_type in ("f16", "int8", "k8v4", "int4"):
            plain = self.run_json("--kv-type", kv_type)
            self.saved("--kv-type", kv_type)
            again = self.saved("--kv-type", kv_type)
            self.assertEqual(again["disk_tokens"], (plain["prompt_tokens"] - 1) // 64 * 64)
            self.assertEqual(again["tokens"], plain["tokens"])

    def test_the_users_folder(self):
        self.run_json("--cache")
        self.assertEqual(self.run_json()["disk_tokens"], 0)
        self.assertGreater(self.run_json("--cache")["disk_tokens"], 0)
        self.assertTrue(list((self.folder / ".cache" / "godwit").glob("*.kv")))
        self.assertIn("1 text in ", self.ok("cache"))

    def test_the_summary_tells(self):
        self.saved()
        terminal = Terminal(self, "run", "-m", TINY, "-f", self.prompt, "-n", "5", "--temp", "0",
                            "--cache-dir", self.cache)
        terminal.expect(" of them cached on the disk, ")
        self.assertEqual(terminal.finish(), 0)

    def test_chat_and_batch(self):
        requests = self.folder / "requests.jsonl"
        requests.write_text("".join(
            json.dumps({"custom_id": str(i), "method": "POST", "url": "/v1/completions",
                        "body": {"prompt": STORY + str(i), "max_tokens": 9, "temperature": 0}})
            + "\n" for i in range(3)))
        texts = []
        for name, flags in (("plain", []), ("a", ["--cache-dir", self.cache]),
                            ("b", ["--cache-dir", self.cache])):
            output = self.folder / f"{name}.jsonl"
            self.ok("batch", "-m", TINY, "-f", requests, "-o", output, *flags)
            answers = [json.loads(line)["response"]["body"]
                       for line in output.read_text().splitlines()]
            texts.append({a["choices"][0]["text"] for a in answers})
            cached = [a["usage"]["prompt_tokens_details"]["cached_tokens"] for a in answers]
        self.assertEqual(texts[1], texts[0])
        self.assertEqual(texts[2], texts[0])
        self.assertGreaterEqual(min(cached), 64)
        say = "Tell me about the cat. " * 20 + "\n"
        flags = ["chat", "-m", TINY, "-n", "9", "--temp", "0", "--cache-dir", self.cache]
        self.assertEqual(self.ok(*flags, stdin=say), self.ok(*flags, stdin=say))
        self.assertGreater(len(self.list()["texts"]), 1)

    def test_list_pin_and_rm(self):
        self.saved("--keep-as", "the-story")
        text = self.list()["texts"][-1]
        self.assertEqual(text["pins"], ["the-story"])
        self.assertEqual(text["model"], "tiny-llama")
        listed = self.ok("cache", "list", "--cache-dir", self.cache)
        self.assertIn("the-story", listed)
        self.assertIn(text["id"][:12], listed)
        self.assertNotIn("cat", listed, "texts are nobody's business")
        cache = ["--cache-dir", self.cache]
        self.ok("cache", "unpin", "the-story", *cache)
        self.assertIn("no text is pinned as",
                      self.refused(INPUT, "cache", "unpin", "the-story", *cache))
        self.ok("cache", "pin", text["id"][:8], "again", *cache)
        self.assertEqual(self.list()["texts"][-1]["pins"], ["again"])
        self.ok("cache", "rm", "again", *cache)
        self.saved()
        self.ok("cache", "rm", "all", *cache)
        self.assertEqual(self.list()["texts"], [])
        self.assertIn("0 texts in 0 files", self.ok("cache", *cache))

    def test_sizes_add_up(self):
        """Of one text in several files, and of two that begin alike."""
        self.saved()
        cache = ["--cache-dir", self.cache]
        self.run_json(*cache, text=STORY[:2000] + "And then the sea came. " * 10)
        def listed():
            lines = self.ok("cache", "--cache-dir", self.cache).splitlines()
            sizes = [float(size) for line in lines[1:-2] for size in re.findall(r" ([\d.]+) [KM]iB ", line)]
            self.assertEqual(len({unit for line in lines[1:] for unit in re.findall(r"[\d.] ([KM]iB)", line)}), 1)
            total = float(re.search(r"files?, ([\d.]+) ", lines[-1])[1])
            shared = re.search(r", because texts share ([\d.]+) ", lines[-1])
            return sizes, total, float(shared[1]) if shared else 0
        self.assertGreater(len(self.files()), 1)
        sizes, total, shared = listed()
        self.assertEqual(len(sizes), 1)
        self.assertAlmostEqual(sum(sizes) - shared, total, delta=0.1 * len(sizes))
        self.run_json(*cache, text=STORY[:1500] + "But nobody came. " * 20)
        sizes, total, shared = listed()
        self.assertEqual(len(sizes), 2)
        self.assertGreater(shared, 0)
        self.assertAlmostEqual(sum(sizes) - shared, total, delta=0.1 * (len(sizes) + 1))

    def test_verify_names_what_is_wrong(self):
        self.saved()
        cache = ["--cache-dir", self.cache]
        self.assertIn("no damage found", self.ok("cache", "verify", *cache))
        damaged = self.files()[0]
        data = bytearray(damaged.read_bytes())
        data[-5000] ^= 1
        damaged.write_bytes(data)
        result = self.godwit("cache", "verify", *cache)
        self.assertEqual(result.returncode, FORMAT)
        self.assertIn(f"{damaged.name}: damaged: page ", result.stdout)
        result = self.godwit("run", "-m", TINY, "-f", self.prompt, "-n", "20", "--temp", "0",
                             "--ignore-eos", *cache)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("computed again"), 1, result.stderr)
        self.assertIn("no damage found", self.ok("cache", "verify", *cache))

    def test_another_type_is_said(self):
        self.saved("--kv-type", "bf16")
        result = self.godwit("run", "-m", TINY, "-f", self.prompt, "-n", "1",
                             "--cache-dir", self.cache, "--kv-type", "int8")
        self.assertIn("are saved with other settings (kv type BF16, not I8 (rotated)", result.stderr)

    def test_bad_input(self):
        file = self.folder / "file"
        file.write_text("x")
        run = ["run", "-m", TINY, "-p", "x"]
        self.assertIn("expected a folder", self.refused(INPUT, *run, "--cache-dir", file))
        self.assertIn("cannot make the folder", self.refused(IO, *run, "--cache-dir", "/proc/x/y"))
        self.assertIn("it needs --cache", self.refused(INPUT, *run, "--keep-as", "x"))
        self.assertIn("expected a name", self.refused(INPUT, *run, "--cache", "--keep-as", "a b"))
        self.assertIn("did you mean verify?", self.refused(INPUT, "cache", "verfy"))
        self.assertIn("no such folder",
                      self.refused(IO, "cache", "list", "--cache-dir", self.folder / "none"))
        self.saved()
        cache = ["--cache-dir", self.cache]
        self.assertIn("no saved text is called", self.refused(INPUT, "cache", "rm", "zz", *cache))
        self.assertIn("rm: expected ids", self.refused(INPUT, "cache", "rm", *cache))
        no_id = 'expected no id, because it covers all texts, found "zz"'
        for words, says in ((["list", "zz"], f"list: {no_id}"), (["verify", "zz"], f"verify: {no_id}"),
                            (["verify", "--json"], "verify: --json works with list only")):
            self.assertEqual(self.refused(INPUT, "cache", *words, *cache), says)
        self.assertIn("expected the id of a text and a name",
                      self.refused(INPUT, "cache", "pin", "x", *cache))

    def test_a_folder_that_is_full(self):
        result = self.godwit("run", "-m", TINY, "-f", self.prompt, "-n", "5", "--temp", "0",
                             "--cache-dir", self.cache, "--cache-size", "1K")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("could not be saved"), 1, result.stderr)
        self.assertEqual(self.files(), [])

    def test_a_killed_run_loses_little(self):
        """Whenever it is killed: what was saved is whole, and the next run goes on from it."""
        text = self.folder / "long.txt"
        text.write_text(STORY * 8)
        run = ["run", "-m", TINY, "-f", text, "-n", "5", "--temp", "0", "--ignore-eos", "-c", "0",
               "--kv", "sinks:4+8000", "--cache-dir", self.cache, "--json"]
        expected = json.loads(self.ok(*run[:-3], "--json"))["tokens"]
        for delay in (0.05, 0.1, 0.2, 0.3, 0.5):
            process = self.start(*run)
            time.sleep(delay)
            process.kill()
            process.wait()
            if self.cache.exists():
                self.assertIn("no damage found",
                              self.ok("cache", "verify", "--cache-dir", self.cache))
            self.assertEqual(list(self.cache.glob("*.part")), [])
        self.assertEqual(json.loads(self.ok(*run))["tokens"], expected)

    def test_two_at_once(self):
        expected = self.run_json()["tokens"]
        run = ["run", "-m", TINY, "-f", self.prompt, "-n", "20", "--temp", "0", "--ignore-eos",
               "--json", "--cache-dir", self.cache]
        processes = [self.start(*run) for _ in range(3)]
        for process in processes:
            output, _ = process.communicate()
            self.assertEqual(json.loads(output)["tokens"], expected)
        self.assertIn("no damage found", self.ok("cache", "verify", "--cache-dir", self.cache))


if __name__ == "__main__":
    unittest.main()
