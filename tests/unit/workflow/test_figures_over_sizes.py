"""Measurements that share a figure over block size, by their plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drivelab.figures.over_drives import measurements_by_size
from drivelab.plan.grammar import load, resolve
from drivelab.plan.plan import Plan

PROTOCOLS = Path(__file__).resolve().parents[3] / "config/protocols"
TRACK = {"track": [{"metric": "bandwidth_mib_s"}]}


def loop(*sizes: int, until: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    cells = [{"pattern": "sequential", "read_share": 0, "block_size_bytes": size, **more} for size in sizes]
    return {"loop": {"cells": cells, "until": TRACK if until is None else until}}


def plan(measurement: str, *steps: dict[str, Any], drive: str = "a") -> Plan:
    return Plan({"measure": list(steps), "clock": "virtual"}, {"drive": drive, "measurement": measurement})


def test_block_sizes_of_one_protocol_share_a_figure() -> None:
    plans = [plan(f"m.{size}", loop(size, size), drive=drive) for drive in "ab" for size in (4096, 8192)]
    assert measurements_by_size([*plans, plan("other", loop(4096))]) == {"m": ("m.4096", "m.8192")}


@pytest.mark.parametrize("second", [
    pytest.param((loop(4096),), id="the same size"),
    pytest.param((loop(8192, 4096),), id="two sizes in one"),
    pytest.param((loop(8192, until={"rounds": 3}),), id="repeats"),
    pytest.param((loop(8192), loop(8192)), id="two loops"),
    pytest.param(({"soak": {"cell": {"block_size_bytes": 8192}, "until": {}}},), id="a soak"),
    pytest.param((loop(8192, block_size_max_bytes=65536),), id="a range of sizes"),
])  # fmt: skip
def test_measurements_with_other_differences_do_not_share_a_figure(second: tuple[dict[str, Any], ...]) -> None:
    assert measurements_by_size([plan("m.1", loop(4096)), plan("m.2", *second)]) == {}


def test_a_single_block_size_has_no_figure() -> None:
    assert measurements_by_size([plan("m.1", loop(4096)), plan("m.1", loop(4096), drive="b")]) == {}


@pytest.mark.parametrize(
    ("protocol", "sizes"), [("pts-throughput", 2), ("tkperf-throughput", 5), ("pts-active-range", 0), ("pts-iops", 0)]
)
def test_shipped_protocols(protocol: str, sizes: int) -> None:
    variants = resolve(load(PROTOCOLS / f"{protocol}.yaml"), "enterprise", None, {}, "test")
    plans = [
        plan(f"mine.{variant.variant}" if variant.variant else "mine", *variant.steps["measure"])
        for variant in variants
    ]
    assert len(measurements_by_size(plans).get("mine", ())) == sizes
