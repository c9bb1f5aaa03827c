"""Matching of events to requests, with event sequences observed from the kernel."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path

import numpy as np
from decoded import decoded_events, decoded_folder
from hypothesis import given
from hypothesis import strategies as st
from trace_files import HEADER, Event, record_bytes

from drivelab.trace import records
from drivelab.trace.records import SECTOR_BYTES


def test_merges_at_both_ends_share_dispatch_and_completion() -> None:
    decoded = decoded_events(
        (1, "Q", "W", 80, 4096), (2, "G", "W", 80, 4096),
        (3, "Q", "W", 88, 4096), (4, "M", "W", 88, 4096),
        (5, "Q", "W", 72, 4096), (6, "F", "W", 72, 4096),
        (7, "D", "W", 72, 12288), (9, "C", "W", 72, 12288),
    )  # fmt: skip
    assert decoded.times == [(1, 7, 9), (3, 7, 9), (5, 7, 9)]
    assert not decoded.unmatched


def test_a_split_request_lasts_from_its_first_dispatch_to_its_last_completion() -> None:
    decoded = decoded_events(
        (1, "Q", "W", 0, 20480), (2, "X", "W", 0, 8192), (3, "G", "W", 0, 8192),
        (4, "D", "W", 0, 8192), (5, "D", "W", 16, 8192), (6, "D", "W", 32, 4096),
        (7, "C", "W", 16, 8192), (8, "C", "W", 0, 8192), (9, "C", "W", 32, 4096),
    )  # fmt: skip
    assert decoded.times == [(1, 4, 9)]
    assert not decoded.unmatched


def test_a_split_request_is_not_complete_while_a_piece_waits() -> None:
    decoded = decoded_events((1, "Q", "R", 0, 8192), (2, "D", "R", 0, 4096), (3, "C", "R", 0, 4096))
    assert decoded.times == [(1, 2, None)]
    assert decoded.unmatched == {"uncompleted": 1}


def test_preflush_and_fua_end_with_the_second_completion() -> None:
    """btt uses the data's completion instead, and matches the empty one elsewhere."""
    decoded = decoded_events(
        (10, "Q", "FWFSM", 136, 4096), (11, "G", "FWFSM", 136, 4096),
        (12, "D", "FN", 0, 0), (13, "C", "FN", 0, 0),
        (14, "D", "WSM", 136, 4096), (15, "C", "WSM", 136, 4096),
        (16, "D", "FN", 0, 0), (17, "C", "FN", 0, 0),
        (18, "C", "WSM", 136, 0),
    )  # fmt: skip
    assert decoded.times == [(10, 14, 18)]
    assert decoded.summary["device_flushes"] == 2
    assert not decoded.unmatched


def test_native_fua_ends_with_its_only_completion() -> None:
    decoded = decoded_events(
        (1, "Q", "WFS", 8, 4096), (2, "D", "WFS", 8, 4096), (3, "C", "WFS", 8, 4096),
        (4, "Q", "WFS", 8, 4096), (5, "D", "WFS", 8, 4096), (6, "C", "WFS", 8, 4096),
    )  # fmt: skip
    assert decoded.times == [(1, 2, 3), (4, 5, 6)]
    assert not decoded.unmatched


def test_empty_flushes_share_the_drives_flush() -> None:
    decoded = decoded_events(
        (1, "Q", "FWS", 0, 0), (2, "Q", "FWS", 0, 0), (3, "D", "FN", 0, 0), (4, "C", "FN", 0, 0),
        (5, "C", "WS", 0, 0), (6, "C", "WS", 0, 0),
    )  # fmt: skip
    assert decoded.times == [(1, 3, 5), (2, 3, 6)]
    assert decoded.summary["device_flushes"] == 1
    assert not decoded.unmatched


def test_an_empty_flush_does_not_end_a_write_at_sector_0() -> None:
    decoded = decoded_events(
        (1, "Q", "WFSM", 0, 4096), (2, "D", "WSM", 0, 4096), (3, "Q", "FWS", 0, 0), (4, "C", "WSM", 0, 4096),
        (5, "D", "FN", 0, 0), (6, "C", "FN", 0, 0), (7, "C", "WS", 0, 0), (8, "C", "WSM", 0, 0),
    )  # fmt: skip
    assert decoded.times == [(1, 2, 8), (3, 5, 7)]
    assert not decoded.unmatched


def test_directions_at_the_same_sector_are_separate() -> None:
    decoded = decoded_events(
        (1, "Q", "D", 8, 4096), (2, "Q", "W", 8, 4096), (3, "Q", "R", 8, 4096),
        (4, "D", "R", 8, 4096), (5, "D", "D", 8, 4096), (6, "D", "W", 8, 4096),
        (7, "C", "W", 8, 4096), (8, "C", "R", 8, 4096), (9, "C", "D", 8, 4096),
    )  # fmt: skip
    assert decoded.times == [(1, 5, 9), (2, 6, 7), (3, 4, 8)]
    assert not decoded.unmatched


def test_a_requeued_request_counts_from_its_last_dispatch() -> None:
    decoded = decoded_events(
        (1, "Q", "R", 8, 4096), (2, "D", "R", 8, 4096), (3, "R", "R", 8, 4096),
        (4, "D", "R", 8, 4096), (5, "C", "R", 8, 4096),
    )  # fmt: skip
    assert decoded.times == [(1, 4, 5)]
    assert not decoded.unmatched


def test_a_request_completed_in_parts_ends_with_the_last() -> None:
    decoded = decoded_events(
        (1, "Q", "R", 8, 8192), (2, "D", "R", 8, 8192), (3, "C", "R", 8, 4096), (4, "C", "R", 16, 4096)
    )
    assert decoded.times == [(1, 2, 4)]
    assert not decoded.unmatched


def test_the_rest_of_a_partly_completed_request_is_requeued() -> None:
    decoded = decoded_events(
        (1, "Q", "R", 8, 4096), (2, "Q", "R", 16, 4096), (3, "M", "R", 16, 4096), (4, "D", "R", 8, 8192),
        (5, "C", "R", 8, 6144), (6, "R", "R", 20, 2048), (7, "D", "R", 20, 2048), (8, "C", "R", 20, 2048),
    )  # fmt: skip
    assert decoded.times == [(1, 4, 5), (2, 4, 8)], "a partly completed piece keeps its first dispatch"
    assert not decoded.unmatched


def test_overlapping_writes_match_the_dispatch_of_their_length() -> None:
    decoded = decoded_events(
        (1, "Q", "W", 8, 4096), (2, "Q", "W", 8, 8192), (3, "D", "W", 8, 8192), (4, "D", "W", 8, 4096),
        (5, "C", "W", 8, 4096), (6, "C", "W", 8, 8192),
    )  # fmt: skip
    assert decoded.times == [(1, 4, 5), (2, 3, 6)]
    assert not decoded.unmatched


def test_unmerged_neighbours_do_not_match_a_dispatch() -> None:
    decoded = decoded_events(
        (1, "Q", "W", 8, 4096), (2, "Q", "W", 16, 4096), (3, "Q", "W", 8, 8192), (4, "D", "W", 8, 8192),
        (5, "D", "W", 8, 4096), (6, "D", "W", 16, 4096), (7, "C", "W", 8, 8192),
    )  # fmt: skip
    assert decoded.times == [(1, 5, None), (2, 6, None), (3, 4, 7)]


def test_a_late_completion_matches_after_many_requests() -> None:
    """Queue more requests than the decoder keeps before the first completes."""
    many = 600_000
    events: list[Event] = [(1, "Q", "R", 8, 4096), (2, "D", "R", 8, 4096)]
    data = b"".join(map(record_bytes, events))
    rest = np.zeros(many * 3, HEADER)
    rest["magic"], rest["bytes"], rest["device"] = records.MAGIC | 7, 4096, 1 << 20
    rest["time_ns"] = np.arange(3, many * 3 + 3)
    rest["sector"] = np.repeat(np.arange(many) * 8 + 800, 3)
    rest["action"] = np.tile([records.READ | kind for kind in (1, 7, 8)], many)
    data += rest.tobytes() + record_bytes((many * 3 + 3, "C", "R", 8, 4096))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "trace.blktrace.0").write_bytes(data)
        decoded = decoded_folder(Path(folder))
    assert decoded.times[0] == (0, 1, many * 3 + 2)
    assert not decoded.unmatched


def test_discards_merge_anywhere() -> None:
    """The kernel sends a plug's discards to NVMe as one request, without an event."""
    decoded = decoded_events(
        (1, "Q", "D", 800, 4096), (2, "Q", "D", 80, 8192), (3, "Q", "R", 80, 4096), (4, "Q", "D", 8, 4096),
        (5, "D", "D", 800, 16384), (6, "R", "D", 800, 16384), (7, "D", "D", 800, 16384), (8, "C", "D", 800, 16384),
    )  # fmt: skip
    assert decoded.times == [(1, 7, 8), (2, 7, 8), (3, None, None), (4, 7, 8)]
    assert decoded.unmatched == {"undispatched": 1}


def test_devices_without_a_queue_dispatch_nothing() -> None:
    decoded = decoded_events((1, "Q", "R", 8, 4096), (2, "C", "R", 8, 4096))
    assert decoded.times == [(1, None, 2)]
    assert not decoded.unmatched


def test_unmatched_events_are_counted() -> None:
    decoded = decoded_events(
        (1, "C", "R", 400, 4096), (2, "D", "W", 500, 4096), (3, "C", "W", 500, 4096), (4, "R", "W", 600, 4096),
        (5, "C", "WS", 0, 0), (6, "C", "FN", 0, 0), (7, "Q", "R", 8, 4096), (8, "D", "R", 8, 4096),
        (9, "Q", "R", 80, 4096),
    )  # fmt: skip
    assert decoded.unmatched == {"completions": 3, "dispatches": 1, "requeues": 1, "uncompleted": 1, "undispatched": 1}
    assert decoded.times == [(7, 8, None), (9, None, None)]


@given(seed=st.integers(0, 2**32), requests=st.integers(1, 60))
def test_merges_splits_and_reordering_are_followed(seed: int, requests: int) -> None:
    """Use random extents that do not overlap in flight, as from a file system."""
    dice = random.Random(seed)
    clock = iter(range(1, 1_000_000))
    events: list[Event] = []
    truth: dict[int, list[int]] = {}
    base = 0
    flying: list[tuple[int, str, int, list[int]]] = []
    while requests > 0:
        batch = min(dice.randint(1, 5), requests)
        requests -= batch
        flags = dice.choice(["R", "W", "WS", "D"])
        members: list[int] = []
        sector = base
        for _ in range(batch):
            length = 4096 * dice.randint(1, 8)
            queue_ns = next(clock)
            events.append((queue_ns, "Q", flags, sector, length))
            truth[queue_ns] = [0, 0, sector, length]
            members.append(queue_ns)
            sector += length // SECTOR_BYTES
        cuts = sorted({base, sector, *(dice.randrange(base, sector, 8) for _ in range(dice.randint(0, 2)))})
        for start, end in itertools.pairwise(cuts):
            covered = [m for m in members if truth[m][2] < end and truth[m][2] + truth[m][3] // SECTOR_BYTES > start]
            time_ns = next(clock)
            events.append((time_ns, "D", flags, start, (end - start) * SECTOR_BYTES))
            for member in covered:
                truth[member][0] = truth[member][0] or time_ns
            flying.append((start, flags, (end - start) * SECTOR_BYTES, covered))
        base = sector + 8 * dice.randint(0, 3)
        dice.shuffle(flying)
        while flying and (dice.random() < 0.6 or requests == 0):
            start, direction, length, covered = flying.pop()
            time_ns = next(clock)
            events.append((time_ns, "C", direction, start, length))
            for member in covered:
                truth[member][1] = time_ns
    decoded = decoded_events(*events)
    assert decoded.times == [(queue_ns, row[0], row[1]) for queue_ns, row in truth.items()]
    assert not decoded.unmatched
