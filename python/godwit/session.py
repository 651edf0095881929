"""Session: one text and its cache."""

from __future__ import annotations

import ctypes
import json
import typing
import weakref

from . import _declarations as c
from ._c import Handle, check, ids_of, lib, member_types, sized, take_text, take_tokens
from .options import CGenerate, GenerateOptions, choose
from .results import Event, KvReport, Progress, Result, event_of, kv_of, progress_of, result_of
from .stream import Stream, Work

if typing.TYPE_CHECKING:
    import numpy
    from .engine import Engine

Message = typing.Mapping[str, typing.Any]
Ids = typing.Sequence[int]

_OnEvent = member_types(c.godwit_generate_options)["on_event"]
_OnRow = member_types(c.godwit_rows_options)["on_row"]
_OnRowsProgress = member_types(c.godwit_rows_options)["on_progress"]


class ChatPrompt:
    """The prompt of a conversation: its `ids`, and how to read the answer to it."""

    def __init__(self, pointer: typing.Any) -> None:
        self._handle = Handle(pointer, lib.godwit_chat_prompt_free)
        self.ids: list[int] = pointer.contents.ids[:pointer.contents.count]
        self.query_tokens: int = pointer.contents.query_tokens

    def read(self, text: str) -> dict[str, typing.Any]:
        """The message that an answer's text is: "role", "content", and where the answer has them
        "reasoning_content" and "tool_calls" in OpenAI's form."""
        encoded = text.encode()
        message: dict[str, typing.Any] = json.loads(take_text(
            lib.godwit_chat_prompt_read, self._handle.get("prompt"), encoded, len(encoded)))
        return message


Prompt = typing.Union[str, Ids, ChatPrompt]


def messages_of(messages: typing.Sequence[Message]) -> tuple[typing.Any, int]:
    """Messages in OpenAI's form as an array of C, and their number."""
    array: typing.Any = (c.godwit_message * len(messages))()
    array.kept = []  # texts to which the messages point
    for made, message in zip(array, messages):
        content = message.get("content") or ""
        if not isinstance(content, str):
            raise TypeError("a message's content: expected a text")
        fields = {key: value for key, value in message.items() if key not in ("role", "content")}
        encoded = content.encode()
        made.struct_size = ctypes.sizeof(c.godwit_message)
        made.role = str(message.get("role", "")).encode()
        array.kept.append(ctypes.c_char_p(encoded))
        made.content = ctypes.cast(array.kept[-1], ctypes.c_void_p)
        made.content_bytes = len(encoded)
        made.fields = json.dumps(fields).encode() if fields else None
    return array, len(messages)


def json_or_none(value: typing.Any) -> bytes | None:
    return None if value is None else json.dumps(value).encode()


class Session:
    """One text and its KV cache. Made by Engine.session and fork. Calls take turns.

    A call on a session goes on from the beginning that its text shares with the last one.
    """

    def __init__(self, engine: Engine, pointer: typing.Any) -> None:
        self.engine = engine
        self._handle = Handle(pointer, lib.godwit_session_free)
        self._works: weakref.WeakSet[Work[typing.Any]] = weakref.WeakSet()

    @property
    def _c(self) -> typing.Any:
        return self._handle.get("session")

    def close(self) -> None:
        """Gives back the cache. Ends a request in progress."""
        for work in list(self._works):
            work.cancel_and_wait()
        self._handle.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- text ---

    def tokenize(self, text: str, add_special: bool = True) -> list[int]:
        """The tokens of a prompt. Raises InputError as soon as it is too long for the context."""
        encoded = text.encode()
        return take_tokens(lib.godwit_session_tokenize, self._c, encoded, len(encoded),
                           add_special)

    @property
    def tokens(self) -> list[int]:
        """The text so far: the last prompt and its output."""
        return take_tokens(lib.godwit_session_tokens, self._c)

    def chat_prompt(self, messages: typing.Sequence[Message],
                    tools: typing.Sequence[typing.Mapping[str, typing.Any]] | None = None,
                    **variables: typing.Any) -> ChatPrompt:
        """The prompt of a conversation by the model's template.

        messages, tools: in OpenAI's form. variables: for the template, as enable_thinking=False.
        """
        array, count = messages_of(messages)
        out = ctypes.POINTER(c.godwit_chat_prompt)()
        check(lib.godwit_session_chat_prompt(self._c, array, count,
                                             json_or_none(variables or None), json_or_none(tools),
                                             ctypes.byref(out)))
        return ChatPrompt(out)

    def fill_prompt(self, before: str, behind: str, files: typing.Mapping[str, str] | None = None,
                    begun: str = "") -> tuple[list[int], list[str]]:
        """The prompt for a text with a hole: its ids, and the tokens that end the filling. Pass
        these as `stop` and as `spelled_out`. files: the other files of a program, by their names.
        """
        pairs = [(name.encode(), text.encode()) for name, text in (files or {}).items()]
        fill = sized(c.godwit_fill_in)
        fill.before, fill.behind, fill.begun = before.encode(), behind.encode(), begun.encode()
        fill.files, fill.files_count = (
            (c.godwit_fill_file * len(pairs))(*(c.godwit_fill_file(*pair) for pair in pairs)),
            len(pairs))
        out = ctypes.POINTER(c.godwit_fill_prompt)()
        check(lib.godwit_session_fill_prompt(self._c, ctypes.byref(fill), ctypes.byref(out)))
        try:
            found = out.contents
            return (found.ids[:found.count],
                    [end.decode() for end in found.ends[:found.ends_count]])
        finally:
            lib.godwit_fill_prompt_free(out)

    # --- generation ---

    @typing.overload
    def generate(self, prompt: Prompt, options: GenerateOptions | None = None, *,
                 stream: typing.Literal[False] = False, **changes: typing.Any) -> Result: ...

    @typing.overload
    def generate(self, prompt: Prompt, options: GenerateOptions | None = None, *,
                 stream: typing.Literal[True], **changes: typing.Any) -> Stream: ...

    def generate(self, prompt: Prompt, options: GenerateOptions | None = None, *,
                 stream: bool = False, **changes: typing.Any) -> Result | Stream:
        """Continues a prompt, the whole text so far: a text, ids, or a ChatPrompt.

        changes: fields of GenerateOptions, as max_tokens=64. stream: return a Stream of events at
        once. A prompt that does not fit is refused before any work (InputError, with its numbers).
        KeyboardInterrupt ends the request, and the session keeps what was read.
        """
        chosen = choose(options, changes)
        chat = prompt if isinstance(prompt, ChatPrompt) else None
        if isinstance(prompt, str):
            prompt = self.tokenize(prompt)
        ids = ids_of(chat.ids if chat is not None else prompt)
        made = CGenerate(chosen, self.engine._sampler,
                         None if chat is None else chat._handle.get("prompt"))
        session = self._c
        call = _Generate(self, session, ids, made, chat)
        if stream:
            work = Stream(call, lambda: lib.godwit_session_cancel(session))
            self._works.add(work)
            return work
        result: Result = self._wait(call)
        return result

    def _wait(self, call: typing.Callable[[], typing.Any]) -> typing.Any:
        """The result of a call on the session, which an interruption ends."""
        session = self._c
        work = Work(call, lambda: lib.godwit_session_cancel(session))
        self._works.add(work)
        return work.value()

    async def agenerate(self, prompt: Prompt, options: GenerateOptions | None = None,
                        **changes: typing.Any) -> Result:
        """generate for coroutines. Cancelling the coroutine ends the request."""
        return await self.generate(prompt, options, stream=True, **changes)

    def chat(self, messages: typing.Sequence[Message],
             tools: typing.Sequence[typing.Mapping[str, typing.Any]] | None = None,
             options: GenerateOptions | None = None, *,
             variables: typing.Mapping[str, typing.Any] | None = None,
             **changes: typing.Any) -> dict[str, typing.Any]:
        """The assistant's next message, as ChatPrompt.read has it."""
        prompt = self.chat_prompt(messages, tools, **(variables or {}))
        return prompt.read(self.generate(prompt, options, **changes).text)

    def cancel(self) -> None:
        """Ends the call in progress within a moment, from any thread."""
        lib.godwit_session_cancel(self._c)

    def fork(self) -> Session:
        """A session with the same text. The caches share memory as far as the texts are equal."""
        out = ctypes.POINTER(c.godwit_session)()
        check(lib.godwit_session_fork(self._c, ctypes.byref(out)))
        return Session(self.engine, out)

    # --- numbers ---

    def logits(self, ids: Ids, first: int = 0, out: numpy.ndarray | None = None) -> numpy.ndarray:
        """The logits of the token after each position from `first` on: float32 [rows, vocab_size].

        The library writes into the array itself. out: an array to write into, C-contiguous.
        """
        return self._rows(lib.godwit_session_logits, self.engine.vocab_size, ids, first, out)

    def hidden_states(self, ids: Ids, first: int = 0,
                      out: numpy.ndarray | None = None) -> numpy.ndarray:
        """The hidden state of each position from `first` on, before the model's last norm: float32
        [rows, hidden_size]. out: as in logits."""
        return self._rows(lib.godwit_session_hidden_states, self.engine.hidden_size, ids, first,
                          out)

    def each_logits(self, ids: Ids, on_row: typing.Callable[[int, numpy.ndarray], typing.Any],
                    first: int = 0,
                    on_progress: typing.Callable[[Progress], typing.Any] | None = None) -> None:
        """Calls on_row(position, logits) for each position from `first` on, for texts whose logits
        would take gigabytes. The array is a view of the library's memory, valid in the call."""
        self._call_rows(lib.godwit_session_logits, ids, first, on_row, on_progress)

    def _rows(self, function: typing.Any, width: int, ids: Ids, first: int,
              out: numpy.ndarray | None) -> numpy.ndarray:
        import numpy
        shape = (max(0, len(ids) - first), width)
        if out is None:
            out = numpy.empty(shape, numpy.float32)
        elif out.shape != shape or out.dtype != numpy.float32 or not out.flags.c_contiguous:
            raise ValueError(f"out: expected float32 {shape}, C-contiguous, found {out.dtype} "
                             f"{out.shape}")
        options = sized(c.godwit_rows_options)
        options.first = first
        options.out = out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self._run_rows(function, ids, options)
        return out

    def _call_rows(self, function: typing.Any, ids: Ids, first: int,
                   on_row: typing.Callable[[int, numpy.ndarray], typing.Any],
                   on_progress: typing.Callable[[Progress], typing.Any] | None) -> None:
        import numpy
        errors: list[BaseException] = []

        def guarded(call: typing.Callable[[], typing.Any]) -> bool:
            try:
                call()
            except BaseException as error:  # noqa: BLE001: raised below
                errors.append(error)
            return not errors

        def row(_: object, position: int, values: typing.Any, width: int) -> bool:
            view = numpy.ctypeslib.as_array(values, (width,))
            view.flags.writeable = False
            return guarded(lambda: on_row(position, view))

        options = sized(c.godwit_rows_options)
        options.first = first
        options.on_row = _OnRow(row)
        if on_progress is not None:
            options.on_progress = _OnRowsProgress(
                lambda _, found: guarded(lambda: on_progress(progress_of(found.contents))))
        try:
            self._run_rows(function, ids, options)
        except BaseException:
            if not errors:
                raise
        if errors:
            raise errors[0]

    def _run_rows(self, function: typing.Any, ids: Ids, options: typing.Any) -> None:
        array, session = ids_of(ids), self._c
        self._wait(lambda: check(function(session, array, len(array), ctypes.byref(options))))

    def logprobs(self, ids: Ids, first: int = 1) -> list[tuple[float, bool]]:
        """For each token from `first` on: its log-probability behind the tokens before it, and
        whether it is the likeliest. The model's, before any sampler."""
        import numpy
        found: list[tuple[float, bool]] = []

        def take(position: int, logits: numpy.ndarray) -> None:
            if position + 1 >= len(ids):
                return
            top = logits.max()
            total = numpy.exp(logits - top, dtype=numpy.float64).sum()
            logit = logits[ids[position + 1]]
            found.append((float(logit - top - numpy.log(total)), bool(logit == top)))

        self.each_logits(ids, take, first - 1)
        return found

    # --- the cache ---

    def save(self) -> int:
        """Waits until the text is in Engine's cache_dir. Returns how many tokens of it are."""
        tokens = ctypes.c_int64()
        check(lib.godwit_session_save(self._c, ctypes.byref(tokens)))
        return tokens.value

    def load(self, name: str) -> int:
        """Replaces the text by the one saved under that name or id. Returns its tokens."""
        tokens = ctypes.c_int64()
        check(lib.godwit_session_load(self._c, name.encode(), ctypes.byref(tokens)))
        return tokens.value

    @property
    def kv(self) -> KvReport:
        """What the cache holds."""
        out = ctypes.POINTER(c.godwit_kv_report)()
        check(lib.godwit_session_get_kv(self._c, ctypes.byref(out)))
        try:
            return kv_of(out.contents)
        finally:
            lib.godwit_kv_report_free(out)

    @property
    def limit_tokens(self) -> int:
        """The longest text that is not refused; 2**63 - 1 where the policy forgets."""
        return self._limits()[0]

    @property
    def learned_positions(self) -> int:
        """The positions that the model has learned; 0 for a model that computes them."""
        return self._limits()[1]

    def _limits(self) -> tuple[int, int]:
        limit, learned = ctypes.c_int64(), ctypes.c_int64()
        check(lib.godwit_session_limits(self._c, ctypes.byref(limit), ctypes.byref(learned)))
        return limit.value, learned.value


class _Generate:
    """godwit_session_generate with its arguments, which it keeps. It listens if it is given a
    function to call with events."""

    def __init__(self, session: Session, pointer: typing.Any, ids: typing.Any, made: CGenerate,
                 chat: ChatPrompt | None) -> None:
        self._arguments = (session, pointer, ids, made, chat)

    def __call__(self, on_event: typing.Callable[[Event], bool] | None = None) -> Result:
        _, session, ids, made, _ = self._arguments
        if on_event is not None:
            made.options.on_event = _OnEvent(lambda _, found: on_event(event_of(found.contents)))
        out = ctypes.POINTER(c.godwit_result)()
        check(lib.godwit_session_generate(session, ids, len(ids), ctypes.byref(made.options),
                                          ctypes.byref(out)))
        try:
            return result_of(out.contents)
        finally:
            lib.godwit_result_free(out)
