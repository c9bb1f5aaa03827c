"""Loads in real time: the engine on a loop device over its own file, and a whole measurement of a virtual drive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_files import BLOCK, identity
from stages import planned, run_stages

from drivelab.analysis.values.load_values import load_answers
from drivelab.collect.collect import collect
from drivelab.criteria.rate_search import FAILS
from drivelab.plan.cell import Cell
from drivelab.recording.writer import read_journal
from drivelab.replay import native
from drivelab.replay.arrivals import load_schedule, poisson_gaps
from drivelab.replay.evaluation.load_rate import Requests, rate_facts, read_requests, write_requests
from drivelab.replay.native import EngineOptions

pytestmark = [pytest.mark.device, pytest.mark.usefixtures("engine_possible")]


MIB = 1 << 20


def measured(device: str, folder: Path, iops: float, count: int, **options: Any) -> Requests:
    """Offer random reads and writes at a rate to a loop device."""
    folder.mkdir()
    schedule = folder / "load.schedule"
    cell = Cell("random", 70, BLOCK, threads=1, queue_depth=4096)
    load_schedule(cell, poisson_gaps(1), iops, count, schedule, 1, 64 * MIB, BLOCK)
    native.run_engine(device, identity(device), schedule, folder, EngineOptions(seed=1, **options))
    write_requests(schedule, folder / native.RESULTS, folder / "requests.parquet")
    return read_requests(folder)


def test_requests_are_issued_when_due(attach: Callable[[int, int], str], tmp_path: Path) -> None:
    requests = measured(attach(64, BLOCK), tmp_path / "rate", 500, 1000)
    facts = rate_facts([requests], 90, 10e6)
    assert np.isfinite(requests.complete).all()
    assert (requests.issue >= requests.due).all()
    assert (requests.complete > requests.issue).all()
    begin_us, end_us = requests.due[[100, -1]]
    completions = ((requests.complete > begin_us) & (requests.complete <= end_us)).sum()
    assert facts["achieved_iops"] == pytest.approx(1e6 * completions / (end_us - begin_us))
    assert facts["outcome"] != FAILS, "a busy host leaves it undecided at most"
    assert facts["depth_limited_pct"] == 0


def test_a_queue_before_the_drive_counts(attach: Callable[[int, int], str], tmp_path: Path) -> None:
    """One request at a time cannot keep up with a million a second; the wait for a place is not the host's delay."""
    requests = measured(attach(64, BLOCK), tmp_path / "rate", 1e6, 400_000, depth_limit=1, runtime_s=2.0)
    facts = rate_facts([requests], 99, 1000.0)
    assert facts["outcome"] == FAILS
    assert facts["most_in_flight"] == 1
    served = np.isfinite(requests.complete)
    in_drive = np.percentile(requests.complete[served] - requests.issue[served], 99)
    assert in_drive < np.percentile(requests.response[served], 99), "most of the response time is the queue's"
    assert facts["depth_limited_pct"] > 50
    assert any(doubt.startswith("depth limit reached: ") for doubt in facts["doubts"])


LOAD = """\
  - protocol: latency-bounded-load
    scale: demo
    set:
      fill: {capacity_multiple: 0.2}
      soak: {slice: 1s, until: {time: 2s, steady_state: {every: 1s, window: 2}}}
      load:
        limit: {percentile: 90, response_time: 100ms}
        rates: {start: 500, factor: 10, resolution: 100%}
        runtime: 1s
"""


def test_a_load_of_a_virtual_drive_in_real_time_has_an_answer(project: Path, run_directory: Path) -> None:
    (plan,) = planned(LOAD)
    run_stages(plan)
    lines = [line for line in read_journal(plan.recording_path) if line["event"] == "load"]
    assert {line["engine"] for line in lines} == {"native"}
    assert all(line["ended_s"] > line["started_s"] for line in lines)
    rates = collect(plan.recording_path, reduced=True)["load_rates"]
    (found,) = load_answers(rates)
    assert len(rates) >= 2
    assert found.found.failing_iops is not None or found.found.host_limited, "no server in Python keeps 50,000 IOPS"
    assert (rates["load_pct"].notna() | rates["cpu_pct"].notna()).all(), "the host's telemetry belongs to each rate"
    for line in lines:
        files = {file.name for file in (plan.recording_path / line["directory"]).iterdir()}
        assert files >= {"requests.parquet", "engine.json", "command.json", "stdout", "stderr", "exit_code"}
        assert not files & {"load.schedule", "results.bin"}
