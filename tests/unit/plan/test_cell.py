"""Cells as mappings and as names."""

from __future__ import annotations

import json

import pytest

from drivelab.plan.cell import Cell

PLAIN = Cell("random", 65, 4096, threads=4, queue_depth=32)
RANGE = Cell("random", 0, 4096, threads=1, queue_depth=1, block_size_max_bytes=1 << 20)


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        (PLAIN, "RND 4KiB 65/35 T4Q32"),
        (RANGE, "RND 4KiB-1024KiB 0/100 T1Q1"),
        (Cell("sequential", 100, 131072, threads=1, queue_depth=1), "SEQ 128KiB 100/0 T1Q1"),
    ],
)
def test_labels(cell: Cell, label: str) -> None:
    assert cell.label == label


@pytest.mark.parametrize("cell", [PLAIN, RANGE])
def test_a_cell_is_restored_from_a_journal(cell: Cell) -> None:
    assert Cell(**json.loads(json.dumps(cell.to_mapping()))) == cell


def test_unset_fields_are_not_in_a_plan() -> None:
    assert PLAIN.to_mapping().keys() == {
        "pattern", "read_share", "block_size_bytes", "threads", "queue_depth", "range_start", "range_share",
    }  # fmt: skip


def test_the_largest_block() -> None:
    assert [cell.largest_block_bytes for cell in (PLAIN, RANGE)] == [4096, 1 << 20]
