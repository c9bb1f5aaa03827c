"""Zram devices of measurements: removed at the end, and after a kill, if they are still drivelab's."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest
from other_processes import make_zram_and_die

from drivelab.fio.own_zram import CONTROL, own_zram, remove_left

pytestmark = [pytest.mark.device, pytest.mark.single]
SIZE_BYTES = 1 << 20


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the records, in a run directory of the test."""
    if os.geteuid() != 0 or not os.access(CONTROL / "hot_remove", os.W_OK):
        pytest.skip("no zram device can be made and removed")
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    return tmp_path / "null-targets"


@pytest.fixture
def left(records: Path) -> Iterator[str]:
    """The name of a device that a killed process left."""
    process = get_context("spawn").Process(target=make_zram_and_die, args=[SIZE_BYTES])
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (record,) = records.glob("*.json")
    assert exists(record.stem)
    sequence = (Path("/sys/block") / record.stem / "diskseq").read_text()
    yield record.stem
    node = Path("/sys/block") / record.stem / "diskseq"
    if node.exists() and node.read_text() == sequence:
        (CONTROL / "hot_remove").write_text(record.stem.removeprefix("zram"))


def exists(name: str) -> bool:
    return (Path("/sys/block") / name).exists()


def test_a_device_exists_for_the_context(records: Path) -> None:
    with own_zram(SIZE_BYTES) as (name, reason):
        assert name, reason
        assert Path(f"/dev/{name}").read_bytes() == bytes(SIZE_BYTES)
        assert remove_left() == [], "the process that made it still lives"
        assert exists(name)
    assert not exists(name)
    assert list(records.glob("*.json")) == []


def test_the_next_measurement_removes_a_device_of_a_killed_process(records: Path, left: str) -> None:
    before = (Path("/sys/block") / left / "diskseq").read_text()
    with own_zram(SIZE_BYTES) as (name, _):
        known = Path("/sys/block") / left / "diskseq"
        assert name == left or not exists(left), "the number may be given to the new device"
        assert not known.exists() or known.read_text() != before
    assert not exists(left)
    assert list(records.glob("*.json")) == []


def test_a_device_that_a_program_has_open_is_removed_later(records: Path, left: str) -> None:
    reader = os.open(f"/dev/{left}", os.O_RDONLY)
    try:
        assert remove_left() == []
        assert exists(left)
    finally:
        os.close(reader)
    assert remove_left() == [left]


@pytest.mark.parametrize("change", ["sequence", "boot", "size", "written", "no record", "half a record"])
def test_a_device_that_may_be_of_another_program_stays(records: Path, left: str, change: str) -> None:
    record = records / f"{left}.json"
    known = json.loads(record.read_text())
    boot, number = known["sequence"].split()
    if change == "written":
        with Path(f"/dev/{left}").open("wb", buffering=0) as file:
            file.write(bytes(4096))
            os.fsync(file.fileno())
    elif change == "no record":
        record.unlink()
    else:
        known |= {"size_bytes": SIZE_BYTES // 2} if change == "size" else {}
        known |= {"sequence": f"{boot} {int(number) - 1}"} if change == "sequence" else {}
        known |= {"sequence": f"{boot[::-1]} {number}"} if change == "boot" else {}
        record.write_text(json.dumps(known)[: 9 if change == "half a record" else None])
    assert remove_left() == []
    assert exists(left)
    assert list(records.glob("*.json")) == []
