#!/usr/bin/env python3
"""cmake/build_facts.cmake: the commit that `godwit --version` says, from git, a flag, or nowhere."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class BuildFacts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="build-facts-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.source = self.folder / "source"
        self.source.mkdir()
        self.out = self.folder / "facts.cc"

    def git(self, *arguments):
        done = subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-C", self.source,
             *arguments], check=True, text=True, capture_output=True)
        return done.stdout.strip()

    def commit(self):
        self.git("init", "--quiet")
        (self.source / "file").write_text("1")
        self.git("add", "file")
        self.git("commit", "--quiet", "-m", "first")

    def told(self, commit=""):
        subprocess.run(["cmake", f"-DSOURCE={self.source}", f"-DCOMMIT={commit}", "-DCOMPILER=GNU 12",
                        "-DBUILD_TYPE=Release", f"-DTEMPLATE={ROOT}/cmake/build_facts.cc.in",
                        f"-DOUT={self.out}", "-P", ROOT / "cmake/build_facts.cmake"], check=True)
        return dict(re.findall(r'\.(\w+) = "(.*)"', self.out.read_text()))

    def test_commit_and_changes(self):
        self.commit()
        commit = self.git("rev-parse", "HEAD")[:12]
        self.assertEqual(self.told(), {"commit": commit, "compiler": "GNU 12",
                                       "build_type": "Release"})
        (self.source / "not in git").write_text("x")
        self.assertEqual(self.told()["commit"], commit)
        (self.source / "file").write_text("2")
        self.assertEqual(self.told()["commit"], f"{commit} with changes")

    def test_source_is_left_alone(self):
        self.commit()
        self.told()
        os.utime(self.out, (1, 1))
        self.told()
        self.assertEqual(self.out.stat().st_mtime, 1)

    def test_sources_without_git(self):
        self.assertEqual(self.told()["commit"], "unknown")
        self.assertEqual(self.told("0123456789ab")["commit"], "0123456789ab")

    def test_sources_within_another_repository(self):
        self.commit()
        self.source = self.source / "unpacked"
        self.source.mkdir()
        self.assertEqual(self.told()["commit"], "unknown")


if __name__ == "__main__":
    unittest.main()
