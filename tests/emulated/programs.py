#!/usr/bin/env python3
"""Makes a folder from which programs of another processor run, and the programs that these start.

    programs.py FOLDER BUILD_FOLDER EMULATOR [ARGUMENT...]

FOLDER/godwit is a script that emulates BUILD_FOLDER/godwit. A program looks for others beside itself, and so
has a folder of its own, with scripts in the place of these. No system has to know foreign programs.
"""

import pathlib
import shlex
import shutil
import sys

STARTS = {"godwit": ("godwit-lab", "godwit-text"), "godwit-lab": ("godwit-text",), "godwit-text": ()}


def main(folder, build_folder, *emulator):
    folder, build_folder = pathlib.Path(folder).resolve(), pathlib.Path(build_folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)

    def write_script(path, program):
        command = shlex.join([*emulator, str(folder / f"{program}.d" / program)])
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        path.chmod(0o755)

    for program, started in STARTS.items():
        own = folder / f"{program}.d"
        own.mkdir(parents=True)
        shutil.copy(build_folder / program, own / program)
        for other in started:
            write_script(own / other, other)
    write_script(folder / "godwit", "godwit")


if __name__ == "__main__":
    main(*sys.argv[1:])
