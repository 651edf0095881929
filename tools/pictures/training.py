"""The loss while a model is trained: training.jsonl of tools/pretrain."""

from dataclasses import dataclass, field

from pictures.curves import Curve, Kind, number
from pictures.style import curve_picture


@dataclass
class Training(Curve):
    kept_back: list = field(default_factory=list)  # (tokens, loss on text that is not trained on)


def read(objects, source):
    steps = [(number(step["tokens"]), number(step["loss"]), 0.0) for step in objects]
    kept_back = [(number(step["tokens"]), number(step["held_out"])) for step in objects
                 if "held_out" in step]
    return [Training({"model": source}, steps, source=source, kept_back=kept_back)]


def mark_kept_back(axes, curve, colour):
    if curve.kept_back:
        axes.plot(*zip(*curve.kept_back), "o", color=colour, markersize=4, markeredgecolor="white",
                  markeredgewidth=0.6, zorder=5)


def draw(curves):
    return curve_picture(curves, "Loss in training; dots: on text that was kept back",
                         "tokens seen", "nats per token", mark=mark_kept_back)


STEPS = Kind("training.jsonl of tools/pretrain", lambda keys: {"step", "loss", "tokens"} <= keys,
             read, draw)
