"""A program that the kernel's tracer watches: it runs beside the capture, which would wait for one that hangs."""

from __future__ import annotations

import os
import select
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from drivelab.errors import UserError
from drivelab.process import Tick, Timing, run_program
from drivelab.trace import capture as capturing
from drivelab.trace.decode import decode

CAPTURED = "captured.parquet"
_WAIT = 'echo >"$1"; read -r _ <"$2"'
"""What the capture takes for the traced command: says that it has begun, and ends when it is told to."""


class _StoppedError(KeyboardInterrupt):
    """The capture is over, so that its program has to be."""


def run_watched(
    device: str,
    command: Sequence[str],
    directory: Path,
    on_tick: Tick,
    on_hang: Callable[[], None] = lambda: None,
    patience_s: float = 0.0,
) -> tuple[Timing, str | None]:
    """As `drivelab.process.run_program`, with the requests that reach `device` meanwhile in `captured.parquet`.

    Returns also why there is no such file, or None. Raises what `run_program` raises, and UserError when the tracer
    cannot be used, before the program is started.
    """
    raw, gates = directory / "capture", [directory / "begun.fifo", directory / "over.fifo"]
    for gate in gates:
        os.mkfifo(gate)
    begun, over = (os.open(gate, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK) for gate in gates)  # neither ever waits
    stopped, results = threading.Event(), list[Timing | BaseException]()

    def tick(elapsed_s: float) -> None:
        if stopped.is_set():
            raise _StoppedError
        on_tick(elapsed_s)

    def beside() -> None:
        try:
            while not select.select([begun], [], [], 0.2)[0]:
                if stopped.is_set():
                    return
            results.append(run_program(command, directory, tick, on_hang, patience_s))
        except BaseException as error:
            results.append(error)
        finally:
            os.write(over, b"\n")

    thread = threading.Thread(target=beside)
    thread.start()
    try:
        capturing.capture(device, ["sh", "-c", _WAIT, "sh", *map(str, gates)], raw)
    finally:
        stopped.set()
        thread.join()
        for descriptor, gate in zip((begun, over), gates, strict=True):
            os.close(descriptor)
            gate.unlink()
    try:
        result = results[0] if results else UserError("the capture ended before the replay began")
        if isinstance(result, BaseException):
            raise result
        decode(raw, directory / CAPTURED)
    except UserError as error:
        if isinstance(result, BaseException):
            raise
        return result, str(error)
    finally:
        shutil.rmtree(raw)
    return result, None
