"""tools/sanitized_rooms must take what changed, say what it leaves, and come to every room in time."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("sanitized_rooms", str(ROOT / "tools/sanitized_rooms"))
rooms = importlib.util.module_from_spec(importlib.util.spec_from_loader(LOADER.name, LOADER))
LOADER.exec_module(rooms)


class Choose(unittest.TestCase):
    def test_every_room_of_the_layers_has_a_cost(self):
        listed = subprocess.run([ROOT / "tools" / "check_layers", "--above", "base"], text=True,
                                capture_output=True, check=True).stdout.split()
        self.assertEqual(set(listed), set(rooms.COSTS))

    def test_changed_rooms_come_first_and_left_out_rooms_are_named(self):
        taken, left = rooms.choose({"kv"}, ["kv", "attention", "model", "engine"], 0)
        self.assertEqual(taken[0], "kv")
        self.assertIn("attention", left + taken)
        self.assertFalse(set(taken) & set(left))
        self.assertLessEqual({"kv", "attention", "model", "engine"}, set(taken + left))

    def test_a_changed_room_is_taken_whatever_it_costs(self):
        for room in rooms.COSTS:
            self.assertEqual(rooms.choose({room}, [room], 0)[0][0], room)

    def test_the_shares_come_to_every_room(self):
        seen = set()
        for number in range(len(rooms.COSTS)):
            taken, left = rooms.choose(set(), [], number)
            self.assertEqual((taken, left), rooms.choose(set(), [], number))
            self.assertEqual(left, [])
            seen.update(taken)
        self.assertEqual(seen, set(rooms.COSTS))


class ChangedRooms(unittest.TestCase):
    def test_commits_work_and_new_files_since_a_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)

            def git(*arguments):
                subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments],
                               cwd=root, check=True, capture_output=True)

            def write(name):
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(name)

            git("init")
            write("src/base/a.cc")
            write("src/kv/b.cc")
            git("add", ".")
            git("commit", "-m", "one")
            self.assertEqual(rooms.changed_rooms(root, "HEAD"), set())
            (root / "src/kv/b.cc").write_text("changed")
            git("commit", "-a", "-m", "two")
            write("include/godwit/new.h")
            write("tests/laws/new_test.cc")
            write("docs/x.md")
            write("src/removed_room/x.cc")
            self.assertEqual(rooms.changed_rooms(root, "HEAD"), {"engine", "attention"})
            self.assertEqual(rooms.changed_rooms(root, "HEAD~"), {"kv", "engine", "attention"})
            # The first commit was green.
            (root / "build/check").mkdir(parents=True)
            first = subprocess.run(["git", "rev-parse", "HEAD~"], cwd=root, text=True, check=True,
                                   capture_output=True).stdout
            self.assertEqual(rooms.last_green(root), "HEAD")
            (root / "build/check/green").write_text(first)
            self.assertEqual(rooms.last_green(root), first.strip())


if __name__ == "__main__":
    unittest.main()
