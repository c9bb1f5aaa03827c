"""Conversion of hand-encoded ring pages to blktrace records."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import ring_pages
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_pages import HEADER_PAGE, PAGE_BYTES, Event

from drivelab.trace.capturing import ring

DEVICE = 7 << 20 | 3
PAYLOADS = st.tuples(st.integers(0, 2**40), st.binary(max_size=200), st.sampled_from([0x10001, 0x20008, 1 << 26]))
STEPS = st.one_of(st.integers(0, 5000), st.integers((1 << 27) - 2, (1 << 27) + 2), st.integers(0, 10**12))
KINDS = st.sampled_from(["record", "record", "record", "other", "discarded", "absolute"])


def convert(tmp: Path, data: bytes, size: int = PAGE_BYTES) -> tuple[tuple[int, int], bytes]:
    path, out = tmp / "trace.ring.0", io.BytesIO()
    path.write_bytes(data)
    return ring.convert(path, size, DEVICE, out), out.getvalue()


def expected(version: int, payload: bytes, time_ns: int) -> bytes:
    return struct.pack("<IIQ", 0x65617400 | version, 0, time_ns) + payload[16:]


@settings(max_examples=150, deadline=None)
@given(
    version=st.sampled_from([7, 8]),
    start_ns=st.integers(0, 2**58),
    drawn=st.lists(st.tuples(STEPS, KINDS, PAYLOADS), max_size=200),
    pages_at_once=st.integers(1, 3),
)
def test_every_record_keeps_its_time_and_payload(
    tmp_path_factory: pytest.TempPathFactory,
    version: int,
    start_ns: int,
    drawn: list[tuple[int, str, tuple[int, bytes, int]]],
    pages_at_once: int,
) -> None:
    now, events, records, others = start_ns, [], [], 0
    for step, kind, (sector, pdu, action) in drawn:
        now = now if kind == "discarded" else now + step
        device = DEVICE + (kind == "other")
        payload = ring_pages.record(version, device, sector=sector, pdu=pdu, action=action)
        events.append(Event(now, payload, discarded=kind == "discarded", absolute=kind == "absolute"))
        others += kind == "other"
        if kind in ("record", "absolute"):
            records.append(expected(version, payload, now))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring, "CHUNK_PAGES", pages_at_once)
        counts, written = convert(tmp_path_factory.mktemp("ring"), ring_pages.pages(events))
    assert written == b"".join(records)
    assert counts == (len(records) + others, 0)


def test_larger_pages_are_read(tmp_path: Path) -> None:
    payloads = [ring_pages.record(7, DEVICE, sector=index) for index in range(500)]
    data = ring_pages.pages((Event(index, payload) for index, payload in enumerate(payloads)), 8192)
    counts, written = convert(tmp_path, data, 8192)
    assert written == b"".join(expected(7, payload, index) for index, payload in enumerate(payloads))
    assert counts == (500, 0)


def test_pages_that_miss_events_are_counted(tmp_path: Path) -> None:
    page = bytearray(ring_pages.pages([Event(1, ring_pages.record(7, DEVICE, sector=1))]))
    page[8:16] = struct.pack("<Q", struct.unpack_from("<Q", page, 8)[0] | 1 << 31)
    counts, _ = convert(tmp_path, bytes(page))
    assert counts == (1, 1)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=600), length=st.integers(0, 5000))
def test_arbitrary_pages_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, length: int
) -> None:
    page = struct.pack("<QQ", 1, length) + data.ljust(PAGE_BYTES - 16, b"\0")
    try:
        counts, written = convert(tmp_path_factory.mktemp("ring"), page)
    except ring.DamagedError:
        return
    assert bool(written) <= bool(counts[0])


def test_a_truncated_page_is_refused(tmp_path: Path) -> None:
    page = ring_pages.pages([Event(1, ring_pages.record(7, DEVICE, sector=1))])
    with pytest.raises(ring.DamagedError, match="cut off"):
        convert(tmp_path, page[:-1])


def test_the_page_size_comes_from_the_kernel() -> None:
    assert ring.page_bytes(HEADER_PAGE) == PAGE_BYTES
    with pytest.raises(ring.DamagedError, match="header_page"):
        ring.page_bytes(HEADER_PAGE.replace("offset:16", "offset:12"))


def test_empty_pages_have_no_entries() -> None:
    entries = ring.parse(np.zeros((2, PAGE_BYTES // 4), np.uint32))
    assert len(entries.page) == 0
