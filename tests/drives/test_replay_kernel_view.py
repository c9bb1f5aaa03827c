"""The kernel tracer's view of requests with known times: one clock, split requests, flushes for FUA."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from replay_outcomes import request, write_planned, write_results

from drivelab.replay.evaluation.kernel_view import compare
from drivelab.replay.outcome import write_outcome
from drivelab.replay.volumes import ONLY
from drivelab.trace.capturing import capture as capturing
from drivelab.trace.decode import decode

pytestmark = [pytest.mark.device, pytest.mark.single]
pytest_plugins = ("capture_fixtures",)

MIB = 1 << 20
ISSUE = """
import json, mmap, os, sys, time
device = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
data = memoryview(mmap.mmap(-1, 4 << 20))
now_ns = time.monotonic_ns
times = [now_ns()]
for operation, offset, length, fua in json.loads(sys.argv[2]):
    begin_ns = now_ns()
    if operation == "read":
        os.preadv(device, [data[:length]], offset)
    elif operation == "flush":
        os.fsync(device)
    else:
        os.pwritev(device, [data[:length]], offset, os.RWF_DSYNC if fua else 0)
    times.append((begin_ns, now_ns()))
print(json.dumps(times))
"""
REQUESTS = [
    ("write", 8192, 4096, False), ("write", MIB, 4 * MIB, False), ("write", 16384, 4096, True), ("flush", 0, 0, False),
    *(("read", MIB + 65536 * n, 65536, False) for n in range(8)), ("read", MIB, 65536, False),
]  # fmt: skip


@pytest.mark.usefixtures("tracer_untouched")
def test_a_capture_has_the_times_of_the_requests(tmp_path: Path, device: str) -> None:
    raw, outcome = tmp_path / "raw", tmp_path / "outcome.parquet"
    report = capturing.capture(device, [sys.executable, "-c", ISSUE, device, json.dumps(REQUESTS)], raw)
    assert (report.exit_status, report.lost) == (0, {}), (raw / "stderr").read_text()
    decode(raw, tmp_path / "captured.parquet")
    start_ns, *times = json.loads((raw / "stdout").read_text())
    pairs = zip(REQUESTS, times, strict=True)
    rows = [_row(*fields, *(time_ns - start_ns for time_ns in span)) for fields, span in pairs]
    planned = write_planned(tmp_path / "planned.parquet", rows)
    write_outcome(planned, write_results(tmp_path / "results.bin", rows), outcome, {})

    view, _ = compare({ONLY: tmp_path / "captured.parquet"}, outcome, start_ns)
    assert (view["missing"], view["extra"], view["lost"]) == (0, 0, 0)
    assert view["split"] <= 1  # depends on the memory layout of the long write's pages
    assert view["flushes_of_fua"] == 1
    assert view["order_inversions"] == 0
    assert view["times_reason"] is None
    longest_us = max(end - begin for begin, end in times) / 1000
    assert 0 <= view["issue_error_us"]["min"] <= view["issue_error_us"]["max"] <= longest_us
    assert view["queue_to_completion_us"]["max"] <= longest_us
    assert view["operations"]["read"]["seen"] == {"requests": 9, "bytes": 9 * 65536}


def _row(operation: str, offset: int, length: int, fua: bool, begin_ns: int, end_ns: int) -> dict[str, Any]:
    """Make a request that was due when it was issued."""
    row = request(operation, begin_ns / 1000, end_ns / 1000, due=begin_ns / 1000, offset=offset, length=length, fua=fua)
    return row | {"deadline_ns": begin_ns, "issue_ns": begin_ns, "complete_ns": end_ns}
