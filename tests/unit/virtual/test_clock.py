from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from replay_files import make_records, write_schedule

from drivelab.core.errors import UserError
from drivelab.fio.result import read_result, read_slices
from drivelab.plan.cell import Cell
from drivelab.replay.engine_records import STATES, open_results
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

WRITES = Cell("random", 0, 4096, threads=2, queue_depth=4, runtime_s=0.5)
MIX = replace(WRITES, read_share=65, slice_s=0.1)
MakeModel = Callable[..., DriveModel]


def run(drive: VirtualClockDrive, cell: Cell, directory: Path) -> Path:
    directory.mkdir()
    drive.run(cell, directory)
    return directory


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_evidence_is_complete_and_accepted(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(), tmp_path / "state")
    directory = run(drive, MIX, tmp_path / "evidence")
    assert set(content(directory)) == {
        "job.fio", "fio.json", "stdout", "stderr", "exit_code",
        "series_bw.1.log", "series_iops.1.log", "series_lat.1.log",
    }  # fmt: skip
    result = read_result(directory, MIX)
    assert result.read.ios / result.ios == pytest.approx(0.65, abs=0.05)
    assert len(read_slices(directory, MIX)) == 5
    assert (directory / "exit_code").read_text() == "0\n"
    assert "rwmixread=65" in (directory / "job.fio").read_text()
    counters = drive.counters()
    assert counters["host_write_bytes"] == result.write.bytes
    assert counters["host_read_bytes"] == result.read.bytes


def test_equal_states_give_equal_bytes(small: MakeModel, tmp_path: Path) -> None:
    evidence = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        drive = VirtualClockDrive(small(), tmp_path / name / "state")
        run(drive, WRITES, tmp_path / name / "writes")
        run(drive, MIX, tmp_path / name / "mix")
        evidence.append((content(tmp_path / name / "writes"), content(tmp_path / name / "mix"),
                         (tmp_path / name / "state").read_bytes()))  # fmt: skip
    assert evidence[0] == evidence[1]


def test_the_state_outlives_the_process(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(), tmp_path / "one")
    for index in range(3):
        run(drive, MIX, tmp_path / f"one-{index}")
        run(VirtualClockDrive(small(), tmp_path / "many"), MIX, tmp_path / f"many-{index}")
        assert content(tmp_path / f"one-{index}") == content(tmp_path / f"many-{index}")
    again = VirtualClockDrive(small(), tmp_path / "many")
    assert (again.now_us, again.counters()) == (drive.now_us, drive.counters())
    assert not list(tmp_path.glob(".*"))


def test_consecutive_cells_differ(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(), tmp_path / "state")
    first, second = (run(drive, MIX, tmp_path / name) for name in ("first", "second"))
    assert read_result(first, MIX).read.ios != read_result(second, MIX).read.ios


def test_the_seed_of_the_model_matters(small: MakeModel, tmp_path: Path) -> None:
    jsons = []
    for seed in (1, 2):
        drive = VirtualClockDrive(small(seed=seed), tmp_path / f"state-{seed}")
        jsons.append((run(drive, MIX, tmp_path / f"{seed}") / "fio.json").read_text())
    assert jsons[0] != jsons[1]


def test_time_is_virtual_and_continues(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(), tmp_path / "state")
    run(drive, WRITES, tmp_path / "first")
    drive.idle(3600)
    assert drive.now_us == pytest.approx(3600.5e6, rel=1e-4)
    run(drive, WRITES, tmp_path / "second")
    stamps = [json.loads((tmp_path / n / "fio.json").read_text())["timestamp_ms"] for n in ("first", "second")]
    assert stamps[0] == pytest.approx(946684800000 + 500, abs=50)
    assert stamps[1] - stamps[0] == pytest.approx(3600.5e3, abs=50)
    assert read_result(tmp_path / "first", WRITES).started.isoformat().startswith("2000-01-01T00:00:00")


def test_a_purge_resets_the_drive_and_keeps_lifetime_counters(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(), tmp_path / "state")
    brief = replace(WRITES, runtime_s=None, volume_bytes=64 * 4096)
    fresh = read_result(run(drive, brief, tmp_path / "fresh"), brief).iops
    run(drive, replace(WRITES, runtime_s=3.0), tmp_path / "wear")
    tired = read_result(run(drive, brief, tmp_path / "tired"), brief).iops
    written = drive.counters()["host_write_bytes"]
    drive.purge()
    again = VirtualClockDrive(small(), tmp_path / "state")
    assert again.counters()["mapped_pages"] == 0
    assert again.counters()["host_write_bytes"] == written
    purged = read_result(run(again, brief, tmp_path / "purged"), brief).iops
    assert tired < 0.6 * fresh
    assert purged == pytest.approx(fresh, rel=0.2)


@pytest.mark.parametrize("data", [b"", b"nonsense", b"{}\n{}", b'{"format": 0}\n', b"\xff\xfe\n", None])
def test_a_damaged_or_cut_state_is_a_user_error(data: bytes | None, small: MakeModel, tmp_path: Path) -> None:
    state = tmp_path / "state"
    VirtualClockDrive(small(), state).idle(1)
    state.write_bytes(state.read_bytes()[:-100] if data is None else data)
    with pytest.raises(UserError, match="delete it"):
        VirtualClockDrive(small(), state)


def test_another_model_is_another_drive(small: MakeModel, tmp_path: Path) -> None:
    run(VirtualClockDrive(small(), tmp_path / "state"), WRITES, tmp_path / "evidence")
    other = VirtualClockDrive(small(over_provisioning="13%"), tmp_path / "state")
    assert (other.now_us, other.counters()["host_write_bytes"]) == (0.0, 0)


def test_a_cell_that_does_not_fit_keeps_the_state(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(), tmp_path / "state")
    with pytest.raises(UserError, match="active range"):
        run(drive, replace(WRITES, block_size_bytes=8 << 20), tmp_path / "evidence")
    assert not (tmp_path / "state").exists()
    assert content(tmp_path / "evidence") == {}


def schedule_of(path: Path, count: int, gap_ns: int, capacity: int = 4 << 20) -> Path:
    rows = ({"operation": "write", "deadline_ns": gap_ns * n, "offset_bytes": 4096 * (n % 1024)} for n in range(count))
    return write_schedule(path, make_records(rows), capacity)


def test_a_schedule_is_replayed_in_virtual_time(small: MakeModel, tmp_path: Path) -> None:
    schedule = schedule_of(tmp_path / "schedule", 500, 10_000_000)
    drive = VirtualClockDrive(small(), tmp_path / "state")
    drive.idle(60)
    drive.replay_schedule(schedule, tmp_path)
    replayed = open_results(tmp_path / "results.bin")
    assert (replayed.header["issued"], replayed.header["start_realtime_ns"]) == (500, (946684800 + 60) * 10**9)
    assert replayed.records["issue_ns"].tolist() == [10_000_000 * index for index in range(500)]
    assert drive.now_us == pytest.approx(60e6 + replayed.header["end_ns"] / 1000)
    again = VirtualClockDrive(small(), tmp_path / "state")
    assert (again.now_us, again.counters()["host_write_bytes"]) == (drive.now_us, 500 * 4096)


def test_replays_of_equal_states_give_equal_bytes(small: MakeModel, tmp_path: Path) -> None:
    schedule = schedule_of(tmp_path / "schedule", 9000, 0)
    evidence = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        drive = VirtualClockDrive(small(), tmp_path / name / "state")
        drive.replay_schedule(schedule, tmp_path / name, depth_limit=8, runtime_s=0.1)
        evidence.append(content(tmp_path / name))
    assert evidence[0] == evidence[1]
    header = open_results(tmp_path / "a" / "results.bin").header
    assert (header["most_in_flight"], STATES[header["state"]]) == (8, "time is up")


def test_a_schedule_for_another_drive_keeps_the_state(small: MakeModel, tmp_path: Path) -> None:
    schedule = schedule_of(tmp_path / "schedule", 5, 0, capacity=8 << 20)
    with pytest.raises(UserError, match="prepare the replay for this drive"):
        VirtualClockDrive(small(), tmp_path / "state").replay_schedule(schedule, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["schedule"]


def test_evidence_does_not_depend_on_the_folder(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(), tmp_path / "state")
    first = content(run(drive, WRITES, tmp_path / "evidence"))
    shutil.rmtree(tmp_path / "evidence")
    (tmp_path / "state").unlink()
    assert content(run(VirtualClockDrive(small(), tmp_path / "state"), WRITES, tmp_path / "elsewhere")) == first
