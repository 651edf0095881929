#!/usr/bin/env python3
"""Holds the documentation to the truth.

    docs_test.py GODWIT EXAMPLE

Links between files lead to a file, and to a heading of it where they name one. In a ```console block
every line "$ command" is run in the repository's root, with ./godwit standing for the binary GODWIT,
and must print the lines that follow it ("..." stands for any lines). docs/commands.md lists every verb.
The ```cpp block of docs/cpp.md is tests/docs/readme_example.cc, whose binary EXAMPLE must run, and
README's is a part of it.
"""

import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#]*)#?([^)]*)\)")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages():
    folders = [ROOT, ROOT / "models", *(p for p in ROOT.glob("docs/**/") if p.is_dir())]
    return sorted(page for folder in folders for page in folder.glob("*.md"))


@functools.cache
def anchors(page):
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    texts = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


def dead_links(page):
    for file, anchor in LINK.findall(BLOCK.sub("", page.read_text())):
        target = page.parent / file if file else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: no such file: {file}"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{page.relative_to(ROOT)}: no such heading: {file}#{anchor}"


def commands(block):
    """Pairs of a command and the lines that it prints."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def matches(lines, printed):
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\n" for line in lines)
    return re.fullmatch(pattern, printed if printed.endswith("\n") else printed + "\n") is not None


def transcripts(page):
    blocks = [block for kind, block in BLOCK.findall(page.read_text()) if kind == "console"]
    return [pair for block in blocks for pair in commands(block)]


def wrong_transcripts(page, godwit):
    # What somebody has set for their own use is not the reader's.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_")}
    for command, lines in transcripts(page):
        run = subprocess.run(
            command.replace("./godwit", shlex.quote(godwit)), shell=True, cwd=ROOT, text=True,
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        if not matches(lines, run.stdout):
            yield (f"{page.relative_to(ROOT)}: $ {command}\n  expected\n"
                   + "\n".join(lines) + f"\n  printed (exit {run.returncode})\n{run.stdout}")


def cpp_blocks(page):
    return [block for kind, block in BLOCK.findall((ROOT / page).read_text()) if kind == "cpp"]


def wrong_example(example):
    source = (ROOT / "tests/docs/readme_example.cc").read_text()
    if cpp_blocks("docs/cpp.md") != [source]:
        yield "docs/cpp.md: its ```cpp block is not tests/docs/readme_example.cc"
    part = [textwrap.indent(block, "    ") in source for block in cpp_blocks("README.md")]
    if part != [True]:
        yield "README.md: its ```cpp block is no part of tests/docs/readme_example.cc"
    run = subprocess.run([example, "tests/data/tiny-llama", "Once upon a time"], cwd=ROOT,
                         text=True, capture_output=True)
    if run.returncode != 0 or not run.stdout.strip():
        yield f"readme_example: exit {run.returncode}: {run.stdout}{run.stderr}"


def wrong_verbs(godwit):
    """docs/commands.md lists each verb and evaluation of the program once, and no other."""
    def listed(*arguments):
        text = subprocess.run([godwit, *arguments, "--help"], text=True, capture_output=True).stdout
        return re.findall(r"^  ([a-z-]+)  ", text, re.MULTILINE)

    verbs = [verb for verb in listed() if verb != "eval"] + [f"eval {kind}" for kind in listed("eval")]
    page = (ROOT / "docs/commands.md").read_text()
    shown = re.findall(r"^\| `godwit (eval [a-z-]+|[a-z-]+)[ `]", page, re.MULTILINE)
    if sorted(shown) != sorted(verbs):
        yield f"docs/commands.md shows {shown}, and the verbs are {verbs}"


def missing_tests(page):
    """Each test that the page links is one by its file's name, or stands in the file."""
    links = re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", page.read_text())
    for name, path in links:
        file = page.parent / path
        if name != file.stem and name not in file.read_text():
            yield f"{page.relative_to(ROOT)}: {path} has no test {name}"
    if len(links) < 20:
        yield f"{page.relative_to(ROOT)} links {len(links)} tests"


def main():
    godwit, example = sys.argv[1:]
    problems = [problem for page in pages()
                for problem in (*dead_links(page), *wrong_transcripts(page, godwit))]
    problems += wrong_example(example)
    problems += wrong_verbs(godwit)
    problems += missing_tests(ROOT / "docs/comparison.md")
    if not transcripts(ROOT / "README.md"):
        problems.append("README.md: no transcript was found")
    for problem in problems:
        print(problem)
    print(f"docs_test: {len(pages())} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
