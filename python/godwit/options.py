"""Options of sessions and requests, and their form in C."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import random
import typing

from . import _declarations as c
from ._c import init, optional, strings_of

STEPS = ("penalties", "top_k", "top_p", "min_p", "eta", "temperature")


@dataclasses.dataclass(frozen=True)
class SessionOptions:
    """The options of one text.

    kv: the part of the text that stays in the cache: "dense", "sinks:S+W" or "blocks".
    prefill: how the context is read: "window:W", "star", "ring"; empty: as kv has it.
    kv_type: "auto", "f32", "f16", "bf16" or "int8".
    int8_attention: whether attention multiplies int8; None: if kv_type is "int8".
    context_tokens: the longest text; 0: as long as the model allows.
    chunk_tokens: the tokens of a prompt that one step reads.
    owner: texts of different owners share no cached data.
    gpu_window: the tokens to whose keys the GPU attends for each token; 0: none.
    """

    kv: str = "dense"
    prefill: str = ""
    kv_type: str = "auto"
    int8_attention: bool | None = None
    context_tokens: int = 0
    chunk_tokens: int = 512
    owner: str = ""
    gpu_window: int = 0

    def _c(self) -> c.godwit_session_options:
        made = init(c.godwit_session_options)
        made.kv, made.prefill = optional(self.kv), optional(self.prefill)
        made.kv_type, made.owner = optional(self.kv_type), optional(self.owner)
        made.int8_attention = -1 if self.int8_attention is None else int(self.int8_attention)
        made.context_tokens, made.chunk_tokens = self.context_tokens, self.chunk_tokens
        made.gpu_window = self.gpu_window
        return made


@dataclasses.dataclass(frozen=True)
class GenerateOptions:
    """The options of one request.

    max_tokens: -1: until the model ends the text or the context is full.
    temperature to frequency_penalty: None: what the model's makers recommend, else the engine's
    default. temperature 0 is greedy.
    logit_bias: token -> added to its logit; -inf bans it.
    steps: the sampler's steps in their order, of STEPS; None: all.
    seed: None: a random one.
    sequence: which of several answers to one prompt.
    stop: the text ends before any of these.
    json_schema: the schema of the output, as text or as an object.
    logprobs: the number of likeliest tokens that come with each token; None: no log-probabilities.
    timeout: seconds, after which the answer ends with what it has.
    draft: sources of draft tokens, "ngram", "model", "mtp", "heads", "partial", by commas.
    keep_as: the name under which the cached text stays.
    query_tokens: the length of the question at the prompt's end; None: 1, or as the chat has it.
    spelled_out: special tokens that the text shows.
    """

    max_tokens: int = -1
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    eta: float | None = None
    repeat_last_n: int | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: typing.Mapping[int, float] | None = None
    steps: typing.Sequence[str] | None = None
    seed: int | None = None
    sequence: int = 0
    stop: typing.Sequence[str] = ()
    ignore_eos: bool = False
    json_schema: str | typing.Mapping[str, typing.Any] | None = None
    logprobs: int | None = None
    timeout: float | None = None
    draft: str = ""
    keep_as: str = ""
    query_tokens: int | None = None
    spelled_out: typing.Sequence[str] = ()


_NUMBERS = ("temperature", "top_k", "top_p", "min_p", "eta", "repeat_last_n", "repeat_penalty",
            "presence_penalty", "frequency_penalty")


def choose(options: GenerateOptions | None, changes: typing.Mapping[str, typing.Any]
           ) -> GenerateOptions:
    """The options with some of them changed. Raises TypeError for a name that is none."""
    return dataclasses.replace(options or GenerateOptions(), **changes)


class CGenerate:
    """A request's options in C, with all that they point to."""

    def __init__(self, options: GenerateOptions, recommended: c.godwit_sampler_options,
                 prompt: typing.Any = None) -> None:
        self.sampler = c.godwit_sampler_options.from_buffer_copy(recommended)
        self._fill_sampler(options)
        made = self.options = init(c.godwit_generate_options)
        made.sampler = ctypes.pointer(self.sampler)
        made.max_tokens, made.sequence = options.max_tokens, options.sequence
        if options.query_tokens is not None:
            made.query_tokens = options.query_tokens
        stop = [options.stop] if isinstance(options.stop, str) else options.stop
        self._stop, made.stop_count = strings_of(stop)
        made.stop = self._stop
        self._spelled, made.spelled_out_count = strings_of(options.spelled_out)
        made.spelled_out = self._spelled
        made.ignore_eos = options.ignore_eos
        schema = options.json_schema
        made.json_schema = optional(
            schema if schema is None or isinstance(schema, str) else json.dumps(schema))
        made.top_logprobs = -1 if options.logprobs is None else options.logprobs
        made.timeout_ms = 0 if options.timeout is None else 1000 * options.timeout
        made.draft, made.keep_as = optional(options.draft), optional(options.keep_as)
        if prompt is not None:
            self._prompt = prompt
            made.answers = prompt

    def _fill_sampler(self, options: GenerateOptions) -> None:
        for name in _NUMBERS:
            if getattr(options, name) is not None:
                setattr(self.sampler, name, getattr(options, name))
        self.sampler.seed = random.getrandbits(32) if options.seed is None else options.seed
        if options.logit_bias:
            pairs = options.logit_bias.items()
            self._bias = (c.godwit_logit_bias * len(pairs))(
                *(c.godwit_logit_bias(token, bias) for token, bias in pairs))
            self.sampler.logit_bias, self.sampler.logit_bias_count = self._bias, len(pairs)
        if options.steps is not None:
            unknown = [name for name in options.steps if name not in STEPS]
            if unknown:
                raise ValueError(f"steps: found {unknown[0]!r}, expected {', '.join(STEPS)}")
            ids = [STEPS.index(name) for name in options.steps]
            self._steps = (ctypes.c_int32 * max(1, len(ids)))(*ids)
            self.sampler.steps, self.sampler.steps_count = self._steps, len(ids)
