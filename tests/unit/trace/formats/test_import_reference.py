"""Imports against a simple reference with exact numbers of any size."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_traces import read_trace

from drivelab.trace.formats.common import source
from drivelab.trace.formats.common.importing import import_trace

Row = tuple[int, int | None, str, int, int]
"""Queue and completion time in ns, operation, offset, length."""


@dataclass(frozen=True)
class Drawn:
    time_us: int
    write: bool
    sector: int
    sectors: int
    response_us: int


DRAWN = st.builds(
    Drawn,
    time_us=st.integers(0, 10**7),
    write=st.booleans(),
    sector=st.integers(0, 2**40),
    sectors=st.integers(1, 2**20),
    response_us=st.integers(0, 10**9),
)
NAMES = ("r", "w")

LINES: dict[str, Callable[[Drawn], str]] = {
    "msr": lambda d: (
        f"{128166372003061629 + d.time_us * 10},h,1,{'Write' if d.write else 'Read'},{d.sector * 512},"
        f"{d.sectors * 512},{d.response_us * 10}"
    ),
    "spc": lambda d: f"3,{d.sector},{d.sectors * 512},{NAMES[d.write]},{Decimal(d.time_us) / 10**6}",
    "fiu": lambda d: f"{d.time_us * 1000} 5 x {d.sector} {d.sectors} {NAMES[d.write].upper()} 8 1 {d.sector:032x}",
    "alibaba": lambda d: f"3,{NAMES[d.write].upper()},{d.sector * 512},{d.sectors * 512},{10**15 + d.time_us}",
    "tencent": lambda d: f"{1538323199 + d.time_us},{d.sector},{d.sectors},{int(d.write)},3",
    "systor17": lambda d: (
        f"{Decimal(1456095145) + Decimal(d.time_us) / 10**6},{Decimal(d.response_us) / 10**6:f},"
        f"{NAMES[d.write].upper()},3,{d.sector * 512},{d.sectors * 512}"
    ),
}
TICK_US = {"tencent": 10**6}


def expected(name: str, drawn: list[Drawn]) -> list[Row]:
    """Return the expected rows, sorted by time, ties in file order."""
    origin = min(request.time_us for request in drawn)
    rows: list[Row] = []
    for request in sorted(drawn, key=lambda request: request.time_us):
        queue_ns = (request.time_us - origin) * 1000 * TICK_US.get(name, 1)
        complete_ns = queue_ns + request.response_us * 1000 if name in ("msr", "systor17") else None
        rows.append(
            (queue_ns, complete_ns, "write" if request.write else "read", request.sector * 512, request.sectors * 512)
        )
    return rows


@pytest.mark.parametrize("name", LINES)
@settings(max_examples=40, deadline=None)
@given(drawn=st.lists(DRAWN, min_size=1, max_size=60))
def test_imports_agree_with_a_simple_reference(name: str, drawn: list[Drawn]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "HEAD_BYTES", 300)
        patch.setattr(source, "BLOCK_BYTES", 300)
        path, output = Path(folder) / "file", Path(folder) / "t.parquet"
        path.write_text("".join(f"{LINES[name](request)}\n" for request in drawn))
        report = import_trace(path, output)
        columns = ("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")
        imported = [tuple(row[column] for column in columns) for row in read_trace(output)[0].to_pylist()]
    rows = expected(name, drawn)
    assert imported == rows
    assert report.format == name
    latest, late = -1, 0
    for request in drawn:
        late += request.time_us < latest
        latest = max(latest, request.time_us)
    assert report.out_of_order == late
    assert report.duration_s == max(row[1] or row[0] for row in rows) / 1e9
    assert report.operations == {
        kind: count for kind in ("read", "write") if (count := sum(row[2] == kind for row in rows))
    }
