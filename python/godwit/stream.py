"""Work of the library in a thread of its own, so that Python's main thread can be interrupted."""

from __future__ import annotations

import atexit
import collections
import threading
import typing
import weakref

from .errors import CancelledError
from .results import Event, Result

if typing.TYPE_CHECKING:
    import asyncio  # whose import takes a third of the time of all others

T = typing.TypeVar("T")
_SECONDS_TO_END = 5

_running: weakref.WeakSet[Work[typing.Any]] = weakref.WeakSet()
_threads: set[threading.Thread] = set()
# Handles are freed by weakref's own exit function. It is registered here, so that what is
# registered behind it runs before it.
weakref.finalize(Event, int)


@atexit.register
def _end_all() -> None:
    for work in list(_running):
        work.cancel_and_wait()
    # A thread that still runs while Python ends may crash it.
    for thread in list(_threads):
        thread.join(_SECONDS_TO_END)


class Work(typing.Generic[T]):
    """A call of the library in a thread. cancel: asks it to end, and may be called repeatedly.

    The call begins with start() or value(). An interruption in these ends it, at any moment.
    """

    def __init__(self, call: typing.Callable[[], T], cancel: typing.Callable[[], None]) -> None:
        self._claim = threading.Lock()  # taken by the thread, or by an end before it begins
        self._cancel = cancel
        self._done = threading.Event()
        self._result: T | None = None
        self._error: BaseException | None = None
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._lock = threading.Lock()
        # The thread must not keep this object: one that nobody reads any more is cancelled.
        self._thread = threading.Thread(
            target=_run, args=(weakref.ref(self), call, self._claim, self._done), daemon=True,
            name="godwit")

    def start(self) -> None:
        try:
            _running.add(self)
            _threads.difference_update([one for one in list(_threads) if not one.is_alive()])
            self._thread.start()
            _threads.add(self._thread)
        except BaseException:
            self.cancel_and_wait()
            raise

    def __del__(self) -> None:
        if not self._claim.acquire(blocking=False) and not self._done.is_set():
            self._cancel()

    def cancel_and_wait(self) -> None:
        """Ends the call, or keeps the thread from making it."""
        if self._claim.acquire(blocking=False):
            self.settle(None, CancelledError("the call was cancelled before it began"))
        # The library may not have begun yet, and miss the first wish.
        while not self._done.wait(0.02):
            self._cancel()

    def value(self) -> T:
        """Waits for the end. KeyboardInterrupt and the like end the call, too."""
        try:
            if self._thread.ident is None:
                self.start()
            self._done.wait()
        except BaseException:
            self.cancel_and_wait()
            raise
        return self.take()

    def take(self) -> T:
        _running.discard(self)
        if self._error is not None:
            raise self._error
        return typing.cast(T, self._result)

    def settle(self, value: T | None, error: BaseException | None) -> None:
        with self._lock:
            self._result, self._error = value, error
            self._done.set()
        self.wake()

    def wake(self) -> None:
        """Tells coroutines that there is news."""
        with self._lock:
            waiters, self._waiters = self._waiters, []
        for loop, future in waiters:
            try:
                loop.call_soon_threadsafe(_finish, future)
            except RuntimeError:
                pass  # the loop is closed, and nobody waits

    def listen(self) -> asyncio.Future[None]:
        """A future that is done with the next news. Call it, then look, then `hear` it."""
        import asyncio
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._waiters.append((loop, future))
        return future

    async def hear(self, future: asyncio.Future[None]) -> None:
        """Waits for news. A coroutine that is cancelled ends the call."""
        import asyncio
        try:
            await future
        except asyncio.CancelledError:
            await asyncio.get_running_loop().run_in_executor(None, self.cancel_and_wait)
            raise

    async def _wait(self) -> T:
        while not self._done.is_set():
            future = self.listen()
            if not self._done.is_set():
                await self.hear(future)
        return self.take()

    def __await__(self) -> typing.Generator[typing.Any, None, T]:
        return self._wait().__await__()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _run(reference: typing.Any, call: typing.Callable[[], typing.Any], claim: threading.Lock,
         done: threading.Event) -> None:
    if not claim.acquire(blocking=False):
        return
    value, error = None, None
    try:
        value = call()
    except BaseException as caught:  # noqa: BLE001: the reader gets it
        error = caught
    work = reference()
    if work is not None:
        work.settle(value, error)
    done.set()


class Stream(Work[Result]):
    """Events of a request as they come, for `for` and for `async for`.

    Its result() is the whole answer; so is `await stream`. Leaving the object, or close(), ends
    the request.
    """

    def __init__(self, call: typing.Callable[[typing.Callable[[Event], bool]], Result],
                 cancel: typing.Callable[[], None]) -> None:
        self._events: collections.deque[Event] = collections.deque()
        self._came = threading.Condition()
        reference = weakref.ref(self)

        def on_event(event: Event) -> bool:
            stream = reference()
            if stream is None:
                return False
            with stream._came:
                stream._events.append(event)
                stream._came.notify()
            stream.wake()
            return True

        super().__init__(lambda: call(on_event), cancel)
        self.start()

    def settle(self, value: Result | None, error: BaseException | None) -> None:
        super().settle(value, error)
        with self._came:
            self._came.notify()

    def __iter__(self) -> typing.Iterator[Event]:
        return self

    def __next__(self) -> Event:
        try:
            with self._came:
                while not self._events and not self._done.is_set():
                    self._came.wait()
                if self._events:
                    return self._events.popleft()
        except BaseException:  # KeyboardInterrupt, which ends the request
            self.cancel_and_wait()
            raise
        self.take()
        raise StopIteration

    def __aiter__(self) -> typing.AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._events and not self._done.is_set():
            future = self.listen()
            if not self._events and not self._done.is_set():
                await self.hear(future)
        if self._events:
            return self._events.popleft()
        self.take()
        raise StopAsyncIteration

    def result(self) -> Result:
        """Waits for the end, and returns the whole answer, with events that were not read."""
        return self.value()

    def close(self) -> None:
        """Ends the request within a moment."""
        self.cancel_and_wait()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
