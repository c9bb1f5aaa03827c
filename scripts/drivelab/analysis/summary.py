"""The table `summary`: one value for each drive, measurement, cell and metric, and its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from drivelab.analysis.labels import KINDS, UNITS, cell_labels
from drivelab.analysis.repeats import FEWEST, THRESHOLD_PCT, median_of_odd, relative_standard_error_pct
from drivelab.analysis.saturation import post_saturation, saturated_slices
from drivelab.analysis.taint import digest, told
from drivelab.analysis.verdict import (
    FAULTS,
    IN_STEADY_WINDOW,
    NOT_STEADY,
    RSE_OK,
    RSE_TOO_HIGH,
    STEADY,
    TAINTED,
    TOO_FEW_RUNS,
)
from drivelab.tables.schemas import KEY, SCHEMAS

_CELL_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")
_REPLAY_METRICS = ("bandwidth_mib_s", "mean_latency_us", "p99_latency_us")
_LOAD = ["pattern", "block_size_bytes", "read_share_pct", "threads", "queue_depth"]


_OF_THE_VALUE = ("value", "n", "rse_pct", "spread_low", "spread_high", "verdict", "taint_reason", "recordings")
"""Columns that may differ between recordings that are pooled; in all others they must agree."""


def summary_table(
    cells: pd.DataFrame,
    steady_state: pd.DataFrame,
    replays: pd.DataFrame,
    rse_threshold_pct: float = THRESHOLD_PCT,
) -> pd.DataFrame:
    """Table `summary` from the tables `cells`, `steady_state` and `replays` of any number of recordings.

    Of one recording: a loop's cell is the average of its rounds in the steady-state window, spread from
    the lowest to the highest; a soak is its post-saturation average, successive soaks of one workload
    being one; a replay is the median of its counted warm runs, n of them, spread over all. Several
    recordings of a drive and measurement: the median of an odd number of them (the latest waits if they
    are even), n of them, spread over their values; n below 3 is no median and has no relative standard
    error. Raises ValueError for a loop without its steady-state window and for a replay without a counted
    run.
    """
    measured = _named(cells)
    singles = [
        *_loops(measured[measured["kind"] == "loop"], steady_state),
        *_soaks(measured[measured["kind"] == "soak"]),
        *_replays(replays, rse_threshold_pct),
    ]
    columns = SCHEMAS["summary"].names
    if not singles:
        return pd.DataFrame(columns=columns)
    same = [column for column in columns if column not in _OF_THE_VALUE]
    groups = pd.DataFrame(singles).groupby(same, sort=False)
    rows = [_pooled(group.sort_values("run").to_dict("records"), rse_threshold_pct) for _, group in groups]
    return pd.DataFrame(rows, columns=columns)


def _row(key: dict[str, Any], label: str, metric: str, **found: Any) -> dict[str, Any]:
    return {
        **key,
        "cell_label": label,
        "metric": metric,
        "kind": KINDS[metric],
        "unit": UNITS[metric],
        **found,
    }


def _loops(loops: pd.DataFrame, steady_state: pd.DataFrame) -> Iterator[dict[str, Any]]:
    windows = steady_state.groupby(["recording", "step"], as_index=False)[
        ["window_start", "window_end", "reached"]
    ].first()
    rounds = loops.merge(windows, on=["recording", "step"], how="left")
    if rounds["reached"].isna().any():
        lost = rounds.loc[rounds["reached"].isna(), "recording"].iloc[0]
        raise ValueError(f"{lost}: a loop has no steady-state window")
    inside = rounds[rounds["round"].between(rounds["window_start"], rounds["window_end"])]
    tracked = set(steady_state[["recording", "variable", "metric"]].itertuples(index=False, name=None))
    for (recording, label), group in inside.groupby(["recording", "cell_label"], sort=False):
        for metric in _CELL_METRICS:
            steady = STEADY if (recording, label, metric) in tracked else IN_STEADY_WINDOW
            yield _row(
                _key(group),
                label,
                metric,
                value=group[metric].mean(),
                n=1,
                rse_pct=None,
                spread_low=group[metric].min(),
                spread_high=group[metric].max(),
                statistic="window average",
                verdict=_gravest([steady if group["reached"].astype(bool).all() else NOT_STEADY, *_taint(group)]),
                taint_reason=_taint_reason(group),
            )


def _soaks(soaks: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for (_, label), group in soaks.groupby(["recording", "cell_label"], sort=False):
        slices = group.sort_values(["step", "round"])
        steady = post_saturation(slices, "iops").steady
        for metric in _CELL_METRICS:
            level = post_saturation(slices, metric)
            yield _row(
                _key(slices),
                label,
                metric,
                value=level.average,
                n=1,
                rse_pct=None,
                spread_low=level.low,
                spread_high=level.high,
                statistic="post-saturation average",
                verdict=_gravest([STEADY if steady else NOT_STEADY, *_taint(saturated_slices(slices))]),
                taint_reason=_taint_reason(saturated_slices(slices)),
            )


def _replays(replays: pd.DataFrame, rse_threshold_pct: float) -> Iterator[dict[str, Any]]:
    for (recording, trace), runs in replays.groupby(["recording", "trace"], sort=False):
        warm = runs[runs["warm"] & runs["counted"]].sort_values("repeat")
        if warm.empty:
            raise ValueError(f"{recording}: no replay of trace '{trace}' counts")
        used = warm.head(_odd(len(warm)))
        # at the original pace the trace, not the drive, says how long it takes
        metrics = (*_REPLAY_METRICS, "duration_s") if (used["timing"] == "asap").all() else _REPLAY_METRICS
        for metric in metrics:
            values = [float(value) for value in used[metric]]
            rse_pct = relative_standard_error_pct(values) if len(values) >= FEWEST else None
            yield _row(
                _key(used),
                f"replay {trace}",
                metric,
                value=median_of_odd(values) if len(values) >= FEWEST else values[0],
                n=len(values),
                rse_pct=rse_pct,
                spread_low=min(values),
                spread_high=max(values),
                statistic="median of warm runs",
                verdict=_gravest([_rse_verdict(rse_pct, rse_threshold_pct), *_taint(used)]),
                taint_reason=_taint_reason(used),
            )


def _named(cells: pd.DataFrame) -> pd.DataFrame:
    """The rows of loops and soaks with a column `cell_label`.

    A soak that goes on with the workload of the soak just before has its name: the PTS write saturation
    is one stretch, whose end is measured with the full histogram.
    """
    measured = cells[cells["kind"].isin(["loop", "soak"])].copy()
    soaks = measured.loc[measured["kind"] == "soak", ["recording", "step", *_LOAD]].drop_duplicates()
    begins: dict[tuple[str, int], tuple[int, tuple[Any, ...]]] = {}
    for recording, step, *load in soaks.sort_values(["recording", "step"]).itertuples(index=False):
        first, before = begins.get((recording, step - 1), (step, ()))
        begins[recording, step] = (first if before == tuple(load) else step, tuple(load))
    steps = zip(measured["recording"], measured["step"], strict=True)
    measured["begin"] = [begins[place][0] if place in begins else place[1] for place in steps]
    columns = ["recording", "kind", "begin", *_LOAD]
    places = measured[columns].drop_duplicates().sort_values(["recording", "begin"], kind="stable")
    places["cell_label"] = cell_labels(places.rename(columns={"begin": "step"}))
    return measured.merge(places, on=columns, how="left")


def _pooled(recordings: list[dict[str, Any]], rse_threshold_pct: float) -> dict[str, Any]:
    used = recordings[: _odd(len(recordings))]
    names = [one["recording"] for one in used]
    if len(used) < FEWEST:
        return {**used[0], "recordings": names}
    values = [one["value"] for one in used]
    rse_pct = relative_standard_error_pct(values)
    faults = [one["verdict"] for one in used if one["verdict"] in FAULTS]
    reasons = dict.fromkeys(one["taint_reason"] for one in used if isinstance(one["taint_reason"], str))
    return {
        **used[0],
        "value": median_of_odd(values),
        "n": len(used),
        "statistic": f"median of {len(used)} recordings",
        "rse_pct": rse_pct,
        "spread_low": min(values),
        "spread_high": max(values),
        "verdict": _gravest([_rse_verdict(rse_pct, rse_threshold_pct), *faults]),
        "taint_reason": told(reasons),
        "recordings": names,
    }


def _rse_verdict(rse_pct: float | None, threshold_pct: float) -> str:
    if rse_pct is None:
        return TOO_FEW_RUNS
    return RSE_OK if rse_pct <= threshold_pct else RSE_TOO_HIGH


def _gravest(verdicts: list[str]) -> str:
    return next((fault for fault in FAULTS if fault in verdicts), verdicts[0])


def _taint(rows: pd.DataFrame) -> Iterable[str]:
    return [TAINTED] if rows["tainted"].any() else []


def _taint_reason(rows: pd.DataFrame) -> str | None:
    return told(digest(rows["taint_reason"].dropna()))


def _key(rows: pd.DataFrame) -> dict[str, Any]:
    return {column: rows[column].iloc[0] for column in KEY}


def _odd(count: int) -> int:
    return count if count % 2 else count - 1
