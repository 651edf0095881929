"""The largest magnitude of every channel, before and after smoothing: godwit inspect
--activations."""

import math
import statistics
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from pictures.curves import Kind, basename, clean, number
from pictures.style import COLOURS, GREY, WIDTH, plain, set_title, write_above

COLUMNS = ("activations |x|", "|x|, smoothed", "weights |W|", "|W|, smoothed")
STEPS = 180     # of a panel: about its pixels
DECADES = 4     # below the largest; less is not shown
ROW_INCHES = 1.55
NAME_LEFT = -28  # points, from the first panel


@dataclass
class Layer:
    """panels: the values of all channels, one list for each of COLUMNS; none: not smoothed."""
    about: tuple
    name: str
    panels: list


def read(objects, source):
    layers = []
    for result in objects:
        about = (basename(result["folder"]), f"calibrated on {basename(result['text'])}, "
                 f"{plain(number(result['tokens']))} tokens", describe(result["alphas"]))
        for linear in result["linears"]:
            panels = [linear[of][when] for of in ("inputs", "weights")
                      for when in ("before", "after")]
            layers.append(Layer(about, clean(linear["name"]),
                                [values if values is None else [number(value) for value in values]
                                 for values in panels]))
    return layers


def describe(alphas):
    if not alphas:
        return "not smoothed"
    least, most = (f"{round(number(alpha), 6):g}" for alpha in (min(alphas), max(alphas)))
    return f"alpha {least}" if least == most else f"alpha {least} to {most}"


def outline(values):
    """At most STEPS values, each the largest of its channels, so that no outlier is lost."""
    steps = min(len(values), STEPS)
    return [max(values[i * len(values) // steps:(i + 1) * len(values) // steps])
            for i in range(steps)]


def draw_panel(axes, values, low, colour):
    axes.set_xticks([])
    axes.tick_params(axis="y", labelsize=8, length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", visible=False)
    if not values:
        axes.set_axis_off()
        axes.text(0.5, 0.5,
                  "not smoothed" if values is None else "no token of the text\nreaches it",
                  transform=axes.transAxes, ha="center", va="center", color=GREY, fontsize=9)
        return
    steps = outline(values)
    edges = [len(values) * i / len(steps) for i in range(len(steps) + 1)]
    axes.stairs(steps, edges, baseline=low, fill=True, color=colour)
    axes.set_xlim(0, len(values))
    axes.set_xticks([0, len(values)], ["0", f"{len(values) - 1:,}"], fontsize=8)
    axes.get_xticklabels()[0].set_ha("left")
    axes.get_xticklabels()[1].set_ha("right")
    median = statistics.median_high(values)
    ratio = f", {max(values) / median:.3g} × median" if median > 0 else ""
    write_above(axes, f"largest {max(values):.3g}{ratio}", 3, fontsize=8)


def limits(pair):
    """Both panels of a pair have one axis, from one power of ten to another."""
    values = [value for panel in pair for value in panel or ()
              if value > 0 and math.isfinite(value)] or [1.0]
    high = math.ceil(math.log10(max(values)) + 1e-9)
    low = math.floor(math.log10(min(values)) - 1e-9)
    return 10.0 ** max(low, high - 1 - DECADES), 10.0 ** high


def draw_layer(figure, layer, top, about):
    """One row of panels, `top` inches above the bottom of the picture; returns its axes."""
    width, height = figure.get_size_inches()
    drawn = []
    for j, values in enumerate(layer.panels):
        low, high = limits(layer.panels[j // 2 * 2:j // 2 * 2 + 2])
        left = 0.5 + j * 1.85 + j // 2 * 0.25
        axes = figure.add_axes((left / width, (top - 1.3) / height, 1.6 / width, 0.85 / height),
                               yscale="log", ylim=(low, high))
        axes.yaxis.set_major_locator(LogLocator(numticks=5))
        axes.yaxis.set_major_formatter(FuncFormatter(plain))
        axes.yaxis.set_minor_locator(NullLocator())
        draw_panel(axes, values, low, COLOURS[1 - j % 2])
        if j % 2:
            axes.set_yticklabels([])
        drawn.append(axes)
    write_above(drawn[0], layer.name, 20, NAME_LEFT, fontweight="bold", fontsize=9)
    write_above(drawn[0], about, 33, NAME_LEFT, color=GREY, fontsize=9)
    return drawn


def draw(layers):
    abouts = list(dict.fromkeys(layer.about for layer in layers))
    height = 0.6 + ROW_INCHES * len(layers)
    figure = Figure(figsize=(WIDTH, height))
    drawn, top = [], height - 0.7
    for layer in layers:
        about = " · ".join(layer.about) if len(abouts) > 1 else ""
        drawn += draw_layer(figure, layer, top, about)
        top -= ROW_INCHES
    for axes, column in zip(drawn, COLUMNS):
        write_above(axes, column, 36, color=GREY, fontsize=9)
    set_title(drawn[0], "The largest magnitude of every channel",
              abouts[0] if len(abouts) == 1 else (), 54, NAME_LEFT)
    return figure, drawn


MAXIMA = Kind("godwit inspect --activations --json", lambda keys: "linears" in keys, read, draw)
