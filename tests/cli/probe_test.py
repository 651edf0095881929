"""godwit probe, against godwit serve and against a server with one fault of each kind."""

import json
import random
import re
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import CliTest
from serve_test import Server

CHECKS = ("batch", "cache", "cancel", "stop", "utf8", "schema", "logprobs", "usage", "finish",
          "seed", "n", "length", "hostile")
INPUT, IO, FORMAT, FAULT = 2, 3, 4, 7
PIECES = [" a", " l", "ake", " tree", " by", " the ", "sea", ",", " 東京", "の", " 😀", "é", ". ", "So"]
DOCUMENTS = {"pattern": {"code": "ab-123"}, "minLength": {"name": "otter"},
             "integers": {"legs": 4, "tail": True}, "nested": {"list": [{"kind": "cat"}]}}
CONTEXT = 500


class Refused(Exception):
    pass


class FakeServer(ThreadingHTTPServer):
    """A model of OpenAI's API whose next token is a function of the text, and one fault at most."""

    daemon_threads = True

    def __init__(self, fault="", chat=False, key=""):
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault, self.chat, self.key = fault, chat, key
        self.lock = threading.Lock()
        self.working = self.requests = 0
        self.last_prompt = ""
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass  # those that leave

    def pieces_of(self, prompt, asked, choice):
        if "response_format" in asked:
            format = asked["response_format"]["json_schema"]
            text = json.dumps({} if self.fault == "schema" else DOCUMENTS[format["name"]])
            return re.findall(r"\s?[^\s]{1,3}", text)
        with self.lock:
            self.requests += 1
            if self.fault == "cache" and self.requests % 7 == 0:
                prompt = self.last_prompt
            self.last_prompt = prompt
            if self.fault == "batch" and self.working > 1:
                prompt += "!"
        draw = (asked.get("seed"), choice) if asked["temperature"] else ""
        if self.fault == "seed" and draw:
            draw = random.random()
        rng = random.Random(f"{prompt} {draw}")
        return [rng.choice(PIECES) for _ in range(200)]

    def answer(self, prompt, asked, choice):
        """The pieces of an answer, and why it ended."""
        pieces = self.pieces_of(prompt, asked, choice)
        reason = "stop" if "response_format" in asked else "length"
        pieces = pieces[:asked["max_tokens"]]
        for stop in asked.get("stop", []):
            end = "".join(pieces).find(stop)
            if end < 0:
                continue
            reason, kept = "stop", []
            for piece in pieces:
                kept.append(piece[:max(0, end)])
                end -= len(piece)
                if end <= 0:
                    break
            if self.fault == "stop" and asked.get("stream"):
                kept[-1] += stop[0]  # it came before the rest of it
            pieces = kept
        return pieces, "stop" if self.fault == "finish" else reason


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def send(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            return self.send(401, {"error": {"message": "a key is needed"}})
        if self.path == "/v1/models":
            return self.send(200, {"data": [{"id": "fake", "max_model_len": CONTEXT}]})
        if self.path == "/slots":
            return self.send(200, [{"is_processing": self.server.working > 0}])
        return self.send(404, {"error": {"message": "nothing"}})

    def read(self):
        """The request and its prompt. Raises Refused."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            asked = json.loads(body.decode())
            prompt = asked["messages"][0]["content"] if self.server.chat else asked["prompt"]
            types = ((prompt, str), (asked.get("max_tokens"), int),
                     (asked.get("temperature", 0), (int, float)), (asked.get("stop", []), list))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise Refused("expected a request") from error
        if not all(isinstance(value, kind) for value, kind in types):
            raise Refused("a field of another type")
        if len(prompt.split()) > CONTEXT:
            if self.server.fault != "length":
                raise Refused("the prompt is too long")
            prompt = " ".join(prompt.split()[:CONTEXT])
        return asked, prompt

    def do_POST(self):
        server = self.server
        if self.path != ("/v1/chat/completions" if server.chat else "/v1/completions"):
            self.rfile.read(int(self.headers["Content-Length"]))
            return self.send(404, {"error": {"message": "nothing"}})
        with server.lock:
            server.working += 1
        try:
            if server.fault == "batch":
                time.sleep(0.01)  # for the others to come
            asked, prompt = self.read()
            if asked.get("stream"):
                self.stream(prompt, asked)
            else:
                self.whole(prompt, asked)
        except Refused as refused:
            status = 500 if server.fault == "hostile" else 400
            self.send(status, {"error": {"message": str(refused)}})
        except OSError:
            if server.fault == "cancel":
                with server.lock:
                    server.working += 1
            raise
        finally:
            with server.lock:
                server.working -= 1

    def choices(self, prompt, asked):
        count = 1 if self.server.fault == "n" else asked.get("n", 1)
        return [self.server.answer(prompt, asked, choice) for choice in range(count)]

    def usage(self, prompt, answers, streamed):
        read, written = len(prompt.split()), sum(len(pieces) for pieces, _ in answers)
        wrong = self.server.fault == "usage" and streamed
        return {"prompt_tokens": read, "completion_tokens": written,
                "total_tokens": read + written + wrong}

    def logprobs(self, asked, pieces):
        if "logprobs" not in asked:
            return None
        numbers = [0.0 if self.server.fault == "logprobs" else -0.25 * len(piece)
                   for piece in pieces]
        if self.server.chat:
            return {"content": [{"logprob": number} for number in numbers]}
        return {"token_logprobs": numbers}

    def whole(self, prompt, asked):
        answers = self.choices(prompt, asked)
        choices = []
        for index, (pieces, reason) in enumerate(answers):
            text = "".join(pieces)
            said = {"message": {"content": text}} if self.server.chat else {"text": text}
            choices.append({"index": index, "finish_reason": reason, **said,
                            "logprobs": self.logprobs(asked, pieces)})
        self.send(200, {"choices": choices, "usage": self.usage(prompt, answers, False)})

    def event(self, json_or_text):
        text = json_or_text if isinstance(json_or_text, str) else json.dumps(json_or_text)
        data = f"data: {text}\n\n".encode()
        if self.server.fault == "bytes":
            data = data.replace(b"\\u00e9", b"\xc3")  # the first byte of an é
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def stream(self, prompt, asked):
        answers = self.choices(prompt, asked)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for index, (pieces, reason) in enumerate(answers):
            for piece in pieces:
                halves = [piece]
                if self.server.fault == "utf8":
                    data = piece.encode()
                    halves = [part.decode(errors="replace") for part in (data[:2], data[2:])]
                if self.server.fault == "surrogates" and "😀" in piece:
                    halves = ["\ud83d", "\ude00"]
                for at, text in enumerate(halves):
                    said = {"delta": {"content": text}} if self.server.chat else {"text": text}
                    logprobs = self.logprobs(asked, [piece] if at == 0 else [])
                    self.event({"choices": [{"index": index, "finish_reason": None, **said,
                                             "logprobs": logprobs}]})
            said = {"delta": {}} if self.server.chat else {"text": ""}
            self.event({"choices": [{"index": index, "finish_reason": reason, **said}]})
        self.event({"choices": [], "usage": self.usage(prompt, answers, True)})
        if self.server.fault != "no end":
            self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class ProbeTest(CliTest):
    def server(self, **options):
        server = FakeServer(**options)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def probe(self, url, *flags, code=0):
        result = self.godwit("probe", url, "--json", "--clients", "4", *flags)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        found = json.loads(result.stdout)
        self.assertEqual(found["faults"], sum(c["result"] == "fault" for c in found["checks"]))
        return {check["check"]: check for check in found["checks"]}

    def test_our_own_server_has_none(self):
        checks = self.probe(f"http://127.0.0.1:{Server(self).port}")
        self.assertEqual(tuple(checks), CHECKS)
        for check in checks.values():
            self.assertNotEqual(check["result"], "fault", check)
            self.assertTrue(check["seen"], check)
        # Another instruction set may have a random model write ASCII alone, or end no JSON. On a
        # crowded machine a whole answer may come in one piece, within which no stop string begins.
        skipped = [name for name, check in checks.items() if check["result"] == "skipped"]
        self.assertLessEqual(set(skipped), {"utf8", "schema", "stop"})

    def test_each_fault_is_found(self):
        for chat in (False, True):
            checks = self.probe(self.server(chat=chat).url)
            self.assertEqual(tuple(checks), CHECKS)
            for check in checks.values():
                self.assertEqual(check["result"], "ok", check)
        for name in CHECKS:
            url = self.server(fault=name).url
            checks = self.probe(url, "--only", name, "--timeout", "1", code=FAULT)
            self.assertEqual([c["result"] for c in checks.values()], ["fault"], name)

    def test_every_shown_number(self):
        def seen(check, fault=""):
            url = self.server(fault=fault or check).url
            patience = ("--timeout", "1") if check == "cancel" else ()
            checks = self.probe(url, "--only", check, *patience, code=FAULT)
            return checks[check]["seen"]

        self.assertRegex(seen("batch"),
                         "alone \".+\"[.]*, beside others \".+\"[.]*, from byte [0-9]+ on")
        self.assertRegex(seen("stop"), "with the stop string .+, streamed, it is")
        self.assertEqual(seen("logprobs"), "all 24 are 0.0")
        self.assertEqual(seen("length"),
                         f"{2 * CONTEXT} words are answered with 200, but only {CONTEXT} tokens "
                         "were read")
        self.assertIn("expected a 4xx, found 500", seen("hostile"))
        self.assertIn("an answer is no JSON", seen("utf8", "surrogates"))
        self.assertIn("bytes that are no UTF-8", seen("utf8", "bytes"))
        self.assertEqual("a stream ended without [DONE]", seen("finish", "no end"))
        self.assertIn("the server still runs some", seen("cancel"))

    def test_table(self):
        url = self.server(fault="logprobs").url
        result = self.godwit("probe", f"{url}/v1/", "--only", "usage", "--only", "logprobs,n")
        self.assertEqual(result.returncode, FAULT)
        lines = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
        self.assertEqual([line[:2] for line in lines],
                         [["check", "result"], ["logprobs", "fault"], ["usage", "ok"],
                          ["n", "ok"]])

    def test_unusable_servers(self):
        server = self.server(key="secret")
        self.assertIn("give its key with --api-key", self.refused(INPUT, "probe", server.url))
        ask = ("probe", server.url, "--only", "usage")
        self.ok(*ask, "--api-key", "secret")
        self.ok(*ask, variables={"OPENAI_API_KEY": "secret"})
        self.assertIn("usage: godwit probe URL", self.refused(INPUT, "probe"))
        self.assertIn("did you mean batch?",
                      self.refused(INPUT, "probe", server.url, "--only", "bacth"))
        self.assertIn("127.0.0.1:1", self.refused(IO, "probe", "127.0.0.1:1"))
        self.assertIn("expected a list of models",
                      self.refused(FORMAT, "probe", self.server().url + "/elsewhere"))


if __name__ == "__main__":
    unittest.main()
