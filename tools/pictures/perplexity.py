"""How well a text is predicted, over its length: godwit perplexity."""

from pictures.curves import Curve, Kind, basename, clean, mean_points, number
from pictures.style import curve_picture, plain


def texts_of(names):
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return basename(names[0]) + more if names else ""


def figure_of(perplexity):
    value = number(perplexity)
    return f"ppl {value:.2f}" if value < 1e6 else f"ppl {value:.3e}"


def windows_of(run):
    if run["window"] is None:
        return ""
    return f"windows of {plain(run['window'])}, one every {plain(run['stride'])}"


def middle(bucket):
    return (number(bucket["begin"]) + number(bucket["end"])) / 2


def read_runs(objects, source):
    return [Curve({"model": basename(result["model"]), "text": texts_of(result["texts"]),
                   "kv": clean(run["kv"]["policy"]), "window": windows_of(run)},
                  [(middle(bucket), number(bucket["nll"]), 0.0) for bucket in run["buckets"]],
                  note=figure_of(run["perplexity"]), source=source)
            for result in objects for run in result.get("compare", [result])]


def draw_runs(curves):
    return curve_picture(curves, "Loss over the text", "position in tokens", "nats per token")


def read_tokens(objects, source):
    rows = [(number(token["position"]), number(token["nll"])) for token in objects]
    return [Curve({"run": source}, mean_points(rows), source=source)]


def draw_tokens(curves):
    return curve_picture(curves, "Loss over the text", "position in tokens",
                         "nats per token, mean of a stretch")


RUNS = Kind("godwit perplexity --json", lambda keys: keys & {"compare", "buckets"},
            read_runs, draw_runs)
TOKENS = Kind("godwit perplexity --jsonl",
              lambda keys: {"token", "nll"} <= keys and "kl" not in keys, read_tokens, draw_tokens)
