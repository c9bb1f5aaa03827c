"""Loops of a trace's streams: their form in a plan, and the cells derived from a trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_protocols import CLASS, STEADY, protocol, steps
from made_traces import Row, made_up, write

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.plan.grammar import load
from drivelab.run.history import tracked
from drivelab.run.schedules import cells_of_trace, most_frequent

PLAN = {"kind": "individual", "most": 9, "threads": [2], "queue_depth": [16], "runtime_s": 60.0, "range_share": 0.5}


def loop(folder: Path, **change: Any) -> dict[str, Any]:
    """Return the resolved loop; `track` lists what its rule tracks."""
    track = change.pop("track", [{"streams": "all", "metric": "iops"}])
    until = {"steady_state": {**STEADY, "track": track}}
    fields = {"cells": {"streams": "individual", "most": 9}, "runtime": "60s", "until": until, **change}
    path = protocol(folder, [{"loop": fields}], class_={**CLASS, "active_range": "50%"})
    assert load(path).takes_streams == ("streams" in fields["cells"])
    (resolved,) = steps(folder, [{"loop": fields}], class_={**CLASS, "active_range": "50%"})
    return resolved


def test_the_plan_says_how_to_choose(tmp_path: Path) -> None:
    resolved_loop = loop(tmp_path)
    assert resolved_loop["streams"] == PLAN
    assert resolved_loop["until"]["track"] == [{"streams": "all", "metric": "iops"}]
    assert "cells" not in resolved_loop


def test_a_sweep_has_lists(tmp_path: Path) -> None:
    track = [{"streams": "all", "threads": 4, "queue_depth": 8, "metric": "iops"}]
    resolved_loop = loop(tmp_path, threads=[4, 1], queue_depth=[8, 1], track=track)
    assert (resolved_loop["streams"]["threads"], resolved_loop["streams"]["queue_depth"]) == ([4, 1], [8, 1])
    assert resolved_loop["until"]["track"] == track


GRID = {"pattern": "random", "cells": {"read_share": [0], "block_size": ["4KiB"]}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cells": {"streams": "individual"}}, "'most' is missing"),
        ({"cells": {"streams": "each", "most": 9}}, "streams"),
        ({"cells": {"streams": "individual", "most": 0}}, "most"),
        ({"cells": {"streams": "individual", "most": 9, "read_share": [0]}}, "unknown key 'read_share'"),
        ({"pattern": "random"}, "each stream has its own pattern"),
        ({"threads": []}, "is empty; give at least one entry"),
        ({"threads": [1, 1]}, "contains a duplicate entry"),
        ({"threads": 0}, "threads': 0 is below 1"),
        ({"threads": 1025}, "threads': 1025 is above 1024"),
        ({"threads": [1, 1025]}, r"threads\[1\]': 1025 is above 1024"),
        ({"queue_depth": "deep"}, "queue_depth': 'deep' is not 'each' "),
        ({"queue_depth": [0]}, "queue_depth"),
        ({"track": [{"streams": "all", "threads": 3, "metric": "iops"}]}, "tracks threads 3, which the loop does not"),
        ({"track": [{"read_share": 0, "block_size": "4KiB", "metric": "iops"}]}, "the cells come from a trace"),
        (GRID, "the loop has no cells of 'streams'"),
        ({**GRID, "track": [{"block_size": "4KiB", "metric": "iops"}]}, "'read_share' is missing"),
        ({**GRID, "threads": [1, 2], "track": [{"read_share": 0, "block_size": "4KiB", "metric": "iops"}]},
         "loop.threads': is a list"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_place(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        loop(tmp_path, **change)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Random access everywhere: 6 reads of 4 KiB, 3 writes of 512 B and 2 of 3 KiB, 1 write of 64 KiB, a flush."""
    kinds = [("read", 4096)] * 6 + [("write", 512)] * 3 + [("write", 3072)] * 2 + [("write", 65536), ("flush", 0)]
    rows = [
        Row(number * 1000, complete_ns=number * 1000 + 10, operation=operation, length_bytes=length,
            offset_bytes=(len(kinds) - number) * 10**8 // 4096 * 4096)
        for number, (operation, length) in enumerate(kinds)
    ]  # fmt: skip
    return write(tmp_path / "trace.parquet", rows)


def brief(streams: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(stream["read_share"], stream["block_size_bytes"], stream["pattern"]) for stream in streams]


def test_the_most_frequent_come_first(trace: Path) -> None:
    assert brief(most_frequent(trace, 9, 512)) == [
        (100, 4096, "random"), (0, 512, "random"), (0, 3072, "random"), (0, 65536, "random")
    ]  # fmt: skip
    assert brief(most_frequent(trace, 2, 512)) == [(100, 4096, "random"), (0, 512, "random")]


def test_streams_equal_in_logical_blocks_are_merged(trace: Path) -> None:
    """512 B and 3 KiB are both 4 KiB on a drive of 4 KiB blocks."""
    assert brief(most_frequent(trace, 3, 4096)) == [(100, 4096, "random"), (0, 4096, "random"), (0, 65536, "random")]


def test_individual_streams_are_ordinary_cells(trace: Path) -> None:
    cells = [Cell(**cell) for cell in cells_of_trace({**PLAN, "most": 3}, trace, 512)]
    assert [cell.workload for cell in cells] == ["RND 4KiB 100/0", "RND 512B 0/100", "RND 3KiB 0/100"]
    assert all(cell.runtime_s == 60.0 for cell in cells)


def test_a_sweep_goes_through_all_combinations(trace: Path) -> None:
    cells = cells_of_trace({**PLAN, "most": 1, "threads": [4, 1], "queue_depth": [8, 2]}, trace, 512)
    assert [(cell["threads"], cell["queue_depth"]) for cell in cells] == [(4, 8), (4, 2), (1, 8), (1, 2)]


def test_a_trace_without_reads_and_writes_has_no_streams(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [Row(1, operation="flush", length_bytes=0)])
    with pytest.raises(UserError, match=r"t\.parquet: no request reads or writes"):
        most_frequent(path, 9, 4096)


def test_streams_are_tracked_by_demand(trace: Path) -> None:
    cells = cells_of_trace({**PLAN, "most": 1, "threads": [4, 1]}, trace, 512)
    rounds = [[{"iops": 10.0 * round_ + index} for round_ in (1, 2)] for index in range(2)]
    every = tracked(cells, rounds, {"track": [{"streams": "all", "metric": "iops"}]})
    assert list(every.values()) == [[10.0, 20.0], [11.0, 21.0]]
    values = tracked(cells, rounds, {"track": [{"streams": "all", "threads": 1, "queue_depth": 16, "metric": "iops"}]})
    assert list(values.values()) == [[11.0, 21.0]]


@given(rows=made_up(), most=st.integers(1, 9), block=st.sampled_from([512, 4096]))
def test_streams_of_any_trace(tmp_path_factory: pytest.TempPathFactory, rows: list[Row], most: int, block: int) -> None:
    """Compare with a simple count, except which streams are sequential."""
    path = write(tmp_path_factory.mktemp("streams") / "t.parquet", rows)
    moved = Counter(
        (row.operation, -(-row.length_bytes // block) * block) for row in rows if row.operation in ("read", "write")
    )
    if not moved:
        with pytest.raises(UserError):
            most_frequent(path, most, block)
        return
    streams = most_frequent(path, most, block)
    assert len(streams) <= most
    kinds = [("read" if stream["read_share"] else "write", stream["block_size_bytes"]) for stream in streams]
    assert set(kinds) <= moved.keys()
    if most == 9:  # no made-up trace of these lengths has more streams
        assert set(kinds) == moved.keys()
