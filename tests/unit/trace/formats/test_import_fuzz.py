"""Imports of arbitrary and damaged bytes: a UserError or a valid trace."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.trace.formats import all_formats
from drivelab.trace.formats.common import lines, source
from drivelab.trace.formats.common.importing import import_trace

SEEDS = {
    "msr": b"128166372003061629,usr,0,Read,7014609920,24576,41286\n",
    "spc": b"0,303567,3584,w,0.000000\n",
    "fiu": b"89968195792462 20782 gzip 283193184 8 R 6 0 abc\n",
    "alibaba": b"419,W,8792731648,16384,1577808144360767\n",
    "tencent": b"1538323199,1003027216,16,0,2313\n",
    "systor17": b"1456095145.133076000,0.000806000,R,0,899056122368,131072\n",
    "vscsi": struct.pack("<HHIIIQQQ", 0x28, 0x0200, 1, 4096, 1, 8, 5, 6),
    "fio-iolog-v2": b"/dev/sda wait 100 0\n/dev/sda read 0 4096\n",
    "fio-iolog-v3": b"120 /dev/sda read 0 4096\n",
    "biosnoop": b"0.000004    supervise    1950   xvda1   W  13092560   4096   0.74\n",
    "blkparse-text": (
        b"  8,0    3        2     0.000000100   697  Q  WS 223490 + 8 [k]\n"
        b"  8,0    3        2     0.000000200   697  D  WS 223490 + 8 [k]\n"
        b"  8,0    3        2     0.000000300   697  C  WS 223490 + 8 [0]\n"
    ),
}
PARTS = [*b"\n,. -0x\0\xff\r+[]", 0x39]


@st.composite
def damaged(draw: st.DrawFn, seed: bytes) -> bytes:
    """Draw valid lines with bytes replaced, removed, inserted and doubled."""
    data = bytearray(seed * draw(st.integers(1, 6)))
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["replace", "insert", "remove", "double"]))
        if kind == "insert":
            data[place:place] = bytes([draw(st.sampled_from(PARTS))]) * draw(st.integers(1, 30))
        elif kind == "replace":
            data[place : place + 1] = bytes([draw(st.sampled_from(PARTS))])
        elif kind == "remove":
            del data[place : place + draw(st.integers(1, 10))]
        else:
            data[place:place] = data[place : place + 20]
    return bytes(data)


def check(data: bytes, name: str | None, limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "HEAD_BYTES", 512)
        patch.setattr(source, "BLOCK_BYTES", 100)
        for module in (source, lines):  # `lines` must not be imported while the limit of `source` is changed
            patch.setattr(module, "LONGEST_LINE", 200)
        path, output = Path(folder) / "file", Path(folder) / "t.parquet"
        path.write_bytes(data)
        try:
            report = import_trace(path, output, format_name=name, max_malformed=limit)
        except UserError:
            assert [left.name for left in Path(folder).iterdir()] == ["file"]
            return
        table, _ = read_trace(output)
    rows = table.to_pylist()
    assert len(rows) == report.rows > 0
    assert [row["queue_ns"] for row in rows] == sorted(row["queue_ns"] for row in rows)
    assert rows[0]["queue_ns"] == 0
    for row in rows:
        assert row["offset_bytes"] >= 0
        assert row["length_bytes"] >= 0
        assert row["complete_ns"] is None or row["complete_ns"] >= row["queue_ns"]


@pytest.mark.parametrize("name", SEEDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), limit=st.sampled_from([0, 1000]))
def test_damaged_lines_of_each_format(name: str, data: st.DataObject, limit: int) -> None:
    check(data.draw(damaged(SEEDS[name])), name, limit)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.binary(max_size=2000), name=st.sampled_from([None, *SEEDS]), limit=st.sampled_from([0, 1000]))
def test_arbitrary_bytes(data: bytes, name: str | None, limit: int) -> None:
    check(data, name, limit)


def test_every_format_is_fuzzed() -> None:
    assert sorted(SEEDS) == list(all_formats())
