"""Curves of points, and the names that tell them apart."""

import math
import os
import statistics
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field


class Refused(Exception):
    """An error for the user, in one sentence."""


def clean(text, most=60):
    """`text` on one line, without characters that XML forbids or that turn the line around, and
    with its middle left out where it is longer than `most`."""
    text = "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c)[0] == "C" else c
                   for c in str(text))
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def basename(path):
    """The last part of a path; the whole of "-" and the like."""
    return clean(os.path.basename(str(path).rstrip("/")) or path)


def number(value):
    """A float; NaN for null, which is how JSON says that a figure is not finite."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"expected a number, found {value!r:.40}")
    if math.isfinite(value) and abs(value) > 1e60:
        raise ValueError(f"{value:.3g} is no figure that can be drawn")
    return float(value) if abs(value) > 1e-60 else 0.0


def deviation(value):
    """The length of an error bar; 0 for null: there is none of a single value."""
    length = number(value or 0)
    if length < 0:
        raise ValueError(f"expected an error of at least 0, found {length:g}")
    return length


HALF_INTERVAL = "± half its 95 % interval"


def interval(score):
    """(mean, half of its interval) of [mean, low, high]."""
    mean, low, high = map(number, score)
    return mean, deviation((high - low) / 2)


@dataclass(frozen=True)
class Kind:
    """A kind of results.

    what: the command that prints them. recognises: whether the keys of an object are its own. read:
    the contents of its objects and of their file's name, as a list. draw: a figure and its axes, from
    the lists of all files.
    """
    what: str
    recognises: Callable
    read: Callable
    draw: Callable


@dataclass
class Curve:
    """Points (x, y, standard error or 0) of one thing that was measured.

    facts: the properties of the curve, by name. The subtitle has those that all curves of a picture
    share; the others name the curve.
    """
    facts: dict
    points: list
    note: str = ""
    source: str = ""
    name: str = field(default="", init=False)

    def finite(self):
        """The points that can be drawn."""
        return [p for p in self.points if math.isfinite(p[0]) and math.isfinite(p[1])]


def give_names(curves):
    """Sets the name of every curve to the facts in which it differs from others, and to its file if
    these do not suffice. Returns the shared facts."""
    keys = list(dict.fromkeys(key for curve in curves for key in curve.facts))
    values = {key: {curve.facts.get(key, "") for curve in curves} for key in keys}
    for curve in curves:
        curve.name = ", ".join(curve.facts[key] for key in keys
                               if len(values[key]) > 1 and curve.facts.get(key))
    names = [curve.name for curve in curves]
    if len(curves) > 1 and len(set(names)) < len(names):
        for curve in curves:
            if names.count(curve.name) > 1:
                curve.name = ", ".join(filter(None, (curve.name, curve.source)))
    return [curves[0].facts[key] for key in keys
            if len(values[key]) == 1 and curves[0].facts.get(key)]


def pieces(rows, count):
    """(middle, values) of at most `count` stretches of equal length, from (position, value)."""
    end = max(position for position, _ in rows) + 1
    length = max(1, end / count)
    stretches = {}
    for position, value in rows:
        stretches.setdefault(int(position / length), []).append(value)
    return [(length * (at + 0.5), stretches[at]) for at in sorted(stretches)]


def accuracy_points(rows, count=20):
    """The share of right answers over the text, from (position, right or not), with standard errors
    as in godwit eval."""
    points = []
    for middle, values in pieces(rows, count):
        share, n = sum(values) / len(values), len(values)
        points.append((middle, share, math.sqrt(share * (1 - share) / (n - 1)) if n > 1 else 0.0))
    return points


def mean_points(rows, count=60):
    """The mean of every stretch, from (position, value)."""
    return [(middle, statistics.fmean(values), 0.0) for middle, values in pieces(rows, count)]
