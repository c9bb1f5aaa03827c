"""What the table `summary` says of loops: of each cell, and of all cells together where a score is asked for."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.figure_of_merit import FIGURE_OF_MERIT, figure_of_merit
from drivelab.analysis.latency import NINES
from drivelab.analysis.power import IOPS_PER_WATT, power_words, with_iops_per_watt
from drivelab.analysis.recovery import without_idle_time
from drivelab.analysis.repeats import FEWEST, relative_standard_error_pct
from drivelab.analysis.spread import MEAN, MEDIAN
from drivelab.analysis.steady_state import determine
from drivelab.analysis.summary_rows import evidence, gravest, key_of, odd, row, rse_verdict, taint, taint_reason
from drivelab.analysis.verdict import (
    AS_ASKED,
    IN_CHANGING_PHASE,
    IN_STEADY_WINDOW,
    INCOMPLETE_WINDOW,
    NOT_STEADY,
    STEADY,
    TOO_FEW_RUNS,
)
from drivelab.tables.schemas import KEY
from drivelab.tables.steps import RELATIVE_STANDARD_ERROR, ROUNDS

_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")
_NUMBERS = (*_METRICS, *NINES, IOPS_PER_WATT)
_COLUMNS = ("cell_label", "measured_as", "direction", "threads", "queue_depth", "round", "tainted", "directory")
_ALSO_USED = ("step", "until", "reached", "phase", "power_source", "taint_reason")
_Places = npt.NDArray[np.intp]
"""Numbers of rows of a loop."""
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

    def counted(self, rounds: int) -> int:
        """How many of so many rounds count, the first ones; of repeats an odd number, the latest waits."""
        return rounds if self.reached is not None or rounds < FEWEST else odd(rounds)

    def value(self, values: list[float], steady: str) -> dict[str, Any]:
        """Columns from one value for each round that counts; `steady` is the verdict where the window is reached."""
        n = len(values)
        found = {"spread_low": min(values), "spread_high": max(values), "rse_pct": None, "n": n, "samples": values,
                 "scope": "rounds"}  # fmt: skip
        if self.reached is not None:
            verdict = steady if self.reached else NOT_STEADY
            return {**found, "n": 1, "value": statistics.fmean(values), "centre": MEAN, "statistic": "window average",
                    "verdict": verdict}  # fmt: skip
        if n < FEWEST:
            words = "one warm round" if n == 1 else f"mean of {n} warm rounds"
            as_asked = AS_ASKED[n] if self.until == ROUNDS else TOO_FEW_RUNS
            return {**found, "value": statistics.fmean(values), "centre": MEAN, "statistic": words,
                    "verdict": as_asked}  # fmt: skip
        of_median = {"value": statistics.median(values), "centre": MEDIAN, "statistic": f"median of {n} warm rounds"}
        if self.in_phase and self.until == ROUNDS:
            return {**found, **of_median, "verdict": IN_CHANGING_PHASE}
        rse_pct = relative_standard_error_pct(values)
        return {**found, **of_median, "rse_pct": rse_pct, "verdict": rse_verdict(rse_pct, self.rse_threshold_pct)}


@dataclass(frozen=True)
class _Loop:
    """One loop of one recording, its rounds in order, as arrays: it may have very many cells."""

    rows: pd.DataFrame
    rule: _Rule
    key: dict[str, Any]
    columns: dict[str, npt.NDArray[Any]]
    tracked: set[tuple[str, str]]
    """Name and metric of each tracked variable."""
    rounds: int
    """How many rounds count; of a window all, because a tracked variable is in each."""

    @classmethod
    def of(cls, rows: pd.DataFrame, rule: _Rule, tracked: set[tuple[str, str]]) -> _Loop:
        rows = rows.sort_values("round", kind="stable")
        columns = {name: rows[name].to_numpy(dtype=float) for name in _NUMBERS}
        told = {name: rows[name].to_numpy() for name in _COLUMNS}
        return cls(rows, rule, key_of(rows), {**columns, **told}, tracked, rows["round"].nunique())

    def cells(self) -> Iterator[_Places]:
        """Places of the rounds that count, of each cell, in the order in which they come first."""
        codes, _ = pd.factorize(self.columns["cell_label"])
        order = np.argsort(codes, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            yield places[: self.rule.counted(len(places))]

    def floats(self, metric: str, places: _Places) -> list[float]:
        found: list[float] = self.columns[metric][places].tolist()
        return found

    def told(self, places: _Places) -> _Told:
        """What is the same of all values of the cells at `places`."""
        directories = evidence(self.key["recording"], self.columns["directory"][places])
        faults = self._holes(places)
        if not self.columns["tainted"][places].any():
            return _Told(self.key, faults, None, directories)
        used = self.rows.iloc[places]
        return _Told(self.key, [*faults, *taint(used)], taint_reason(used), directories)

    def _holes(self, places: _Places) -> list[str]:
        """Verdict on cells that are not in all rounds of a window, for the average is then of another span."""
        if self.rule.reached is None or len(set(self.columns["round"][places].tolist())) == self.rounds:
            return []
        return [INCOMPLETE_WINDOW]


@dataclass(frozen=True)
class _Told:
    """Of cells that values stand on."""

    key: dict[str, Any]
    faults: list[str]
    taint_reason: str | None
    evidence: list[str]

    def row(self, label: str, metric: str, found: Mapping[str, Any]) -> dict[str, Any]:
        """A row of the table."""
        verdict = gravest([found["verdict"], *self.faults])
        told = {**found, "verdict": verdict, "evidence": self.evidence, "taint_reason": self.taint_reason}
        return row(self.key, label, metric, **told)


def loop_rows(
    loops: pd.DataFrame, steady_state: pd.DataFrame, rse_threshold_pct: float, scores: Mapping[str, Mapping[str, str]]
) -> Iterator[dict[str, Any]]:
    """Rows from the rows of loops in table `cells`, with `cell_label`; cold rounds count nowhere.

    Of a loop until steady state a value is the average over the rounds of the window, spread from the lowest to the
    highest; of a cell that is not in all of them the verdict is INCOMPLETE_WINDOW. Of any other it is the median of an
    odd number of rounds, which are n repeats; of one or two rounds their mean, which is no median and says nothing of
    how they agree. Where power was measured throughout, IOPS per watt are there too, and of repeats at one outstanding
    I/O the percentiles: the median of those of each round (in a window they would have to be averaged). A burst of a
    phase of idle time counts only if the drive was idle before it, which it is not before the first. `scores` by
    measurement: `figure_of_merit`, a metric; `best_run`, a title.

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
    tracked: dict[str, set[tuple[str, str]]] = {}
    for one in steady_state[["recording", "variable", "metric"]].itertuples():
        tracked.setdefault(one.recording, set()).add((one.variable, one.metric))
    counted = counted[[*KEY, *_NUMBERS, *_COLUMNS, *_ALSO_USED]]
    steps = counted.groupby("recording")["step"].nunique()
    for (recording, step), rows in counted.groupby(["recording", "step"], sort=False):
        asked = scores.get(rows["measurement"].iloc[0], {})
        loop = _Loop.of(rows, _rule(rows, rse_threshold_pct), tracked.get(recording, set()))
        for places in loop.cells():
            yield from _cell(loop, places)
            if "best_run" in asked:
                yield from _best(loop, places, asked["best_run"])
        if "figure_of_merit" in asked:
            name = "figure of merit" if steps[recording] == 1 else f"figure of merit step {step}"
            yield _merit(name, loop, asked["figure_of_merit"])


def _rule(loop: pd.DataFrame, rse_threshold_pct: float) -> _Rule:
    reached = None if loop["reached"].isna().any() else bool(loop["reached"].astype(bool).all())
    return _Rule(loop["until"].iloc[0], reached, rse_threshold_pct, bool(loop["phase"].notna().any()))


def _cell(loop: _Loop, places: _Places) -> Iterator[dict[str, Any]]:
    columns, first, rule = loop.columns, places[0], loop.rule
    label, metrics = columns["cell_label"][first], list(_METRICS)
    both = not isinstance(columns["direction"][first], str)
    if rule.reached is None and both and columns["threads"][first] * columns["queue_depth"][first] == 1:
        metrics += [metric for metric in NINES if not np.isnan(columns[metric][places]).any()]
    told = loop.told(places)
    for metric in metrics:
        is_tracked = (columns["measured_as"][first], metric) in loop.tracked
        values = loop.floats(metric, places)
        verdict = _steady(both, values) if is_tracked else IN_STEADY_WINDOW
        yield told.row(label, metric, rule.value(values, verdict))
    if not np.isnan(columns[IOPS_PER_WATT][places]).any():
        words = power_words(loop.rows.iloc[places])
        found = rule.value(loop.floats(IOPS_PER_WATT, places), IN_STEADY_WINDOW)
        yield told.row(label, IOPS_PER_WATT, {**found, "statistic": f"{found['statistic']}, {words}"})


def _steady(both: bool, values: list[float]) -> str:
    """Verdict on a tracked variable in its window; one direction of two is not what was tracked, so it is judged."""
    if both or (len(values) > 1 and determine(values, window=len(values)).steady):
        return STEADY
    return NOT_STEADY


def _best(loop: _Loop, places: _Places, title: str) -> Iterator[dict[str, Any]]:
    rates = [value * _BYTES_PER_MIB / _BYTES_PER_MB for value in loop.floats("bandwidth_mib_s", places)]
    latencies = loop.floats("mean_latency_us", places)
    for metric, values, best in (
        ("best_bandwidth_mb_s", rates, max(rates)),
        ("best_mean_latency_us", latencies, min(latencies)),
    ):
        found = {**loop.rule.value(values, IN_STEADY_WINDOW), "value": best, "n": len(values), "centre": None}
        runs = "one run" if len(values) == 1 else f"best of {len(values)} runs"
        label = loop.columns["cell_label"][places[0]]
        yield loop.told(places).row(label, metric, {**found, "statistic": f"{title}: {runs}"})


def _merit(name: str, loop: _Loop, metric: str) -> dict[str, Any]:
    """Of each round that all cells have, then as any other value."""
    by_round = figure_of_merit(loop.rows, metric)
    rounds = by_round.head(loop.rule.counted(len(by_round)))
    places = np.flatnonzero(np.isin(loop.columns["round"], rounds.index))
    found = loop.rule.value([float(value) for value in rounds[FIGURE_OF_MERIT]], IN_STEADY_WINDOW)
    words = f"geometric mean of {metric} over {len(set(loop.columns['cell_label']))} cells"
    return loop.told(places).row(name, FIGURE_OF_MERIT, {**found, "statistic": f"{words}, {found['statistic']}"})
