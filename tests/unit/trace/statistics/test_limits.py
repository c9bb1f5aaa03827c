"""Memory limits: coarser counts, reported as such, in any order."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from whole_traces import write_trace

from drivelab.core.errors import UserError
from drivelab.trace.statistics import depth, footprint, streams
from drivelab.trace.statistics.count import count

Rows = list[dict[str, Any]]


def scattered(model: ModuleType, requests: int = 400, seed: int = 1, span: int = 1 << 34) -> Rows:
    random = np.random.default_rng(seed)
    return [
        model.row(
            1000 * number,
            str(random.choice(["read", "write"])),
            int(random.integers(0, span // 4096)) * 4096,
            int(random.choice([512, 4096, 16384, 1 << 20])),
            complete_ns=1000 * number + int(random.integers(1, 50_000)),
        )
        for number in range(requests)
    ]


@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_footprint_in_coarser_blocks(model: ModuleType, monkeypatch: pytest.MonkeyPatch, batch_rows: int) -> None:
    monkeypatch.setattr(footprint, "MOST_WORDS", 50)
    rows = scattered(model)
    overview = model.counted(rows, batch_rows)["trace_overview"].iloc[0]
    size = overview["footprint_block_bytes"]
    assert len({block for row in rows for block in model.blocks(row, size * 64)}) <= 50
    assert len({block for row in rows for block in model.blocks(row, size * 32)}) > 50
    assert overview["footprint_bytes"] == model.footprint(rows, "read", "write", size=size)
    assert overview["write_footprint_bytes"] == model.footprint(rows, "write", size=size)


def test_too_many_lengths_are_rounded_up(model: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST", 8)
    rows = [model.row(number, "write", 0, 512 + number) for number in range(100)]
    for batch_rows in (11, 1000):
        tables = model.counted(rows, batch_rows)
        step = tables["trace_overview"]["length_step_bytes"].iloc[0]
        assert step == 16
        counts = {row.length_bytes: row.requests for row in tables["trace_sizes"].itertuples()}
        expected: dict[int, int] = {}
        for row in rows:
            rounded = -(-row["length_bytes"] // step) * step
            expected[rounded] = expected.get(rounded, 0) + 1
        assert counts == expected
        assert tables["trace_streams"]["length_step_bytes"].eq(16).all()


def test_beyond_the_limit_the_depth_is_unknown(model: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "MOST_PENDING", 20)
    tables = model.counted([model.row(number, complete_ns=10_000 - number) for number in range(100)], 10)
    overview = tables["trace_overview"].iloc[0]
    assert overview[["queue_depth_mean", "queue_depth_p99", "queue_depth_max"]].isna().all()
    assert overview["idle_basis"] == "long gaps between arrivals"
    assert tables["trace_over_time"][["queue_depth_mean", "queue_depth_max"]].isna().all(axis=None)


def test_one_request_over_the_whole_device(model: ModuleType) -> None:
    rows = [model.row(0, "write", 0, 1 << 57), model.row(5, "read", 4096, 4096)]
    overview = model.counted(rows)["trace_overview"].iloc[0]
    assert overview["footprint_bytes"] == 1 << 57
    assert overview["footprint_block_bytes"] == (1 << 57) // 64 // footprint.MOST_WORDS


def test_invalid_traces_are_refused(model: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_trace(model.table([]), {}, path)
    with pytest.raises(UserError, match=r"t\.parquet: the trace has no request"):
        count(path, "t")
    write_trace(model.table([model.row(5), model.row(4)]), {}, path)
    with pytest.raises(UserError, match=r"t\.parquet: its requests are not in the order"):
        count(path, "t")
    write_trace(model.table([model.row(5, "read", -4096)]), {}, path)
    with pytest.raises(UserError, match=r"t\.parquet: a request at -4096 B .* fits no device"):
        count(path, "t")
