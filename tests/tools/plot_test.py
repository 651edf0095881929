"""tools/plot: a picture of every kind of JSON that the verbs print, and what it refuses.

Pictures are looked at as matplotlib's objects: what is drawn lies within the axes, is named, and is
told apart.
"""

import importlib.machinery
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "plot"
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(TOOL.parent)]
from harness import TINY, CliTest  # noqa: E402

try:
    import matplotlib  # noqa: F401
except ModuleNotFoundError:
    print("plot_test: skipped: python3-matplotlib is not installed")
    sys.exit(0)

loader = importlib.machinery.SourceFileLoader("plot", str(TOOL))
plot = importlib.util.module_from_spec(importlib.util.spec_from_loader("plot", loader))
loader.exec_module(plot)

from pictures import activations, style  # noqa: E402
from pictures.curves import Refused  # noqa: E402

STORY = "Once upon a time there was a small bird who wanted to see the other side of the sea. "
TASK = [{"query": f"Question: What did bird {i} see?", "choices": ["The sea.", "A hill.", "A zoo."],
         "gold": i % 3} for i in range(6)]
NAME = "<b>&\"'$x^$ \x1b[31m\u202e"  # for XML, for TeX, for terminals


def run_of(nlls, model="m", kv="dense", length=100):
    buckets = [{"begin": i * length, "end": (i + 1) * length, "nll": nll}
               for i, nll in enumerate(nlls)]
    return {"model": model, "texts": ["t"], "kv": {"policy": kv}, "window": None, "stride": None,
            "perplexity": 1.0, "buckets": buckets}


def bench_of(speeds, error=0.0, **more):
    return [{"model": "m", "weights": "bf16", "kv_type": "bf16", "kv": "dense", "isa": "avx2",
             "threads": 1, "n_prompt": 8, "n_gen": 0, "n_depth": depth,
             "tokens_per_second": speed, "stddev": error} | more
            for depth, speed in speeds.items()]


def texts(figure):
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


class PlotTest(CliTest):
    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def plot(self, *arguments, **options):
        """As the shell runs it."""
        return subprocess.run([sys.executable, TOOL, *arguments], text=True, capture_output=True,
                              check=False, **options)

    def refused_plot(self, *arguments):
        with mock.patch.object(sys, "argv", ["plot", *map(str, arguments)]):
            with self.assertRaises(SystemExit) as left:
                plot.main()
        self.assertRegex(left.exception.code, r"\Aplot: [^\n]+\Z")
        return left.exception.code

    def drawn(self, *contents):
        """Figure and axes of files with these contents."""
        kind, found = plot.read_all([str(self.write(f"{i}.json", content))
                                     for i, content in enumerate(contents)])
        figure, axes = kind.draw(found)
        for one in axes if isinstance(axes, list) else [axes]:
            self.holds_its_data(one)
        root = ElementTree.fromstring(style.render(figure, "svg"))
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        return figure, axes

    def holds_its_data(self, axes):
        """No point of a curve, nor of an error bar, lies outside of the axes."""
        axes.figure.draw_without_rendering()
        left, right = sorted(axes.get_xlim())
        low, high = sorted(axes.get_ylim())
        data = [line for line in axes.lines if line.get_transform() is not axes.transAxes]
        for x, y in (point for line in data for point in line.get_xydata()):
            if y > 0 or axes.get_yscale() != "log":
                self.assertTrue(left <= x <= right and low <= y <= high,
                                f"({x}, {y}) is not within {left} to {right}, {low} to {high}")

        # A label's line begins at a curve's last point.
        ends = [line.get_transform().transform(line.get_xydata()[-1]) for line in data]
        for line in axes.lines:
            if line not in data:
                x, y = axes.transAxes.transform(line.get_xydata()[0])
                self.assertTrue(any(abs(x - right) < 12 and abs(y - high) < 1 for right, high in ends))

    # Every kind, as the program prints it.

    def test_every_kind(self):
        text, short = self.write("text", STORY * 60), self.write("short", STORY * 9)
        tasks = self.folder / "tasks"
        tasks.mkdir()
        self.write("tasks/arc_easy.jsonl", "".join(json.dumps(row) + "\n" for row in TASK))
        rows = [self.folder / f"rows{i}.jsonl" for i in range(4)]
        calibration = ["--calib", text, "--seq-len", "64", "--samples", "4"]
        stream = ["eval", "stream", "-m", TINY, "--kv", "sinks:4+60", "--max-new", "4"]
        quant = ["eval", "quant", "-m", f"{TINY}:f32", "-m", f"{TINY}:int8"]
        commands = {
            "nats per token": ["perplexity", "-m", TINY, "-f", short, "--jsonl", rows[0]],
            "window:16": ["perplexity", "-m", TINY, "-f", short, "--compare", "dense,window:16"],
            "distance in tokens": [*stream, "--lines", "20", "--distance", "1,2,4", "-o",
                                   rows[1]],
            "arc_easy": [*stream, "--arc", tasks, "-o", rows[2]],
            "the grey lines are chance": ["eval", "tasks", "-m", TINY, "-d", tasks],
            "What quantization costs": [*quant, "-d", tasks, "-f", text, "--window", "64",
                                        "--jsonl", rows[3]],
            "migration strength alpha": ["quantize", "-m", TINY, "-o", self.folder / "out",
                                         "--alpha", "auto", *calibration],
            "|W|, smoothed": ["inspect", "-m", TINY, "--activations", "0", *calibration],
            "tokens in the cache": ["bench", "-m", TINY, "-p", "8", "-n", "2", "-d", "0,16,32", "-r",
                                    "2", "--no-limits"],
        }
        for label, command in commands.items():
            with self.subTest(label=label):
                figure, _ = self.drawn(self.ok(*command, "--json"))
                shown = texts(figure)
                self.assertIn(label, " ".join(shown))
                self.assertIn(TINY.name, " ".join(shown))
        for label, path in zip(("nats per token, mean of a stretch", "4 lines back", "tokens of the text",
                                "tiny-llama:int8"), rows):
            with self.subTest(label=label):
                self.assertIn(label, " ".join(texts(self.drawn(path.read_text())[0])))

    def test_training(self):
        paths = sorted(map(str, ROOT.glob("models/*-3m/training.jsonl")))
        kind, found = plot.read_all(paths)
        figure, axes = kind.draw(found)
        self.holds_its_data(axes)
        for path in paths:
            self.assertIn(pathlib.Path(path).parent.name, texts(figure))

    def test_attention(self):
        maps = [[[[1.0, 0.0], [0.25, 0.75]]] * 2] * 5  # [layers][heads][queries][keys]
        result = {"model": "m", "text": "t", "sentences": 3, "first": [[0.25, 0.5]] * 5, "maps": maps}
        figure, axes = self.drawn(result)
        self.assertEqual(len(axes), 2 * 3)  # the first layer, the middle one, the last
        self.assertEqual(axes[0].images[0].get_array().tolist(), maps[0][0])
        shown = texts(figure)
        for text in ("m, layer 0", "m, layer 2", "m, layer 4", "head 1: 0.50"):
            self.assertIn(text, shown)
        with self.assertRaisesRegex(Refused, "squares of one size"):
            self.drawn(result | {"maps": [[[[1.0]], [[1.0, 0.0]]]] * 5})

    # What is drawn.

    def test_suites(self):
        cells = [{"task": "passkey", "length": length, "depth": depth, "kv": kv, "n": 2,
                  "score": [0.25 if kv == "dense" else 1.0, 0, 1]}
                 for length in (4096, 8192) for depth in (0, 50, None)
                 for kv in ("dense", "sinks:4+60")]
        result = {"model": "m", "suite": "passkey", "seed": 3, "samples": 2, "cells": cells}
        figure, axes = self.drawn(result)
        self.assertEqual([one.images[0].get_array().tolist() for one in axes],
                         [[[0.25, 0.25]] * 2, [[1.0, 1.0]] * 2])
        shown = texts(figure)
        for text in ("passkey, dense", "passkey, sinks:4+60", "4,096", "50 %", "0.25",
                     "m · seed 3 · 2 samples in each field"):
            self.assertIn(text, shown)
        # A suite without depths has one row.
        for cell in cells:
            cell["depth"] = None
        _, axes = self.drawn(result)
        self.assertEqual(axes[0].images[0].get_array().shape, (1, 2))
        self.refused_plot(self.write("none.json", result | {"cells": []}), "-o", "x.svg")

    def test_a_single_point(self):
        for content in (run_of([2.0]), bench_of({0: 5.0}), bench_of({0: 5.0}, error=9.0)):
            _, axes = self.drawn(content)
            line = axes.lines[0]
            self.assertEqual(len(line.get_xdata()), 1)
            self.assertNotIn(line.get_marker(), ("", "None"))

    def test_points_that_are_missing(self):
        _, axes = self.drawn(run_of([None, 2.0, None, 3.0]))
        self.assertEqual(list(axes.lines[0].get_ydata()), [2.0, 3.0])

    def test_equal_curves(self):
        figure, axes = self.drawn({"model": "m", "texts": ["t"], "compare": [
            run_of([2.0, 3.0, 2.5], kv=kv) for kv in ("dense", "sinks:4+60", "window:64")]})
        lines = [line for line in axes.lines if line.get_marker() not in ("", "None")]
        self.assertEqual(len(lines), 3)
        for look in ("get_color", "get_linestyle", "get_marker", "get_linewidth"):
            self.assertEqual(len({str(getattr(line, look)()) for line in lines}), 3 - (
                look == "get_linestyle"), look)  # all that is dashed is "--"
        widths = [line.get_linewidth() for line in sorted(lines, key=lambda line: line.zorder)]
        self.assertEqual(widths, sorted(widths, reverse=True))
        self.labels_are_apart(figure, ["dense", "sinks:4+60", "window:64"])

    def labels_are_apart(self, figure, names):
        figure.draw_without_rendering()
        boxes = sorted((text.get_window_extent() for text in figure.findobj(matplotlib.text.Text)
                        if text.get_text().split(" · ")[0] in names), key=lambda box: box.y0)
        self.assertEqual(len(boxes), len(names))
        for below, above in zip(boxes, boxes[1:]):
            self.assertLessEqual(below.y1, above.y0 + 1)

    def test_many_curves(self):
        names = [f"window:{i}" for i in range(1, 41)]
        figure, _ = self.drawn({"model": "m", "texts": ["t"], "compare": [
            run_of([2.0, 3.0], kv=name) for name in names]})
        self.labels_are_apart(figure, names)

    def test_names(self):
        # One file: all is said in the title, and no curve needs a name.
        figure, axes = self.drawn(run_of([2.0, 3.0]))
        self.assertIn("m · t · dense", texts(figure))
        self.assertNotIn("dense", texts(figure))
        # What differs is the curve's; what does not tell them apart is the file's.
        figure, _ = self.drawn(run_of([2.0, 3.0]), run_of([2.1, 3.1], kv="window:9"))
        self.assertIn("dense · ppl 1.00", texts(figure))
        figure, _ = self.drawn(run_of([2.0, 3.0]), run_of([2.1, 3.1]))
        self.assertIn("1.json · ppl 1.00", texts(figure))

    def test_foreign_names(self):
        figure, _ = self.drawn(run_of([2.0], model=NAME), run_of([3.0], model="x" * 5000))
        shown = " ".join(texts(figure))
        self.assertIn("<b>&\"'$x^$ \ufffd[31m\ufffd", shown)
        self.assertLess(max(map(len, texts(figure))), 100)

    def test_accuracy_is_from_0_to_1(self):
        result = {"model": "m", "feed": "answer", "every": 10, "cells": [
            {"tokens": 10.0 * 2 ** i, "kv": "dense", "score": score}
            for i, score in enumerate([(0.0, 0.0, 0.0), (0.9, 0.4, 1.0), (1.0, 1.0, 1.0)])]}
        _, axes = self.drawn(result)
        low, high = axes.get_ylim()
        self.assertTrue(-0.1 < low <= 0 and 1 <= high < 1.1)
        bars = axes.collections[0].get_segments()
        self.assertAlmostEqual(bars[1][0][1], 0.6)
        self.assertAlmostEqual(bars[1][1][1], 1.0)  # there is nothing above
        self.assertEqual(axes.get_xscale(), "log")

    def test_scales(self):
        for depths, scale in (([0, 100, 200, 300], "linear"), ([64, 128, 256, 512], "log"),
                              ([0, 64, 128, 256, 512], "symlog"), ([5, 6], "linear")):
            with self.subTest(depths=depths):
                _, axes = self.drawn(bench_of({depth: 10.0 + depth for depth in depths}))
                self.assertEqual(axes.get_xscale(), scale)
        _, axes = self.drawn(bench_of({0: 5.0, 1: 500.0}, error=20.0))
        self.assertEqual(axes.get_yscale(), "log")

    def test_the_varying_field_is_the_axis(self):
        for tests, label in ((bench_of({0: 5.0, 9: 6.0}), "tokens in the cache"),
                             (bench_of({0: 5.0}) + bench_of({0: 6.0}, n_prompt=16),
                              "tokens of the test"),
                             (bench_of({0: 5.0}) + bench_of({0: 6.0}, n_parallel=2),
                              "texts at once"),
                             (bench_of({0: 5.0}) + bench_of({0: 6.0}, threads=2), "threads")):
            self.assertEqual(self.drawn(tests)[1].get_xlabel(), label)

    def test_the_least_alpha_is_marked(self):
        figure, _ = self.drawn({"model": "m", "scheme": "w8a8", "text": "t", "search": [
            {"alpha": a, "error": 1e-5 * (1 + (a - 0.25) ** 2)} for a in (0.0, 0.25, 0.5)]})
        self.assertIn("least at 0.25", texts(figure))

    def test_outliers_are_seen(self):
        values = [1.0] * 8192
        values[4000] = 100.0
        self.assertEqual(activations.outline(values).count(100.0), 1)
        linears = [{"name": "q", "inputs": {"before": values, "after": [1.0] * 8192},
                    "weights": {"before": [0.0, 3e38, 1e-30], "after": None}},
                   {"name": "expert", "inputs": {"before": [], "after": None},
                    "weights": {"before": [0.0], "after": None}}]
        figure, axes = self.drawn({"folder": "m", "text": "t", "tokens": 9, "alphas": [0.5],
                                   "linears": linears})
        self.assertEqual(axes[0].get_ylim(), axes[1].get_ylim())
        self.assertEqual(axes[0].get_ylim(), (0.1, 1000.0))
        shown = texts(figure)
        self.assertIn("largest 100, 100 × median", shown)
        self.assertEqual(shown.count("not smoothed"), 4 - 1)
        self.assertIn("no token of the text\nreaches it", shown)

    def test_huge(self):
        count = 200_000
        _, axes = self.drawn(run_of([2 + math.sin(i) for i in range(count)]))
        self.assertLessEqual(len(axes.lines[0].get_xdata()), style.MOST_POINTS)
        self.assertIn("means of 200 neighbouring values", axes.get_xlabel())

    def test_the_same_bytes(self):
        path = self.write("r.json", run_of([2.0, 3.0, 4.0]))
        kind, found = plot.read_all([str(path)])
        for suffix in plot.SUFFIXES:
            first, second = (style.render(kind.draw(found)[0], suffix) for _ in range(2))
            self.assertEqual(first, second, suffix)
        for name in "ab":
            done = self.plot("-", "-o", self.folder / name / "x.svg", input=path.read_text())
            self.assertIn("no such folder", done.stderr)
            (self.folder / name).mkdir()
            done = self.plot("-", "-o", self.folder / name / "x.svg", input=path.read_text())
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        first, second = ((self.folder / name / "x.svg").read_bytes() for name in "ab")
        self.assertEqual(first, second)

    # What is not.

    def test_refusals(self):
        good = self.write("good.json", run_of([2.0]))
        out = self.folder / "x.svg"
        for content, message in (
                ("", "there is nothing"), ("[]", "there is nothing"), ("{", "expected JSON"),
                ("3", "expected JSON"), ("[" * 100000, "expected JSON"),
                ("{\"x\": 1}", "this JSON has no picture"),
                (run_of([]), "there is nothing to draw"), (run_of([None]), "there is nothing"),
                ({"model": "m", "texts": [], "compare": []}, "there is nothing"),
                ({"model": "m", "texts": [], "compare": [run_of([2.0]), run_of([None], kv="no")]},
                 "no point of the curve no can be drawn"),
                (run_of(["2"]), "expected a number, found '2'"),
                (run_of([2.0]) | {"buckets": 7}, "godwit perplexity --json"),
                ({"buckets": []}, "'model' is missing"),
                (run_of([10 ** 400]), "godwit perplexity --json"),
                (run_of([1e300]), "no figure that can be drawn"),
                (bench_of({0: 5.0}, error=-1.0), "expected an error of at least 0"),
                (bench_of({0: 5.0}, n_depth="x"), "expected a number, found 'x'"),
                ({"model": "m", "search": None}, "--alpha auto")):
            with self.subTest(message=message, content=str(content)[:40]):
                bad = self.write("bad.json", content)
                said = self.refused_plot(bad, "-o", out)
                self.assertIn("bad.json: ", said)
                self.assertIn(message, said)
        self.assertIn("ends in .png, .svg or .pdf",
                      self.refused_plot(good, "-o", self.folder / "x.gif"))
        self.assertIn("no such folder", self.refused_plot(good, "-o", self.folder / "no" / "x.svg"))
        self.plot(good, "-o", self.folder / "X.PDF")
        self.assertTrue((self.folder / "X.PDF").read_bytes().startswith(b"%PDF"))
        self.assertIn("No such file", self.refused_plot(self.folder / "none", "-o", out))
        other = self.write("other.json", bench_of({0: 5.0}))
        self.assertIn("files of one kind", self.refused_plot(good, other, "-o", out))
        tasks = {"model": "m", "suite": "tasks", "limit": 0, "skipped": {}, "cells": []}
        self.assertIn("nothing to draw", self.refused_plot(self.write("t.json", tasks), "-o", out))
        # An answer in one's own words is no choice of four.
        self.assertIn("files of one kind", self.refused_plot(
            self.write("t.json", tasks),
            self.write("a.json", {"model": "m", "limit": 0, "feed": "gold", "cells": []}), "-o", out))
        self.assertFalse(out.exists())

    def test_an_input_is_not_replaced(self):
        path = self.write("r.svg", run_of([2.0]))
        before = path.read_bytes()
        os.symlink(path, self.folder / "link.svg")
        os.link(path, self.folder / "hard.svg")
        for out in ("r.svg", "link.svg", "hard.svg"):
            self.assertIn("would replace an input", self.refused_plot(path, "-o", self.folder / out))
        self.assertEqual(path.read_bytes(), before)

    def test_without_matplotlib(self):
        hidden = self.folder / "matplotlib"
        hidden.mkdir()
        (hidden / "__init__.py").write_text("raise ModuleNotFoundError(name='matplotlib')")
        done = subprocess.run([sys.executable, "-c", "import runpy, sys; sys.path.insert(0, '.'); "
                               f"runpy.run_path({str(TOOL)!r}, run_name='__main__')"],
                              cwd=self.folder, text=True, capture_output=True, check=False,
                              env=os.environ | {"PYTHONPATH": str(TOOL.parent)})
        self.assertEqual(done.stderr, f"plot: matplotlib is missing in {sys.executable}: apt install "
                                      "python3-matplotlib installs it for /usr/bin/python3\n")


if __name__ == "__main__":
    unittest.main()
