"""The folder in which a replay works, beside its output: locked, and what a killed replay left in it is saved."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.errors import UserError
from drivelab.replay import native
from drivelab.replay.outcome import write_outcome
from drivelab.replay.records import open_results, open_schedule
from drivelab.trace.outputs import writable

PLAN = "trace"
"""Stem of the schedule and of what is planned."""
_LOCK = "replay.lock"


@contextmanager
def folder_of(output: Path) -> Iterator[Path]:
    """An empty folder `.NAME.replay` beside `output`, this process's until the end of the block, when it goes.

    The completed part of a replay that was killed before, with this process's predecessor, is kept as
    `STEM.interrupted-N.parquet`. Raises UserError when another replay is at work there, or the folder is none of a
    replay.
    """
    folder = output.with_name(f".{output.name}.replay")
    with writable(output):
        folder.mkdir(exist_ok=True)
        if any(folder.iterdir()) and not (folder / _LOCK).is_file():
            raise UserError(f"{folder}: is no folder of a replay and is in the way; move it, or give -o another name")
        lock = (folder / _LOCK).open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{output}: another replay is writing it; wait for it, or give -o another name") from None
        _save(folder, output)
        for path in folder.iterdir():
            if path.name != _LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _save(folder: Path, output: Path) -> None:
    schedule, planned = folder / f"{PLAN}.schedule", folder / f"{PLAN}.planned.parquet"
    results = folder / native.RESULTS
    if not (schedule.exists() and planned.exists() and results.exists()):
        return
    try:
        if open_results(results).header["schedule_checksum"] != open_schedule(schedule).header["checksum"]:
            return
        if native.engine_report(folder)["state"] == "prepared":
            return
        kept = _free_name(output)
        write_outcome(planned, results, kept, {"engine": "native"})
    except UserError as error:
        print(f"an interrupted replay had begun, but what it left is of no use: {error}")
    else:
        print(f"an interrupted replay had begun; the part that it did is in {kept}")


def _free_name(output: Path) -> Path:
    number = 1
    while (kept := output.with_name(f"{output.stem}.interrupted-{number}{output.suffix}")).exists():
        number += 1
    return kept
