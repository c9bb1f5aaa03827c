"""Make the rows of the table `summary` for applications: their durations."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import pandas as pd

from drivelab.analysis.repeats import FEWEST, relative_standard_error_pct
from drivelab.analysis.spread import MEDIAN
from drivelab.analysis.summary_rows import gravest, key_of, odd, row, rse_verdict, taint, taint_reason
from drivelab.analysis.verdict import AS_ASKED

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
        centre=MEDIAN,
        evidence=[str(used["recording"].iloc[0])],
        rse_pct=rse_pct,
        spread_low=min(values),
        spread_high=max(values),
        statistic=_statistic(used, requested),
        verdict=gravest([verdict, *taint(used)]),
        taint_reason=taint_reason(used),
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
