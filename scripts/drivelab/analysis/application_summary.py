"""What the table `summary` says of applications: how long one takes, less being better."""

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
"""Before the name of an application in a `cell_label`."""
SIMULATED = "simulated from its trace"
"""In the `statistic` of a duration that is none: no application ran, the replay of its trace stands in for it."""


def application_rows(runs: pd.DataFrame, rse_threshold_pct: float) -> Iterator[dict[str, Any]]:
    """Rows from table `application_runs`: the median duration of the warm runs of each step of each recording.

    They are an odd number of runs where these go on until they agree, all of them where the protocol asks for a
    number. A step that is repeated is told apart by its phase, another step of one application by its number.
    A step all of whose warm runs are unsound has no row. Raises ValueError for a step without a warm run.
    """
    steps = runs.groupby(["recording", "application", "step"], sort=False)
    first: dict[tuple[str, str], int] = {}
    for (recording, name, step), of_step in steps:
        phase = _phase(of_step)
        again = first.setdefault((recording, name), step) != step and not phase
        label = f"{LABEL}{name}{phase}{f' step {step}' if again else ''}"
        if of_step["cold"].all():
            raise ValueError(f"{recording}: no run of {label} counts")
        if of_step["counted"].any():
            yield _row(label, of_step, rse_threshold_pct)


def _row(label: str, runs: pd.DataFrame, rse_threshold_pct: float) -> dict[str, Any]:
    warm = runs[runs["counted"].astype(bool)].sort_values("repeat")
    asked = None if warm["asked_passes"].isna().any() else int(warm["asked_passes"].max())
    used = warm.head(odd(len(warm)) if asked is None else len(warm))
    values = [float(value) for value in used[METRIC]]
    enough = len(values) >= FEWEST
    rse_pct = relative_standard_error_pct(values) if enough else None
    verdict = AS_ASKED[asked] if asked in AS_ASKED and asked == len(values) else rse_verdict(rse_pct, rse_threshold_pct)
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
        statistic=_statistic(used, asked),
        verdict=gravest([verdict, *taint(used)]),
        taint_reason=taint_reason(used),
    )


def _statistic(runs: pd.DataFrame, asked: int | None) -> str:
    counted = f"median of {len(runs)} warm runs" if asked is None else f"median of {len(runs)} runs"
    counted = "one run" if len(runs) == 1 else counted
    return f"{counted}, {SIMULATED}" if runs["simulated_from"].notna().any() else counted


def _phase(runs: pd.DataFrame) -> str:
    phase, value = runs["phase"].iloc[0], runs["phase_value"].iloc[0]
    if not isinstance(phase, str):
        return ""
    turn = value if isinstance(value, str) else str(int(runs["phase_pass"].iloc[0]))
    return f", {phase} {turn}"
