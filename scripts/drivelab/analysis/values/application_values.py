"""Make the rows of the table `summary` for applications: their durations."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pandas as pd

from drivelab.analysis.values.rows import judgement, key_of, odd, row, rse_verdict
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
    steps = runs.groupby(["recording", "application", "step"], sort=False)
    first: dict[tuple[str, str], int] = {}
    for (recording, name, step), step_runs in steps:
        phase = _phase(step_runs)
        is_later_step = first.setdefault((recording, name), step) != step and not phase
        label = f"{LABEL}{name}{phase}{f' step {step}' if is_later_step else ''}"
        if step_runs["cold"].all():
            raise ValueError(f"{recording}: {label} has no warm run")
        if step_runs["counted"].any():
            yield _row(label, step_runs, rse_threshold_pct)


def _row(label: str, runs: pd.DataFrame, rse_threshold_pct: float) -> dict[str, Any]:
    warm = runs[runs["counted"].astype(bool)].sort_values("repeat")
    requested = None if warm["asked_passes"].isna().any() else int(warm["asked_passes"].max())
    used = warm.head(odd(len(warm)) if requested is None else len(warm))
    values = [float(value) for value in used[METRIC]]
    enough = len(values) >= FEWEST
    rse_pct = relative_standard_error_pct(values) if enough else None
    verdict = rse_verdict(rse_pct, rse_threshold_pct)
    if requested in AS_ASKED and requested == len(values):
        verdict = AS_ASKED[requested]
    return row(
        key_of(used),
        label,
        METRIC,
        value=statistics.median(values),
        n=len(values),
        samples=values,
        scope="runs",
        evidence=[str(used["recording"].iloc[0])],
        rse_pct=rse_pct,
        spread_low=min(values),
        spread_high=max(values),
        statistic=_statistic(used, requested),
        **judgement(verdict, used, METRIC, (), values, statistics.median),
    )


def _statistic(runs: pd.DataFrame, requested: int | None) -> str:
    statistic = f"median of {len(runs)} warm runs" if requested is None else f"median of {len(runs)} runs"
    statistic = "one run" if len(runs) == 1 else statistic
    return f"{statistic}, {SIMULATED}" if runs["simulated_from"].notna().any() else statistic


def _phase(runs: pd.DataFrame) -> str:
    phase, value = runs["phase"].iloc[0], runs["phase_value"].iloc[0]
    if not isinstance(phase, str):
        return ""
    turn = value if isinstance(value, str) else str(int(runs["phase_pass"].iloc[0]))
    return f", {phase} {turn}"


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
    named = sets.assign(subject=[f"set of {count} traces" for count in sets["traces"]])
    yield from _all(named, _SET_METRICS, rse_threshold_pct)
    named = replays.assign(subject=[f"replay {trace}" for trace in replays["trace"]])
    yield from _all(named, _TRACE_METRICS, rse_threshold_pct)


def _all(named: pd.DataFrame, metrics: tuple[str, ...], rse_threshold_pct: float) -> Iterator[dict[str, Any]]:
    phased = named["phase"].notna()
    for (_, subject, phase), runs in named[phased].groupby(["recording", "subject", "phase"], sort=False):
        counted = _counted(runs, subject)
        yield from _replay_phase(f"{subject}, {phase}", counted, metrics) if len(counted) else ()
    first = named[~phased].groupby(["recording", "subject"])["step"].transform("min")
    for (_, subject, step), runs in named[~phased].groupby(["recording", "subject", "step"], sort=False):
        is_later_step = step != first[runs.index[0]]
        runs = _counted(runs, subject)
        label = f"{subject} step {step}" if is_later_step else subject
        yield from _repeats(label, runs, metrics, rse_threshold_pct) if len(runs) else ()


def _counted(runs: pd.DataFrame, subject: str) -> pd.DataFrame:
    """Return the runs that count; warm runs that do not count are unsound."""
    if not runs["warm"].any():
        raise ValueError(f"{runs['recording'].iloc[0]}: {subject} has no warm run")
    return runs[runs["counted"].astype(bool)].sort_values(["step", "repeat"])


def _replay_phase(label: str, runs: pd.DataFrame, metrics: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for metric, values in _known(runs, metrics):
        yield row(
            key_of(runs),
            label,
            metric,
            value=statistics.median(values),
            n=len(values),
            **_samples(runs, values),
            rse_pct=None,
            spread_low=min(values),
            spread_high=max(values),
            statistic=_passes_statistic(len(values)),
            **judgement(_phase_verdict(runs), runs, metric, _partial(runs), values, statistics.median),
        )


def _phase_verdict(runs: pd.DataFrame) -> str:
    changes = any(alike is not None and not pd.isna(alike) and not alike for alike in runs["alike_passes"])
    return IN_CHANGING_PHASE if changes else IN_PHASE


def _repeats(
    label: str, runs: pd.DataFrame, metrics: tuple[str, ...], rse_threshold_pct: float
) -> Iterator[dict[str, Any]]:
    requested = None if runs["asked_passes"].isna().any() else int(runs["asked_passes"].max())
    used = runs.head(odd(len(runs)) if requested is None else len(runs))
    for metric, values in _known(used, metrics):
        enough = len(values) >= FEWEST
        statistic = statistics.median if requested or enough else itemgetter(0)
        rse_pct = relative_standard_error_pct(values) if enough else None
        verdict = rse_verdict(rse_pct, rse_threshold_pct)
        if not enough and requested == len(values):
            verdict = AS_ASKED[requested]
        yield row(
            key_of(used),
            label,
            metric,
            value=statistic(values),
            n=len(values),
            **_samples(used, values),
            rse_pct=rse_pct,
            spread_low=min(values),
            spread_high=max(values),
            statistic="median of warm runs" if requested is None else _passes_statistic(len(values)),
            **judgement(verdict, used, metric, _partial(used), values, statistic),
        )


def _samples(runs: pd.DataFrame, values: list[float]) -> dict[str, Any]:
    """Return the sample columns. The evidence is the recording, as rows of sets do not name the replays' folders."""
    return {"samples": values, "scope": "runs", "evidence": [str(runs["recording"].iloc[0])]}


def _passes_statistic(count: int) -> str:
    return "one pass" if count == 1 else f"median of {count} passes"


def _known(runs: pd.DataFrame, metrics: tuple[str, ...]) -> Iterator[tuple[str, list[float]]]:
    """Yield metric and values for each metric that all runs have."""
    asap = (runs["timing_mode"] == "asap").all()
    for metric in (*metrics, *(_ASAP_METRICS if asap else ())):
        values = [float(value) for value in runs[metric]]
        if all(value == value for value in values):
            yield metric, values


def _partial(runs: pd.DataFrame) -> list[str]:
    return [PARTIAL] if runs["partial"].any() else []
