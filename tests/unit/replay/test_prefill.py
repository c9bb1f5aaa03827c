"""Prefill before a replay: exactly the blocks that its reads touch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.replay.engine_records import OPERATION_CODES, SCHEDULE_RECORD, ScheduleWriter, open_schedule
from drivelab.replay.prefill import PIECE_BYTES, prefill_schedule
from drivelab.trace.parquet_schema import OPERATIONS

BLOCK = 4096
TARGET_BLOCKS = 1024
_REQUESTS = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, TARGET_BLOCKS - 100), st.integers(1, 100))


def write(path: Path, requests: list[tuple[str, int, int]]) -> Path:
    records = np.zeros(len(requests), SCHEDULE_RECORD)
    for record, (operation, first, blocks) in zip(records, requests, strict=True):
        record["operation"] = OPERATION_CODES[operation]
        record["offset_bytes"], record["length_bytes"] = first * BLOCK, blocks * BLOCK
    with ScheduleWriter(path, TARGET_BLOCKS * BLOCK, BLOCK) as writer:
        writer.write(records)
    return path


@settings(deadline=None)
@given(st.lists(_REQUESTS, min_size=1, max_size=30))
def test_each_read_block_is_written_once(
    tmp_path_factory: pytest.TempPathFactory, requests: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("prefill")
    read_blocks = {block for kind, first, count in requests if kind == "read" for block in range(first, first + count)}
    written = prefill_schedule(write(folder / "s", requests), folder / "p")
    assert written == len(read_blocks) * BLOCK
    if not read_blocks:
        assert not (folder / "p").exists()
        return
    records = open_schedule(folder / "p").records
    assert (records["operation"] == OPERATION_CODES["write"]).all()
    assert records["length_bytes"].max() <= PIECE_BYTES
    assert (np.diff(records["offset_bytes"].astype(np.int64)) > 0).all()
    blocks = [
        block
        for record in records
        for block in range(
            int(record["offset_bytes"]) // BLOCK, int(record["offset_bytes"] + record["length_bytes"]) // BLOCK
        )
    ]
    assert sorted(blocks) == sorted(read_blocks)
