"""godwit: language models over long texts.

    import godwit

    engine = godwit.Engine("path/to/model", kv="blocks")
    session = engine.session()
    for event in session.generate("Once upon a time", max_tokens=64, stream=True):
        print(event, end="", flush=True)

docs/python.md is the guide. Lengths are in tokens unless a name says bytes.
"""

from ._c import lib as _lib
from .engine import Chat, Engine, Group
from .errors import (CancelledError, Error, FormatError, InputError, InternalError, IoError,
                     OutOfMemoryError, UnsupportedError)
from .options import GenerateOptions, SessionOptions
from .results import (DraftReport, Event, KvReport, Progress, Result, SavedText, TokenLogprob)
from .session import ChatPrompt, Session
from .stream import Stream

__version__: str = _lib.godwit_version().decode()

__all__ = ["CancelledError", "Chat", "ChatPrompt", "DraftReport", "Engine", "Error", "Event",
           "FormatError", "GenerateOptions", "Group", "InputError", "InternalError", "IoError",
           "KvReport", "OutOfMemoryError", "Progress", "Result", "SavedText", "Session",
           "SessionOptions", "Stream", "TokenLogprob", "UnsupportedError"]
