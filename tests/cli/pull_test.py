"""godwit pull, against a server on this machine that behaves as the Hugging Face hub does."""

import hashlib
import http.server
import json
import pathlib
import signal
import threading
import unittest

from harness import GOLDEN, TINY, CliTest, Terminal, wait_for

INPUT, IO, FORMAT, UNSUPPORTED = 2, 3, 4, 5
TINY_GGUF = (GOLDEN / "gguf" / "tiny_llama.gguf").read_bytes()
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_do-not-print-me"
RUN = ["run", "--temp", "0", "-p", "Once", "-n", "3"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.hub.answer(self, self.server.is_cdn)

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Hub:
    """Models by name, each with its files; large ones, *.gguf, lie at another port."""

    def __init__(self, **models):
        self.models = models
        self.gated = set()    # models whose files need the token
        self.private = set()  # that do not show themselves without
        self.cuts = 0         # answers with bytes of files that will be cut
        self.stalls = False   # bytes stop coming after some
        self.ranges = True
        self.sha256 = {}      # of a file, in place of the true one
        self.requests = []    # whether at the other port, path, token, range
        self.servers = []
        for is_cdn in (False, True):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            server.daemon_threads = True
            server.hub, server.is_cdn = self, is_cdn
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            self.servers.append(server)
        self.stop_stalling = threading.Event()

    def close(self):
        self.stop_stalling.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def url(self, is_cdn=False):
        return f"http://127.0.0.1:{self.servers[is_cdn].server_port}"

    def answer(self, handler, is_cdn):
        path = handler.path.split("?")[0].strip("/")
        authorization = handler.headers.get("Authorization", "")
        self.requests.append((is_cdn, path, authorization, handler.headers.get("Range")))
        if is_cdn:
            return self.send_bytes(handler, *path.split("/", 2)[1:])
        is_list = path.startswith("api/models/")
        org, name, _, revision, *rest = path.removeprefix("api/models/").split("/")
        model = f"{org}/{name}"
        allowed = authorization == f"Bearer {TOKEN}"
        if model in self.private and not allowed:
            return handler.reply(401, X_Error_Message="Invalid username or password.")
        if model not in self.models:
            return handler.reply(404, X_Error_Code="RepoNotFound")
        if revision not in ("main", "dev", COMMIT):
            return handler.reply(404, X_Error_Code="RevisionNotFound")
        if is_list:
            return handler.reply(200, json.dumps(self.list(model)).encode())
        if model in self.gated and not allowed:
            return handler.reply(401, X_Error_Code="GatedRepo", X_Error_Message="Restricted.")
        file = "/".join(rest)
        if file.endswith(".gguf"):
            return handler.reply(302, X_Repo_Commit=COMMIT,
                                 Location=f"{self.url(True)}/{model}/{file}")
        return handler.reply(200, self.models[model][file], X_Repo_Commit=COMMIT)

    def list(self, model):
        files = []
        for name, content in self.models[model].items():
            entry = {"rfilename": name, "size": len(content),
                     "blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}
            if name.endswith(".gguf"):
                sha256 = self.sha256.get(name, hashlib.sha256(content).hexdigest())
                entry["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 135}
            files.append(entry)
        return {"id": model, "sha": COMMIT, "gated": model in self.gated, "siblings": files}

    def send_bytes(self, handler, name, file):
        content = next(files[file] for model, files in self.models.items()
                       if model.endswith("/" + name))
        begin = 0
        if self.ranges and (given := handler.headers.get("Range")):
            begin = int(given.removeprefix("bytes=").removesuffix("-"))
        handler.send_response(206 if begin else 200)
        if begin:
            handler.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        handler.send_header("Content-Length", str(len(content) - begin))
        handler.end_headers()
        if self.cuts or self.stalls:
            handler.wfile.write(content[begin:begin + 1000])
            handler.wfile.flush()
            handler.close_connection = True
            if self.stalls:
                self.stop_stalling.wait(300)
            self.cuts -= 1
            return
        handler.wfile.write(content[begin:])


class PullTest(CliTest):
    def setUp(self):
        super().setUp()
        self.hub = Hub(**{
            "Org/Tiny-GGUF": {"README.md": b"Tiny", "Tiny-Q4_K_M.gguf": TINY_GGUF,
                              "Q8_0/Tiny-Q8_0.gguf": TINY_GGUF + b"\0"},
            "org/name": {**{file.name: file.read_bytes() for file in TINY.iterdir()},
                         "pytorch_model.bin": b"no"}})
        self.addCleanup(self.hub.close)
        self.home = self.folder / "home"
        self.cached = self.home / "hub/models--Org--Tiny-GGUF"

    def environment(self, **variables):
        kept = super().environment()
        for name in ("HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE"):
            kept.pop(name, None)
        return {**kept, "no_proxy": "*", "HF_ENDPOINT": self.hub.url(), "HF_HOME": str(self.home),
                **variables}

    def asked_for_bytes(self):
        return [request for request in self.hub.requests if request[0]]

    def test_a_quant(self):
        self.hub.cuts = 2
        result = self.godwit("pull", "Org/Tiny-GGUF:q4_k_m", variables={"HF_TOKEN": TOKEN})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"\Agodwit: Org/Tiny-GGUF:Q4_K_M: [\d.]+ KiB in 1 file, "
                         rf"into {self.home}/hub\n")
        self.assertIn("cut the connection after 1000 of ", result.stderr)
        self.assertIn("godwit: downloaded: -m Org/Tiny-GGUF:Q4_K_M\n", result.stderr)
        self.assertNotIn(TOKEN, result.stderr)
        blob = self.cached / "blobs" / hashlib.sha256(TINY_GGUF).hexdigest()
        link = self.cached / "snapshots" / COMMIT / "Tiny-Q4_K_M.gguf"
        self.assertEqual(result.stdout, f"{link}\n")
        self.assertEqual(link.readlink(), pathlib.Path("../../blobs") / blob.name)
        self.assertEqual(blob.read_bytes(), TINY_GGUF)
        self.assertEqual([file.name for file in blob.parent.iterdir()], [blob.name])
        self.assertEqual((self.cached / "refs/main").read_text(), COMMIT)
        # Gone on with, and without the token where the bytes are.
        self.assertEqual([request[2:] for request in self.asked_for_bytes()],
                         [("", None), ("", "bytes=1000-"), ("", "bytes=2000-")])
        self.assertIn(f"Bearer {TOKEN}", {request[2] for request in self.hub.requests})
        self.assertEqual(self.ok(*RUN, "-m", "Org/Tiny-GGUF:Q4_K_M"),
                         self.ok(*RUN, "-m", GOLDEN / "gguf" / "tiny_llama.gguf"))
        # Nothing is downloaded twice; what else there is stays beside another quant.
        self.ok("pull", "Org/Tiny-GGUF:Q4_K_M")
        self.assertEqual(len(self.asked_for_bytes()), 3)
        report = json.loads(self.ok("pull", "--json", "Org/Tiny-GGUF:Q8_0"))
        self.assertEqual(report["path"], str(link.parent / "Q8_0/Tiny-Q8_0.gguf"))
        self.assertEqual(pathlib.Path(report["path"]).read_bytes(), TINY_GGUF + b"\0")

    def test_a_checkpoint(self):
        self.ok("pull", "org/name")
        files = self.home / "hub/models--org--name/snapshots" / COMMIT
        self.assertFalse((files / "pytorch_model.bin").exists())
        self.assertEqual(self.ok(*RUN, "-m", "org/name"), self.ok(*RUN, "-m", TINY))

    def test_a_list_of_the_files_to_choose_from(self):
        size = len(TINY_GGUF) / 1024
        lines = (f"  Org/Tiny-GGUF:Q4_K_M  {size:.1f} KiB\n"
                 f"  Org/Tiny-GGUF:Q8_0    {size:.1f} KiB")
        self.assertEqual(self.refused(INPUT, "pull", "Org/Tiny-GGUF"),
                         f"Org/Tiny-GGUF has 2 GGUF models, expected one: choose one of\n{lines}")
        self.assertIn("did you mean Org/Tiny-GGUF:Q4_K_M?",
                      self.refused(IO, "pull", "Org/Tiny-GGUF:Q4_KM"))
        listed = self.ok("pull", "Org/Tiny-GGUF:Q8_0", "--dry-run")
        self.assertRegex(listed, r"Q8_0/Tiny-Q8_0.gguf +[\d.]+ KiB\n\n[\d.]+ KiB of 1 file, ")
        self.assertFalse(self.home.exists())
        # What is not in the cache names the command that fetches it.
        self.assertIn("to download it: godwit pull Org/Tiny-GGUF:Q8_0",
                      self.refused(IO, *RUN, "-m", "Org/Tiny-GGUF:Q8_0"))

    def test_an_offer_at_the_terminal(self):
        run = [*RUN, "-m", "Org/Tiny-GGUF:Q4_K_M"]
        terminal = Terminal(self, *run)
        terminal.expect("godwit: Org/Tiny-GGUF:Q4_K_M is not on this machine. ")
        terminal.expect("[y/N] ")
        self.assertEqual(self.hub.requests, [])  # nobody was asked before
        terminal.type("\n")
        self.assertEqual(terminal.finish(), IO)
        self.assertIn("godwit pull Org/Tiny-GGUF:Q4_K_M", terminal.seen)
        terminal = Terminal(self, *run)
        terminal.expect("[y/N] ")
        terminal.type("y\n")
        self.assertEqual(terminal.finish(), 0)
        self.assertIn(self.ok(*run).strip(), terminal.seen)

    def test_refusals(self):
        for name in ("Tiny", "./Tiny", "Org/Tiny:", "a b/c", "Org/Tiny/x"):
            self.assertIn("expected ORG/NAME", self.refused(INPUT, "pull", name))
        self.assertIn("there is no such model", self.refused(IO, "pull", "Org/Other"))
        self.assertIn("has no revision \"x\"",
                      self.refused(IO, "pull", "org/name", "--revision", "x"))
        self.hub.private.add("org/name")
        self.assertIn("private or gated", self.refused(IO, "pull", "org/name"))
        self.hub.gated.add("Org/Tiny-GGUF")
        quant = "Org/Tiny-GGUF:Q4_K_M"
        result = self.godwit("pull", quant)
        self.assertEqual(result.returncode, IO)
        self.assertIn(f"accept them at {self.hub.url()}/Org/Tiny-GGUF, and set HF_TOKEN",
                      result.stderr)
        (self.home / "token").write_text(f"{TOKEN}\n")
        self.ok("pull", quant)
        offline = {"HF_HUB_OFFLINE": "1"}
        self.assertIn("HF_HUB_OFFLINE is set",
                      self.refused(UNSUPPORTED, "pull", "org/name", variables=offline))
        self.ok(*RUN, "-m", quant, variables=offline)
        endpoint = {"HF_ENDPOINT": "huggingface.co"}
        self.assertIn("HF_ENDPOINT: ",
                      self.refused(INPUT, "pull", "org/name", variables=endpoint))

    def test_hostile_servers(self):
        self.hub.sha256["Tiny-Q4_K_M.gguf"] = "0" * 64
        result = self.godwit("pull", "Org/Tiny-GGUF:Q4_K_M")
        self.assertEqual(result.returncode, FORMAT)
        self.assertIn(f"is {hashlib.sha256(TINY_GGUF).hexdigest()}, expected {64 * '0'}",
                      result.stderr)
        self.assertEqual(list((self.cached / "blobs").iterdir()), [])
        self.hub.models["Org/Tiny-GGUF"]["../../../../x-Q2_K.gguf"] = TINY_GGUF
        self.assertIn("expected a name inside the model's folder",
                      self.refused(FORMAT, "pull", "Org/Tiny-GGUF:Q2_K"))
        self.assertEqual(list(self.folder.rglob("x-Q2_K.gguf")), [])

    def test_interrupted(self):
        self.hub.stalls = True
        terminal = Terminal(self, "pull", "Org/Tiny-GGUF:Q4_K_M")
        terminal.expect("downloading Org/Tiny-GGUF:Q4_K_M: 1000 B of ")
        terminal.type("\x03")
        self.assertEqual(terminal.finish(), 130)
        self.assertIn("cancelled; godwit pull continues the download from here", terminal.seen)
        self.hub.stalls, self.hub.ranges = False, False  # all of it comes again
        self.ok("pull", "Org/Tiny-GGUF:Q4_K_M")
        self.assertEqual(self.asked_for_bytes()[-1][3], "bytes=1000-")
        self.ok(*RUN, "-m", "Org/Tiny-GGUF")

    def test_killed_and_two_at_once(self):
        self.hub.stalls = True
        process = self.start("pull", "Org/Tiny-GGUF:Q4_K_M")
        blob = hashlib.sha256(TINY_GGUF).hexdigest()
        partial = self.cached / "blobs" / f"{blob}.incomplete"
        wait_for(lambda: partial.exists() and partial.stat().st_size == 1000)
        other = self.start("pull", "Org/Tiny-GGUF:Q4_K_M", text=True)
        while "waiting for another process" not in (line := other.stderr.readline()):
            self.assertNotEqual(line, "")
        self.hub.stalls = False
        process.send_signal(signal.SIGKILL)
        self.assertIn(str(self.cached), other.communicate()[0])
        self.assertEqual(other.returncode, 0)
        self.assertEqual(self.asked_for_bytes()[-1][3], "bytes=1000-")
        self.assertEqual((self.cached / "blobs" / blob).read_bytes(), TINY_GGUF)


if __name__ == "__main__":
    unittest.main()
