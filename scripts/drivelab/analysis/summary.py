"""The table `summary`: one value for each drive, measurement, cell and metric, and its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from drivelab.analysis.labels import cell_labels
from drivelab.analysis.repeats import FEWEST, THRESHOLD_PCT, median_of_odd, relative_standard_error_pct
from drivelab.analysis.replay_summary import replay_rows
from drivelab.analysis.saturation import post_saturation, saturated_slices
from drivelab.analysis.summary_rows import gravest, key_of, odd, row, rse_verdict, taint, taint_reason
from drivelab.analysis.taint import told
from drivelab.analysis.verdict import FAULTS, IN_STEADY_WINDOW, NOT_STEADY, STEADY
from drivelab.tables.schemas import SCHEMAS

_CELL_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")
_LOAD = ["pattern", "block_size_bytes", "read_share_pct", "threads", "queue_depth"]


_OF_THE_VALUE = ("value", "n", "rse_pct", "spread_low", "spread_high", "verdict", "taint_reason", "recordings")
"""Columns that may differ between recordings that are pooled; in all others they must agree."""


def summary_table(
    cells: pd.DataFrame,
    steady_state: pd.DataFrame,
    replays: pd.DataFrame,
    replay_passes: pd.DataFrame,
    rse_threshold_pct: float = THRESHOLD_PCT,
) -> pd.DataFrame:
    """Table `summary` from the tables `cells`, `steady_state`, `replays` and `replay_passes` of any recordings.

    Of one recording: a loop's cell is the average of its rounds in the steady-state window, spread from
    the lowest to the highest; a soak is its post-saturation average, successive soaks of one workload
    being one, but for those between the replays of a phase: they wear the drive, they measure nothing; a replay is
    as `replay_rows` says, of n runs. Several
    recordings of a drive and measurement: the median of an odd number of them (the latest waits if they
    are even), n of them, spread over their values; n below 3 is no median and has no relative standard
    error. Raises ValueError for a loop without its steady-state window and for a replay without a counted
    run.
    """
    in_phases = set(replays.loc[replays["phase"].notna(), "recording"])
    measured = _named(cells[~((cells["kind"] == "soak") & cells["recording"].isin(in_phases))])
    singles = [
        *_loops(measured[measured["kind"] == "loop"], steady_state),
        *_soaks(measured[measured["kind"] == "soak"]),
        *replay_rows(replays, replay_passes, rse_threshold_pct),
    ]
    columns = SCHEMAS["summary"].names
    if not singles:
        return pd.DataFrame(columns=columns)
    same = [column for column in columns if column not in _OF_THE_VALUE]
    groups = pd.DataFrame(singles).groupby(same, sort=False)
    rows = [_pooled(group.sort_values("run").to_dict("records"), rse_threshold_pct) for _, group in groups]
    return pd.DataFrame(rows, columns=columns)


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
            yield row(
                key_of(group),
                label,
                metric,
                value=group[metric].mean(),
                n=1,
                rse_pct=None,
                spread_low=group[metric].min(),
                spread_high=group[metric].max(),
                statistic="window average",
                verdict=gravest([steady if group["reached"].astype(bool).all() else NOT_STEADY, *taint(group)]),
                taint_reason=taint_reason(group),
            )


def _soaks(soaks: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for (_, label), group in soaks.groupby(["recording", "cell_label"], sort=False):
        slices = group.sort_values(["step", "round"])
        steady = post_saturation(slices, "iops").steady
        for metric in _CELL_METRICS:
            level = post_saturation(slices, metric)
            yield row(
                key_of(slices),
                label,
                metric,
                value=level.average,
                n=1,
                rse_pct=None,
                spread_low=level.low,
                spread_high=level.high,
                statistic="post-saturation average",
                verdict=gravest([STEADY if steady else NOT_STEADY, *taint(saturated_slices(slices))]),
                taint_reason=taint_reason(saturated_slices(slices)),
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
    used = recordings[: odd(len(recordings))]
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
        "verdict": gravest([rse_verdict(rse_pct, rse_threshold_pct), *faults]),
        "taint_reason": told(reasons),
        "recordings": names,
    }
