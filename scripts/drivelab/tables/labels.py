"""Name workloads, cells and metrics in the tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from drivelab.core.units import parse_size
from drivelab.criteria.soundness import sound
from drivelab.plan.cell import Cell, fills, pause_s

_SPEEDS = {
    "iops": "IOPS",
    "bandwidth_mib_s": "MiB/s",
    "iops_per_watt": "IOPS/W",
    "iops_within_limit": "IOPS",
    "best_bandwidth_mb_s": "MB/s",
}
_TIMES = {
    "mean_latency_us": "us",
    "access_time_us": "us",
    "response_time_us": "us",
    "p999_response_us": "us",
    "best_mean_latency_us": "us",
    **{f"p{nines}_latency_us": "us" for nines in ("50", "90", "99", "999", "9999", "99999", "999999")},
    "duration_s": "s",
}
SCORE = "score"
"""Value of the column `protocol` for a score of several measurements, which is named in `measurement`."""
_SCORES = {"score": "score", "figure_of_merit": "score"}


def score_label(members: int) -> str:
    """Return the `cell_label` of a score of several measurements."""
    return f"score of {members} results" if members > 1 else "score of 1 result"


UNITS = {**_SPEEDS, **_TIMES, **_SCORES}
KINDS = {metric: kind for kind, known in (("speed", _SPEEDS), ("time", _TIMES), ("score", _SCORES)) for metric in known}
"""Kind of each metric: more is better for speed and score, less is better for time."""

_BLOCK_SIZE = re.compile(r"(RND|SEQ) (\d+[KMGT]?i?B)(?:-\d+[KMGT]?i?B)?(?: mix)? \d+/\d+")
_LARGE_BLOCK_BYTES = 64 << 10
_NAMED_BY = [
    "recording", "kind", "step", "cell", "workload", "threads", "queue_depth", "phase", "phase_value", "phase_pass",
    "point",
]  # fmt: skip


def workload(
    pattern: str, block_size_bytes: int, read_share_pct: int, block_size_max_bytes: float | None = None
) -> str:
    """Return the PTS name of a workload, for example `RND 4KiB 65/35`.

    The arguments must fully describe the workload.
    `block_size_max_bytes` is None or NaN unless the workload has a range of sizes. The column `workload` of the tables
    has the complete name of any workload.
    """
    largest = None if pd.isna(block_size_max_bytes) else int(block_size_max_bytes)  # type: ignore[arg-type]
    return Cell(pattern, read_share_pct, block_size_bytes, 1, 1, block_size_max_bytes=largest).workload


def known_by_throughput(label: str) -> bool:
    """Return whether people know a workload by its throughput: sequential I/O, or blocks of 64 KiB and more."""
    match = _BLOCK_SIZE.match(label)
    return match is not None and (match[1] == "SEQ" or parse_size(match[2]) >= _LARGE_BLOCK_BYTES)


def demand(threads: int, queue_depth: int) -> str:
    """Return the suffix for threads and queue depth, such as `T4Q32`."""
    return f"T{threads}Q{queue_depth}"


def loads_of(cells: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Return the `demand` of cells by measurement and label, if all rows of the label have the same."""
    cells = cells.reindex(columns=["measurement", "cell_label", "threads", "queue_depth"]).dropna().drop_duplicates()
    equal = cells.drop_duplicates(["measurement", "cell_label"], keep=False)
    return {(row[0], row[1]): demand(int(row[2]), int(row[3])) for row in equal.itertuples(index=False)}


def cell_labels(cells: pd.DataFrame) -> list[str]:
    """Return the column `cell_label` of table `cells`: short, unique in a recording.

    `cells` must have all rows of its recordings, unsound ones too, because a label depends on the others. Columns:
    recording, kind, step, cell, workload, threads, queue_depth, phase, phase_value, phase_pass, point.

    Usually the workload is enough. Where needed, the label also has, in this order:
    * threads and queue depth where cells of the recording differ in them, but not at points (MAX, MID, MIN), which each
      recording chooses for itself;
    * the turn of a repeated step: `RND 4KiB 0/100, wait 5s`, `RND 8KiB 65/35, MAX`, `RND 4KiB 0/100, new`;
    * the kind of step, then its number, if a later step repeats the workload.

    A soak that continues the workload of the soak before it has the same label: the PTS write saturation test is one
    stretch, whose last part is measured with the full histogram.
    """
    rows = list(cells[_NAMED_BY].astype(object).itertuples(index=False))  # access to single Arrow strings is slow
    begins = _begins(rows)
    places = [(r.recording, begins[r.recording, r.step], r.kind, r.cell, r.workload, r.threads, r.queue_depth)
              for r in rows]  # fmt: skip
    firsts = dict(zip(reversed(places), reversed(rows), strict=True))
    ordered = sorted(dict.fromkeys(places), key=itemgetter(0, 1))
    labels = dict(zip(ordered, _labels([firsts[place]._replace(step=place[1]) for place in ordered]), strict=True))
    return [labels[place] for place in places]


def named(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the sound rows of table `cells`; add the column `cell_label` if missing."""
    return sound(cells if "cell_label" in cells else cells.assign(cell_label=cell_labels(cells)))


def _labels(rows: Sequence[Any]) -> list[str]:
    """Return unique labels for places of recordings, in the order of their steps."""
    turns = _turns(rows)
    loads = ["" if _text(row.point) else demand(row.threads, row.queue_depth) for row in rows]
    loads_in: defaultdict[str, set[str]] = defaultdict(set)
    for row, load in zip(rows, loads, strict=True):
        if load:
            loads_in[row.recording].add(load)
    names = [
        f"{row.workload} {load}" if load and len(loads_in[row.recording]) > 1 else str(row.workload)
        for row, load in zip(rows, loads, strict=True)
    ]
    names = _with_additions(rows, names, [f", {turn}" if turn else "" for turn in turns])
    taken: set[tuple[str, str]] = set()
    labels = []
    for row, label in zip(rows, names, strict=True):
        with_step = f"{label} step {row.step}"
        candidates = [label, f"{label} {row.kind}", with_step, f"{with_step} cell {row.cell}"]
        name = next(name for name in candidates if (row.recording, name) not in taken)
        taken.add((row.recording, name))
        labels.append(name)
    return labels


def _begins(rows: Sequence[Any]) -> dict[tuple[str, int], int]:
    """Return {(recording, step): step in which the soak began, or the step itself}."""
    loads: dict[tuple[str, int], tuple[Any, ...] | None] = {}
    for row in rows:
        load = (row.workload, row.threads, row.queue_depth, *map(_text, (row.phase, row.phase_value, row.point)))
        loads.setdefault((row.recording, row.step), load if row.kind == "soak" else None)
    begins: dict[tuple[str, int], int] = {}
    for place in sorted(loads):
        before = (place[0], place[1] - 1)
        continues = loads[place] is not None and loads.get(before) == loads[place]
        begins[place] = begins[before] if continues else place[1]
    return begins


def _with_additions(rows: Iterable[Any], names: list[str], additions: list[str]) -> list[str]:
    """Append each addition to its name where the name has several in a recording."""
    by_name: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    places = [(row.recording, name) for row, name in zip(rows, names, strict=True)]
    for place, addition in zip(places, additions, strict=True):
        by_name[place].add(addition)
    return [
        name + addition if len(by_name[place]) > 1 else name
        for place, name, addition in zip(places, names, additions, strict=True)
    ]


def _turns(rows: Sequence[Any]) -> list[str]:
    """Describe the turn of a repeated step for each row. The result is empty for a step that is not repeated."""
    passes: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for row in rows:
        if _text(row.phase):
            passes[row.recording, _text(row.phase), _text(row.phase_value)].add(int(row.phase_pass))
    turns = []
    for row in rows:
        phase, value = _text(row.phase), _text(row.phase_value)
        if _text(row.point):
            turns.append(_text(row.point).upper())
        elif phase and len(passes[row.recording, phase, value]) == 1:
            turns.append(f"{phase} {value}".rstrip())
        else:
            turns.append(f"{phase} {int(row.phase_pass)}" if phase else "")
    return turns


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


STEADY_STATE = "steady state"
ROUNDS = "rounds"
RELATIVE_STANDARD_ERROR = "relative standard error"
UNTIL = (STEADY_STATE, ROUNDS, RELATIVE_STANDARD_ERROR)
"""Stop rules of a loop: values of the column `until`."""
REPEATS = (ROUNDS, RELATIVE_STANDARD_ERROR)
"""Stop rules of loops whose rounds are repeats; all other loops run until steady state."""


class Steps:
    """The `condition` and the `measure` of a plan."""

    def __init__(self, condition: Mapping[str, Any], measure: Sequence[Mapping[str, Any]]) -> None:
        self._filled = bool(fills(condition))
        self._fields: list[Mapping[str, Any]] = []
        self._kinds: list[str] = []
        for step in measure:
            ((kind, fields),) = step.items()
            self._kinds.append(kind)
            self._fields.append(fields)

    def turn(self, step: int) -> dict[str, Any]:
        """Return columns `phase`, `phase_value`, `phase_pass`; null for a step that is not repeated."""
        return {name: self._fields[step].get(name) for name in ("phase", "phase_value", "phase_pass")}

    def planned(self, step: int, cell: Cell) -> dict[str, Any]:
        """Return columns `filled`, `point`, `until` and `pause_s` of a cell of this step."""
        fields = self._fields[step]
        point = fields.get("point")
        return {
            "filled": self._filled,
            "point": None if point is None else point["name"],
            "until": stop_rule(fields["until"]) if self._kinds[step] == "loop" else None,
            "pause_s": pause_s(fields, cell.runtime_s or 0.0) or None,
        }


def stop_rule(until: Mapping[str, Any]) -> str:
    """Return the stop rule of a loop, one of UNTIL, from its `until` in a plan."""
    if "track" in until:
        return STEADY_STATE
    return ROUNDS if "rounds" in until else RELATIVE_STANDARD_ERROR
