#!/usr/bin/env python3
"""The shared library for C: its symbols, its header, the example, and what Python thinks of it.

    c_library_test.py BUILD_FOLDER C_COMPILER

BUILD_FOLDER has libgodwit.so and godwit-text.
"""

import ctypes
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include" / "godwit" / "godwit.h"
EXAMPLE = ROOT / "examples" / "c" / "storyteller.c"
MODEL = ROOT / "tests" / "data" / "tiny-llama"
SYMBOLS = (ROOT / "src" / "capi" / "symbols.txt").read_text().split()
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
STORY = " there was a small bird"

# Every struct of options with its defaults, and every function that frees nothing.
NOTHING = """
#include "godwit/godwit.h"
int main(void) {
  godwit_engine_free(0); godwit_session_free(0); godwit_generation_free(0); godwit_group_free(0);
  godwit_chat_free(0); godwit_error_free(0); godwit_text_free(0); godwit_tokens_free(0);
  godwit_strings_free(0); godwit_event_free(0); godwit_result_free(0); godwit_kv_report_free(0);
  godwit_saved_texts_free(0); godwit_fill_prompt_free(0); godwit_chat_prompt_free(0);
  godwit_session_cancel(0); godwit_generation_cancel(0); godwit_chat_cancel(0);
  return godwit_version()[0] == 0;
}
"""


class CLibrary(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def run_all(self, *command, status=0, **options):
        done = subprocess.run(list(map(str, command)), text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, check=False, **options)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stdout}{done.stderr}")
        return done

    def compile(self, source, *arguments):
        program = self.folder / "program"
        self.run_all(CC, *STRICT, "-o", program, source, *arguments)
        return program

    def built(self):
        return [f"-I{ROOT / 'include'}", BUILD / "libgodwit.so", f"-Wl,-rpath,{BUILD}"]

    def test_symbols_are_those_of_the_list_and_of_the_header(self):
        listed = self.run_all("nm", "-D", "--defined-only", BUILD / "libgodwit.so").stdout
        exported = sorted(line.split()[-1] for line in listed.splitlines() if " A " not in line)
        self.assertEqual(exported, [f"{symbol}@@GODWIT_0" for symbol in SYMBOLS])
        text = re.sub(r"//[^\n]*", "", HEADER.read_text())
        declared = re.findall(r"GODWIT_EXPORT[^;{]*?\b(godwit_\w+)\(", text)
        self.assertEqual(sorted(declared), SYMBOLS)

    def test_library_has_its_name(self):
        dynamic = self.run_all("readelf", "-d", BUILD / "libgodwit.so").stdout
        self.assertIn("[libgodwit.so.0]", dynamic)

    def test_header_is_strict_c_and_cpp(self):
        source = self.folder / "header.c"
        source.write_text('#include "godwit/godwit.h"\nint main(void) { return 0; }\n')
        self.run_all(CC, *STRICT, f"-I{ROOT / 'include'}", "-fsyntax-only", source)
        self.run_all(CC, "-x", "c++", "-std=c++11", *STRICT[1:], f"-I{ROOT / 'include'}",
                     "-fsyntax-only", source)

    def test_nothing_is_freed(self):
        source = self.folder / "nothing.c"
        source.write_text(NOTHING)
        self.run_all(self.compile(source, *self.built()))

    def test_example(self):
        program = self.compile(EXAMPLE, *self.built())
        self.assertIn(STORY, self.run_all(program, MODEL, "Once upon a time").stdout)
        refused = self.run_all(program, self.folder / "none", "Once", status=1)
        self.assertIn(str(self.folder / "none"), refused.stderr)

    def test_installed_library_may_be_moved(self):
        prefix = self.folder / "installed"
        for component in ("godwit", "godwit_text"):
            self.run_all("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
        moved = self.folder / "moved"
        prefix.rename(moved)
        info = next(moved.glob("lib*/**/godwit.pc"))
        flags = self.run_all("pkg-config", "--cflags", "--libs", "godwit",
                             env={**os.environ, "PKG_CONFIG_PATH": str(info.parent)}).stdout
        program = self.compile(EXAMPLE, *shlex.split(flags))
        found = {**os.environ, "LD_LIBRARY_PATH": str(info.parents[1])}
        self.assertIn(STORY, self.run_all(program, MODEL, "Once upon a time", env=found).stdout)
        next(moved.glob("libexec/godwit-text")).unlink()
        refused = self.run_all(program, MODEL, "Once", status=1, env=found)
        self.assertIn("libexec/godwit-text", refused.stderr)

    def test_declarations_of_python_are_those_of_the_header(self):
        self.run_all(sys.executable, ROOT / "python" / "make_declarations.py", "--check")

    def test_layout_in_python_is_that_of_c(self):
        source = self.folder / "layout.c"
        source.write_text(self.run_all(sys.executable, ROOT / "python" / "make_declarations.py",
                                       "--layout").stdout)
        printed = self.run_all(self.compile(source, f"-I{ROOT / 'include'}")).stdout.splitlines()
        self.assertGreater(len(printed), 100)
        sys.path.insert(0, str(ROOT / "python" / "godwit"))
        import _declarations
        for line in printed:
            struct, member, value = line.split()
            kind = getattr(_declarations, struct)
            found = ctypes.sizeof(kind) if member == "size" else getattr(kind, member).offset
            self.assertEqual(found, int(value), line)


if __name__ == "__main__":
    BUILD, CC = pathlib.Path(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1])
