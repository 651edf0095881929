"""Engine: a loaded model with its tokenizer."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import typing

from . import _declarations as c
from ._c import Handle, check, ids_of, init, lib, member_types, optional, sized, take_strings
from ._c import take_text, take_tokens, text_of
from .options import CGenerate, GenerateOptions, SessionOptions, choose
from .results import Event, Result, SavedText, event_of, result_of
from .session import Ids, Message, Session, json_or_none, messages_of
from .stream import Stream, Work

_FIELDS = member_types(c.godwit_load_options)
_OnChunk: typing.Any = c.FUNCTIONS["godwit_chat_complete"][1][3]  # type: ignore[index]
_SESSION_FIELDS = {field.name for field in dataclasses.fields(SessionOptions)}


class Group:
    """The threads and the memory of KV caches that several engines share."""

    def __init__(self, *, threads: int = 0, numa: str = "", kv_memory_bytes: int = 0,
                 kv_file: str | os.PathLike[str] = "", kv_file_bytes: int = 0) -> None:
        options = init(c.godwit_load_options)
        options.threads, options.numa = threads, optional(numa)
        options.kv_memory_bytes, options.kv_file_bytes = kv_memory_bytes, kv_file_bytes
        options.kv_file = optional(kv_file)
        out = ctypes.POINTER(c.godwit_group)()
        check(lib.godwit_group_new(ctypes.byref(options), ctypes.byref(out)))
        self._handle = Handle(out, lib.godwit_group_free)

    def forget_texts(self) -> None:
        """Gives back the memory of cached texts that nothing holds."""
        check(lib.godwit_group_forget_texts(self._handle.get("group")))

    @property
    def used_kv_bytes(self) -> int:
        """The bytes that the KV caches of all engines take."""
        memory = sized(c.godwit_group_memory)
        check(lib.godwit_group_get_memory(self._handle.get("group"), ctypes.byref(memory)))
        return memory.used_kv_bytes


class Engine:
    """A loaded model. Thread-safe: its sessions and requests go through the model together.

    model: a folder of a Hugging Face checkpoint, or a GGUF file.
    kv to owner: SessionOptions for all sessions and requests that name no others.
    threads: 0: one for every core. isa, weights ("auto", "f32", "bf16", "int8", "int4"), packed,
    pack, packed_dir, numa, step_tokens, prompt_slowdown, mpi, tensor_parallel, mtp, group,
    step_scales, device ("cpu", "cuda", "cuda:N"), gpu_memory_bytes: as the flags of `godwit run`
    and docs/c-api.md have them.
    gpu_attention: whether sessions may have the prefill "gpu"; True where `prefill` is "gpu".
    gpu_window: the tokens to whose keys the GPU attends for each token, which it keeps of
    gpu_window_texts texts; keys in f32 take the place of two.
    draft_model: a smaller model with the same tokenizer, for draft "model".
    cache_dir: the folder for saved texts; empty: nothing is saved.
    on_progress(done_bytes, total_bytes), on_stage(stage), on_warning(message): while it loads.
    on_cache_notice(message): why texts are not saved; from any thread.
    """

    def __init__(self, model: str | os.PathLike[str], *, kv: str = "dense", prefill: str = "",
                 kv_type: str = "auto", int8_attention: bool | None = None,
                 context_tokens: int = 0, chunk_tokens: int = 512, owner: str = "",
                 threads: int = 0, isa: str = "", numa: str = "", weights: str = "auto",
                 packed: str = "", pack: bool = False, packed_dir: str | os.PathLike[str] = "",
                 chat_template: str | os.PathLike[str] = "", kv_memory_bytes: int = 0,
                 kv_file: str | os.PathLike[str] = "", kv_file_bytes: int = 0,
                 cache_dir: str | os.PathLike[str] = "", cache_bytes: int = 0,
                 cache_every_tokens: int = 4096, step_tokens: int = 512,
                 prompt_slowdown: float = 0, mpi: bool = False, tensor_parallel: int = 1,
                 mpi_silence_ms: float = 10_000, mtp: bool = False, group: Group | None = None,
                 needs_text: bool = False, draft_model: str | os.PathLike[str] = "",
                 step_scales: bool = False, device: str = "", gpu_memory_bytes: int = 0,
                 gpu_attention: bool = False, gpu_window: int = 0, gpu_window_texts: int = 1,
                 on_progress: typing.Callable[[int, int], typing.Any] | None = None,
                 on_stage: typing.Callable[[str], typing.Any] | None = None,
                 on_warning: typing.Callable[[str], typing.Any] | None = None,
                 on_cache_notice: typing.Callable[[str], typing.Any] | None = None) -> None:
        self.session_options = SessionOptions(
            kv=kv, prefill=prefill, kv_type=kv_type, int8_attention=int8_attention,
            context_tokens=context_tokens, chunk_tokens=chunk_tokens, owner=owner,
            gpu_window=gpu_window)
        made = init(c.godwit_load_options)
        for name, value in (("isa", isa), ("numa", numa), ("weights", weights),
                            ("packed", packed), ("packed_dir", packed_dir),
                            ("chat_template", chat_template), ("kv_file", kv_file),
                            ("cache_dir", cache_dir), ("draft_model", draft_model),
                            ("device", device)):
            setattr(made, name, optional(value))
        numbers: dict[str, typing.Any] = {
            "threads": threads, "pack": pack, "kv_memory_bytes": kv_memory_bytes,
            "kv_file_bytes": kv_file_bytes, "cache_bytes": cache_bytes,
            "cache_every_tokens": cache_every_tokens, "step_tokens": step_tokens,
            "prompt_slowdown": prompt_slowdown, "mpi": mpi, "tensor_parallel": tensor_parallel,
            "mpi_silence_ms": mpi_silence_ms, "mtp": mtp, "needs_text": needs_text,
            "step_scales": step_scales, "gpu_memory_bytes": gpu_memory_bytes,
            "gpu_attention": gpu_attention or prefill == "gpu",
            "gpu_window": gpu_window * (2 if kv_type == "f32" else 1),
            "gpu_window_texts": gpu_window_texts}
        for name, number in numbers.items():
            setattr(made, name, number)
        if group is not None:
            made.group = group._handle.get("group")
        self._callbacks = _callbacks_of(made, on_progress, on_stage, on_warning, on_cache_notice)
        self._handle = Handle(_load(os.fsencode(model), made, self._callbacks),
                              lib.godwit_engine_free)
        self._facts = sized(c.godwit_engine_facts)
        check(lib.godwit_engine_get_facts(self._c, ctypes.byref(self._facts)))
        # The sampler of the model's makers, and sentences on what of it cannot be followed.
        self._sampler, self.sampler_notes = self._recommended()

    @property
    def _c(self) -> typing.Any:
        return self._handle.get("engine")

    def close(self) -> None:
        """Frees the model once its sessions and requests are gone, too."""
        self._handle.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- facts ---

    @property
    def vocab_size(self) -> int:
        return self._facts.vocab_size

    @property
    def hidden_size(self) -> int:
        return self._facts.hidden_size

    @property
    def max_context(self) -> int:
        """The longest text that the model was made for."""
        return self._facts.max_context

    @property
    def sink_token(self) -> int | None:
        """The token that stands in front of every text, for a model that was trained with it."""
        return None if self._facts.sink_token < 0 else self._facts.sink_token

    @property
    def end_tokens(self) -> list[int]:
        """The tokens with which the model ends a text."""
        self._handle.get("engine")
        count = self._facts.end_tokens_count
        return self._facts.end_tokens[:count] if count else []

    @property
    def threads(self) -> int:
        return self._facts.threads

    @property
    def isa(self) -> str:
        """The instruction set in use."""
        self._handle.get("engine")
        return text_of(self._facts.isa)

    @property
    def kv_memory_bytes(self) -> int:
        """The bytes that the KV caches of all texts may take together."""
        return self._facts.kv_memory_bytes

    @property
    def weight_bytes(self) -> int:
        return self._facts.weight_bytes

    @property
    def load_ms(self) -> float:
        return self._facts.load_ms

    def kv_bytes(self, tokens: int, **session: typing.Any) -> int:
        """The most bytes that the cache of one text of so many tokens takes."""
        found = ctypes.c_int64()
        check(lib.godwit_engine_kv_bytes(self._c, tokens, ctypes.byref(self._session(session)),
                                         ctypes.byref(found)))
        return found.value

    def _recommended(self) -> tuple[c.godwit_sampler_options, list[str]]:
        sampler = init(c.godwit_sampler_options)
        notes = ctypes.POINTER(c.godwit_strings)()
        check(lib.godwit_engine_recommend_sampler(self._c, ctypes.byref(sampler),
                                                  ctypes.byref(notes)))
        return sampler, take_strings(notes)

    # --- text ---

    def tokenize(self, text: str, add_special: bool = True, limit_tokens: int = -1) -> list[int]:
        """The tokens of a text. add_special: frame it as a prompt, for most models with a BOS. A
        text of more than limit_tokens may end early."""
        encoded = text.encode()
        return take_tokens(lib.godwit_engine_tokenize, self._c, encoded, len(encoded), add_special,
                           limit_tokens)

    def detokenize(self, ids: Ids, skip_special: bool = False) -> str:
        array = ids_of(ids)
        return take_text(lib.godwit_engine_detokenize, self._c, array, len(array), skip_special)

    @property
    def has_chat_template(self) -> bool:
        found = ctypes.c_bool()
        check(lib.godwit_engine_has_chat_template(self._c, ctypes.byref(found)))
        return found.value

    def apply_chat_template(self, messages: typing.Sequence[Message],
                            tools: typing.Sequence[typing.Mapping[str, typing.Any]] | None = None,
                            add_generation_prompt: bool = True, **variables: typing.Any) -> str:
        """The conversation as the model's own template writes it, framed: tokenize it with
        add_special=False. variables: for the template, as enable_thinking=False."""
        array, count = messages_of(messages)
        return take_text(lib.godwit_engine_apply_chat_template, self._c, array, count,
                         add_generation_prompt, json_or_none(variables or None),
                         json_or_none(tools))

    # --- sessions and requests ---

    def _session(self, changes: typing.Mapping[str, typing.Any]) -> c.godwit_session_options:
        return dataclasses.replace(self.session_options, **changes)._c()

    def session(self, **options: typing.Any) -> Session:
        """A session. options: fields of SessionOptions, in place of the engine's."""
        made = self._session(options)
        out = ctypes.POINTER(c.godwit_session)()
        check(lib.godwit_session_new(self._c, ctypes.byref(made), ctypes.byref(out)))
        return Session(self, out)

    def submit(self, prompt: str | Ids, options: GenerateOptions | None = None,
               **changes: typing.Any) -> Stream:
        """Begins to continue a prompt in a text of its own, and returns a Stream at once.

        Many may be in progress; a beginning that their prompts share is read once. changes: fields
        of GenerateOptions and of SessionOptions.
        """
        own = {name: changes.pop(name) for name in list(changes) if name in _SESSION_FIELDS}
        session, chosen = self._session(own), choose(options, changes)
        if isinstance(prompt, str):
            prompt = self.tokenize(prompt)
        ids, made = ids_of(prompt), CGenerate(chosen, self._sampler)
        out = ctypes.POINTER(c.godwit_generation)()
        check(lib.godwit_engine_submit(self._c, ids, len(ids), ctypes.byref(made.options),
                                       ctypes.byref(session), ctypes.byref(out)))
        request = Handle(out, lib.godwit_generation_free)
        return Stream(lambda on_event: _follow(request, on_event),
                      lambda: lib.godwit_generation_cancel(request.get("request")))

    def generate(self, prompt: str | Ids, options: GenerateOptions | None = None,
                 **changes: typing.Any) -> Result:
        """submit, and wait for the whole answer."""
        return self.submit(prompt, options, **changes).result()

    def samples(self, prompt: str | Ids, count: int, options: GenerateOptions | None = None,
                **changes: typing.Any) -> list[Result]:
        """Several answers to one prompt, which is read once."""
        if isinstance(prompt, str):
            prompt = self.tokenize(prompt)
        streams = [self.submit(prompt, options, **{**changes, "sequence": i})
                   for i in range(count)]
        try:
            return [stream.result() for stream in streams]
        except BaseException:
            for stream in streams:
                stream.close()
            raise

    def chat(self, **session: typing.Any) -> Chat:
        """Answers to requests in OpenAI's form. session: fields of SessionOptions."""
        return Chat(self, self._session(session))

    # --- saved texts ---

    def saved(self) -> list[SavedText]:
        """The texts in cache_dir, saved by any process."""
        out = ctypes.POINTER(c.godwit_saved_texts)()
        check(lib.godwit_engine_list_saved(self._c, ctypes.byref(out)))
        try:
            return [SavedText(text_of(one.id), one.tokens, one.bytes, text_of(one.model),
                              [text_of(name) for name in one.names[:one.names_count]])
                    for one in out.contents.texts[:out.contents.count]]
        finally:
            lib.godwit_saved_texts_free(out)

    def remove_saved(self, text_id: str) -> bool:
        """Removes a saved text and all that continue it. False: there was none."""
        done = ctypes.c_bool()
        check(lib.godwit_engine_remove_saved(self._c, text_id.encode(), ctypes.byref(done)))
        return done.value

    def stop_keeping(self, name: str) -> bool:
        """Lets the text under that name go when its memory is needed. False: none was on disk."""
        done = ctypes.c_bool()
        check(lib.godwit_engine_stop_keeping(self._c, name.encode(), ctypes.byref(done)))
        return done.value

    # --- ranks ---

    def follow_rank_zero(self) -> None:
        """Serves the requests of rank 0, on every other rank, until rank 0 gives up its engine."""
        check(lib.godwit_engine_follow_rank_zero(self._c))

    @property
    def ranks_ended(self) -> bool:
        ended = ctypes.c_bool()
        check(lib.godwit_engine_ranks_ended(self._c, ctypes.byref(ended)))
        return ended.value


class Chat:
    """Answers to requests in OpenAI's form: the body of /v1/chat/completions or /v1/completions."""

    def __init__(self, engine: Engine, session: c.godwit_session_options) -> None:
        options = sized(c.godwit_chat_options)
        options.session = ctypes.pointer(session)
        out = ctypes.POINTER(c.godwit_chat)()
        check(lib.godwit_chat_new(engine._c, ctypes.byref(options), ctypes.byref(out)))
        self._handle = Handle(out, lib.godwit_chat_free)

    def complete(self, *, on_chunk: typing.Callable[[dict[str, typing.Any]], typing.Any]
                 | None = None, **body: typing.Any) -> dict[str, typing.Any]:
        """The answer to a request whose fields are the arguments, as messages=[...], tools=[...].

        on_chunk: called with each chunk while the answer is written, from another thread. The
        result is then the last chunk.
        """
        if on_chunk is not None:
            body["stream"] = True
        text, errors = json.dumps(body).encode(), list[BaseException]()

        def chunk(_: object, address: int, length: int) -> bool:
            try:
                typing.cast(typing.Any, on_chunk)(json.loads(ctypes.string_at(address, length)))
            except BaseException as error:  # noqa: BLE001: raised below
                errors.append(error)
            return not errors

        callback = _OnChunk(chunk) if on_chunk is not None else _OnChunk()
        chat = self._handle.get("chat")
        try:
            return json.loads(Work(
                lambda: take_text(lib.godwit_chat_complete, chat, text, len(text), callback, None),
                lambda: lib.godwit_chat_cancel(chat)).value())
        except BaseException:
            if errors:
                raise errors[0] from None
            raise


def _follow(request: Handle, on_event: typing.Callable[[Event], bool]) -> Result:
    """Reads a request's events to its end."""
    pointer = request.get("request")
    out = ctypes.POINTER(c.godwit_event)()
    done = False
    while not done:
        check(lib.godwit_generation_next(pointer, -1, ctypes.byref(out)))
        try:
            event = event_of(out.contents)
        finally:
            lib.godwit_event_free(out)
        done = event.done
        if not on_event(event):
            lib.godwit_generation_cancel(pointer)
    result = ctypes.POINTER(c.godwit_result)()
    check(lib.godwit_generation_wait(pointer, ctypes.byref(result)))
    try:
        return result_of(result.contents)
    finally:
        lib.godwit_result_free(result)


class _Callbacks:
    """The callbacks of a load, and what they have raised."""

    def __init__(self) -> None:
        self.cancelled = False
        self.error: BaseException | None = None
        self.kept: list[typing.Any] = []

    def guarded(self, call: typing.Callable[[], typing.Any]) -> bool:
        try:
            call()
        except BaseException as error:  # noqa: BLE001: raised by _load
            self.error = self.error or error
        return self.error is None and not self.cancelled


def _callbacks_of(made: c.godwit_load_options, on_progress: typing.Any, on_stage: typing.Any,
                  on_warning: typing.Any, on_cache_notice: typing.Any) -> _Callbacks:
    all_of = _Callbacks()

    def progress(_: object, done: int, total: int) -> bool:
        return all_of.guarded(lambda: on_progress(done, total) if on_progress else None)

    made.on_progress = _FIELDS["on_progress"](progress)
    for name, call in (("on_stage", on_stage), ("on_warning", on_warning),
                       ("on_cache_notice", on_cache_notice)):
        if call is not None:
            setattr(made, name, _FIELDS[name](
                lambda _, text, call=call: all_of.guarded(lambda: call(text_of(text))) and None))
    # The notices come as long as the engine lives, and this object keeps their functions alive.
    all_of.kept.append(made)
    return all_of


def _load(model: bytes, made: c.godwit_load_options, callbacks: _Callbacks) -> typing.Any:
    out = ctypes.POINTER(c.godwit_engine)()

    def cancel() -> None:
        callbacks.cancelled = True

    try:
        Work(lambda: check(lib.godwit_engine_load(model, ctypes.byref(made), ctypes.byref(out))),
             cancel).value()
    except BaseException:
        if out:
            lib.godwit_engine_free(out)
        if callbacks.error is not None:
            raise callbacks.error from None
        raise
    if callbacks.error is not None:
        lib.godwit_engine_free(out)
        raise callbacks.error
    return out
