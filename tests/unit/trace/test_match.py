"""Matching of events to requests, with event sequences observed from the kernel.

test_decode_properties.py has sequences of any kind, and a simulated block layer that knows the truth.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from decoded import decoded_events, decoded_folder
from trace_files import HEADER, Event, record_bytes

from drivelab.trace import records

Times = list[tuple[int, int | None, int | None]]

SEQUENCES: dict[str, tuple[list[Event], Times, dict[str, int]]] = {
    "merges at both ends share dispatch and completion": (
        [(1, "Q", "W", 80, 4096), (2, "G", "W", 80, 4096), (3, "Q", "W", 88, 4096), (4, "M", "W", 88, 4096),
         (5, "Q", "W", 72, 4096), (6, "F", "W", 72, 4096), (7, "D", "W", 72, 12288), (9, "C", "W", 72, 12288)],
        [(1, 7, 9), (3, 7, 9), (5, 7, 9)], {},
    ),
    "a split request lasts from its first dispatch to its last completion": (
        [(1, "Q", "W", 0, 20480), (2, "X", "W", 0, 8192), (3, "G", "W", 0, 8192), (4, "D", "W", 0, 8192),
         (5, "D", "W", 16, 8192), (6, "D", "W", 32, 4096), (7, "C", "W", 16, 8192), (8, "C", "W", 0, 8192),
         (9, "C", "W", 32, 4096)],
        [(1, 4, 9)], {},
    ),
    "a split request is not complete while a piece waits": (
        [(1, "Q", "R", 0, 8192), (2, "D", "R", 0, 4096), (3, "C", "R", 0, 4096)], [(1, 2, None)], {"uncompleted": 1},
    ),
    "preflush and FUA end with the second completion": (  # btt uses the data's, and matches the empty one elsewhere
        [(10, "Q", "FWFSM", 136, 4096), (11, "G", "FWFSM", 136, 4096), (12, "D", "FN", 0, 0), (13, "C", "FN", 0, 0),
         (14, "D", "WSM", 136, 4096), (15, "C", "WSM", 136, 4096), (16, "D", "FN", 0, 0), (17, "C", "FN", 0, 0),
         (18, "C", "WSM", 136, 0)],
        [(10, 14, 18)], {"device_flushes": 2},
    ),
    "native FUA ends with its only completion": (
        [(1, "Q", "WFS", 8, 4096), (2, "D", "WFS", 8, 4096), (3, "C", "WFS", 8, 4096), (4, "Q", "WFS", 8, 4096),
         (5, "D", "WFS", 8, 4096), (6, "C", "WFS", 8, 4096)],
        [(1, 2, 3), (4, 5, 6)], {},
    ),
    "empty flushes share the drive's flush": (
        [(1, "Q", "FWS", 0, 0), (2, "Q", "FWS", 0, 0), (3, "D", "FN", 0, 0), (4, "C", "FN", 0, 0),
         (5, "C", "WS", 0, 0), (6, "C", "WS", 0, 0)],
        [(1, 3, 5), (2, 3, 6)], {"device_flushes": 1},
    ),
    "an empty flush does not end a write at sector 0": (
        [(1, "Q", "WFSM", 0, 4096), (2, "D", "WSM", 0, 4096), (3, "Q", "FWS", 0, 0), (4, "C", "WSM", 0, 4096),
         (5, "D", "FN", 0, 0), (6, "C", "FN", 0, 0), (7, "C", "WS", 0, 0), (8, "C", "WSM", 0, 0)],
        [(1, 2, 8), (3, 5, 7)], {"device_flushes": 1},
    ),
    "directions at the same sector are separate": (
        [(1, "Q", "D", 8, 4096), (2, "Q", "W", 8, 4096), (3, "Q", "R", 8, 4096), (4, "D", "R", 8, 4096),
         (5, "D", "D", 8, 4096), (6, "D", "W", 8, 4096), (7, "C", "W", 8, 4096), (8, "C", "R", 8, 4096),
         (9, "C", "D", 8, 4096)],
        [(1, 5, 9), (2, 6, 7), (3, 4, 8)], {},
    ),
    "a requeued request counts from its last dispatch": (
        [(1, "Q", "R", 8, 4096), (2, "D", "R", 8, 4096), (3, "R", "R", 8, 4096), (4, "D", "R", 8, 4096),
         (5, "C", "R", 8, 4096)],
        [(1, 4, 5)], {},
    ),
    "a request completed in parts ends with the last": (
        [(1, "Q", "R", 8, 8192), (2, "D", "R", 8, 8192), (3, "C", "R", 8, 4096), (4, "C", "R", 16, 4096)],
        [(1, 2, 4)], {},
    ),
    "the rest of a partly completed request is requeued, with its first dispatch": (
        [(1, "Q", "R", 8, 4096), (2, "Q", "R", 16, 4096), (3, "M", "R", 16, 4096), (4, "D", "R", 8, 8192),
         (5, "C", "R", 8, 6144), (6, "R", "R", 20, 2048), (7, "D", "R", 20, 2048), (8, "C", "R", 20, 2048)],
        [(1, 4, 5), (2, 4, 8)], {},
    ),
    "overlapping writes match the dispatch of their length": (
        [(1, "Q", "W", 8, 4096), (2, "Q", "W", 8, 8192), (3, "D", "W", 8, 8192), (4, "D", "W", 8, 4096),
         (5, "C", "W", 8, 4096), (6, "C", "W", 8, 8192)],
        [(1, 4, 5), (2, 3, 6)], {},
    ),
    "unmerged neighbours do not match a dispatch": (
        [(1, "Q", "W", 8, 4096), (2, "Q", "W", 16, 4096), (3, "Q", "W", 8, 8192), (4, "D", "W", 8, 8192),
         (5, "D", "W", 8, 4096), (6, "D", "W", 16, 4096), (7, "C", "W", 8, 8192)],
        [(1, 5, None), (2, 6, None), (3, 4, 7)], {"uncompleted": 2},
    ),
    "discards merge anywhere": (  # the kernel sends a plug's discards to NVMe as one request, without an event
        [(1, "Q", "D", 800, 4096), (2, "Q", "D", 80, 8192), (3, "Q", "R", 80, 4096), (4, "Q", "D", 8, 4096),
         (5, "D", "D", 800, 16384), (6, "R", "D", 800, 16384), (7, "D", "D", 800, 16384), (8, "C", "D", 800, 16384)],
        [(1, 7, 8), (2, 7, 8), (3, None, None), (4, 7, 8)], {"undispatched": 1},
    ),
    "devices without a queue dispatch nothing": (
        [(1, "Q", "R", 8, 4096), (2, "C", "R", 8, 4096)], [(1, None, 2)], {},
    ),
    "unmatched events are counted": (
        [(1, "C", "R", 400, 4096), (2, "D", "W", 500, 4096), (3, "C", "W", 500, 4096), (4, "R", "W", 600, 4096),
         (5, "C", "WS", 0, 0), (6, "C", "FN", 0, 0), (7, "Q", "R", 8, 4096), (8, "D", "R", 8, 4096),
         (9, "Q", "R", 80, 4096)],
        [(7, 8, None), (9, None, None)],
        {"completions": 3, "dispatches": 1, "requeues": 1, "uncompleted": 1, "undispatched": 1},
    ),
}  # fmt: skip
"""Events; queue, dispatch and completion time of each request; unmatched events and flushes of the drive."""


@pytest.mark.parametrize("name", SEQUENCES)
def test_events_become_requests(name: str) -> None:
    events, times, counts = SEQUENCES[name]
    decoded = decoded_events(*events)
    assert decoded.times == times
    flushes = decoded.summary["device_flushes"]
    assert {**decoded.unmatched, **({"device_flushes": flushes} if flushes else {})} == counts


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
    first = decoded.requests[["queue_ns", "dispatch_ns", "complete_ns"]].iloc[0]
    assert first.tolist() == [0, 1, many * 3 + 2]
    assert not decoded.unmatched
