"""Outcomes of application runs, and their summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drivelab.analysis.values.application_values import application_rows
from drivelab.application.timed import RUN_FILE, of_command, of_stand_in
from drivelab.core.errors import CellFailed
from drivelab.tables.result_schemas import APPLICATION_RUNS

GOOD: dict[str, Any] = {
    "application": "mine", "exit_status": 0, "sync_fault": None, "duration_s": 2.5, "command_s": 2.0, "sync_s": 0.5,
    "user_s": 1.0, "system_s": 0.5, "max_rss_bytes": None, "stat_before": {"read_ios": 1},
    "stat_after": {"read_ios": 4}, "read_ios": 3, "write_ios": 0, "read_bytes": 12288, "write_bytes": 0,
}  # fmt: skip


def evidence(folder: Path, stderr: str = "", **changed: Any) -> Path:
    (folder / RUN_FILE).write_text(json.dumps({**GOOD, **changed}))
    (folder / "stderr").write_text(stderr)
    (folder / "stdout").write_text("all is well\n")
    return folder


def test_a_finished_run_equals_its_evidence(tmp_path: Path) -> None:
    outcome = of_command(evidence(tmp_path)).to_mapping()
    assert outcome == {name: GOOD[name] for name in outcome}
    assert "max_rss_bytes" not in outcome


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exit_status": 2}, "ended with status 2: all is well"),
        ({"exit_status": 2, "stderr": "first\nlast words\n\n"}, "ended with status 2: last words"),
        ({"exit_status": -9}, "was killed by signal 9"),
        ({"sync_fault": "Input/output error"}, "is not on the drive: Input/output error"),
        ({"stat_after": {"read_ios": 0}, "read_ios": -1}, "the drive disappeared"),
    ],
)
def test_a_failed_run_is_refused(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(CellFailed, match=reason):
        of_command(evidence(tmp_path, **changed))


def test_incomplete_evidence_is_refused(tmp_path: Path) -> None:
    evidence(tmp_path)
    (tmp_path / RUN_FILE).write_text('{"exit_status": 0,')
    with pytest.raises(CellFailed, match="cannot be read"):
        of_command(tmp_path)


@pytest.mark.parametrize("changed", [{"state": "time is up"}, {"partial": True}])
def test_an_unfinished_replay_replaces_no_run(changed: dict[str, Any]) -> None:
    report = {"state": "finished", "partial": False, "marks": ["partial: it ended"], "duration_s": 1.0, "completed": {}}
    assert of_stand_in(report).duration_s == 1.0
    with pytest.raises(CellFailed, match="partial: it ended"):
        of_stand_in({**report, **changed})


def runs(durations: list[float], cold: int = 1, **more: Any) -> pd.DataFrame:
    """Return table `application_runs` of one step; the first `cold` runs are cold."""
    empty = {field.name: None for field in APPLICATION_RUNS}
    rows = [
        {**empty, "recording": "d/m/k-run1", "drive": "d", "measurement": "m", "run": 1, "step": 0, "application": "a",
         "repeat": number, "cold": number <= cold, "counted": number > cold, "duration_s": value, "tainted": False,
         **more}
        for number, value in enumerate(durations, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=APPLICATION_RUNS.names)


@pytest.mark.parametrize(
    ("durations", "passes", "value", "statistic", "verdict"),
    [
        ([9.0, 2.0, 2.02, 2.01], None, 2.01, "median of 3 warm runs", "repeats agree"),
        ([9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], None, 4.0, "median of 7 warm runs", "repeats do not agree"),
        ([9.0, 2.0, 2.2], 2, 2.1, "median of 2 runs", "two runs"),
        ([9.0, 2.0], 1, 2.0, "one run", "single run"),
        ([9.0, 2.0, 2.0, 2.0, 2.2], 4, 2.0, "median of 4 runs", "repeats agree"),
    ],
)
def test_the_median_of_the_warm_runs_is_the_result(
    durations: list[float], passes: int | None, value: float, statistic: str, verdict: str
) -> None:
    (row,) = application_rows(runs(durations, asked_passes=passes), 5.0)
    assert (row["value"], row["statistic"], row["verdict"]) == (pytest.approx(value), statistic, verdict)
    assert (row["cell_label"], row["kind"], row["n"]) == ("application a", "time", len(durations) - 1)
    assert (row["spread_low"], row["spread_high"]) == (min(durations[1:]), max(durations[1:]))


def test_a_tainted_warm_run_taints_the_result_but_a_cold_one_does_not() -> None:
    frame = runs([9.0, 2.0, 2.0, 2.0])
    frame.loc[0, ["tainted", "taint_reason"]] = [True, "load: others used 90 % of the host's CPU time"]
    assert next(application_rows(frame, 5.0))["verdict"] == "repeats agree"
    frame.loc[2, ["tainted", "taint_reason"]] = [True, "load: others used 90 % of the host's CPU time"]
    assert next(application_rows(frame, 5.0))["verdict"] == "tainted"


def test_steps_and_phases_of_an_application_have_distinct_labels() -> None:
    frame = pd.concat([runs([1.0, 1.0], asked_passes=1), runs([1.0, 1.0], asked_passes=1, step=3)])
    assert [row["cell_label"] for row in application_rows(frame, 5.0)] == ["application a", "application a step 3"]
    phases = [runs([1.0, 1.0], asked_passes=1, step=step, phase="wait", phase_pass=step + 1, phase_value=value)
              for step, value in enumerate(("5s", "10s"))]  # fmt: skip
    labels = [row["cell_label"] for row in application_rows(pd.concat(phases), 5.0)]
    assert labels == ["application a, wait 5s", "application a, wait 10s"]


def test_a_step_without_a_warm_run_has_no_result() -> None:
    with pytest.raises(ValueError, match="application a has no warm run"):
        list(application_rows(runs([1.0]), 5.0))
