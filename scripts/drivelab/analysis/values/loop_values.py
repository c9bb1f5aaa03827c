"""Make the rows of the table `summary` for loops: per cell, and scores."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.values.latency_values import NINES, has_ios_beyond
from drivelab.analysis.values.recovery import without_idle_time
from drivelab.analysis.values.rows import Trust, evidence, key_of, odd, row, rse_verdict
from drivelab.analysis.verdict import (
    AS_ASKED,
    IN_CHANGING_PHASE,
    IN_STEADY_WINDOW,
    INCOMPLETE_WINDOW,
    NOT_STEADY,
    STEADY,
    TOO_FEW_RUNS,
)
from drivelab.criteria.repeats import FEWEST, median_of_odd, relative_standard_error_pct
from drivelab.criteria.steady_state import determine
from drivelab.tables.labels import KINDS, RELATIVE_STANDARD_ERROR, ROUNDS
from drivelab.tables.schemas import KEY

FIGURE_OF_MERIT = "figure_of_merit"
WINDOW_AVERAGE = "window average"


def figure_of_merit(loop: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the column `figure_of_merit` by round, over the cells of the loop.

    `loop` has rows of table `cells` with `cell_label`. Rounds that lack a cell are left out. Raises ValueError for a
    metric where less is better, for values that are not positive, and if no round has all cells.
    """
    if KINDS[metric] == "time":
        raise ValueError(f"a figure of merit needs a metric where more is better, not '{metric}'")
    values = loop.pivot_table(index="round", columns="cell_label", values=metric, aggfunc="mean", dropna=False).dropna()
    if values.empty:
        raise ValueError(f"{loop['recording'].iloc[0]}: no round has all cells of the loop")
    if not (values.to_numpy() > 0).all():
        raise ValueError(f"{loop['recording'].iloc[0]}: a geometric mean needs positive {metric} in every cell")
    return pd.DataFrame({FIGURE_OF_MERIT: np.exp(np.log(values).mean(axis=1))})


IOPS_PER_WATT = "iops_per_watt"
_WORDS = {"meter": "power by the meter", "drive": "power by the drive's own sensor"}


def with_iops_per_watt(cells: pd.DataFrame) -> pd.DataFrame:
    """Add the column `iops_per_watt` to rows of table `cells`; NaN without power.

    The telemetry prefers the power meter to the drive's own sensor; it excludes host and processors.
    """
    power_w = cells["power_w"].astype(float)
    return cells.assign(**{IOPS_PER_WATT: cells["iops"] / power_w.where(power_w > 0)})


def power_words(cells: pd.DataFrame) -> str | None:
    """Name the source of the power of these cells, for a statistic.

    The result is None unless all cells have power.
    Values of different sources are not compared: a meter includes the losses of the power supply.
    """
    if cells[IOPS_PER_WATT].isna().any():
        return None
    return " and ".join(_WORDS[source] for source in sorted(cells["power_source"].unique()))


_METRICS = ("iops", "bandwidth_mib_s", "mean_latency_us")
_NUMBERS = (*_METRICS, *NINES, "read_ios", "write_ios", IOPS_PER_WATT)
_COLUMNS = ("cell_label", "measured_as", "part", "threads", "queue_depth", "round", "directory")
_ALSO_USED = ("step", "until", "reached", "phase", "power_source", "tainted", "taint_reason", "host_limit",
              "load_pct", "waited_pct", "steal_pct")  # fmt: skip
_Places = npt.NDArray[np.intp]
"""Row positions in a loop."""
_BYTES_PER_MIB, _BYTES_PER_MB = 1 << 20, 10**6
_REPEATS = (ROUNDS, RELATIVE_STANDARD_ERROR)
"""Stop rules of loops whose rounds are repeats; all other loops run until steady state."""


@dataclass(frozen=True)
class _Rule:
    """How the values of a loop are computed."""

    until: str | None
    reached: bool | None
    """Whether steady state was reached; None for a loop that does not look for it."""
    rse_threshold_pct: float
    in_phase: bool
    """Whether the rounds belong to a repeated step, which changes the drive from round to round on purpose."""

    def counted(self, rounds: int) -> int:
        """Return how many of the first `rounds` count: of repeats an odd number."""
        return rounds if self.reached is not None or rounds < FEWEST else odd(rounds)

    def of(self, values: Sequence[float]) -> float:
        """Return the value of values of rounds that count: their mean, or of repeats the median."""
        is_mean = self.reached is not None or len(values) < FEWEST
        return statistics.fmean(values) if is_mean else median_of_odd(list(values))

    def value(self, values: list[float], steady: str) -> dict[str, Any]:
        """Return columns from one value per round that counts. `steady` is the verdict if steady state is reached."""
        n = len(values)
        columns = {"spread_low": min(values), "spread_high": max(values), "rse_pct": None, "n": n, "samples": values,
                 "scope": "rounds", "value": self.of(values)}  # fmt: skip
        if self.reached is not None:
            verdict = steady if self.reached else NOT_STEADY
            return {**columns, "n": 1, "statistic": WINDOW_AVERAGE, "verdict": verdict}
        if n < FEWEST:
            statistic = "one warm round" if n == 1 else f"mean of {n} warm rounds"
            verdict = AS_ASKED[n] if self.until == ROUNDS else TOO_FEW_RUNS
            return {**columns, "statistic": statistic, "verdict": verdict}
        median = {"statistic": f"median of {n} warm rounds"}
        if self.in_phase and self.until == ROUNDS:
            return {**columns, **median, "verdict": IN_CHANGING_PHASE}
        rse_pct = relative_standard_error_pct(values)
        return {**columns, **median, "rse_pct": rse_pct, "verdict": rse_verdict(rse_pct, self.rse_threshold_pct)}


@dataclass(frozen=True)
class _Loop:
    """One loop of one recording, with its rounds in order. Uses arrays because there may be very many cells."""

    rows: pd.DataFrame
    rule: _Rule
    key: dict[str, Any]
    columns: dict[str, npt.NDArray[Any]]
    tracked: set[tuple[str, str]]
    """Name and metric of each tracked variable."""
    rounds: int
    """Number of rounds that count; a window has a tracked variable in each round, so all its rounds count."""

    @classmethod
    def of(cls, rows: pd.DataFrame, rule: _Rule, tracked: set[tuple[str, str]]) -> _Loop:
        rows = rows.sort_values("round", kind="stable")
        columns = {name: rows[name].to_numpy(dtype=float) for name in _NUMBERS}
        others = {name: rows[name].to_numpy() for name in _COLUMNS}
        others["in_doubt"] = (rows["tainted"].astype(bool) | rows["host_limit"].notna()).to_numpy()
        return cls(rows, rule, key_of(rows), {**columns, **others}, tracked, rows["round"].nunique())

    def cells(self) -> Iterator[_Places]:
        """Yield the positions of each cell's rounds that count."""
        codes, _ = pd.factorize(self.columns["cell_label"])
        order = np.argsort(codes, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            yield places[: self.rule.counted(len(places))]

    def floats(self, metric: str, places: _Places) -> list[float]:
        values: list[float] = self.columns[metric][places].tolist()
        return values

    def shared(self, places: _Places) -> _Shared:
        """Return what all values of the rows at `places` have in common."""
        directories = evidence(self.key["recording"], self.columns["directory"][places])
        trust = Trust.of(self.rows.iloc[places]) if self.columns["in_doubt"][places].any() else Trust()
        return _Shared(self.rule, self.key, self._holes(places), trust, directories)

    def _holes(self, places: _Places) -> list[str]:
        """Return the verdict on a cell that lacks a round of the window. Its average covers another span."""
        if self.rule.reached is None or len(set(self.columns["round"][places].tolist())) == self.rounds:
            return []
        return [INCOMPLETE_WINDOW]


@dataclass(frozen=True)
class _Shared:
    """What all values of a cell have in common."""

    rule: _Rule
    key: dict[str, Any]
    holes: list[str]
    trust: Trust
    evidence: list[str]

    def row(self, label: str, metric: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the table."""
        doubts = self.trust.columns(value["verdict"], metric, value["samples"], self.rule.of, self.holes)
        return row(self.key, label, metric, **{**value, **doubts, "evidence": self.evidence})


def loop_rows(
    loops: pd.DataFrame, steady_state: pd.DataFrame, rse_threshold_pct: float, scores: Mapping[str, Mapping[str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield the summary rows of loops.

    `loops` are their rows of table `cells` with `cell_label`; cold rounds are excluded. `scores` has for each
    measurement `figure_of_merit`, a metric, and `best_run`, a title.

    * Loop until steady state: a value is the average over the rounds of the window, its spread is from the lowest to
      the highest round. A cell that lacks a round of the window gets the verdict INCOMPLETE_WINDOW.
    * Other loops: a value is the median of an odd number of rounds, which are n repeats. With one or two rounds it is
      their mean, and nothing is said about agreement.
    * IOPS per watt are added where power was measured throughout.
    * Percentiles are added for repeats with one outstanding I/O: the median of the percentile of each round, if each
      round has an I/O beyond it. In a window they would have to be averaged.
    * Bursts of an idle phase count only if the drive was idle before them, so the first burst is left out.

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
    for state in steady_state[["recording", "variable", "metric"]].itertuples():
        tracked.setdefault(state.recording, set()).add((state.variable, state.metric))
    counted = counted[[*KEY, *_NUMBERS, *_COLUMNS, *_ALSO_USED]]
    steps = counted.groupby("recording")["step"].nunique()
    for (recording, step), rows in counted.groupby(["recording", "step"], sort=False):
        requested = scores.get(rows["measurement"].iloc[0], {})
        loop = _Loop.of(rows, _rule(rows, rse_threshold_pct), tracked.get(recording, set()))
        for places in loop.cells():
            yield from _cell(loop, places)
            if "best_run" in requested:
                yield from _best(loop, places, requested["best_run"])
        if "figure_of_merit" in requested:
            name = "figure of merit" if steps[recording] == 1 else f"figure of merit step {step}"
            yield _merit(name, loop, requested["figure_of_merit"])


def _rule(loop: pd.DataFrame, rse_threshold_pct: float) -> _Rule:
    reached = None if loop["reached"].isna().any() else bool(loop["reached"].astype(bool).all())
    return _Rule(loop["until"].iloc[0], reached, rse_threshold_pct, bool(loop["phase"].notna().any()))


def _cell(loop: _Loop, places: _Places) -> Iterator[dict[str, Any]]:
    columns, first, rule = loop.columns, places[0], loop.rule
    label, metrics = columns["cell_label"][first], list(_METRICS)
    whole = bool(pd.isna(columns["part"][first]))
    if rule.reached is None and whole and columns["threads"][first] * columns["queue_depth"][first] == 1:
        ios = columns["read_ios"][places] + columns["write_ios"][places]
        metrics += [
            metric
            for metric, percent in NINES.items()
            if not np.isnan(columns[metric][places]).any() and has_ios_beyond(float(ios.min()), percent)
        ]
    shared = loop.shared(places)
    for metric in metrics:
        is_tracked = (columns["measured_as"][first], metric) in loop.tracked
        values = loop.floats(metric, places)
        verdict = _steady(whole, values) if is_tracked else IN_STEADY_WINDOW
        yield shared.row(label, metric, rule.value(values, verdict))
    if not np.isnan(columns[IOPS_PER_WATT][places]).any():
        source = power_words(loop.rows.iloc[places])
        value = rule.value(loop.floats(IOPS_PER_WATT, places), IN_STEADY_WINDOW)
        yield shared.row(label, IOPS_PER_WATT, {**value, "statistic": f"{value['statistic']}, {source}"})


def _steady(whole: bool, values: list[float]) -> str:
    """Return the verdict on a tracked variable in its window.

    One of several workloads was not tracked itself, so the steady-state rule is applied to it here.
    """
    if whole or (len(values) > 1 and determine(values, window=len(values)).steady):
        return STEADY
    return NOT_STEADY


def _best(loop: _Loop, places: _Places, title: str) -> Iterator[dict[str, Any]]:
    rates = [value * _BYTES_PER_MIB / _BYTES_PER_MB for value in loop.floats("bandwidth_mib_s", places)]
    latencies = loop.floats("mean_latency_us", places)
    for metric, values, best in (
        ("best_bandwidth_mb_s", rates, max(rates)),
        ("best_mean_latency_us", latencies, min(latencies)),
    ):
        value = {**loop.rule.value(values, IN_STEADY_WINDOW), "value": best, "n": len(values)}
        runs = "one run" if len(values) == 1 else f"best of {len(values)} runs"
        label = loop.columns["cell_label"][places[0]]
        yield loop.shared(places).row(label, metric, {**value, "statistic": f"{title}: {runs}"})


def _merit(name: str, loop: _Loop, metric: str) -> dict[str, Any]:
    """Return the row of the figure of merit, from rounds that all cells have."""
    by_round = figure_of_merit(loop.rows, metric)
    rounds = by_round.head(loop.rule.counted(len(by_round)))
    places = np.flatnonzero(np.isin(loop.columns["round"], rounds.index))
    value = loop.rule.value([float(merit) for merit in rounds[FIGURE_OF_MERIT]], IN_STEADY_WINDOW)
    mean = f"geometric mean of {metric} over {len(set(loop.columns['cell_label']))} cells"
    return loop.shared(places).row(name, FIGURE_OF_MERIT, {**value, "statistic": f"{mean}, {value['statistic']}"})
