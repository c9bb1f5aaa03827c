"""Make the rows of the table `summary` for soaks: averages and tail latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.deltas.doubts import at_points
from drivelab.analysis.values.bursts import bursts
from drivelab.analysis.values.latency_values import FEWEST_BEYOND, NINES, has_ios_beyond, percentiles_of
from drivelab.analysis.values.loop_values import IOPS_PER_WATT, power_words, with_iops_per_watt
from drivelab.analysis.values.rows import RATES, Trust, evidence, key_of, row
from drivelab.analysis.values.saturation_values import CountedSlices, counted_slices, level
from drivelab.analysis.verdict import (
    IN_CHANGING_PHASE,
    INCOMPLETE_WINDOW,
    NOT_STEADY,
    SINGLE_SLICE,
    STEADY,
    TOO_FEW_SLICES,
)
from drivelab.criteria.settling import Floats
from drivelab.criteria.steady_state import WINDOW

_TAIL = {f"p{nines}_latency_us": NINES[f"p{nines}_latency_us"] for nines in ("99", "9999", "99999", "999999")}

_Counts = npt.NDArray[np.int64]
_NO_BINS = pd.DataFrame(columns=["step", "round", "part", "latency_ns", "count"], dtype=np.int64)
_Bins = Mapping[tuple[str, int], pd.DataFrame]
"""Rows of `latency_bins` by recording and step."""


def soak_rows(soaks: pd.DataFrame, bins: pd.DataFrame | None) -> Iterator[dict[str, Any]]:
    """Yield the summary rows of soaks.

    `soaks` are their rows of table `cells` with `cell_label` and the columns of `by_workload`, `saturating` and
    `lacking`; `bins` are their rows of `latency_bins`.

    Rates and mean latency are averages over the slices that count, see `counted_slices`; so is IOPS per watt, where
    power was measured throughout. Percentiles come from the merged bins of the same slices. Without `bins` there are no
    percentiles; a percentile with less than one I/O above it is left out. The spread is over five equal parts of the
    slices. These parts also show whether the soak is steady, unless its own stop rule did or there are fewer than five
    slices. A soak that is repeated after idle times changes by design. At a point of a demand sweep the statistic names
    the load.
    """
    by_step = {} if bins is None else dict(tuple(bins.groupby(["recording", "step"], sort=False)))
    bursting = {name for name, rows in soaks.groupby("recording", sort=False) if bursts(rows)}
    for (recording, _), group in soaks.groupby(["recording", "cell_label"], sort=False):
        counted = counted_slices(with_iops_per_watt(group.sort_values(["step", "round"])))
        slices, verdict = counted.slices, _verdict(counted, changes=recording in bursting)
        label, load = str(slices["cell_label"].iloc[0]), at_points(slices)
        average = f"{counted.statistic}{load}"
        statistics = dict.fromkeys(RATES, average)
        if (source := power_words(slices)) is not None:
            statistics[IOPS_PER_WATT] = f"{average}, {source}"
        levels = {metric: level(slices, metric) for metric in statistics}
        values = [(metric, of.average, list(of.blocks), statistics[metric]) for metric, of in levels.items()]
        percentile = f"percentile of the {counted.words}{load}"
        values += [(metric, value, samples, percentile) for metric, value, samples in _tail(slices, by_step)]
        key, places, trust = key_of(slices), evidence(recording, slices["directory"]), Trust.of(slices)
        for metric, value, samples, statistic in values:
            measured = slices[metric].tolist() if metric in slices else []
            doubts = trust.columns(verdict, metric, measured, partial(_average, slices, metric))
            ends = {"spread_low": min(value, *samples), "spread_high": max(value, *samples)}
            yield row(key, label, metric, value=value, samples=samples, scope="slices", evidence=places,
                      statistic=statistic, **ends, **doubts)  # fmt: skip


def _average(slices: pd.DataFrame, metric: str, values: Sequence[float]) -> float:
    """Return the average of a metric with other values."""
    return level(slices.assign(**{metric: values}), metric).average


def _verdict(counted: CountedSlices, *, changes: bool) -> str:
    """Return the verdict on the slices that count; `changes` says whether their rates are meant to change.

    The stop rule of a soak judges all workloads together, so its result does not apply to one of several. It does not
    apply to a window that lacks slices either.
    """
    if counted.slices["lacking"].any():
        return INCOMPLETE_WINDOW
    if counted.by_own_rule and counted.slices["part"].isna().all():
        return STEADY
    if len(counted.slices) < WINDOW:
        return SINGLE_SLICE if len(counted.slices) == 1 else TOO_FEW_SLICES
    if level(counted.slices, "iops").steady:
        return STEADY
    return IN_CHANGING_PHASE if changes else NOT_STEADY


def _tail(slices: pd.DataFrame, by_step: _Bins) -> Iterator[tuple[str, float, list[float]]]:
    """Yield metric, value and those of the parts of percentiles with enough I/Os above them."""
    latency_us, counts = _by_part(slices, by_step)
    if not len(counts):
        return
    total, percents = int(counts.sum()), list(_TAIL.values())
    values = percentiles_of(latency_us, counts.sum(axis=0), percents).tolist()
    by_part = [percentiles_of(latency_us, part, percents).tolist() for part in counts]
    for metric, percent, value, *samples in zip(_TAIL, percents, values, *by_part, strict=True):
        if has_ios_beyond(total, percent, FEWEST_BEYOND):
            yield metric, value, samples


def _by_part(slices: pd.DataFrame, by_step: _Bins) -> tuple[Floats, _Counts]:
    """Return latencies in us, shape (n,), and their counts, shape (parts, n).

    Latencies are ascending; parts without I/O are left out.
    The slices are of one recording, and of one of several workloads if they have a part.
    """
    recording, number = slices["recording"].iloc[0], slices["part"].iloc[0]
    parts = np.array_split(np.arange(len(slices)), min(WINDOW, len(slices)))
    places = slices[["step", "round"]].assign(place=np.repeat(np.arange(len(parts)), list(map(len, parts))))
    bins = pd.concat([by_step.get((recording, step), _NO_BINS) for step in places["step"].unique()])
    if not pd.isna(number):
        bins = bins[bins["part"] == number]
    bins = bins.merge(places, on=["step", "round"])
    latencies, columns = np.unique(bins["latency_ns"].to_numpy(dtype=np.int64), return_inverse=True)
    counts = np.zeros((len(parts), len(latencies)), dtype=np.int64)
    np.add.at(counts, (bins["place"], columns), bins["count"].to_numpy(dtype=np.int64))
    return latencies / 1000, counts[counts.sum(axis=1) > 0]
