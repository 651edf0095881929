#!/usr/bin/env python3
"""Prints CHANGELOG.md as Debian's changelog: an entry for each version, with its points.

    debian_changelog.py CHANGELOG.md VERSION MAINTAINER SECONDS

VERSION is that of the package; its entry comes first. SECONDS: the time of the commit, since 1970. A
version that was released has the date of its heading instead.
"""

import datetime
import email.utils
import pathlib
import re
import sys
import textwrap


def releases(text):
    """Pairs of a heading, "0.1.0 - 2026-11-29" or "Unreleased", and the points below it."""
    parts = re.split(r"^## \[?([^\]\n]+?)\]?( - \d{4}-\d\d-\d\d)?$", text, flags=re.MULTILINE)
    for name, date, body in zip(parts[1::3], parts[2::3], parts[3::3]):
        points = [" ".join(point.split()) for point in
                  re.findall(r"^- (.*(?:\n  .*)*)", body, re.MULTILINE)]
        yield name, (date or "")[3:], points


def plain(text):
    """Without Markdown's links and marks."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*`]", "", text)


def entry(version, points, maintainer, seconds):
    lines = [f"godwit ({version}) unstable; urgency=medium", ""]
    for point in points:
        lines += textwrap.wrap(plain(point), 76, initial_indent="  * ", subsequent_indent="    ",
                               break_long_words=False, break_on_hyphens=False)
    date = email.utils.format_datetime(datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc))
    return "\n".join([*lines, "", f" -- {maintainer}  {date}", ""])


def main():
    file, version, maintainer, seconds = sys.argv[1:]
    entries = []
    for name, date, points in releases(pathlib.Path(file).read_text()):
        if not points:
            continue
        when = int(seconds)
        if date:
            day = datetime.datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=datetime.timezone.utc)
            when = int(day.timestamp())
        # Changes since the last release are part of the package that is made now.
        name = version if name == "Unreleased" else name
        if entries and entries[-1][0] == name:
            entries[-1][1].extend(points)
        else:
            entries.append((name, points, when))
    if not entries:
        sys.exit(f"{file}: no version has a point")
    print("\n".join(entry(name, points, maintainer, when) for name, points, when in entries), end="")


if __name__ == "__main__":
    main()
