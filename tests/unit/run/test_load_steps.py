"""Load steps on the virtual clock: the search, its recording, its tables and resuming."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stages import run_stages

from drivelab.analysis.values.load_values import load_answers
from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.criteria.rate_search import FAILS, OUTCOMES, PASSES, Search, next_rate
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run import clock_device
from drivelab.run.measure import measure

SHORT = "soak: {until: {time: 1s}}, load: {runtime: 1s, rates: {start: 1000, resolution: 30%}"
LOAD = f"{{protocol: latency-bounded-load, scale: demo, set: {{{SHORT}}}}}}}"


@pytest.fixture
def plan_of(project: Path) -> Callable[..., Plan]:
    def make(measurement: str = LOAD, traces: str = "{}") -> Plan:
        Path("config/one.yaml").write_text(
            f"name: one\nresults: results\nclock: virtual\ndrives: [op7]\ntraces: {traces}\n"
            f"measurements: [{measurement}]\n"
        )
        return Campaign.load("config/one.yaml").plans[0].plan

    return make


def run(plan: Plan) -> list[dict[str, Any]]:
    run_stages(plan)
    return journal(plan)


def journal(plan: Plan) -> list[dict[str, Any]]:
    return [line for line in read_journal(plan.recording_path) if line["event"] == "load"]


def test_a_load_finds_the_rate_at_which_the_limit_is_passed(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of()
    lines = run(plan)
    fields = plan.subject["measure"][1]["load"]
    outcomes = {line["rate_iops"]: line["outcome"] for line in lines}
    assert {PASSES, FAILS} <= set(outcomes.values()) <= set(OUTCOMES)
    assert next_rate(Search.of_step(fields), list(outcomes.items())) is None
    for line in lines:
        files = {file.name for file in (plan.recording_path / line["directory"]).iterdir()}
        assert files == {"requests.parquet", "engine.json"}
    rates = collect(plan.recording_path, reduced=True)["load_rates"]
    assert dict(zip(rates["rate_iops"], rates["outcome"], strict=True)) == outcomes, "the evidence gives the same"
    assert rates["measurements"].sum() == len(lines)
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
    (plan.recording_path / lines[0]["directory"] / "requests.parquet").unlink()
    with pytest.raises(UserError, match=r"requests\.parquet"):
        collect(plan.recording_path, reduced=True)


def test_an_interrupted_search_resumes_with_the_next_measurement(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of()
    original, count = clock_device.ClockDevice.issue, []

    def issue(*arguments: Any) -> None:
        count.append(arguments)
        if len(count) == 3:
            raise KeyboardInterrupt
        original(*arguments)

    monkeypatch.setattr(clock_device.ClockDevice, "issue", issue)
    with pytest.raises(KeyboardInterrupt):
        run(plan)
    measure(plan, Path("conditioned.json"))
    lines = journal(plan)
    assert len(count) == len(lines) + 1
    attempts = [(line["rate"], line["attempt"]) for line in lines]
    assert attempts == sorted(set(attempts))
    assert not list(plan.recording_path.glob("cells/*/load.schedule"))


def test_arrivals_of_a_trace_are_named_and_pinned(plan_of: Callable[..., Plan]) -> None:
    of_trace = LOAD.replace("protocol: latency-bounded-load", "trace: t, protocol: latency-bounded-bursts")
    plan = plan_of(of_trace, "{t: {shipped: sqlite-inserts}}")
    lines = run(plan)
    assert {line["trace"] for line in lines} == {"t"}
    assert len({line["trace_sha256"] for line in lines}) == 1
    rates = collect(plan.recording_path, reduced=True)["load_rates"]
    assert set(rates["trace"]) == {"t"}
    (found,) = load_answers(rates)
    assert "trace arrivals of t" in found.label


def test_a_study_without_the_trace_of_the_arrivals_is_refused(plan_of: Callable[..., Plan]) -> None:
    with pytest.raises(UserError, match="name one 'trace'"):
        plan_of(LOAD.replace("latency-bounded-load", "latency-bounded-bursts"))
    with pytest.raises(UserError, match="latency-bounded-bursts"):
        plan_of(LOAD.replace("runtime: 1s", "runtime: 1s, arrivals: trace"))


def test_a_small_queue_is_a_doubt(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(LOAD.replace("runtime: 1s", "runtime: 1s, queue_depth: 2"))
    lines = run(plan)
    failing = [line for line in lines if line["outcome"] == FAILS]
    assert failing
    for line in failing:
        assert any(doubt.startswith("depth limit reached: ") for doubt in line["doubts"])
        assert line["most_in_flight"] == 2
