"""Decide which cells are sound: invalid measurements are excluded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd

MISSING_ROUND = "missing round"
NO_IO = "no I/O"
NOT_A_NUMBER = "not a number"
NEGATIVE_LATENCY = "negative latency"
NEGATIVE_RATE = "negative rate"
NO_DURATION = "no duration"
DAMAGED = "damaged evidence"
MIXED_VERSIONS = "mixed versions"
FOREIGN = "foreign recording"
DUPLICATED = "duplicated run"
CONTRADICTS = "contradicts itself"
FOREIGN_EVIDENCE = "foreign evidence"
DUPLICATED_ROUND = "duplicated round"
MISSING_SLICE = "missing slice"
ALTERED = "altered evidence"
NOT_MEASURED = "not measured"
FAULTS = {
    MISSING_ROUND: "a cell that other rounds have, or that the manifest counts, is not in the journal. No window "
        "holds the round; repeats have one fewer",
    MISSING_SLICE: "fio's JSON has fewer slices than the journal. The slice that spans the missing one is excluded "
        "too; if the end is missing, the last",
    NO_IO: "a cell, replay or run moved nothing (a slice may: a drive can hang)",
    NOT_A_NUMBER: "NaN, infinity, text or nothing in fio's JSON; NaN or infinity in its logs. A status in mid-soak "
        "excludes two slices",
    NEGATIVE_LATENCY: "a clock was set back, or the file was edited",
    NEGATIVE_RATE: "a clock was set back, or the file was edited",
    NO_DURATION: "a replay or run took no time, or less. Its passes are excluded too",
    DAMAGED: "fio's exit status, JSON or latency bins are invalid or gone. If a soak's counts go back, all of it is "
        "excluded",
    CONTRADICTS: "numbers of fio's JSON contradict each other, or those of the journal: mean latency outside smallest "
        "and largest, or off the latency bins by more than their width; rates unequal to count or bytes by run time; "
        "bytes unequal to I/Os of the block sizes; fewer I/Os than latencies. The reason quotes both. If a soak's "
        "sums differ, all of it is excluded",
    FOREIGN_EVIDENCE: "the job's device is not the drive, fio began at another time than in the journal, or fio's "
        "JSON and `job.fio` differ in an option. Excludes the cell or soak",
    DUPLICATED_ROUND: "two cells or slices have the same start, counts and bytes. The one with the journal's time "
        "counts, else the first",
    MIXED_VERSIONS: "recordings to be pooled differ in fio, kernel, firmware, capacity, logical block or "
        "over-provisioning; those like the latest count. Or a cell's fio differs from `host.json`",
    FOREIGN: "its plan was edited, it copies another recording, or the study lacks its drive or measurement (an "
        "earlier plan is allowed)",
    DUPLICATED: "a recording has the times or output of an earlier one, or the journal has a cell twice. The first "
        "counts",
    NOT_MEASURED: "the measurement failed, or was not begun when the run ended; run the study again",
    ALTERED: "a file was altered, added, is missing or unreadable (`SHA256SUMS`). Excludes the recording",
}  # fmt: skip
"""Reasons for excluding something, with their meaning. The column `unsound` of table `cells`, and `taint_reason` in
tables of runs, begin with one of them and a colon."""

_RATES = (
    "runtime_s", "read_ios", "write_ios", "iops", "read_iops", "write_iops", "bandwidth_mib_s", "read_bandwidth_mib_s",
    "write_bandwidth_mib_s", "bytes_written", "user_cpu_pct", "system_cpu_pct",
)  # fmt: skip
_LATENCIES = (
    "mean_latency_us", "max_latency_us", "p50_latency_us", "p90_latency_us", "p99_latency_us", "p999_latency_us",
    "p9999_latency_us", "p99999_latency_us", "p999999_latency_us",
)  # fmt: skip
_OF_DIRECTIONS = {"read_mean_latency_us": "read_ios", "write_mean_latency_us": "write_ios"}
_PLACE = ["recording", "step", "kind", "round", "cell"]


def because(fault: str, words: str) -> str:
    """Return a text for the column `unsound`. Raises ValueError for a fault that is not in FAULTS."""
    if fault not in FAULTS:
        raise ValueError(f"unknown fault '{fault}'; use one of {', '.join(FAULTS)}")
    return f"{fault}: {words}"


def split(reason: str) -> tuple[str, str]:
    """Split a text of the column `unsound` into fault and words."""
    fault, _, words = reason.partition(": ")
    return fault, words


def sound(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the sound rows of table `cells`. All rows are returned if there is no column `unsound`."""
    if "unsound" not in cells.columns or cells["unsound"].isna().all():
        return cells
    return cells[cells["unsound"].isna()].reset_index(drop=True)


def unsound_cells(cells: pd.DataFrame, latency_bins: pd.DataFrame | None = None) -> pd.Series:
    """Return why each row of table `cells` is excluded, "fault: words", or None.

    A reason already in the column `unsound` stays, except that a fault in the numbers replaces "damaged evidence". A
    slice of a soak may have no I/O, because a drive may hang; a cell of a loop may not. A duplicated row counts once.
    `latency_bins` is the table of that name: a bin below zero makes its cell unsound.
    """
    given = [reason if isinstance(reason, str) else None for reason in cells["unsound"]]
    reasons = pd.Series(given, index=cells.index, dtype=object)
    ios = cells["read_ios"].astype(float) + cells["write_ios"].astype(float)
    for bad, fault, words in (
        ((ios == 0) & (cells["kind"] == "loop"), NO_IO, "fio did no I/O at all"),
        ((ios > 0) & (cells["iops"] == 0), CONTRADICTS, "fio did I/Os, but none a second"),
        (cells.duplicated(_PLACE), DUPLICATED, "the journal has the cell twice, the first counts"),
    ):
        reasons[bad.astype(bool) & reasons.isna()] = because(fault, words)
    for fault, flags in _number_faults(cells, ios):
        for column in flags.columns[flags.any()]:
            replaceable = reasons.isna() | reasons.str.startswith(DAMAGED, na=False)
            wrong = "not a finite number" if fault == NOT_A_NUMBER else "below zero"
            reasons[flags[column] & replaceable] = because(fault, f"{column} is {wrong}")
    if latency_bins is not None:
        below = pd.MultiIndex.from_frame(latency_bins.loc[latency_bins["latency_ns"] < 0, _PLACE])
        rows = pd.MultiIndex.from_frame(cells[_PLACE]).isin(below)
        reasons[rows & reasons.isna()] = because(NEGATIVE_LATENCY, "fio's latency bins begin below zero")
    return reasons


def missing_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the missing cells of loops and slices of soaks.

    Columns: recording, step, kind, round, cell.
    The rounds of a step run from 1 to the last one, and each must have every cell that any of them has. Unsound rows
    are not missing.
    """
    places = cells.loc[cells["kind"].isin(["loop", "soak"]), _PLACE].drop_duplicates()
    steps = places.groupby(["recording", "step", "kind"], sort=False)
    counts = steps.agg(rounds=("round", "max"), cells=("cell", "nunique"), present=("cell", "size"))
    holes = counts[counts["present"] < counts["rounds"] * counts["cells"]].index
    missing = []
    for key in holes:
        step = steps.get_group(key)
        present = set(step[["round", "cell"]].itertuples(index=False, name=None))
        expected = product(range(1, int(step["round"].max()) + 1), sorted(step["cell"].unique()))
        missing += [(*key, *place) for place in expected if place not in present]
    return pd.DataFrame(missing, columns=_PLACE)


def _number_faults(cells: pd.DataFrame, ios: pd.Series) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each fault with a frame of flags by row and column, gravest fault first."""
    rates = cells[list(_RATES)].astype(float)
    latencies = cells[[*_LATENCIES, *_OF_DIRECTIONS]].astype(float)
    direction_ios = {name: cells[column].astype(float) for name, column in _OF_DIRECTIONS.items()}
    counted = pd.DataFrame({**dict.fromkeys(_LATENCIES, ios), **direction_ios})
    lost = ~np.isfinite(latencies) & (counted > 0)
    yield NOT_A_NUMBER, pd.concat([~np.isfinite(rates), lost], axis=1)
    yield NEGATIVE_LATENCY, latencies < 0
    yield NEGATIVE_RATE, rates < 0
