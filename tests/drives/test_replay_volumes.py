"""`drivelab replay` of several volumes on loop devices: what each device gets, and in which order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_traces import Row, write, write_volumes
from replay_commands import refusal, replay

from drivelab.cli.main import main
from drivelab.replay import native
from drivelab.replay.outcome import read_outcome

pytestmark = [pytest.mark.device, pytest.mark.single]
pytest_plugins = ("capture_fixtures",)

MIB = 1 << 20
MS = 1_000_000
SECTOR = 512
READS, READ_SECTORS, WRITES, WRITTEN_SECTORS = 0, 2, 4, 6
"""Fields of /sys/block/NAME/stat (Documentation/block/stat.rst)."""


@pytest.fixture(autouse=True)
def _engine() -> None:
    if (reason := native.possible()) is not None:
        pytest.skip(reason)


@pytest.fixture
def small(attach: Callable[[int, int], str]) -> str:
    return attach(4, 512)


@pytest.fixture
def large(attach: Callable[[int, int], str], small: str) -> str:
    return attach(64, 4096)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three volumes, a request every 0.5 ms: `log` is written, `data` mostly read, `other` is of no interest.

    A process waits for its request to the one before it asks the other.
    """
    rows = []
    for n in range(600):
        name = ("log", "data", "other")[n % 3]
        operation = "read" if name == "data" and n % 5 else "write"
        begin_ns = n * MS // 2
        row = Row(begin_ns, None, begin_ns + MS // 4, operation, 8192 * (n % 300), 8192 if name == "data" else 4096)
        rows.append((name, row._replace(process="db", pid=1)))
    return write_volumes(tmp_path / "trace.parquet", rows)


def stat(device: str) -> list[int]:
    return [int(field) for field in Path("/sys/block", Path(device).name, "stat").read_text().split()]


def mapped(small: str, large: str) -> list[str]:
    return ["--volume", f"log={small}", "--volume", f"data={large}", "--skip-volume", "other", "--yes"]


def test_each_device_gets_the_requests_of_its_volume(
    trace: Path, small: str, large: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = stat(small), stat(large)
    report = replay(capsys, trace, *mapped(small, large), "-o", tmp_path / "out.parquet")
    counted = [np.subtract(stat(device), earlier) for device, earlier in zip((small, large), before, strict=True)]
    log, data = report["volumes"]["log"], report["volumes"]["data"]
    assert [volume["target"]["label"] for volume in (log, data)] == [small, large]
    assert log["completed"] == {"write": {"requests": 200, "bytes": 200 * 4096}}
    assert data["completed"]["read"]["requests"] + data["completed"]["write"]["requests"] == 200
    assert report["completed"]["write"]["requests"] == 200 + data["completed"]["write"]["requests"]
    assert counted[0][[WRITES, WRITTEN_SECTORS]].tolist() == [200, 200 * 4096 // SECTOR]
    assert counted[1][[WRITES, WRITTEN_SECTORS]].tolist() == [
        data["completed"]["write"]["requests"], data["completed"]["write"]["bytes"] // SECTOR
    ]  # fmt: skip
    assert counted[1][READ_SECTORS] >= data["completed"]["read"]["bytes"] // SECTOR
    assert {name: part["mapping"]["logical_block_bytes"] for name, part in report["volumes"].items()} == {
        "log": 4096, "data": 4096
    }  # fmt: skip
    for part in (report, log, data):
        assert (part["state"], part["partial"], part["failed_requests"]) == ("finished", False, 0)
        assert part["response_us"]["mean"] >= part["access_time_us"]
    rows = read_outcome(tmp_path / "out.parquet")
    assert rows["volume"].value_counts().to_dict() == {"log": 200, "data": 200}
    assert (rows["deadline_ns"].to_numpy() == [n * MS // 2 for n in range(600) if n % 3 < 2]).all(), "one time base"
    assert (rows["issue_ns"] >= rows["deadline_ns"]).all()
    assert report["duration_ratio"] == pytest.approx(np.ptp(rows["issue_ns"]) / np.ptp(rows["deadline_ns"]))
    assert not list(tmp_path.glob(".*"))


def test_a_request_waits_for_the_other_volume(
    trace: Path, small: str, large: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--dependencies", "process", "--timing", "asap")
    report = replay(capsys, trace, *mapped(small, large), "-o", tmp_path / "out.parquet", *options)
    rows = read_outcome(tmp_path / "out.parquet")
    waits = np.flatnonzero(rows["after"] >= 0)
    awaited = rows["after"].to_numpy()[waits]
    volume = rows["volume"].astype(str).to_numpy()
    assert waits.size == 399
    assert (volume[waits] != volume[awaited]).all()
    assert (rows["issue_ns"].to_numpy()[waits] >= rows["complete_ns"].to_numpy()[awaited]).all()
    assert report["in_flight"]["replay"]["most"] == 1


@pytest.mark.usefixtures("tracefs")
def test_the_printed_report_has_a_part_for_each_volume(
    trace: Path, small: str, large: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(trace), *mapped(small, large), "-o", str(tmp_path / "out.parquet")]) == 0
    printed = capsys.readouterr().out
    assert f"trace on {small}, {large}: original, engine native" in printed
    assert f"\nvolume log on {small}:\n  " in printed
    assert f"\nvolume data on {large}:\n  " in printed
    assert len(re.findall(r"duration ratio \d+\.\d{4} \(", printed)) == 3
    assert printed.count("response, from when a request was due") == 3
    assert printed.count("requests in flight: at most") == 3
    assert printed.count("the kernel saw: 0 requests missing, 0 from other sources\n") == 3
    assert main(["replay", str(trace), *mapped(small, large), "-o", str(tmp_path / "out.parquet"), "--unwatched"]) == 0
    assert capsys.readouterr().out.count("no kernel trace of the replay: the kernel's tracer was not requested") == 1


def test_wrong_volumes_are_refused_before_anything_is_written(
    trace: Path, small: str, large: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("-o", tmp_path / "out.parquet")
    one = write(tmp_path / "one.parquet", [Row(0)])
    before = stat(small), stat(large)
    log, data, skip = (f"--volume=log={small}", f"--volume=data={large}", "--skip-volume=other")
    for arguments, words in (
        ((trace, "--target", small, "--yes"), "has 3 volumes (data, log, other), and one target is for one volume"),
        ((trace, log, skip, "--yes"), "volume 'data' has no target; give it one with --volume data=TARGET"),
        ((trace, log, data, "--yes"), "leave it out with --skip-volume other"),
        ((trace, log, "--volume=dat=x", "--yes"), "has no volume 'dat'; did you mean 'data'?"),
        ((trace, log, f"--volume=data={small}", skip, "--yes"), "'log' and 'data' have the same target"),
        ((trace, log, log, "--yes"), f"volume 'log' already has the target {small}"),
        ((trace, log, data, skip, "--skip-volume=log", "--yes"), "'log' has a target and is to be skipped"),
        ((trace, "--volume=log", "--yes"), "--volume log: is not NAME=TARGET"),
        ((trace, "--volume=log=", "--yes"), "--volume log=: is not NAME=TARGET"),
        ((one, "--target", "", "--yes"), "target '' is neither a path nor a drive of config/drives.tsv"),
        ((trace, log, data, skip), "confirm with --yes"),
        ((trace, log, data, skip, "--yes", "--nvme"), "--nvme: NVMe commands go to one drive"),
        ((trace, log, data, skip, "--yes", "--polled"), "cannot be polled"),
        ((trace, log, data, skip, "--yes", "--mapping", "exact", "--range", "1MiB"), "volume log: the trace ends at"),
        ((one, log, "--yes"), "has one volume, without a name; give its target with --target"),
        ((one, "--target", small, skip, "--yes"), "has one volume, without a name"),
    ):
        assert words in refusal(capsys, *arguments, *out)
    with pytest.raises(SystemExit):
        main(["replay", str(trace), "--target", small, log, "--yes", "-o", str(tmp_path / "out.parquet")])
    assert [
        np.subtract(stat(device), earlier)[WRITES] for device, earlier in zip((small, large), before, strict=True)
    ] == [0, 0]
    assert not (tmp_path / "out.parquet").exists()


def test_a_device_that_may_not_be_used_keeps_the_others_untouched(
    trace: Path, small: str, large: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = stat(small)
    held = os.open(large, os.O_RDONLY | os.O_EXCL)
    try:
        message = refusal(capsys, trace, *mapped(small, large), "-o", tmp_path / "out.parquet")
    finally:
        os.close(held)
    assert f"target {large}: may not be used" in message
    assert stat(small)[WRITES] == before[WRITES]
