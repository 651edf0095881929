"""Where the heads of models look: godwit eval attention, and tools/pretrain/attention.py."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from pictures.curves import Kind, basename, clean, number
from pictures.style import GREY, plain, set_title, write_above

MAP_INCHES, ROW_INCHES = 1.3, 1.72


@dataclass
class Heads:
    """Attention of one layer. maps: [heads][queries][keys]; first: [heads], to the first token."""
    model: str
    about: tuple
    layer: int
    maps: list
    first: list


def read(objects, source):
    layers = []
    for result in objects:
        count = len(result["maps"])
        for layer in sorted({0, count // 2, count - 1} if count else ()):
            maps = [[[number(share) for share in row] for row in head]
                    for head in result["maps"][layer]]
            first = [number(share) for share in result["first"][layer]]
            if len({len(row) for head in maps for row in head}) != 1 or len(first) != len(maps):
                raise ValueError("maps are squares of one size, one for each head")
            about = (basename(result["text"]),
                     f"mean of {plain(number(result['sentences']))} sentences")
            layers.append(Heads(clean(result["model"]), about, layer, maps, first))
    return layers


def draw(layers):
    heads = max(len(one.maps) for one in layers)
    width, height = max(8.0, MAP_INCHES * heads + 0.4), ROW_INCHES * len(layers) + 1.5
    figure = Figure(figsize=(width, height))
    drawn = []
    for row, one in enumerate(layers):
        bottom = height - 0.7 - ROW_INCHES * (row + 1)
        for head, (cells, share) in enumerate(zip(one.maps, one.first)):
            size = MAP_INCHES - 0.12
            axes = figure.add_axes(((0.2 + MAP_INCHES * head) / width, bottom / height,
                                    size / width, size / height), xticks=[], yticks=[])
            axes.grid(False)
            image = axes.imshow(cells, vmin=0, vmax=1, cmap="viridis", aspect="auto")
            write_above(axes, f"head {head}: {share:.2f}", 3, fontsize=9)
            if head == 0:
                write_above(axes, f"{one.model}, layer {one.layer}", 19, fontsize=9,
                            fontweight="bold")
            drawn.append(axes)
    bar = figure.add_axes((0.2 / width, 0.5 / height, (MAP_INCHES * heads - 0.12) / width,
                           0.12 / height))
    figure.colorbar(image, cax=bar, orientation="horizontal").set_label(
        "attention of a query (row) to a key (column)", color=GREY)
    set_title(drawn[0], "Attention, and the share of it that the first token gets",
              dict.fromkeys(fact for one in layers for fact in one.about), 38)
    return figure, drawn


MAPS = Kind("eval attention", lambda keys: {"maps", "first"} <= keys, read, draw)
