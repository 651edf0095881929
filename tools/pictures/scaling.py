"""Multiples of the least threads' speed over the number of threads: tools/scaling."""

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from pictures.curves import Curve, Refused, basename, clean, number
from pictures.style import GREY, curve_picture, plain


def curves_of(tests):
    curves = {}
    for test in sorted(tests, key=lambda test: number(test["threads"])):
        facts = {"model": basename(test["model"]), "test": clean(test["test"]),
                 "weights": f"{clean(test['weights'])} weights",
                 "kv_type": f"{clean(test['kv_type'])} KV", "isa": clean(test["isa"])}
        curve = curves.setdefault(tuple(facts.values()), Curve(facts, []))
        curve.points.append((number(test["threads"]), number(test["tokens_per_second"]), 0.0))
    for curve in curves.values():
        base = curve.points[0][1]
        curve.points = [(threads, speed / base, 0.0) for threads, speed, _ in curve.points]
    return list(curves.values())


def draw(tests):
    """tests: the objects of godwit bench --json. Both axes are logarithmic, so the ideal is a line
    and equal losses look equal."""
    curves = curves_of(tests)
    counts = sorted({threads for curve in curves for threads, *_ in curve.points})
    if len(counts) < 2:
        raise Refused("a picture takes two numbers of threads at least")
    ideal = [count / counts[0] for count in counts]

    def fit(axes):
        axes.plot(counts, ideal, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=2)
        axes.annotate("ideal", (counts[-1], ideal[-1]), (-8, 0), textcoords="offset points",
                      color=GREY, ha="right", va="center")
        for scale, axis, ticks in ((axes.set_xscale, axes.xaxis, counts),
                                   (axes.set_yscale, axes.yaxis, ideal)):
            scale("log")
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(plain))

    return curve_picture(curves, "Speed with more threads", "threads",
                         f"times the speed of {counts[0]:g} "
                         f"{'thread' if counts[0] == 1 else 'threads'}", fit=fit)
