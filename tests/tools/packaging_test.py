#!/usr/bin/env python3
"""Files of packaging/ hold together, without building a package: versions, licences, inputs, symbols.

    packaging_test.py [PROGRAM...]

The programs serve as examples for packaging/check_symbols.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
VERSION = re.search(r"^project\(godwit VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(),
                    re.MULTILINE)[1]


def run(*command, **options):
    return subprocess.run(list(map(str, command)), text=True, capture_output=True, **options)


class Licences(unittest.TestCase):
    def test_every_crate_is_listed(self):
        lock = (ROOT / "src/text/worker/Cargo.lock").read_text()
        crates = {f"{name}-{version}" for name, version in
                  re.findall(r'^name = "(.+)"\nversion = "(.+)"$', lock, re.MULTILINE)}
        crates = {crate for crate in crates if not crate.startswith("godwit-text-")}
        listed = set(re.findall(r"third-party/(\S+-\d+\.\d+\.\d\S*)",
                                (PACKAGING / "copyright").read_text()))
        listed = {crate.split("/")[0] for crate in listed}
        self.assertEqual(sorted(crates - listed), [], "run packaging/licences.py")
        self.assertEqual(sorted(listed - crates), [], "run packaging/licences.py")
        self.assertGreater(len(crates), 50)

    def test_every_licence_has_a_text(self):
        text = (PACKAGING / "copyright").read_text()
        used = set(re.findall(r"^License: (\S+)$", text, re.MULTILINE))
        explained = set(re.findall(r"^License: (\S+)\n .", text, re.MULTILINE))
        self.assertEqual(used - explained, set())
        for name in ("fmt", "xxhash", "ncurses", "libedit", "libbsd", "nlohmann-json3", "boost",
                     "llvm/libcxx", "oniguruma"):
            self.assertIn(f" third-party/{name}\n", text)


class Inputs(unittest.TestCase):
    def test_everything_is_pinned(self):
        lines = [line.split() for line in (PACKAGING / "inputs").read_text().splitlines()
                 if not line.startswith("#")]
        self.assertEqual({line[0] for line in lines}, {"wheel", "python", "rust", "deb"})
        for kind, name, version, sha256, place in lines:
            if kind != "rust":
                self.assertRegex(sha256, r"^[0-9a-f]{64}$", name)
            if kind == "deb":
                self.assertRegex(place, rf"^pool/main/.*/{re.escape(name)}_.*\.deb$")
                self.assertIn(version.split(":")[-1], place)


class Versions(unittest.TestCase):
    def test_one_version(self):
        self.assertRegex(VERSION, r"^\d+\.\d+\.\d+$")
        changelog = (ROOT / "CHANGELOG.md").read_text()
        headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
        self.assertTrue(headings)
        for heading in headings:
            self.assertRegex(heading, r"^\[(Unreleased|\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d)\]?$")
        released = [re.search(r"\d+\.\d+\.\d+", heading) for heading in headings]
        released = [tuple(map(int, version[0].split("."))) for version in released if version]
        self.assertEqual(released, sorted(released, reverse=True))
        if released:
            self.assertLessEqual(released[0], tuple(map(int, VERSION.split("."))))

    def test_changes_since_a_tag(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "packaging").mkdir()
            script = folder / "packaging/release"
            script.write_bytes((PACKAGING / "release").read_bytes())
            script.chmod(0o755)
            (folder / "CMakeLists.txt").write_text("project(godwit VERSION 1.2.3 LANGUAGES CXX)\n")
            git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-C", folder]
            for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "old"]):
                self.assertEqual(run(*git, *command).returncode, 0)
            self.assertIn("- old (", run(script, "changes").stdout)
            run(*git, "tag", "v1.2.2")
            run(*git, "commit", "--quiet", "--allow-empty", "-m", "new")
            printed = run(script, "changes").stdout
            self.assertIn("changes since v1.2.2\n- new (", printed)
            self.assertNotIn("old", printed)
            self.assertNotEqual(run(script, "--push").returncode, 0)


class DebianChangelog(unittest.TestCase):
    TEXT = """# Changelog

## [Unreleased]

### Added

- A [link](x.md), `code`
  on two lines.

## [0.0.9] - 2025-02-03

- First.
"""

    def test_entries(self):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write(self.TEXT)
            file.flush()
            printed = run(PACKAGING / "debian_changelog.py", file.name, "0.1.0", "N <n@example.org>",
                          "86400")
        self.assertEqual(printed.stdout, """\
godwit (0.1.0) unstable; urgency=medium

  * A link, code on two lines.

 -- N <n@example.org>  Fri, 02 Jan 1970 00:00:00 +0000

godwit (0.0.9) unstable; urgency=medium

  * First.

 -- N <n@example.org>  Mon, 03 Feb 2025 00:00:00 +0000
""")

    def test_of_this_tree(self):
        printed = run(PACKAGING / "debian_changelog.py", ROOT / "CHANGELOG.md", VERSION,
                      "N <n@example.org>", "0")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        self.assertTrue(printed.stdout.startswith(f"godwit ({VERSION}) unstable"))
        self.assertLessEqual(max(map(len, printed.stdout.splitlines())), 80)


class Symbols(unittest.TestCase):
    def test_versions_and_libraries(self):
        check = PACKAGING / "check_symbols"
        for program in PROGRAMS:
            newest = run(check, "2.0", program)
            self.assertEqual(newest.returncode, 1)
            self.assertIn("needs glibc 2.", newest.stderr)
            self.assertIn("needs libstdc++.so.6", newest.stderr)
        # A program of this system needs nothing newer than this system has.
        self.assertEqual(run(check, "99", "/bin/true").returncode, 0)
        self.assertNotEqual(run(check, "99").returncode, 0)


if __name__ == "__main__":
    PROGRAMS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
