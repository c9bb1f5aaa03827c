"""Replay steps on the virtual clock: passes over sets, phases, prefill and resuming."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stages import run_stages

from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.replay.evaluation.passes import pass_metrics
from drivelab.replay.outcome import read_outcome
from drivelab.run import clock_device
from drivelab.run.measure import measure

SET = "{protocol: trace-set, scale: demo, traces: [sqlite, pgbench]}"


@pytest.fixture
def plan_of(project: Path) -> Callable[..., Plan]:
    def make(measurement: str, drive_class: str = "enterprise") -> Plan:
        Path("config/one.yaml").write_text(
            f"name: one\nresults: results\nclock: virtual\nclass: {drive_class}\ndrives: [op7]\n"
            "traces: {sqlite: {shipped: sqlite-inserts}, pgbench: {shipped: postgresql-pgbench}}\n"
            f"measurements: [{measurement}]\n"
        )
        return Campaign.load("config/one.yaml").plans[0].plan

    return make


def run(plan: Plan) -> list[dict[str, Any]]:
    run_stages(plan)
    return journal(plan)


def journal(plan: Plan, event: str = "replay") -> list[dict[str, Any]]:
    return [line for line in read_journal(plan.recording_path) if line["event"] == event]


def test_a_set_is_replayed_trace_after_trace_in_every_pass(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(SET)
    lines = run(plan)
    assert [(line["repeat"], line["trace"]) for line in lines] == [
        (repeat, trace) for repeat in (1, 2, 3) for trace in ("sqlite", "pgbench")
    ]
    assert all(line["warm"] for line in lines)
    assert not (plan.recording_path / "schedules").exists()
    tables = collect(plan.recording_path, reduced=True)
    passes = tables["replay_passes"]
    assert passes["traces"].tolist() == [2, 2, 2]
    for repeat in (1, 2, 3):
        metrics = pass_metrics([line["metrics"] for line in lines if line["repeat"] == repeat])
        row = passes[passes["repeat"] == repeat].iloc[0]
        assert {name: row[name] for name in ("busy_s", "bandwidth_mib_s", "access_time_us", "score")} == pytest.approx(
            {name: metrics[name] for name in ("busy_s", "bandwidth_mib_s", "access_time_us", "score")}
        )
    assert len(tables["replays"]) == 6


def test_an_interrupted_set_resumes_with_the_next_trace(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(SET)
    original, count = clock_device.ClockDevice.replay, []

    def replay(*arguments: Any) -> None:
        count.append(arguments[1].planned.name)
        if len(count) == 4:
            raise KeyboardInterrupt
        original(*arguments)

    monkeypatch.setattr(clock_device.ClockDevice, "replay", replay)
    with pytest.raises(KeyboardInterrupt):
        run(plan)
    measure(plan, Path("conditioned.json"))
    assert [(line["repeat"], line["trace"]) for line in journal(plan)] == [
        (repeat, trace) for repeat in (1, 2, 3) for trace in ("sqlite", "pgbench")
    ]
    assert len(count) == 7


def test_phases_follow_one_another_and_recovery_shows(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of("{protocol: trace-consistency, scale: demo, trace: sqlite}")
    lines = run(plan)
    assert [(line["phase"], line["phase_pass"]) for line in lines] == [
        ("degradation", 1), ("degradation", 2), ("degradation", 3), ("steady", 1), ("steady", 2),
        ("recovery", 1), ("recovery", 2),
    ]  # fmt: skip
    times = {(line["phase"], line["phase_pass"]): line["metrics"]["access_time_us"] for line in lines}
    assert times["recovery", 2] < 0.7 * times["steady", 2]
    assert len(journal(plan, "soak")) == 5
    assert len(journal(plan, "idle")) == 2


def test_a_prefill_writes_blocks_once_before_the_first_run(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of("{protocol: trace-replay, scale: demo, trace: sqlite, set: {replay: {prefill: footprint}}}")
    run(plan)
    (line,) = journal(plan, "prefill")
    reads = read_outcome(
        plan.recording_path / journal(plan)[0]["directory"] / "outcome.parquet",
        ["operation", "offset_bytes", "length_bytes"],
    )
    reads = reads[reads["operation"] == "read"]
    touched = {
        block
        for offset, length in zip(reads["offset_bytes"], reads["length_bytes"], strict=True)
        for block in range(offset // 4096, (offset + length) // 4096)
    }
    assert line["bytes"] == 4096 * len(touched)


def test_a_class_with_a_smaller_active_range_is_replayed_within_it(plan_of: Callable[..., Plan]) -> None:
    whole = "{threads: 1, queue_depth: 1, active_range: 100%}"
    quarter = whole.replace("100%", "25%")
    plan = plan_of(
        "{protocol: trace-replay, scale: demo, trace: pgbench, "
        f"set: {{class: {{enterprise: {quarter}, client: {whole}}}}}}}"
    )
    line = run(plan)[0]
    rows = read_outcome(plan.recording_path / line["directory"] / "outcome.parquet", ["offset_bytes", "length_bytes"])
    assert (rows["offset_bytes"] + rows["length_bytes"]).max() <= 16 << 20
