"""Virtual drives in real time, in a run directory for each test; skipped if the machine does not support them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import FaultStudy
from leftovers import end_processes, leftovers
from partitions import TABLE, UUID, Partitioned

from drivelab.core import lock
from drivelab.plan.drive_sheet import SheetRow
from drivelab.replay import native
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel


@pytest.fixture(scope="session")
def _possible() -> str | None:
    return manage.possible()


@pytest.fixture
def engine_possible() -> None:
    """Skip where the replay engine cannot run."""
    if (reason := native.possible()) is not None:
        pytest.skip(reason)


@pytest.fixture
def backing_files_known() -> None:
    """Skip if a replay onto a file is refused because a loop device may be over the file."""
    if os.geteuid() != 0 and any(Path("/sys/block").glob("loop*/loop")):
        pytest.skip("loop devices are attached, and only root can ask whether one is over the test's file")


@pytest.fixture
def run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _possible: str | None) -> Iterator[Path]:
    """Return the folder with the records of a test's drives; all drives are stopped after the test."""
    if _possible is not None:
        pytest.skip(_possible)
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    yield tmp_path / "virtual"
    manage.stop(force=True)


@pytest.fixture
def study(tmp_path: Path, run_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultStudy]:
    """A copy of the project with the study `one`; its folder is the current folder, and nothing is left after it."""
    study = FaultStudy(tmp_path / "project")
    monkeypatch.chdir(study.folder)
    yield study
    manage.stop(force=True)
    remaining = leftovers()
    end_processes()
    assert remaining == []


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait briefly for a device that stays in use, because other tests open all loop devices to find a free one."""
    monkeypatch.setattr(lock, "PASSING_S", 0.3)


@pytest.fixture
def model() -> DriveModel:
    """A small drive without a cache, so that it has no idle work."""
    return DriveModel.from_mapping(
        "test", {"serial": "TEST-1", "capacity": "16MiB", "over_provisioning": "28%", "slc_cache": "0B"}
    )


@pytest.fixture
def drive(run_directory: Path, model: DriveModel) -> manage.VirtualDrive:
    """The running drive `test`."""
    return manage.start("test", model)


@pytest.fixture
def partitioned(drive: manage.VirtualDrive, impatient: None) -> Iterator[Partitioned]:
    """The drive `test`, full of random data, with three partitions; the second is the subject."""
    with Path(drive.device).open("r+b", buffering=0) as file:
        file.write(os.urandom(drive.capacity_bytes))
        os.fsync(file.fileno())
    subprocess.run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", drive.device], input=TABLE, text=True,
                   check=True)  # fmt: skip
    subprocess.run(["partx", "--add", drive.device], check=True)
    device = f"{drive.device}p2"
    yield Partitioned(
        drive, SheetRow("part", device, UUID, True, "", "drives.tsv line 2", kind="partition", members=("TEST-1",))
    )
    subprocess.run(["partx", "--delete", drive.device], check=False)
