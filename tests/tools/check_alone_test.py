"""tools/check_alone must find a source that lives on what another one includes."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_alone"
WHOLE = "#include <string>\nstd::string whole;\n"
FORGETFUL = "std::string forgetful;\n"


def folder_of(build, sources):
    """Writes {path: text} beside a build folder, and into that how they are compiled."""
    build.mkdir()
    entries = []
    for name, text in sources.items():
        path = build.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        entries.append({"directory": str(build), "file": str(path),
                        "command": f"c++ -std=c++20 -o x.o -c {path}"})
    (build / "compile_commands.json").write_text(json.dumps(entries))
    return str(build)


def git(root, *arguments):
    subprocess.run(["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
                   check=True)


def run(sources, *more, built=None, commits=()):
    """(exit status, output, files of the folder) of the check on a build of {path: text}; `built`:
    those of the build that compiled, if any, with ROOT for where they are; `commits`: lists of the
    sources that each of them adds."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        arguments = [folder_of(root / "build", sources), "-j", "2", *more]
        if built:
            built = {name: text.replace("ROOT", str(root)) for name, text in built.items()}
            arguments += ["--but", folder_of(root / "built", built)]
        if commits:
            git(root, "init", "--quiet")
        for names in commits:
            git(root, "add", *names)
            git(root, "commit", "--quiet", "-m", "more")
        done = subprocess.run([sys.executable, str(CHECK), *arguments], text=True,
                              capture_output=True, check=False)
        files = sorted(path.name for path in (root / "build").iterdir())
        return done.returncode, done.stdout + done.stderr, files


class CheckAlone(unittest.TestCase):
    def test_whole_sources_pass_and_nothing_is_written(self):
        self.assertEqual(run({"a.cc": WHOLE, "b.cc": WHOLE}),
                         (0, "check_alone: 2 sources, 0 problems\n", ["compile_commands.json"]))

    def test_a_forgotten_include_is_found(self):
        status, output, _ = run({"a.cc": WHOLE, "b.cc": FORGETFUL})
        self.assertEqual(status, 1)
        self.assertIn("b.cc:1:", output)
        self.assertIn("2 sources, 1 problems", output)

    def test_sources_compiled_alone_or_first_elsewhere_are_left_out(self):
        batch = '/* CMake */\n#include "ROOT/a.cc"\n#include "ROOT/b.cc"\n'
        status, output, _ = run({"a.cc": FORGETFUL, "b.cc": WHOLE},
                                built={"built/Unity/unity_0_cxx.cxx": batch})
        self.assertEqual((status, output), (0, "check_alone: 1 sources, 0 problems\n"))
        status, output, _ = run({"a.cc": WHOLE, "b.cc": FORGETFUL},
                                built={"built/Unity/unity_0_cxx.cxx": batch})
        self.assertEqual(status, 1, output)
        status, output, _ = run({"a.cc": WHOLE, "b.cc": FORGETFUL}, built={"b.cc": FORGETFUL})
        self.assertEqual((status, output), (0, "check_alone: 1 sources, 0 problems\n"))

    def test_a_unity_build_is_refused(self):
        status, output, _ = run({"build/CMakeFiles/x.dir/Unity/unity_0_cxx.cxx": WHOLE})
        self.assertEqual(status, 2)
        self.assertIn("is a unity build", output)

    def test_shares_are_all_and_what_changed_lately_is_in_each(self):
        sources = {f"{i}.cc": WHOLE for i in range(8)}
        counts = [int(run(sources, "--share", f"{share}/3")[1].split()[1]) for share in range(3)]
        self.assertEqual(sum(counts), 8)
        self.assertLess(max(counts), 8)
        found = [run({"0.cc": WHOLE, "1.cc": FORGETFUL}, "--share", f"{share}/3",
                     commits=[["0.cc"], ["1.cc"]])[0] for share in range(3)]
        self.assertEqual(found, [1, 1, 1])

    def test_no_sources_are_no_success(self):
        self.assertEqual(run({})[0], 1)


if __name__ == "__main__":
    unittest.main()
