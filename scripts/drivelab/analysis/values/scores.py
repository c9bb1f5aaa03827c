"""Combine the results of several measurements to one score of each drive, relative to the basis.

The score is the geometric mean of the members' speeds, each relative to the basis, which has 100: the only mean of
ratios that does not depend on the choice of the basis (Fleming and Wallace, Communications of the ACM 29, 1986).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.deltas.inference import interval
from drivelab.analysis.deltas.recordings import ratios
from drivelab.analysis.values.rows import row as row_of
from drivelab.analysis.values.summary import CONFIDENCE, pooled, trust
from drivelab.core.grouping import grouped
from drivelab.criteria.repeats import FEWEST
from drivelab.tables.labels import SCORE, score_label

_PREFERRED = ("score", "figure_of_merit", "duration_s")
"""Metrics of a whole measurement, in the order of preference."""
_SET = "set of "
_Row = dict[str, Any]


def with_scores(
    values: Sequence[_Row], sets: Mapping[str, Sequence[str]], basis: str, summary: pd.DataFrame
) -> pd.DataFrame:
    """Return table `summary` with the rows of each score; `values` are those of each recording.

    `sets` has the members of each score: names of measurements, whose variants NAME.VALUE all count, or of scores
    before it. A drive has a score only if it has every member, and of each run that has them all. All variants and
    labels of a member count together, with their geometric mean. A score's verdict is the gravest of its members; its
    recordings are those of the first member, one for each run, and its evidence is all recordings.
    """
    by_place: dict[tuple[str, int, str], _Row] = {}
    rows: list[_Row] = []
    for name, members in sets.items():
        found = {member: _member(values, by_place, member, sets) for member in members}
        for row in _rows(name, found, basis):
            by_place[row["drive"], row["run"], name] = row
            rows.append(row)
    return pd.concat([summary, _with_intervals(pooled(rows), basis)], ignore_index=True) if rows else summary


def _with_intervals(scores: pd.DataFrame, basis: str) -> pd.DataFrame:
    """Return pooled scores with intervals that include the scatter of the basis, which has 100 and no interval."""
    scores = scores.assign(interval_low=math.nan, interval_high=math.nan)
    for _, alike in scores.groupby(["measurement", "cell_label", "reduced", "virtual", "clock"]):
        logs = {drive: (place, np.log([samples])) for place, drive, samples in alike[["drive", "samples"]].itertuples()}
        _, reference = logs.pop(basis, (None, np.empty((1, 0))))
        for place, of_drive in logs.values():
            if min(reference.shape[1], of_drive.shape[1]) >= FEWEST:
                low, high = interval(ratios(reference, of_drive, np.array([-1])), np.array([1 - CONFIDENCE]))
                scores.loc[place, ["interval_low", "interval_high"]] = 100 * np.exp([low[0], high[0]])
    return scores


def _member(
    values: Iterable[_Row], scores: Mapping[tuple[str, int, str], _Row], member: str, sets: Mapping[str, Any]
) -> dict[tuple[str, int], list[_Row]]:
    """Return the rows that count for a member, by drive and run; only of drives and runs that have all variants."""
    if member in sets:
        return {(drive, run): [row] for (drive, run, name), row in scores.items() if name == member}
    rows = [row for row in values if row["measurement"].partition(".")[0] == member or row["measurement"] == member]
    metric = next((metric for metric in _PREFERRED if any(row["metric"] == metric for row in rows)), None)
    rows = [row for row in rows if row["metric"] == metric]
    of_sets = [row for row in rows if row["cell_label"].startswith(_SET)]  # a set represents its traces
    by_place = grouped(of_sets or rows, lambda row: (row["drive"], row["run"]))
    all_of_it = {(row["measurement"], row["cell_label"]) for row in of_sets or rows}
    return {place: found for place, found in by_place.items() if len(found) == len(all_of_it)}


def _rows(name: str, found: Mapping[str, Mapping[tuple[str, int], list[_Row]]], basis: str) -> Iterable[_Row]:
    """Yield the score of each drive and run that has every member."""
    references: dict[str, float] = {}
    for member, by_place in found.items():
        of_basis = [_log_speed(rows) for (drive, _), rows in by_place.items() if drive == basis]
        if not of_basis:
            return
        references[member] = fmean(of_basis)
    places = set.intersection(*(set(by_place) for by_place in found.values()))
    for drive, run in sorted(places):
        rows = [row for by_place in found.values() for row in by_place[drive, run]]
        logs = [_log_speed(by_place[drive, run]) - references[member] for member, by_place in found.items()]
        score = 100 * math.exp(fmean(logs))
        clocks = sorted({str(row["clock"]) for row in rows}, reverse=True)
        flags = {name: any(row[name] for row in rows) for name in ("reduced", "virtual")}
        key = {**rows[0], **flags, "clock": " and ".join(clocks), "measurement": name, "protocol": SCORE}
        evidence = dict.fromkeys("/".join(place.split("/")[:3]) for row in rows for place in row["evidence"])
        statistic = f"geometric mean relative to {basis} (100)"
        yield row_of(key, score_label(len(found)), "score", value=score, samples=[score], scope="recordings",
                     statistic=statistic, evidence=list(evidence), asymptote_pct=None, **trust(rows))  # fmt: skip


def _log_speed(rows: Iterable[_Row]) -> float:
    """Return the mean logarithm of speeds; a time counts as its reciprocal."""
    signs = {"time": -1.0, "speed": 1.0, "score": 1.0}
    return fmean(signs[row["kind"]] * math.log(row["value"]) for row in sorted(rows, key=itemgetter("cell_label")))
