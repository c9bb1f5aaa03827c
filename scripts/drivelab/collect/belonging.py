"""Checks that evidence belongs to its drive, time and journal line, and only there."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.criteria.soundness import (
    ALTERED,
    CONTRADICTS,
    DUPLICATED_ROUND,
    FOREIGN_EVIDENCE,
    MISSING_SLICE,
    MIXED_VERSIONS,
    because,
)
from drivelab.fio.consistency import all_numbers, foreign_option
from drivelab.fio.result import FioResult
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import altered

Line = Mapping[str, Any]
"""A line of the journal."""

_DEVICE = re.compile(r"^(?:# (.+) \((?:block|file) .*\)|filename=(.*))$", re.MULTILINE)
"""The device of a job; in a comment if the job names it by a descriptor (drives.target, as_comment)."""
_SAME_TIME_S = 0.002
"""Tolerance of times: the journal and fio store milliseconds."""
_SAME = 1e-6
"""Relative tolerance: the journal's numbers come from the same document."""
_UNITS = {"iops": "IOPS", "bandwidth_mib_s": "MiB/s", "mean_latency_us": "us mean latency"}


def foreign_devices(recording: Path, plan: Plan, journal: Sequence[Line]) -> dict[str, str]:
    """Return why a directory is foreign, for each whose job names a different device than the recording's drive.

    On the virtual clock, the device name is the drive's serial. Kernel names may change at a reboot. So the expected
    device is that of more than half of the jobs between two gaps of the journal, that is, in one process.
    """
    reasons: dict[str, str] = {}
    for part in _processes(journal):
        devices = {name: device for name in part if (device := _device(recording / name)) is not None}
        if plan.clock == "virtual":
            expected = str(plan.subject["drive"]["serial"])
        elif devices:
            expected, count = Counter(devices.values()).most_common(1)[0]
            if 2 * count <= len(devices):
                continue
        for name, device in devices.items():
            if device != expected:
                reasons[name] = because(FOREIGN_EVIDENCE, f"job.fio is for {device}, the drive is {expected}")
    return reasons


def against_journal(result: FioResult, line: Line) -> str | None:
    """Return why a result does not match its line in the journal, or None."""
    if not all_numbers(result):
        return None
    started_s, journal_s = result.started.timestamp(), line.get("io_started_s")
    if journal_s is not None and abs(started_s - journal_s) > _SAME_TIME_S:
        reason = f"fio began at {_time(started_s)}, according to the journal at {_time(journal_s)}"
        return because(FOREIGN_EVIDENCE, reason)
    for name, in_journal in line.get("metrics", {}).items():
        value = getattr(result, name)
        if not math.isfinite(value):  # without I/O there is no latency
            continue
        if not isinstance(in_journal, int | float) or not math.isclose(in_journal, value, rel_tol=_SAME):
            text = f"{in_journal:.6g}" if isinstance(in_journal, int | float) else json.dumps(in_journal)
            return because(CONTRADICTS, f"fio's JSON has {value:.6g} {_UNITS[name]}, the journal {text}")
    return None


def against_job(result: FioResult, jobs: Sequence[Mapping[str, str]]) -> str | None:
    """Return why a result does not match its job, or None: an option in both has different values."""
    difference = foreign_option(result, jobs)
    return None if difference is None else because(FOREIGN_EVIDENCE, difference)


def fio_of(recording: Path) -> str | None:
    """Return the fio version in a recording's host.json; None if it is not recorded."""
    try:
        version = json.loads((recording / "host.json").read_text(encoding="utf-8")).get("fio")
    except FileNotFoundError:
        return None
    return None if version is None else str(version)


def of_other_version(result: FioResult, version: str | None) -> str | None:
    """Return why a result comes from a different fio than `version`, the recording's, or None.

    fio does not run on the virtual clock, so there is no version to compare.
    """
    actual, expected = ((text or "").replace("-", " ") for text in (result.fio_version, version))
    if not (actual and expected) or actual in (expected, "virtual clock"):
        return None
    return because(MIXED_VERSIONS, f"fio version {actual}, but the recording's host.json has {expected}")


def placed_slices(results: Sequence[FioResult], line: Line, cell: Cell) -> list[tuple[int, FioResult, str | None]]:
    """Number the slices of a soak, each with why the journal's line makes it unsound, or None.

    If there are fewer slices than in the journal, a slice as long as several gets the number of its last. If no slice
    is that long, the end is missing.
    """
    first, expected = int(line["first_slice"]), int(line["slices"])
    missing = expected - len(results)
    if missing <= 0:
        fault = _totals_fault(results, line, missing)
        return [(number, result, fault) for number, result in enumerate(results, start=first)]
    counts = f"the journal has {expected} slices, fio's JSON {len(results)}"
    slices: list[tuple[int, FioResult, str | None]] = []
    number = first - 1
    for result in results:
        length = round(result.runtime_s / cell.slice_s) if cell.slice_s and math.isfinite(result.runtime_s) else 1
        spanned = min(max(length, 1), missing + 1)
        number, missing = number + spanned, missing - (spanned - 1)
        reason = f"{counts}; this slice lasts {result.runtime_s:g} s, as long as {spanned} slices"
        slices.append((number, result, because(MISSING_SLICE, reason) if spanned > 1 else None))
    if missing and slices:
        number, result, fault = slices[-1]
        slices[-1] = (number, result, fault or because(MISSING_SLICE, f"{counts}; the end is missing"))
    return slices


def duplicated(rows: Iterable[tuple[str, FioResult, str | None]]) -> dict[int, str]:
    """Return why duplicated evidence does not count, by the index of its row.

    A row is the directory, the result, and why it is unsound or None. The first sound copy counts. Two runs never
    begin at the same time and transfer the same amount.
    """
    copies: dict[tuple[Any, ...], list[tuple[int, str, bool]]] = {}
    for place, (directory, result, unsound) in enumerate(rows):
        if result.ios > 0:
            totals = [
                (direction.ios, direction.bytes, direction.latencies) for direction in (result.read, result.write)
            ]
            copies.setdefault((result.started, *totals), []).append((place, directory, unsound is None))
    reasons: dict[int, str] = {}
    for same in copies.values():
        original = next((copy for copy in same if copy[2]), same[0])
        for place, directory, _ in same:
            if directory != original[1]:
                reasons[place] = because(DUPLICATED_ROUND, f"its evidence is a copy of {original[1]}")
    return reasons


def _totals_fault(results: Sequence[FioResult], line: Line, missing: int) -> str | None:
    """Return why the totals of the slices contradict the journal's line, or None."""
    if missing < 0:
        return because(CONTRADICTS, f"the journal has {line['slices']} slices, fio's JSON {len(results)}")
    if not all(map(all_numbers, results)):
        return None
    size, runtime_s = sum(result.bytes for result in results), sum(result.runtime_s for result in results)
    if size != line.get("bytes", size):
        return because(CONTRADICTS, f"fio's JSON has {size} bytes, the journal {line['bytes']}")
    if abs(runtime_s - line.get("runtime_s", runtime_s)) > _SAME_TIME_S:
        return because(CONTRADICTS, f"fio's JSON has {runtime_s:g} s, the journal {line['runtime_s']:g} s")
    return None


def _processes(journal: Sequence[Line]) -> list[list[str]]:
    """Return the directories of cells and soaks, grouped by the process that measured them."""
    processes: list[list[str]] = [[]]
    for line in journal:
        if line["event"] == "gap":
            processes.append([])
        elif line["event"] in ("cell", "soak-begins"):
            processes[-1].append(line["directory"])
    return processes


def _device(directory: Path) -> str | None:
    try:
        match = _DEVICE.search((directory / "job.fio").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (match[1] or match[2]).strip() if match is not None else None


def _time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")


_NAMED = 5


def against_checksums(recording: Path) -> str | None:
    """Return why a recording is unsound if any of its files was altered, lost or added, else None."""
    changes = [f"{name} {change}" for name, change in altered(recording).items()]
    if not changes:
        return None
    reason = f"since it was measured, {some(changes, _NAMED)}"
    return because(ALTERED, reason.replace(";", ","))  # semicolons separate reasons


@contextmanager
def refused_unreadable(recording: Path, reason: str | None) -> Iterator[None]:
    """Convert any error in reading an altered recording to a UserError that names the alterations.

    `reason` comes from `against_checksums`. A file that is no longer JSON is such an error: all tables need it.
    """
    try:
        for path in sorted(recording.glob("*.json")) if reason is not None else ():
            json.loads(path.read_bytes())
        yield
    except UserError:
        raise
    except Exception as error:
        if reason is None:
            raise
        raise UserError(
            f"{recording}: {reason}. It can no longer be read ({error!r}); restore it from a copy, or delete the "
            "folder to measure again"
        ) from error


def left_out(tables: Mapping[str, pd.DataFrame], reason: str | None) -> dict[str, pd.DataFrame]:
    """Exclude all rows of an altered recording: cells become unsound, replays and runs uncounted."""
    if reason is None:
        return dict(tables)
    excluded = {}
    for name, table in tables.items():
        marks: dict[str, object] = {"unsound": reason} if name == "cells" else {}
        if "counted" in table.columns:
            marks["counted"] = False
            if "taint_reason" in table.columns:
                marks |= {"tainted": True, "taint_reason": reason}
        excluded[name] = table.head(0) if name in ("latency_bins", "series") else table.assign(**marks)
    return excluded
