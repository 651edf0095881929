"""Answers survive power cuts at random moments: files have what fsync brought to the disk, and a
random part of the rest (tests/power_cut). Each answer is byte for byte that of an undisturbed
program, and none comes twice.

GODWIT_KILLS: the number of cuts of each way of keeping texts (default 3).
GODWIT_POWER_CUT: the program power_cut; GODWIT_POWER_CUT_RECORDER: the library to preload.
"""

import json
import os
import pathlib
import random
import re
import subprocess
import unittest

import harness
from harness import TINY
from survive_test import REQUESTS, TEXT, ServerTest

CUTS = int(os.environ.get("GODWIT_KILLS", "3"))
POWER_CUT = os.environ["GODWIT_POWER_CUT"]
RECORDER = os.environ["GODWIT_POWER_CUT_RECORDER"]


class Disk:
    """The folder `live`, in which programs work, and what is durable of it."""

    def __init__(self, folder, seed):
        self.folder, self.number, self.chance = folder, 0, random.Random(seed)
        self.live.mkdir()
        self.begin()

    @property
    def live(self):
        return self.folder / f"live-{self.number}"

    @property
    def variables(self):
        return {"LD_PRELOAD": RECORDER, "POWER_CUT_LIVE": str(self.live),
                "POWER_CUT_DISK": str(self.folder / f"disk-{self.number}"),
                "POWER_CUT_US": "3000"}

    def begin(self):
        subprocess.run([POWER_CUT, "begin", self.live, self.folder / f"disk-{self.number}"],
                       check=True)

    def cut(self):
        """What a power cut leaves, once no program works there. Programs go on in the new `live`."""
        live, disk = self.live, self.folder / f"disk-{self.number}"
        self.number += 1
        subprocess.run([POWER_CUT, "image", live, disk, self.live,
                        str(self.chance.randrange(1 << 32))], check=True)
        self.begin()


class PowerCutTest(ServerTest):
    def survive(self, tokens, *flags, cache=()):
        expected, total = self.undisturbed(tokens, *flags)
        disk, chance = Disk(self.folder, 1), random.Random(1)

        def start():
            kept = [str(disk.live / one) if one == "cache" else one for one in cache]
            return self.start_server(disk.live / "of" / "answers", *flags, *kept,
                                     variables=disk.variables)

        # Most cuts come early, where less is on the disk.
        cuts, _, returns = self.interrupt(
            tokens, expected, start, CUTS,
            lambda: chance.randrange(chance.choice((10, 100, total // 2))), behind=disk.cut)
        print(f"{' '.join(map(str, flags))}: {cuts} cuts, clients came back {returns} times")
        self.assertGreater(returns, 0)

    def test_dense_and_saved_texts(self):
        self.survive(300, "--kv", "dense", cache=("--cache-dir", "cache"))

    def test_sinks(self):
        self.survive(900, "--kv", "sinks:4+60")

    def test_runs(self):
        """The seed is drawn by the first run, and the text that it has shown is the beginning of the
        later ones'."""
        disk, chance = Disk(self.folder, 2), random.Random(2)
        for number in range(2):
            flags = ("run", "-m", TINY, "-t", "1", "-p", TEXT, "--ignore-eos", "--temp", "1",
                     "--kv", "sinks:4+60", "-n", "1500", "-q", "--resume")
            file, shown = f"{number}.run", []
            for _ in range(CUTS + 1):
                out = self.folder / "shown"
                with open(out, "wb") as stream:
                    process = self.start(*flags, disk.live / file, stdout=stream,
                                         variables=disk.variables)
                    wanted = chance.randrange(chance.choice((2, 1000)))
                    harness.wait_for(lambda: out.stat().st_size > wanted
                                     or process.poll() is not None)
                    harness.end(process)
                shown.append(out.read_bytes())
                disk.cut()
            whole = self.ok(*flags, disk.live / file).encode()
            for one in shown:
                self.assertTrue(whole.startswith(one.rstrip(b"\n")), (whole, one))

    def test_batches(self):
        """Results that a reader has seen whole stay, those of one program are those of another."""
        requests = self.folder / "requests"
        lines = [{"custom_id": name, "body": {
            "ignore_eos": True, "max_tokens": 150 + 50 * number,
            **{key: value for key, value in body.items() if key != "seed"}}}
                 for number, (name, (path, body)) in enumerate(REQUESTS.items())
                 if path.endswith("completions") and name != "tools"]
        requests.write_text("".join(json.dumps(line) + "\n" for line in lines))
        disk, chance = Disk(self.folder, 3), random.Random(3)
        flags = ("batch", "-m", TINY, "-t", "1", "--kv", "sinks:4+60", "-np", "3", "-q",
                 "-f", requests, "--resume")

        def results():
            found = {}
            text = (disk.live / "results").read_text() if (disk.live / "results").exists() else ""
            for line in text.splitlines(keepends=True):
                if not line.endswith("\n") or "\0" in line:  # torn by the cut
                    continue
                result = json.loads(line)
                self.assertNotIn(result["custom_id"], found, "answered twice")
                found[result["custom_id"]] = line
            return found

        sure, whole = {}, {}
        for cut in range(CUTS + 1):
            process = self.start(*flags, "-o", disk.live / "results", variables=disk.variables)
            count = min(len(lines), len(whole) + chance.randrange(3))
            if cut == CUTS:
                count = len(lines) + 1
            harness.wait_for(lambda: process.poll() is not None
                             or len(results()) >= count and chance.random() < 0.2)
            harness.end(process)
            for name, line in sure.items():
                self.assertEqual(results().get(name), line, "a result that was on the disk")
            whole = results()
            if process.returncode == 0:
                break
            disk.cut()
            # A result is on the disk before the next one is written.
            sure = dict(list(whole.items())[:-1])
        self.assertEqual(process.returncode, 0, whole)
        self.assertEqual(len(whole), len(lines))
        disk.cut()
        self.assertEqual(results(), whole, "a batch that has ended is on the disk")
        self.assertFalse((disk.live / "results.unfinished").exists())


if __name__ == "__main__":
    unittest.main()
