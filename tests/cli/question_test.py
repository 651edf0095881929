"""A question about files: godwit run --chat -f FILE -p QUESTION, and what else makes one text."""

import json
import os
import unittest

from chat_test import CHAT, READY
from harness import EXPECTED, HANG_S, TINY, CliTest, Terminal

STORY = EXPECTED["complete"][0]
RUN = ["run", "-m", TINY, "--temp", "0", "-n", "4"]
ASK = [*RUN, "--chat"]
INPUT = 2
BIRD = "A godwit is a bird.\n"
SEA = "The sea is wide."
QUESTION = "How far can a godwit fly?"


class QuestionTest(CliTest):
    def setUp(self):
        super().setUp()
        self.bird = self.write("bird.txt", BIRD)
        self.sea = self.write("notes/sea.md", SEA)

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def tokens(self, text):
        return len(json.loads(self.ok("tokenize", "-m", TINY, "--ids", "--no-bos", "-p", text)))

    def result(self, *arguments, **options):
        return json.loads(self.ok(*arguments, "--json", **options))

    def same_prompt(self, ours, plain, **options):
        """Whether the model is given what it is given by `plain`."""
        keys = ("tokens", "prompt_tokens", "logprobs")
        ours = self.result(*ours, "--logprobs", "3", **options)
        plain = self.result(*plain, "--logprobs", "3")
        self.assertEqual(*({key: result[key] for key in keys} for result in (ours, plain)))

    def file(self, name, text):
        return f'<file name="{name}">\n{text}</file>\n\n'


class RunTest(QuestionTest):
    def test_files_stand_before_the_question_with_their_names(self):
        message = self.file(self.bird, BIRD) + self.file(self.sea, SEA + "\n") + QUESTION
        self.same_prompt([*ASK, "-f", self.bird, "-f", self.sea, "-p", QUESTION],
                         [*ASK, "-p", message])
        # As a shell writes -f *.
        self.same_prompt([*ASK, "-f", self.bird, self.sea, "-p", QUESTION], [*ASK, "-p", message])

    def test_files_as_passages(self):
        long = self.write("long.txt", BIRD * 30)
        ask = [*ASK, "--passages", "-p", QUESTION, "--cache-dir", self.folder / "cache"]
        first = self.result(*ask, "-f", long, self.sea)
        facts = first["passages"]
        self.assertLess(facts["cached_tokens"], 64)  # the names of both files begin alike
        self.assertEqual(facts["reused_tokens"] + facts["anew_tokens"],
                         self.tokens(self.file(self.sea, SEA + "\n")))
        self.assertEqual(facts["anew_tokens"], min(32, self.tokens(self.file(self.sea, SEA + "\n"))))
        # In another order the long file was read before.
        turned = self.result(*ask, "-f", self.sea, long)
        self.assertGreaterEqual(turned["passages"]["cached_tokens"], 64)
        self.assertGreater(turned["passages"]["reused_tokens"], 64)
        again = self.result(*ask, "-f", self.sea, long)
        self.assertEqual(again["tokens"], turned["tokens"])
        self.assertIn("is not exactly the model's own",
                      self.godwit(*ask, "-f", self.sea, long).stderr)
        # One passage is a prompt like any other, and so are those that are read anew whole.
        question = ["-p", QUESTION]
        for files, flags in ((["-f", long], []), (["-f", self.sea, long], ["--read-anew", "9999"])):
            passages = self.result(*ASK, *files, *question, "--passages", *flags)
            self.assertEqual(passages["passages"]["reused_tokens"], 0)
            self.assertEqual(passages["tokens"], self.result(*ASK, *files, *question)["tokens"])

    def test_passages_are_read_by_a_prefill(self):
        long = self.write("long.txt", BIRD * 30)
        ask = [*ASK, "-p", QUESTION, "-f", self.sea, long, "--prefill", "star:block=64,anchor=16"]
        some = self.result(*ask, "--passages")
        self.assertEqual(some["passages"]["exact"], False)
        self.assertGreater(some["kv"]["context_tokens"], 64)
        anew = self.result(*ask, "--passages", "--read-anew", "9999")
        self.assertEqual(anew["passages"]["exact"], True)
        self.assertEqual(anew["tokens"], self.result(*ask)["tokens"])
        self.assertIn("(tail)", self.refused(5, *ask[:-1], "star:block=64,anchor=16,tail=9", "--passages",
                                             "-q"))

    def test_passages_are_refused_where_they_are_none(self):
        self.assertIn("give both", self.refused(INPUT, *ASK, "--passages", "-p", QUESTION))
        self.assertIn("--passages", self.refused(INPUT, *RUN, "--passages", "-f", self.sea))
        self.assertIn("--passages", self.refused(
            INPUT, *ASK, "--passages", "-f", self.sea, "-p", QUESTION, "--samples", "2"))

    def test_the_pipe_is_one_of_them(self):
        piped = self.file("standard input", BIRD)
        self.same_prompt([*ASK, "-p", QUESTION], [*ASK, "-p", piped + QUESTION], stdin=BIRD)
        both = self.file(self.sea, SEA + "\n") + piped + QUESTION
        self.same_prompt([*ASK, "-f", self.sea, "-p", QUESTION], [*ASK, "-p", both], stdin=BIRD)
        first = piped + self.file(self.sea, SEA + "\n") + QUESTION
        self.same_prompt([*ASK, "-f", "-", self.sea, "-p", QUESTION], [*ASK, "-p", first], stdin=BIRD)
        self.assertIn("named twice", self.refused(2, *ASK, "-f", "-", "-f", "-", stdin=BIRD))

    def test_the_file_of_a_loop_is_left_to_it(self):
        """while read -r line; do godwit run -p "$line"; done < FILE"""
        loop = self.write("loop", f"{QUESTION}\n{BIRD}")
        with open(loop) as stdin:
            os.lseek(stdin.fileno(), len(QUESTION) + 1, os.SEEK_SET)

            def run(*flags):
                process = self.start(*ASK, *flags, "-p", QUESTION, stdin=stdin, text=True)
                return process.communicate(timeout=HANG_S)

            answer, said = run()
            self.assertEqual(answer, self.ok(*ASK, "-p", QUESTION))
            self.assertIn("ignoring its rest; -f - reads it", said)
            self.assertEqual(os.lseek(stdin.fileno(), 0, os.SEEK_CUR), len(QUESTION) + 1)
            self.assertEqual(run("-f", "-")[0], self.ok(*ASK, "-p", QUESTION, stdin=BIRD))
            self.assertEqual(run()[1], "")  # nothing is left of it

    def test_query_tokens_without_a_use_are_refused(self):
        for command in (ASK, ["eval", "passkey", "-m", TINY], ["chat", "-m", TINY]):
            self.assertIn("--query-tokens has no effect with --kv sinks:4+8",
                          self.refused(2, *command, "--query-tokens", "5", "--kv", "sinks:4+8"))
        self.ok(*ASK, "-p", QUESTION, "--query-tokens", "5", "--kv", "blocks")

    def test_without_a_question_a_file_is_the_message(self):
        self.same_prompt([*ASK, "-f", self.bird], [*ASK, "-p", BIRD])
        self.same_prompt(ASK, [*ASK, "-p", BIRD], stdin=BIRD)

    def test_no_standard_input(self):
        for stdin in ("empty", "closed"):
            options = {"preexec_fn": lambda: os.close(0)} if stdin == "closed" else {}
            with self.subTest(stdin=stdin):
                self.same_prompt([*ASK, "-p", QUESTION], [*ASK, "-p", QUESTION], **options)

    def test_without_chat_they_are_one_text(self):
        self.assertEqual(self.ok("run", "-m", TINY, "--temp", "0", "-f",
                                 self.write("begin", STORY["prompt"][:5]), "-p",
                                 STORY["prompt"][5:]), STORY["new_text"])
        self.same_prompt([*RUN, "-f", self.bird, "-f", self.sea], [*RUN, "-p", BIRD + SEA])
        self.same_prompt([*RUN, "-f", self.sea, "-p", " So"], [*RUN, "-p", SEA + BIRD + " So"],
                         stdin=BIRD)

    def test_other_verbs_join_files_too(self):
        joined = self.ok("tokenize", "-m", TINY, "-p", BIRD + SEA)
        self.assertEqual(self.ok("tokenize", "-m", TINY, "-f", self.bird, "-f", self.sea), joined)
        self.assertEqual(self.ok("tokenize", "-m", TINY, "-f", self.bird, self.sea), joined)
        perplexity = ["perplexity", "-m", TINY, "--json", "-f", self.bird]
        scored = lambda *files: json.loads(self.ok(*perplexity, *files))["tokens"]
        self.assertEqual(scored(self.sea), scored("-f", self.sea))
        self.assertGreater(scored(self.sea), scored())

    def test_the_question_is_known(self):
        def question_tokens(*arguments, **options):
            kv = self.result(*arguments, "--prefill", "window:8", **options)
            return kv["prompt_tokens"] - kv["kv"]["context_tokens"]

        long = self.write("long.txt", f"{QUESTION} {BIRD}" * 12)
        counts = {question_tokens(*ASK, "-f", file, "-p", f"{QUESTION}\n")
                  for file in (self.bird, long)}
        count, = counts
        # What frames the end of a message, and the beginning of an answer.
        frame = question_tokens(*ASK, "-f", self.bird, "-p", "Who?") - self.tokens("Who?")
        self.assertEqual(count, self.tokens(QUESTION) + frame)
        self.assertLess(frame, 12)
        self.assertEqual(question_tokens(*ASK, "-p", QUESTION, stdin=BIRD), count)
        self.assertEqual(question_tokens(*ASK, "-f", self.bird, "-p", QUESTION,
                                         "--query-tokens", "3"), 3)
        self.assertEqual(question_tokens(*RUN, "-f", self.bird, "-p", QUESTION),
                         self.tokens(QUESTION))
        # The last of a text's lines, whatever ends it.
        self.assertEqual(question_tokens(*RUN, "-p", QUESTION), 1)
        for text in (BIRD + QUESTION, f"{BIRD}{QUESTION}\n", f"{BIRD}\n{QUESTION}\r\n\n"):
            ends = self.tokens(text) - self.tokens(text.rstrip("\r\n"))
            self.assertIn(question_tokens(*RUN, "-p", text) - self.tokens(QUESTION), (0, ends))

    def test_folders_and_patterns(self):
        self.write("notes/b.txt", BIRD)
        self.write("notes/deep/c.txt", "Deep.\n")
        self.write("notes/.hidden", "Hidden.\n")
        notes = self.folder / "notes"
        expected = "".join((self.file(notes / "b.txt", BIRD),
                            self.file(notes / "deep" / "c.txt", "Deep.\n"),
                            self.file(notes / "sea.md", SEA + "\n"), QUESTION))
        self.same_prompt([*ASK, "-f", notes, "-p", QUESTION], [*ASK, "-p", expected])
        pattern = self.file(notes / "b.txt", BIRD) + QUESTION
        self.same_prompt([*ASK, "-f", notes / "*.txt", "-p", QUESTION], [*ASK, "-p", pattern])
        strange = self.write("notes/[x].txt", "Strange.\n")
        self.same_prompt([*ASK, "-f", strange, "-p", QUESTION],
                         [*ASK, "-p", self.file(strange, "Strange.\n") + QUESTION])
        self.assertIn("no file matches", self.refused(3, *ASK, "-f", notes / "*.pdf"))
        (self.folder / "empty").mkdir()
        self.assertIn("expected a folder with text files", self.refused(3, *ASK, "-f", self.folder / "empty"))

    def test_binary_files_of_a_folder_are_reported(self):
        self.write("notes/a.png", b"\x89PNG\0")
        self.write("notes/latin1.txt", b"caf\xe9\n")
        notes = self.folder / "notes"
        for quiet in ([], ["-q"]):
            result = self.godwit(*ASK, "-f", notes, "-p", QUESTION, *quiet)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"godwit: {notes}: left out, because it is not UTF-8 text: a.png and latin1.txt\n",
                          result.stderr)
        lossy = self.file(notes / "latin1.txt", "caf\ufffd\n") + self.file(self.sea, SEA + "\n")
        self.same_prompt([*ASK, "-f", notes, "--lossy", "-p", QUESTION],
                         [*ASK, "-p", lossy + QUESTION])
        # Of a file that was named, nothing is left out.
        self.assertIn("not UTF-8", self.refused(2, *ASK, "-f", notes / "latin1.txt", "-p", QUESTION))

    def test_tokens_are_counted_before_they_are_read(self):
        result = self.godwit(*ASK, "-f", self.bird, "-p", QUESTION, stdin=SEA)
        self.assertEqual(result.stderr, f"godwit: {self.bird}: {self.tokens(BIRD)} tokens, "
                         f"standard input: {self.tokens(SEA)} tokens, "
                         f"-p: {self.tokens(QUESTION)} tokens; together "
                         f"{self.tokens(BIRD) + self.tokens(SEA) + self.tokens(QUESTION)} tokens\n")
        self.assertEqual(self.godwit(*ASK, "-f", self.bird).stderr, "")
        self.assertEqual(self.godwit(*ASK, "-f", self.bird, "-p", QUESTION, "-q").stderr, "")
        long = self.write("long.txt", "bird " * 2000)
        result = self.godwit(*ASK, "-f", self.bird, "-f", long, "-p", QUESTION)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        said, refusal = result.stderr.splitlines()
        self.assertIn(f"{long}: {self.tokens('bird ' * 2000)} tokens", said)
        self.assertRegex(refusal, r"has \d+ tokens and the context holds 1024 .*--kv sinks")

    def test_a_model_with_a_template_says_so(self):
        said = "This model has a chat template"
        question = [*RUN, "-f", self.bird, "-p", QUESTION]
        self.assertIn(said, self.godwit(*question).stderr)
        for flags in (["--chat"], ["--chat=0"], ["-q"]):
            self.assertNotIn(said, self.godwit(*question, *flags).stderr)
        self.assertEqual(self.godwit(*RUN, "-p", "Once").stderr, "")
        terminal = Terminal(self, *RUN, "-p", "Once", columns=200)
        self.assertEqual(terminal.finish(), 0)
        self.assertEqual(terminal.seen.count(said), 1)
        terminal = Terminal(self, *RUN, "-p", "Once", "--chat=0", columns=200)
        self.assertEqual(terminal.finish(), 0)
        self.assertNotIn(said, terminal.seen)

    def test_a_pipe_that_stays_open_is_said(self):
        reading, writing = os.pipe()
        process = self.start(*ASK, "-p", QUESTION, stdin=reading)
        os.close(reading)
        self.assertIn(b"waiting for the end of standard input", process.stderr.readline())
        os.close(writing)
        self.assertEqual(process.wait(), 0)


class ChatTest(QuestionTest):
    def second(self, *lines, flags=()):
        """Of a conversation, what /stats says at the end, and the answers."""
        result = self.godwit(*CHAT, *flags, stdin="\n".join([*lines, "/stats"]) + "\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def prompt_tokens(self, result):
        return int(result.stderr.split("prompt  ")[-1].split()[0])

    def test_files_stand_before_the_first_question(self):
        message = self.file(self.bird, BIRD) + QUESTION
        expected = self.second('"""' + message + '"""')
        for ours in (self.second(QUESTION, flags=["-f", self.bird]),
                     self.second(f"/read {self.bird}", QUESTION)):
            self.assertEqual(ours.stdout, expected.stdout)
            self.assertEqual(self.prompt_tokens(ours), self.prompt_tokens(expected))
            self.assertIn(f"godwit: {self.bird}: {self.tokens(BIRD)} tokens\n", ours.stderr)

    def test_the_question_is_known(self):
        # With a window of one token the answer depends on what is question.
        told = ["-m", TINY, "--prefill", "window:1", "-f", "bird.txt", "--temp", "2", "-s", "3",
                "-n", "12"]
        run = lambda *flags: self.ok("run", "--chat", *told, "-p", QUESTION, *flags, cwd=self.folder)
        self.assertEqual(self.ok("chat", *told, stdin=QUESTION, cwd=self.folder), run() + "\n")
        for other in ("1", "60"):  # the last token, all of the message
            self.assertNotEqual(run(), run("--query-tokens", other))

    def test_a_question_that_is_taken_back_leaves_its_files(self):
        expected = self.second('"""' + self.file(self.bird, BIRD) + QUESTION + '"""')
        again = self.second("Who?", "/undo", QUESTION, flags=["-f", self.bird])
        self.assertEqual(again.stdout.splitlines()[-1:], expected.stdout.splitlines()[-1:])
        self.assertEqual(self.prompt_tokens(again), self.prompt_tokens(expected))
        without = self.second("Who?", "/undo", "/undo", QUESTION, flags=["-f", self.bird])
        self.assertEqual(self.prompt_tokens(without), self.prompt_tokens(self.second(QUESTION)))
        cleared = self.second("/clear", QUESTION, flags=["-f", self.bird])
        self.assertEqual(self.prompt_tokens(cleared), self.prompt_tokens(self.second(QUESTION)))

    def test_overlong_texts_are_refused_with_their_numbers(self):
        long = self.write("long.txt", "bird " * 2000)
        tokens = self.tokens("bird " * 2000)
        message = self.refused(2, *CHAT, "-f", long, stdin=QUESTION)
        self.assertIn(f"the text of {long} has {tokens} tokens, which leaves no space for an answer in "
                      "the context of 1024; use a part of it or /kv sinks:4+1020", message)
        self.assertIn("more than 8192 tokens",
                      self.refused(2, *CHAT, "-f", self.write("huge", "bird " * 20000)))
        # Which of several is the long one is said, too.
        result = self.godwit(*CHAT, "-f", self.bird, long, stdin=QUESTION)
        self.assertIn(f"{self.bird}: {self.tokens(BIRD)} tokens, {long}: {tokens} tokens; together",
                      result.stderr)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.ok(*CHAT, "-n", "4", "-f", long, "--kv", "sinks:4+60", stdin=QUESTION)

    def test_files_that_cannot_be_read(self):
        self.assertIn("No such file", self.refused(3, *CHAT, "-f", self.folder / "missing"))
        self.assertIn("No such file", self.refused(3, *CHAT, stdin=f"/read {self.folder}/missing\n"))
        self.assertIn("a file name is missing: /read FILE", self.refused(2, *CHAT, stdin="/read\n"))
        self.assertIn("is the conversation", self.refused(2, *CHAT, "-f", "-"))
        self.assertIn("is the conversation", self.refused(2, *CHAT, stdin="/read -\n"))

    def test_at_a_terminal(self):
        terminal = Terminal(self, *CHAT, "-f", self.bird, columns=200)
        shown = terminal.expect(READY)
        self.assertRegex(shown, rf"\(.*bird.txt: {self.tokens(BIRD)} tokens; before the next "
                                r"question, which then has \d+ of 1024 tokens left\)")

        def say(line):
            terminal.type(line + "\r")
            return terminal.expect(READY)

        self.assertIn("No such file", say(f"/read {self.folder}/missing"))
        say(QUESTION)
        self.assertIn("bird.txt before the next one)", say("/undo"))
        self.assertIn("before the next question; /undo removes them)", say("/read"))
        self.assertIn("bird.txt removed)", say("/undo"))
        self.assertIn("(there is no question to take back)", say("/undo"))
        self.assertIn("sea.md: ", say(f"/read {self.folder}/notes"))
        self.assertIn("without", say("/clear"))


if __name__ == "__main__":
    unittest.main()
