"""What workloads, cells and metrics are called in the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from drivelab.analysis.soundness import sound
from drivelab.plan.cell import Cell

_SPEEDS = {"iops": "IOPS", "bandwidth_mib_s": "MiB/s", "iops_per_watt": "IOPS/W", "best_bandwidth_mb_s": "MB/s"}
_TIMES = {
    "mean_latency_us": "us",
    "access_time_us": "us",
    "best_mean_latency_us": "us",
    **{f"p{nines}_latency_us": "us" for nines in ("50", "90", "99", "999", "9999", "99999", "999999")},
    "duration_s": "s",
}
_SCORES = {"score": "score", "figure_of_merit": "score"}

UNITS = {**_SPEEDS, **_TIMES, **_SCORES}
KINDS = {metric: kind for kind, known in (("speed", _SPEEDS), ("time", _TIMES), ("score", _SCORES)) for metric in known}
"""Whether more is better (speed, score) or less is (time)."""

_NAMED_BY = [
    "recording", "kind", "step", "cell", "workload", "threads", "queue_depth", "phase", "phase_value", "phase_pass",
    "point",
]  # fmt: skip


def workload(
    pattern: str, block_size_bytes: int, read_share_pct: int, block_size_max_bytes: float | None = None
) -> str:
    """Name in the words of the PTS, for example `RND 4KiB 65/35`, of a workload that is told by these alone.

    `block_size_max_bytes` is missing (None or NaN) but for a range of sizes. Rows of the tables have the whole name in
    their column `workload`.
    """
    largest = None if pd.isna(block_size_max_bytes) else int(block_size_max_bytes)  # type: ignore[arg-type]
    return Cell(pattern, read_share_pct, block_size_bytes, 1, 1, block_size_max_bytes=largest).workload


def demand(threads: int, queue_depth: int) -> str:
    """What is added to a workload that is measured at several numbers of threads and depths, for example `T4Q32`."""
    return f"T{threads}Q{queue_depth}"


def cell_labels(cells: pd.DataFrame) -> list[str]:
    """For each row of table `cells` its column `cell_label`: unique in its recording and as short as can be.

    All rows of the recordings must be there, unsound ones too: a name depends on the others. Of the columns it needs
    recording, kind, step, cell, workload, threads, queue_depth, phase, phase_value, phase_pass, point. The workload is
    enough as a rule. Threads and depth are added where they vary, but at points (MAX, MID, MIN), which are chosen anew
    in every recording; then the turn of a repeated step where it varies: `RND 4KiB 0/100, wait 5s`,
    `RND 8KiB 65/35, MAX`; then the kind of step, then its number, where a workload comes back in a later step. A soak
    that goes on with the workload of the soak just before has its name: the PTS write saturation is one stretch, whose
    end is measured with the full histogram.
    """
    rows = list(cells[_NAMED_BY].astype(object).itertuples(index=False))  # strings of Arrow take long one by one
    begins = _begins(rows)
    places = [(r.recording, begins[r.recording, r.step], r.kind, r.cell, r.workload, r.threads, r.queue_depth)
              for r in rows]  # fmt: skip
    firsts = dict(zip(reversed(places), reversed(rows), strict=True))
    ordered = sorted(dict.fromkeys(places), key=itemgetter(0, 1))
    labels = dict(zip(ordered, _labels([firsts[one]._replace(step=one[1]) for one in ordered]), strict=True))
    return [labels[place] for place in places]


def named(cells: pd.DataFrame) -> pd.DataFrame:
    """The rows of table `cells` that count, with `cell_label`, also of a frame that has no such column yet."""
    return sound(cells if "cell_label" in cells else cells.assign(cell_label=cell_labels(cells)))


def _labels(rows: Sequence[Any]) -> list[str]:
    """Names of places in a recording that are not the same, in the order of their steps."""
    turns = _turns(rows)
    loads = [None if _text(row.point) else demand(row.threads, row.queue_depth) for row in rows]
    names = [str(row.workload) for row in rows]
    names = _told_apart(rows, names, [None if load is None else f" {load}" for load in loads])
    named_so = _told_apart(rows, names, [f", {turn}" if turn else "" for turn in turns])
    taken: set[tuple[str, str]] = set()
    labels = []
    for row, label in zip(rows, named_so, strict=True):
        of_step = f"{label} step {row.step}"
        names = [label, f"{label} {row.kind}", of_step, f"{of_step} cell {row.cell}"]
        name = next(name for name in names if (row.recording, name) not in taken)
        taken.add((row.recording, name))
        labels.append(name)
    return labels


def _begins(rows: Sequence[Any]) -> dict[tuple[str, int], int]:
    """By recording and step: the step itself, of a soak the one that it began with."""
    loads: dict[tuple[str, int], tuple[Any, ...] | None] = {}
    for row in rows:
        load = (row.workload, row.threads, row.queue_depth, *map(_text, (row.phase, row.phase_value, row.point)))
        loads.setdefault((row.recording, row.step), load if row.kind == "soak" else None)
    found: dict[tuple[str, int], int] = {}
    for place in sorted(loads):
        before = (place[0], place[1] - 1)
        goes_on = loads[place] is not None and loads.get(before) == loads[place]
        found[place] = found[before] if goes_on else place[1]
    return found


def _told_apart(rows: Iterable[Any], names: list[str], additions: list[str | None]) -> list[str]:
    """Names with what is added to them, where one name has several additions in a recording; None adds nothing."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    places = [(row.recording, name) for row, name in zip(rows, names, strict=True)]
    for place, addition in zip(places, additions, strict=True):
        if addition is not None:
            found[place].add(addition)
    return [
        name + (addition or "") if len(found[place]) > 1 else name
        for place, name, addition in zip(places, names, additions, strict=True)
    ]


def _turns(rows: Sequence[Any]) -> list[str]:
    """Which turn of a repeated step each row is of, in words; empty for a step that is not repeated."""
    passes: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for row in rows:
        if _text(row.phase_value):
            passes[row.recording, _text(row.phase), _text(row.phase_value)].add(int(row.phase_pass))
    turns = []
    for row in rows:
        phase, value = _text(row.phase), _text(row.phase_value)
        if _text(row.point):
            turns.append(_text(row.point).upper())
        elif value and len(passes[row.recording, phase, value]) == 1:
            turns.append(f"{phase} {value}")
        else:
            turns.append(f"{phase} {int(row.phase_pass)}" if phase else "")
    return turns


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
