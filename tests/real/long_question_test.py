"""A question about 16,384 tokens of a book, in whose middle the answer stands: minutes."""

import json
import unittest

from real_models import BOOK, QWEN, RealTest, main

TOKENS = 16384
PATIENCE_S = 3600  # only where it hangs
FACT = "The keeper of the lighthouse at Arnholm had a grey parrot by the name of Bartholomew."
QUESTION = "What is the name of the parrot that the keeper of the lighthouse at Arnholm had?"
LATER = "Which animal did the keeper of the lighthouse at Arnholm have?"


class LongQuestionTest(RealTest):
    def count(self, text):
        return len(json.loads(self.ok("tokenize", "-m", QWEN, "--ids", stdin=text)))

    def text(self):
        """The beginning of a book, of TOKENS tokens but for one in a hundred, with the fact."""
        book = BOOK.read_text()[:80000]
        book = book[:len(book) * TOKENS // self.count(book)]
        middle = book.rindex("\n\n", 0, len(book) // 2)
        return f"{book[:middle]}\n\n{FACT}{book[middle:]}"

    def ask(self, question):
        process = self.start("run", "-m", QWEN, "--chat", "-f", self.file, "-p", question, "--temp",
                             "0", "-n", "40", "--json", "--cache-dir", self.folder / "saved",
                             text=True)
        out, said = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, said)
        return json.loads(out)

    def test_a_fact_in_the_middle(self):
        self.file = self.folder / "book.txt"
        self.file.write_text(self.text())
        first = self.ask(QUESTION)
        self.assertAlmostEqual(first["prompt_tokens"], TOKENS, delta=TOKENS // 50)
        self.assertEqual(first["read_tokens"], first["prompt_tokens"])
        self.assertIn("Bartholomew", first["text"])
        self.assertEqual(first["finish_reason"], "stop")
        # The book is not read again for another question, nor for the same one.
        later = self.ask(LATER)
        self.assertLess(later["read_tokens"], 200)
        self.assertIn("parrot", later["text"])
        again = self.ask(QUESTION)
        self.assertLess(again["read_tokens"], 200)
        self.assertEqual(again["tokens"], first["tokens"])


if __name__ == "__main__":
    main(QWEN)
