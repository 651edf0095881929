"""Clients of other people ask godwit serve, and find what they are made for."""

import json
import os
import pathlib
import shutil
import sys
import unittest

import anthropic
import openai
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from harness import TINY, CliTest  # noqa: E402
from serve_test import Server  # noqa: E402

TEXT = "Once upon a time there was a cat. " * 10
TOOLS_TEMPLATE = (
    "{{ bos_token }}{% if tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<tool_call>{\"name\": \"{{ call.function.name }}\", "
    "\"arguments\": {{ call.function.arguments | tojson }}}</tool_call>{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
HELLO = [{"role": "user", "content": TEXT}]


class ClientTest(CliTest):
    @classmethod
    def setUpClass(cls):
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY",
                     "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
            os.environ.pop(name, None)

    def folder_with_tools(self):
        """A model whose template knows tools."""
        folder = self.folder / "with-tools"
        shutil.copytree(TINY, folder)
        config = json.loads((folder / "tokenizer_config.json").read_text())
        config["chat_template"] = TOOLS_TEMPLATE
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        return folder

    def serve(self, *flags):
        server = Server(self, "--temp", "0", "-n", "12", "--ignore-eos", *flags)
        return f"http://127.0.0.1:{server.port}/v1"


class OpenAi(ClientTest):
    def client(self, *flags, key="any"):
        client = openai.OpenAI(base_url=self.serve(*flags), api_key=key, max_retries=0)
        self.addCleanup(client.close)
        return client

    def client_that_ends(self):
        """Of a model whose template knows tools."""
        server = Server(self, "--temp", "0", model=self.folder_with_tools())
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="any",
                               max_retries=0)
        self.addCleanup(client.close)
        return client

    def test_models(self):
        client = self.client()
        model, = client.models.list()
        self.assertEqual(model.id, TINY.name)
        self.assertEqual(client.models.retrieve(model.id), model)
        with self.assertRaises(openai.NotFoundError) as caught:
            client.models.retrieve("another")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaisesRegex(openai.NotFoundError, "embeddings are not supported"):
            client.embeddings.create(model=model.id, input="x")

    def test_chats(self):
        client = self.client()
        whole = client.chat.completions.create(model="any", messages=HELLO)
        self.assertEqual(whole.choices[0].finish_reason, "length")
        self.assertEqual(whole.usage.completion_tokens, 12)
        pieces, usage = [], None
        for chunk in client.chat.completions.create(model="any", messages=HELLO, stream=True,
                                                    stream_options={"include_usage": True}):
            pieces += [choice.delta.content or "" for choice in chunk.choices]
            usage = chunk.usage or usage
        self.assertEqual("".join(pieces), whole.choices[0].message.content)
        self.assertEqual(usage.completion_tokens, 12)
        self.assertGreater(usage.prompt_tokens_details.cached_tokens, 0)

    def test_helpers_for_streams(self):
        client = self.client()
        # What its length has ended the client takes for an error.
        whole = client.chat.completions.create(model="any", messages=HELLO)
        stop = whole.choices[0].message.content[8:12]
        with client.chat.completions.stream(model="any", messages=HELLO, stop=[stop]) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
            self.assertEqual(stream.get_final_completion().choices[0].message.content, text)

    def test_texts(self):
        client = self.client()
        answer = client.completions.create(model="any", prompt="Once upon a time", n=2, logprobs=2,
                                           max_tokens=4, stop=["zzz"], seed=1)
        self.assertEqual(len(answer.choices), 2)
        self.assertEqual(len(answer.choices[1].logprobs.token_logprobs), 4)
        self.assertEqual(len(answer.choices[0].logprobs.top_logprobs[0]), 2)
        streamed = client.completions.create(model="any", prompt="Once upon a time", max_tokens=4,
                                             seed=1, stream=True)
        self.assertEqual("".join(chunk.choices[0].text for chunk in streamed),
                         answer.choices[0].text)

    def test_texts_of_a_list(self):
        client = self.client()
        prompts = ["Once upon a time", "The tide"]
        asked = {"model": "any", "max_tokens": 4, "seed": 1}
        alone = [client.completions.create(prompt=prompt, **asked) for prompt in prompts]
        both = client.completions.create(prompt=prompts, **asked)
        self.assertEqual([choice.text for choice in both.choices],
                         [answer.choices[0].text for answer in alone])
        self.assertEqual(both.usage.prompt_tokens,
                         sum(answer.usage.prompt_tokens for answer in alone))
        echoed = client.completions.create(prompt=prompts, echo=True, logprobs=1, **asked)
        for prompt, choice, answer in zip(prompts, echoed.choices, alone):
            self.assertEqual(choice.text, prompt + answer.choices[0].text)
            self.assertIsNone(choice.logprobs.token_logprobs[0])
            self.assertEqual(len(choice.logprobs.top_logprobs),
                             answer.usage.prompt_tokens + 4)

    def test_a_prompt_that_does_not_fit(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client().chat.completions.create(
                model="any", messages=[{"role": "user", "content": TEXT * 100}])
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        self.assertGreater(caught.exception.body["n_prompt_tokens"],
                           caught.exception.body["n_ctx"])

    def test_fields_that_say_what_is_so_anyway(self):
        client = self.client()
        asked = {"model": "any", "max_tokens": 2, "store": False, "service_tier": "auto",
                 "modalities": ["text"], "prompt_cache_key": "k", "metadata": {"a": "b"},
                 "reasoning_effort": "low"}
        self.assertTrue(client.chat.completions.create(messages=HELLO, **asked).choices)
        with self.assertRaisesRegex(openai.BadRequestError, "--lenient"):
            client.chat.completions.create(messages=HELLO, **{**asked, "store": True})

    def test_a_begun_message_is_continued(self):
        client = self.client()
        whole = client.chat.completions.create(model="any", messages=HELLO)
        begin = whole.choices[0].message.content[:6]
        rest = client.chat.completions.create(
            model="any", messages=[*HELLO, {"role": "assistant", "content": begin}])
        self.assertGreater(rest.usage.prompt_tokens, whole.usage.prompt_tokens)
        self.assertTrue(rest.choices[0].message.content)

    def test_logprobs_of_chats(self):
        answer = self.client().chat.completions.create(model="any", messages=HELLO, logprobs=True,
                                                       top_logprobs=3)
        content = answer.choices[0].logprobs.content
        self.assertEqual(len(content), 12)
        self.assertEqual(len(content[0].top_logprobs), 3)

    def test_responses(self):
        client = self.client()
        whole = client.responses.create(model="any", input=TEXT, metadata={"a": "b"})
        self.assertEqual(whole.status, "incomplete")
        self.assertEqual(whole.incomplete_details.reason, "max_output_tokens")
        self.assertEqual(whole.usage.output_tokens, 12)
        self.assertEqual(whole.metadata, {"a": "b"})
        chat = client.chat.completions.create(model="any", messages=HELLO)
        self.assertEqual(whole.output_text, chat.choices[0].message.content)
        stop = {"stop": [whole.output_text[8:12]]}
        with client.responses.stream(model="any", input=TEXT, extra_body=stop) as stream:
            text = "".join(event.delta for event in stream
                           if event.type == "response.output_text.delta")
            self.assertTrue(whole.output_text.startswith(text))
            self.assertEqual(stream.get_final_response().output_text, text)
        again = client.responses.create(
            model="any", instructions="Be brief.",
            input=[*HELLO, *whole.output, {"role": "user", "content": "And?"}])
        self.assertEqual(again.output[0].role, "assistant")

    def test_json_of_a_schema(self):
        client = self.client_that_ends()
        schema = {"type": "object", "required": ["age", "name"], "additionalProperties": False,
                  "properties": {"age": {"type": "integer", "minimum": 1, "maximum": 9},
                                 "name": {"enum": ["cat", "dog"]}}}
        format = {"type": "json_schema", "json_schema": {"name": "animal", "schema": schema}}
        for draft in ({}, {"draft": "ngram"}):
            answer = client.chat.completions.create(
                model="any", messages=HELLO, response_format=format, extra_body=draft)
            self.assertEqual(answer.choices[0].finish_reason, "stop")
            animal = json.loads(answer.choices[0].message.content)
            self.assertIn(animal["age"], range(1, 10))
            self.assertIn(animal["name"], ("cat", "dog"))
        whole = answer.choices[0].message.content
        streamed = client.chat.completions.create(model="any", messages=HELLO, stream=True,
                                                  response_format=format)
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in streamed), whole)
        answer = client.responses.create(
            model="any", input=TEXT,
            text={"format": {"type": "json_schema", "name": "animal", "schema": schema}})
        self.assertIn(json.loads(answer.output_text)["name"], ("cat", "dog"))
        with self.assertRaises(openai.BadRequestError) as caught:
            client.chat.completions.create(
                model="any", messages=HELLO, response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"type": "nothing"}}})
        self.assertIn("type", caught.exception.body["message"])

    def test_tools(self):
        client = self.client_that_ends()
        place = {"type": "object", "required": ["place"], "additionalProperties": False,
                 "properties": {"place": {"$ref": "#/$defs/place"}},
                 "$defs": {"place": {"enum": ["Ulm", "Rome"]}}}
        tools = [{"type": "function", "function": {"name": "weather", "parameters": place}},
                 {"type": "function", "function": {"name": "now"}}]
        asked = {"model": "any", "messages": HELLO, "tools": tools, "tool_choice": {
            "type": "function", "function": {"name": "weather"}}}
        choice = client.chat.completions.create(**asked).choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertIsNone(choice.message.content)
        call, = choice.message.tool_calls
        self.assertEqual(call.function.name, "weather")
        self.assertIn(json.loads(call.function.arguments)["place"], ("Ulm", "Rome"))
        with client.chat.completions.stream(**asked) as stream:
            for _ in stream:
                pass
            streamed = stream.get_final_completion().choices[0]
        self.assertEqual(streamed.message.tool_calls[0].function.arguments,
                         call.function.arguments)
        self.assertEqual(streamed.finish_reason, "tool_calls")
        required = client.chat.completions.create(**{
            **asked, "tool_choice": "required", "parallel_tool_calls": False}).choices[0]
        self.assertIn(required.message.tool_calls[0].function.name, ("weather", "now"))
        answer = client.chat.completions.create(
            model="any", tools=tools, max_tokens=5,
            messages=[*HELLO, choice.message,
                      {"role": "tool", "tool_call_id": call.id, "content": "Rain."}])
        self.assertGreater(answer.usage.prompt_tokens, 0)

    def test_fields_of_ours(self):
        client = self.client("--kv-choice", "sinks:4+60")
        answer = client.chat.completions.create(
            model="any", messages=HELLO, extra_body={"kv": "sinks:4+60", "return_token_ids": True})
        self.assertEqual(len(answer.choices[0].token_ids), 12)

    def test_errors(self):
        keys = self.folder / "keys.txt"
        keys.write_text("right\n")
        client = self.client("--api-key-file", keys, key="right")
        client.models.list()
        with self.assertRaises(openai.AuthenticationError):
            client.with_options(api_key="wrong").models.list()
        with self.assertRaises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="any", messages=HELLO, temperature=-1)
        self.assertIn("temperature", caught.exception.body["message"])
        with self.assertRaises(openai.NotFoundError):
            client.embeddings.create(model="any", input="x")


class Anthropic(ClientTest):
    def client(self, *flags, key="any", model=TINY):
        server = Server(self, "--temp", "0", *flags, model=model)
        client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key=key,
                                     max_retries=0)
        self.addCleanup(client.close)
        return client

    def test_messages(self):
        keys = self.folder / "keys.txt"
        keys.write_text("right\n")
        client = self.client("--api-key-file", keys, key="right")
        asked = {"model": "any", "system": "Be brief.", "messages": HELLO}
        whole = client.messages.create(max_tokens=6, **asked)
        self.assertEqual(whole.stop_reason, "max_tokens")
        self.assertEqual(whole.usage.output_tokens, 6)
        counted = client.messages.count_tokens(**asked)
        self.assertEqual(counted.input_tokens,
                         whole.usage.input_tokens + whole.usage.cache_read_input_tokens)
        with client.messages.stream(max_tokens=6, **asked) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason, "max_tokens")
        self.assertEqual(final.usage.input_tokens + final.usage.cache_read_input_tokens,
                         counted.input_tokens)
        stopped = client.messages.create(max_tokens=6, stop_sequences=[text[2:4]], **asked)
        self.assertEqual(stopped.stop_sequence, text[2:4])
        with self.assertRaises(anthropic.AuthenticationError):
            client.with_options(api_key="wrong").messages.create(max_tokens=6, **asked)
        with self.assertRaisesRegex(anthropic.BadRequestError, "pictures"):
            client.messages.create(model="any", max_tokens=6, messages=[{
                "role": "user", "content": [{"type": "image", "source": {
                    "type": "base64", "media_type": "image/png", "data": "aa"}}]}])

    def test_tools(self):
        folder = self.folder_with_tools()
        client = self.client(model=folder)
        schema = {"type": "object", "required": ["place"],
                  "properties": {"place": {"enum": ["Ulm", "Rome"]}}}
        asked = {"model": "any", "max_tokens": 100,
                 "tools": [{"name": "weather", "input_schema": schema}]}
        choice = {"type": "tool", "name": "weather"}
        whole = client.messages.create(messages=HELLO, tool_choice=choice, **asked)
        self.assertEqual(whole.stop_reason, "tool_use")
        call, = whole.content
        self.assertEqual(call.name, "weather")
        self.assertIn(call.input["place"], ("Ulm", "Rome"))
        with client.messages.stream(messages=HELLO, tool_choice=choice, **asked) as stream:
            final = stream.get_final_message()
        self.assertEqual(final.content[0].input, call.input)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "Rain."}
        answer = client.messages.create(
            messages=[*HELLO, {"role": "assistant", "content": whole.content},
                      {"role": "user", "content": [result]}], **asked)
        self.assertGreater(answer.usage.input_tokens, 0)


class LangChain(ClientTest):
    def test_invoke_and_stream(self):
        model = ChatOpenAI(base_url=self.serve(), api_key="any", model="any", temperature=0,
                           max_retries=0)
        messages = [SystemMessage("Be brief."), HumanMessage(TEXT)]
        whole = model.invoke(messages)
        self.assertEqual(whole.usage_metadata["output_tokens"], 12)
        self.assertEqual("".join(chunk.content for chunk in model.stream(messages)), whole.content)
        self.assertEqual([answer.content for answer in model.batch([messages, messages])],
                         [whole.content] * 2)


if __name__ == "__main__":
    unittest.main()
