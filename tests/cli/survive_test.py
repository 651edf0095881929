"""Answers survive kills of the server at random moments: texts, chats with tools, schemas, drafts
and samples, each byte for byte as without a kill, and none twice.

GODWIT_KILLS: the number of kills of each way of keeping texts (default 4).
"""

import http.client
import json
import os
import random
import re
import threading
import time
import unittest

import harness
from harness import TINY
from serve_test import Server

FORMAT = 4
KILLS = int(os.environ.get("GODWIT_KILLS", "4"))
LOST = (http.client.HTTPException, ConnectionError, TimeoutError, OSError)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {
    "type": "object", "required": ["at", "for"], "additionalProperties": False,
    "properties": {"at": {"type": "string", "minLength": 20, "maxLength": 60},
                   "for": {"type": "array", "items": {"type": "integer"}, "minItems": 4,
                           "maxItems": 9}}}}}
HELLO = [{"role": "user", "content": "Hello! Tell me about the cow that went upon a time."}]
TEXT = "Once upon a time there was a cow. Once upon a time there was a cow. Once upon"

TEMPLATE = """{%- for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}{% if tools %}<tool_call>{% endif %}{% for message in messages %}
{{- message.role }}: {{ message.content }}
{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"""

REQUESTS = {
    "text": ("/v1/completions", {"prompt": TEXT, "temperature": 1, "seed": 5}),
    "drafts": ("/v1/completions", {"prompt": TEXT, "draft": "ngram", "temperature": 0}),
    "drawn drafts": ("/v1/completions", {"prompt": TEXT, "draft": "ngram", "temperature": 1,
                                         "seed": 9, "repeat_penalty": 1.2}),
    "samples": ("/v1/completions", {"prompt": [TEXT, "There"], "n": 2, "temperature": 1,
                                    "seed": 7}),
    "logprobs": ("/v1/completions", {"prompt": TEXT, "logprobs": 2, "max_tokens": 60}),
    "chat": ("/v1/chat/completions", {"messages": HELLO, "temperature": 1, "seed": 2}),
    "tools": ("/v1/chat/completions", {"messages": HELLO, "tools": [TOOL], "temperature": 1,
                                       "seed": 4, "tool_choice": "required",
                                       "ignore_eos": False}),
    "schema": ("/v1/chat/completions", {
        "messages": HELLO, "temperature": 1, "seed": 6, "ignore_eos": False,
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "x", "schema": TOOL["function"]["parameters"]}}}),
    "responses": ("/v1/responses", {"input": "Hello!", "temperature": 1, "seed": 3}),
    "messages": ("/v1/messages", {"messages": HELLO, "temperature": 1, "seed": 8}),
}


def body_of(name, tokens):
    path, body = REQUESTS[name]
    body = {"ignore_eos": True, **body, "stream": True}
    limit = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    body.setdefault(limit, tokens)
    return path, body


class Reader(threading.Thread):
    """A client that keeps what it has and comes back for the rest."""

    def __init__(self, port_of, name, tokens):
        super().__init__(daemon=True)
        self.port_of, self.name_, self.tokens = port_of, name, tokens
        self.path, self.body = body_of(name, tokens)
        self.events, self.ids, self.problem = [], [], None
        self.returns = 0

    def run(self):
        try:
            while not self.ended():
                try:
                    self.read()
                except LOST:
                    time.sleep(0.01)
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def ended(self):
        return bool(self.events) and any(mark in self.events[-1] for mark in (
            "data: [DONE]", '"type":"response.incomplete"', '"type":"response.completed"',
            '"type":"message_stop"'))

    def read(self):
        port = self.port_of()
        if port is None:
            raise ConnectionError
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            if self.ids:
                self.returns += 1
                answer = self.ids[-1].rsplit(":", 1)[0]
                connection.request("GET", f"{self.path}/{answer}",
                                   headers={"Last-Event-ID": self.ids[-1]})
            else:
                connection.request("POST", self.path, json.dumps(self.body))
            response = connection.getresponse()
            if response.status in (429, 503):
                raise ConnectionError
            assert response.status == 200, (self.name_, response.status, response.read())
            block = b""
            while line := response.readline():
                block += line
                if line == b"\n":
                    self.take(block.decode())
                    block = b""
        finally:
            connection.close()

    def take(self, event):
        if event.startswith(":"):
            return
        found = re.match(r"id: (\S+)\n", event)
        assert found, event
        self.ids.append(found[1])
        self.events.append(event)

    def told(self):
        """The pieces of each text, without names and times."""
        texts = {}
        for event in self.events:
            data = event.split("data: ", 1)[1].strip()
            if data == "[DONE]":
                continue
            chunk = json.loads(data)
            if "choices" in chunk:
                for choice in chunk["choices"]:
                    for key in ("kv", "drafts", "pauses"):
                        choice.pop(key, None)
                    for call in choice.get("delta", {}).get("tool_calls", []):
                        call.pop("id", None)
                    texts.setdefault(choice["index"], []).append(choice)
            elif "delta" in chunk:
                texts.setdefault(0, []).append(chunk["delta"])
        return texts

    def check(self, test):
        test.assertIsNone(self.problem, (self.name_, self.problem))
        test.assertTrue(self.ended(), self.name_)
        test.assertEqual(len(set(self.ids)), len(self.ids), f"{self.name_}: an event came twice")
        if "." not in self.ids[0].rsplit(":", 1)[1]:
            numbers = [int(one.rsplit(":", 1)[1]) for one in self.ids]
            test.assertEqual(numbers, list(range(len(numbers))), self.name_)


class ServerTest(harness.CliTest):
    def start_server(self, folder, *flags, variables=None):
        template = self.folder / "tools.jinja"
        template.write_text(TEMPLATE)
        return Server(self, "--journal", folder, "--parallel", "16", "-q", "--chat-template",
                      template, *flags, variables=variables)

    def undisturbed(self, tokens, *flags):
        """The answers of a server that is left alone, and the number of their events."""
        server = self.start_server(self.folder / "whole", *flags)
        expected, total = {}, 0
        for name in REQUESTS:
            reader = Reader(lambda: server.port, name, tokens)
            reader.start()
            reader.join(harness.HANG_S)
            reader.check(self)
            expected[name] = reader.told()
            total += len(reader.ids)
            self.assertTrue(expected[name], name)
        server.process.kill()
        server.process.wait()
        return expected, total

    def interrupt(self, tokens, expected, start, most, events, behind=lambda: None):
        """Asks for the answers, again and again, of servers that are killed `most` times, each after
        so many more events(). behind: is called behind each kill. Returns the numbers of kills, of
        rounds, and of times that clients came back."""
        kills = rounds = returns = 0
        server = start()
        place = [server.port]
        while kills < most:
            readers = [Reader(lambda: place[0], name, tokens) for name in REQUESTS]
            for reader in readers:
                reader.start()
            while any(reader.is_alive() for reader in readers):
                wanted = sum(len(reader.ids) for reader in readers) + events()
                while (any(reader.is_alive() for reader in readers)
                       and (kills >= most or sum(len(reader.ids) for reader in readers) < wanted)):
                    time.sleep(0.0005)
                if not any(reader.is_alive() for reader in readers):
                    break
                server.process.kill()
                place[0] = None
                server.process.wait()
                behind()
                kills += 1
                server = start()
                place[0] = server.port
            rounds += 1
            for reader in readers:
                reader.join()
                reader.check(self)
                self.assertEqual(reader.told(), expected[reader.name_], reader.name_)
                returns += reader.returns
        server.process.kill()
        return kills, rounds, returns


class SurviveTest(ServerTest):
    def survive(self, tokens, *flags):
        expected, total = self.undisturbed(tokens, *flags)

        journal = self.folder / "journal"
        chance = random.Random(1)
        kills, rounds, returns = self.interrupt(
            tokens, expected, lambda: self.start_server(journal, *flags), KILLS,
            lambda: chance.randrange(total // 2))
        print(f"{' '.join(map(str, flags))}: {kills} kills, {rounds} rounds of {len(REQUESTS)} answers, "
              f"clients came back {returns} times")
        self.assertGreater(returns, 0)
        for path in journal.iterdir():
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(journal.stat().st_mode & 0o777, 0o700)

    def test_dense(self):
        self.survive(300, "--kv", "dense")

    def test_blocks(self):
        self.survive(300, "--kv", "blocks:initial=0,local_windows_len=1,second_block_count=3")

    def test_sinks(self):
        self.survive(900, "--kv", "sinks:4+60")

    def test_saved_texts_and_a_draft_model(self):
        """Texts that were saved before a kill are read from the disk behind it."""
        self.survive(300, "--kv", "dense", "--cache-dir", self.folder / "cache", "-md", TINY)

    def test_runs(self):
        """`run --resume`, killed until it has ended."""
        ways = (("--kv", "dense", "-n", "300"), ("--kv", "sinks:4+60", "-n", "2500"),
                ("--kv", "sinks:4+60", "-n", "1500", "--draft", "ngram"),
                ("--kv", "sinks:4+60", "-n", "900", "--samples", "3"))
        chance = random.Random(2)
        for number, way in enumerate(ways):
            flags = ("run", "-m", TINY, "-t", "1", "-p", TEXT, "--ignore-eos", "--temp", "1",
                     *way, "-q")
            whole = self.ok(*flags, "--seed", "7")
            file = self.folder / f"{number}.run"
            sizes = []
            for kill in range(KILLS):
                seed = ("--seed", "7") if kill == 0 else ()  # later ones find it in the file
                process = self.start(*flags, *seed, "--resume", file)
                harness.wait_for(lambda: file.exists() and file.stat().st_size > 0)
                wanted = file.stat().st_size + chance.randrange(300)
                harness.wait_for(lambda: file.stat().st_size > wanted
                                 or process.poll() is not None)
                harness.end(process)
                sizes.append(file.stat().st_size)
            self.assertEqual(self.ok(*flags, "--resume", file), whole, way)
            self.assertEqual(self.ok(*flags, "--resume", file), whole, "a finished one is told again")
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)
            told = self.refused(2, *flags, "--resume", file, "--top-p", "0.5")
            self.assertIn("an earlier run had another top_p (", told)
        self.assertIn("expected a journal of godwit", self.refused(
            4, "run", "-m", TINY, "-p", "x", "--resume", TINY / "config.json"))

    def test_batches(self):
        """`batch --resume`, killed until it has ended. Seeds are drawn by the first run."""
        requests = self.folder / "requests"
        lines = [{"custom_id": name, "body": {key: value for key, value in body.items()
                                              if key != "stream"}}
                 for name, (path, body) in REQUESTS.items()
                 if path.endswith("completions") and name != "tools"]
        for number, line in enumerate(lines):
            line["body"].setdefault("max_tokens", 700 + 100 * number)
            line["body"].setdefault("ignore_eos", True)
        requests.write_text("".join(json.dumps(line) + "\n" for line in lines))

        def told(file):
            answers = {}
            for line in file.read_text().splitlines():
                result = json.loads(line)
                self.assertNotIn(result["custom_id"], answers, "answered twice")
                choices = result["response"]["body"]["choices"]
                answers[result["custom_id"]] = [
                    choice.get("text") or choice["message"]["content"] for choice in choices]
            return answers

        flags = ("batch", "-m", TINY, "-t", "1", "--kv", "sinks:4+60", "-q", "-f", requests)
        whole, file = self.folder / "whole", self.folder / "results"
        self.ok(*flags, "-o", whole)
        unfinished = self.folder / "results.unfinished"
        chance = random.Random(3)
        for _ in range(KILLS):
            process = self.start(*flags, "-o", file, "--resume")
            harness.wait_for(lambda: unfinished.exists() and unfinished.stat().st_size > 0
                             or process.poll() is not None)
            time.sleep(chance.random() * 0.05)
            harness.end(process)
        self.ok(*flags, "-o", file, "--resume")
        self.assertEqual(told(file), told(whole))
        self.assertFalse(unfinished.exists())
        # Left over by a run that was killed behind its last result. A file of something else stays.
        unfinished.write_bytes(b"")
        self.ok(*flags, "-o", file, "--resume")
        self.assertFalse(unfinished.exists())
        unfinished.write_text("a diary, which is longer than a header")
        self.assertIn("expected a journal of godwit",
                      self.refused(FORMAT, *flags, "-o", file, "--resume"))
        self.assertTrue(unfinished.exists())

    def test_background(self):
        """An answer in the background goes on without anybody asking for it."""
        flags = ("--kv", "sinks:4+60")
        server = self.start_server(self.folder / "journal", *flags)
        body = {"input": "Hello!", "temperature": 1, "seed": 3, "max_output_tokens": 2000,
                "ignore_eos": True}
        whole = server.post("/v1/responses", **body)
        begun = server.post("/v1/responses", **body, background=True)
        self.assertEqual(begun["status"], "queued")
        path = "/v1/responses/" + begun["id"]
        server.process.kill()
        server.process.wait()
        server = self.start_server(self.folder / "journal", *flags)
        for _ in range(harness.HANG_S * 50):
            body = json.loads(server.ask("GET", path)[1])
            if body["status"] not in ("queued", "in_progress"):
                break
            time.sleep(0.02)
        self.assertEqual(body["output"][0]["content"], whole["output"][0]["content"])
        self.assertEqual(server.ask("DELETE", path)[0], 200)
        self.assertEqual(server.ask("GET", path)[0], 404)

    def test_other_settings_are_refused(self):
        server = self.start_server(self.folder / "journal", "--kv", "sinks:4+60")
        reader = Reader(lambda: server.port, "text", 100_000)
        reader.start()
        harness.wait_for(lambda: len(reader.ids) > 50)
        server.process.kill()
        server.process.wait()
        other = self.start_server(self.folder / "journal", "--kv", "sinks:4+60", "--top-p", "0.9")
        answer = reader.ids[0].rsplit(":", 1)[0]
        status, text = other.ask("GET", f"/v1/completions/{answer}")
        self.assertEqual(status, 409, text)
        self.assertIn("begun with other settings and cannot go on (top_p: 0.9, not ", text)
        server.port = None


if __name__ == "__main__":
    unittest.main()
