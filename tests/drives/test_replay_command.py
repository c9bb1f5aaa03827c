"""`drivelab replay` on the command line: on a file, on virtual drives with faults, killed midway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from made_traces import Row, write
from waits import DRIVELAB

from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.criteria.taint import KERNEL, foreign_writes
from drivelab.drives import sysfs
from drivelab.replay import once
from drivelab.replay.engine_records import open_results
from drivelab.replay.outcome import read_outcome
from drivelab.run.replays import replay_folder
from drivelab.run.replays.replay import replay_writes
from drivelab.virtual import manage
from drivelab.virtual.faults import Fault


def replay(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> dict[str, Any]:
    """Return the report."""
    assert main(["replay", *map(str, arguments), "--json"]) == status, capsys.readouterr().err
    return dict(json.loads(capsys.readouterr().out))


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return the message of a replay that is refused."""
    assert main(["replay", *map(str, arguments)]) == 2
    return capsys.readouterr().err


pytestmark = [pytest.mark.device, pytest.mark.single, pytest.mark.usefixtures("engine_possible")]
MIB = 1 << 20
SHEET = "drive\tdevice\tserial\tdestructive\tnote\n"


@pytest.fixture
def file(tmp_path: Path, backing_files_known: None) -> Path:
    path = tmp_path / "target.img"
    path.write_bytes(bytes(8 * MIB))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace with all kinds of requests, one per millisecond."""
    kinds = ["write", "read", "flush", "discard", "write-zeroes"]
    rows = [
        Row(
            n * 1_000_000,
            operation=kinds[n % 5],
            offset_bytes=0 if kinds[n % 5] == "flush" else 4096 * (n % 64),
            length_bytes=0 if kinds[n % 5] == "flush" else 4096,
            flags=("fua",) if n % 10 == 5 else (),
            complete_ns=n * 1_000_000 + 100_000,
        )
        for n in range(200)
    ]
    return write(tmp_path / "trace.parquet", rows)


def test_every_kind_of_request_is_issued_as_planned(
    trace: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = replay(capsys, trace, "--target", file, "--yes", "-o", tmp_path / "out.parquet")
    assert report["planned"] == report["issued"] == report["completed"]
    assert {name: counts["requests"] for name, counts in report["planned"].items()} == dict.fromkeys(
        ("read", "write", "flush", "discard", "write-zeroes"), 40
    )
    assert (report["state"], report["partial"], report["order_inversions"], report["failed_requests"]) == (
        "finished", False, 0, 0,
    )  # fmt: skip
    assert report["issue_error_us"]["min"] >= 0
    rows = read_outcome(tmp_path / "out.parquet")
    assert len(rows) == 200
    assert (rows["deadline_ns"] == np.arange(200) * 1_000_000).all()
    assert (rows["issue_ns"] >= rows["deadline_ns"]).all()
    assert report["duration_ratio"] == pytest.approx(np.ptp(rows["issue_ns"]) / np.ptp(rows["deadline_ns"]))
    assert (rows["trace_latency_ns"] == 100_000).all()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("error", [UserError("the target is gone"), KeyboardInterrupt()])
def test_an_evaluation_that_ends_early_keeps_the_requests(
    error: BaseException,
    trace: Path,
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out.parquet"

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(once, "report", fail)
    assert main(["replay", str(trace), "--target", str(file), "-o", str(out), "--yes"]) in (2, 130)
    assert f"the requests are in {out}" in capsys.readouterr().err
    assert not (tmp_path / ".out.parquet.replay").exists()
    assert len(read_outcome(out)) == 200


def test_unwritten_parts_of_the_target_stay_unchanged(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(b"x" * (8 * MIB))
    trace = write(tmp_path / "one.parquet", [Row(0, operation="write", offset_bytes=MIB, length_bytes=8192)])
    replay(capsys, trace, "--target", file, "--yes", "-o", tmp_path / "out.parquet")
    content = file.read_bytes()
    assert content[:MIB] == b"x" * MIB
    assert content[MIB + 8192 :] == b"x" * (7 * MIB - 8192)
    assert len(set(content[MIB : MIB + 8192])) > 200


def test_prefill_writes_the_blocks_that_are_read(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write(tmp_path / "one.parquet", [Row(0, operation="read", offset_bytes=MIB, length_bytes=300 * 1024)])
    report = replay(capsys, trace, "--target", file, "--yes", "--prefill", "-o", tmp_path / "out.parquet")
    assert report["completed"]["read"]["requests"] == 1
    blocks = np.frombuffer(file.read_bytes(), np.uint8).reshape(-1, 4096)
    written = np.flatnonzero(blocks.any(axis=1))
    assert written.tolist() == list(range(256, 256 + 75))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--timing", "scaled"], "factor"),
        (["--timing", "idle-capped"], "idle"),
        (["--factor", "2"], "factor"),
        (["--range-start", "8MiB"], "range"),
        (["--mapping", "exact", "--range", "64KiB"], "ends at 256 KiB"),
        (["--depth-limit", "100000"], "depth limit is 100000"),
        (["--depth-limit", "0"], "depth limit is 0"),
        (["--realtime", "100"], "real-time priority is 100"),
    ],
)
def test_invalid_options_are_refused_before_any_write(
    arguments: list[str], reason: str, trace: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reason in refusal(capsys, trace, "--target", file, "--yes", "-o", tmp_path / "out.parquet", *arguments)
    assert file.read_bytes() == bytes(8 * MIB)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["target.img", "trace.parquet"]


def test_invalid_targets_are_refused(
    trace: Path, file: Path, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    assert "confirm with --yes" in refusal(capsys, trace, "--target", file, "-o", out)
    assert "is neither a path nor a drive of config/drives.tsv" in refusal(capsys, trace, "--target", "sdx", "-o", out)
    assert "is also the input" in refusal(capsys, trace, "--target", file, "--yes", "-o", trace)
    assert "is also the input" in refusal(capsys, trace, "--target", file, "--yes", "-o", file)


def test_a_virtual_drive_of_the_sheet(
    project: Path, run_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = replay(capsys, "sqlite-inserts", "--target", "op7", "--timing", "asap", "-o", tmp_path / "out.parquet")
    assert report["completed"] == report["planned"]
    assert report["target"]["kind"] == "drive"
    assert any(mark.startswith("virtual") for mark in report["marks"])
    assert manage.status() == []  # it did not run before the replay, so drivelab stops it


def enter(project: Path) -> None:
    """Enter the fixture's running drive in the sheet as `test`."""
    (project / "config/drives.tsv").write_text(f"{SHEET}test\tvirtual:test\tTEST-1\tyes\t\n")
    (project / "config/virtual_drives.yaml").write_text(
        "test: {serial: TEST-1, capacity: 16MiB, over_provisioning: 28%, slc_cache: 0B}\n"
    )


def test_a_drive_with_errors(
    project: Path, drive: manage.VirtualDrive, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    enter(project)
    manage.set_fault("test", Fault("error", "write", 0, 8 * 4096))
    # With a fixed depth, the next request waits for the answer to an earlier one, however slow this machine is.
    arguments = (trace, "--target", "test", "-o", tmp_path / "out.parquet", "--timing", "asap", "--depth", "4")
    report = replay(capsys, *arguments, status=1)
    assert (report["state"], report["partial"]) == ("failed", True)
    assert list(report["errors"]) == ["EIO"]  # of the first, and of those in flight with it
    assert sum(counts["requests"] for counts in report["issued"].values()) < 200
    report = replay(capsys, *arguments, "--go-on", status=1)
    assert (report["state"], report["partial"]) == ("finished", False)
    assert report["errors"]["EIO"] > 1
    assert sum(counts["requests"] for counts in report["issued"].values()) == 200


@pytest.mark.parametrize("faulty", [False, True])
def test_kernel_counters_match_the_report(
    project: Path, drive: manage.VirtualDrive, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    faulty: bool,
) -> None:  # fmt: skip
    """The kernel may have counted any part of a failed write."""
    enter(project)
    if faulty:
        manage.set_fault("test", Fault("error", "write", 0, 8 * 4096))
    before = sysfs.writes(Path(drive.device).name)
    arguments = (trace, "--target", "test", "-o", tmp_path / "out.parquet", "--go-on")
    report = replay(capsys, *arguments, status=1 if faulty else 0)
    after = sysfs.writes(Path(drive.device).name)
    assert before is not None
    assert after is not None
    line = {KERNEL: {kind: after[kind] - before[kind] for kind in after}, **replay_writes(report)}
    assert line[KERNEL]["discarded_bytes"] > 0
    assert foreign_writes(line) == {"foreign_written_bytes": 0, "foreign_discarded_bytes": 0}, line


def started(trace: Path, file: Path, out: Path) -> subprocess.Popen[bytes]:
    """Start a replay in its own process, and wait until some requests are complete."""
    command = [*DRIVELAB, "replay", str(trace), "--target", str(file), "--yes", "-o", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    results = out.with_name(f".{out.name}.replay") / "results.bin"
    while process.poll() is None and not (results.exists() and _completed(results) > 20):
        os.sched_yield()
    return process


@pytest.fixture
def long_trace(tmp_path: Path) -> Path:
    """100 s of writes."""
    rows = [Row(n * 1_000_000, operation="write", offset_bytes=4096 * (n % 100)) for n in range(100_000)]
    return write(tmp_path / "long.parquet", rows)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_finished_requests(
    number: signal.Signals, long_trace: Path, file: Path, tmp_path: Path
) -> None:
    process = started(long_trace, file, tmp_path / "out.parquet")
    process.send_signal(number)
    assert process.wait() == 130
    kept = read_outcome(tmp_path / "out.parquet", ["issue_ns", "complete_ns"])
    assert 20 < kept["complete_ns"].notna().sum() < 100_000
    assert kept["issue_ns"].notna().sum() == kept["complete_ns"].notna().sum()  # requests in flight were completed
    assert not (tmp_path / ".out.parquet.replay").exists()


def test_two_replays_do_not_share_an_output(
    long_trace: Path, trace: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.img"
    other.write_bytes(bytes(8 * MIB))
    process = started(long_trace, file, tmp_path / "out.parquet")
    try:
        message = refusal(capsys, trace, "--target", other, "--yes", "-o", tmp_path / "out.parquet")
        assert "another replay is writing it" in message
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_damaged_leftovers_are_reported_and_removed(
    trace: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".out.parquet.replay"
    folder.mkdir()
    (folder / "replay.lock").write_bytes(replay_folder._MARK)
    for name in ("results.bin", "trace.schedule", "trace.planned.parquet"):
        (folder / name).write_bytes(b"x")
    assert main(["replay", str(trace), "--target", str(file), "--yes", "-o", str(tmp_path / "out.parquet")]) == 0
    assert "its results are unusable" in capsys.readouterr().err
    assert not folder.exists()


def test_an_output_that_is_no_file_is_refused(
    trace: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "out.parquet")
    assert "is not a regular file" in refusal(capsys, trace, "--target", file, "--yes", "-o", tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").is_fifo()


def test_a_killed_replay_keeps_finished_requests(
    long_trace: Path, trace: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    for number in (1, 2):
        process = started(long_trace, file, out)
        process.kill()
        process.wait()
        assert not out.exists()
        if number == 2:
            break
        assert main(["replay", str(trace), "--target", str(file), "--yes", "-o", str(out)]) == 0
        out.unlink()
    capsys.readouterr()
    assert main(["replay", str(trace), "--target", str(file), "--yes", "-o", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    assert "out.interrupted-2.parquet" in printed.err
    assert json.loads(printed.out)["state"] == "finished"
    for number in (1, 2):
        kept = read_outcome(tmp_path / f"out.interrupted-{number}.parquet", ["complete_ns"])
        assert len(kept) == 100_000
        assert 20 < kept["complete_ns"].notna().sum() < 100_000
    assert pq.read_metadata(out).num_rows == 200


def _completed(results: Path) -> int:
    try:
        return int(open_results(results).header["completed"])
    except UserError:  # the file is being created
        return 0
