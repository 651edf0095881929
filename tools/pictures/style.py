"""How all pictures look: type, colours, axes that fit the data, labels that do not overlap."""

import io
import math
import statistics
import textwrap
import warnings

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from pictures.curves import Refused, give_names

# Colours that colour-blind people tell apart, too (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)), (0, (7, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = "osD^vPX<>"
GREY = "#666666"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

WIDTH, HEIGHT = 8.0, 4.4  # inches; a page of a repository shows them at about this size
MOST_POINTS = 1000        # of a curve: more than there are columns of pixels
MOST_MARKED = 40

matplotlib.rcParams.update({
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 10,
    "text.parse_math": False,  # a $ in a name is a $
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
    "axes.edgecolor": "#999999",
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "svg.fonttype": "none",
    "svg.hashsalt": "godwit",  # the same picture is the same bytes
})
# Fonts for letters that the fonts here lack; the reader may have them.
warnings.filterwarnings("ignore", message="Glyph .* missing from current font")


def new_figure(height):
    """height: in inches; no more of them than a PNG can have."""
    return Figure(figsize=(WIDTH, min(height, 400)), layout="constrained")


def write_above(axes, text, points, left=0, **how):
    """Text that begins `points` above the upper left corner of the axes."""
    axes.annotate(text, (0, 1), (left, points), xycoords="axes fraction", va="bottom",
                  textcoords="offset points", annotation_clip=False, **how)


def set_title(axes, title, shared, points=7, left=0):
    """The title, and below it what all curves have in common."""
    lines = textwrap.wrap(" · ".join(shared), 100)
    write_above(axes, "\n".join(lines), points, left, color=GREY)
    write_above(axes, title, points + 1 + 13 * len(lines), left, fontsize=12, fontweight="bold")


def plain(value, _=None):
    """The number of a tick: 1,500, 2.5 M, 0.25, 7×10⁻⁵."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.6g} M" if abs(value) < 1e12 else f"{value:.6g}"
    if value == int(value):
        return f"{int(value):,}"
    digits, _, power = f"{value:.6g}".partition("e")
    return digits + (f"×10{str(int(power)).translate(SUPERSCRIPTS)}" if power else "")


def unevenness(values):
    """How unequal the steps between ascending values are, relative to their mean."""
    steps = [b - a for a, b in zip(values, values[1:])]
    return statistics.pstdev(steps) / statistics.fmean(steps)


def fit_x(axes, values):
    """A logarithmic axis for values that rather double than grow by equal steps; it may begin at 0.
    """
    distinct = sorted(set(values))
    positive = [x for x in distinct if x > 0]
    logs = [math.log(x) for x in positive]
    if (distinct[0] >= 0 and len(positive) > 2 and positive[-1] >= 4 * positive[0]
            and unevenness(logs) < unevenness(distinct)):
        if distinct[0] == 0:
            axes.set_xscale("symlog", linthresh=positive[0], linscale=0.3)
        else:
            axes.set_xscale("log")
        if min(b - a for a, b in zip(logs, logs[1:])) > 0.06 * (logs[-1] - logs[0]):
            ticks = [float(f"{x:.4g}") for x in distinct]
            axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(plain))


def fit_y(axes, points):
    """A logarithmic axis for values that differ by more than a factor of 20."""
    values = [y for _, y, _ in points]
    if min(values) > 0 and max(values) / min(values) > 20:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(values) < 1e3 * min(values)
                                                else (1,)))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(plain))


def fit_share(axis):
    """An axis of accuracies: 0 to 1, and room for the markers at its ends."""
    (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(-0.03, 1.03)
    axis.set_major_locator(FixedLocator([i / 5 for i in range(6)]))
    axis.set_major_formatter(FuncFormatter(plain))


def thinned(points):
    """At most MOST_POINTS means of as many neighbours as needed, and that number."""
    together = -(-len(points) // MOST_POINTS)
    groups = [points[i:i + together] for i in range(0, len(points), together)]
    return [tuple(statistics.fmean(column) for column in zip(*group)) for group in groups], together


def appearance(i, count):
    """The style of curve i: colour is never the only difference, and lower curves are wider."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)],
            "linewidth": 1.6 + 1.8 * (count - 1 - i) / max(1, count - 1),
            "marker": MARKERS[i % len(MARKERS)], "zorder": 3 + i / count}


def draw_curves(axes, curves, share=False, mark=None, fit=None):
    """Draws and labels curves. share: the values are from 0 to 1. mark(axes, curve, colour): draws
    more of a curve. fit(axes): fits the axes to the values in another way."""
    together, ends = 1, []
    for i, curve in enumerate(curves):
        look = appearance(i, len(curves))
        points, thin = thinned(curve.finite())
        together = max(together, thin)
        x, y, error = zip(*points)
        ends.append((x[-1], y[-1]))
        if len(points) > MOST_MARKED:
            look.update(marker="", linewidth=max(1.2, look["linewidth"] / 2))
        look.update(markersize=5, markerfacecolor="white", markeredgecolor=look["color"],
                    markeredgewidth=1.4)
        low, high = error, error
        if share:
            low = [min(e, v) for e, v in zip(error, y)]
            high = [min(e, 1 - v) for e, v in zip(error, y)]
        # Bars of equal points stand side by side.
        aside = ScaledTranslation((i - (len(curves) - 1) / 2) * 3 / 72 if any(error) else 0, 0,
                                  axes.figure.dpi_scale_trans)
        axes.errorbar(x, y, yerr=[low, high] if any(error) else None, capsize=2.5, elinewidth=1.2,
                      transform=axes.transData + aside, **look)
        if mark:
            mark(axes, curve, look["color"])
    everything = [point for curve in curves for point in curve.finite()]
    # A transform of its own keeps a line out of the limits.
    axes.update_datalim([(x, y + side) for x, y, error in everything
                          for side in (-error, 0, error)])
    if fit:
        fit(axes)
    else:
        fit_x(axes, [x for x, _, _ in everything])
        if share:
            fit_share(axes.yaxis)
        else:
            fit_y(axes, everything)
    axes.autoscale_view()
    if together > 1:
        axes.set_xlabel(f"{axes.get_xlabel()}; means of {together:,} neighbouring values")
    label_ends(axes, curves, ends)


def label_ends(axes, curves, ends):
    """The name of every curve beside its end (x, y), moved up or down where two would overlap."""
    labels = [(*end, i, " · ".join(filter(None, (curve.name, curve.note))))
              for i, (curve, end) in enumerate(zip(curves, ends))]
    labels = [label for label in labels if label[-1]]
    if not labels:
        return
    figure = axes.figure
    labels.sort(key=lambda label: label[1])
    # Names longer than most make the picture wider, not the axes narrower.
    figure.set_figwidth(WIDTH + 0.08 * max(0, max(len(text) for *_, text in labels) - 25))
    texts = [axes.annotate(text, (1, 0.5), (14, 0), xycoords="axes fraction", va="center",
                           textcoords="offset points", color=COLOURS[i % len(COLOURS)],
                           annotation_clip=False) for _, _, i, text in labels]
    figure.draw_without_rendering()  # only now does the layout say how large the axes are
    point = figure.dpi / 72
    begins = axes.transAxes.inverted().transform(
        axes.transData.transform([(x, y) for x, y, _, _ in labels]))
    places = spread([y for _, y in begins], 14 * point / axes.bbox.height)
    for text, (x, y), place in zip(texts, begins, places):
        text.xy = (1, place)
        axes.plot([x, 1, 1 + 11 * point / axes.bbox.width], [y, y, place], transform=axes.transAxes,
                  color=text.get_color(), linewidth=0.8, linestyle=(0, (1, 2)), clip_on=False,
                  zorder=2.5)


def spread(places, step):
    """Ascending places, moved as little as keeps them `step` apart; from below 1 where they fit."""
    moved = []
    for place in places:
        moved.append(max(place, moved[-1] + step) if moved else max(place, 0))
    top = max(1, step * (len(places) - 1))
    for i in range(len(moved) - 1, -1, -1):
        moved[i] = min(moved[i], top if i == len(moved) - 1 else moved[i + 1] - step)
    return moved


def curve_picture(curves, title, x_label, y_label, **how):
    """A figure of curves, and its axes. how: as draw_curves takes it."""
    shared = give_names(curves)
    for curve in curves:
        if not curve.finite():
            raise Refused(f"{curve.source}: no point of the curve {curve.name} can be drawn"
                          if curve.name else f"{curve.source}: there is nothing to draw in it")
    figure = new_figure(max(HEIGHT, 1.2 + 0.21 * len(curves)))
    axes = figure.subplots()
    axes.set(xlabel=x_label, ylabel=y_label)
    set_title(axes, title, shared)
    draw_curves(axes, curves, **how)
    return figure, axes


def render(figure, kind):
    """The bytes of a png, svg or pdf; the same for the same figure."""
    metadata = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None},
                "pdf": {"CreationDate": None}}[kind]
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150, metadata=metadata, bbox_inches="tight",
                   pad_inches=0.12)
    return buffer.getvalue()
