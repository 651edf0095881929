"""Questions about an endless text: godwit eval stream."""

from pictures.curves import (HALF_INTERVAL, Curve, Kind, accuracy_points, basename, clean, interval,
                             number)
from pictures.style import curve_picture


def read_distances(objects, source):
    """A curve for each policy."""
    curves = {}
    for at, result in enumerate(objects):
        for cell in result["cells"]:
            facts = {"model": basename(result["model"]), "kv": clean(cell["kv"]),
                     "feed": f"fed: {clean(result['feed'])}"}
            curves.setdefault((at, facts["kv"]), Curve(facts, [], source=source)).points.append(
                (number(cell["tokens"]), *interval(cell["score"])))
    for curve in curves.values():
        curve.points.sort()
    return list(curves.values())


def draw_distances(curves):
    return curve_picture(curves, "Lines found again in an endless text", "distance in tokens",
                         f"accuracy {HALF_INTERVAL}", share=True)


def read_questions(objects, source):
    of = {}
    for row in objects:
        asked = clean(row["task"]) if "task" in row else f"{row['distance']} lines back"
        of.setdefault((asked, clean(row["kv"])), []).append((number(row["position"]),
                                                            number(row["score"])))
    return [Curve({"asked": asked, "kv": kv, "run": source}, accuracy_points(rows), source=source)
            for (asked, kv), rows in of.items()]


def draw_questions(curves):
    return curve_picture(curves, "Right answers over the length of the text",
                         "tokens of the text", "accuracy ± standard error", share=True)


DISTANCES = Kind("godwit eval stream --json", lambda keys: {"cells", "every"} <= keys,
                 read_distances, draw_distances)
QUESTIONS = Kind("godwit eval stream -o", lambda keys: {"position", "score"} <= keys,
                 read_questions, draw_questions)
