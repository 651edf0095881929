"""godwit serve with several models: each answers as it does alone, and they take turns in memory."""

import concurrent.futures
import json
import pathlib
import signal
import unittest

from harness import TINY, CliTest, wait_for
from serve_test import Server

INPUT, UNSUPPORTED = 2, 5
STORIES = pathlib.Path(__file__).resolve().parents[2] / "models" / "stories-3m"
TEXT = "Once upon a time there was a little cat who lived in a house near the sea."
MODELS = {"tiny-llama": TINY, "stories": STORIES}


class ServeModelsTest(CliTest):
    def serve(self, *flags):
        return Server(self, "-m", f"stories={STORIES}", *flags)

    def run_tokens(self, model, text, count, *flags):
        return json.loads(self.ok("run", "-m", MODELS[model], "-p", text, "-n", count,
                                  "--ignore-eos", "--json", *flags))["tokens"]

    def states(self, server):
        models = json.loads(server.ask("GET", "/v1/models")[1])["data"]
        return {model["id"]: model["status"]["value"] for model in models}

    def tokens(self, server, model, text, count=12, **more):
        answer = server.post("/v1/completions", model=model, prompt=text, max_tokens=count,
                             ignore_eos=True, return_token_ids=True, **more)
        self.assertEqual(answer["model"], model)
        return answer["choices"][0]["token_ids"]

    def test_both_at_once_are_each_alone(self):
        # Memory for two of these texts or three: requests of both models wait for it and give way.
        server = self.serve("--kv-memory", "300K", "-np", "4")
        self.assertEqual(self.states(server), {"tiny-llama": "loaded", "stories": "loaded"})
        self.assertIn("the server of tiny-llama and stories answers at http://", server.said)
        asked = [(model, TEXT[:n]) for n in range(30, 70, 8) for model in MODELS]
        with concurrent.futures.ThreadPoolExecutor(10) as threads:
            answers = list(threads.map(lambda it: self.tokens(
                server, *it, count=20, temperature=1, seed=5), asked))
        for (model, text), answer in zip(asked, answers):
            self.assertEqual(answer, self.run_tokens(model, text, 20, "--temp", "1", "--seed", "5"))
        status, text = server.ask("POST", "/v1/completions", {"model": "other", "prompt": "a"})
        self.assertEqual(status, 404)
        self.assertEqual(json.loads(text)["error"]["message"],
                         'this server has no model "other": it has "tiny-llama" and "stories"')
        self.assertEqual(json.loads(server.ask("GET", "/props?model=stories")[1])["n_ctx"], 512)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        self.assertIn(" 200 by stories in ", server.said)

    def test_one_takes_the_place_of_the_other(self):
        cache = self.folder / "cache"
        server = self.serve("--models-loaded", "1", "--cache-dir", cache, "--temp", "0")
        self.assertIn("stories will be loaded by its first request", server.said)
        expected = {model: self.run_tokens(model, TEXT * 6, 12, "--temp", "0") for model in MODELS}
        for model in [*MODELS, *MODELS]:
            self.assertEqual(self.tokens(server, model, TEXT * 6), expected[model])
            self.assertEqual([name for name, state in self.states(server).items()
                              if state == "loaded"], [model])
        self.assertIn("tiny-llama makes room", server.said)
        # Texts of a model that left are on the disk.
        usage = server.post("/v1/completions", model="tiny-llama", prompt=TEXT * 6,
                            max_tokens=1)["usage"]
        self.assertGreaterEqual(usage["prompt_tokens_details"]["disk_tokens"], 64)

    def test_a_client_that_leaves_does_not_wait_for_its_model(self):
        server = self.serve("--models-loaded", "1", "--kv", "sinks:4+60", "--temp", "0")
        endless, _ = server.begin(prompt=TEXT, max_tokens=10**9, ignore_eos=True)
        connection = server.connection()
        connection.request("POST", "/v1/completions",
                           json.dumps({"model": "stories", "prompt": TEXT}))
        wait_for(lambda: "godwit_requests_running 2\n" in server.ask("GET", "/metrics")[1])
        self.assertEqual(server.ask("GET", "/health"), (200, '{"status":"ok"}'))
        connection.close()
        wait_for(lambda: "by stories in" in server.said)
        self.assertIn("the client left before the end", server.said)
        # The model in use stays, for new requests, too.
        self.tokens(server, "tiny-llama", TEXT, count=3)
        self.assertEqual(self.states(server), {"tiny-llama": "loaded", "stories": "unloaded"})
        endless.close()
        self.tokens(server, "stories", TEXT, count=3)

    def test_an_idle_model_goes_and_comes_back(self):
        server = self.serve("--unload-after", "1", "--temp", "0")
        expected = self.run_tokens("tiny-llama", TEXT, 12, "--temp", "0")
        for _ in range(2):
            self.assertEqual(self.tokens(server, "tiny-llama", TEXT), expected)
            wait_for(lambda: self.states(server) == {"tiny-llama": "unloaded",
                                                     "stories": "unloaded"})
        self.assertIn("tiny-llama is unloaded until a request needs it", server.said)

    def test_many_requests_in_turn(self):
        server = self.serve("--models-loaded", "1", "--temp", "0")
        expected = {model: self.run_tokens(model, TEXT, 12, "--temp", "0") for model in MODELS}
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            asked = [*MODELS] * 8
            for model, answer in zip(asked, threads.map(
                    lambda model: self.tokens(server, model, TEXT), asked)):
                self.assertEqual(answer, expected[model])

    def test_refusals(self):
        both = ["serve", "-m", TINY, "-m", STORIES]
        self.assertIn("two models are called \"tiny-llama\"",
                      self.refused(INPUT, "serve", "-m", TINY, "-m", f"tiny-llama={STORIES}"))
        self.assertIn("expected MODEL or NAME=MODEL",
                      self.refused(INPUT, "serve", "-m", f"={TINY}"))
        self.assertIn("--packed", self.refused(INPUT, *both, "--packed", "file"))
        self.assertIn("--models-loaded", self.refused(INPUT, *both, "--models-loaded", "0"))
        self.assertIn("leave out --unload-after", self.refused(
            UNSUPPORTED, "serve", "-m", TINY, "--unload-after", "9",
            variables={"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}))
        self.assertIn("policy \"x\"", self.refused(INPUT, *both, "--kv-choice", "x"))
        self.assertIn("mpirun", self.refused(
            UNSUPPORTED, *both,
            variables={"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}))
        for verb in (["run", "-p", "a"], ["chat"], ["tokenize", "a"]):
            self.assertIn("-m", self.refused(INPUT, *verb, "-m", TINY, "-m", STORIES))

    def test_one_model_may_have_a_name(self):
        server = Server(self, model=f"cat={TINY}")
        answer = server.post("/v1/completions", model="whatever", prompt="a", max_tokens=1)
        self.assertEqual(answer["model"], "cat")
        self.assertNotIn("status", json.loads(server.ask("GET", "/v1/models")[1])["data"][0])


if __name__ == "__main__":
    unittest.main()
