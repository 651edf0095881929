#!/usr/bin/env python3
"""Compiles, or takes the object out of another build that has compiled the same in the same way.

    same_object.py OTHER_BUILD COMPILER ARGUMENT...

As CMake's compiler launcher. The same: the command is that of OTHER_BUILD, but for the build folder,
and so is a source that CMake wrote. The tests of embedding prove by that what compiling again would,
in a few seconds.
"""

import json
import os
import pathlib
import shlex
import shutil
import sys


def without(words, flags):
    """`words` without these flags and the word behind each."""
    kept = list(words)
    for flag in flags:
        if flag in kept:
            at = kept.index(flag)
            del kept[at:at + 2]
    return kept


def found(other, words):
    """The object of this command in the other build, or None."""
    output = words[words.index("-o") + 1]
    own = pathlib.Path.cwd() / output.partition("CMakeFiles/")[0]
    words = [word for word in without(words, ["-MT", "-MF"]) if word != "-MD"]
    moved = [word.replace(str(own), str(other)) for word in words]
    inner = pathlib.Path(output).resolve().relative_to(own.resolve())
    moved[moved.index("-o") + 1] = str(inner)
    entries = json.loads((other / "compile_commands.json").read_text())
    if not any(shlex.split(entry["command"]) == moved for entry in entries):
        return None
    source = pathlib.Path(words[-1])
    if source.is_relative_to(own) and source.read_bytes() != pathlib.Path(moved[-1]).read_bytes():
        return None
    return other / inner if (other / inner).is_file() else None


def main():
    other, words = pathlib.Path(sys.argv[1]), sys.argv[2:]
    same = found(other, words) if "-c" in words else None
    if same is None:
        os.execvp(words[0], words)
    shutil.copy(same, words[words.index("-o") + 1])
    if "-MF" in words:
        pathlib.Path(words[words.index("-MF") + 1]).touch()


if __name__ == "__main__":
    main()
