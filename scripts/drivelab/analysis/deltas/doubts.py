"""Describe doubts about a difference of two values, and limits of its verdict.

A pair is a mapping with the columns of table `summary` for both values, with the suffixes `_basis` and `_comparison`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.differences import NOT_RECORDED, differing
from drivelab.analysis.values.application_values import SIMULATED
from drivelab.analysis.verdict import FINE, HOST_LIMITED, RSE_TOO_HIGH, TAINTED, TOO_FEW_RUNS
from drivelab.criteria.inert import IO_PATH
from drivelab.criteria.repeats import FEWEST
from drivelab.criteria.taint import CAUSES, causes, worst
from drivelab.tables.labels import demand

_LOAD = r"T\d+Q\d+"
_OVER_RECORDINGS = re.compile(r", (?:geometric )?mean of \d+ recordings(?: \(\d+ tainted left out\))?")
_AT_LOADS = re.compile(rf", at {_LOAD}(?: or {_LOAD})*")


def at_points(cells: pd.DataFrame) -> str:
    """Return the load suffix for a statistic of one cell's rows of table `cells`.

    The result is empty if they are not at a point.
    """
    points = cells[cells["point"].notna()]
    return _suffix(demand(*load) for load in points[["threads", "queue_depth"]].itertuples(index=False))


def at_all(statistics: Iterable[str]) -> str:
    """Return the load suffix for pooled values: all loads of their statistics."""
    return _suffix(load for statistic in statistics for load in loads(statistic))


@cache
def loads(statistic: str) -> tuple[str, ...]:
    """Return the loads that a statistic names; pooled recordings may have several."""
    match = _AT_LOADS.search(statistic)
    return tuple(re.findall(_LOAD, match[0])) if match else ()


def without_load(statistic: str) -> str:
    """Return a statistic without its load suffix."""
    return _AT_LOADS.sub("", statistic)


@cache
def of_one_recording(statistic: str) -> str:
    """Return a statistic without its load, and without what several recordings add to that of one."""
    return _OVER_RECORDINGS.sub("", without_load(statistic))


def _suffix(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    return f", at {' or '.join(unique)}" if unique else ""


Pair = Mapping[str, Any]
LOAD = "load"
WORKLOAD_FACETS = (LOAD, "active range", "data pattern", "fill", IO_PATH)
"""Facets of a workload that may differ when values of two measurements are compared."""
NOT_KNOWN = "not known"
"""The load of a value whose source does not say it."""
PRINTED = "printed value"
"""The statistic of a published value whose source does not say how it was measured."""
SCATTER_UNKNOWN = "a printed value: its scatter is not known"
TOO_FEW = "too few recordings"
DIFFERENT_STATISTICS = "different statistics"
NOT_SETTLED_BY_MORE = (DIFFERENT_STATISTICS, SCATTER_UNKNOWN)
"""Beginnings of doubts that more recordings do not settle."""
_SIDES = ("basis", "comparison")
_OTHER_CONDITIONS = (
    ("reduced", "only one of them is reduced"),
    ("virtual", "only one of the drives is virtual"),
    ("clock", "one ran on the wall clock, one on the virtual clock"),
)
"""Columns of table `summary` that both values must share, and the doubt if they do not."""


def doubts(pair: Pair) -> list[str]:
    """Return the doubts about the values, their comparison and their samples.

    Different statistics (`alike` is false) come first.
    """
    doubts_found = []
    if not pair["alike"]:
        named = (f"{pair[f'drive_{side}']}: {of_one_recording(pair[f'statistic_{side}'])}" for side in _SIDES)
        doubts_found.append(f"{DIFFERENT_STATISTICS} ({'; '.join(named)})")
    for fault in (_fault, _host_limited):
        doubts_found += [f"{pair[f'drive_{side}']}: {doubt}" for side in _SIDES if (doubt := fault(pair, side))]
    doubts_found += [
        doubt for column, doubt in _OTHER_CONDITIONS if pair[f"{column}_basis"] != pair[f"{column}_comparison"]
    ]
    if pair["kind"] == "time" and (doubt := _different_point_loads(pair)):
        doubts_found.append(doubt)  # latency rises with the load, so this is another workload
    return doubts_found + _different_workload_facets(pair) + _sample_doubts(pair)


def remarks(pair: Pair) -> list[str]:
    """Return what the verdict does not show."""
    notes = []
    if pair["kind"] != "time" and (note := _different_point_loads(pair)):
        notes.append(note)
    unknown = [str(pair[f"drive_{side}"]) for side in _SIDES if pair.get(f"{LOAD}_{side}") == NOT_KNOWN]
    if unknown:
        notes.append(f"the load of {' and '.join(unknown)} is not known and may differ")
    if SIMULATED in f"{pair['statistic_basis']} {pair['statistic_comparison']}":
        notes.append(f"no application ran: {SIMULATED}")
    return notes


def _different_point_loads(pair: Pair) -> str:
    """Say which loads the two sides chose for a point of a demand sweep.

    The result is empty if both chose the same single load.
    """
    basis, comparison = (loads(pair[f"statistic_{side}"]) for side in _SIDES)
    if basis == comparison and len(basis) < 2:
        return ""
    return f"at different loads: {' and '.join(' or '.join(side) or 'an unknown one' for side in (basis, comparison))}"


def _different_workload_facets(pair: Pair) -> list[str]:
    """Return the workload facets that are known on both sides and differ."""
    doubts_found = []
    for name in WORKLOAD_FACETS:
        both = [pair.get(f"{name}_{side}") for side in _SIDES]
        known = all(isinstance(value, str) and value not in (NOT_KNOWN, NOT_RECORDED) for value in both)
        if known and both[0] != both[1]:
            doubts_found.append(
                f"at different loads: {both[0]} and {both[1]}" if name == LOAD else differing(name, *both)
            )
    return doubts_found


def _fault(pair: Pair, side: str) -> str | None:
    """Return the verdict if it is a fault of the drive or its host, and the reasons of a taint in parentheses."""
    verdict, reason = str(pair[f"verdict_{side}"]), pair[f"taint_reason_{side}"]
    shown = (RSE_TOO_HIGH, TOO_FEW_RUNS) if len(pair[f"logs_{side}"]) >= FEWEST else ()  # by the recordings' scatter
    if verdict in (*FINE, HOST_LIMITED, *shown):
        return None
    return f"{verdict} ({reason.replace('; ', ', ')})" if verdict == TAINTED and isinstance(reason, str) else verdict


def _host_limited(pair: Pair, side: str) -> str | None:
    """Return the doubt about a value that may be the host's; a published one may lack the reason."""
    reason = pair.get(f"host_limit_{side}")
    if isinstance(reason, str):
        return host_limit_doubt(reason)
    return HOST_LIMITED if pair[f"verdict_{side}"] == HOST_LIMITED else None


def host_limit_doubt(reason: str) -> str:
    """Return the doubt about a value with this `host_limit`: `host-limited (fio's threads used …)`."""
    return f"{HOST_LIMITED} ({reason})"


def _sample_doubts(pair: Pair) -> list[str]:
    if any(pair[f"statistic_{side}"] == PRINTED for side in _SIDES):
        return [SCATTER_UNKNOWN]
    counts = [len(pair[f"logs_{side}"]) for side in _SIDES]
    if min(counts) < FEWEST:
        return [too_few_recordings(*counts)]
    if not all(math.isfinite(log) for side in _SIDES for log in pair[f"logs_{side}"]):
        return ["the value of a recording is not a positive number"]
    return []


def without_replication(doubts: Iterable[str]) -> bool:
    """Return whether one of the doubts is that the recordings say nothing about the drives."""
    return any(doubt.startswith((TOO_FEW, SCATTER_UNKNOWN)) for doubt in doubts)


def too_few_recordings(basis_n: int, comparison_n: int) -> str:
    """Return the doubt about differences in so few recordings, which say nothing about the drives."""
    counts = f"{basis_n}" if basis_n == comparison_n else f"{basis_n} and {comparison_n}"
    return f"{TOO_FEW} ({counts} a side; a verdict needs {FEWEST})"


_TAINTED = re.compile(r"(?P<subject>(?:.+: )?tainted) \((?P<reasons>.+)\)")
_NEXT_REASON = re.compile(rf", (?=(?:{'|'.join(CAUSES)}): )")


def numbered(doubts: Iterable[Sequence[str]]) -> tuple[list[tuple[int, ...]], list[str]]:
    """Return the note numbers of each value, from 1, and the notes in this order.

    `doubts` has the doubts of each value. Doubts that differ only in the size of a disturbance share a note, which
    gives the largest.
    """
    notes: dict[str, list[str]] = {}
    marks = []
    for value_doubts in doubts:
        kinds = dict.fromkeys(_kind(doubt) for doubt in value_doubts)
        for doubt in value_doubts:
            notes.setdefault(_kind(doubt), []).append(doubt)
        marks.append(tuple(sorted(list(notes).index(kind) + 1 for kind in kinds)))
    return marks, [_merged(same_kind) for same_kind in notes.values()]


def mark(numbers: tuple[int, ...]) -> str:
    """Return a reference to notes by number, as ` [1, 2]`, or nothing."""
    return f" [{', '.join(map(str, numbers))}]" if numbers else ""


def taint_causes(doubt: str) -> list[str]:
    """Return the causes of the taint that a doubt names. The result is empty for a doubt about something else."""
    match = _TAINTED.fullmatch(doubt)
    return causes(_reasons(match)) if match else []


def _kind(doubt: str) -> str:
    match = _TAINTED.fullmatch(doubt)
    return f"{match['subject']} ({', '.join(causes(_reasons(match)))})" if match else doubt


def _merged(doubts: list[str]) -> str:
    matches = [match for doubt in dict.fromkeys(doubts) if (match := _TAINTED.fullmatch(doubt))]
    if len(matches) < 2:
        return doubts[0]
    return f"{matches[0]['subject']} ({', '.join(worst(reason for match in matches for reason in _reasons(match)))})"


def _reasons(match: re.Match[str]) -> list[str]:
    return _NEXT_REASON.split(match["reasons"])
