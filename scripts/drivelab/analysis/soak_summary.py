"""What the table `summary` says of soaks: what they settle at, and the tail of their latency."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.latency import NINES, percentiles_us
from drivelab.analysis.power import IOPS_PER_WATT, power_words, with_iops_per_watt
from drivelab.analysis.saturation import Level, post_saturation, saturated_slices
from drivelab.analysis.steady_state import WINDOW
from drivelab.analysis.summary_rows import gravest, key_of, row, taint, taint_reason
from drivelab.analysis.verdict import NOT_STEADY, STEADY

_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")
_TAIL = {metric: NINES[metric] for metric in ("p99_latency_us", "p9999_latency_us", "p99999_latency_us")}
_SATURATED = "post-saturation average"


def soak_rows(soaks: pd.DataFrame, bins: pd.DataFrame | None) -> Iterator[dict[str, Any]]:
    """Rows from the rows of soaks in table `cells`, with `cell_label`, and from their rows of `latency_bins`.

    Rates and mean latency are post-saturation averages; IOPS per watt too, where power was measured throughout.
    Percentiles are of the merged bins of the whole last step, which is what a histogram is measured for; where the
    recording begins with it, of the saturated slices, because the rest is a fresh drive's. They are spread over five
    blocks of slices. Without `bins` there are none, and none that fewer than one I/O lies above.
    """
    by_step = {} if bins is None else dict(tuple(bins.groupby(["recording", "step"], sort=False)))
    for (recording, label), group in soaks.groupby(["recording", "cell_label"], sort=False):
        slices = with_iops_per_watt(group.sort_values(["step", "round"]))
        saturated = saturated_slices(slices)
        verdict = STEADY if post_saturation(slices, "iops").steady else NOT_STEADY
        for metric in _METRICS:
            yield _row(label, metric, saturated, _level(post_saturation(slices, metric)), _SATURATED, verdict)
        if (words := power_words(saturated)) is not None:
            level = _level(post_saturation(slices, IOPS_PER_WATT))
            yield _row(label, IOPS_PER_WATT, saturated, level, f"{_SATURATED}, {words}", verdict)
        step = slices["step"].iloc[-1]
        if (recording, step) in by_step:
            last = slices[slices["step"] == step]
            of, words = (last, "whole soak") if step > 0 else (saturated, "saturated slices")
            for metric, found in _tail(of, by_step[recording, step]):
                yield _row(label, metric, of, found, f"percentile of the {words}", verdict)


def _level(level: Level) -> dict[str, float]:
    return {"value": level.average, "spread_low": level.low, "spread_high": level.high}


def _tail(slices: pd.DataFrame, bins: pd.DataFrame) -> Iterator[tuple[str, dict[str, float]]]:
    """Metric, value and spread, of those percentiles that at least one I/O lies above: else it is the slowest I/O."""
    rounds = slices["round"].to_numpy()
    blocks = [bins[bins["round"].isin(block)] for block in np.array_split(rounds, min(WINDOW, len(rounds)))]
    merged = bins[bins["round"].isin(rounds)]
    if not merged["count"].sum():
        return
    values = percentiles_us(merged, list(_TAIL.values()))
    spread = np.array([values, *(percentiles_us(one, list(_TAIL.values())) for one in blocks if one["count"].sum())])
    for number, (metric, percent) in enumerate(_TAIL.items()):
        if merged["count"].sum() * (100 - percent) / 100 < 1 - 1e-9:
            continue
        low, high = float(spread[:, number].min()), float(spread[:, number].max())
        yield metric, {"value": float(values[number]), "spread_low": low, "spread_high": high}


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
