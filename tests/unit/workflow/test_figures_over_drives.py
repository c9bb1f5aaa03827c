"""The comparison figures of a measurement, by the plans of its drives."""

from __future__ import annotations

from typing import Any

import pytest

from drivelab.figures.of_recording import FIGURES_OF, OVER_DRIVES, figures_of
from drivelab.figures.over_drives import kinds_over_drives, tables_over_drives
from drivelab.figures.registry import ALL
from drivelab.plan.plan import Plan

WRITES = {"pattern": "random", "read_share": 0, "slice_s": 60.0}
SOAK = {"soak": {"cell": WRITES, "until": {}}}


def loop(**varied: tuple[int, ...]) -> dict[str, Any]:
    (key, values), *_ = varied.items()
    like = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
            "runtime_s": 1.0}  # fmt: skip
    return {"loop": {"cells": [like | {key: value} for value in values], "until": {"rounds": 3}}}


GRID = {"loop": {"cells": [cell | {"block_size_bytes": size} for size in (512, 4096)
                           for cell in loop(read_share=(100, 0))["loop"]["cells"]],
                 "until": {"window": 5, "max_rounds": 25, "track": [{"metric": "iops"}]}}}  # fmt: skip


def plan(drive: str, *steps: dict[str, Any], **subject: Any) -> Plan:
    return Plan({"measure": list(steps), "clock": "virtual", **subject}, {"drive": drive, "measurement": "m"})


def both(*steps: dict[str, Any], **subject: Any) -> tuple[str, ...]:
    return kinds_over_drives([plan("a", *steps, **subject), plan("b", *steps, **subject)], "a")


@pytest.mark.parametrize(("step", "kinds"), [
    pytest.param(SOAK, {"comparison", "drives_latency", "drives_strip", "drives_volume"}, id="a soak"),
    pytest.param(GRID, {"comparison", "drives_grid"}, id="a grid"),
    pytest.param(loop(queue_depth=(1, 4, 16)), {"comparison", "drives_ramp"}, id="depths"),
    pytest.param(loop(read_share=(100, 50, 0)), {"comparison", "drives_mixes"}, id="mixes"),
    pytest.param(loop(read_share=(100, 0)), {"comparison"}, id="no mix"),
    pytest.param(loop(range_start=(0.0, 0.4, 0.8)), {"comparison", "drives_zones"}, id="zones"),
    pytest.param({"application": {}}, {"comparison", "drives_application"}, id="an application"),
    pytest.param({"replay": {}}, {"comparison"}, id="a replay"),
])  # fmt: skip
def test_kinds(step: dict[str, Any], kinds: set[str]) -> None:
    assert set(both(step)) == kinds


def test_a_single_drive_has_no_comparison() -> None:
    assert kinds_over_drives([plan("a", SOAK), plan("a", SOAK)], "a") == ()


def test_without_the_basis_there_are_lines_but_no_deltas() -> None:
    kinds = kinds_over_drives([plan("b", SOAK), plan("c", SOAK)], "a")
    assert set(kinds) == {"drives_latency", "drives_strip", "drives_volume"}


def test_latencies_of_different_workloads_do_not_share_a_figure() -> None:
    other = {"soak": {"cell": WRITES | {"block_size_bytes": 8192}, "until": {}}}
    assert "drives_latency" not in kinds_over_drives([plan("a", SOAK), plan("b", other)], "a")


def test_a_figure_has_to_suit_every_drive() -> None:
    mixes, ends = loop(read_share=(100, 50, 0)), loop(read_share=(100, 0))
    assert set(kinds_over_drives([plan("a", mixes), plan("b", ends)], "a")) == {"comparison"}


def test_drives_measured_at_the_same_time_are_on_one_clock() -> None:
    assert "drives_strip" not in both(SOAK, simultaneous=["a", "b"])
    assert "head_to_head" in both(SOAK, simultaneous=["a", "b"])


def test_each_figure_has_one_kind_a_title_and_tables() -> None:
    """Two figures of one name would share a file."""
    names = [name for kind in OVER_DRIVES for name in FIGURES_OF[kind]]
    assert len(names) == len(set(names))
    assert set(names) <= set(ALL)


def test_the_tables_include_those_for_labels() -> None:
    both, one = (
        set(tables_over_drives(figures_of(kinds))) for kinds in (["comparison", "drives_strip"], ["comparison"])
    )
    assert both == {"deltas", "summary", "series", "cells", "exclusions"}
    assert one == {"deltas", "summary", "exclusions"}
