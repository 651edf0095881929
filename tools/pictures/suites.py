"""Scores by length and depth of a text, a panel for each cache policy: godwit eval passkey and its
like."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from pictures.curves import Kind, basename, clean, number
from pictures.style import GREY, plain, set_title, write_above

COLUMN_INCHES, ROW_INCHES = 0.62, 0.34
GAP_INCHES = 0.3


@dataclass
class Grid:
    """One task under one policy. scores: by (depth or None, length)."""
    about: tuple
    name: str
    scores: dict


def read(objects, source):
    grids = {}
    for result in objects:
        about = (basename(result["model"]), f"seed {int(number(result['seed']))}",
                 f"{plain(number(result['samples']))} samples in each field")
        with_depth = {cell["task"] for cell in result["cells"] if cell["depth"] is not None}
        for cell in result["cells"]:
            if cell["depth"] is None and cell["task"] in with_depth:
                continue  # all depths together
            name = f"{clean(cell['task'])}, {clean(cell['kv'])}"
            depth = None if cell["depth"] is None else number(cell["depth"])
            grid = grids.setdefault((about, name), Grid(about, name, {}))
            grid.scores[depth, number(cell["length"])] = number(cell["score"][0])
    return list(grids.values())


def draw_grid(axes, grid):
    depths = sorted({depth for depth, _ in grid.scores}, key=lambda depth: depth or 0)
    lengths = sorted({length for _, length in grid.scores})
    cells = [[grid.scores.get((depth, length), float("nan")) for length in lengths]
             for depth in depths]
    axes.grid(False)
    image = axes.imshow(cells, vmin=0, vmax=1, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(lengths)), [plain(length) for length in lengths], fontsize=8)
    axes.set_yticks(range(len(depths)), ["" if depth is None else f"{plain(depth)} %"
                                         for depth in depths], fontsize=8)
    axes.tick_params(length=0)
    # Colour is never the only difference.
    for row, scores in enumerate(cells):
        for column, score in enumerate(scores):
            if score == score:
                axes.text(column, row, f"{score:.2f}", ha="center", va="center", fontsize=8,
                          color="black" if score > 0.6 else "white")
    write_above(axes, grid.name, 4, fontsize=9, fontweight="bold")
    return image


def draw(grids):
    columns = [len({length for _, length in grid.scores}) for grid in grids]
    rows = [len({depth for depth, _ in grid.scores}) for grid in grids]
    left, above, below = 0.7, 0.95, 0.3
    inner = max(5.5, COLUMN_INCHES * max(columns))
    width = left + inner + 0.2
    heights = [ROW_INCHES * count for count in rows]
    height = above + sum(heights) + below * len(grids) + GAP_INCHES * (len(grids) - 1) + 0.8
    figure = Figure(figsize=(width, min(height, 400)))
    drawn, top = [], height - above
    for grid, own in zip(grids, heights):
        axes = figure.add_axes((left / width, (top - own) / height, inner / width, own / height))
        image = draw_grid(axes, grid)
        if any(depth is not None for depth, _ in grid.scores):
            axes.set_ylabel("depth", color=GREY)
        drawn.append(axes)
        top -= own + below + GAP_INCHES
    drawn[-1].set_xlabel("length of prompt and answer in tokens", color=GREY)
    bar = figure.add_axes((left / width, 0.15 / height, inner / width, 0.12 / height))
    figure.colorbar(image, cax=bar, orientation="horizontal").set_label("mean score", color=GREY)
    set_title(drawn[0], "What is found in a long text",
              dict.fromkeys(fact for grid in grids for fact in grid.about), 20)
    return figure, drawn


GRIDS = Kind("godwit eval passkey, needle, kv-retrieval, lines, babilong or ruler --json",
             lambda keys: {"samples", "cells"} <= keys, read, draw)
