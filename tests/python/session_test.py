#!/usr/bin/env python3
"""Sessions: streams, coroutines, interruption, forks, logits and chats."""

import asyncio
import gc
import json
import math
import signal
import unittest

import godwit
from godwit.stream import Work
from support import STORIES, TINY, needs_numpy, numpy, run_python

GREEDY = {"temperature": 0, "ignore_eos": True}
# A text without end, of which 64 tokens are kept.
ENDLESS = {"kv": "sinks:4+60"}


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = godwit.Engine(TINY)

    def setUp(self):
        self.session = self.engine.session()

    def test_streams_are_the_whole_text(self):
        whole = self.session.generate("Once upon a time", max_tokens=20, logprobs=0, **GREEDY)
        other = self.engine.session()
        stream = other.generate("Once upon a time", max_tokens=20, stream=True, logprobs=0,
                                **GREEDY)
        events = list(stream)
        self.assertEqual("".join(map(str, events)), whole.text)
        self.assertEqual([token for event in events for token in event.tokens], whole.tokens)
        self.assertEqual([one for event in events for one in event.logprobs], whole.logprobs)
        self.assertTrue(events[-1].done)
        self.assertGreater(sum(event.progress is not None for event in events), 0)
        self.assertEqual(stream.result().tokens, whole.tokens)
        self.assertEqual(other.tokens, self.session.tokens)

    def test_cached_beginnings_are_not_read_again(self):
        first = self.session.generate("Once upon a time", max_tokens=4, **GREEDY)
        again = self.session.generate(self.session.tokens, max_tokens=4, **GREEDY)
        self.assertEqual(first.cached_tokens, 0)
        self.assertEqual(again.cached_tokens, again.prompt_tokens - 1)

    def test_forks_have_the_same_text(self):
        self.session.generate("Once upon a time", max_tokens=4, **GREEDY)
        fork = self.session.fork()
        self.assertEqual(fork.tokens, self.session.tokens)
        text = fork.tokens
        self.assertEqual(fork.generate(text, max_tokens=8, **GREEDY).tokens,
                         self.session.generate(text, max_tokens=8, **GREEDY).tokens)
        self.assertEqual(fork.kv.policy, "dense")
        self.assertGreater(fork.kv.bytes, 0)

    def test_streams_end_early(self):
        endless = self.engine.session(**ENDLESS)
        with endless.generate("Once", stream=True, **GREEDY) as stream:
            for event in stream:
                if event.tokens:
                    break
        self.assertEqual(stream.result().finish_reason, "cancelled")
        count = len(endless.tokens)
        self.assertGreater(count, 0)
        # One that is forgotten ends as well: else the next call would wait for ever.
        forgotten = endless.generate("Once", stream=True, **GREEDY)
        next(forgotten)
        del forgotten
        gc.collect()
        self.assertEqual(len(endless.generate("Once", max_tokens=3, **GREEDY).tokens), 3)

    def test_schema_and_stop(self):
        engine = godwit.Engine(STORIES)
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
                  "additionalProperties": False}
        result = engine.session().generate("A number: ", json_schema=schema, max_tokens=200,
                                           temperature=0)
        if result.finish_reason == "stop":
            self.assertIsInstance(json.loads(result.text)["a"], int)
        told = self.session.generate("Once upon a time", max_tokens=30, **GREEDY).text
        stop = told[5:9]
        stopped = self.engine.generate("Once upon a time", max_tokens=30, stop=[stop], **GREEDY)
        self.assertEqual(stopped.text, told[:told.index(stop)])
        self.assertEqual((stopped.finish_reason, stopped.stop), ("stop", stop))

    def test_bias_bans_and_steps_are_taken(self):
        first = self.session.generate("Once", max_tokens=1, **GREEDY).tokens[0]
        other = self.session.generate("Once", max_tokens=1, logit_bias={first: -math.inf},
                                      **GREEDY)
        self.assertNotEqual(other.tokens, [first])
        likeliest = self.session.generate("Once", max_tokens=1, steps=["top_k"], top_k=1, seed=1)
        self.assertEqual(likeliest.tokens, [first])

    def test_coroutines(self):
        expected = self.session.generate("Once", max_tokens=12, **GREEDY)

        async def talk():
            sessions = [self.engine.session() for _ in range(3)]
            whole = await asyncio.gather(*(one.agenerate("Once", max_tokens=12, **GREEDY)
                                           for one in sessions))
            streamed = []
            async for event in self.engine.session().generate("Once", max_tokens=12, stream=True,
                                                              **GREEDY):
                streamed += event.tokens
            submitted = await self.engine.submit("Once", max_tokens=12, **GREEDY)
            return [*(one.tokens for one in whole), streamed, submitted.tokens]

        self.assertEqual(asyncio.run(talk()), [expected.tokens] * 5)

    def test_cancelled_coroutines_end_their_request(self):
        endless = self.engine.session(**ENDLESS)

        async def give_up():
            begun = asyncio.Event()

            async def read():
                async for event in endless.generate("Once", stream=True, **GREEDY):
                    if event.tokens:
                        begun.set()

            task = asyncio.ensure_future(read())
            await begun.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(give_up())
        self.assertEqual(len(endless.generate("Once", max_tokens=3, **GREEDY).tokens), 3)

    def test_errors_of_coroutines(self):
        async def refuse():
            await self.session.agenerate([1 << 20])

        with self.assertRaises(godwit.InputError):
            asyncio.run(refuse())

    def interrupted(self, line):
        """What a Python prints that is interrupted in an endless text."""
        code = f"""
import godwit
session = godwit.Engine({str(TINY)!r}).session(kv="sinks:4+60")
options = dict(temperature=0, ignore_eos=True)
try:
    {line}
except KeyboardInterrupt:
    print("interrupted", len(session.tokens) > 1, flush=True)
print(len(session.generate("Once", max_tokens=3, **options).tokens), flush=True)
"""
        process = run_python(code)
        try:
            self.assertEqual(process.stdout.readline(), "begun\n")
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        self.assertEqual(process.returncode, 0, errors)
        return output

    def test_keyboard_interrupt(self):
        begun = 'print("begun", flush=True)'
        for line in (f'{begun}; session.generate("Once", **options)',
                     'for event in session.generate("Once", stream=True, **options):\n'
                     f'        event.tokens and print("begun", flush=True)'):
            output = self.interrupted(line)
            self.assertIn("interrupted", output)
            self.assertTrue(output.endswith("3\n"), output)

    def test_calls_that_are_cancelled_before_they_begin_are_not_made(self):
        made = []
        work = Work(lambda: made.append("call"), lambda: made.append("cancel"))
        work.cancel_and_wait()
        with self.assertRaises(godwit.CancelledError):
            work.value()
        self.assertEqual(made, [])

    def test_python_ends_while_a_text_is_written(self):
        process = run_python(f"""
import godwit
stream = godwit.Engine({str(TINY)!r}).submit("Once", kv="sinks:4+60", temperature=0,
                                            ignore_eos=True)
print(next(stream) is not None)
""")
        output, errors = process.communicate(timeout=120)
        self.assertEqual((process.returncode, output), (0, "True\n"), errors)

    @needs_numpy
    def test_logits(self):
        ids = self.session.tokenize("Once upon a time there was")
        all_rows = self.session.logits(ids)
        self.assertEqual(all_rows.shape, (len(ids), self.engine.vocab_size))
        self.assertEqual(all_rows.dtype, numpy.float32)
        out = numpy.empty((2, self.engine.vocab_size), numpy.float32)
        self.assertIs(self.session.logits(ids, len(ids) - 2, out), out)
        numpy.testing.assert_array_equal(out, all_rows[-2:])
        views = []

        def look(position, row):
            self.assertFalse(row.flags.owndata)
            self.assertFalse(row.flags.writeable)
            views.append((position, row.copy()))

        progress = []
        self.session.each_logits(ids, look, 1, progress.append)
        self.assertEqual([position for position, _ in views], list(range(1, len(ids))))
        numpy.testing.assert_array_equal([row for _, row in views], all_rows[1:])
        self.assertEqual(progress[-1].done_tokens, len(ids))
        with self.assertRaises(ValueError):
            self.session.logits(ids, 0, out)
        with self.assertRaisesRegex(ZeroDivisionError, "by zero"):
            self.session.each_logits(ids, lambda *_: 1 / 0)
        self.assertEqual(int(all_rows[-1].argmax()),
                         self.session.generate(ids, max_tokens=1, **GREEDY).tokens[0])

    @needs_numpy
    def test_logprobs_are_those_of_generation(self):
        result = self.session.generate("Once", max_tokens=8, logprobs=0, **GREEDY)
        text = self.session.tokens
        found = self.session.logprobs(text, len(text) - 8)
        self.assertEqual(len(found), 8)
        for (logprob, best), one in zip(found, result.logprobs):
            self.assertAlmostEqual(logprob, one.logprob, places=4)
            self.assertTrue(best)

    @needs_numpy
    def test_hidden_states(self):
        ids = self.session.tokenize("Once upon a time")
        states = self.session.hidden_states(ids)
        self.assertEqual(states.shape, (len(ids), self.engine.hidden_size))
        self.assertTrue(numpy.isfinite(states).all())
        numpy.testing.assert_array_equal(self.session.hidden_states(ids, 2), states[2:])


class ChatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = godwit.Engine(STORIES)
        cls.messages = [{"role": "user", "content": "A story about a bird."}]

    def test_prompts_follow_the_template(self):
        self.assertTrue(self.engine.has_chat_template)
        text = self.engine.apply_chat_template(self.messages)
        self.assertIn("bird", text)
        prompt = self.engine.session().chat_prompt(self.messages)
        self.assertEqual(prompt.ids, self.engine.tokenize(text, add_special=False))
        self.assertGreater(prompt.query_tokens, 1)

    def test_sessions_chat(self):
        session = self.engine.session()
        answer = session.chat(self.messages, max_tokens=12, temperature=0)
        self.assertEqual(answer["role"], "assistant")
        self.assertTrue(answer["content"])
        more = [*self.messages, answer, {"role": "user", "content": "And then?"}]
        before = len(session.tokens)
        session.chat(more, max_tokens=4, temperature=0)
        self.assertGreater(len(session.tokens), before)

    def test_calls_of_tools_are_read(self):
        tools = [{"type": "function", "function": {"name": "weather", "parameters": {
            "type": "object", "properties": {"place": {"type": "string"}}}}}]
        session = godwit.Engine(STORIES, chat_template=TOOLS_TEMPLATE.name).session()
        prompt = session.chat_prompt(self.messages, tools)
        said = '<tool_call>{"name": "weather", "arguments": {"place": "Rome"}}</tool_call>'
        call = prompt.read(said)["tool_calls"][0]
        self.assertEqual(call["function"]["name"], "weather")
        self.assertEqual(json.loads(call["function"]["arguments"]), {"place": "Rome"})
        with self.assertRaises(godwit.UnsupportedError):
            self.engine.session().chat_prompt(self.messages, tools)

    def test_requests_in_openai_form(self):
        chat = self.engine.chat()
        body = {"messages": self.messages, "max_tokens": 12, "temperature": 0}
        whole = chat.complete(**body, logprobs=True, n=2)
        self.assertEqual(len(whole["choices"]), 2)
        content = whole["choices"][0]["message"]["content"]
        self.assertEqual(len(whole["choices"][0]["logprobs"]["content"]), 12)
        chunks = []
        last = chat.complete(**body, on_chunk=chunks.append)
        deltas = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]
        self.assertEqual("".join(deltas), content)
        self.assertEqual(last, chunks[-1])
        with self.assertRaisesRegex(godwit.InputError, "no_such_field"):
            chat.complete(**body, no_such_field=1)

        def stop(chunk):
            raise KeyError("enough")

        with self.assertRaisesRegex(KeyError, "enough"):
            chat.complete(**body, on_chunk=stop)


def setUpModule():
    import tempfile
    global TOOLS_TEMPLATE
    TOOLS_TEMPLATE = tempfile.NamedTemporaryFile("w", suffix=".jinja")
    TOOLS_TEMPLATE.write("{% for tool in tools %}{{ tool | tojson }}{% endfor %}"
                         "{% for message in messages %}{{ message.content }}\n{% endfor %}")
    TOOLS_TEMPLATE.flush()


def tearDownModule():
    TOOLS_TEMPLATE.close()


if __name__ == "__main__":
    unittest.main()
