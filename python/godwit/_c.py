"""The shared library, its functions, and conversions between C and Python."""

from __future__ import annotations

import ctypes
import operator
import os
import pathlib
import typing
import weakref

from . import _declarations as c
from .errors import CODES, KINDS, Error

Any = typing.Any
Struct = typing.TypeVar("Struct", bound=ctypes.Structure)


def _load() -> ctypes.CDLL:
    named = os.environ.get("GODWIT_LIBRARY")
    path = named or str(pathlib.Path(__file__).parent / "lib" / "libgodwit.so.0")
    try:
        loaded = ctypes.CDLL(path)  # releases the GIL around every call
    except OSError as error:
        raise ImportError(f"the library of godwit cannot be loaded: {error}") from error
    for name, (result, arguments) in c.FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


lib = _load()


def text_of(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "replace")


def bytes_at(address: int | None, length: int) -> str:
    """The text of `length` bytes at an address."""
    if not address or not length:
        return ""
    return ctypes.string_at(address, length).decode("utf-8", "replace")


def error_of(found: c.godwit_error) -> Error:
    error = KINDS.get(found.kind, Error)(text_of(found.message))
    error.code = CODES[found.code] if found.code < len(CODES) else "other"
    error.found, error.limit, error.fits = found.found, found.limit, found.fits
    error.learned_positions, error.ranks = found.learned_positions, found.ranks
    error.unit = text_of(found.unit)
    return error


def check(result: Any) -> None:
    """Raises the error that a function returned, if it did."""
    if not result:
        return
    error = error_of(result.contents)
    lib.godwit_error_free(result)
    raise error


def optional(text: str | os.PathLike[str] | None) -> bytes | None:
    """An optional text of C: NULL for None and for an empty one."""
    return os.fsencode(text) if text else None


def sized(kind: type[Struct]) -> Struct:
    """A struct with its struct_size, and zeros."""
    struct = kind()
    struct.struct_size = ctypes.sizeof(kind)
    return struct


def init(kind: type[Struct]) -> Struct:
    """A struct of options with its defaults."""
    struct = kind()
    getattr(lib, kind.__name__ + "_init")(ctypes.byref(struct), ctypes.sizeof(kind))
    return struct


def ids_of(ids: Any) -> ctypes.Array[ctypes.c_int32]:
    """Token ids as an array of C: from any sequence of whole numbers, NumPy's among them."""
    if hasattr(ids, "tolist"):
        ids = ids.tolist()
    try:
        return (ctypes.c_int32 * len(ids))(*map(operator.index, ids))
    except TypeError:
        raise TypeError("expected a text, or a sequence of token ids") from None


def strings_of(texts: typing.Iterable[str]) -> tuple[Any, int]:
    """Texts as an array of C, which keeps them, and their number."""
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded), len(encoded)


def take_text(call: typing.Callable[..., Any], *arguments: Any) -> str:
    """The text that a function with an output argument godwit_text** makes."""
    out = ctypes.POINTER(c.godwit_text)()
    check(call(*arguments, ctypes.byref(out)))
    try:
        return bytes_at(out.contents.data, out.contents.bytes)
    finally:
        lib.godwit_text_free(out)


def take_tokens(call: typing.Callable[..., Any], *arguments: Any) -> list[int]:
    """The tokens that a function with an output argument godwit_tokens** makes."""
    out = ctypes.POINTER(c.godwit_tokens)()
    check(call(*arguments, ctypes.byref(out)))
    try:
        ids: list[int] = out.contents.ids[:out.contents.count]
        return ids
    finally:
        lib.godwit_tokens_free(out)


def take_strings(found: Any) -> list[str]:
    """The texts of a godwit_strings*, which is freed."""
    try:
        return [text_of(text) for text in found.contents.strings[:found.contents.count]]
    finally:
        lib.godwit_strings_free(found)


def member_types(kind: Any) -> dict[str, Any]:
    """The types of a struct's members."""
    return {field[0]: field[1] for field in kind._fields_}


class Handle:
    """An opaque object of C, freed with this one, and at the latest when the program ends."""

    def __init__(self, pointer: Any, free: typing.Callable[[Any], None]) -> None:
        self.pointer = pointer
        self._finalizer = weakref.finalize(self, free, pointer)

    def close(self) -> None:
        self._finalizer()
        self.pointer = None

    def get(self, what: str) -> Any:
        if self.pointer is None:
            raise ValueError(f"the {what} is closed")
        return self.pointer
