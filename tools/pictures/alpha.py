"""The cost of quantizing over the strength of smoothing: godwit quantize --alpha auto."""

from pictures.curves import Curve, Kind, Refused, basename, clean, number
from pictures.style import curve_picture


def read(objects, source):
    if any(not result["search"] for result in objects):
        raise Refused("it holds no search for alpha: run godwit quantize with --alpha auto")
    return [Curve({"model": basename(result["model"]), "scheme": clean(result["scheme"]),
                   "text": f"calibrated on {basename(result['text'])}"},
                  [(round(number(point["alpha"]), 6), number(point["error"]), 0.0)
                   for point in result["search"]], source=source)
            for result in objects]


def mark_least(axes, curve, colour):
    alpha, error, _ = min(curve.finite(), key=lambda point: point[1])
    axes.plot([alpha], [error], marker="o", markersize=9, color=colour, linestyle="", zorder=6)
    axes.annotate(f"least at {alpha:g}", (alpha, error), (0, -10), va="top", ha="center",
                  textcoords="offset points", color=colour, annotation_clip=False)
    axes.margins(y=0.18)  # room for these words


def draw(curves):
    return curve_picture(curves, "What quantizing costs", "migration strength alpha",
                         "relative squared error of the outputs", mark=mark_least)


SEARCH = Kind("godwit quantize --json", lambda keys: "search" in keys, read, draw)
