#!/usr/bin/env python3
"""bench/peers/compare, with a llama-bench that only says what a real one prints."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SHAPE = HERE.parents[1] / "tests" / "data" / "tiny-llama" / "config.json"

# Fields as of llama-bench's -o json; each call is noted beside the script.
FAKE = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
if arguments == ["-h"]:
    sys.exit(print({usage!r}))
value = lambda flag: arguments[arguments.index(flag) + 1]
log = pathlib.Path(__file__).with_suffix(".log")
log.write_text((log.read_text() if log.exists() else "") + " ".join(arguments) + "\\n")
calls = len(log.read_text().splitlines())
rows = []
depths = value("-d").split(",") if "-d" in arguments else ["0"]
for depth in depths:
    base = {{"build_commit": "abc1234", "model_type": "llama 1B Q8_0", "n_depth": int(depth)}}
    rows.append({{**base, "n_prompt": int(value("-p")), "n_gen": 0, "avg_ts": 100.0 * calls}})
    rows.append({{**base, "n_prompt": 0, "n_gen": int(value("-n")), "avg_ts": 10.0}})
rows.append({{**base, "n_prompt": 8, "n_gen": 8, "avg_ts": 5.0, "test": "pp8+tg8"}})
if "-gp" in arguments:
    depth, generated = value("-gp").split(",")
    rows.append({{"n_prompt": int(depth), "n_gen": int(generated), "avg_ts": 4.0,
                 "test": "tg" + generated + "@pp" + depth}})
print(json.dumps(rows))
"""


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="godwit-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def fake(self, name="llama-bench.py", usage="  -d, --n-depth <n>"):
        return self.script(name, FAKE.format(python=sys.executable, usage=usage))

    def compare(self, *arguments):
        return subprocess.run([HERE / "compare", *map(str, arguments)], capture_output=True,
                              text=True, timeout=300)

    def flags(self, *benches):
        flags = ["--shape", SHAPE, "-p", "8", "-n", "2", "-d", "0,16", "-t", "1"]
        for bench in benches:
            flags += ["--llama-bench", bench, "--gguf", "model.gguf"]
        return flags

    def test_a_table_of_medians_and_ratios(self):
        fake = self.fake()
        result = self.compare(*self.flags(fake), "--rounds", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in result.stdout.splitlines()]
        self.assertEqual([row[0] for row in rows],
                         ["test", "---", "pp8", "tg2", "pp8 @ d16", "tg2 @ d16"])
        self.assertEqual(rows[0][2], "llama 1B Q8_0 (abc1234), t/s")
        self.assertEqual([row[2] for row in rows[2:]], ["200.00", "10.00"] * 2)
        for row in rows[2:]:
            self.assertAlmostEqual(float(row[1]) / float(row[2]), float(row[3]), delta=0.01)
        calls = fake.with_suffix(".log").read_text().splitlines()
        self.assertEqual(calls, ["-m model.gguf -p 8 -n 2 -t 1 -d 0,16 -r 1 -o json"] * 3)

    def test_a_fork_without_depths(self):
        fake = self.fake(usage="  -gp <pp,tg>")
        result = self.compare(*self.flags(fake), "--rounds", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        cells = {line.split("|")[1].strip(): line.split("|")[3].strip()
                 for line in result.stdout.splitlines()}
        self.assertEqual((cells["pp8 @ d16"], cells["tg2 @ d16"]), ("-", "4.00"))
        self.assertEqual(fake.with_suffix(".log").read_text().splitlines(),
                         ["-m model.gguf -p 8 -n 2 -t 1 -gp 16,2 -r 1 -o json"])

    def test_several_peers(self):
        result = self.compare(*self.flags(self.fake("one.py"), self.fake("two.py")),
                              "--rounds", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[0].count("abc1234"), 2)
        self.assertTrue((self.folder / "two.log").exists())

    def test_what_goes_wrong_is_said_in_one_line(self):
        noise = self.script("noise", "#!/bin/sh\necho no json\n")
        broken = self.script("broken", "#!/bin/sh\necho failed to load model >&2\nexit 1\n")
        for bench, message in ((noise, "expected a JSON array"),
                               (broken, "failed to load model"),
                               (self.folder / "missing", "No such file")):
            result = self.compare(*self.flags(bench), "--rounds", "1")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, re.compile(rf"^compare: .*{message}", re.M))

    def test_usage(self):
        for flags in ([], ["--llama-bench", "x"], [*self.flags("x"), "--rounds", "0"]):
            self.assertEqual(self.compare(*flags).returncode, 2)


if __name__ == "__main__":
    assert os.environ.get("GODWIT_BINARY"), "GODWIT_BINARY names the program"
    unittest.main()
