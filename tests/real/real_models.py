"""The trained models that the tests of this folder ask, and what these tests share.

They are GGUF files that are no part of the repository: ../shared/data/get-real-models brings them
into ~/.cache/godwit-real, and GODWIT_REAL_MODELS names another folder. Where one is missing that a
test file needs, all of the file is skipped, with one notice.
"""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from harness import TESTS, CliTest

FOLDER = pathlib.Path(os.environ.get("GODWIT_REAL_MODELS") or
                      pathlib.Path.home() / ".cache" / "godwit-real")
QWEN = FOLDER / "qwen2.5-coder-0.5b-q4_k_m.gguf"
LARGER_QWEN = FOLDER / "qwen2.5-coder-1.5b-q4_k_m.gguf"
GEMMA = FOLDER / "gemma-3-270m-q4_k_m.gguf"
# The file of Gemma has no template, since it is the model before it was taught to chat.
GEMMA_TEMPLATE = TESTS / "real" / "gemma.jinja"
SHARED = TESTS.parents[1] / "shared" / "data"
BOOK = SHARED / "corpora" / "gutenberg" / "frankenstein.txt"
SKIPPED = 77  # the exit code that ctest takes for it


class RealTest(CliTest):
    def book(self, characters, begin=0):
        """A file of so many characters of a book."""
        file = self.folder / f"book-{begin}-{characters}.txt"
        file.write_text(BOOK.read_text()[begin:begin + characters])
        return file

    def result(self, model, *arguments):
        """What a greedy run says of itself."""
        return json.loads(self.ok("run", "-m", model, "--temp", "0", "--json", *arguments))

    def answers(self, model, bodies, *flags):
        """Bodies of the answers of a greedy batch, in the order of the requests."""
        requests, out = self.folder / "requests.jsonl", self.folder / "answers.jsonl"
        requests.write_text("".join(json.dumps({"custom_id": str(i), "body": body}) + "\n"
                                    for i, body in enumerate(bodies)))
        out.unlink(missing_ok=True)
        self.ok("batch", "-m", model, "-f", requests, "-o", out, "--temp", "0", *flags)
        rows = {row["custom_id"]: row for row in map(json.loads, out.read_text().splitlines())}
        return [rows[str(i)]["response"]["body"] for i in range(len(bodies))]


def main(*models):
    """Runs the tests of the file, which need these models."""
    missing = [str(file) for file in (*models, BOOK) if not file.exists()]
    if missing:
        print("notice: trained models are not asked, since these files are missing:",
              *missing, "../shared/data/get-real-models brings the models", sep="\n  ")
        sys.exit(SKIPPED)
    unittest.main()
