"""Tokens per second over what was varied: godwit bench."""

from pictures.curves import Curve, Kind, basename, clean, number
from pictures.style import curve_picture, plain

# What may lie on the axis, the first of them that varies; and its label.
AXES = {"n_depth": "tokens in the cache", "size": "tokens of the test", "threads": "threads"}


def read(objects, source):
    """The tests as they are: which of their fields is the axis is seen when all are there."""
    for test in objects:
        test["size"] = test["n_prompt"] or test["n_gen"]
        test["source"] = source
        for key in (*AXES, "tokens_per_second", "stddev"):
            test[key] = number(test[key])
    return objects


def facts(test, axis):
    names = {"model": basename(test["model"]), "test": "prompt" if test["n_prompt"] else "generation",
             "size": plain(test["size"]), "n_depth": f"{plain(test['n_depth'])} tokens deep" if test["n_depth"] else "",
             "threads": "1 thread" if test["threads"] == 1 else f"{plain(test['threads'])} threads", "weights": clean(test["weights"]) + " weights",
             "kv_type": clean(test["kv_type"]) + " KV", "kv": clean(test["kv"]),
             "isa": clean(test["isa"])}
    names["test"] += "" if axis == "size" else f" of {names['size']}"
    return {key: name for key, name in names.items() if key not in (axis, "size")}


def draw(tests):
    axis = next((key for key in AXES
                 if len({(bool(test["n_prompt"]), test[key]) for test in tests}) > 2
                 or len({test[key] for test in tests if test["n_prompt"]}) > 1
                 or len({test[key] for test in tests if not test["n_prompt"]}) > 1), "n_depth")
    curves = {}
    for test in tests:
        named = facts(test, axis)
        curve = curves.setdefault((test["source"], *named.values()),
                                  Curve(named, [], source=test["source"]))
        curve.points.append((test[axis], test["tokens_per_second"], test["stddev"]))
    for curve in curves.values():
        curve.points.sort()
    return curve_picture(list(curves.values()), "Speed", AXES[axis],
                         "tokens per second ± standard deviation")


TESTS = Kind("godwit bench --json", lambda keys: {"tokens_per_second", "n_depth"} <= keys, read, draw)
