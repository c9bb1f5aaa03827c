"""From a trace to what is issued when, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.errors import UserError
from drivelab.replay.schedule import make_schedule, map_extents, prepare_schedule
from drivelab.trace import catalogue
from drivelab.trace.schema import read_trace

MIB = 1 << 20


def trace(*rows: tuple[Any, ...], dispatch_ids: list[int | None] | None = None) -> pd.DataFrame:
    """Rows of queue, dispatch, complete (ns), operation, offset, length and flags (`preflush`, `fua`)."""
    names = ["queue_ns", "dispatch_ns", "complete_ns", "operation", "offset_bytes", "length_bytes"]
    frame = pd.DataFrame([row[:6] for row in rows], columns=names)
    frame["operation"] = frame["operation"].astype("category")
    for flag in ("preflush", "fua"):
        frame[flag] = [flag in row[6:] for row in rows]
    ids = [None if row[1] is None else number for number, row in enumerate(rows)]
    return frame.assign(dispatch_id=pd.Series(dispatch_ids or ids, dtype="Int64"), pieces=1)


def test_a_trace_that_fits_stays_where_it_is() -> None:
    schedule = make_schedule(
        trace(
            (5_000_000, 5_001_000, 5_100_000, "write", 8192, 4096),
            (6_500_900, 6_501_000, 6_600_000, "read", 1 * MIB - 4096, 4096),
            (7_000_000, 7_001_000, 7_500_000, "flush", 0, 0),
        ),
        {"lost": {}}, MIB, 4096,
    )  # fmt: skip
    assert [tuple(r) for r in schedule.requests()] == [
        (0, "write", 8192, 4096), (1500, "read", MIB - 4096, 4096), (2000, "flush", 0, 0)
    ]  # fmt: skip
    assert schedule.duration_s == pytest.approx(0.0025)
    planned = schedule.planned()
    assert planned["mapping"]["method"] == "exact"
    assert planned["mapping"]["requests_moved"] == planned["mapping"]["requests_resized"] == 0
    assert (planned["read_ios"], planned["write_ios"], planned["flush_ios"], planned["discard_ios"]) == (1, 1, 1, 0)


def test_merged_requests_are_issued_as_the_drive_got_them() -> None:
    schedule = make_schedule(
        trace(
            (1000, 9000, 20_000, "write", 4096, 4096), (2000, 9000, 20_000, "write", 8192, 4096),
            (3000, 9000, 20_000, "write", 0, 4096), (4000, 9000, 21_000, "write", 65536, 4096),
            (5000, 9000, 22_000, "read", 12288, 4096), (6000, None, None, "write", 12288, 4096),
            dispatch_ids=[0, 0, 0, 1, 2, None],
        ),
        {}, MIB, 4096,
    )  # fmt: skip
    assert [tuple(r) for r in schedule.requests()] == [
        (0, "write", 0, 12288), (3, "write", 65536, 4096), (4, "read", 12288, 4096), (5, "write", 12288, 4096)
    ]  # fmt: skip
    assert schedule.frame["busy_us"].tolist() == [19, 17, 17, 0]
    assert schedule.planned()["mapping"]["requests_merged"] == 2


def test_a_write_with_a_preflush_is_a_flush_and_a_write() -> None:
    schedule = make_schedule(trace((0, 1, 2, "write", 0, 4096, "preflush", "fua")), {"lost": {"overrun": 2}}, MIB, 4096)
    assert [tuple(r) for r in schedule.requests()] == [(0, "flush", 0, 0), (0, "write", 0, 4096)]
    assert schedule.planned()["flush_ios"] == 1
    assert schedule.lost == 2


def test_a_trace_of_a_larger_drive_is_taken_modulo() -> None:
    schedule = make_schedule(
        trace(
            (0, 1, 9, "write", 5 * MIB + 8192, 4096), (1000, 1001, 9, "read", 8192, 4096),
            (2000, 2001, 9, "read", 2 * MIB - 4096, 8192), (3000, 3001, 9, "flush", 0, 0),
        ),
        {}, MIB, 4096,
    )  # fmt: skip
    assert [r.offset_bytes for r in schedule.requests()] == [8192, 8192, MIB - 8192, 0]
    mapping = schedule.planned()["mapping"]
    assert (mapping["method"], mapping["requests_moved"]) == ("modulo", 2)
    assert (mapping["footprint_before_bytes"], mapping["footprint_after_bytes"]) == (4 * 4096, 3 * 4096)


def test_sectors_of_a_512_byte_drive_become_whole_blocks() -> None:
    schedule = make_schedule(
        trace((0, 1, 9, "write", 4096 + 512, 4096), (1000, 1001, 9, "read", 512, 512)), {}, MIB, 4096
    )
    assert [tuple(r)[2:] for r in schedule.requests()] == [(4096, 8192), (0, 4096)]
    mapping = schedule.planned()["mapping"]
    assert (mapping["requests_resized"], mapping["requests_moved"]) == (2, 0)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 44), st.integers(0, 1 << 20)), min_size=1),
    st.sampled_from([512, 4096]),
    st.integers(2 << 20, 8 << 20),
)
def test_mapped_extents_lie_on_the_drive_in_whole_blocks(
    extents: list[tuple[int, int]], block_bytes: int, capacity_bytes: int
) -> None:
    columns = np.array(extents, np.int64)
    columns[columns[:, 1] == 0, 0] = 0
    usable = capacity_bytes // block_bytes * block_bytes
    offset, length, exact = map_extents(columns[:, 0], columns[:, 1], usable, block_bytes)
    assert ((offset >= 0) & (offset + length <= usable)).all()
    assert (offset % block_bytes == 0).all()
    assert (length % block_bytes == 0).all()
    assert (length >= columns[:, 1]).all()
    assert (length - columns[:, 1] < 2 * block_bytes).all()
    assert exact == (-(-columns.sum(axis=1) // block_bytes) * block_bytes <= usable).all()


def test_what_cannot_be_replayed_is_refused() -> None:
    with pytest.raises(UserError, match="neither reads nor writes"):
        make_schedule(trace((0, 1, 2, "flush", 0, 0)), {}, MIB, 4096)
    with pytest.raises(UserError, match="a request of 2MiB is longer than the drive of 1024KiB"):
        make_schedule(trace((0, 1, 2, "read", 0, 2 * MIB)), {}, MIB, 4096)


def test_the_shipped_trace_fits_a_small_drive() -> None:
    schedule = prepare_schedule(catalogue.path_of("sqlite-inserts"), 64 * MIB, 4096)
    planned = schedule.planned()
    assert planned["mapping"]["method"] == "exact"
    requests, _ = read_trace(catalogue.verified_path("sqlite-inserts"))
    frame = requests.to_pandas()
    assert planned["write_bytes"] == frame.loc[frame["operation"] == "write", "length_bytes"].sum()
    assert planned["read_bytes"] == frame.loc[frame["operation"] == "read", "length_bytes"].sum()
    assert len(schedule.frame) + planned["mapping"]["requests_merged"] == len(frame)
    times = schedule.frame["time_us"]
    assert times.iloc[0] == 0
    assert times.is_monotonic_increasing
