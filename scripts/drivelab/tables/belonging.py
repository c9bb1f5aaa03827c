"""Whether evidence belongs where it lies: to this drive, this time and this line of the journal, and only there."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.analysis.soundness import (
    CONTRADICTS,
    DUPLICATED_ROUND,
    FOREIGN_EVIDENCE,
    MISSING_SLICE,
    MIXED_VERSIONS,
    because,
)
from drivelab.fio.consistency import all_numbers
from drivelab.fio.own import foreign_option
from drivelab.fio.result import FioResult
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan

Line = Mapping[str, Any]
"""A line of the journal."""

_DEVICE = re.compile(r"^(?:# (\S+) \(block .*\)|filename=(.*))$", re.MULTILINE)
"""The device of a job: by the comment where the job names it by a descriptor (drives.target, as_comment)."""
_SAME_TIME_S = 0.002
"""The journal and fio have milliseconds."""
_SAME = 1e-6
"""The journal's numbers come from the same document."""
_WORDS = {"iops": "IOPS", "bandwidth_mib_s": "MiB/s", "mean_latency_us": "us mean latency"}


def foreign_devices(recording: Path, plan: Plan, journal: Sequence[Line]) -> dict[str, str]:
    """Of each directory whose job is for another device than the drive of the recording, why it is foreign.

    On the virtual clock a device is called after its drive's serial. Kernel names change, when a machine starts anew:
    between two gaps of the journal, which is in one process, the device is that of more than half of the jobs.
    """
    found: dict[str, str] = {}
    for part in _processes(journal):
        devices = {name: device for name in part if (device := _device(recording / name)) is not None}
        if plan.clock == "virtual":
            right = str(plan.subject["drive"]["serial"])
        elif devices:
            right, often = Counter(devices.values()).most_common(1)[0]
            if 2 * often <= len(devices):
                continue
        for name, device in devices.items():
            if device != right:
                found[name] = because(FOREIGN_EVIDENCE, f"job.fio is for {device}, the drive is {right}")
    return found


def against_journal(result: FioResult, line: Line) -> str | None:
    """Why a run is not the one that the journal's line of its cell is about, if it is not."""
    if not all_numbers(result):
        return None
    started_s, told_s = result.started.timestamp(), line.get("io_started_s")
    if told_s is not None and abs(started_s - told_s) > _SAME_TIME_S:
        words = f"fio began at {_time(started_s)}, by the journal at {_time(told_s)}"
        return because(FOREIGN_EVIDENCE, words)
    for name, told in line.get("metrics", {}).items():
        held = getattr(result, name)
        if not math.isfinite(held):  # of no I/O there is no latency
            continue
        if not isinstance(told, int | float) or not math.isclose(told, held, rel_tol=_SAME):
            words = f"{told:.6g}" if isinstance(told, int | float) else json.dumps(told)
            return because(CONTRADICTS, f"fio's JSON has {held:.6g} {_WORDS[name]}, the journal {words}")
    return None


def against_job(result: FioResult, jobs: Sequence[Mapping[str, str]]) -> str | None:
    """Why a result is not that of its job, if it is not: an option that both name has another value."""
    words = foreign_option(result, jobs)
    return None if words is None else because(FOREIGN_EVIDENCE, words)


def fio_of(recording: Path) -> str | None:
    """The version of fio that a recording says it was made with; None where it says nothing."""
    try:
        told = json.loads((recording / "host.json").read_text(encoding="utf-8")).get("fio")
    except FileNotFoundError:
        return None
    return None if told is None else str(told)


def of_other_version(result: FioResult, version: str | None) -> str | None:
    """Why a result is of another fio than `version`, the one that the recording says it was made with, if it is.

    On the virtual clock no fio ran that could be another one.
    """
    found, told = ((one or "").replace("-", " ") for one in (result.fio_version, version))
    if not (found and told) or found in (told, "virtual clock"):
        return None
    return because(MIXED_VERSIONS, f"another version of fio than the recording's host.json: {found} and not {told}")


def placed_slices(results: Sequence[FioResult], line: Line, cell: Cell) -> list[tuple[int, FioResult, str | None]]:
    """Slices of a soak by their number, with what is against them by the journal's line of the soak.

    Where there are fewer than the journal has, one that is as long as several has the number of its last; where none
    is that long it is the end that is missing.
    """
    first, wanted = int(line["first_slice"]), int(line["slices"])
    lost = wanted - len(results)
    if lost <= 0:
        whole = _whole(results, line, lost)
        return [(number, one, whole) for number, one in enumerate(results, start=first)]
    counts = f"the journal has {wanted} slices, fio's JSON {len(results)}"
    found: list[tuple[int, FioResult, str | None]] = []
    number = first - 1
    for one in results:
        length = round(one.runtime_s / cell.slice_s) if cell.slice_s and math.isfinite(one.runtime_s) else 1
        spanned = min(max(length, 1), lost + 1)
        number, lost = number + spanned, lost - (spanned - 1)
        words = f"{counts}; this one lasts {one.runtime_s:g} s, as {spanned} slices"
        found.append((number, one, because(MISSING_SLICE, words) if spanned > 1 else None))
    if lost and found:
        number, one, reason = found[-1]
        found[-1] = (number, one, reason or because(MISSING_SLICE, f"{counts}; the end is missing"))
    return found


def duplicated(rows: Iterable[tuple[str, FioResult, str | None]]) -> dict[int, str]:
    """Of evidence that several cells or slices have, why it counts once at the most; by the place of the row.

    A row is the directory, what was measured and what is against it. The first counts that nothing is against. No two
    runs begin at the same time and move as much.
    """
    firsts: dict[tuple[Any, ...], list[tuple[int, str, bool]]] = {}
    for place, (directory, result, unsound) in enumerate(rows):
        if result.ios > 0:
            totals = [(one.ios, one.bytes, one.latencies) for one in (result.read, result.write)]
            firsts.setdefault((result.started, *totals), []).append((place, directory, unsound is None))
    found: dict[int, str] = {}
    for same in firsts.values():
        right = next((one for one in same if one[2]), same[0])
        for place, directory, _ in same:
            if directory != right[1]:
                found[place] = because(DUPLICATED_ROUND, f"its evidence is that of {right[1]}")
    return found


def _whole(results: Sequence[FioResult], line: Line, lost: int) -> str | None:
    if lost < 0:
        return because(CONTRADICTS, f"the journal has {line['slices']} slices, fio's JSON {len(results)}")
    if not all(all_numbers(one) for one in results):
        return None
    size, runtime_s = sum(one.bytes for one in results), sum(one.runtime_s for one in results)
    if size != line.get("bytes", size):
        return because(CONTRADICTS, f"fio's JSON has {size} bytes, the journal {line['bytes']}")
    if abs(runtime_s - line.get("runtime_s", runtime_s)) > _SAME_TIME_S:
        return because(CONTRADICTS, f"fio's JSON has {runtime_s:g} s, the journal {line['runtime_s']:g} s")
    return None


def _processes(journal: Sequence[Line]) -> list[list[str]]:
    """Directories of cells and soaks, by the process that measured them."""
    found: list[list[str]] = [[]]
    for line in journal:
        if line["event"] == "gap":
            found.append([])
        elif line["event"] in ("cell", "soak-begins"):
            found[-1].append(line["directory"])
    return found


def _device(directory: Path) -> str | None:
    try:
        match = _DEVICE.search((directory / "job.fio").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (match[1] or match[2]).strip() if match is not None else None


def _time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
