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


def run(sources):
    """(exit status, output) of the check on a build of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder).resolve() / "build"
        build.mkdir()
        entries = []
        for name, text in sources.items():
            path = build.parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            entries.append({"directory": str(build), "file": str(path),
                            "command": f"c++ -std=c++20 -o x.o -c {path}"})
        (build / "compile_commands.json").write_text(json.dumps(entries))
        done = subprocess.run([sys.executable, str(CHECK), str(build), "-j", "2"], text=True,
                              capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr, sorted(p.name for p in build.iterdir())


class CheckAlone(unittest.TestCase):
    def test_whole_sources_pass_and_nothing_is_written(self):
        self.assertEqual(run({"a.cc": WHOLE, "b.cc": WHOLE}),
                         (0, "check_alone: 2 sources, 0 problems\n", ["compile_commands.json"]))

    def test_a_forgotten_include_is_found(self):
        status, output, _ = run({"a.cc": WHOLE, "b.cc": FORGETFUL})
        self.assertEqual(status, 1)
        self.assertIn("b.cc:1:", output)
        self.assertIn("2 sources, 1 problems", output)

    def test_a_unity_build_is_refused(self):
        status, output, _ = run({"build/CMakeFiles/x.dir/Unity/unity_0_cxx.cxx": WHOLE})
        self.assertEqual(status, 2)
        self.assertIn("is a unity build", output)

    def test_no_sources_are_no_success(self):
        self.assertEqual(run({})[0], 1)


if __name__ == "__main__":
    unittest.main()
