"""What a fio process measured, read from its evidence and believed only after every check.

fio ends with status 0 on a mounted device, having printed a complaint and then a document of zeros, and
has been seen to do so on a full disk with no document at all; hence the checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from drivelab.fio.document import CellFailed, FioResult, documents, from_document, output_text
from drivelab.fio.early_end import INTERRUPTED, ended_early, without_farewell
from drivelab.fio.slices import slices
from drivelab.plan.cell import Cell

__all__ = ["CellFailed", "FioResult", "check", "complete_slices", "read_replay", "read_result", "read_slices"]

_SURE_TO_OCCUR = 20
"""A mix with fewer expected I/Os of one kind may come out without any, by a chance of e to the minus this."""


def read_result(directory: Path, cell: Cell | None = None) -> FioResult:
    """The run whose evidence is in `directory`, judged against `cell`; raises CellFailed unless it holds."""
    *_, result = _finished(directory)
    check(result, cell)
    return result


def read_replay(directory: Path) -> FioResult:
    """As `read_result`, for a replay: what it should have read and written is for the trace to say."""
    return read_result(directory)


def read_slices(directory: Path, cell: Cell) -> list[FioResult]:
    """A run cut into the slices between its status documents; the whole run is judged.

    A last bit shorter than half of `cell.slice_s` becomes part of the slice before it. A run that drivelab ended before
    its time need not have reached the time or the volume of the cell. Raises CellFailed.
    """
    results = list(_finished(directory))
    early = ended_early(directory) is not None
    check(results[-1], replace(cell, runtime_s=None, volume_bytes=None) if early else cell)
    return slices(results, minimum_s=(cell.slice_s or 0.0) / 2)


def complete_slices(directory: Path) -> list[FioResult]:
    """The slices of a fio process that was killed: all that it printed whole. Empty when there is nothing."""
    results: list[FioResult] = []
    try:
        for document in documents(output_text(directory)):
            results.append(from_document(document))
    except CellFailed:
        pass  # the document that was being printed, or nothing at all
    return slices(results)


def _finished(directory: Path) -> Iterator[FioResult]:
    """Results of all status documents of a fio process that ended well, the last being the whole run."""
    try:
        status = int((directory / "exit_code").read_text())
    except (OSError, ValueError):
        raise CellFailed("fio did not end: there is no exit status") from None
    if status < 0:
        raise CellFailed(f"fio was killed by signal {-status}")
    text = output_text(directory)
    if ended_early(directory) is not None:
        text = without_farewell(text)
    elif status == INTERRUPTED:
        raise CellFailed(f"fio was interrupted, not by drivelab; it ended with status {status}")
    elif status != 0:
        raise CellFailed(f"fio ended with status {status}: {_complaint(directory)}")
    for document in documents(text):
        yield from_document(document)


def _complaint(directory: Path) -> str:
    """fio's own words: its last line on stderr, or the last before the JSON; of an I/O error what the kernel said."""
    try:
        errors = (directory / "stderr").read_text(errors="replace")
    except OSError:
        errors = ""
    lines = errors.split("\n") + output_text(directory).partition("{")[0].split("\n")
    last = next((line.strip() for line in lines[::-1] if line.startswith("fio: ")), "no message")
    return last.rpartition(", error=")[2]


def check(result: FioResult, cell: Cell | None = None, *, least_share: float = 0.9, tolerance_s: float = 0.1) -> None:
    """Raise CellFailed unless a whole run did I/O, and the I/O that `cell` asks for, for as long or as much.

    Long enough is `least_share` of the runtime less `tolerance_s`; enough is the volume, but for the last
    block of each thread. One of the two will do where the cell has both. Of two workloads both must have done I/O for
    long enough.
    """
    if not result.ios:
        raise CellFailed("fio did no I/O at all")
    for name, one in (("reads", result.read), ("writes", result.write)):
        if sum(one.bins.values()) != one.latencies:
            raise CellFailed(f"the latency bins of the {name} do not add up to their number")
    if cell is None:
        return
    for name, one, share in (
        ("reads", result.read, cell.read_share),
        ("writes", result.write, 100 - cell.read_share),
    ):
        if cell.beside is not None:
            if not one.ios:
                raise CellFailed(f"there are no {name}, which are all that one of the two workloads does")
            continue
        if one.ios and share == 0:
            raise CellFailed(f"there are {one.ios} {name}, the cell asks for none")
        if not one.ios and result.ios * share / 100 >= _SURE_TO_OCCUR:
            raise CellFailed(f"there are no {name}, the cell asks for {share} %")
    least_s = None if cell.runtime_s is None else least_share * cell.runtime_s - tolerance_s
    least_bytes = None if cell.volume_bytes is None else cell.volume_bytes - cell.threads * cell.largest_block_bytes
    runtimes_s = [one.runtime_s for one in (result.read, result.write) if one.ios]
    runtime_s = max(runtimes_s) if cell.beside is None else min(runtimes_s)
    long_enough = least_s is not None and runtime_s >= least_s
    enough = least_bytes is not None and result.bytes >= least_bytes
    if not (long_enough or enough or (least_s is None and least_bytes is None)):
        asked = [f"{cell.runtime_s:g} s"] if cell.runtime_s is not None else []
        asked += [f"{cell.volume_bytes} bytes"] if cell.volume_bytes is not None else []
        raise CellFailed(f"fio ended after {runtime_s:g} s and {result.bytes} bytes, asked for {' or '.join(asked)}")
