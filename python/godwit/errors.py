"""Errors of the engine as Python's exceptions, with their numbers."""

from __future__ import annotations


class Error(Exception):
    """What ended a request or a load: a message that names the thing, the expected and the found.

    code is a name such as "prompt_too_long", or "other". found, limit and fits are the numbers of
    the message, which count `unit`.
    """

    code: str = "other"
    found: int = 0
    limit: int = 0
    fits: int = 0
    learned_positions: int = 0
    ranks: int = 1
    unit: str = "tokens"


class InputError(Error, ValueError):
    """The request itself is wrong: an option, a prompt, a token id."""


class IoError(Error, OSError):
    """The operating system refused: a missing file, a full disk."""


class FormatError(Error, ValueError):
    """A file is not what it claims to be."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but not something this library or this model can do."""


class OutOfMemoryError(Error, MemoryError):
    """It does not fit."""


class CancelledError(Error):
    """The caller asked to stop."""


class InternalError(Error, RuntimeError):
    """A fault of the library."""


# By GODWIT_ERROR_* and GODWIT_CODE_*.
KINDS = {1: InputError, 2: IoError, 3: FormatError, 4: UnsupportedError, 5: OutOfMemoryError,
         6: CancelledError, 7: InternalError}
CODES = ("other", "window_too_long", "text_too_long", "prompt_too_long", "stream_too_long",
         "needs_int8_kv", "quantized_otherwise", "never_reached", "no_draft_heads",
         "no_prediction", "no_eagle3", "weights_too_large", "other_rank",
         "no_draft_model")
