"""Which cells count: what is no measurement is in no average, window or percentile."""

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
WAITING = "waiting recording"
FAULTS = (
    MISSING_ROUND, MISSING_SLICE, NO_IO, NOT_A_NUMBER, NEGATIVE_LATENCY, NEGATIVE_RATE, NO_DURATION, DAMAGED,
    CONTRADICTS, FOREIGN_EVIDENCE, DUPLICATED_ROUND, MIXED_VERSIONS, FOREIGN, DUPLICATED, ALTERED, WAITING,
)  # fmt: skip
"""Why something is left out; what the column `unsound` of table `cells` begins with, before a colon, and of tables of
runs the column `taint_reason`."""

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
    """Text of the column `unsound`; raises ValueError for what is none of FAULTS."""
    if fault not in FAULTS:
        raise ValueError(f"'{fault}' is no fault; there are {', '.join(FAULTS)}")
    return f"{fault}: {words}"


def split(reason: str) -> tuple[str, str]:
    """Fault and words of a text of the column `unsound`."""
    fault, _, words = reason.partition(": ")
    return fault, words


def sound(cells: pd.DataFrame) -> pd.DataFrame:
    """Rows of table `cells` that count; all rows of a frame that nobody has judged, which has no column `unsound`."""
    if "unsound" not in cells.columns or cells["unsound"].isna().all():
        return cells
    return cells[cells["unsound"].isna()].reset_index(drop=True)


def unsound_cells(cells: pd.DataFrame, latency_bins: pd.DataFrame | None = None) -> pd.Series:
    """For each row of table `cells` why it counts nowhere, "fault: words", or None.

    What the column `unsound` says already stays, unless the numbers themselves say more. A slice of a soak may be
    without I/O: a drive that hangs does that; a cell of a loop may not. A row that is there twice counts once.
    `latency_bins` is the table of that name: a bin below zero makes its cell unsound.
    """
    told = [reason if isinstance(reason, str) else None for reason in cells["unsound"]]
    found = pd.Series(told, index=cells.index, dtype=object)
    ios = cells["read_ios"].astype(float) + cells["write_ios"].astype(float)
    without = (ios == 0) & (cells["kind"] == "loop")
    _put(found, without & found.isna(), because(NO_IO, "fio did no I/O at all"))
    twice = cells.duplicated(_PLACE)
    _put(found, twice & found.isna(), because(DUPLICATED, "the journal has the cell twice, the first counts"))
    for fault, bad in _faults_of_numbers(cells, ios):
        for column in bad.columns[bad.any()]:
            overruled = found.isna() | found.str.startswith(DAMAGED, na=False)
            _put(found, bad[column] & overruled, because(fault, _words(fault, column)))
    if latency_bins is not None:
        below = latency_bins.loc[latency_bins["latency_ns"] < 0, _PLACE]
        if len(below):
            rows = pd.MultiIndex.from_frame(cells[_PLACE]).isin(pd.MultiIndex.from_frame(below))
            words = because(NEGATIVE_LATENCY, "fio's latency bins begin below zero")
            _put(found, pd.Series(rows, index=cells.index) & found.isna(), words)
    return found


def missing_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of loops and slices of soaks that should be there: columns recording, step, kind, round, cell.

    Rounds of a step count from 1 to the last one, and each has every cell that any of them has. Rows that are there
    but unsound are not missing.
    """
    places = cells.loc[cells["kind"].isin(["loop", "soak"]), _PLACE].drop_duplicates()
    steps = places.groupby(["recording", "step", "kind"], sort=False)
    found = steps.agg(rounds=("round", "max"), cells=("cell", "nunique"), there=("cell", "size"))
    holes = found[found["there"] < found["rounds"] * found["cells"]].index
    lost = []
    for key in holes:
        step = steps.get_group(key)
        there = set(step[["round", "cell"]].itertuples(index=False, name=None))
        wanted = product(range(1, int(step["round"].max()) + 1), sorted(step["cell"].unique()))
        lost += [(*key, *place) for place in wanted if place not in there]
    return pd.DataFrame(lost, columns=_PLACE)


def _faults_of_numbers(cells: pd.DataFrame, ios: pd.Series) -> Iterator[tuple[str, pd.DataFrame]]:
    """Fault, and whether a row has it by column; the order is that of gravity."""
    rates = cells[list(_RATES)].astype(float)
    latencies = cells[[*_LATENCIES, *_OF_DIRECTIONS]].astype(float)
    of_directions = {name: cells[of].astype(float) for name, of in _OF_DIRECTIONS.items()}
    counted = pd.DataFrame({**dict.fromkeys(_LATENCIES, ios), **of_directions})
    lost = ~np.isfinite(latencies) & (counted > 0)
    yield NOT_A_NUMBER, pd.concat([~np.isfinite(rates), lost], axis=1)
    yield NEGATIVE_LATENCY, latencies < 0
    yield NEGATIVE_RATE, rates < 0


def _words(fault: str, column: str) -> str:
    return f"{column} is {'no finite number' if fault == NOT_A_NUMBER else 'below zero'}"


def _put(found: pd.Series, rows: pd.Series, reason: str) -> None:
    if rows.any():
        found[rows.astype(bool)] = reason
