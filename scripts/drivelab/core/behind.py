"""Do calls in a thread, each while the caller prepares the next."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from drivelab.core.termination import deferred

_Argument = TypeVar("_Argument")


class Behind:
    """Do one call at a time in a thread; useful for calls that release Python's lock, as pyarrow's writers do.

    At most one call is under way, so that memory is bounded. An error of a call is raised by the next, or at the end of
    the context. The context ends after the last call, also when a signal ends it.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def do(self, call: Callable[[_Argument], None], argument: _Argument) -> None:
        """Begin `call(argument)` after the end of the previous call; raises what that raised."""
        self.wait()
        self._last = self._pool.submit(call, argument)

    def wait(self) -> None:
        """Wait for the end of the last call; raises what it raised."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with deferred():  # the caller then closes what the call writes to
            self._pool.shutdown()
        if error is None:
            self.wait()
