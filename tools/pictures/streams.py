"""Questions about an endless text: godwit eval stream."""

from pictures.curves import Curve, Kind, accuracy_points, basename, clean, deviation, number
from pictures.style import curve_picture


def read_distances(objects, source):
    return [Curve({"model": basename(result["model"]), "kv": clean(result["kv"]),
                   "feed": f"fed: {clean(result['feed'])}"},
                  sorted((number(row["distance_tokens"]), number(row["accuracy"]),
                          deviation(row["accuracy_stderr"])) for row in result["distances"]),
                  source=source)
            for result in objects]


def draw_distances(curves):
    return curve_picture(curves, "Lines found again in an endless text",
                         "distance in tokens", "accuracy ± standard error", share=True)


def read_questions(objects, source):
    of = {}
    for row in objects:
        asked = clean(row["task"]) if "task" in row else f"{row['distance_lines']} lines back"
        if not isinstance(row["right"], bool):
            raise TypeError(f"expected right to be true or false, found {row['right']!r:.40}")
        of.setdefault(asked, []).append((number(row["position"]), row["right"]))
    return [Curve({"asked": asked, "run": source}, accuracy_points(rows), source=source)
            for asked, rows in of.items()]


def draw_questions(curves):
    return curve_picture(curves, "Right answers over the length of the text",
                         "tokens of the text", "accuracy ± standard error", share=True)


DISTANCES = Kind("godwit eval stream --json", lambda keys: "distances" in keys,
                 read_distances, draw_distances)
QUESTIONS = Kind("godwit eval stream --jsonl", lambda keys: {"position", "right"} <= keys,
                 read_questions, draw_questions)
