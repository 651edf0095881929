"""The page in a browser, against a server that plays by script (page_support.py)."""

import re
import unittest

from fake_server import FakeServer
from page_support import PageTest, expect

BLOCKED_STORAGE = """
    Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };
"""


class AnswerTest(PageTest):
    def test_streams(self):
        self.say("endless")
        expect(self.answer).to_contain_text("word1 word2")
        expect(self.answer).to_contain_text(re.compile(r"about [\d.]+ tokens/s"))
        self.server.go_on.set()

    def test_markdown(self):
        self.ask("markdown", "The end & nothing <more>.")
        for selector, text in {
                "h1": "A first heading", "h2 code": "code", "em": "italic", "del": "gone",
                "em strong": "both", "ol > li > ul > li > ul > li": "nested twice, with a link",
                "blockquote blockquote": "and a quote within.", "td.end": "1.25",
                "td code": "a | b", "pre": "def three():\n\treturn 3"}.items():
            with self.subTest(selector):
                self.assertEqual(self.answer.locator(selector).first.text_content(), text)
        expect(self.answer).to_contain_text("snake_case_word and2 * 3 * 4 stay")
        hrefs = self.answer.locator("a").evaluate_all("links => links.map(link => link.href)")
        self.assertEqual(hrefs, ["https://example.org/a_(b)?q=1", "https://example.org/auto",
                                 "https://example.org/bare", "mailto:a@example.org",
                                 "https://example.org/"])

    def test_thoughts_are_folded(self):
        self.ask("thoughtful", "Yes.")
        thought = self.answer.locator(".thought")
        expect(thought.locator(".plain")).to_be_hidden()
        thought.get_by_text("Thoughts", exact=True).click()
        expect(thought.locator(".plain")).to_be_visible()
        self.assertEqual(thought.locator(".plain").text_content(), "Is it?\n\n<b>It is.</b>")
        self.page.reload()
        expect(self.answer.locator(".thought .plain")).to_contain_text("It is.")
        self.ask()
        self.assertEqual(self.server.requests[-1]["messages"][1],
                         {"role": "assistant", "content": "Yes.",
                          "reasoning_content": "Is it?\n\n<b>It is.</b>"})

    def test_streamed_is_as_written_at_once(self):
        self.ask("markdown", "The end & nothing <more>.")
        streamed = self.answer.locator(".markdown").inner_html()
        self.page.reload()
        expect(self.answer).to_contain_text("The end")
        self.assertEqual(self.answer.locator(".markdown").inner_html(), streamed)

    def test_hostile_text_is_text(self):
        self.ask("hostile", "fourth")
        self.assertIsNone(self.page.evaluate("window.harmed ?? null"))
        expect(self.answer).to_contain_text('<script>window.harmed = 1</script> <img src=x')
        self.assertEqual(self.answer.locator("script, img, [onerror], [onclick]").count(), 0)
        links = self.answer.locator("a").evaluate_all("all => all.map(it => [it.href, it.rel])")
        self.assertEqual(links, [["https://elsewhere.example/pixel.png", "noopener noreferrer"],
                                 ["https://safe.example/?a=1&b=%222%22", "noopener noreferrer"]])
        self.assertEqual(self.answer.locator("pre").text_content(),
                         "</code></pre><script>window.harmed = 7</script>")

    def test_nothing_is_too_much(self):
        for text in ("'['.repeat(1e5)", "'*a '.repeat(1e5)", "'`a'.repeat(1e5)", "'> '.repeat(1e5)",
                     "'- '.repeat(1e5) + 'a'", "'~~a'.repeat(1e5)", "'|a'.repeat(1e5) + '\\n' + "
                     "'|-'.repeat(1e5)", "'> a\\n'.repeat(1e5)", "'- a\\n'.repeat(1e5)"):
            with self.subTest(text):
                self.assertGreater(self.page.evaluate(f"""async () => {{
                    const {{ markdownNodes }} = await import('/page/markdown.js');
                    return markdownNodes({text}).length;
                }}"""), 0)

    def test_stays_where_the_reader_is(self):
        self.ask("long", "Paragraph 3999 ")
        scroller = self.page.locator("#scroller")
        expect(self.answer.locator(".stats")).to_be_in_viewport()
        scroller.evaluate("it => it.scrollTop = 1000")
        expect(self.button("To the end of the chat")).to_be_visible()
        self.assertEqual(scroller.evaluate("it => it.scrollTop"), 1000)

    def test_speed(self):
        self.ask()
        expect(self.answer.locator(".stats")).to_have_text(re.compile(
            r"5 tokens · 10 tokens/s · first after .* · prompt: 20 tokens, 4 of them cached, "
            r"the rest read at 160 tokens/s"))

    def test_stop(self):
        self.say("endless")
        expect(self.answer).to_contain_text("word1")
        self.button("Stop").click()
        expect(self.answer).to_contain_text("You stopped the answer.")
        self.assertTrue(self.server.gone.wait(10), "the request goes on")

    def test_goes_on_after_a_cut(self):
        self.server.kept["chatcmpl-1"] = [" that", " goes on."]
        self.say("cut")
        expect(self.answer).to_contain_text("The half of a sentence")
        self.server.later = 1  # what the server answers first
        self.server.go_on.set()
        expect(self.answer).to_contain_text("The half of a sentence that goes on.")
        self.wait_until_done()
        self.assertEqual(self.answer.locator(".markdown").text_content(),
                         "The half of a sentence that goes on.")
        self.assertEqual(self.server.resumed, ["chatcmpl-1:2", "chatcmpl-1:2"])
        expect(self.answer.locator(".notice")).to_have_count(0)
        expect(self.answer.locator(".stats")).to_contain_text("tokens")

    def test_goes_on_with_the_server_that_comes_back(self):
        self.say("cut")
        expect(self.answer).to_contain_text("The half of a sentence")
        self.server.close()
        expect(self.answer).to_contain_text("Looking for the rest of the answer. Trying again in")
        self.server = FakeServer(self.server.http.server_port)
        self.addCleanup(self.server.close)
        self.server.kept["chatcmpl-1"] = [" that", " goes on."]
        expect(self.answer).to_contain_text("The half of a sentence that goes on.", timeout=20_000)
        self.wait_until_done()
        self.assertEqual(self.server.resumed, ["chatcmpl-1:2"])
        self.assertEqual(self.server.requests, [])

    def test_a_server_that_keeps_no_answers(self):
        self.say("cut")
        self.server.go_on.set()
        expect(self.answer).to_contain_text(
            "The answer broke off: The server closed the connection too early.")
        self.assertEqual(len(self.server.resumed), 1)
        expect(self.button("Continue")).to_be_visible()

    def test_stop_ends_an_answer_that_is_kept(self):
        self.say("cut")
        expect(self.answer).to_contain_text("The half of a sentence")
        with self.page.expect_response("**/cancel"):
            self.button("Stop").click()
        expect(self.answer).to_contain_text("You stopped the answer.")
        self.assertEqual(self.server.cancelled, ["chatcmpl-1"])

    def test_progress(self):
        self.say("read")
        bar = self.answer.get_by_role("progressbar", name="Prompt read")
        expect(bar).to_have_attribute("aria-valuenow", "41")
        expect(self.answer).to_contain_text("Reading the prompt: 82,000 of 200,000 tokens · "
                                            "2,561 tokens/s · about 46 s left · 12,000 cached")
        expect(self.page.locator("#announcer")).to_contain_text("Reading the prompt,")
        expect(self.context).to_contain_text("Context: 200,000 of 262,144 tokens (76 %)")
        self.server.go_on.set()
        expect(self.answer).to_contain_text("It is read.")
        expect(bar).to_have_count(0)
        expect(self.page.locator("#announcer")).to_have_text("Answer finished.")

    def test_context_with_dropped_spans(self):
        self.ask("dropped", "Some of it is forgotten.")
        expect(self.context).to_have_text("Context: 120,005 of 262,144 tokens (45 %) · "
                                          "20,000 cached · 60,000 forgotten")
        self.context.click()
        expect(self.page.locator(".context-list")).to_contain_text(
            "4 to 20,003, 50,000 to 79,999, 90,000 to 99,999.")
        holes = self.page.locator(".large .dropped")
        self.assertEqual(holes.get_attribute("d").count("M"), 3)


class BranchTest(PageTest):
    def test_edit(self):
        self.ask("echo first", "You said: echo first")
        self.ask("echo second", "You said: echo second")
        self.button("Edit", self.questions.first).click()
        field = self.page.get_by_role("textbox", name="Edit the message")
        field.fill("echo other")
        field.press("Enter")
        expect(self.answer).to_contain_text("You said: echo other")
        self.wait_until_done()
        self.assertEqual(self.sent(), ["echo other"])
        expect(self.questions).to_have_count(1)
        self.button("Previous branch").click()
        expect(self.questions).to_have_count(2)
        expect(self.answer).to_contain_text("You said: echo second")
        expect(self.page.locator(".place")).to_have_text("1/2")
        expect(self.button("Next branch")).to_be_focused()

    def test_edit_can_be_left(self):
        self.ask("echo first", "You said: echo first")
        self.button("Edit").click()
        self.page.keyboard.press("Escape")
        expect(self.questions).to_contain_text("echo first")
        expect(self.button("Edit")).to_be_focused()

    def test_answer_again(self):
        self.ask()
        self.button("Answer again").click()
        expect(self.answer.locator(".place")).to_have_text("2/2")
        self.wait_until_done()
        self.ask("echo more", "You said: echo more")
        self.assertEqual(self.sent(), ["hello", "These are a few words. ", "echo more"])


class SettingsTest(PageTest):
    def test_only_what_is_set_is_sent(self):
        self.ask()
        self.assertEqual(self.server.requests[-1], {
            "messages": [{"role": "user", "content": "hello"}], "stream": True,
            "return_progress": True, "stream_options": {"include_usage": True}})
        self.button("Settings").click()
        self.page.get_by_label("System message").fill("Be brief.")
        self.page.get_by_label("Attention").select_option("=sinks:4+1020")
        self.page.get_by_label("Drafts").select_option("=ngram")
        self.page.get_by_label("Temperature").fill("0")
        self.page.get_by_label("Seed").fill("7")
        self.button("Close the settings").click()
        self.page.reload()
        self.button("Answer again").click()
        expect(self.answer.locator(".place")).to_have_text("2/2")
        self.wait_until_done()
        request = self.server.requests[-1]
        self.assertEqual(request["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertEqual({key: request[key] for key in request.keys() - {
            "messages", "stream", "return_progress", "stream_options"}},
            {"kv": "sinks:4+1020", "draft": "ngram", "temperature": 0, "seed": 7})

    def test_settings_that_are_not_offered_are_not_sent(self):
        self.button("Settings").click()
        self.page.get_by_label("Attention").select_option("=blocks")
        self.server.properties["kv"] = {"default": "dense", "choices": ["dense"]}
        self.page.reload()
        self.ask()
        self.assertNotIn("kv", self.server.requests[-1])

    def test_defaults(self):
        self.button("Settings").click()
        expect(self.page.get_by_label("Min p")).to_have_attribute("placeholder", "default: 0.05")
        self.page.get_by_label("Min p").fill("0.2")
        self.button("Reset to the model's defaults").click()
        expect(self.page.get_by_label("Min p")).to_have_value("")
        self.page.keyboard.press("Escape")
        self.ask()
        self.assertNotIn("min_p", self.server.requests[-1])

    def test_theme_is_remembered(self):
        self.button("Use dark colors").click()
        self.page.reload()
        expect(self.button("Use light colors")).to_be_visible()
        expect(self.page.locator("body")).to_have_css("background-color", "rgb(27, 26, 24)")

    def test_no_template(self):
        self.server.properties["chat_template"] = False
        self.page.reload()
        expect(self.page.get_by_text("This model has no chat template")).to_be_visible()


class AttachmentTest(PageTest):
    BOOK = "a line of a book\n" * 125_000  # 2 MB

    def test_is_sent_and_not_shown(self):
        self.attach("book.txt", self.BOOK)
        expect(self.page.locator(".composer .chip")).to_contain_text("book.txt2 MiB")
        self.ask("what is it", "These are a few words.")
        self.assertEqual(self.sent(), [f'<file name="book.txt">\n{self.BOOK}</file>\n\nwhat is it'])
        expect(self.questions.locator(".chip")).to_contain_text("book.txt")
        expect(self.questions).not_to_contain_text("a line of a book")

    def test_can_be_removed(self):
        self.attach("a.txt", "1")
        self.button("Remove a.txt").click()
        self.ask()
        self.assertEqual(self.sent(), ["hello"])

    def test_small_ones_are_kept(self):
        self.attach("a.txt", "one")
        self.ask()
        self.page.reload()
        self.ask("again")
        self.assertIn("one", self.sent()[0])

    def test_large_files_are_dropped_with_a_notice(self):
        self.attach("book.txt", self.BOOK)
        self.ask()
        self.page.reload()
        expect(self.questions).to_contain_text("book.txt is gone")
        asked = len(self.server.requests)
        self.say("and now")
        expect(self.answer).to_contain_text("No longer available: book.txt")
        self.assertEqual(len(self.server.requests), asked)
        self.button("Answer without").click()
        expect(self.answer).to_contain_text("These are a few words.")

    def test_a_binary_file_is_refused(self):
        self.attach("image.bin", "\0\1\2")
        expect(self.page.locator(".composer .trouble")).to_have_text(
            "image.bin is not a text file.")
        expect(self.button("Send")).to_be_disabled()

    def test_drop(self):
        transfer = self.page.evaluate_handle("""() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(['dropped text'], 'dropped.txt'));
            return transfer;
        }""")
        self.page.dispatch_event("body", "drop", {"dataTransfer": transfer})
        expect(self.page.locator(".composer .chip")).to_contain_text("dropped.txt")


class ErrorTest(PageTest):
    def test_sentences(self):
        for script, sentence in {
                "refused": "The prompt has 300,000 tokens, the context 262,144.",
                "failed": "The disk is full.",
                "broken": "The answer broke off: The server closed the connection too early.",
                "midway": "The answer broke off: no memory for it.",
                "length": "The answer stopped because the context is full.",
                "timeout": "The answer stopped because its time limit was reached.",
                "cancelled": "The server cancelled the answer."}.items():
            with self.subTest(script):
                self.say(script)
                expect(self.answer.locator(".notice p")).to_have_text(sentence)
                self.wait_until_done()
                expect(self.answer.locator(".notice")).to_be_in_viewport(ratio=1)

    def test_most_tokens(self):
        self.button("Settings").click()
        self.page.get_by_label("Longest answer").fill("1")
        self.page.keyboard.press("Escape")
        self.say("length")
        expect(self.answer).to_contain_text(
            "The answer stopped at the limit of the settings (1 token).")

    def test_a_cut_answer_is_kept(self):
        self.say("broken")
        self.button("Continue").click()
        expect(self.answer).to_contain_text("These are a few words.")
        self.assertEqual(self.sent()[:2], ["broken", "The half of"])

    def test_try_again_is_in_the_same_place(self):
        self.server.busy = 1
        self.say("hello")
        expect(self.answer).to_contain_text("The server is busy")
        expect(self.button("Try again in 1 s")).to_be_disabled()
        self.button("Try again").click()
        expect(self.answer).to_contain_text("These are a few words.")
        expect(self.page.locator(".place")).to_have_count(0)

    def test_while_the_model_loads(self):
        self.server.later = 2
        self.say("hello")
        expect(self.answer).to_contain_text(
            "The server is not ready: the model is being loaded. Trying again in 1 s.")
        expect(self.answer).to_contain_text("These are a few words.")
        self.assertEqual(len(self.server.requests), 3)

    def test_stopped_while_the_model_loads(self):
        self.server.later = 1000
        self.say("hello")
        expect(self.answer).to_contain_text("The server is not ready")
        self.page.keyboard.press("Escape")
        expect(self.answer).to_contain_text("You stopped before the first word.")

    def test_key(self):
        self.server.key = "secret"
        self.page.reload()
        self.page.get_by_label("Key", exact=True).fill("secret")
        self.button("Use this key").click()
        expect(self.page.get_by_role("heading", name="fake-7b")).to_be_visible()
        self.ask()
        self.assertNotIn("secret", self.page.evaluate("JSON.stringify(localStorage)"))

    def test_key_of_an_answer(self):
        expect(self.page.get_by_role("heading", name="fake-7b")).to_be_visible()
        self.server.key = "secret"
        self.say("hello")
        self.button("Cancel", self.page.get_by_role("dialog")).click()
        expect(self.answer).to_contain_text("The server requires an API key.")
        self.button("Enter the key").click()
        self.page.get_by_label("Key", exact=True).fill("secret")
        self.page.keyboard.press("Enter")
        expect(self.answer).to_contain_text("These are a few words.")

    def test_unreachable(self):
        expect(self.page.get_by_role("heading", name="fake-7b")).to_be_visible()
        self.page.context.set_offline(True)
        self.say("hello")
        expect(self.answer).to_contain_text("The server cannot be reached: is it running?")
        self.page.context.set_offline(False)
        self.button("Try again").click()
        expect(self.answer).to_contain_text("These are a few words.")


class ChatsTest(PageTest):
    @property
    def chats(self):
        return self.page.locator(".chat a")

    def test_reload(self):
        self.ask("echo first", "You said: echo first")
        self.page.reload()
        expect(self.answer).to_contain_text("You said: echo first")
        self.ask("echo second", "You said: echo second")
        self.assertEqual(self.sent(), ["echo first", "You said: echo first", "echo second"])

    def test_reload_in_the_middle(self):
        self.say("endless")
        expect(self.answer).to_contain_text("word1")
        self.page.reload()
        expect(self.answer).to_contain_text("You left the page before the answer was finished.")
        expect(self.answer).to_contain_text("word0 word1")
        expect(self.page.locator(".notice.error")).to_have_count(0)
        expect(self.button("Continue")).to_be_visible()
        self.server.go_on.set()

    def test_rename_and_delete(self):
        self.ask()
        self.button("Rename hello").click()
        self.page.get_by_label("Name of the chat").fill("Greetings")
        self.page.keyboard.press("Enter")
        expect(self.chats).to_have_text("Greetings")
        self.page.reload()
        expect(self.chats).to_have_text("Greetings")
        self.button("Delete Greetings").click()
        self.button("Delete", self.page.get_by_role("dialog")).click()
        expect(self.chats).to_have_count(0)
        expect(self.page.get_by_role("heading", name="What shall we read?")).to_be_visible()
        self.page.reload()
        expect(self.chats).to_have_count(0)

    def test_answers_go_on_while_another_chat_is_shown(self):
        self.say("read")
        expect(self.answer).to_contain_text("82,000")
        self.button("New chat").click()
        self.ask("echo other", "You said: echo other")
        self.server.go_on.set()
        self.chats.filter(has_text="read").click()
        expect(self.answer).to_contain_text("It is read.")

    def test_two_tabs(self):
        self.ask("echo first", "You said: echo first")
        here, there = self.page, self.page.context.new_page()
        there.goto(here.url)
        self.page = there
        self.ask("echo second", "You said: echo second")
        self.page = here
        expect(self.answer).to_contain_text("You said: echo second")
        self.button("New chat").click()
        self.page = there
        self.ask("echo third", "You said: echo third")
        self.page = here
        self.chats.click()
        expect(self.answer).to_contain_text("You said: echo third")

    def test_without_storage(self):
        self.open(script=BLOCKED_STORAGE)
        self.ask("echo first", "You said: echo first")
        expect(self.page.get_by_text("This browser keeps nothing")).to_have_count(1)
        self.button("Understood").click()
        self.button("New chat").click()
        self.ask("echo second", "You said: echo second")
        expect(self.page.get_by_text("This browser keeps nothing")).to_have_count(0)
        self.chats.filter(has_text="first").click()
        expect(self.answer).to_contain_text("You said: echo first")


class KeyboardTest(PageTest):
    def test_keys(self):
        self.input.fill("echo one")
        self.input.press("Shift+Enter")
        self.page.keyboard.type("two")
        self.input.press("Enter")
        expect(self.answer).to_contain_text("You said: echo one")
        self.assertEqual(self.sent(), ["echo one\ntwo"])
        self.say("endless")
        expect(self.answer).to_contain_text("word1")
        self.page.keyboard.press("Escape")
        expect(self.answer).to_contain_text("You stopped the answer.")
        self.page.keyboard.press("Control+Shift+O")
        expect(self.page.get_by_role("article")).to_have_count(0)
        self.button("Settings").focus()
        self.page.keyboard.press("/")
        expect(self.input).to_be_focused()
        expect(self.input).to_have_value("")

    def test_tab_reaches_everything_and_comes_back(self):
        self.ask("markdown", "The end")
        expected = self.page.evaluate(f"{FOCUSABLE}().length")
        reached = set()
        self.page.evaluate("document.activeElement.blur()")
        for _ in range(expected + 5):
            self.page.keyboard.press("Tab")
            reached.add(self.page.evaluate(f"{FOCUSABLE}().indexOf(document.activeElement)"))
        self.assertEqual(reached - {-1}, set(range(expected)))

    def test_every_control_has_a_name(self):
        self.ask("markdown", "The end")
        for opener in (None, "Settings"):
            if opener:
                self.button(opener).click()
            self.assertEqual(self.page.evaluate(UNNAMED), [])


class ScreenTest(PageTest):
    def test_small(self):
        self.open(viewport={"width": 360, "height": 640})
        self.ask("markdown", "The end")
        self.page.set_input_files(".composer input[type=file]", {
            "name": "a-name-that-is-far-too-long-for-so-small-a-screen.txt",
            "mimeType": "text/plain", "buffer": b"text"})
        expect(self.page.locator(".chip")).to_be_visible()
        self.assertEqual(self.page.evaluate(TOO_WIDE), [])
        self.button("Chats").click()
        expect(self.button("Close the list of chats")).to_be_focused()
        self.page.keyboard.press("Escape")
        expect(self.button("Chats")).to_be_focused()
        expect(self.button("New chat")).to_be_hidden()
        self.button("Settings").click()
        self.assertEqual(self.page.evaluate(TOO_WIDE), [])

    def test_contrast(self):
        for scheme in ("light", "dark"):
            with self.subTest(scheme):
                self.open(color_scheme=scheme)
                self.ask("markdown", "The end")
                self.say("refused")
                expect(self.answer.locator(".notice")).to_be_visible()
                self.ask("dropped", "forgotten")
                self.context.click()
                self.assertEqual(self.page.evaluate(LOW_CONTRAST), [])
                self.button("Settings").click()
                self.assertEqual(self.page.evaluate(LOW_CONTRAST), [])


FOCUSABLE = """(() => [...document.querySelectorAll(
    'a[href], button:enabled, input, textarea, select, summary, [tabindex="0"]')].filter(
    it => it.checkVisibility() && it.tabIndex >= 0))"""

UNNAMED = """() => [...document.querySelectorAll('a, button, input, textarea, select')]
    .filter(it => it.checkVisibility() && !it.getAttribute('aria-label') &&
                  !it.textContent.trim() && !(it.labels?.length > 0))
    .map(it => it.outerHTML)"""

# What reaches over the right edge without being in something that scrolls.
TOO_WIDE = """() => [...document.body.querySelectorAll('*')].filter(it => it.checkVisibility() &&
    !it.closest('pre, .table, .visually-hidden, #sidebar, #drop-here') &&
    it.getBoundingClientRect().right > innerWidth + 0.5).map(it => it.outerHTML.slice(0, 80))"""

# Texts with less than 4.5 to 1 against the nearest color behind them.
LOW_CONTRAST = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const rgba = color => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return canvas.getImageData(0, 0, 1, 1).data;
    };
    const light = color => {
        const [r, g, b] = [...rgba(color)].slice(0, 3).map(c => c / 255).map(
            c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = it => {
        while (it && rgba(getComputedStyle(it).backgroundColor)[3] < 255) it = it.parentElement;
        return getComputedStyle(it ?? document.body).backgroundColor;
    };
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const texts = [...document.body.querySelectorAll('*')].filter(it => it.checkVisibility() &&
        !it.matches(':disabled') &&
        [...it.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
    return texts.map(it => [it.outerHTML.slice(0, 80),
                            ratio(light(getComputedStyle(it).color), light(behind(it)))])
        .filter(([, contrast]) => contrast < 4.5);
}"""

if __name__ == "__main__":
    unittest.main()
