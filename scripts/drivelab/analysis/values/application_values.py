"""Make the rows of the table `summary` for applications: their durations."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import pandas as pd

from drivelab.analysis.values.rows import Trust, key_of, odd, row, rse_verdict, turn_of
from drivelab.analysis.verdict import AS_ASKED, IN_CHANGING_PHASE, IN_PHASE, PARTIAL
from drivelab.criteria.repeats import FEWEST, relative_standard_error_pct

METRIC = "duration_s"
LABEL = "application "
"""Prefix of an application's name in a `cell_label`."""
SIMULATED = "simulated from its trace"
"""Part of the `statistic` of a simulated duration: no application ran, its trace was replayed instead."""


def application_rows(runs: pd.DataFrame, rse_threshold_pct: float) -> Iterator[dict[str, Any]]:
    """Yield the median duration of the warm runs of each step of each recording.

    `runs` is table `application_runs`. All warm runs count where the protocol asks for a number of runs. Where runs
    repeat until they agree, an odd number of them counts. The label of a repeated step has its phase; the label of a
    later step of the same application has the step's number. A step without a sound warm run has no row.
    Raises ValueError for a step without a warm run.
    """
    first: dict[tuple[str, str], int] = {}
    for (recording, name, step), step_runs in runs.groupby(["recording", "application", "step"], sort=False):
        phase = turn_of(step_runs)
        is_later_step = first.setdefault((recording, name), step) != step and not phase
        label = f"{LABEL}{name}{phase}{f' step {step}' if is_later_step else ''}"
        counted = _counted(step_runs, label, ~step_runs["cold"].astype(bool))
        yield from _repeats(label, counted, (METRIC,), rse_threshold_pct)


_TRACE_METRICS = ("access_time_us", "bandwidth_mib_s", "score", "p99_latency_us", "p99999_latency_us",
                  "response_time_us", "p999_response_us")  # fmt: skip
_SET_METRICS = ("access_time_us", "bandwidth_mib_s", "score")
_ASAP_METRICS = ("duration_s",)
"""Metrics of replays as soon as possible; otherwise the trace, not the drive, determines the duration."""


def replay_rows(replays: pd.DataFrame, passes: pd.DataFrame, rse_threshold_pct: float) -> Iterator[dict[str, Any]]:
    """Yield the summary rows of replays, those of sets first.

    `replays` and `passes` are the tables `replays` and `replay_passes`.
    * A trace or set of traces: the median of its counted runs. All runs count where the protocol asks for a number of
      passes; an odd number counts where repeats run until they agree.
    * A phase: the median of all its passes, with their spread. The drive is meant to change from pass to pass, so the
      passes are not repeats that could agree.

    A metric that a run lacks is left out, and so is a trace or set without a sound warm run. Raises ValueError for a
    trace without a warm run.
    """
    sets = passes[passes["traces"] > 1]
    sets = sets.assign(subject=[f"set of {count} traces" for count in sets["traces"]])
    yield from _named_rows(sets, _SET_METRICS, rse_threshold_pct)
    named = replays.assign(subject=[f"replay {trace}" for trace in replays["trace"]])
    yield from _named_rows(named, _TRACE_METRICS, rse_threshold_pct)


def _named_rows(named: pd.DataFrame, metrics: tuple[str, ...], rse_threshold_pct: float) -> Iterator[dict[str, Any]]:
    phased = named["phase"].notna()
    for (_, subject, phase), runs in named[phased].groupby(["recording", "subject", "phase"], sort=False):
        counted = _counted(runs, subject, runs["warm"])
        verdict = IN_CHANGING_PHASE if (~counted["alike_passes"].dropna().astype(bool)).any() else IN_PHASE
        for metric, values in _known(counted, metrics) if len(counted) else ():
            yield _row(f"{subject}, {phase}", metric, counted, values, None, verdict, _passes(len(values)))
    first = named[~phased].groupby(["recording", "subject"])["step"].transform("min")
    for (_, subject, step), runs in named[~phased].groupby(["recording", "subject", "step"], sort=False):
        label = f"{subject} step {step}" if step != first[runs.index[0]] else subject
        counted = _counted(runs, subject, runs["warm"])
        yield from _repeats(label, counted, metrics, rse_threshold_pct)


def _passes(count: int) -> str:
    return "one pass" if count == 1 else f"median of {count} passes"


def _counted(runs: pd.DataFrame, subject: str, warm: pd.Series) -> pd.DataFrame:
    """Return the runs that count, in order; warm runs that do not count are unsound."""
    if not warm.any():
        raise ValueError(f"{runs['recording'].iloc[0]}: {subject} has no warm run")
    return runs[runs["counted"].astype(bool)].sort_values(["step", "repeat"])


def _repeats(
    label: str, runs: pd.DataFrame, metrics: tuple[str, ...], rse_threshold_pct: float
) -> Iterator[dict[str, Any]]:
    """Yield the rows of runs that are repeats: all that the protocol asks for, else an odd number of them."""
    if runs.empty:
        return
    requested = None if runs["asked_passes"].isna().any() else int(runs["asked_passes"].max())
    used = runs.head(odd(len(runs)) if requested is None else len(runs))
    statistic = "median of warm runs" if requested is None else _passes(len(used))
    if "application" in used:
        warm, simulated = "warm " * (requested is None), used["simulated_from"].notna().any()
        statistic = "one run" if len(used) == 1 else f"median of {len(used)} {warm}runs"
        statistic += f", {SIMULATED}" if simulated else ""
    for metric, values in _known(used, metrics):
        rse_pct = relative_standard_error_pct(values) if len(values) >= FEWEST else None
        verdict = rse_verdict(rse_pct, rse_threshold_pct)
        if requested in AS_ASKED and requested == len(values):
            verdict = AS_ASKED[requested]
        yield _row(label, metric, used, values, rse_pct, verdict, statistic)


def _row(
    label: str, metric: str, runs: pd.DataFrame, values: list[float], rse_pct: float | None, verdict: str,
    statistic: str,
) -> dict[str, Any]:  # fmt: skip
    """Return the row of a median. The evidence is the recording, as sets do not name the folders of their replays."""
    partial = [PARTIAL] if "partial" in runs and runs["partial"].any() else []
    trust = Trust.of(runs).columns(verdict, metric, values, statistics.median, partial)
    value = {"value": statistics.median(values), "n": len(values), "samples": values, "scope": "runs"}
    evidence = [str(runs["recording"].iloc[0])]
    return row(key_of(runs), label, metric, **value, rse_pct=rse_pct, evidence=evidence, statistic=statistic, **trust)


def _known(runs: pd.DataFrame, metrics: tuple[str, ...]) -> Iterator[tuple[str, list[float]]]:
    """Yield metric and values for each metric that all runs have."""
    asap = "timing_mode" in runs and (runs["timing_mode"] == "asap").all()
    for metric in (*metrics, *(_ASAP_METRICS if asap else ())):
        if runs[metric].notna().all():
            yield metric, runs[metric].astype(float).tolist()
