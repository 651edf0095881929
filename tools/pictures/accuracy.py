"""Shares and divergences of several models, as dots with error bars: godwit eval tasks, eval quant,
and eval stream --arc."""

from dataclasses import dataclass, field

from matplotlib.ticker import FuncFormatter

from pictures.curves import (HALF_INTERVAL, Curve, Kind, Refused, basename, clean, deviation,
                             give_names, interval, mean_points, number)
from pictures.perplexity import texts_of
from pictures.style import (GREY, appearance, curve_picture, fit_share, new_figure, plain,
                            set_title)


@dataclass
class Run:
    """One model's accuracies and standard errors by task, and its differences from a reference."""
    facts: dict
    source: str
    tasks: dict = field(default_factory=dict)   # name -> (accuracy, its error, chance or None)
    kl: float | None = None
    name: str = ""
    error: str = "± standard error"


def tasks_of(results):
    """The results of one model of eval quant."""
    return {clean(name): (number(task["acc"]), deviation(task["acc_stderr"]),
                          None if task["chance"] is None else number(task["chance"]))
            for name, task in results.items() if task["acc"] is not None}


def read_tasks(objects, source):
    """The results of eval tasks and eval stream --arc: a run for each policy."""
    runs = {}
    for at, result in enumerate(objects):
        for cell in result["cells"]:
            if cell.get("figure", "acc") != "acc":
                continue
            facts = {"model": basename(result["model"]), "kv": clean(cell["kv"])}
            run = runs.setdefault((at, facts["kv"]), Run(facts, source, error=HALF_INTERVAL))
            score, chance = interval(cell["score"]), cell.get("chance")
            run.tasks[clean(cell["task"])] = (*score, None if chance is None else number(chance))
    return list(runs.values()) or [Run({}, source)]


def read_quant(objects, source):
    return [Run({"model": basename(model["model"]), "text": texts_of(result.get("texts", []))},
                source, tasks_of(model.get("results", {})),
                number(model["kl"]) if "kl" in model else None)
            for result in objects for model in result["models"]]


def draw_dots(axes, rows, runs, values):
    """A row for each name in `rows`; values: (x, error) of a run and a row, or None."""
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for i, run in enumerate(runs):
        look = appearance(i, len(runs)) | {"linestyle": "", "markersize": 6}
        dots = [(row, values(run, name)) for row, name in enumerate(rows)]
        dots = [(x, row + (i - (len(runs) - 1) / 2) * 0.7 / len(runs), error)
                for row, (x, error) in ((row, value) for row, value in dots if value)]
        if dots:
            x, y, error = zip(*dots)
            axes.errorbar(x, y, xerr=error if any(error) else None, capsize=2.5, elinewidth=1.2,
                          label=run.name, **look)


def draw_tasks(axes, runs):
    names = list(dict.fromkeys(name for run in runs for name in run.tasks))
    draw_dots(axes, names, runs,
              lambda run, name: run.tasks[name][:2] if name in run.tasks else None)
    chances = {(names.index(name), chance) for run in runs
               for name, (_, _, chance) in run.tasks.items() if chance is not None}
    for row, chance in chances:
        axes.plot([chance] * 2, [row - 0.4, row + 0.4], color=GREY, linewidth=2, zorder=2)
    fit_share(axes.xaxis)
    axes.set_xlabel(f"accuracy {runs[0].error}" + ("; the grey lines are chance" if chances else ""))


def draw_kl(axes, runs):
    measured = [(i, run) for i, run in enumerate(runs) if run.kl is not None]
    for row, (i, run) in enumerate(measured):
        axes.plot([run.kl], [row], **appearance(i, len(runs)) | {"linestyle": "", "markersize": 6})
    axes.set_yticks(range(len(measured)), [run.name for _, run in measured])
    axes.set_ylim(len(measured) - 0.5, -0.5)
    values = [run.kl for _, run in measured]
    if min(values) > 0 and max(values) / min(values) > 20:
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.set_xlabel("mean KL divergence from the first model, nats per token")


def draw(runs):
    source = runs[0].source
    runs = [run for run in runs if run.tasks or run.kl is not None]
    if not runs:
        raise Refused(f"{source}: there is nothing to draw in it")
    shared = give_names(runs)
    for run in runs:
        run.name = run.name or shared[0]
    tasks = {name for run in runs for name in run.tasks}
    heights = ([0.8 + 0.3 * len(runs)] if any(run.kl is not None for run in runs) else [])
    heights += [0.9 + (0.2 + 0.17 * len(runs)) * len(tasks)] if tasks else []
    figure = new_figure(1.2 + sum(heights))
    panels = list(figure.subplots(len(heights), 1, squeeze=False,
                                  gridspec_kw={"height_ratios": heights})[:, 0])
    set_title(panels[0], "What quantization costs" if len(heights) > 1 or not tasks
              else "Accuracy of tasks", shared)
    if len(heights) > 1 or not tasks:
        draw_kl(panels[0], runs)
    if tasks:
        draw_tasks(panels[-1], runs)
        if len(runs) > 1:
            panels[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return figure, panels


def read_tokens(objects, source):
    rows = {}
    for token in objects:
        rows.setdefault(basename(token["model"]), []).append(
            (number(token["position"]), number(token["kl"])))
    return [Curve({"model": model, "run": source}, mean_points(points), source=source)
            for model, points in rows.items()]


def draw_tokens(curves):
    return curve_picture(curves, "What quantization costs, over the text", "position in tokens",
                         "KL divergence in nats, mean of a stretch")


TASKS = Kind("godwit eval tasks --json", lambda keys: {"cells", "skipped"} <= keys, read_tasks,
             draw)
ARC = Kind("godwit eval stream --arc --json", lambda keys: {"cells", "feed", "limit"} <= keys,
           read_tasks, draw)
QUANT = Kind("godwit eval quant --json", lambda keys: "models" in keys, read_quant, draw)
QUANT_TOKENS = Kind("godwit eval quant --jsonl", lambda keys: {"token", "kl"} <= keys,
                    read_tokens, draw_tokens)
