"""The page's limits and files: chats that do not fit, that leave as files and come back, and what
settings may be. See page_support.py."""

import json
import pathlib
import unittest

from page_support import PageTest, expect


class FitTest(PageTest):
    def test_an_overlong_chat_can_be_shortened(self):
        self.attach("a.txt", "one")
        self.attach("b.txt", "two")
        self.say("toolong")
        expect(self.answer.locator(".notice p")).to_have_text(
            "This chat does not fit: it has 300,000 tokens, 37,856 more than the 262,144 that the "
            "model can read at a time.")
        self.button("Remove b.txt").click()
        expect(self.page.locator(".place").first).to_have_text("2/2")
        expect(self.button("Remove b.txt")).to_have_count(0)
        self.assertEqual(self.sent(), ['<file name="a.txt">\none\n</file>\n\ntoolong'])
        self.button("Edit the message").click()
        expect(self.page.get_by_role("textbox", name="Edit the message")).to_be_focused()
        self.page.keyboard.press("Escape")
        self.button("Keep beginning and end").click()
        expect(self.answer).to_contain_text("These are a few words.")
        self.wait_until_done()
        self.assertEqual(self.server.requests[-1]["kv"], "sinks:4+1020")
        expect(self.context).to_contain_text("tokens, no limit")
        self.context.click()
        self.button("Keep all of it").click()
        self.ask()
        self.assertNotIn("kv", self.server.requests[-1])

        # Without an attention that forgets, the server says what helps.
        self.server.properties["kv"] = {"default": "dense", "choices": ["dense"]}
        self.page.reload()
        self.say("toolong")
        expect(self.answer.locator(".detail")).to_contain_text("--kv-choice sinks:4+9")
        expect(self.button("Keep beginning and end")).to_have_count(0)

    def test_a_full_context_can_go_on(self):
        self.say("full")
        self.button("Continue, keeping beginning and end").click()
        expect(self.answer).to_contain_text("These are a few words.")
        self.assertEqual(self.server.requests[-1]["kv"], "sinks:4+1020")

    def test_files_say_what_they_take_before_they_are_sent(self):
        self.attach("book.txt", "a line of a book\n" * 50_000)
        expect(self.page.locator(".composer .chip")).to_contain_text("212,500 tokens")
        expect(self.page.locator(".room")).to_have_text(
            "This message: about 212,500 tokens · 49,644 free after it")
        self.assertGreater(len(self.server.counted), 1, "in pieces")
        self.attach("more.txt", "a line of a book\n" * 20_000)
        expect(self.page.locator(".room.over")).to_contain_text(
            "This does not fit: about 297,500 tokens, while 262,144 of the model's 262,144 are "
            "free. Remove a file, or shorten the text, or send it and choose to keep beginning and "
            "end.")
        self.button("Remove more.txt").click()
        expect(self.page.locator(".room")).to_contain_text("49,644 free after it")

    def test_price_of_a_long_message(self):
        self.input.fill("word " * 600)
        room = self.page.locator(".room")
        expect(room).to_contain_text("first word after about 12 s (300 tokens cached)")
        self.assertEqual(len(self.server.planned), 1)
        self.assertEqual(self.server.planned[0]["messages"][-1]["content"], ("word " * 600).strip())
        self.input.fill("short")
        expect(room).to_be_hidden()
        self.input.press("Enter")
        expect(self.answer).to_contain_text("These are a few words.")
        self.assertEqual(len(self.server.planned), 1, "a short message has no price")


class LoadingTest(PageTest):
    def test_percentage_and_then_what_the_model_is(self):
        self.ask("markdown", "The end")  # longer than the window: it is seen all the same
        self.server.loading = [0.42] * 3
        self.page.reload()
        bar = self.page.get_by_role("progressbar", name="Model loaded")
        expect(bar).to_have_attribute("aria-valuenow", "42")
        expect(self.page.get_by_text("The model is being loaded: 42 %")).to_be_in_viewport()
        expect(self.page.get_by_role("heading", name="fake-7b")).to_be_visible()
        expect(bar).to_have_count(0)
        self.server.loading = [0.5]
        self.say("hello")
        expect(self.answer).to_contain_text("The model is being loaded (50 %); the answer follows")
        expect(self.answer).to_contain_text("These are a few words.")
        self.button("About the model").click()
        facts = self.page.locator("#model-facts")
        for fact in ("Parameters7.2 billion", "Stored asQ4_K, F32, Q6_K", "In memory asint8, 7 GiB",
                     "Context262,144 tokens", "Tokens kepteverything (dense)"):
            expect(facts).to_contain_text(fact)


class ModelsTest(PageTest):
    def test_one_of_several_models_is_chosen(self):
        menu = self.page.get_by_role("combobox", name="Model", exact=True)
        expect(self.page.get_by_role("heading", name="fake-7b")).to_be_visible()
        expect(menu).to_have_count(0)
        self.ask()
        self.assertNotIn("model", self.server.requests[-1])

        self.server.properties.update(models=["fake-7b", "a/b:Q4 & c"], loaded=True)
        self.server.others["a/b:Q4 & c"] = {"n_ctx": 1000, "n_ctx_train": 1000, "loaded": False}
        self.page.reload()
        expect(menu).to_have_value("fake-7b")
        menu.select_option("a/b:Q4 & c")
        expect(self.context).to_contain_text("of 1,000 tokens")
        self.server.others["a/b:Q4 & c"] = {"n_ctx": 2000, "loaded": True}
        self.ask()
        self.assertEqual(self.server.requests[-1]["model"], "a/b:Q4 & c")
        expect(self.context).to_contain_text("of 2,000 tokens")  # it was loaded by the request
        self.page.reload()
        expect(menu).to_have_value("a/b:Q4 & c")  # kept
        # A server that no longer has it.
        self.server.others.clear()
        self.server.properties["models"] = ["fake-7b", "other"]
        self.page.reload()
        expect(menu).to_have_value("fake-7b")
        self.ask()
        self.assertEqual(self.server.requests[-1]["model"], "fake-7b")


class SettingLimitsTest(PageTest):
    def test_no_number_leaves_its_range(self):
        self.button("Settings").click()
        for label, typed, taken in (("Temperature", "9", "2"), ("Top p", "-1", "0"),
                                    ("Top k", "2.6", "3"), ("Longest answer", "0", "1")):
            with self.subTest(label):
                field = self.page.get_by_label(label, exact=True)
                field.fill(typed)
                field.blur()
                expect(field).to_have_value(taken)
        self.page.keyboard.press("Escape")
        self.ask()
        request = self.server.requests[-1]
        self.assertEqual([request[name] for name in ("temperature", "top_p", "top_k",
                                                     "max_tokens")], [2, 0, 3, 1])

        # Nor is what was kept and is wrong sent.
        self.page.evaluate("""localStorage.setItem('godwit.settings', JSON.stringify(
            {temperature: -1, top_p: 'x', seed: 1.5, top_k: 5, system: {}, kv: 7}))""")
        self.page.reload()
        self.button("New chat").click()
        self.ask()
        request = self.server.requests[-1]
        self.assertEqual({"temperature", "top_p", "seed", "kv"} & request.keys(), set())
        self.assertEqual(request["top_k"], 5)
        self.assertEqual(self.sent(), ["hello"])
        # And a menu of one choice is none.
        self.server.properties["kv"] = {"default": "dense", "choices": ["dense"]}
        self.page.reload()
        expect(self.page.get_by_role("heading", name="fake-7b")).to_be_visible()
        self.button("Settings").click()
        expect(self.page.get_by_label("Attention")).to_have_count(0)
        expect(self.page.get_by_label("Drafts")).to_be_visible()


class FileTest(PageTest):
    def export(self, way):
        self.button("Export this chat").click()
        with self.page.expect_download() as download:
            self.button(way, self.page.get_by_role("dialog")).click()
        return pathlib.Path(download.value.path()).read_text()

    def load(self, text, name="chat.json"):
        self.page.set_input_files("#import-file", {
            "name": name, "mimeType": "application/json", "buffer": text.encode()})

    def test_out_and_in_again(self):
        self.attach("a.txt", "one")
        self.ask("thoughtful", "Yes.")
        written = self.export("JSON")
        told = '<file name="a.txt">\none\n</file>\n\nthoughtful'
        self.assertEqual(json.loads(written), {
            "title": "thoughtful", "model": "fake-7b",
            "messages": [{"role": "user", "content": told},
                         {"role": "assistant", "content": "Yes."}],
            "thoughts": {"1": "Is it?\n\n<b>It is.</b>"}})
        self.assertIn("## fake-7b\n\nYes.\n", self.export("Markdown"))
        self.load(written)
        expect(self.page.locator(".chat a")).to_have_count(2)
        expect(self.questions.locator(".chip")).to_contain_text("a.txt")
        self.assertEqual(self.export("JSON"), written)
        self.ask()
        self.assertEqual(self.sent(), [told, "Yes.", "hello"])

    def test_an_imported_system_message_is_seen_and_told(self):
        self.load(json.dumps([{"role": "system", "content": "Be brief."},
                              {"role": "user", "content": [{"type": "text", "text": "hi"}]}]))
        self.page.get_by_text("System message of this chat").click()
        expect(self.page.get_by_text("Be brief.")).to_be_visible()
        self.ask()
        self.assertEqual(self.sent(), ["Be brief.", "hi", "hello"])

    def test_a_file_that_is_no_chat_is_refused(self):
        message = {"role": "user", "content": "hi"}
        for text, trouble in {
                "{": "it is not JSON.",
                "[" * 100_000: "it is not JSON.",
                "{}": 'expected an object with a list of "messages".',
                "[]": "it has no messages.",
                "[7]": "message 1 is not an object.",
                json.dumps([message, {"role": "robot", "content": "x"}]):
                    'message 2 has the role "robot", expected "user" or "assistant".',
                json.dumps([message, {"role": "constructor", "content": "x"}]):
                    'message 2 has the role "constructor", expected "user" or "assistant".',
                json.dumps([{**message, "tool_calls": []}]):
                    'message 1 has the field "tool_calls", which this page does not support.',
                json.dumps([{"role": "user", "content": [{"type": "image_url"}]}]):
                    "message 1 has other content than text.",
                json.dumps([message] * 10_001): "it has more than 10,000 messages."}.items():
            with self.subTest(text[:60]):
                self.load(text)
                expect(self.page.locator("#import-trouble")).to_have_text(
                    f"chat.json is not a chat: {trouble}")
        expect(self.page.locator(".chat")).to_have_count(0)

    def test_a_hostile_file_is_text(self):
        harm = "<img src=x onerror='window.harmed = 1'>"
        self.load(json.dumps({"title": harm, "thoughts": {"1": harm}, "messages": [
            {"role": "user", "content": harm},
            {"role": "assistant", "content": f"{harm} ${harm}$ `{harm}`"}]}), name=harm)
        expect(self.answer).to_contain_text("onerror")
        expect(self.page.locator(".chat a")).to_have_text(harm)
        self.assertIsNone(self.page.evaluate("window.harmed ?? null"))
        self.assertEqual(self.page.locator("img").count(), 0)

    def test_search(self):
        self.ask("echo needle in a haystack", "needle")
        self.button("New chat").click()
        self.ask("another matter")
        chats = self.page.locator(".chat a")
        expect(chats).to_have_count(2)
        search = self.page.get_by_label("Search the chats")
        search.fill("said: NEEDLE")
        expect(chats).to_have_count(1)
        expect(chats.locator(".snippet")).to_contain_text("You said: echo needle")
        search.fill("nowhere")
        expect(self.page.get_by_text("No chat contains this text.")).to_be_visible()
        search.press("Escape")
        expect(chats).to_have_count(2)


if __name__ == "__main__":
    unittest.main()
