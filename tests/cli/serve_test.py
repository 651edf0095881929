"""godwit serve: the answers of `godwit run` over HTTP, to whoever asks and for as long as he listens."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

from harness import TESTS, TINY, CliTest

INPUT, IO = 2, 3
TEXT = "Once upon a time there was a little cat who lived in a house near the sea."


class Server:
    """A running one. What it says is read as it comes, so that it never waits for a reader."""

    def __init__(self, test, *flags, model=TINY, variables=None):
        self.process = test.start("serve", "-m", model, "-t", "1", "--port", "0", *flags, text=True,
                                  variables=variables)
        self.port, self.said = None, ""
        while self.port is None:
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError(f"it ended: {self.said}")
            self.said += line
            if " answers at http://" in line:
                self.port = int(line.rsplit(":", 1)[1])
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.said += line

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def ask(self, method, path, body=None, **headers):
        connection = self.connection()
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        result = response.status, response.read().decode()
        connection.close()
        return result

    def post(self, path, **body):
        status, text = self.ask("POST", path, body)
        assert status == 200, text
        return json.loads(text)

    def begin(self, **body):
        """The response of a stream of which something has come."""
        connection = self.connection()
        connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}))
        response = connection.getresponse()
        assert response.status == 200, response.read()
        response.readline()
        return connection, response

    def wait(self):
        code = self.process.wait(timeout=300)
        self.reader.join()
        return code


def children(parent):
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(status.read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(int(status.parent.name))
        except OSError:
            pass  # it has ended
    return found


def stop(process):
    """Returns once all threads of the process stand still, which a busy machine lets them do late."""
    os.kill(process, signal.SIGSTOP)
    tasks = list(pathlib.Path(f"/proc/{process}/task").glob("*/stat"))
    while any(task.read_text().rsplit(")", 1)[1].split()[0] != "T" for task in tasks):
        pass


class ServeTest(CliTest):
    def serve(self, *flags):
        return Server(self, *flags)

    def run_tokens(self, text, count, *flags):
        return json.loads(self.ok("run", "-m", TINY, "-p", text, "-n", count, "--ignore-eos",
                                  "--json", *flags))["tokens"]

    def test_answers_are_those_of_run(self):
        server = self.serve()
        texts = [TEXT[:n] for n in range(20, 70, 5)]
        asked = {"max_tokens": 20, "ignore_eos": True, "return_token_ids": True}
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda text: server.post(
                "/v1/completions", prompt=text, temperature=1, seed=5, **asked), texts))
        for text, answer in zip(texts, answers):
            self.assertEqual(answer["choices"][0]["token_ids"],
                             self.run_tokens(text, 20, "--temp", "1", "--seed", "5"))
            self.assertEqual(answer["model"], TINY.name)

    def test_streams(self):
        server = self.serve("--temp", "0", "-n", "10", "--ignore-eos")
        whole = server.post("/v1/completions", prompt=TEXT)["choices"][0]["text"]
        connection, response = server.begin(prompt=TEXT)
        self.assertEqual(response.getheader("Content-Type"), "text/event-stream")
        connection.close()
        _, text = server.ask("POST", "/v1/completions", {"prompt": TEXT, "stream": True})
        lines = [line[len("data: "):] for line in text.split("\n") if line.startswith("data: ")]
        self.assertEqual(lines[-1], "[DONE]")
        pieces = [json.loads(line)["choices"][0]["text"] for line in lines[:-1]]
        self.assertEqual("".join(pieces), whole)

    def test_requests_choose_among_what_is_allowed(self):
        server = self.serve("--temp", "0", "-n", "8", "--kv-choice", "sinks:4+60",
                            "--prefill-choice", "window:64", "--timeout", "100", "--lenient")
        text, asked = TEXT * 8, {"ignore_eos": True, "return_token_ids": True, "store": True}
        props = json.loads(server.ask("GET", "/props")[1])
        self.assertEqual(props["kv"], {"default": "dense", "choices": ["dense", "sinks:4+60"]})
        self.assertEqual(props["prefill"]["choices"], ["", "window:64"])
        for asks, flags in (({}, ()), ({"kv": "sinks:4+60"}, ("--kv", "sinks:4+60")),
                            ({"prefill": "window:64"}, ("--prefill", "window:64"))):
            answer = server.post("/v1/completions", prompt=text, **asks, **asked)
            self.assertEqual(answer["choices"][0]["token_ids"],
                             self.run_tokens(text, 8, "--temp", "0", *flags))
        status, text = server.ask("POST", "/v1/completions",
                                  {"prompt": TEXT, "max_tokens": 100_000, "timeout_ms": 1,
                                   "kv": "sinks:4+60", "ignore_eos": True})
        self.assertEqual((status, json.loads(text)["choices"][0]["finish_reason"]),
                         (200, "timeout"))

    def test_nothing_that_is_asked_is_lost(self):
        server = self.serve("--temp", "0", "-n", "4")

        def refused(path, **body):
            status, text = server.ask("POST", path, body)
            self.assertEqual(status, 400, text)
            return json.loads(text)["error"]

        user = {"role": "user", "content": "Hello"}
        chats = "/v1/chat/completions"
        self.assertIn("expected the role", refused(
            chats, messages=[user, {"role": "robot", "content": "Beep"}])["message"])
        self.assertIn("--lenient", refused(chats, messages=[user], store=True)["message"])
        self.assertIn("--kv-choice", refused(chats, messages=[user], kv="blocks")["message"])
        self.assertIn("pictures", refused(chats, messages=[{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}])["message"])
        error = refused(chats, messages=[{"role": "user", "content": TEXT * 200}])
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertGreater(error["n_prompt_tokens"], error["n_ctx"])

    def test_the_log_for_programs(self):
        server = self.serve("--log-json", "--temp", "0")
        server.post("/v1/completions", prompt=TEXT, max_tokens=5, ignore_eos=True)
        server.ask("GET", "/nothing")
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        lines = [json.loads(line) for line in server.said.splitlines() if line.startswith("{")]
        lines.sort(key=lambda line: line["status"])  # each is written once its answer is sent
        self.assertEqual([(line["path"], line["status"]) for line in lines],
                         [("/v1/completions", 200), ("?", 404)])
        self.assertEqual(lines[0]["output_tokens"], 5)
        self.assertGreater(lines[0]["first_token_ms"], 0)
        self.assertRegex(lines[0]["time"], r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
        self.assertNotIn("little cat", server.said)

    def test_a_disconnect_frees_its_slot(self):
        server = self.serve("--kv", "sinks:4+60", "-np", "1", "--queue", "0")
        endless = {"prompt": TEXT, "max_tokens": 10**9, "ignore_eos": True}
        connection, _ = server.begin(**endless)
        status, text = server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})
        self.assertEqual(status, 429, text)
        self.assertEqual(server.ask("GET", "/health")[0], 200)
        connection.close()
        while server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})[0] == 429:
            pass
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        self.assertIn("the client left before the end", server.said)
        self.assertNotIn("little cat", server.said)

    def test_many_at_once(self):
        server = self.serve("-np", "3", "--queue", "2")
        text = self.folder / "text.txt"
        text.write_text(TEXT * 100)

        def load(*flags):
            result = subprocess.run(
                [sys.executable, TESTS.parent / "tools" / "load_server", "--port", str(server.port),
                 "--text", text, "--clients", "8", "--longest", "400", *flags],
                capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            return json.loads(result.stdout)

        counts = load("--seconds", "3", "--idle", "1500")
        for what in ("answered", "left", "nonsense", "held"):
            self.assertGreater(counts[what], 0, counts)
        counts = load("--cut", "200", "--pid", str(server.process.pid))
        self.assertEqual((counts["cut"], counts["left"]), (200, 0))
        self.assertGreater(counts["answered"], 0)
        for series in ("memory_kib", "open_files", "threads"):
            self.assertGreater(min(counts[series]), 0)

    def test_a_prompt_beside_decodes(self):
        server = self.serve("--kv", "sinks:4+60")
        text = self.folder / "text.txt"
        text.write_text(TEXT * 400)
        beside = subprocess.run(
            [sys.executable, TESTS.parent / "tools" / "server_fairness", "--port",
             str(server.port), "--text", text, "--tokens", "1000"],
            capture_output=True, text=True, check=False)
        self.assertEqual(beside.returncode, 0, beside.stdout + beside.stderr)
        self.assertGreater(json.loads(beside.stdout.splitlines()[-1])["prompt_tokens"], 5000)

    def test_servers_are_compared(self):
        urls = [f"--url={name}=http://127.0.0.1:{self.serve().port}" for name in ("one", "two")]
        compared = subprocess.run(
            [sys.executable, TESTS.parent / "bench" / "peers" / "servers", *urls, "-p", "50", "-n",
             "5", "--clients", "2", "--rounds", "1", "--vocab", "500"],
            capture_output=True, text=True, check=False)
        self.assertEqual(compared.returncode, 0, compared.stdout + compared.stderr)
        rows = [row for row in compared.stdout.splitlines() if row.startswith(("| one", "| two"))]
        self.assertEqual(len(rows), 2)
        self.assertEqual([row.count("(") for row in rows], [0, 4], "the second beside the first")

    def test_sigterm_finishes_what_was_begun(self):
        server = self.serve("--temp", "0", "--kv", "sinks:4+60", "--ignore-eos")
        connection, response = server.begin(prompt=TEXT, max_tokens=3000)
        server.process.send_signal(signal.SIGTERM)
        rest = response.read().decode()
        connection.close()
        self.assertIn("data: [DONE]", rest)
        self.assertEqual(server.wait(), 0)
        self.assertIn("finishing the running requests", server.said)

    def test_a_second_signal_ends_it_at_once(self):
        server = self.serve("--kv", "sinks:4+60")
        connection, response = server.begin(prompt=TEXT, max_tokens=10**9, ignore_eos=True)
        for _ in range(2):
            server.process.send_signal(signal.SIGINT)
            while server.process.poll() is None and "finishing" not in server.said:
                pass
        self.assertEqual(server.wait(), 130)
        with self.assertRaises(http.client.IncompleteRead):
            response.read()
        connection.close()

    def test_a_second_signal_ends_it_during_any_work(self):
        server = self.serve()
        self.assertEqual(server.ask("HEAD", "/ready"), (200, ""))
        helpers = children(server.process.pid)
        self.assertTrue(helpers)
        try:
            for helper in helpers:
                stop(helper)
            connection = server.connection()  # which waits for one of them, for ever
            connection.request("POST", "/detokenize", json.dumps({"tokens": [5, 6, 7]}))
            while "godwit_requests_running 1\n" not in server.ask("GET", "/metrics")[1]:
                pass
            for _ in range(2):
                server.process.send_signal(signal.SIGTERM)
                while server.process.poll() is None and "finishing" not in server.said:
                    pass
            self.assertEqual(server.wait(), -signal.SIGTERM)
            connection.close()
        finally:
            for helper in helpers:
                os.kill(helper, signal.SIGKILL)

    def test_keys(self):
        keys = self.folder / "keys.txt"
        keys.write_text("# who may ask\nfirst\n\nsecond\r\n")
        server = self.serve("--api-key-file", keys)
        self.assertEqual(server.ask("GET", "/v1/models")[0], 401)
        for key in ("first", "second"):
            self.assertEqual(
                server.ask("GET", "/v1/models", Authorization=f"Bearer {key}")[0], 200)
        self.assertEqual(server.ask("GET", "/v1/models", Authorization="Bearer third")[0], 401)

    def test_keys_share_nothing(self):
        keys = self.folder / "keys.txt"
        keys.write_text("first\nsecond\n")
        server = self.serve("--api-key-file", keys)
        body = {"prompt": TEXT * 4, "max_tokens": 1}
        cached = []
        for key in ("first", "first", "second", "second"):
            _, text = server.ask("POST", "/v1/completions", body, Authorization=f"Bearer {key}")
            cached.append(json.loads(text)["usage"]["prompt_tokens_details"]["cached_tokens"] > 0)
        self.assertEqual(cached, [False, True, False, True])

    def test_invalid_flags_are_refused(self):
        self.assertIn("--host", self.refused(INPUT, "serve", "-m", TINY, "--host", "localhost"))
        self.assertIn("1.1 to 100", self.refused(INPUT, "serve", "-m", TINY, "--prompt-slowdown",
                                                 "1"))
        self.assertIn("policy \"x\"", self.refused(INPUT, "serve", "-m", TINY, "--kv-choice", "x"))
        self.assertIn("found \"x\"", self.refused(INPUT, "serve", "-m", TINY, "--prefill-choice", "x"))
        self.assertIn("--port", self.refused(INPUT, "serve", "-m", TINY, "--port", "65536"))
        for origin in ("*", "chat.example", "https://chat.example/"):
            self.assertIn("expected a site", self.refused(
                INPUT, "serve", "-m", TINY, "--allow-origin", origin))
        empty = self.folder / "keys.txt"
        empty.write_text("# nobody\n")
        self.assertIn("expected keys", self.refused(
            INPUT, "serve", "-m", TINY, "--api-key-file", empty))
        self.assertIn("no such file", self.refused(
            IO, "serve", "-m", TINY, "--api-key-file", self.folder / "none").lower())
        server = self.serve()
        self.assertIn(str(server.port), self.refused(
            IO, "serve", "-m", TINY, "--port", server.port))


if __name__ == "__main__":
    unittest.main()
