"""Run a program beside a capture: a capture cannot stop a hung program."""

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
"""Stands in for the traced command: reports that the capture began, and ends on request."""


class _StoppedError(KeyboardInterrupt):
    """The capture ended, so its program must end."""


def run_watched(
    device: str,
    command: Sequence[str],
    directory: Path,
    on_tick: Tick,
    on_hang: Callable[[], None] = lambda: None,
    patience_s: float = 0.0,
) -> tuple[Timing, str | None]:
    """Run a program while capturing requests to `device`.

    Runs as `drivelab.process.run_program` does. The capture is written to `captured.parquet`.

    Also returns why that file is missing, or None. Raises as `run_program` does. Raises UserError before the program
    starts if the tracer cannot be used.
    """
    raw, gates = directory / "capture", [directory / "begun.fifo", directory / "over.fifo"]
    for gate in gates:
        os.mkfifo(gate)
    begun, over = (os.open(gate, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK) for gate in gates)  # neither open blocks
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
