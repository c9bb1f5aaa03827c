"""A replay as a capture of it shows it, beside what the engine says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_outcomes import request, write_planned, write_results
from trace_files import Event, write_capture

from drivelab.analysis.replay_matching import Extents, match, surplus
from drivelab.replay.kernel_view import compare
from drivelab.replay.outcome import write_outcome
from drivelab.trace.decode import FIRST_EVENT_MONOTONIC, decode
from drivelab.trace.schema import FLAGS, REQUESTS, read_trace, write_trace

START_NS, FIRST_NS = 10**12 + 5, 10**12 - 2_000_000
WHOLE = [
    request("write", 1, 101, due=0, offset=4096),
    request("read", 501, 601, due=500, offset=0, length=8192),
    request("write", 1001, 1101, due=1000, offset=4096),
]
Seen = tuple[float, float | None, str, int, int]
"""Queued and completed in us after the replay's start, operation, offset, length."""


def captured(path: Path, seen: Sequence[Seen], **provenance: Any) -> Path:
    def ns(time_us: float | None) -> int | None:
        return None if time_us is None else START_NS - FIRST_NS + round(1000 * time_us)

    rows = [
        {"queue_ns": ns(begin), "dispatch_ns": None, "complete_ns": ns(end), "operation": operation,
         **dict.fromkeys(FLAGS, False), "offset_bytes": offset, "length_bytes": length, "process": "", "pid": 1,
         "cpu": 0, "error": 0, "dispatch_id": None, "pieces": 1, "requeues": 0}
        for begin, end, operation, offset, length in seen
    ]  # fmt: skip
    said = {"lost": {}, FIRST_EVENT_MONOTONIC: FIRST_NS, **provenance}
    write_trace(pa.Table.from_pylist(rows, REQUESTS), {k: v for k, v in said.items() if v is not None}, path)
    return path


def view(folder: Path, rows: list[dict[str, Any]], seen: Sequence[Seen], **provenance: Any) -> dict[str, Any]:
    planned = write_planned(folder / "planned.parquet", rows)
    results = write_results(folder / "results.bin", rows)
    write_outcome(planned, results, folder / "outcome.parquet", {})
    found = compare(captured(folder / "seen.parquet", seen, **provenance), folder / "outcome.parquet", START_NS)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def as_issued(rows: list[dict[str, Any]], late_us: float = 2.0) -> list[Seen]:
    return [
        (row["issue_ns"] / 1000 + late_us, row["complete_ns"] / 1000 - 1, row["operation"], row["offset_bytes"],
         row["length_bytes"]) for row in rows
    ]  # fmt: skip


def test_what_was_issued_is_what_is_seen(tmp_path: Path) -> None:
    found = view(tmp_path, WHOLE, as_issued(WHOLE))
    write = {"requests": 2, "bytes": 8192}
    assert found["operations"]["write"] == {
        "planned": write, "issued": write, "seen": write, "matched": 2, "missing": 0, "extra": 0,
    }  # fmt: skip
    assert (found["missing"], found["extra"], found["split"], found["order_inversions"]) == (0, 0, 0, 0)
    assert found["issue_error_us"]["mean"] == pytest.approx(3.0)
    assert found["times_reason"] is None
    assert found["duration_ratio"] == pytest.approx(1.0)
    assert found["queue_to_completion_us"]["mean"] == pytest.approx(97.0)


def test_missing_and_extra_requests(tmp_path: Path) -> None:
    stranger = (700.0, 800.0, "read", 1 << 20, 4096)
    before, after = (-1500.0, -1400.0, "read", 0, 512), (2500.0, 2600.0, "read", 0, 512)
    seen = as_issued(WHOLE)
    found = view(tmp_path, WHOLE, [before, *seen[:2], stranger, after])
    assert (found["missing"], found["extra"]) == (1, 1)
    assert found["operations"]["write"]["missing"] == 1
    assert found["operations"]["read"]["seen"] == {"requests": 2, "bytes": 12288}


def test_a_request_that_was_not_issued_is_not_missing(tmp_path: Path) -> None:
    rows = [*WHOLE, request("read", None, None, due=1000, offset=8192)]
    found = view(tmp_path, rows, as_issued(WHOLE))
    assert found["missing"] == 0
    assert found["operations"]["read"]["planned"]["requests"] == 2
    assert found["operations"]["read"]["issued"]["requests"] == 1


def test_a_request_that_the_kernel_submitted_in_parts_is_one(tmp_path: Path) -> None:
    long = request("discard", 0, 500, due=0, offset=0, length=12288)
    read = request("read", 0, 300, due=0, offset=0, length=8192)
    parts: list[Seen] = [
        (1, 400, "discard", 0, 4096), (2, 100, "read", 0, 4096), (3, 280, "read", 4096, 4096),
        (4, 400, "discard", 4096, 4096), (5, 300, "discard", 8192, 4096),
    ]  # fmt: skip
    found = view(tmp_path, [long, read], parts)
    assert (found["missing"], found["extra"], found["split"]) == (0, 0, 2)
    assert found["queue_to_completion_us"]["mean"] == pytest.approx(278.0)


def test_a_drive_without_a_write_cache_sees_no_flushes(tmp_path: Path) -> None:
    rows = [*WHOLE, request("flush", 1050, 1051, due=1050)]
    found = view(tmp_path, rows, as_issued(WHOLE))
    assert (found["missing"], found["flushes_unseen"]) == (0, 1)
    rows.append(request("flush", 1060, 1061, due=1060))
    found = view(tmp_path, rows, [*as_issued(WHOLE), (1051.0, 1052.0, "flush", 0, 0)])
    assert (found["missing"], found["flushes_unseen"]) == (1, 0)


def test_flushes_behind_fua_writes_are_the_kernels(tmp_path: Path) -> None:
    rows = [{**WHOLE[0], "fua": True}, *WHOLE[1:]]
    flushes: list[Seen] = [(1101.0, 1102.0, "flush", 0, 0), (1103.0, 1104.0, "flush", 0, 0)]
    found = view(tmp_path, rows, [*as_issued(WHOLE), *flushes])
    assert (found["extra"], found["flushes_of_fua"]) == (1, 1)


def test_a_flush_is_not_taken_for_one_that_the_kernel_made_before_it(tmp_path: Path) -> None:
    rows = [{**WHOLE[0], "fua": True}, request("flush", 400, 450, due=400), *WHOLE[1:]]
    flushes: list[Seen] = [(99.0, 100.0, "flush", 0, 0), (403.0, 449.0, "flush", 0, 0)]
    seen = as_issued(WHOLE)
    found = view(tmp_path, rows, [seen[0], *flushes, *seen[1:]])
    assert (found["missing"], found["extra"], found["flushes_of_fua"]) == (0, 0, 1)
    assert found["issue_error_us"]["min"] == 3.0


@given(st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)))
def test_just_the_surplus_is_left_out(issued: list[int], seen: list[int]) -> None:
    found = surplus(np.sort(np.array(issued, np.float64)), np.sort(np.array(seen, np.float64)))
    assert found.sum() == max(len(seen) - len(issued), 0)


def test_order_in_the_kernel_is_its_own(tmp_path: Path) -> None:
    seen = as_issued(WHOLE)
    swapped = sorted([(504.0, 601.0, *seen[0][2:]), (503.0, 600.0, *seen[1][2:]), seen[2]])
    assert view(tmp_path, WHOLE, swapped)["order_inversions"] == 1


@pytest.mark.parametrize("provenance", [{FIRST_EVENT_MONOTONIC: None}, {"derived": [{"step": "cut"}]}])
def test_without_the_engines_clock_there_is_no_issue_error(tmp_path: Path, provenance: dict[str, Any]) -> None:
    found = view(tmp_path, WHOLE, as_issued(WHOLE), **provenance)
    assert found["issue_error_us"] is None
    assert "clock" in found["times_reason"]
    assert (found["missing"], found["order_inversions"]) == (0, 0)
    assert found["duration_ratio"] == pytest.approx(1.0)


def test_a_capture_of_another_device_is_told_of(tmp_path: Path) -> None:
    found = view(tmp_path, WHOLE, [(100.0, 200.0, "read", 1 << 30, 512)], lost={"overrun": 4})
    assert (found["missing"], found["extra"], found["lost"]) == (3, 1, 4)
    assert "another device" in found["times_reason"]
    assert found["order_inversions"] is found["duration_ratio"] is found["issue_error_us"] is None


def test_a_decoded_capture_says_when_it_began_on_the_engines_clock(tmp_path: Path) -> None:
    events: list[Event] = [(5_000, "Q", "W", 8, 4096), (5_010, "D", "W", 8, 4096), (6_000, "C", "W", 8, 4096)]
    folder = write_capture(tmp_path / "c", events)
    decode(folder, tmp_path / "t.parquet")
    assert FIRST_EVENT_MONOTONIC not in read_trace(tmp_path / "t.parquet")[1]
    (folder / "capture.json").write_text(json.dumps({"realtime_offset_ns": 10**18}))
    decode(folder, tmp_path / "t.parquet")
    assert read_trace(tmp_path / "t.parquet")[1][FIRST_EVENT_MONOTONIC] == 5_000


KINDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 2)), max_size=25)


def extents(kinds: Sequence[tuple[int, int, int]]) -> Extents:
    columns = np.array(kinds, np.int64).reshape(-1, 3).T
    return Extents(columns[0], 100 * columns[1], columns[2])


@given(KINDS, KINDS)
def test_the_kth_of_a_kind_is_the_kth_of_that_kind(planned: list[Any], seen: list[Any]) -> None:
    found = match(extents(planned), extents(seen))
    for row, kind in enumerate(planned):
        same = [at for at, other in enumerate(seen) if other == kind]
        place = planned[:row].count(kind)
        assert found.first[row] == (same[place] if place < len(same) else -1)
    for row, kind in enumerate(seen):
        same = [at for at, other in enumerate(planned) if other == kind]
        place = seen[:row].count(kind)
        assert found.of_captured[row] == (same[place] if place < len(same) else -1)


def test_parts_that_do_not_cover_a_request_stay_free_for_the_next_one() -> None:
    def reads(*pairs: tuple[int, int]) -> Extents:
        return extents_of([(0, *pair) for pair in pairs])

    def extents_of(rows: list[tuple[int, ...]]) -> Extents:
        columns = np.array(rows, np.int64).T
        return Extents(columns[0], columns[1], columns[2])

    found = match(reads((0, 30), (0, 20)), reads((0, 10), (10, 10)))
    assert found.first.tolist() == [-1, 0]
    assert found.of_captured.tolist() == [1, 1]
    assert found.split == 1
    found = match(reads((0, 15)), reads((0, 10), (10, 10)))  # reaches beyond
    assert found.of_captured.tolist() == [-1, -1]


def test_strange_requests_match_nothing() -> None:
    kinds = [(0, 0, 1), (0, 0, 1), (1, 0, 1)]
    found = match(extents(kinds[1:]), extents(kinds), np.array([True, False, False]))
    assert (found.first.tolist(), found.of_captured.tolist()) == ([1, 2], [-1, 0, 1])
    found = match(extents(kinds), extents(kinds), np.ones(3, np.bool_))
    assert (found.first.tolist(), found.of_captured.tolist()) == ([-1] * 3, [-1] * 3)


def test_write_zeroes_that_the_tracer_shows_as_writes_are_neither_missing_nor_extra(tmp_path: Path) -> None:
    rows = [request("write-zeroes", 1, 90, due=0, offset=4096), *[{**one} for one in WHOLE[1:]]]
    seen = [(*one[:2], "write" if one[2] == "write-zeroes" else one[2], *one[3:]) for one in as_issued(rows)]
    found = view(tmp_path, rows, seen)
    assert (found["missing"], found["extra"], found["write_zeroes_seen_as_writes"]) == (0, 0, 1)
    assert found["operations"]["write"]["seen"] == {"requests": 1, "bytes": 4096}
    assert found["operations"]["write-zeroes"]["seen"] == {"requests": 1, "bytes": 4096}
    assert found["issue_error_us"]["min"] == 3.0
    found = view(tmp_path, rows, as_issued(rows))
    assert (found["missing"], found["write_zeroes_seen_as_writes"]) == (0, 0)
