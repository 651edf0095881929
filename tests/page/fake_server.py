"""Plays the server to the page: its files, its headers, and answers by script.

The first word of the last message of the user picks the script: a method script_WORD.
"""

import http.server
import json
import pathlib
import sys
import threading
import urllib.parse

PAGE = pathlib.Path(__file__).resolve().parents[2] / "src" / "server" / "page"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8"}

PROPERTIES = {
    "model": "fake-7b",
    "build_info": "godwit 0.1.0",
    "n_ctx": 262144,
    "n_ctx_train": 262144,
    "total_slots": 4,
    "model_info": {"family": "llama", "format": "gguf", "n_params": 7_241_732_096,
                   "n_vocab": 32_000, "stored_as": ["Q4_K", "F32", "Q6_K"], "loaded_as": "int8",
                   "kv_type": "bf16", "size": 7_500_000_000},
    "chat_template": True,
    "default_generation_settings": {"temperature": 0.8, "top_p": 1.0, "top_k": 0, "min_p": 0.05,
                                    "repeat_penalty": 1.0, "max_tokens": -1},
    "kv": {"default": "dense", "choices": ["dense", "sinks:4+1020", "blocks"]},
    "prefill": {"default": "", "choices": ["", "window:4096"]},
    "draft": {"default": "", "choices": ["", "ngram"]},
}

MARKDOWN = (pathlib.Path(__file__).parent / "everything.md").read_text()

HOSTILE = """<script>window.harmed = 1</script> <img src=x onerror="window.harmed = 2">

[first](javascript:window.harmed=3) [second](data:text/html,x) <javascript:window.harmed=4>
[third](JaVaScRiPt:window.harmed=5) ![pixel](https://elsewhere.example/pixel.png)

```html" onclick="window.harmed = 6
</code></pre><script>window.harmed = 7</script>
```

[fourth](https://safe.example/?a=1&b="2")
"""

WAIT_S = 60  # for a test that never says go on


class FakeServer:
    """At `url` until close(); what was asked is in `requests`, the latest last."""

    def __init__(self, port=0):
        self.properties = dict(PROPERTIES)
        self.others = {}  # properties that differ, by the names of more models
        self.key = ""
        self.later = 0  # so many times the answer is 503
        self.busy = 0  # so many times it is 429
        self.loading = []  # how far the model is, each time somebody asks; then it is there
        self.requests = []
        self.planned = []  # requests whose price was asked
        self.counted = []  # characters of the texts whose tokens were asked for
        self.kept = {}  # by the ids of answers: the events behind those that were sent
        self.resumed = []  # the last events of clients that came back
        self.cancelled = []  # ids of answers
        self.gone = threading.Event()  # a client went away from its answer
        self.go_on = threading.Event()  # scripts that wait, wait for this
        handler = type("Handler", (Handler,), {"fake": self})
        self.http = QuietServer(("127.0.0.1", port), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.go_on.set()
        self.http.shutdown()
        self.http.server_close()


class QuietServer(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        # Pages are closed in the middle of their files.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/" or self.path.startswith("/page/"):
            self.send_page_file(self.path.removeprefix("/page/").lstrip("/") or "index.html")
        elif self.path == "/health":
            self.send_json(200, {"status": "ok"})
        elif self.path == "/props" and self.fake.loading:
            self.send_loading(self.fake.loading.pop(0))
        elif self.path == "/props" and self.lets_in():
            self.send_json(200, self.fake.properties)
        elif self.path.startswith("/v1/chat/completions/"):
            self.send_rest(self.path.rpartition("/")[2])
        elif self.path.startswith("/props?model=") and self.lets_in():
            self.send_properties_of(urllib.parse.unquote(self.path.partition("=")[2]))
        else:
            self.send_error_json(404, "there is no such path")

    def send_rest(self, answer):
        self.fake.resumed.append(self.headers["Last-Event-ID"])
        if self.fake.later > 0:
            self.fake.later -= 1
            return self.send_error_json(503, "the model is being loaded", retry_after=1)
        if answer not in self.fake.kept:
            return self.send_error_json(404, "the server has no such answer")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.pieces = 5
        self.answer = answer
        self.number = int(self.headers["Last-Event-ID"].rpartition(":")[2]) + 1
        for word in self.fake.kept[answer]:
            self.write(word)
        self.end()

    def send_properties_of(self, model):
        if model not in self.fake.others:
            return self.send_error_json(404, "there is no such model")
        self.send_json(200, {**self.fake.properties, "model": model, **self.fake.others[model]})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.lets_in():
            return
        request = json.loads(body)
        if self.path == "/tokenize":
            return self.count_tokens(request["content"])
        if self.path == "/v1/plan":
            return self.send_plan(request)
        if self.path.endswith("/cancel"):
            self.fake.cancelled.append(self.path.split("/")[-2])
            return self.send_json(200, {"status": "cancelled"})
        self.fake.requests.append(request)
        if self.fake.loading:
            return self.send_loading(self.fake.loading.pop(0))
        if self.fake.later > 0:
            self.fake.later -= 1
            return self.send_error_json(503, "the model is being loaded", retry_after=1)
        if self.fake.busy > 0:
            self.fake.busy -= 1
            return self.send_error_json(429, "too many requests wait", retry_after=1)
        # Behind the files of a message is its text.
        words = request["messages"][-1]["content"].rpartition("</file>")[2].split()
        script = getattr(self, f"script_{words[0] if words else ''}", self.script_words)
        try:
            script(request)
        except (BrokenPipeError, ConnectionResetError):
            self.fake.gone.set()

    # Four letters a token.
    def count_tokens(self, text):
        self.fake.counted.append(len(text))
        self.send_json(200, {"tokens": [7] * ((len(text) + 3) // 4)})

    def send_plan(self, request):
        self.fake.planned.append(request)
        self.send_json(200, {"object": "plan", "prompt_tokens": 900, "other_requests": 0, "plans": [
            {"kv": "dense", "prefill": "", "draft": "", "cached_tokens": 300, "disk_tokens": 0,
             "kv_bytes": 1, "first_token_s": 12.3, "token_s": 0.1}]})

    def script_words(self, request):
        self.begin()
        for word in "These are a few words.".split(" "):
            self.write(word + " ")
        self.end()

    def script_thoughtful(self, request):
        self.begin()
        for thought in "Is it?\n\n", "<b>It is.</b>":
            self.write(thought, field="reasoning_content")
        self.write("Yes.")
        self.end()

    def script_echo(self, request):
        self.begin()
        self.write(f"You said: {request['messages'][-1]['content'][-200:]}")
        self.end()

    def script_markdown(self, request):
        self.begin()
        for begin in range(0, len(MARKDOWN), 7):
            self.write(MARKDOWN[begin:begin + 7])
        self.end()

    def script_hostile(self, request):
        self.begin()
        self.write(HOSTILE)
        self.end()

    def script_long(self, request):
        self.begin()
        for paragraph in range(4000):
            self.write(f"Paragraph {paragraph} has **words** enough to be a line of its own.\n\n")
        self.end()

    def script_endless(self, request):
        self.begin()
        for number in range(10 ** 6):
            self.write(f"word{number} ")
            if self.fake.go_on.wait(0.02):
                break

    def script_read(self, request):
        self.begin()
        for done in (12_000, 50_000, 82_000):
            self.send_progress(total=200_000, cache=12_000, processed=done, time_ms=done / 3)
        self.fake.go_on.wait(WAIT_S)
        self.write("It is read.")
        self.end(cache=12_000, prompt=188_000)

    def script_dropped(self, request):
        self.begin()
        self.write("Some of it is forgotten.")
        self.end(cache=20_000, prompt=100_000, kv={
            "policy": "sinks:4+1020", "seen": 120_005, "kept": 60_005, "dropped": 60_000,
            "dropped_spans": [[4, 20_004], [50_000, 80_000], [90_000, 100_000]], "bytes": 9})

    def script_refused(self, request):
        self.send_error_json(400, "the prompt has 300,000 tokens, the context 262,144")

    def script_toolong(self, request):
        if request.get("kv", "").startswith("sinks:"):
            return self.script_words(request)
        message = ("the prompt has 300000 tokens and the context holds 262144 (the model was made "
                   "for up to 262144): shorten it, or start the server with --kv-choice "
                   "sinks:4+9 and send it with \"kv\": \"sinks:4+9\"")
        self.send_json(400, {"error": {
            "message": message, "type": "invalid_request_error",
            "code": "context_length_exceeded", "n_prompt_tokens": 300_000, "n_ctx": 262_144}})

    def script_full(self, request):
        self.begin()
        self.write("As far as the context")
        self.end(finish="length")

    def script_failed(self, request):
        self.send_error_json(500, "the disk is full")

    def script_broken(self, request):
        self.begin()
        self.write("The half of")

    def script_midway(self, request):
        self.begin()
        self.write("The half of")
        self.send_event({"error": {"message": "no memory for it", "type": "server_error"}})

    def script_cut(self, request):
        self.answer = "chatcmpl-1"
        self.begin()
        self.write("The half of")
        self.write(" a sentence")
        self.fake.go_on.wait(WAIT_S)

    def script_length(self, request):
        self.begin()
        self.write("As far as")
        self.end(finish="length")

    def script_timeout(self, request):
        self.begin()
        self.write("As far as")
        self.end(finish="timeout")

    def script_cancelled(self, request):
        self.begin()
        self.write("As far as")
        self.end(finish="cancelled")

    def lets_in(self):
        if self.fake.key in ("", self.headers.get("Authorization", "").removeprefix("Bearer ")):
            return True
        self.send_error_json(401, "no key, or one that is not known")
        return False

    answer = ""  # the id, for answers that are kept
    number = 0  # of the next event

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.pieces = 0
        self.send_event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""},
                                      "finish_reason": None}]})

    def write(self, text, field="content"):
        self.pieces += 1
        self.send_event({"choices": [{"index": 0, "delta": {field: text}, "logprobs": None,
                                      "finish_reason": None}]})

    def end(self, finish="stop", cache=4, prompt=16, kv=None):
        choice = {"index": 0, "delta": {}, "finish_reason": finish}
        if kv:
            choice["kv"] = kv
        timings = {"cache_n": cache, "prompt_n": prompt, "prompt_ms": 100.0,
                   "prompt_per_second": prompt * 10.0, "predicted_n": self.pieces,
                   "predicted_ms": 500.0, "predicted_per_second": self.pieces * 2.0}
        self.send_event({"choices": [choice], "timings": timings})
        usage = {"prompt_tokens": cache + prompt, "completion_tokens": self.pieces,
                 "prompt_tokens_details": {"cached_tokens": cache}}
        self.send_event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def send_progress(self, **progress):
        self.wfile.write(b": a comment\n\n")
        self.send_event({"choices": [], "prompt_progress": progress})

    def send_event(self, event):
        if self.answer:
            self.wfile.write(f"id: {self.answer}:{self.number}\n".encode())
            self.number += 1
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def send_page_file(self, name):
        path = PAGE / name
        if "/" in name or path.suffix not in TYPES or not path.exists():
            return self.send_error_json(404, "there is no such file")
        self.send_body(200, TYPES[path.suffix], path.read_bytes())

    def send_json(self, status, value, retry_after=0):
        self.send_body(status, "application/json", json.dumps(value).encode(), retry_after)

    def send_loading(self, progress):
        error = {"message": f"the model is being loaded ({progress:.0%})", "type": "server_error"}
        self.send_json(503, {"status": "loading", "progress": progress, "error": error},
                       retry_after=1)

    def send_error_json(self, status, message, retry_after=0):
        self.send_json(status, {"error": {"message": message, "type": "error"}}, retry_after)

    def send_body(self, status, content_type, body, retry_after=0):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        if retry_after:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
