"""The frames of a chat: the model's template, what it is told, and the plain dialogue without one."""

import json
import unittest

from harness import EXPECTED, TESTS, TINY, CliTest

STORIES = TESTS.parent / "models" / "stories-3m"
STORY = EXPECTED["complete"][0]
GREEDY = ["--temp", "0"]


class TemplateTest(CliTest):
    def tiny_with(self, template):
        model = self.copy_of_tiny()
        if template is None:
            file = model / "tokenizer_config.json"
            config = json.loads(file.read_text())
            del config["chat_template"]
            file.write_text(json.dumps(config))
        else:
            (model / "chat_template.jinja").write_text(template)
        return model

    def test_a_broken_template_stands_in_the_way_of_chats_only(self):
        model = self.tiny_with("{% if %}")
        self.assertEqual(self.ok("run", "-m", model, *GREEDY, "-p", STORY["prompt"]),
                         STORY["new_text"])
        self.assertIn("chat_template.jinja", self.ok("inspect", "-m", model))
        for verb in (["run", "--chat", "-p", "Hello!"], ["chat"]):
            self.assertIn("chat_template.jinja", self.refused(4, *verb, "-m", model))

    def test_variables(self):
        model = self.tiny_with("{{ bos_token ~ text ~ messages[0].content }}")
        text, last = STORY["prompt"][:-1], STORY["prompt"][-1]
        told = ["--chat-template-kwargs", json.dumps({"text": text})]
        self.assertEqual(self.ok("run", "-m", model, *GREEDY, "--chat", "-p", last, *told),
                         STORY["new_text"])
        self.assertEqual(self.ok("chat", "-m", model, *GREEDY, *told, stdin=last + "\n"),
                         STORY["new_text"] + "\n")

    def test_a_message_that_the_template_leaves_out_is_refused(self):
        model = self.tiny_with("{{ bos_token ~ messages[-1].content }}")
        message = self.refused(2, "run", "-m", model, *GREEDY, "--chat", "--system", "Be brief.",
                               "-p", STORY["prompt"])
        self.assertIn('message 1 of the role "system"', message)

    def test_variables_that_make_no_sense(self):
        model = self.tiny_with("{{ messages[0].content }}")
        for wrong in ("5", "{", '{"messages": []}'):
            self.assertIn("--chat-template-kwargs: ",
                          self.refused(2, "chat", "-m", model, "--chat-template-kwargs", wrong))

    def test_another_template(self):
        file = self.folder / "mine.jinja"
        file.write_text("{{ bos_token ~ messages[0].content }}")
        for name in (file, "mine"):
            model = self.tiny_with(None) if name == file else self.folder / "model"
            if name == "mine":
                (model / "additional_chat_templates").mkdir()
                file.rename(model / "additional_chat_templates" / "mine.jinja")
            self.assertEqual(self.ok("run", "-m", model, *GREEDY, "--chat", "--chat-template",
                                     name, "-p", STORY["prompt"]), STORY["new_text"])
        self.assertIn('"mine"', self.refused(2, "chat", "-m", model, "--chat-template", "yours"))

    def test_flags_of_templates_need_a_chat(self):
        for flag, value in (("--chat-template", "x"), ("--chat-template-kwargs", '{"a": 1}')):
            message = self.refused(2, "run", "-m", TINY, "-p", "x", flag, value)
            self.assertEqual(message, f"{flag} is for chat models: it needs --chat")

    def test_plain_dialogue(self):
        model = self.tiny_with(None)
        run = ["run", "-m", model, *GREEDY, "-n", "30", "-r", "\nUser:", "-p"]
        dialogue = "Be brief.\n\nUser: Hello!\nAssistant:"
        first = self.ok(*run, dialogue)
        second = self.ok(*run, f"{dialogue} {first.strip()}\nUser: Who?\nAssistant:")
        result = self.godwit("chat", "-m", model, *GREEDY, "-n", "30", "-sys", "Be brief.",
                             stdin="Hello!\nWho?\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, f"{first}\n{second}\n")
        self.assertRegex(result.stderr, r"\Agodwit: this model has no chat template[^\n]*\n\Z")

    def test_an_answer_of_the_plain_dialogue_ends_at_the_next_user(self):
        # A model that says nothing else, in one token that no text of ours is made of.
        model = self.tiny_with(None)
        file = model / "tokenizer.json"
        tokenizer = json.loads(file.read_text())
        vocab = tokenizer["model"]["vocab"]
        vocab["\u010aUser:"] = token = vocab.pop("\u00ff")
        file.write_text(json.dumps(tokenizer))
        says = ["-m", model, *GREEDY, "-n", "3", "--logit-bias", f"{token}+1000"]
        self.assertEqual(self.ok("run", *says, "-p", "Hello!"), "\nUser:" * 3)
        self.assertEqual(self.ok("chat", *says, stdin="Hello!\n"), "\n")

    def test_run_has_no_plain_dialogue(self):
        message = self.refused(5, "run", "-m", self.tiny_with(None), "--chat", "-p", "Hello!")
        self.assertIn("no chat template", message)

    def test_our_own_model_talks(self):
        asked = "Tell me a story about a brave cat.\n"
        result = self.godwit("chat", "-m", STORIES, *GREEDY, "-n", "20", stdin=asked)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        opening = "Once upon a time, there was a brave cat. Everyone loved the brave cat."
        self.assertEqual(result.stdout, self.ok(
            "run", "-m", STORIES, *GREEDY, "-n", "20", "-p", "<|endoftext|>" + opening) + "\n")


if __name__ == "__main__":
    unittest.main()
