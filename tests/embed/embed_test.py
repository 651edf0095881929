#!/usr/bin/env python3
"""Builds what docs/cpp.md tells to build, and runs it on a tiny model.

    embed_test.py Installed|InstallTree|Subdirectory BUILD_FOLDER [CMAKE_ARGUMENT...]

The blocks of that page are taken as they stand, but for the folders. The CMake arguments go to
every configuration: they make it compile as BUILD_FOLDER does, a build with everything, which is only
read. What compiles as it did there is taken from there (same_object.py). Build folders are its siblings.
"""

import gzip
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
PAGE = (ROOT / "docs" / "cpp.md").read_text()
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
FIND, TARGETS = BLOCKS["cmake"].split("\n", 1)
PROJECT = "cmake_minimum_required(VERSION 3.25)\nproject(storyteller LANGUAGES CXX)\n"
MODEL = ROOT / "tests" / "data" / "tiny-llama"
VERSION = re.search(r"project\(godwit VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]

# main() lies in a library that does not tell its users about godwit.
BEHIND_A_LIBRARY = """
add_library(teller STATIC storyteller.cc)
target_link_libraries(teller PRIVATE godwit::godwit)
file(WRITE ${CMAKE_BINARY_DIR}/nothing.cc "")
add_executable(behind ${CMAKE_BINARY_DIR}/nothing.cc)
target_link_libraries(behind PRIVATE teller)
"""
VERSION_CHECK = """
#include "godwit/version.h"
static_assert(GODWIT_VERSION_MAJOR * 10000 + GODWIT_VERSION_MINOR * 100 + GODWIT_VERSION_PATCH == %d);
static const bool same = godwit::Version() == std::string(GODWIT_VERSION) ? true : throw "version";
"""


class Embedding(unittest.TestCase):
    """What the three ways share."""

    def build_folder(self):
        folder = tempfile.mkdtemp(prefix="embed-", dir=BUILD.parent)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return pathlib.Path(folder)

    def run_all(self, *commands, **options):
        for command in commands:
            done = subprocess.run(list(map(str, command)), text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout[-4000:]}")
        return done.stdout

    def project(self, godwit, more=""):
        """A folder with the page's example; `godwit` is the line that brings the library."""
        folder = self.build_folder()
        major, minor, patch = map(int, VERSION.split("."))
        (folder / "CMakeLists.txt").write_text(f"{PROJECT}{godwit}\n{TARGETS}{more}")
        (folder / "storyteller.cc").write_text(
            BLOCKS["cpp"] + VERSION_CHECK % (major * 10000 + minor * 100 + patch))
        return folder

    def tells_a_story(self, program):
        story = self.run_all([program, MODEL, "Once upon a time"])
        self.assertIn(" there was a small bird", story)


class InstallTree(Embedding):
    def test_example(self):
        engine, first, second = (self.build_folder() for _ in range(3))
        commands = [shlex.split(line) for line in BLOCKS["sh"].splitlines()]
        folders = {"build/engine": engine, "~/godwit": first}
        commands = [[folders.get(word, word) for word in command] for command in commands]
        self.assertEqual(len(commands), 3)
        commands[0] += ARGUMENTS + ["-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON"]
        commands[1] += ["--parallel", "2"]
        self.run_all(*commands, cwd=ROOT)
        self.assertFalse((engine / "godwit").exists(), "the program was built, too")
        headers = sorted(p.relative_to(first / "include") for p in first.glob("include/**/*.*"))
        own = [p.relative_to(ROOT / "include") for p in ROOT.glob("include/godwit/*.h")]
        self.assertEqual(headers, sorted([*own, pathlib.Path("godwit/version.h")]))

        # Nothing of it depends on where it lies, nor on what it was built from.
        shutil.rmtree(engine)
        installed = second / "moved"
        first.rename(installed)
        source, build = self.project(FIND, BEHIND_A_LIBRARY), self.build_folder()
        self.run_all(["cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={installed}",
                      *ARGUMENTS],
                     ["cmake", "--build", build])
        self.tells_a_story(build / "storyteller")
        self.tells_a_story(build / "behind")


class Subdirectory(Embedding):
    def test_example(self):
        source = self.project(f"add_subdirectory({ROOT} godwit)")
        build = self.build_folder()
        self.run_all(["cmake", "-S", source, "-B", build, *ARGUMENTS,
                      "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON"],
                     ["cmake", "--build", build, "--parallel", "2"])
        self.assertFalse((build / "godwit" / "godwit").exists(), "the program was built, too")
        self.tells_a_story(build / "storyteller")
        # Who embeds it says what is installed.
        prefix = self.build_folder()
        self.run_all(["cmake", "--install", build, "--prefix", prefix])
        self.assertEqual(os.listdir(prefix), [])


class Installed(Embedding):
    def test_program(self):
        prefix = self.build_folder()
        install = (ROOT / "docs" / "install.md").read_text()
        commands = re.findall(r"^cmake --install .*$", install, re.MULTILINE)
        self.assertEqual(len(commands), 1)
        folders = {"build/release": BUILD, "~/.local": prefix}
        self.run_all([folders.get(word, word) for word in commands[0].split()])
        self.assertEqual(sorted(p.name for p in prefix.iterdir()),
                         ["bin", "include", "lib", "libexec", "share"])
        self.assertEqual(os.listdir(prefix / "bin"), ["godwit"])
        version = self.run_all([prefix / "bin" / "godwit", "--version"])
        self.assertEqual(version.splitlines()[0], f"godwit {VERSION}")
        share = prefix / "share"
        page = gzip.decompress((share / "man" / "man1" / "godwit.1.gz").read_bytes()).decode()
        self.assertEqual(page, self.run_all([prefix / "bin" / "godwit", "man"]))
        for shell, file in (("bash", "bash-completion/completions/godwit"),
                            ("zsh", "zsh/site-functions/_godwit"),
                            ("fish", "fish/vendor_completions.d/godwit.fish")):
            self.assertEqual((share / file).read_text(),
                             self.run_all([prefix / "bin" / "godwit", "completions", shell]))
        self.assertEqual(sorted(p.name for p in (share / "doc" / "godwit").iterdir()),
                         ["CHANGELOG.md", "LICENSE", "copyright", "examples"])
        # The small model is installed, too.
        self.assertIn("stories-3m", self.run_all([prefix / "bin" / "godwit", "run", "-p", "Once",
                                                  "-n", "1"]))
        run = [prefix / "bin" / "godwit", "tokenize", "-m", MODEL, "-p", "Once"]
        self.run_all(run)
        (prefix / "libexec" / "godwit-text").unlink()
        refused = subprocess.run(run, text=True, capture_output=True)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("libexec/godwit-text", refused.stderr)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[2])
    LAUNCHER = [sys.executable, pathlib.Path(__file__).resolve().parent / "same_object.py", BUILD]
    ARGUMENTS = [*sys.argv[3:], f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(map(str, LAUNCHER))}"]
    unittest.main(argv=sys.argv[:2])
