"""What the table `summary` says of soaks: the average over the slices that count, and the tail of their latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.counted_slices import CountedSlices, counted_slices
from drivelab.analysis.latency import NINES, percentiles_us
from drivelab.analysis.power import IOPS_PER_WATT, power_words, with_iops_per_watt
from drivelab.analysis.saturation import Level, level
from drivelab.analysis.steady_state import WINDOW
from drivelab.analysis.summary_rows import gravest, key_of, row, taint, taint_reason
from drivelab.analysis.verdict import NOT_STEADY, SINGLE_SLICE, STEADY, TOO_FEW_SLICES

_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")
_TAIL = {metric: NINES[metric] for metric in ("p99_latency_us", "p9999_latency_us", "p99999_latency_us")}

_Bins = Mapping[tuple[str, int], pd.DataFrame]
"""Rows of `latency_bins` by recording and step."""


def soak_rows(soaks: pd.DataFrame, bins: pd.DataFrame | None) -> Iterator[dict[str, Any]]:
    """Rows from the rows of soaks in table `cells`, with `cell_label`, and from their rows of `latency_bins`.

    `soaks` have the columns of `by_direction` and `saturating` too. Rates and mean latency are averages over the
    slices that count, see `counted_slices`; IOPS per watt too, where power was measured throughout. Percentiles are of
    the merged bins of the same slices. All are spread over five equal parts of them, which tell too whether they are
    steady, but of fewer slices, and where the soak ended by its own rule. Without `bins` there are no percentiles,
    and none that fewer than one I/O lies above.
    """
    by_step = {} if bins is None else dict(tuple(bins.groupby(["recording", "step"], sort=False)))
    for _, group in soaks.groupby(["recording", "cell_label"], sort=False):
        counted = counted_slices(with_iops_per_watt(group.sort_values(["step", "round"])))
        slices, verdict = counted.slices, _verdict(counted)
        label = str(slices["cell_label"].iloc[0])
        for metric in _METRICS:
            yield _row(label, metric, slices, _spread(level(slices, metric)), counted.statistic, verdict)
        if (words := power_words(slices)) is not None:
            per_watt = _spread(level(slices, IOPS_PER_WATT))
            yield _row(label, IOPS_PER_WATT, slices, per_watt, f"{counted.statistic}, {words}", verdict)
        for metric, found in _tail(slices, by_step):
            yield _row(label, metric, slices, found, f"percentile of the {counted.words}", verdict)


def _verdict(counted: CountedSlices) -> str:
    """The rule of a soak knows reads and writes together only: of one of them it says nothing."""
    if counted.by_own_rule and counted.slices["direction"].isna().all():
        return STEADY
    if len(counted.slices) < WINDOW:
        return SINGLE_SLICE if len(counted.slices) == 1 else TOO_FEW_SLICES
    return STEADY if level(counted.slices, "iops").steady else NOT_STEADY


def _spread(found: Level) -> dict[str, float]:
    return {"value": found.average, "spread_low": found.low, "spread_high": found.high}


def _tail(slices: pd.DataFrame, by_step: _Bins) -> Iterator[tuple[str, dict[str, float]]]:
    """Metric, value and spread, of those percentiles that at least one I/O lies above: else it is the slowest I/O."""
    parts = np.array_split(np.arange(len(slices)), min(WINDOW, len(slices)))
    found = [_of(slices.iloc[part], by_step) for part in parts]
    blocks = [one for one in found if one["count"].sum()]
    if not blocks:
        return
    merged = pd.concat(blocks)
    values = percentiles_us(merged, list(_TAIL.values()))
    spread = np.array([values, *(percentiles_us(one, list(_TAIL.values())) for one in blocks)])
    for number, (metric, percent) in enumerate(_TAIL.items()):
        if merged["count"].sum() * (100 - percent) / 100 < 1 - 1e-9:
            continue
        low, high = float(spread[:, number].min()), float(spread[:, number].max())
        yield metric, {"value": float(values[number]), "spread_low": low, "spread_high": high}


def _of(slices: pd.DataFrame, by_step: _Bins) -> pd.DataFrame:
    """Latency bins of slices of one recording, of their direction where they have one."""
    recording, direction = slices["recording"].iloc[0], slices["direction"].iloc[0]
    found = [pd.DataFrame({"latency_ns": pd.Series(dtype="int64"), "count": pd.Series(dtype="int64")})]
    for step, of_step in slices.groupby("step"):
        if (recording, step) in by_step:
            bins = by_step[recording, step]
            chosen = bins["round"].isin(of_step["round"])
            found.append(bins[chosen if direction is None else chosen & (bins["direction"] == direction)])
    return pd.concat(found[1:] or found)[["latency_ns", "count"]]


def _row(
    label: str, metric: str, slices: pd.DataFrame, found: dict[str, float], statistic: str, verdict: str
) -> dict[str, Any]:
    return row(
        key_of(slices),
        label,
        metric,
        **found,
        n=1,
        rse_pct=None,
        statistic=statistic,
        verdict=gravest([verdict, *taint(slices)]),
        taint_reason=taint_reason(slices),
    )
