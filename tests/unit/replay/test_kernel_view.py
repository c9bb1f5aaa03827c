"""Comparison of a replay's outcome with a capture of it."""

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

from drivelab.replay.evaluation.kernel_view import compare
from drivelab.replay.evaluation.matching import Extents, match, surplus
from drivelab.replay.outcome import write_outcome
from drivelab.replay.planner import PLANNED_OF_VOLUMES
from drivelab.replay.volumes import ONLY
from drivelab.trace.decode import FIRST_EVENT_MONOTONIC, decode
from drivelab.trace.parquet_schema import FLAGS, REQUESTS, read_trace, write_trace

START_NS, FIRST_NS = 10**12 + 5, 10**12 - 2_000_000
WHOLE = [
    request("write", 1, 101, due=0, offset=4096),
    request("read", 501, 601, due=500, offset=0, length=8192),
    request("write", 1001, 1101, due=1000, offset=4096),
]
Seen = tuple[float, float | None, str, int, int]
"""Queued and completed in us after the replay's start, operation, offset, length."""


def captured(path: Path, seen: Sequence[Seen], later_ns: int = 0, **provenance: Any) -> Path:
    """Write a capture whose first event came `later_ns` after FIRST_NS."""

    def ns(time_us: float | None) -> int | None:
        return None if time_us is None else START_NS - FIRST_NS - later_ns + round(1000 * time_us)

    rows = [
        {"queue_ns": ns(begin), "dispatch_ns": None, "complete_ns": ns(end), "operation": operation,
         **dict.fromkeys(FLAGS, False), "offset_bytes": offset, "length_bytes": length, "process": "", "pid": 1,
         "cpu": 0, "error": 0, "dispatch_id": None, "pieces": 1, "requeues": 0}
        for begin, end, operation, offset, length in seen
    ]  # fmt: skip
    about = {"lost": {}, FIRST_EVENT_MONOTONIC: FIRST_NS + later_ns, **provenance}
    write_trace(pa.Table.from_pylist(rows, REQUESTS), {k: v for k, v in about.items() if v is not None}, path)
    return path


def view(folder: Path, rows: list[dict[str, Any]], seen: Sequence[Seen], **provenance: Any) -> dict[str, Any]:
    planned = write_planned(folder / "planned.parquet", rows)
    results = write_results(folder / "results.bin", rows)
    write_outcome(planned, results, folder / "outcome.parquet", {})
    capture = captured(folder / "seen.parquet", seen, **provenance)
    result, volumes = compare({ONLY: capture}, folder / "outcome.parquet", START_NS)
    assert volumes == {}
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    return result


def as_issued(rows: list[dict[str, Any]], late_us: float = 2.0) -> list[Seen]:
    return [
        (row["issue_ns"] / 1000 + late_us, row["complete_ns"] / 1000 - 1, row["operation"], row["offset_bytes"],
         row["length_bytes"]) for row in rows
    ]  # fmt: skip


def test_a_complete_capture_matches_all_requests(tmp_path: Path) -> None:
    result = view(tmp_path, WHOLE, as_issued(WHOLE))
    write = {"requests": 2, "bytes": 8192}
    assert result["operations"]["write"] == {
        "planned": write, "issued": write, "seen": write, "matched": 2, "missing": 0, "extra": 0,
    }  # fmt: skip
    assert (result["missing"], result["extra"], result["split"], result["order_inversions"]) == (0, 0, 0, 0)
    assert result["issue_error_us"]["mean"] == pytest.approx(3.0)
    assert result["times_reason"] is None
    assert result["duration_ratio"] == pytest.approx(1.0)
    assert result["queue_to_completion_us"]["mean"] == pytest.approx(97.0)


def test_missing_and_extra_requests(tmp_path: Path) -> None:
    stranger = (700.0, 800.0, "read", 1 << 20, 4096)
    before, after = (-1500.0, -1400.0, "read", 0, 512), (2500.0, 2600.0, "read", 0, 512)
    seen = as_issued(WHOLE)
    result = view(tmp_path, WHOLE, [before, *seen[:2], stranger, after])
    assert (result["missing"], result["extra"]) == (1, 1)
    assert result["operations"]["write"]["missing"] == 1
    assert result["operations"]["read"]["seen"] == {"requests": 2, "bytes": 12288}


def test_volumes_are_matched_each_alone_and_counted_together(tmp_path: Path) -> None:
    """Both volumes have the same offsets; the captures begin at different times and share a loss of 4 events."""
    rows = [
        {**request("write", 10 * n + 1, 10 * n + 6, due=10 * n, offset=4096 * (n // 2)), "volume": "ab"[n % 2]}
        for n in range(8)
    ]
    seen = {name: as_issued([row for row in rows if row["volume"] == name]) for name in "ab"}
    seen["b"] = [*seen["b"][:3], (65.0, 66.0, "read", 0, 512)]  # the last write is missing, and a stranger is there
    losses = {"a": {"overrun": 4}, "b": {"overrun": 4, "completions_missing": 1}}
    outcome = outcome_of_volumes(tmp_path, rows)
    captures = {
        name: captured(tmp_path / f"{name}.parquet", seen[name], by, lost=losses[name], session_lost=4)
        for name, by in (("a", 0), ("b", 777_000))
    }
    whole, each = compare(captures, outcome, START_NS)
    assert json.loads(json.dumps([whole, each], allow_nan=False)) == [whole, each]
    counts = {name: (view["missing"], view["extra"], view["lost"]) for name, view in each.items()}
    assert counts == {"a": (0, 0, 4), "b": (1, 1, 5)}
    assert (whole["missing"], whole["extra"], whole["lost"]) == (1, 1, 5), "the common loss counts once"
    issued = {"requests": 8, "bytes": 8 * 4096}
    assert whole["operations"] == {
        "read": {"planned": NONE, "issued": NONE, "seen": {"requests": 1, "bytes": 512},
                 "matched": 0, "missing": 0, "extra": 1},
        "write": {"planned": issued, "issued": issued, "seen": {"requests": 7, "bytes": 7 * 4096},
                  "matched": 7, "missing": 1, "extra": 0},
    }  # fmt: skip
    assert whole["issue_error_us"]["min"] == pytest.approx(3.0)
    assert whole["issue_error_us"]["max"] == pytest.approx(3.0), "both captures are on the engine's clock"
    assert [view["order_inversions"] for view in (whole, *each.values())] == [0, 0, 0]
    assert whole["queue_to_completion_us"]["mean"] == pytest.approx(2.0)


def test_order_is_compared_across_volumes(tmp_path: Path) -> None:
    """Each volume keeps its own order; volume `b` is 25 us late, so requests of `a` overtake its requests."""
    rows = [{**request("read", 10 * n, 10 * n + 50, due=10 * n, offset=4096 * n), "volume": "ab"[n % 2]}
            for n in range(6)]  # fmt: skip
    captures = {
        name: captured(tmp_path / f"{name}.parquet", as_issued([row for row in rows if row["volume"] == name], late_us))
        for name, late_us in (("a", 0.0), ("b", 25.0))
    }
    whole, each = compare(captures, outcome_of_volumes(tmp_path, rows), START_NS)
    assert [view["order_inversions"] for view in each.values()] == [0, 0]
    assert whole["order_inversions"] == 2


NONE = {"requests": 0, "bytes": 0}


def outcome_of_volumes(folder: Path, rows: list[dict[str, Any]]) -> Path:
    planned = write_planned(folder / "planned.parquet", rows, schema=PLANNED_OF_VOLUMES)
    write_outcome(planned, write_results(folder / "results.bin", rows), folder / "outcome.parquet", {})
    return folder / "outcome.parquet"


def test_an_unissued_request_is_not_missing(tmp_path: Path) -> None:
    rows = [*WHOLE, request("read", None, None, due=1000, offset=8192)]
    result = view(tmp_path, rows, as_issued(WHOLE))
    assert result["missing"] == 0
    assert result["operations"]["read"]["planned"]["requests"] == 2
    assert result["operations"]["read"]["issued"]["requests"] == 1


def test_a_request_split_by_the_kernel_matches_its_parts(tmp_path: Path) -> None:
    long = request("discard", 0, 500, due=0, offset=0, length=12288)
    read = request("read", 0, 300, due=0, offset=0, length=8192)
    parts: list[Seen] = [
        (1, 400, "discard", 0, 4096), (2, 100, "read", 0, 4096), (3, 280, "read", 4096, 4096),
        (4, 400, "discard", 4096, 4096), (5, 300, "discard", 8192, 4096),
    ]  # fmt: skip
    result = view(tmp_path, [long, read], parts)
    assert (result["missing"], result["extra"], result["split"]) == (0, 0, 2)
    assert result["queue_to_completion_us"]["mean"] == pytest.approx(278.0)


def test_unseen_flushes_of_a_drive_without_cache_are_not_missing(tmp_path: Path) -> None:
    rows = [*WHOLE, request("flush", 1050, 1051, due=1050)]
    result = view(tmp_path, rows, as_issued(WHOLE))
    assert (result["missing"], result["flushes_unseen"]) == (0, 1)
    rows.append(request("flush", 1060, 1061, due=1060))
    result = view(tmp_path, rows, [*as_issued(WHOLE), (1051.0, 1052.0, "flush", 0, 0)])
    assert (result["missing"], result["flushes_unseen"]) == (1, 0)


def test_flushes_after_fua_writes_are_not_extra(tmp_path: Path) -> None:
    rows = [{**WHOLE[0], "fua": True}, *WHOLE[1:]]
    flushes: list[Seen] = [(1101.0, 1102.0, "flush", 0, 0), (1103.0, 1104.0, "flush", 0, 0)]
    result = view(tmp_path, rows, [*as_issued(WHOLE), *flushes])
    assert (result["extra"], result["flushes_of_fua"]) == (1, 1)


def test_a_flush_does_not_match_an_earlier_flush_of_the_kernel(tmp_path: Path) -> None:
    rows = [{**WHOLE[0], "fua": True}, request("flush", 400, 450, due=400), *WHOLE[1:]]
    flushes: list[Seen] = [(99.0, 100.0, "flush", 0, 0), (403.0, 449.0, "flush", 0, 0)]
    seen = as_issued(WHOLE)
    result = view(tmp_path, rows, [seen[0], *flushes, *seen[1:]])
    assert (result["missing"], result["extra"], result["flushes_of_fua"]) == (0, 0, 1)
    assert result["issue_error_us"]["min"] == 3.0


@given(st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)))
def test_only_the_surplus_is_left_out(issued: list[int], seen: list[int]) -> None:
    result = surplus(np.sort(np.array(issued, np.float64)), np.sort(np.array(seen, np.float64)))
    assert result.sum() == max(len(seen) - len(issued), 0)


def test_order_inversions_in_the_kernel_are_counted(tmp_path: Path) -> None:
    seen = as_issued(WHOLE)
    swapped = sorted([(504.0, 601.0, *seen[0][2:]), (503.0, 600.0, *seen[1][2:]), seen[2]])
    assert view(tmp_path, WHOLE, swapped)["order_inversions"] == 1


@pytest.mark.parametrize("provenance", [{FIRST_EVENT_MONOTONIC: None}, {"derived": [{"step": "cut"}]}])
def test_without_the_engines_clock_there_is_no_issue_error(tmp_path: Path, provenance: dict[str, Any]) -> None:
    result = view(tmp_path, WHOLE, as_issued(WHOLE), **provenance)
    assert result["issue_error_us"] is None
    assert "clock" in result["times_reason"]
    assert (result["missing"], result["order_inversions"]) == (0, 0)
    assert result["duration_ratio"] == pytest.approx(1.0)


def test_a_capture_of_another_device_is_reported(tmp_path: Path) -> None:
    result = view(tmp_path, WHOLE, [(100.0, 200.0, "read", 1 << 30, 512)], lost={"overrun": 4})
    assert (result["missing"], result["extra"], result["lost"]) == (3, 1, 4)
    assert "another device" in result["times_reason"]
    assert result["order_inversions"] is result["duration_ratio"] is result["issue_error_us"] is None


def test_a_decoded_capture_records_its_start_on_the_engines_clock(tmp_path: Path) -> None:
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
def test_the_kth_request_of_a_kind_matches_the_kth_captured(planned: list[Any], seen: list[Any]) -> None:
    result = match(extents(planned), extents(seen))
    for row, kind in enumerate(planned):
        same = [at for at, other in enumerate(seen) if other == kind]
        place = planned[:row].count(kind)
        assert result.first[row] == (same[place] if place < len(same) else -1)
    for row, kind in enumerate(seen):
        same = [at for at, other in enumerate(planned) if other == kind]
        place = seen[:row].count(kind)
        assert result.of_captured[row] == (same[place] if place < len(same) else -1)


def test_parts_that_do_not_cover_a_request_match_the_next() -> None:
    def reads(*pairs: tuple[int, int]) -> Extents:
        return extents_of([(0, *pair) for pair in pairs])

    def extents_of(rows: list[tuple[int, ...]]) -> Extents:
        columns = np.array(rows, np.int64).T
        return Extents(columns[0], columns[1], columns[2])

    result = match(reads((0, 30), (0, 20)), reads((0, 10), (10, 10)))
    assert result.first.tolist() == [-1, 0]
    assert result.of_captured.tolist() == [1, 1]
    assert result.split == 1
    result = match(reads((0, 15)), reads((0, 10), (10, 10)))  # reaches beyond
    assert result.of_captured.tolist() == [-1, -1]


def test_requests_marked_strange_match_nothing() -> None:
    kinds = [(0, 0, 1), (0, 0, 1), (1, 0, 1)]
    result = match(extents(kinds[1:]), extents(kinds), np.array([True, False, False]))
    assert (result.first.tolist(), result.of_captured.tolist()) == ([1, 2], [-1, 0, 1])
    result = match(extents(kinds), extents(kinds), np.ones(3, np.bool_))
    assert (result.first.tolist(), result.of_captured.tolist()) == ([-1] * 3, [-1] * 3)


def test_write_zeroes_captured_as_writes_match(tmp_path: Path) -> None:
    rows = [request("write-zeroes", 1, 90, due=0, offset=4096), *[{**row} for row in WHOLE[1:]]]
    seen = [(*row[:2], "write" if row[2] == "write-zeroes" else row[2], *row[3:]) for row in as_issued(rows)]
    result = view(tmp_path, rows, seen)
    assert (result["missing"], result["extra"], result["write_zeroes_seen_as_writes"]) == (0, 0, 1)
    assert result["operations"]["write"]["seen"] == {"requests": 1, "bytes": 4096}
    assert result["operations"]["write-zeroes"]["seen"] == {"requests": 1, "bytes": 4096}
    assert result["issue_error_us"]["min"] == 3.0
    result = view(tmp_path, rows, as_issued(rows))
    assert (result["missing"], result["write_zeroes_seen_as_writes"]) == (0, 0)
