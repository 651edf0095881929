"""What the engine tells about a request: plain data."""

from __future__ import annotations

import dataclasses
import typing

from . import _declarations as c
from ._c import bytes_at, text_of

FINISH_REASONS = ("stop", "length", "context_full", "cancelled", "timeout")


@dataclasses.dataclass(frozen=True)
class TokenLogprob:
    """A token, its natural log-probability before sampling, and the likeliest in its place."""

    token: int
    logprob: float
    top: list[tuple[int, float]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Progress:
    """How much of a prompt has been read. left_ms is None where it is unknown."""

    done_tokens: int
    total_tokens: int
    cached_tokens: int
    elapsed_ms: float
    left_ms: float | None


@dataclasses.dataclass(frozen=True)
class Event:
    """The news of a request since its last event. str(event) is its text."""

    text: str
    tokens: list[int]
    logprobs: list[TokenLogprob]
    progress: Progress | None
    thought_tokens: int
    done: bool

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class KvReport:
    """What a text's cache holds: positions in the text, and bytes."""

    policy: str
    prefill: str
    seen: int
    context_tokens: int
    kept: int
    dropped: list[tuple[int, int]]
    bytes: int
    file_in_memory_bytes: int | None
    file_read_bytes: int | None


@dataclasses.dataclass(frozen=True)
class DraftReport:
    """The result of speculation: sources are (name, accepted tokens, skipped steps)."""

    steps: int
    draft_tokens: int
    accepted: int
    steps_short_of_memory: int
    sources: list[tuple[str, int, int]]


@dataclasses.dataclass(frozen=True)
class Result:
    """A whole answer. finish_reason: one of FINISH_REASONS. str(result) is its text."""

    text: str
    tokens: list[int]
    logprobs: list[TokenLogprob]
    finish_reason: str
    stop: str
    prompt_tokens: int
    cached_tokens: int
    disk_tokens: int
    read_tokens: int
    thought_tokens: int
    pauses: int
    kv: KvReport
    drafts: DraftReport | None
    prompt_ms: float
    predicted_ms: float

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class SavedText:
    """A text in Engine's cache_dir, and the names under which it is kept."""

    id: str
    tokens: int
    bytes: int
    model: str
    names: list[str]


def logprobs_of(tokens: list[int], logprobs: typing.Any) -> list[TokenLogprob]:
    if not logprobs:
        return []
    return [TokenLogprob(token, one.logprob, [(top.token, top.logprob)
                                              for top in one.top[:one.top_count]])
            for token, one in zip(tokens, logprobs[:len(tokens)])]


def progress_of(found: c.godwit_prompt_progress) -> Progress:
    left = found.left_ms
    return Progress(found.done_tokens, found.total_tokens, found.cached_tokens, found.elapsed_ms,
                    left if left >= 0 else None)


def event_of(found: c.godwit_event) -> Event:
    tokens = found.tokens[:found.tokens_count] if found.tokens_count else []
    return Event(bytes_at(found.text, found.text_bytes), tokens,
                 logprobs_of(tokens, found.logprobs),
                 progress_of(found.progress.contents) if found.progress else None,
                 found.thought_tokens, found.done)


def kv_of(found: c.godwit_kv_report) -> KvReport:
    dropped = found.dropped[:found.dropped_count] if found.dropped_count else []
    return KvReport(text_of(found.policy), text_of(found.prefill), found.seen,
                    found.context_tokens, found.kept, [(span.begin, span.end) for span in dropped],
                    found.bytes, found.file_in_memory_bytes if found.in_file else None,
                    found.file_read_bytes if found.in_file else None)


def drafts_of(found: c.godwit_draft_report) -> DraftReport:
    sources = found.sources[:found.sources_count] if found.sources_count else []
    return DraftReport(found.steps, found.draft_tokens, found.accepted,
                       found.steps_short_of_memory,
                       [(text_of(one.name), one.accepted, one.skipped_steps) for one in sources])


def result_of(found: c.godwit_result) -> Result:
    tokens = found.tokens[:found.tokens_count] if found.tokens_count else []
    return Result(
        text=bytes_at(found.text, found.text_bytes), tokens=tokens,
        logprobs=logprobs_of(tokens, found.logprobs),
        finish_reason=FINISH_REASONS[found.finish_reason], stop=text_of(found.stop),
        prompt_tokens=found.prompt_tokens, cached_tokens=found.cached_tokens,
        disk_tokens=found.disk_tokens, read_tokens=found.read_tokens,
        thought_tokens=found.thought_tokens, pauses=found.pauses, kv=kv_of(found.kv.contents),
        drafts=drafts_of(found.drafts.contents) if found.drafts else None,
        prompt_ms=found.prompt_ms, predicted_ms=found.predicted_ms)
