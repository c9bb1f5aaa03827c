"""What the table `summary` says of soaks: the average over the slices that count, and the tail of their latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.counted_slices import CountedSlices, counted_slices
from drivelab.analysis.latency import NINES
from drivelab.analysis.loads import at_points
from drivelab.analysis.power import IOPS_PER_WATT, power_words, with_iops_per_watt
from drivelab.analysis.saturation import Level, level
from drivelab.analysis.spread import FEWEST, MEAN, interval_of, resamples
from drivelab.analysis.steady_state import WINDOW
from drivelab.analysis.summary_rows import evidence, gravest, key_of, row, taint, taint_reason
from drivelab.analysis.verdict import INCOMPLETE_WINDOW, NOT_STEADY, SINGLE_SLICE, STEADY, TOO_FEW_SLICES

_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")
_TAIL = {f"p{nines}_latency_us": NINES[f"p{nines}_latency_us"] for nines in ("99", "9999", "99999", "999999")}

_Floats = npt.NDArray[np.float64]
_Counts = npt.NDArray[np.int64]
_Bins = Mapping[tuple[str, int], pd.DataFrame]
"""Rows of `latency_bins` by recording and step."""


def soak_rows(soaks: pd.DataFrame, bins: pd.DataFrame | None) -> Iterator[dict[str, Any]]:
    """Rows from the rows of soaks in table `cells`, with `cell_label`, and from their rows of `latency_bins`.

    `soaks` have the columns of `by_direction`, `saturating` and `lacking` too. Rates and mean latency are averages over
    the slices that count, see `counted_slices`; IOPS per watt too, where power was measured throughout. Percentiles are
    of the merged bins of the same slices. All are spread over five equal parts of them, which tell too whether they are
    steady, but of fewer slices, and where the soak ended by its own rule. At a point the statistic names the load.
    Without `bins` there are no percentiles, and none that fewer than one I/O lies above.
    """
    by_step = {} if bins is None else dict(tuple(bins.groupby(["recording", "step"], sort=False)))
    for _, group in soaks.groupby(["recording", "cell_label"], sort=False):
        counted = counted_slices(with_iops_per_watt(group.sort_values(["step", "round"])))
        slices, verdict = counted.slices, _verdict(counted)
        label, load = str(slices["cell_label"].iloc[0]), at_points(slices)
        average = f"{counted.statistic}{load}"
        for metric in _METRICS:
            yield _row(label, metric, slices, _spread(level(slices, metric)), average, verdict)
        if (words := power_words(slices)) is not None:
            per_watt = _spread(level(slices, IOPS_PER_WATT))
            yield _row(label, IOPS_PER_WATT, slices, per_watt, f"{average}, {words}", verdict)
        for metric, found in _tail(slices, by_step):
            yield _row(label, metric, slices, found, f"percentile of the {counted.words}{load}", verdict)


def _verdict(counted: CountedSlices) -> str:
    """The rule of a soak knows reads and writes together only: of one of them it says nothing. What is left of a
    window that lacks slices is not what the soak ended for."""
    if counted.slices["lacking"].any():
        return INCOMPLETE_WINDOW
    if counted.by_own_rule and counted.slices["direction"].isna().all():
        return STEADY
    if len(counted.slices) < WINDOW:
        return SINGLE_SLICE if len(counted.slices) == 1 else TOO_FEW_SLICES
    return STEADY if level(counted.slices, "iops").steady else NOT_STEADY


def _spread(found: Level) -> dict[str, Any]:
    low, high, parts = found.low, found.high, list(found.blocks)
    return {"value": found.average, "spread_low": low, "spread_high": high, "samples": parts, "centre": MEAN}


def _tail(slices: pd.DataFrame, by_step: _Bins) -> Iterator[tuple[str, dict[str, Any]]]:
    """Metric, value and spread, of those percentiles that at least one I/O lies above: else it is the slowest I/O.

    The interval is that of the percentile of the merged bins, where the parts are what is drawn anew.
    """
    latency_us, counts = _by_part(slices, by_step)
    if not len(counts):
        return
    total = int(counts.sum())
    (values,), of_parts = _percentiles_us(latency_us, counts.sum(axis=0)[None, :]), _percentiles_us(latency_us, counts)
    drawn = None
    if len(counts) >= FEWEST:
        numbers, probabilities = resamples(len(counts))
        drawn = _percentiles_us(latency_us, numbers @ counts)
    for number, (metric, percent) in enumerate(_TAIL.items()):
        if total * (100 - percent) / 100 < 1 - 1e-9:
            continue
        samples, value = of_parts[:, number], float(values[number])
        low, high = (None, None) if drawn is None else interval_of(drawn[:, number], probabilities)
        yield (
            metric,
            {
                "value": value,
                "spread_low": min(value, float(samples.min())),
                "spread_high": max(value, float(samples.max())),
                "samples": samples.tolist(),
                "interval_low": low,
                "interval_high": high,
                "centre": None,
            },
        )


def _by_part(slices: pd.DataFrame, by_step: _Bins) -> tuple[_Floats, _Counts]:
    """Latencies in us, ascending, and by part of the slices with any I/O how many there are of each.

    Of slices of one recording, of their direction where they have one.
    """
    recording, direction = slices["recording"].iloc[0], slices["direction"].iloc[0]
    parts = min(WINDOW, len(slices))
    part_of = np.concatenate(
        [np.full(len(one), n) for n, one in enumerate(np.array_split(np.arange(len(slices)), parts))]
    )
    found = [(np.empty(0, dtype=np.int64),) * 3]
    for step, of_step in slices.assign(part=part_of).groupby("step"):
        if (recording, step) not in by_step:
            continue
        bins = by_step[recording, step]
        if isinstance(direction, str):
            bins = bins[bins["direction"] == direction]
        part = bins["round"].map(of_step.set_index("round")["part"])
        inside = part.notna().to_numpy()
        columns = (part, bins["latency_ns"], bins["count"])
        found.append(tuple(one.to_numpy()[inside].astype(np.int64) for one in columns))
    part, latency_ns, count = (np.concatenate(one) for one in zip(*found, strict=True))
    latencies, places = np.unique(latency_ns, return_inverse=True)
    counts = np.zeros((parts, len(latencies)), dtype=np.int64)
    np.add.at(counts, (part, places), count)
    return latencies / 1000, counts[counts.sum(axis=1) > 0]


def _percentiles_us(latency_us: _Floats, counts: _Counts) -> _Floats:
    """For each row of `counts`, the percentiles of `_TAIL`; as `drivelab.analysis.latency.percentiles_us` has them."""
    reached = counts.cumsum(axis=1)
    total = reached[:, -1:]
    needed = [percent / 100 * total * (1 - 1e-12) for percent in _TAIL.values()]
    return np.stack([latency_us[(reached >= one).argmax(axis=1)] for one in needed], axis=1)


def _row(
    label: str, metric: str, slices: pd.DataFrame, found: dict[str, Any], statistic: str, verdict: str
) -> dict[str, Any]:
    return row(
        key_of(slices),
        label,
        metric,
        **found,
        n=1,
        scope="slices",
        evidence=evidence(str(slices["recording"].iloc[0]), slices["directory"]),
        rse_pct=None,
        statistic=statistic,
        verdict=gravest([verdict, *taint(slices)]),
        taint_reason=taint_reason(slices),
    )
