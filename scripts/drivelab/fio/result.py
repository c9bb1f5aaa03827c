"""Read a fio process's results from its evidence, and check them.

The checks are needed because fio can end with status 0 after a failure. On a mounted device it prints a complaint and
then a document of zeros. On a full disk it has printed no document at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from drivelab.core.errors import CellFailed
from drivelab.fio.document import NOTHING, FioResult, NoIo, documents, from_document, output_text
from drivelab.fio.early_end import INTERRUPTED, ended_early, without_farewell
from drivelab.fio.series import slices
from drivelab.plan.cell import TRIM, Cell
from drivelab.plan.expressible import directions_of, names_of_workloads, workloads_of

__all__ = [
    "CellFailed",
    "FioResult",
    "by_workload",
    "check",
    "complete_slices",
    "read_result",
    "read_slices",
]

_SURE_TO_OCCUR = 20
"""With this many expected I/Os of a kind, a mix has none of them with probability e^-20; fewer prove nothing."""


def read_result(directory: Path, cell: Cell | None = None) -> FioResult:
    """Return the run in `directory` after checks against `cell`. Raises CellFailed if one fails."""
    *_, result = _finished(directory)
    check(result, cell)
    return result


def read_slices(directory: Path, cell: Cell) -> list[FioResult]:
    """Return the slices of a run, after checks on the whole run.

    A last slice shorter than half of `cell.slice_s` is merged into the slice before it. A run that drivelab ended early
    need not reach the time or volume of the cell. Raises CellFailed if a check fails.
    """
    results = list(_finished(directory))
    early = ended_early(directory) is not None
    check(results[-1], replace(cell, runtime_s=None, volume_bytes=None) if early else cell)
    return slices(results, minimum_s=(cell.slice_s or 0.0) / 2)


def complete_slices(directory: Path) -> list[FioResult]:
    """Return the slices of a killed fio process from its complete documents. The result is empty if there are none."""
    results: list[FioResult] = []
    with suppress(CellFailed):  # an incomplete last document, or no document
        for document in documents(output_text(directory)):
            results.append(from_document(document))
    return slices(results)


def _finished(directory: Path) -> Iterator[FioResult]:
    """Yield the results of all status documents of a successful fio process. The last is the whole run."""
    try:
        status = int((directory / "exit_code").read_text())
    except (OSError, ValueError):
        raise CellFailed("fio did not end: no exit status is recorded") from None
    if status < 0:
        raise CellFailed(f"fio was killed by signal {-status}")
    text = output_text(directory)
    if ended_early(directory) is not None:
        text = without_farewell(text)
    elif status == INTERRUPTED:
        raise CellFailed(f"another process interrupted fio; it ended with status {status}")
    elif status != 0:
        raise CellFailed(f"fio ended with status {status}: {_complaint(directory)}")
    for document in documents(text):
        yield from_document(document)


def _complaint(directory: Path) -> str:
    """Return fio's last message, on stderr or before the JSON."""
    try:
        errors = (directory / "stderr").read_text(errors="replace")
    except OSError:
        errors = ""
    lines = errors.split("\n") + output_text(directory).partition("{")[0].split("\n")
    last = next((line.strip() for line in lines[::-1] if line.startswith("fio: ")), "no message")
    return last.rpartition(", error=")[2]


def by_workload(result: FioResult, cell: Cell) -> tuple[FioResult, ...]:
    """Return the result of each of several simultaneous workloads.

    Raises CellFailed if fio reports another number of them.
    """
    if (directions := directions_of(cell)) is None or result.parts:
        if len(result.parts) != len(workloads_of(cell)):
            raise CellFailed(f"fio reports {len(result.parts) or 1} groups for {len(workloads_of(cell))} workloads")
        return result.parts
    return tuple(_only(result, name) for name in directions)


def _only(result: FioResult, name: str) -> FioResult:
    read, write, trim = (getattr(result, each) if each == name else NOTHING for each in ("read", "write", TRIM))
    return replace(result, read=read, write=write, trim=trim)


def check(result: FioResult, cell: Cell | None = None, *, least_share: float = 0.9, tolerance_s: float = 0.1) -> None:
    """Raise CellFailed unless a whole run did the I/O of `cell`.

    The runtime must reach `least_share` of the cell's, minus `tolerance_s`. The volume may lack the last block of each
    thread. If the cell has both limits, one is enough. Each of several workloads must reach the runtime.
    """
    if not result.ios:
        raise NoIo
    for name, direction in (("reads", result.read), ("writes", result.write), ("trims", result.trim)):
        if sum(direction.bins.values()) != direction.latencies:
            raise CellFailed(f"the latency bins of the {name} do not add up to their number")
    if result.parts and (cell is None or cell.beside is None):
        raise CellFailed(f"fio reports {len(result.parts)} groups of jobs instead of one")
    if cell is None:
        return
    if cell.beside is not None:
        for part, workload, name in zip(
            by_workload(result, cell), workloads_of(cell), names_of_workloads(cell), strict=True
        ):
            if not part.ios:
                raise CellFailed(f"fio did no I/O for one of the simultaneous workloads: {name}")
            check(part, workload, least_share=least_share, tolerance_s=tolerance_s)
        return
    shares = (cell.read_share, 100 - cell.read_share) if cell.operation is None else (0, 0)
    for name, direction, share in zip(("reads", "writes"), (result.read, result.write), shares, strict=True):
        if direction.ios and share == 0:
            raise CellFailed(f"fio did {direction.ios} {name}, but the cell has none")
        if not direction.ios and result.ios * share / 100 >= _SURE_TO_OCCUR:
            raise CellFailed(f"fio did no {name}, but the cell has {share} %")
    least_s = None if cell.runtime_s is None else least_share * cell.runtime_s - tolerance_s
    least_bytes = None if cell.volume_bytes is None else cell.volume_bytes - cell.threads * cell.largest_block_bytes
    runtime_s = result.runtime_s
    long_enough = least_s is not None and runtime_s >= least_s
    enough = least_bytes is not None and result.bytes >= least_bytes
    if not (long_enough or enough or (least_s is None and least_bytes is None)):
        limits = [f"{cell.runtime_s:g} s"] if cell.runtime_s is not None else []
        limits += [f"{cell.volume_bytes} bytes"] if cell.volume_bytes is not None else []
        raise CellFailed(
            f"fio ended after {runtime_s:g} s and {result.bytes} bytes, but the cell needs {' or '.join(limits)}"
        )
