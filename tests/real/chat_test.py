"""Chats with trained models, in the template of each: answers hold what was asked, and end."""

import unittest

from real_models import GEMMA, GEMMA_TEMPLATE, LARGER_QWEN, QWEN, RealTest, main
from serve_test import Server

END_OF_TURN = 106  # of Gemma


def user(text):
    return {"role": "user", "content": text}


def model(text):
    return {"role": "assistant", "content": text}


class ChatTest(RealTest):
    def chat(self, server, *messages, **more):
        """The answer and why it ended."""
        body = server.post("/v1/chat/completions", messages=messages, temperature=0,
                           **{"max_tokens": 120, **more})
        choice = body["choices"][0]
        self.assertEqual(choice["message"]["role"], "assistant")
        return choice["message"]["content"], choice["finish_reason"]

    def asked(self, file, question, *flags, limit=120):
        result = self.result(file, "--chat", "-p", question, "-n", limit, *flags)
        return result["text"], result["finish_reason"]

    def test_qwen(self):
        capital = "What is the capital of France?"
        code = "Write a Python function that adds two numbers. Answer with code only."
        answer, end = self.asked(QWEN, capital)
        self.assertIn("Paris", answer)
        self.assertEqual(end, "stop")
        server = Server(self, model=QWEN)
        self.assertEqual(self.chat(server, user(capital)), (answer, end))
        function, end = self.chat(server, user(code))
        self.assertRegex(function, r"def \w+\(\w+, \w+\):")
        self.assertEqual(end, "stop")
        name, end = self.chat(server, user("My name is Ada, and I live in Oslo."), model("Hello!"),
                              user("In which city do I live?"))
        self.assertIn("Oslo", name)
        self.assertEqual(end, "stop")

    def test_a_larger_qwen(self):
        answer, end = self.asked(LARGER_QWEN, "What is the capital of France?")
        self.assertIn("Paris", answer)
        self.assertEqual(end, "stop")

    def test_gemma(self):
        """It was never taught to chat: it goes on with turns that it sees, and never ends one."""
        template = ["--chat-template", GEMMA_TEMPLATE]
        server = Server(self, *template, model=GEMMA)
        turns = [user("What is the capital of Italy?"), model("Rome"),
                 user("What is the capital of Spain?"), model("Madrid"),
                 user("What is the capital of France?")]
        answer, _ = self.chat(server, *turns, max_tokens=8)
        self.assertTrue(answer.startswith("Paris"), answer)
        # Every answer ends where the model ends its turn.
        at_once = self.chat(server, *turns, max_tokens=8, logit_bias={str(END_OF_TURN): 100})
        self.assertEqual(at_once, ("", "stop"))
        self.assertEqual(self.asked(GEMMA, "Who are you?", *template, limit=12),
                         self.chat(server, user("Who are you?"), max_tokens=12))


if __name__ == "__main__":
    main(QWEN, LARGER_QWEN, GEMMA)
