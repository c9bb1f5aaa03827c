"""What the table `summary` says of loops: of each cell, and of all cells together where a score is asked for."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from drivelab.analysis.figure_of_merit import FIGURE_OF_MERIT, figure_of_merit
from drivelab.analysis.latency import NINES
from drivelab.analysis.power import IOPS_PER_WATT, power_words, with_iops_per_watt
from drivelab.analysis.recovery import without_idle_time
from drivelab.analysis.repeats import FEWEST, relative_standard_error_pct
from drivelab.analysis.steady_state import determine
from drivelab.analysis.summary_rows import gravest, key_of, odd, row, rse_verdict, taint, taint_reason
from drivelab.analysis.verdict import AS_ASKED, IN_CHANGING_PHASE, IN_STEADY_WINDOW, NOT_STEADY, STEADY, TOO_FEW_RUNS
from drivelab.tables.steps import RELATIVE_STANDARD_ERROR, ROUNDS

_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")
_BYTES_PER_MIB, _BYTES_PER_MB = 1 << 20, 10**6
_REPEATS = (ROUNDS, RELATIVE_STANDARD_ERROR)
"""What ends a loop whose rounds are repeats; all others look for steady state."""


@dataclass(frozen=True)
class _Rule:
    """What a loop's values are made of."""

    until: str | None
    reached: bool | None
    """Whether there is a steady-state window; None where the loop does not look for one."""
    rse_threshold_pct: float
    in_phase: bool
    """Whether its rounds are those of a repeated step: what changes the drive from round to round on purpose."""

    def used(self, rounds: pd.DataFrame) -> pd.DataFrame:
        """The rounds that count; of repeats an odd number, the latest waits."""
        if self.reached is not None or len(rounds) < FEWEST:
            return rounds
        return rounds.head(odd(len(rounds)))

    def value(self, values: list[float], steady: str) -> dict[str, Any]:
        """Columns from one value for each round that counts; `steady` is the verdict where the window is reached."""
        found = {"spread_low": min(values), "spread_high": max(values), "rse_pct": None, "n": len(values)}
        if self.reached is not None:
            verdict = steady if self.reached else NOT_STEADY
            return {**found, "n": 1, "value": statistics.fmean(values), "statistic": "window average",
                    "verdict": verdict}  # fmt: skip
        if len(values) < FEWEST:
            words = "one warm round" if len(values) == 1 else f"mean of {len(values)} warm rounds"
            as_asked = AS_ASKED[len(values)] if self.until == ROUNDS else TOO_FEW_RUNS
            return {**found, "value": statistics.fmean(values), "statistic": words, "verdict": as_asked}
        if self.in_phase and self.until == ROUNDS:
            return {**found, "value": statistics.median(values), "statistic": f"median of {len(values)} warm rounds",
                    "verdict": IN_CHANGING_PHASE}  # fmt: skip
        rse_pct = relative_standard_error_pct(values)
        return {
            **found,
            "value": statistics.median(values),
            "rse_pct": rse_pct,
            "statistic": f"median of {len(values)} warm rounds",
            "verdict": rse_verdict(rse_pct, self.rse_threshold_pct),
        }


def loop_rows(
    loops: pd.DataFrame, steady_state: pd.DataFrame, rse_threshold_pct: float, scores: Mapping[str, Mapping[str, str]]
) -> Iterator[dict[str, Any]]:
    """Rows from the rows of loops in table `cells`, with `cell_label`; cold rounds count nowhere.

    Of a loop until steady state a value is the average over the rounds of the window, spread from the lowest to the
    highest. Of any other it is the median of an odd number of rounds, which are n repeats; of one or two rounds their
    mean, which is no median and says nothing of how they agree. Where power was measured throughout, IOPS per watt
    are there too, and of repeats at one outstanding I/O the percentiles: the median of those of each round (in a
    window they would have to be averaged). A burst of a phase of idle time counts only if the drive was idle before
    it, which it is not before the first. `scores` by measurement: `figure_of_merit`, a metric; `best_run`, a title.

    Raises ValueError for a loop until steady state without a window.
    """
    warm = loops[~loops["cold"].astype(bool) & ~without_idle_time(loops)]
    windows = steady_state.groupby(["recording", "step"], as_index=False)[
        ["window_start", "window_end", "reached"]
    ].first()
    rounds = warm.merge(windows, on=["recording", "step"], how="left")
    lost = rounds[rounds["reached"].isna() & ~rounds["until"].isin(_REPEATS)]
    if not lost.empty:
        raise ValueError(f"{lost['recording'].iloc[0]}: a loop has no steady-state window")
    first, last = (rounds[column].astype(float).fillna(0) for column in ("window_start", "window_end"))
    inside = rounds["round"].between(first, last)
    counted = with_iops_per_watt(rounds[rounds["reached"].isna() | inside])
    tracked = set(steady_state[["recording", "variable", "metric"]].itertuples(index=False, name=None))
    steps = counted.groupby("recording")["step"].nunique()
    for (recording, step), loop in counted.groupby(["recording", "step"], sort=False):
        rule, asked = _rule(loop, rse_threshold_pct), scores.get(loop["measurement"].iloc[0], {})
        for _, group in loop.sort_values("round", kind="stable").groupby("cell_label", sort=False):
            used = rule.used(group)
            yield from _cell(used, rule, tracked)
            if "best_run" in asked:
                yield from _best(used, rule, asked["best_run"])
        if "figure_of_merit" in asked:
            name = "figure of merit" if steps[recording] == 1 else f"figure of merit step {step}"
            yield _merit(name, loop, rule, asked["figure_of_merit"])


def _rule(loop: pd.DataFrame, rse_threshold_pct: float) -> _Rule:
    reached = None if loop["reached"].isna().any() else bool(loop["reached"].astype(bool).all())
    return _Rule(loop["until"].iloc[0], reached, rse_threshold_pct, bool(loop["phase"].notna().any()))


def _cell(used: pd.DataFrame, rule: _Rule, tracked: set[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    label, metrics = used["cell_label"].iloc[0], list(_METRICS)
    if (
        rule.reached is None
        and used["direction"].isna().all()
        and used["threads"].iloc[0] * used["queue_depth"].iloc[0] == 1
    ):
        metrics += [metric for metric in NINES if used[metric].notna().all()]
    for metric in metrics:
        is_tracked = (used["recording"].iloc[0], used["measured_as"].iloc[0], metric) in tracked
        values = _floats(used[metric])
        yield _row(label, metric, used, rule.value(values, _steady(used, values) if is_tracked else IN_STEADY_WINDOW))
    if (words := power_words(used)) is not None:
        found = rule.value(_floats(used[IOPS_PER_WATT]), IN_STEADY_WINDOW)
        yield _row(label, IOPS_PER_WATT, used, {**found, "statistic": f"{found['statistic']}, {words}"})


def _steady(used: pd.DataFrame, values: list[float]) -> str:
    """Verdict on a tracked variable in its window; one direction of two is not what was tracked, so it is judged."""
    if used["direction"].isna().all() or (len(values) > 1 and determine(values, window=len(values)).steady):
        return STEADY
    return NOT_STEADY


def _best(used: pd.DataFrame, rule: _Rule, title: str) -> Iterator[dict[str, Any]]:
    rates = [value * _BYTES_PER_MIB / _BYTES_PER_MB for value in _floats(used["bandwidth_mib_s"])]
    latencies = _floats(used["mean_latency_us"])
    for metric, values, best in (
        ("best_bandwidth_mb_s", rates, max(rates)),
        ("best_mean_latency_us", latencies, min(latencies)),
    ):
        found = {**rule.value(values, IN_STEADY_WINDOW), "value": best, "n": len(values)}
        runs = "one run" if len(values) == 1 else f"best of {len(values)} runs"
        yield _row(used["cell_label"].iloc[0], metric, used, {**found, "statistic": f"{title}: {runs}"})


def _merit(name: str, loop: pd.DataFrame, rule: _Rule, metric: str) -> dict[str, Any]:
    """Of each round that all cells have, then as any other value."""
    by_round = figure_of_merit(loop, metric)
    rounds = rule.used(by_round.reset_index())
    used = loop[loop["round"].isin(rounds["round"])]
    found = rule.value(_floats(rounds[FIGURE_OF_MERIT]), IN_STEADY_WINDOW)
    words = f"geometric mean of {metric} over {loop['cell_label'].nunique()} cells"
    return _row(name, FIGURE_OF_MERIT, used, {**found, "statistic": f"{words}, {found['statistic']}"})


def _row(label: str, metric: str, used: pd.DataFrame, found: Mapping[str, Any]) -> dict[str, Any]:
    verdict = gravest([found["verdict"], *taint(used)])
    return row(key_of(used), label, metric, **{**found, "verdict": verdict}, taint_reason=taint_reason(used))


def _floats(values: pd.Series) -> list[float]:
    return [float(value) for value in values]
