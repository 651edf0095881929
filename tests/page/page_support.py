"""What tests of the page have in common: a browser, and a server that plays by script.

Needs Playwright for Python and a Chromium: at GODWIT_CHROMIUM, else in the path. Where one of them
is not there, the tests say so and are skipped.
"""

import os
import shutil
import unittest

from fake_server import FakeServer

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    expect = sync_playwright = None

CHROMIUM = os.environ.get("GODWIT_CHROMIUM") or shutil.which("chromium") or shutil.which(
    "chromium-browser")


@unittest.skipUnless(sync_playwright, "needs Playwright: pip install playwright")
@unittest.skipUnless(CHROMIUM, "needs a Chromium in the path or at GODWIT_CHROMIUM")
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        cls.browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        self.faults = []  # of the page's scripts, and what its policy forbade
        self.open()

    def tearDown(self):
        self.assertEqual(self.faults, [])

    def open(self, script="", **context):
        context = self.browser.new_context(**context)
        self.addCleanup(context.close)
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self.note_console)
        if script:
            self.page.add_init_script(script)
        self.page.goto(self.server.url)

    def note_console(self, message):
        # Of answers that are errors the browser itself tells.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    def button(self, name, inside=None):
        return (inside or self.page).get_by_role("button", name=name, exact=True)

    @property
    def input(self):
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def answer(self):
        return self.page.get_by_role("article", name="Answer").last

    @property
    def questions(self):
        return self.page.get_by_role("article", name="You")

    @property
    def context(self):
        return self.page.locator(".context-words")

    def say(self, text):
        self.input.fill(text)
        self.input.press("Enter")

    def ask(self, text="hello", answer="These are a few words."):
        self.say(text)
        expect(self.answer).to_contain_text(answer)
        self.wait_until_done()

    def wait_until_done(self):
        expect(self.button("Send")).to_be_visible()

    def sent(self):
        return [message["content"] for message in self.server.requests[-1]["messages"]]

    def attach(self, name, text):
        self.page.set_input_files(".composer input[type=file]", {
            "name": name, "mimeType": "text/plain", "buffer": text.encode()})
