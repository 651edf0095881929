"""models/restore brings a model back as it was, and says why where it cannot."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

RESTORE = pathlib.Path(__file__).resolve().parents[2] / "models" / "restore"
IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@example.org")


@unittest.skipUnless(shutil.which("git"), "needs git")
class RestoreModels(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="godwit-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        # Not of the repository in which a hook runs these tests.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        self.clone = self.folder / "clone"
        model = self.clone / "models" / "old-3m"
        model.mkdir(parents=True)
        shutil.copy(RESTORE, self.clone / "models")
        self.files = {"config.json": b"{}", "model.safetensors": bytes(range(256))}
        for name, content in self.files.items():
            (model / name).write_bytes(content)
        self.git("init", "-q")
        self.commit("a model")
        shutil.rmtree(model)
        self.commit("no model")
        (self.clone / "later").write_text("\n")
        self.commit("later")

    def git(self, *arguments, at=None):
        subprocess.run(["git", *IDENTITY, *map(str, arguments)], cwd=at or self.clone, check=True,
                       env=self.environment)

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def restore(self, *names, clone=None):
        done = subprocess.run([(clone or self.clone) / "models" / "restore", *names], text=True,
                              cwd=self.folder, env=self.environment, capture_output=True)
        return done.returncode, done.stdout + done.stderr

    def test_the_same_bytes(self):
        self.assertEqual(self.restore(), (0, "old-3m\n"))
        self.assertEqual(self.restore("old-3m"), (0, ""))
        model = self.clone / "models" / "old-3m"
        self.assertEqual({path.name: path.read_bytes() for path in model.iterdir()}, self.files)
        self.assertEqual(self.restore(), (0, ""))

    def test_reasons_why_not(self):
        self.assertEqual(self.restore("new-3m"),
                         (1, "models/restore: no model new-3m was ever removed\n"))
        shallow = self.folder / "shallow"
        self.git("clone", "-q", "--depth", "1", self.clone.as_uri(), shallow, at=self.folder)
        status, text = self.restore("old-3m", clone=shallow)
        self.assertEqual(status, 1)
        self.assertIn("git fetch --unshallow", text)
        archive = self.folder / "archive"
        (archive / "models").mkdir(parents=True)
        shutil.copy(RESTORE, archive / "models")
        self.assertIn("this is no clone", self.restore("old-3m", clone=archive)[1])


if __name__ == "__main__":
    unittest.main()
