"""Run a replay while the kernel's tracer records all its targets in one session."""

from __future__ import annotations

import os
import select
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.programs import Tick, Timing, run_program
from drivelab.trace.capturing import capture as capturing
from drivelab.trace.decode import decode

CAPTURED = "captured-{}.parquet"
"""Name of the decoded capture of each target, by its number."""
NO_DEVICE = "the kernel's tracer sees block devices, not files"
_WAIT = 'echo >"$1"; read -r _ <"$2"'
"""Stands in for the traced command: reports that the capture began, and ends on request."""


def run_watched(
    devices: Sequence[str | None],
    command: Sequence[str],
    directory: Path,
    on_tick: Tick,
    on_hang: Callable[[], None] = lambda: None,
    patience_s: float = 0.0,
) -> tuple[Timing, list[str | None]]:
    """Run a program while capturing the requests to its devices; None is a target that is a file.

    Runs as `drivelab.core.programs.run_program` does. The decoded captures are files CAPTURED in `directory`.

    Also returns for each target why its capture is missing, or None. Raises as `run_program` does. Raises UserError
    before the program starts if the tracer cannot be used.
    """
    raw, gates = directory / "capture", [directory / "begun.fifo", directory / "over.fifo"]
    alone = len(devices) == 1
    captured = {
        number: (raw if alone else raw / str(number), device) for number, device in enumerate(devices) if device
    }
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
        capturing.capture_several(dict(captured.values()), ["sh", "-c", _WAIT, "sh", *map(str, gates)], raw)
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
        reasons = {
            number: _decoded(folder, directory / CAPTURED.format(number)) for number, (folder, _) in captured.items()
        }
        return result, [reasons.get(number, NO_DEVICE) for number in range(len(devices))]
    finally:
        shutil.rmtree(raw)


class _StoppedError(KeyboardInterrupt):
    """The capture ended, so its program must end."""


def _decoded(raw: Path, output: Path) -> str | None:
    """Decode a device's capture; return why that is impossible, or None."""
    try:
        decode(raw, output)
    except UserError as error:
        return str(error)
    return None
