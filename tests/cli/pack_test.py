"""godwit pack, --pack and --packed: weights that are mapped as they lie in memory."""

import json
import os
import shutil
import unittest

from harness import GOLDEN, CliTest

INPUT, IO, FORMAT, UNSUPPORTED = 2, 3, 4, 5
PROMPT = "Once upon a time there was a little cat who"


class PackTest(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.copy_of_tiny()
        self.copy = self.model / "model.int4.godwit"

    def run_with(self, *flags, model=None):
        """The tokens of a run, and what it says on standard error."""
        result = self.godwit("run", "-m", model or self.model, "-p", PROMPT, "-n", "12", "--temp",
                             "0", "--ignore-eos", "--json", "--weights", "int4", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["tokens"], result.stderr

    def flip(self, path, at):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def test_pack_writes_what_a_run_maps(self):
        plain, _ = self.run_with()
        facts = self.ok("pack", "-m", self.model, "--weights", "int4")
        self.assertIn(str(self.copy), facts)
        self.assertEqual(self.run_with(), (plain, ""))
        self.assertEqual(self.run_with("--packed", "none"), (plain, ""))
        self.assertEqual(self.ok("pack", "-m", self.model, "--weights", "int4", "--verify"),
                         f"{self.copy}: the copy is complete and up to date\n")
        told = json.loads(self.ok("pack", "-m", self.model, "--weights", "int4", "--json"))
        self.assertEqual((told["file"], told["weights"], told["bytes"]),
                         (str(self.copy), "int4", self.copy.stat().st_size))

    def test_a_file_without_a_folder(self):
        shutil.copy(GOLDEN / "gguf" / "tiny_llama.gguf", self.folder / "a.gguf")
        self.assertIn("a.auto.godwit", self.ok("pack", "-m", "a.gguf", cwd=self.folder))
        self.assertIn("the copy is complete and up to date",
                      self.ok("pack", "-m", "a.gguf", "--verify", cwd=self.folder))

    def test_the_copy_is_mapped(self):
        self.ok("pack", "-m", self.model, "--weights", "int4")
        process = self.start("chat", "-m", self.model, "--weights", "int4", "--kv", "sinks:4+60",
                             stdin=-1)
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        process.stdout.read(1)
        with open(f"/proc/{process.pid}/maps") as maps:
            mapped = [line for line in maps if line.rstrip().endswith("/model.int4.godwit")]
        self.assertEqual(len(mapped), 1)
        self.assertIn(" r--p ", mapped[0])

    def test_pack_on_first_use(self):
        plain, _ = self.run_with()
        self.assertEqual(self.run_with("--pack"), (plain, ""))
        made = self.copy.stat()
        self.assertEqual(self.run_with("--pack"), (plain, ""))
        self.assertEqual(self.copy.stat().st_ino, made.st_ino)
        self.assertEqual(self.godwit("run", "-m", self.model, "-p", PROMPT, "-n", "1",
                                     variables={"GODWIT_PACK": "1"}).returncode, 0)
        self.assertTrue((self.model / "model.auto.godwit").exists())

    def test_a_changed_model_is_noticed(self):
        self.run_with("--pack")
        weights = self.model / "model.safetensors"
        times = weights.stat()
        self.flip(weights, -1)
        os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
        changed, said = self.run_with()
        self.assertEqual(said, f"godwit: warning: {self.copy}: out of date: the content of its weights "
                               "has changed; loading the model without a packed copy\n")
        packed, said = self.run_with("--pack")
        self.assertEqual(packed, changed)
        self.assertIn("; packing it again\n", said)
        self.assertEqual(self.run_with(), (changed, ""))
        config = self.model / "config.json"
        config.write_text(config.read_text().replace("{", "{ ", 1))
        self.assertIn("config.json has changed; ", self.run_with()[1])
        self.assertEqual(self.refused(FORMAT, "pack", "-m", self.model, "--weights", "int4",
                                      "--verify"),
                         f"{self.copy}: out of date: config.json has changed")

    def test_a_broken_copy_is_reported_in_one_sentence(self):
        named = self.folder / "copy"
        self.ok("pack", "-m", self.model, "--weights", "int4", "-o", named)
        self.assertFalse(self.copy.exists())
        whole = named.read_bytes()
        run = ("run", "-m", self.model, "-p", PROMPT, "-n", "1", "--packed", named)
        self.ok(*run, "--weights", "int4")
        self.assertEqual(self.refused(FORMAT, *run),
                         f"{named}: holds the weights as int4, expected auto")
        for content, code, sentence in (
                (whole[:-7], FORMAT, "cut short or damaged at its end"),
                (whole[:8] + b"\x07" + whole[9:], UNSUPPORTED,
                 "packed in version 7 of the layout, expected version 2"),
                (whole[:-60] + b"#" + whole[-59:], FORMAT,
                 "damaged: its header has another checksum"),
                (b"hello", FORMAT, "not a packed copy of a model")):
            named.write_bytes(content)
            self.assertEqual(self.refused(code, *run, "--weights", "int4"), f"{named}: {sentence}")
        named.unlink()
        self.assertIn("cannot open", self.refused(IO, *run))
        self.assertEqual(self.refused(IO, "pack", "-m", self.model, "--verify"),
                         f"{self.model}/model.auto.godwit: there is no such packed copy of the model: "
                         "make one with godwit pack")
        self.assertEqual(self.refused(INPUT, *run[:-1], "none", "--pack"),
                         "making a packed copy and using none exclude each other")

    def test_damage_is_found(self):
        plain, _ = self.run_with()
        self.ok("pack", "-m", self.model, "--weights", "int4")
        whole = self.copy.read_bytes()
        step = (len(whole) - 4096) // 8
        for at in range(4096, len(whole), step):
            self.flip(self.copy, at)
            tokens, said = self.run_with()
            self.assertEqual(tokens, plain, at)
            # Between parts there are zeros that nobody reads.
            if said:
                self.assertRegex(said, "damaged.*; loading the model without a packed copy")
            else:
                self.assertEqual(whole[at], 0, at)
            self.copy.write_bytes(whole)
        self.flip(self.copy, 4096)
        self.assertRegex(self.run_with()[1], "damaged: ")
        self.assertIn("damaged: ", self.refused(FORMAT, "run", "-m", self.model, "-p", "x", "--weights",
                                                "int4", "--packed", self.copy))
        said = self.refused(FORMAT, "pack", "-m", self.model, "--weights", "int4", "--verify")
        self.assertRegex(said, f'^{self.copy}: damaged: "[^"]+" has another checksum$')

    def test_nothing_else_is_overwritten(self):
        for name in ("model.safetensors", "config.json"):
            file = self.model / name
            before = file.read_bytes()
            self.assertEqual(self.refused(INPUT, "pack", "-m", self.model, "-o", file),
                             f"{file}: exists already and is no packed copy: choose another name")
            self.assertEqual(file.read_bytes(), before)

    def test_a_folder_that_cannot_be_written(self):
        if os.geteuid() == 0:
            self.skipTest("notice: root writes everywhere")
        self.model.chmod(0o555)
        self.addCleanup(self.model.chmod, 0o755)
        plain, _ = self.run_with()
        self.assertEqual(self.run_with("--pack"), (plain, ""))
        copies = list((self.folder / ".cache" / "godwit" / "packed").glob("model-*.int4.godwit"))
        self.assertEqual(len(copies), 1)
        self.assertEqual(self.run_with(), (plain, ""))
        self.assertEqual(self.ok("pack", "-m", self.model, "--weights", "int4", "--verify"),
                         f"{copies[0]}: the copy is complete and up to date\n")

    def test_a_full_disk(self):
        """A file system of 64 KiB, where there may be one."""
        small = self.folder / "small"
        small.mkdir()
        if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=64k none {small} 2>/dev/null"):
            self.skipTest("notice: no small disk can be mounted here")
        self.addCleanup(os.system, f"umount {small}")
        said = self.refused(IO, "pack", "-m", self.model, "-o", small / "copy")
        self.assertRegex(said, r"copy: a packed copy takes \d+\.\d KiB, and 64\.0 KiB are free on the "
                               r"disk$")
        self.assertEqual(list(small.iterdir()), [])

    def test_gguf_and_int8_models(self):
        gguf = self.folder / "tiny.gguf"
        shutil.copy(GOLDEN / "gguf" / "tiny_llama.gguf", gguf)
        plain, _ = self.run_with(model=gguf)
        self.assertEqual(self.run_with("--pack", model=gguf), (plain, ""))
        self.assertTrue((self.folder / "tiny.int4.godwit").exists())
        self.assertEqual(self.run_with(model=gguf), (plain, ""))

    def test_every_verb_that_loads_a_model(self):
        text = self.folder / "text.txt"
        text.write_text(PROMPT * 20)
        plain = self.ok("perplexity", "-m", self.model, "-f", text, "--json")
        self.ok("perplexity", "-m", self.model, "-f", text, "--pack")
        self.assertTrue((self.model / "model.auto.godwit").exists())
        packed = json.loads(self.ok("perplexity", "-m", self.model, "-f", text, "--json"))
        self.assertEqual(packed["perplexity"], json.loads(plain)["perplexity"])
        self.ok("bench", "-m", self.model, "-p", "8", "-n", "2", "-r", "1", "--no-limits",
                "--weights", "int8", "--pack")
        self.assertTrue((self.model / "model.int8.godwit").exists())


if __name__ == "__main__":
    unittest.main()
