"""Application steps on the virtual clock: replays in place of applications, counted runs, resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from application_plans import measured, plan_of, runs_of
from hypothesis import given
from hypothesis import strategies as st
from stages import conditioned
from whole_traces import read_trace

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.values.summary import summary_table
from drivelab.campaign.check import check_engines
from drivelab.campaign.traces import check_application
from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.criteria.repeats import relative_standard_error_pct
from drivelab.plan.study import MeasurementChoice
from drivelab.run.application import enough, next_is_cold
from drivelab.run.clock_device import ClockDevice
from drivelab.run.measure import measure

pytestmark = pytest.mark.usefixtures("project")


def span_s(trace: Path) -> float:
    """Return the time from the first to the last request of a trace."""
    queued = read_trace(trace)[0].to_pandas()["queue_ns"]
    return float(queued.max() - queued.min()) / 1e9


def test_a_drive_without_delays_takes_as_long_as_the_trace() -> None:
    (line,) = measured(plan_of("sqlite-inserts", "virtual", cold_runs=0, until={"passes": 1}, enabled=False))
    assert line["duration_s"] == pytest.approx(span_s(Path("traces/sqlite-inserts.parquet")), rel=1e-3)


def test_a_slower_drive_takes_longer() -> None:
    """The application's processes wait for their requests: a closed loop, not a fixed schedule."""
    slow = {"read_us": 1000, "program_us": 5000, "slc_cache": "0B", "write_buffer": "4KiB"}
    durations = [
        measured(plan_of("sqlite-inserts", "virtual", drive=f"drive{factor}", cold_runs=0, until={"passes": 1},
                         **{k: v * factor if isinstance(v, int) else v for k, v in slow.items()}))[0]["duration_s"]
        for factor in (1, 2)
    ]  # fmt: skip
    assert durations[0] > 1.5 * span_s(Path("traces/sqlite-inserts.parquet"))
    assert durations[1] > 1.5 * durations[0]


def test_cold_runs_come_first_and_warm_runs_follow_until_they_agree() -> None:
    plan = plan_of("sqlite-inserts", "virtual", cold_runs=2)
    lines = measured(plan)
    assert [(line["run"], line["cold"]) for line in lines] == [(1, True), (2, True), (3, False), (4, False), (5, False)]
    assert not (plan.recording_path / "schedules").exists()
    for line in lines:
        assert (line["trace"], "no application runs" in line["remark"]) == ("sqlite-inserts", True)
        assert "exit_status" not in line, "no program ran"
    path = plan.recording_path / "journal.jsonl"
    kept = [line for line in path.read_text().splitlines(keepends=True) if '"event":"application"' not in line]
    path.write_text("".join(kept))
    assert not runs_of(plan.recording_path)
    assert collect(plan.recording_path, reduced=False)["application_runs"].empty, "as in any other recording"


def test_a_given_number_of_passes_is_measured() -> None:
    lines = measured(plan_of("sqlite-inserts", "virtual", cold_runs=0, until={"passes": 2}))
    assert [line["cold"] for line in lines] == [False, False]


@pytest.mark.usefixtures("nothing_undone")
@pytest.mark.parametrize("cold_runs", [0, 1, 2])
def test_an_interrupted_run_is_repeated_and_finished_ones_count(
    monkeypatch: pytest.MonkeyPatch, cold_runs: int
) -> None:
    """If the step has cold runs, the first run after an interruption is cold; earlier warm runs count."""
    plan = plan_of("sqlite-inserts", "virtual", cold_runs=cold_runs)
    replay, begun = ClockDevice.replay, []

    def interrupted(self: ClockDevice, *arguments: Any) -> None:
        begun.append(1)
        if len(begun) == 2 + cold_runs:
            raise KeyboardInterrupt
        replay(self, *arguments)

    monkeypatch.setattr(ClockDevice, "replay", interrupted)
    seal = conditioned(plan)
    with pytest.raises(KeyboardInterrupt):
        measure(plan, seal)
    part = plan.recording_path.with_name(f"{plan.recording_path.name}.part")
    kept = runs_of(part)
    measure(plan, seal)
    lines = runs_of(plan.recording_path)
    assert lines[: cold_runs + 1] == kept
    again = [True] if cold_runs else []
    assert [line["cold"] for line in lines] == [*cold_runs * [True], False, *again, False, False]
    assert [line["run"] for line in lines] == list(range(1, 1 + len(lines)))
    assert len(begun) == len(lines) + 1
    frame = collect(plan.recording_path, reduced=False)["application_runs"]
    assert frame["after_gap"].tolist() == [number == cold_runs + 1 for number in range(len(lines))]
    assert frame["counted"].sum() == 3


def test_the_first_runs_and_runs_after_an_interruption_are_cold() -> None:
    def line(step: int) -> dict[str, Any]:
        return {"event": "application", "step": step}

    gap = {"event": "gap"}
    assert next_is_cold([gap], 0, 1)
    assert next_is_cold([line(0), gap], 0, 1)
    assert not next_is_cold([line(0), gap], 0, 0), "no run is cold if the step has no cold runs"
    assert not next_is_cold([line(0), gap, line(0)], 0, 1)
    assert next_is_cold([line(0), gap, line(1)], 0, 1)
    assert next_is_cold([line(0), gap, line(0)], 0, 3)


def test_a_trace_that_changed_since_the_plan_is_refused() -> None:
    plan = plan_of("sqlite-inserts", "virtual")
    seal = conditioned(plan)
    Path("traces/sqlite-inserts.parquet").write_bytes(Path("traces/boot-read.parquet").read_bytes())
    with pytest.raises(UserError, match=r"sqlite-inserts\.parquet: this is not the trace that .* was planned with"):
        measure(plan, seal)


@given(cold=st.integers(0, 3), values=st.lists(st.floats(1.0, 1.3), max_size=7), threshold=st.floats(0.001, 0.1))
def test_three_or_five_runs_must_agree_and_seven_are_the_limit(
    cold: int, values: list[float], threshold: float
) -> None:
    lines = [{"cold": True, "duration_s": 99.0}] * cold + [{"cold": False, "duration_s": value} for value in values]
    fields = {"cold_runs": cold, "until": {"threshold": threshold, "metric": "duration_s"}}
    agree = len(values) in (3, 5) and relative_standard_error_pct(values) <= 100 * threshold
    assert enough(lines, fields) == (agree or len(values) == 7)


def tables_of(drive: str, **model: Any) -> dict[str, pd.DataFrame]:
    plan = plan_of("sqlite-inserts", "virtual", drive=drive, **model)
    measured(plan)
    return collect(plan.recording_path, reduced=False)


def test_the_result_is_the_median_of_the_warm_runs_and_says_that_it_is_simulated() -> None:
    fast, slow = tables_of("fast"), tables_of("slow", read_us=2000, program_us=4000, slc_cache="0B")
    runs = pd.concat([fast["application_runs"], slow["application_runs"]], ignore_index=True)
    assert set(runs["simulated_from"]) == {"sqlite-inserts"}
    assert runs["exit_status"].isna().all()
    both = {name: pd.concat([fast[name], slow[name]]) for name in ("cells", "replays", "replay_passes")}
    steady = pd.DataFrame(columns=["recording", "step", "variable", "metric", "window_start", "window_end", "reached"])
    summary = summary_table(both["cells"], steady, both["replays"], both["replay_passes"], application_runs=runs)
    assert summary["cell_label"].tolist() == ["application sqlite-inserts"] * 2
    assert set(summary["statistic"]) == {"median of 3 warm runs, simulated from its trace"}
    assert set(zip(summary["metric"], summary["kind"], summary["unit"], strict=True)) == {("duration_s", "time", "s")}
    assert summary["verdict"].tolist() == ["repeats agree"] * 2
    for row in summary.to_dict("records"):
        warm = runs[(runs["drive"] == row["drive"]) & runs["counted"]]["duration_s"]
        assert (row["value"], row["n"]) == (warm.median(), len(warm))
        assert (row["spread_low"], row["spread_high"]) == (warm.min(), warm.max())
    values = dict(zip(summary["drive"], summary["value"], strict=True))
    (remarks,) = deltas_table(summary, "slow")["remarks"]
    assert "no application ran: simulated from its trace" in remarks
    (delta,) = deltas_table(summary, "slow")["delta_pct"]
    assert delta == pytest.approx(100 * (values["slow"] / values["fast"] - 1))
    assert delta > 0


def test_an_application_without_a_trace_cannot_be_measured_on_the_virtual_clock() -> None:
    with pytest.raises(UserError, match=r"'compile' cannot run on the virtual clock.* 'clock: wall'.*sqlite-inserts"):
        plan_of("compile", "virtual", capacity="256MiB")


@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_a_file_system_larger_than_the_drive_is_refused_in_the_plan(clock: str) -> None:
    with pytest.raises(UserError, match="the test: drive 'apptest' has 64MiB, its file system needs 384MiB"):
        plan_of("postgresql-pgbench", clock)


def test_an_unknown_application_is_refused_with_a_list() -> None:
    with pytest.raises(UserError, match=r"the test: key 'application': .*'minesweeper' is unknown.*compile"):
        plan_of("minesweeper", "wall")


def test_only_what_the_result_depends_on_is_in_the_digest() -> None:
    before = plan_of("sqlite-inserts", "virtual")
    path = Path("config/applications.yaml")
    path.write_text(path.read_text().replace("title: SQLite in WAL mode", "title: A database"))
    assert plan_of("sqlite-inserts", "virtual").digest == before.digest
    path.write_text(path.read_text().replace("size: 56MiB", "size: 55MiB"))
    assert plan_of("sqlite-inserts", "virtual").digest != before.digest
    wall = plan_of("sqlite-inserts", "wall")
    assert "stand_in" not in wall.subject


def test_an_application_without_root_is_refused_before_any_write(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("sqlite-inserts", "wall")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for stage in (lambda: check_engines([plan]), lambda: conditioned(plan)):
        with pytest.raises(UserError, match=r"'sqlite-inserts' needs root.* Nothing was written"):
            stage()


def choice(application: str | None) -> MeasurementChoice:
    return MeasurementChoice("p", "p", None, (), ("d",), {}, "study.yaml: key 'measurements[0]'", application)


def test_an_application_is_named_exactly_if_the_protocol_runs_one() -> None:
    check_application(choice("compile"), runs_one=True)
    check_application(choice(None), runs_one=False)
    with pytest.raises(UserError, match="'p' runs an application; add 'application'"):
        check_application(choice(None), runs_one=True)
    with pytest.raises(UserError, match="'p' runs no application; remove its 'application'"):
        check_application(choice("compile"), runs_one=False)
