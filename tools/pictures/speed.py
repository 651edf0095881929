"""Tokens per second over what was varied: godwit bench."""

from dataclasses import dataclass

from pictures.curves import Curve, Kind, basename, clean, deviation, number
from pictures.style import curve_picture, plain

# Possible x axes, of which the first that varies is taken, and their labels.
AXES = {"n_depth": "tokens in the cache", "size": "tokens of the test",
        "n_parallel": "texts at once", "threads": "threads"}


@dataclass
class Test:
    where: dict   # its value for each of AXES
    facts: dict   # all that names it
    speed: tuple  # tokens per second, standard deviation
    source: str


def read(objects, source):
    return [Test({"n_depth": number(test["n_depth"]), "size": size_of(test),
                  "n_parallel": texts_of(test), "threads": number(test["threads"])},
                 facts_of(test), (number(test["tokens_per_second"]), deviation(test["stddev"])),
                 source)
            for test in objects]


def size_of(test):
    return number(test["n_prompt"] or test["n_gen"])


def texts_of(test):
    return number(test.get("n_parallel", 1))


def facts_of(test):
    depth, threads = number(test["n_depth"]), number(test["threads"])
    texts = texts_of(test)
    return {"model": basename(test["model"]),
            "test": "prompt" if test["n_prompt"] else "generation",
            "size": f"{plain(size_of(test))} tokens",
            "n_depth": f"{plain(depth)} tokens deep" if depth else "",
            "n_parallel": f"{plain(texts)} texts at once" if texts > 1 else "",
            "threads": "1 thread" if threads == 1 else f"{plain(threads)} threads",
            "weights": f"{clean(test['weights'])} weights",
            "kv_type": f"{clean(test['kv_type'])} KV", "kv": clean(test["kv"]), "isa": clean(test["isa"])}


def varies(tests, axis):
    """Whether tests of one kind differ in it."""
    return any(len({test.where[axis] for test in tests if test.facts["test"] == kind}) > 1
               for kind in ("prompt", "generation"))


def draw(tests):
    axis = next((key for key in AXES if varies(tests, key)), "n_depth")
    curves = {}
    for test in tests:
        facts = {key: name for key, name in test.facts.items() if key != axis}
        curve = curves.setdefault((test.source, *facts.values()),
                                  Curve(facts, [], source=test.source))
        curve.points.append((test.where[axis], *test.speed))
    for curve in curves.values():
        curve.points.sort()
    return curve_picture(list(curves.values()), "Speed", AXES[axis],
                         "tokens per second ± standard deviation")


TESTS = Kind("godwit bench --json", lambda keys: {"tokens_per_second", "n_depth"} <= keys, read,
             draw)
