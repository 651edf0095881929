"""tools/scaling: the table and the picture of godwit bench with several numbers of threads.

Nothing here looks at how fast anything is.
"""

import json
import pathlib
import subprocess
import sys
import unittest
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "scaling"
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(TOOL.parent)]
from harness import BINARY, TINY, CliTest  # noqa: E402

try:
    import matplotlib  # noqa: F401
    DRAWS = True
except ModuleNotFoundError:
    DRAWS = False
NO_PICTURE = "python3-matplotlib is not installed"


def run_of(test, threads, speed, **more):
    return {"model": "m", "test": test, "weights": "int8", "kv_type": "bf16", "isa": "avx2",
            "threads": threads, "tokens_per_second": speed, "fraction": None} | more


RUNS = [run_of("pp8", 2, 15.0, fraction=0.6), run_of("pp8", 1, 10.0, fraction=0.8),
        run_of("tg2", 1, 4.0),
        run_of("tg2", 2, 4.0, shares={"waiting_at_joins": 0.25, "waiting_for_one_thread": 0.125})]


class ScalingTest(CliTest):
    def tool(self, *arguments):
        return subprocess.run([sys.executable, str(TOOL), *map(str, arguments)], text=True,
                              capture_output=True, check=False, env=self.environment())

    def lines(self, *arguments):
        done = self.tool(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
        self.assertEqual(table[0][:3], ["test", "threads", "t/s"])
        return table[2:]

    def refused(self, *arguments):
        done = self.tool(*arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Ascaling: [^\n]+\n\Z")
        return done.stderr

    def saved(self, content):
        path = self.folder / "r.json"
        path.write_text(json.dumps(content))
        return path

    def test_measures(self):
        keep = self.folder / "r.json"
        table = self.lines("--godwit", BINARY, "-t", "2,1", "--json", keep, "--", "--shape",
                           TINY / "config.json", "-p", "8", "-n", "2", "-r", "1", "--no-limits")
        self.assertEqual([line[:2] for line in table],
                         [["pp8", "1"], ["pp8", "2"], ["tg2", "1"], ["tg2", "2"]])
        for line in table:
            self.assertGreater(float(line[2]), 0)
            if line[1] == "1":
                self.assertEqual(line[3:6], ["1.00", "100.0", "-"])
                self.assertEqual(line[7], "0.0")
        self.assertEqual(self.lines("--from", keep), table)

    def test_computes(self):
        self.assertEqual(self.lines("--from", self.saved(RUNS)),
                         [["pp8", "1", "10.00", "1.00", "100.0", "80.0", "-", "-"],
                          ["pp8", "2", "15.00", "1.50", "75.0", "60.0", "-", "-"],
                          ["tg2", "1", "4.00", "1.00", "100.0", "-", "-", "-"],
                          ["tg2", "2", "4.00", "1.00", "50.0", "-", "25.0", "12.5"]])

    @unittest.skipUnless(DRAWS, NO_PICTURE)
    def test_draws(self):
        picture = self.folder / "s.svg"
        self.lines("--from", self.saved(RUNS), "-o", picture)
        shown = "".join(ElementTree.parse(picture).getroot().itertext())
        for text in ("pp8", "tg2", "ideal", "threads", "times the speed of 1 thread"):
            self.assertIn(text, shown)

    @unittest.skipUnless(DRAWS, NO_PICTURE)
    def test_curves_are_multiples(self):
        from pictures import scaling
        _, axes = scaling.draw(RUNS)
        drawn = [[float(y) for y in line.get_ydata()] for line in axes.get_lines()]
        for multiples in ([1.0, 1.5], [1.0, 1.0], [1.0, 2.0]):
            self.assertIn(multiples, drawn)
        self.assertIn("two numbers of threads",
                      self.tool("--from", self.saved(RUNS[1:3]), "-o", self.folder / "s.svg").stderr)

    def test_refusals(self):
        saved = self.saved(RUNS)
        self.assertIn("1,2,4,8", self.refused("-t", "0,1"))
        self.assertIn("1,2,4,8", self.refused("-t", "many"))
        self.assertIn(".svg", self.refused("--from", saved, "-o", "x.gif"))
        self.assertIn("nothing is measured", self.refused("--from", saved, "-t", "2"))
        self.assertIn("JSON array", self.refused("--from", self.saved({"test": 1})))
        self.refused("--from", self.folder / "missing.json")
        self.refused("--godwit", self.folder / "missing")

    def test_the_refusal_of_bench_is_shown(self):
        done = self.tool("--godwit", BINARY, "-t", "1", "--", "--shape", "9b")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("unknown shape", done.stderr)


if __name__ == "__main__":
    unittest.main()
