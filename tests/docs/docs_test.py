#!/usr/bin/env python3
"""Holds the documentation to the truth.

    docs_test.py GODWIT EXAMPLE

Links between files lead somewhere. In a ```console block every line "$ command" is run in the
repository's root, with ./godwit standing for the binary GODWIT, and must print the lines that follow
it ("..." stands for any lines). README's ```cpp block is tests/docs/readme_example.cc, whose binary
EXAMPLE must run.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages():
    folders = [ROOT, ROOT / "models", *(p for p in ROOT.glob("docs/**/") if p.is_dir())]
    return sorted(page for folder in folders for page in folder.glob("*.md"))


def dead_links(page):
    for link in LINK.findall(BLOCK.sub("", page.read_text())):
        if not (page.parent / link).exists():
            yield f"{page.relative_to(ROOT)}: no such file: {link}"


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


def wrong_example(example):
    blocks = [block for kind, block in BLOCK.findall((ROOT / "README.md").read_text())
              if kind == "cpp"]
    if blocks != [(ROOT / "tests/docs/readme_example.cc").read_text()]:
        yield "README.md: its ```cpp block is not tests/docs/readme_example.cc"
    run = subprocess.run([example, "tests/data/tiny-llama", "Once upon a time"], cwd=ROOT,
                         text=True, capture_output=True)
    if run.returncode != 0 or not run.stdout.strip():
        yield f"readme_example: exit {run.returncode}: {run.stdout}{run.stderr}"


def wrong_verbs(godwit):
    """README's block of commands has each verb and evaluation of the program, and no other."""
    def listed(*arguments):
        text = subprocess.run([godwit, *arguments, "--help"], text=True, capture_output=True).stdout
        return re.findall(r"^  ([a-z-]+)  ", text, re.MULTILINE)

    verbs = [verb for verb in listed() if verb != "eval"] + [f"eval {kind}" for kind in listed("eval")]
    block = (ROOT / "README.md").read_text().split("\n## Use\n")[1].lstrip("\n").split("\n\n")[0]
    shown = re.findall(r"^    \./godwit (eval [a-z-]+|[a-z-]+)", block, re.MULTILINE)
    if sorted(shown) != sorted(verbs):
        yield f"README.md: Use shows {shown}, and the verbs are {verbs}"


def main():
    godwit, example = sys.argv[1:]
    problems = [problem for page in pages()
                for problem in (*dead_links(page), *wrong_transcripts(page, godwit))]
    problems += wrong_example(example)
    problems += wrong_verbs(godwit)
    if not transcripts(ROOT / "README.md"):
        problems.append("README.md: no transcript was found")
    for problem in problems:
        print(problem)
    print(f"docs_test: {len(pages())} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
