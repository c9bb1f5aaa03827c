"""Exports: imported again, and replayed by fio."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_traces import read_trace, write_trace

from drivelab.core.errors import UserError
from drivelab.trace.formats.common.exporting import export_trace
from drivelab.trace.formats.common.importing import import_trace
from drivelab.trace.formats.common.trace_format import ExportReport
from drivelab.trace.parquet_schema import FLAGS, OPERATIONS, REQUESTS

PLAIN = {
    "queue_ns": 0, "dispatch_ns": None, "complete_ns": None, "operation": "read",
    **dict.fromkeys(FLAGS, False), "offset_bytes": 0, "length_bytes": 4096, "process": "", "pid": 0, "cpu": 0,
    "error": 0, "dispatch_id": None, "pieces": 1, "requeues": 0,
}  # fmt: skip


def request(**known: Any) -> dict[str, Any]:
    return PLAIN | known


def written(path: Path, *requests: dict[str, Any]) -> Path:
    columns = {name: pa.array([request[name] for request in requests]) for name in REQUESTS.names}
    for name in ("operation", "process"):
        columns[name] = columns[name].dictionary_encode()
    table = pa.table({name: array.cast(REQUESTS.field(name).type) for name, array in columns.items()}, schema=REQUESTS)
    write_trace(table, {"name": "made up"}, path)
    return path


def exported(folder: Path, *requests: dict[str, Any]) -> tuple[str, ExportReport]:
    trace = written(folder / "in.parquet", *requests)
    report = export_trace(trace, folder / "out", format_name="fio-iolog-v3")
    return (folder / "out").read_text(), report


def traces(dice: random.Random) -> list[dict[str, Any]]:
    """Make requests with distinct sectors in flight, and sequential flushes."""
    requests: list[dict[str, Any]] = []
    now = 0
    for place in range(dice.randint(1, 30)):
        now += dice.choice((0, 1, dice.randint(0, 5000))) if requests else 0
        operation = dice.choice(OPERATIONS)
        flush = operation == "flush"
        known = dice.choice(["queue", "dispatch", "complete"])
        dispatch = now + dice.choice((0, dice.randint(0, 3000))) if known != "queue" and not flush else None
        complete = (
            (dispatch or now) + dice.choice((0, dice.randint(0, 9000))) if known == "complete" and not flush else None
        )
        flags = {} if flush else {flag: dice.random() < 0.5 for flag in FLAGS}
        requests.append(
            request(
                queue_ns=now,
                dispatch_ns=dispatch,
                complete_ns=complete,
                operation=operation,
                offset_bytes=0 if flush else (10_000 * place + dice.randint(0, 5000)) * 512,
                length_bytes=0 if flush else 512 * dice.randint(1, 4000),
                process=dice.choice(["", "fio", "a b", "kworker/0:1"]),
                pid=dice.randint(0, 99_999),
                cpu=dice.randint(0, 99),
                error=dice.choice([0, 5]) if complete is not None else 0,
                **flags,
            )
        )
    return requests


@settings(max_examples=60, deadline=None)
@given(dice=st.randoms(use_true_random=True))
def test_a_round_trip_counts_what_an_iolog_cannot_hold(dice: random.Random) -> None:
    requests = traces(dice)
    expected: list[tuple[int, str, int, int]] = []
    for row in requests:
        time_ns = row["queue_ns"] // 1000 * 1000
        if row["preflush"]:
            expected.append((time_ns, "flush", 0, 0))
        operation = "write" if row["operation"] == "write-zeroes" else row["operation"]
        expected.append((time_ns, operation, row["offset_bytes"], row["length_bytes"]))
    with tempfile.TemporaryDirectory() as folder:
        _, report = exported(Path(folder), *requests)
        import_trace(Path(folder) / "out", Path(folder) / "back.parquet")
        back = read_trace(Path(folder) / "back.parquet")[0].to_pylist()
    assert [(row["queue_ns"], row["operation"], row["offset_bytes"], row["length_bytes"]) for row in back] == expected
    altered = {f"{flag} flags left out": sum(row[flag] for row in requests) for flag in FLAGS if flag != "preflush"}
    altered["preflush flags made sync lines"] = sum(row["preflush"] for row in requests)
    altered["write-zeroes made writes"] = sum(row["operation"] == "write-zeroes" for row in requests)
    assert report.altered == {kind: count for kind, count in altered.items() if count}
    assert report.dropped == {}


def test_the_lines_of_an_iolog(tmp_path: Path) -> None:
    text, _ = exported(
        tmp_path,
        request(queue_ns=0, offset_bytes=512),
        request(queue_ns=1_999, operation="write", preflush=True),
        request(queue_ns=5_000_000_000, operation="discard", offset_bytes=1 << 40, length_bytes=(1 << 32) - 512),
    )
    assert text.splitlines() == [
        "fio version 3 iolog", "1 trace add", "1 trace open", "1 trace read 512 4096", "2 trace sync 0 0",
        "2 trace write 0 4096", "5000001 trace trim 1099511627776 4294966784", "5000001 trace close",
    ]  # fmt: skip


def test_losses_of_an_export_are_counted(tmp_path: Path) -> None:
    requests = [
        request(length_bytes=0, sync=True),
        request(operation="discard", length_bytes=1 << 32),
        request(offset_bytes=100),
        request(length_bytes=1000),
    ]
    text, report = exported(tmp_path, *requests)
    assert report.dropped == {"requests of no bytes": 1, "requests from 4 GiB": 1}
    assert report.altered == {}
    assert text.count(" read ") == 2


def test_the_suffix_selects_the_compression(tmp_path: Path) -> None:
    trace = written(tmp_path / "in.parquet", request())
    export_trace(trace, tmp_path / "a", format_name="fio-iolog-v3")
    export_trace(trace, tmp_path / "new" / "a.gz", format_name="fio-iolog-v3")
    export_trace(trace, tmp_path / "a.zst", format_name="fio-iolog-v3")
    assert gzip.decompress((tmp_path / "new" / "a.gz").read_bytes()) == (tmp_path / "a").read_bytes()
    assert (tmp_path / "a.zst").read_bytes().startswith(b"\x28\xb5\x2f\xfd")
    assert import_trace(tmp_path / "a.zst", tmp_path / "back.parquet").rows == 1


def test_mistakes_leave_no_output(tmp_path: Path) -> None:
    trace = written(tmp_path / "in.parquet", request())
    with pytest.raises(UserError, match=r"export format 'msr' is unknown; .*fio-iolog-v3"):
        export_trace(trace, tmp_path / "a", format_name="msr")
    with pytest.raises(UserError, match="'a b' is not a file name for an iolog"):
        export_trace(trace, tmp_path / "a", format_name="fio-iolog-v3", volume="a b")
    with pytest.raises(UserError, match="the trace does not exist"):
        export_trace(tmp_path / "none.parquet", tmp_path / "a", format_name="fio-iolog-v3")
    with pytest.raises(UserError, match="cannot be written"):
        export_trace(trace, trace / "a", format_name="fio-iolog-v3")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_replays_an_iolog_exactly(tmp_path: Path) -> None:
    _, report = exported(
        tmp_path,
        request(offset_bytes=512 * 1024, length_bytes=8192),
        request(queue_ns=10_000, operation="write", offset_bytes=4096, length_bytes=1536),
        request(queue_ns=20_000, operation="flush", length_bytes=0),
        request(queue_ns=30_000, offset_bytes=0, length_bytes=512),
        request(queue_ns=40_000, operation="write", offset_bytes=65536, length_bytes=65536, preflush=True, fua=True),
    )
    assert report.altered == {"fua flags left out": 1, "preflush flags made sync lines": 1}
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    command = ["fio", "--name=x", "--read_iolog=out", "--replay_redirect=data", "--ioengine=psync", "--thread",
               "--allow_file_create=0", "--write_lat_log=done", "--log_offset=1", "--output-format=json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    assert (job["read"]["total_ios"], job["write"]["total_ios"], job["sync"]["total_ios"]) == (2, 2, 2)
    log = [line.split(", ") for line in (tmp_path / "done_lat.1.log").read_text().splitlines()]
    assert [(int(fields[2]), int(fields[4]), int(fields[3])) for fields in log] == [
        (0, 524288, 8192), (1, 4096, 1536), (0, 0, 512), (1, 65536, 65536),
    ]  # fmt: skip
