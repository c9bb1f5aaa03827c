"""Make the rows of the table `summary` for loops: per cell, and scores."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.values.latency_values import FEWEST_BEYOND, NINES, has_ios_beyond
from drivelab.analysis.values.recovery import without_idle_time
from drivelab.analysis.values.rows import RATES, Trust, evidence, key_of, odd, row, rse_verdict
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
from drivelab.tables.labels import KINDS, REPEATS, ROUNDS
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


_NUMBERS = (*RATES, *NINES, "read_ios", "write_ios", IOPS_PER_WATT)
_COLUMNS = ("cell_label", "measured_as", "part", "threads", "queue_depth", "round", "directory")
_ALSO_USED = ("step", "until", "reached", "phase", "power_source", "tainted", "taint_reason", "host_limit",
              "load_pct", "waited_pct", "steal_pct")  # fmt: skip
_BYTES_PER_MIB, _BYTES_PER_MB = 1 << 20, 10**6


@dataclass(frozen=True)
class _Loop:
    """One loop of one recording, with its rounds in order. Uses arrays because there may be very many cells."""

    rows: pd.DataFrame
    key: dict[str, Any]
    columns: dict[str, npt.NDArray[Any]]
    tracked: set[tuple[str, str]]
    """Name and metric of each tracked variable."""
    rounds: int
    """Number of rounds that count; a window has a tracked variable in each round, so all its rounds count."""
    until: str | None
    reached: bool | None
    """Whether steady state was reached; None for a loop that does not look for it."""
    in_phase: bool
    """Whether the rounds belong to a repeated step, which changes the drive from round to round on purpose."""
    rse_threshold_pct: float

    @classmethod
    def of(cls, rows: pd.DataFrame, tracked: set[tuple[str, str]], rse_threshold_pct: float) -> _Loop:
        rows = rows.sort_values("round", kind="stable")
        columns = {name: rows[name].to_numpy(dtype=float) for name in _NUMBERS}
        others = {name: rows[name].to_numpy() for name in _COLUMNS}
        others["in_doubt"] = (rows["tainted"].astype(bool) | rows["host_limit"].notna()).to_numpy()
        reached = None if rows["reached"].isna().any() else bool(rows["reached"].astype(bool).all())
        until, in_phase = rows["until"].iloc[0], bool(rows["phase"].notna().any())
        return cls(rows, key_of(rows), {**columns, **others}, tracked, rows["round"].nunique(), until, reached,
                   in_phase, rse_threshold_pct)  # fmt: skip

    def counted(self, rounds: int) -> int:
        """Return how many of the first `rounds` count: of repeats an odd number."""
        return rounds if self.reached is not None or rounds < FEWEST else odd(rounds)

    def average(self, values: Sequence[float]) -> float:
        """Return the value of values of rounds that count: their mean, or of repeats the median."""
        is_mean = self.reached is not None or len(values) < FEWEST
        return statistics.fmean(values) if is_mean else median_of_odd(list(values))

    def value(self, values: list[float], steady: str = IN_STEADY_WINDOW) -> dict[str, Any]:
        """Return columns from one value per round that counts. `steady` is the verdict if steady state is reached."""
        n = len(values)
        columns = {"n": n, "samples": values, "scope": "rounds", "value": self.average(values), "rse_pct": None}
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

    def cells(self) -> Iterator[_Cell]:
        """Yield the rounds of each cell that count."""
        codes, _ = pd.factorize(self.columns["cell_label"])
        order = np.argsort(codes, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            yield _Cell(self, places[: self.counted(len(places))])


@dataclass(frozen=True)
class _Cell:
    """Rows of a loop at `places`, which is one cell or all of them."""

    loop: _Loop
    places: npt.NDArray[np.intp]

    def first(self, column: str) -> Any:
        return self.loop.columns[column][self.places[0]]

    def floats(self, metric: str) -> list[float]:
        values: list[float] = self.loop.columns[metric][self.places].tolist()
        return values

    @cached_property
    def _trust(self) -> Trust:
        in_doubt = self.loop.columns["in_doubt"][self.places].any()
        return Trust.of(self.loop.rows.iloc[self.places]) if in_doubt else Trust()

    @cached_property
    def _holes(self) -> list[str]:
        """Return the verdict on a cell that lacks a round of the window. Its average covers another span."""
        rounds = len(set(self.loop.columns["round"][self.places].tolist()))
        return [] if self.loop.reached is None or rounds == self.loop.rounds else [INCOMPLETE_WINDOW]

    @cached_property
    def _evidence(self) -> list[str]:
        return evidence(self.loop.key["recording"], self.loop.columns["directory"][self.places])

    def row(self, label: str, metric: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of the table."""
        doubts = self._trust.columns(value["verdict"], metric, value["samples"], self.loop.average, self._holes)
        return row(self.loop.key, label, metric, **{**value, **doubts, "evidence": self._evidence})

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of all metrics of a cell."""
        loop, label, metrics = self.loop, self.first("cell_label"), list(RATES)
        whole = bool(pd.isna(self.first("part")))
        if loop.reached is None and whole and self.first("threads") * self.first("queue_depth") == 1:
            ios = float((loop.columns["read_ios"] + loop.columns["write_ios"])[self.places].min())
            metrics += [
                metric
                for metric, percent in NINES.items()
                if not np.isnan(self.floats(metric)).any() and has_ios_beyond(ios, percent, FEWEST_BEYOND)
            ]
        for metric in metrics:
            values, verdict = self.floats(metric), IN_STEADY_WINDOW
            if (self.first("measured_as"), metric) in loop.tracked:
                # one of several workloads was not tracked itself, so the steady-state rule is applied to it here
                steady = whole or (len(values) > 1 and determine(values, window=len(values)).steady)
                verdict = STEADY if steady else NOT_STEADY
            yield self.row(label, metric, loop.value(values, verdict))
        per_watt = self.floats(IOPS_PER_WATT)
        if not np.isnan(per_watt).any():
            value = loop.value(per_watt)
            source = power_words(loop.rows.iloc[self.places])
            yield self.row(label, IOPS_PER_WATT, {**value, "statistic": f"{value['statistic']}, {source}"})

    def best(self, title: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of the best of the rounds that count."""
        rates = [value * _BYTES_PER_MIB / _BYTES_PER_MB for value in self.floats("bandwidth_mib_s")]
        latencies = self.floats("mean_latency_us")
        runs = "one run" if len(rates) == 1 else f"best of {len(rates)} runs"
        for metric, values, best in (
            ("best_bandwidth_mb_s", rates, max(rates)),
            ("best_mean_latency_us", latencies, min(latencies)),
        ):
            value = {**self.loop.value(values), "value": best, "n": len(values), "statistic": f"{title}: {runs}"}
            yield self.row(self.first("cell_label"), metric, value)


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
    lost = rounds[rounds["reached"].isna() & ~rounds["until"].isin(REPEATS)]
    if not lost.empty:
        raise ValueError(f"{lost['recording'].iloc[0]}: a loop has no steady-state window")
    first, last = (rounds[column].astype(float) for column in ("window_start", "window_end"))
    counted = with_iops_per_watt(rounds[rounds["reached"].isna() | rounds["round"].between(first, last)])
    tracked = {
        recording: set(zip(states["variable"], states["metric"], strict=True))
        for recording, states in steady_state.groupby("recording")
    }
    counted = counted[[*KEY, *_NUMBERS, *_COLUMNS, *_ALSO_USED]]
    steps = counted.groupby("recording")["step"].nunique()
    for (recording, step), rows in counted.groupby(["recording", "step"], sort=False):
        requested = scores.get(rows["measurement"].iloc[0], {})
        loop = _Loop.of(rows, tracked.get(recording, set()), rse_threshold_pct)
        for cell in loop.cells():
            yield from cell.rows()
            if "best_run" in requested:
                yield from cell.best(requested["best_run"])
        if "figure_of_merit" in requested:
            name = "figure of merit" if steps[recording] == 1 else f"figure of merit step {step}"
            yield _merit(name, loop, requested["figure_of_merit"])


def _merit(name: str, loop: _Loop, metric: str) -> dict[str, Any]:
    """Return the row of the figure of merit, from rounds that all cells have."""
    by_round = figure_of_merit(loop.rows, metric)
    rounds = by_round.head(loop.counted(len(by_round)))
    cells = _Cell(loop, np.flatnonzero(np.isin(loop.columns["round"], rounds.index)))
    value = loop.value(rounds[FIGURE_OF_MERIT].astype(float).tolist())
    mean = f"geometric mean of {metric} over {len(set(loop.columns['cell_label']))} cells"
    return cells.row(name, FIGURE_OF_MERIT, {**value, "statistic": f"{mean}, {value['statistic']}"})
