"""Check every size, range and slice of a plan against its drive."""

from __future__ import annotations

from typing import Any

import pytest

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.plan.fitting import refuse_unfit
from drivelab.plan.plan import Plan

GIB = 2**30


def plan(cell: dict[str, Any], fill: Any = None, clock: str = "wall") -> Plan:
    workload = Cell(
        **{"pattern": "random", "read_share": 0, "block_size_bytes": 8192, "threads": 1, "queue_depth": 1, **cell}
    )
    condition = {"purge": "none", **({"fill": fill} if fill is not None else {})}
    subject = {"condition": condition, "measure": [{"idle": {"time_s": 1.0}}, {"soak": {"cell": workload.to_mapping()}},
                                                   {"loop": {"cells": [workload.to_mapping()]}}]}  # fmt: skip
    return Plan({"clock": clock, **subject}, {"drive": "fast", "measurement": "m"})


def sizes(*of: int) -> list[dict[str, Any]]:
    return [{"block_size_bytes": size, "share": 1 / len(of)} for size in of]


def beside(size: int) -> dict[str, Any]:
    return {"pattern": "random", "read_share": 100, "block_size_bytes": size, "threads": 1, "queue_depth": 1}


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ({"block_size_bytes": 512}, "block size 512B"),
        ({"block_size_bytes": 2048, "block_sizes": sizes(2048, 8192)}, "block size 2KiB"),
        ({"beside": beside(1024)}, "block size 1KiB"),
        ({"alignment_bytes": 2048}, "alignment 2KiB"),
        ({"alignment_offset_bytes": 512}, "alignment offset 512B"),
    ],
)
def test_any_size_below_the_logical_block_is_refused(cell: dict[str, Any], fault: str) -> None:
    with pytest.raises(
        UserError, match=f"drive 'fast', m: {fault} is not a multiple of the drive's logical block of 4KiB"
    ):
        refuse_unfit(plan(cell), GIB, 4096)
    refuse_unfit(plan(cell), GIB, 512)


@pytest.mark.parametrize(
    ("cell", "fill"),
    [
        ({"operation": "trim"}, None),
        ({"beside": [beside(8192), {**beside(8192), "read_share": 0, "operation": "trim"}]}, None),
        ({}, [{"block_size_bytes": 8192}, {"block_size_bytes": 8192, "operation": "trim"}]),
    ],
)
def test_trims_need_a_drive_that_trims(cell: dict[str, Any], fill: Any) -> None:
    with pytest.raises(UserError, match="does not support TRIM; leave this protocol out of the study"):
        refuse_unfit(plan(cell, fill), GIB, 4096, trims=False)
    refuse_unfit(plan(cell, fill), GIB, 4096)
    refuse_unfit(plan({}), GIB, 4096, trims=False)


@pytest.mark.parametrize("several", [False, True])
def test_a_fill_below_the_logical_block_is_refused(several: bool) -> None:
    small, large = {"block_size_bytes": 512}, {"block_size_bytes": 131072}
    with pytest.raises(UserError, match="the fill's block size 512B"):
        refuse_unfit(plan({}, [large, small] if several else small), GIB, 4096)
    refuse_unfit(plan({}, [large, large] if several else large), GIB, 4096)


def test_a_range_larger_than_the_drive_is_refused() -> None:
    with pytest.raises(UserError, match="range of 2GiB is larger than the drive of 1GiB"):
        refuse_unfit(plan({"range_bytes": 2 * GIB}), GIB, 4096)
    refuse_unfit(plan({"range_bytes": GIB}), GIB, 4096)


def test_a_range_without_a_block_for_each_thread_is_refused() -> None:
    cell = {"pattern": "sequential", "threads": 8, "range_bytes": 32768}
    with pytest.raises(UserError, match="does not hold a block of 8KiB for each thread"):
        refuse_unfit(plan(cell), GIB, 4096)


def test_slices_below_a_second_are_refused_in_real_time() -> None:
    with pytest.raises(UserError, match=r"slices of 0.5 s are shorter than fio supports"):
        refuse_unfit(plan({"slice_s": 0.5}), GIB, 4096)
    refuse_unfit(plan({"slice_s": 0.5}, clock="virtual"), GIB, 4096)
