"""The figures of a plan, by the shape of its steps."""

from __future__ import annotations

from typing import Any

import pytest

from drivelab.figures.of_recording import figure_kinds

STEADY = {"window": 5, "max_rounds": 25, "track": [{"metric": "iops"}]}
LATENCY = STEADY | {"track": [{"metric": "mean_latency_us"}]}
THROUGHPUT = STEADY | {"track": [{"metric": "bandwidth_mib_s"}]}
ROUNDS = {"rounds": 3}


def cells(sizes: tuple[int, ...] = (4096,), shares: tuple[int, ...] = (0,), **more: Any) -> list[dict[str, Any]]:
    return [{"pattern": "random", "read_share": share, "block_size_bytes": size, "threads": 1, "queue_depth": 1,
             "runtime_s": 1.0, **more} for share in shares for size in sizes]  # fmt: skip


def demands(*points: tuple[int, int]) -> list[dict[str, Any]]:
    return [cell for t, q in points for cell in cells(threads=t, queue_depth=q)]


def loop(of: list[dict[str, Any]], until: dict[str, Any] = STEADY, **more: Any) -> dict[str, Any]:
    return {"loop": {"cells": of, "until": until, **more}}


def soak(share: int = 0, pattern: str = "random", **more: Any) -> dict[str, Any]:
    return {"soak": {"cell": {"pattern": pattern, "read_share": share, "slice_s": 60.0}, "until": {}, **more}}


TURN = {"phase": "point", "phase_pass": 1, "phase_value": "max"}
WAIT = {"phase": "idle", "phase_pass": 1, "phase_value": "5s"}


@pytest.mark.parametrize(("steps", "kinds"), [
    pytest.param([loop(cells((512, 4096), (100, 65, 0)))], {"steady", "one_mix", "grid", "surface", "mixes"},
                 id="block sizes by mixes"),
    pytest.param([loop(cells((512, 4096), (100, 0)))], {"steady", "grid", "surface", "by_mix"}, id="reads and writes"),
    pytest.param([loop(cells((512, 4096), (100, 65, 0)), LATENCY)],
                 {"steady", "grid", "surface", "maximum", "maximum_surface", "mixes", "by_mix"}, id="latency"),
    pytest.param([loop(cells((512,), (100, 65, 0)), LATENCY)], {"steady", "grid", "maximum", "mixes", "by_mix"},
                 id="latency of one size"),
    pytest.param([loop(cells((4096, 65536), (100, 50, 0)), THROUGHPUT)],
                 {"steady", "grid", "surface", "by_mix", "mixes"}, id="throughput"),
    pytest.param([loop(cells(shares=(100, 50, 0)))], {"steady", "one_mix", "grid", "mixes"},
                 id="read shares at one size"),
    pytest.param([loop(cells(shares=(100, 0)))], {"steady", "grid", "by_mix"}, id="reads and writes at one size"),
    pytest.param([loop(cells(shares=(100, 50)))], {"steady", "one_mix", "repeats"}, id="two cells make no line"),
    pytest.param([loop(cells())], {"steady", "one_mix"}, id="one cell"),
    pytest.param([loop(cells((512, 4096), (100, 0))[:3])], {"steady", "one_mix", "repeats"}, id="a hole in the grid"),
    pytest.param([loop([*cells((512, 4096), (100, 0)), *cells((512, 4096), (100, 0), alignment_offset_bytes=512)])],
                 {"steady", "one_mix", "repeats"}, id="cells that a grid cannot distinguish"),
    pytest.param([loop(cells((512, 4096), (100, 0)), ROUNDS)], {"repeats"}, id="rounds"),
    pytest.param([loop([cell for start in (0.0, 0.5, 0.9) for cell in cells(range_start=start)], ROUNDS)],
                 {"repeats", "zones"}, id="positions"),
    pytest.param([loop([cell for start in (0.0, 0.5) for cell in cells(range_start=start)], ROUNDS)], {"repeats"},
                 id="two positions"),
    pytest.param([loop(cells((4096,), (0,)), {"rounds": 72})], {"repeats", "history"}, id="many rounds"),
    pytest.param([loop(demands((1, 1), (1, 4), (4, 4)))], {"steady", "one_mix", "demand"},
                 id="a sweep until steady state"),
    pytest.param([loop(demands((1, 1), (1, 4), (1, 8)), ROUNDS)], {"demand"}, id="a sweep of rounds"),
    pytest.param([loop(demands((1, 1), (8, 32)), ROUNDS)], {"repeats"}, id="a profile with two depths is no sweep"),
    pytest.param([loop([*cells(shares=(100,)), *demands((1, 1), (1, 4), (4, 4))])],
                 {"steady", "one_mix", "demand", "pre_writes"}, id="a sweep with writes before it"),
    pytest.param([loop([*cells(shares=(100, 50)), *demands((1, 1), (1, 4), (4, 4))], ROUNDS)], {"repeats", "mixes"},
                 id="a list with some different demands"),
    pytest.param([{"loop": {"streams": {"threads": [1], "queue_depth": [8]}, "until": STEADY}}],
                 {"steady", "one_mix", "repeats"},
                 id="streams of a trace"),
    pytest.param([soak()], {"soak", "volume", "histogram", "sliced"}, id="write saturation"),
    pytest.param([soak(), soak()], {"soak", "volume", "histogram", "sliced"}, id="one workload in two steps"),
    pytest.param([soak(100)], {"soak", "nines", "sliced"}, id="reads write no volume"),
    pytest.param([soak(0, "sequential"), soak(), soak(0, "sequential")], {"stimulus"}, id="another workload between"),
    pytest.param([soak(), loop(cells(), ROUNDS, pause_s=5.0, phase="wait", phase_pass=1, phase_value="5s"),
                  soak(phase="wait", phase_pass=1, phase_value="5s")],
                 {"soak", "idle_recovery"}, id="bursts after idle time"),
    pytest.param([soak(), {"idle": {"time_s": 5.0, **WAIT}}, soak(**WAIT)], {"soak", "cache"},
                 id="writes after idle time"),
    pytest.param([soak(100), {"idle": {"time_s": 5.0, **WAIT}}, soak(100, **WAIT)], {"soak", "turns"},
                 id="reads after idle time"),
    pytest.param([loop(cells(), ROUNDS, phase="new", phase_pass=1), soak(),
                  loop(cells(), ROUNDS, phase="working", phase_pass=1)],
                 {"repeats", "states", "soak", "volume", "sliced", "histogram"}, id="two states of a drive"),
    pytest.param([soak(), loop(demands((1, 1), (1, 4), (4, 4))), soak(**TURN, point={}), soak(65, **TURN)],
                 {"soak", "steady", "one_mix", "demand", "turns"}, id="points of a sweep"),
    pytest.param([loop(cells()), soak()], {"steady", "one_mix", "soak", "histogram", "sliced"},
                 id="latencies of a settled drive"),
    pytest.param([{"replay": {}}], {"replay"}, id="a replay"),
    pytest.param([soak(phase="wear", phase_pass=1), {"replay": {"phase": "wear", "phase_pass": 1}}],
                 {"replay", "phases"}, id="replays in phases"),
    pytest.param([{"idle": {"time_s": 1.0}}], set(), id="nothing to draw"),
    pytest.param([{"application": {}}], {"application"}, id="an application"),
])  # fmt: skip
def test_kinds(steps: list[dict[str, Any]], kinds: set[str]) -> None:
    assert figure_kinds({"measure": steps}) == kinds


@pytest.mark.parametrize(
    ("clock", "model", "is_drawn"),
    [("wall", {}, True), ("virtual", {}, False), ("virtual", {"throttle": {}}, True),
     ("virtual", {"disturb": {}}, True), ("virtual", {"housekeeping": {}}, False)],
)  # fmt: skip
def test_telemetry_is_drawn_where_the_drive_reports_it(clock: str, model: dict[str, Any], is_drawn: bool) -> None:
    subject = {"measure": [loop(demands((1, 1)))], "clock": clock, "drive": {"virtual": model}}
    assert ("telemetry" in figure_kinds(subject)) == is_drawn
