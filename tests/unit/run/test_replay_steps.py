"""Replay and load steps on the virtual clock: passes over sets, phases, prefill, the search for a rate, resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stages import lines, plan_of, run_stages

from drivelab.analysis.values.load_values import load_answers
from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.criteria.rate_search import FAILS, OUTCOMES, PASSES, Search, next_rate
from drivelab.plan.plan import Plan
from drivelab.replay.evaluation.passes import pass_metrics
from drivelab.replay.outcome import read_outcome
from drivelab.run import clock_device
from drivelab.run.measure import measure

pytestmark = pytest.mark.usefixtures("project")

TRACES = "class: enterprise\ntraces: {sqlite: {shipped: sqlite-inserts}, pgbench: {shipped: postgresql-pgbench}}\n"
SET = "{protocol: trace-set, scale: demo, traces: [sqlite, pgbench]}"
SHORT = "soak: {until: {time: 1s}}, load: {runtime: 1s, rates: {start: 1000, resolution: 30%}"
LOAD = f"{{protocol: latency-bounded-load, scale: demo, set: {{{SHORT}}}}}}}"


def run(plan: Plan, event: str = "replay") -> list[dict[str, Any]]:
    run_stages(plan)
    return lines(plan, event)


def interrupted(plan: Plan, monkeypatch: pytest.MonkeyPatch, act: str, at: int) -> int:
    """Run the stages until an act of the device is interrupted, measure the rest, and return how often it began."""
    original, count = getattr(clock_device.ClockDevice, act), []

    def begin(*arguments: Any) -> None:
        count.append(arguments)
        if len(count) == at:
            raise KeyboardInterrupt
        original(*arguments)

    monkeypatch.setattr(clock_device.ClockDevice, act, begin)
    with pytest.raises(KeyboardInterrupt):
        run_stages(plan)
    measure(plan, Path("conditioned.json"))
    return len(count)


def test_a_set_is_replayed_trace_after_trace_in_every_pass() -> None:
    plan = plan_of(SET, TRACES)
    replays = run(plan)
    assert [(line["repeat"], line["trace"]) for line in replays] == [
        (repeat, trace) for repeat in (1, 2, 3) for trace in ("sqlite", "pgbench")
    ]
    assert all(line["warm"] for line in replays)
    assert not (plan.recording_path / "schedules").exists()
    tables = collect(plan.recording_path, reduced=True)
    passes = tables["replay_passes"]
    assert passes["traces"].tolist() == [2, 2, 2]
    for repeat in (1, 2, 3):
        metrics = pass_metrics([line["metrics"] for line in replays if line["repeat"] == repeat])
        row = passes[passes["repeat"] == repeat].iloc[0]
        assert {name: row[name] for name in ("busy_s", "bandwidth_mib_s", "access_time_us", "score")} == pytest.approx(
            {name: metrics[name] for name in ("busy_s", "bandwidth_mib_s", "access_time_us", "score")}
        )
    assert len(tables["replays"]) == 6


def test_an_interrupted_set_resumes_with_the_next_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(SET, TRACES)
    assert interrupted(plan, monkeypatch, "replay", 4) == 7
    assert [(line["repeat"], line["trace"]) for line in lines(plan, "replay")] == [
        (repeat, trace) for repeat in (1, 2, 3) for trace in ("sqlite", "pgbench")
    ]


def test_phases_follow_one_another_and_recovery_shows() -> None:
    plan = plan_of("{protocol: trace-consistency, scale: demo, trace: sqlite}", TRACES)
    replays = run(plan)
    assert [(line["phase"], line["phase_pass"]) for line in replays] == [
        ("degradation", 1), ("degradation", 2), ("degradation", 3), ("steady", 1), ("steady", 2),
        ("recovery", 1), ("recovery", 2),
    ]  # fmt: skip
    times = {(line["phase"], line["phase_pass"]): line["metrics"]["access_time_us"] for line in replays}
    assert times["recovery", 2] < 0.7 * times["steady", 2]
    assert len(lines(plan, "soak")) == 5
    assert len(lines(plan, "idle")) == 2


def test_a_prefill_writes_blocks_once_before_the_first_run() -> None:
    plan = plan_of("{protocol: trace-replay, scale: demo, trace: sqlite, set: {replay: {prefill: footprint}}}", TRACES)
    run(plan)
    (line,) = lines(plan, "prefill")
    reads = read_outcome(
        plan.recording_path / lines(plan, "replay")[0]["directory"] / "outcome.parquet",
        ["operation", "offset_bytes", "length_bytes"],
    )
    reads = reads[reads["operation"] == "read"]
    touched = {
        block
        for offset, length in zip(reads["offset_bytes"], reads["length_bytes"], strict=True)
        for block in range(offset // 4096, (offset + length) // 4096)
    }
    assert line["bytes"] == 4096 * len(touched)


def test_a_class_with_a_smaller_active_range_is_replayed_within_it() -> None:
    whole = "{threads: 1, queue_depth: 1, active_range: 100%}"
    quarter = whole.replace("100%", "25%")
    plan = plan_of(
        "{protocol: trace-replay, scale: demo, trace: pgbench, "
        f"set: {{class: {{enterprise: {quarter}, client: {whole}}}}}}}",
        TRACES,
    )
    line = run(plan)[0]
    rows = read_outcome(plan.recording_path / line["directory"] / "outcome.parquet", ["offset_bytes", "length_bytes"])
    assert (rows["offset_bytes"] + rows["length_bytes"]).max() <= 16 << 20


def test_a_load_finds_the_rate_at_which_the_limit_is_passed() -> None:
    plan = plan_of(LOAD)
    loads = run(plan, "load")
    fields = plan.subject["measure"][1]["load"]
    outcomes = {line["rate_iops"]: line["outcome"] for line in loads}
    assert {PASSES, FAILS} <= set(outcomes.values()) <= set(OUTCOMES)
    assert next_rate(Search.of_step(fields), list(outcomes.items())) is None
    for line in loads:
        files = {file.name for file in (plan.recording_path / line["directory"]).iterdir()}
        assert files == {"requests.parquet", "engine.json"}
    rates = collect(plan.recording_path, reduced=True)["load_rates"]
    assert dict(zip(rates["rate_iops"], rates["outcome"], strict=True)) == outcomes, "the evidence gives the same"
    assert rates["measurements"].sum() == len(loads)
    assert (rates["low_us"] <= rates["response_us"]).all()
    (found,) = load_answers(rates)
    assert found.label == "RND 4KiB 70/30, poisson arrivals, p99 below 20 ms"
    answered = found.found
    assert answered.passing_iops is not None
    assert answered.failing_iops is not None
    assert found.sentence() == (
        f"{answered.passing_iops:,.0f} IOPS with p99 below 20 ms "
        f"(between {answered.passing_iops:,.0f} and {answered.failing_iops:,.0f})"
    )
    (plan.recording_path / loads[0]["directory"] / "requests.parquet").unlink()
    with pytest.raises(UserError, match=r"requests\.parquet"):
        collect(plan.recording_path, reduced=True)


def test_an_interrupted_search_resumes_with_the_next_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(LOAD)
    begun = interrupted(plan, monkeypatch, "issue", 3)
    loads = lines(plan, "load")
    assert begun == len(loads) + 1
    attempts = [(line["rate"], line["attempt"]) for line in loads]
    assert attempts == sorted(set(attempts))
    assert not list(plan.recording_path.glob("cells/*/load.schedule"))


def test_arrivals_of_a_trace_are_named_and_pinned() -> None:
    of_trace = LOAD.replace("protocol: latency-bounded-load", "trace: t, protocol: latency-bounded-bursts")
    plan = plan_of(of_trace, "traces: {t: {shipped: sqlite-inserts}}\n")
    loads = run(plan, "load")
    assert {line["trace"] for line in loads} == {"t"}
    assert len({line["trace_sha256"] for line in loads}) == 1
    rates = collect(plan.recording_path, reduced=True)["load_rates"]
    assert set(rates["trace"]) == {"t"}
    (found,) = load_answers(rates)
    assert "trace arrivals of t" in found.label


def test_a_small_queue_is_a_doubt() -> None:
    plan = plan_of(LOAD.replace("runtime: 1s", "runtime: 1s, queue_depth: 2"))
    loads = run(plan, "load")
    failing = [line for line in loads if line["outcome"] == FAILS]
    assert failing
    for line in failing:
        assert any(doubt.startswith("depth limit reached: ") for doubt in line["doubts"])
        assert line["most_in_flight"] == 2
