"""Every size of a plan against the logical block of its drive."""

from __future__ import annotations

from typing import Any

import pytest

from drivelab.errors import UserError
from drivelab.plan.blocks import refuse_small_cells
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan


def plan(cell: dict[str, Any], fill: Any = None) -> Plan:
    made = Cell(
        **{"pattern": "random", "read_share": 0, "block_size_bytes": 8192, "threads": 1, "queue_depth": 1, **cell}
    )
    condition = {"purge": "none", **({"fill": fill} if fill is not None else {})}
    subject = {"condition": condition, "measure": [{"idle": {"time_s": 1.0}}, {"soak": {"cell": made.to_mapping()}},
                                                   {"loop": {"cells": [made.to_mapping()]}}]}  # fmt: skip
    return Plan(subject, {"drive": "fast", "measurement": "m"})


def sizes(*of: int) -> list[dict[str, Any]]:
    return [{"block_size_bytes": one, "share": 1 / len(of)} for one in of]


def beside(size: int) -> dict[str, Any]:
    return {"pattern": "random", "read_share": 100, "block_size_bytes": size, "threads": 1, "queue_depth": 1}


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ({"block_size_bytes": 512}, "block size 512B"),
        ({"block_size_bytes": 4096, "block_sizes": sizes(4096, 4608)}, "block size 4608B"),
        ({"beside": beside(1024)}, "block size 1KiB"),
        ({"alignment_bytes": 2048}, "alignment 2KiB"),
        ({"alignment_offset_bytes": 512}, "alignment offset 512B"),
    ],
)
def test_any_size_below_the_block_is_refused(cell: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=f"drive 'fast', m: {what} is no multiple of the drive's logical block of 4KiB"):
        refuse_small_cells(plan(cell), 4096)
    refuse_small_cells(plan(cell), 512)


@pytest.mark.parametrize("several", [False, True])
def test_so_is_that_of_a_fill(several: bool) -> None:
    small, large = {"block_size_bytes": 512}, {"block_size_bytes": 131072}
    with pytest.raises(UserError, match="the fill's block size 512B"):
        refuse_small_cells(plan({}, [large, small] if several else small), 4096)
    refuse_small_cells(plan({}, [large, large] if several else large), 4096)


def test_streams_are_rounded_when_the_trace_is_there() -> None:
    streams = [{"operation": "write", "block_size_bytes": 512, "pattern": "random", "share": 1.0}]
    refuse_small_cells(plan({"pattern": "composite", "block_size_bytes": 700, "streams": streams}), 4096)
