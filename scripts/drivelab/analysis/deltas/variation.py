"""Estimate what makes the values of a study vary: rounds, recordings, specimens of a model, hosts.

Variances of logarithms, by nested analysis of variance in closed form (Searle, Casella and McCulloch, Variance
Components, 1992, chapter 3). Intervals are modified large-sample ones (Graybill and Wang, Journal of the American
Statistical Association 75, 1980; Ting et al., Journal of Statistical Computation and Simulation 35, 1990). All cells of
a measurement count together: what they share, such as a recording's purge, is known from few repeats, the rest from
all cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from drivelab.analysis.deltas.recordings import Floats, scatter_within
from drivelab.analysis.verdict import PARTIAL, TAINTED
from drivelab.core.grouping import grouped
from drivelab.tables.schemas import SCHEMAS

ROUNDS, RECORDINGS, SPECIMENS, HOSTS = "rounds", "recordings", "specimens", "hosts"
SOURCES = {
    ROUNDS: "rounds of a recording",
    RECORDINGS: "recordings of a drive",
    SPECIMENS: "specimens of a model",
    HOSTS: "hosts of a drive",
}
METRICS = ("iops", "access_time_us", "duration_s")
"""Metrics whose variation is shown; others of a cell follow from them, or are percentiles."""
_OUTSIDE = 0.05
_DISTURBED = (TAINTED, PARTIAL)


@dataclass(frozen=True)
class Term:
    """A mean square with its degrees of freedom, and its coefficient in a variance."""

    coefficient: float
    square: float
    freedom: float

    def times(self, factor: float) -> Term:
        return Term(factor * self.coefficient, self.square, self.freedom)


def estimate(terms: Iterable[Term]) -> tuple[float, float, float]:
    """Return a variance, the sum of all terms, and both ends of its 95 % interval, none below 0."""
    total, below, above = 0.0, 0.0, 0.0
    for term in terms:
        part = term.coefficient * term.square
        to_low = 1 - term.freedom / float(special.chdtri(term.freedom, _OUTSIDE / 2))
        to_high = term.freedom / float(special.chdtri(term.freedom, 1 - _OUTSIDE / 2)) - 1
        down, up = (to_low, to_high) if part > 0 else (to_high, to_low)
        total, below, above = total + part, below + (down * part) ** 2, above + (up * part) ** 2
    ends = total, total - math.sqrt(below), total + math.sqrt(above)
    variance, low, high = (max(end, 0.0) for end in ends)
    return variance, low, high


def terms_of(logs: Floats) -> list[Term]:
    """Return the terms of the variance between repeats, of logarithms of shape (cells, repeats), at least two repeats.

    It is the variance of one cell's value: of what all cells share, and of the rest.
    """
    cells, repeats = logs.shape
    shared = cells * float(logs.mean(axis=0).var(ddof=1))
    if cells == 1:
        return [Term(1.0, shared, repeats - 1)]
    rest = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=0) + logs.mean()
    freedom = (repeats - 1) * (cells - 1)
    return [Term(1 / cells, shared, repeats - 1), Term(1 - 1 / cells, float((rest**2).sum()) / freedom, freedom)]


def variation_table(values: Iterable[Mapping[str, Any]], models: Mapping[str, str]) -> pd.DataFrame:
    """Make table `variation`: standard deviations by measurement, metric and source.

    `values` are rows like those of `summary`, one for each recording; `models` has the model of each drive that has
    one. Disturbed values and cells that lack a recording are left out. Sources:

    * ROUNDS of a recording (of a window, or warm runs), of each drive;
    * RECORDINGS of a drive, beyond what its rounds explain;
    * SPECIMENS of a model, beyond what their recordings explain;
    * HOSTS: a drive on several platforms, beyond what its recordings explain.
    """
    frame = pd.DataFrame(values)
    rows: list[dict[str, Any]] = []
    if len(frame):
        number = frame["value"].astype(float)
        frame = frame[frame["metric"].isin(METRICS) & ~frame["verdict"].isin(_DISTURBED) & (number > 0)]
        for key, test in frame.groupby(["measurement", "protocol", "metric"], sort=False):
            named = dict(zip(("measurement", "protocol", "metric"), key, strict=True))
            rows += [{**named, **row} for row in _of_test(test, models)]
    return pd.DataFrame(rows, columns=SCHEMAS["variation"].names)


def _of_test(test: pd.DataFrame, models: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    drives = {str(drive): rows for drive, rows in test.groupby("drive", sort=False)}
    logs = {drive: _logs(rows) for drive, rows in drives.items()}
    several = {
        drive: terms_of(values.to_numpy())
        for drive, values in logs.items()
        if min(values.shape[1] - 1, len(values)) > 0
    }
    for drive, rows in drives.items():
        rounds, per_value, count = _rounds(rows)
        if rounds is not None:
            yield _row(ROUNDS, drive, rows, (len(logs[drive]), count), [rounds])
        if drive in several:
            within = [] if rounds is None else [rounds.times(-1 / per_value)]
            yield _row(RECORDINGS, drive, rows, logs[drive].shape, [*several[drive], *within])
    by_model = {drive: models[drive] for drive in several if drive in models}
    by_drive = {subject: subject.partition("@")[0] for subject in several if "@" in subject}  # DRIVE@PLATFORM
    for source, group_of in ((SPECIMENS, by_model), (HOSTS, by_drive)):
        for name, members in grouped(group_of, group_of.__getitem__).items():
            means = pd.concat([logs[member].mean(axis=1) for member in members], axis=1, join="inner")
            if len(members) > 1 and len(means):
                within = [
                    term.times(-1 / len(members) / logs[member].shape[1])
                    for member in members
                    for term in several[member]
                ]
                rows = test[test["drive"].isin(members)]
                yield _row(source, name, rows, means.shape, [*terms_of(means.to_numpy()), *within])


def _logs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return logarithms, shape (cells, recordings), of cells that all recordings have."""
    wide = rows.assign(log=np.log(rows["value"].astype(float)))
    return wide.pivot_table(index="cell_label", columns="recording", values="log", sort=False).dropna()


def _rounds(rows: pd.DataFrame) -> tuple[Term | None, float, int]:
    """Return the variance of one round or warm run, how many a value has (harmonic mean), and how many there are."""
    repeats = rows.loc[rows["scope"].isin(("rounds", "runs")), "samples"]
    repeats = [samples for samples in repeats if len(samples) > 1 and min(samples) > 0]
    squares, freedom = scatter_within(repeats)
    if not freedom:
        return None, 1.0, 0
    counts = [len(samples) for samples in repeats]
    return Term(1.0, squares / freedom, freedom), len(counts) / sum(1 / count for count in counts), sum(counts)


def _row(
    source: str, subject: str, rows: pd.DataFrame, shape: tuple[int, ...], terms: Iterable[Term]
) -> dict[str, Any]:
    """Return a row of the table without its test; `shape` is (cells, n)."""
    sd_pct, low_pct, high_pct = (100 * math.sqrt(variance) for variance in estimate(terms))
    return {
        "subject": subject, "source": source, "cells": shape[0], "n": shape[1], "sd_pct": sd_pct, "low_pct": low_pct,
        "high_pct": high_pct, "reduced": bool(rows["reduced"].any()), "virtual": bool(rows["virtual"].any()),
        "clock": " and ".join(sorted(rows["clock"].unique(), reverse=True)),
    }  # fmt: skip
