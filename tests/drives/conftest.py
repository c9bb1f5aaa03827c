"""Virtual drives in real time, in a run directory for each test; skipped if the machine does not support them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from faults import FaultStudy
from leftovers import end_processes, leftovers
from loops import image, looped
from partitions import TABLE, UUID, Partitioned

from drivelab.core import lock, private
from drivelab.plan.drive_sheet import SheetRow
from drivelab.replay import native
from drivelab.trace.capturing import capture, tracer
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Callable[[int, int], str]]:
    """Return a function that makes a loop device (MiB, bytes per logical block); detach all after the test."""
    numbers = count()
    with ExitStack() as attached:

        def make(size_mib: int, block_bytes: int) -> str:
            file = image(tmp_path / f"image{next(numbers)}", size_mib)
            device = attached.enter_context(looped(file, f"--sector-size={block_bytes}", "--direct-io=on"))
            attached.callback(subprocess.run, ["partx", "--delete", device], check=False, capture_output=True)
            return device

        yield make


@pytest.fixture
def device(attach: Callable[[int, int], str]) -> str:
    """A loop device of 64 MiB with logical blocks of 4096 bytes."""
    return attach(64, 4096)


@pytest.fixture(scope="session")
def tracefs() -> Iterator[None]:
    """Mount tracefs; unmount it at the end if it was not mounted before."""
    if (reason := capture.possible()) is not None:
        pytest.skip(f"no capture here: {reason}")
    was_mounted = tracer.TRACING.is_mount()
    if not was_mounted:
        subprocess.run(["mount", "-t", "tracefs", "tracefs", tracer.TRACING], check=True)
    yield
    if not was_mounted:
        subprocess.run(["umount", tracer.TRACING], check=True)


@pytest.fixture
def tracer_untouched(tracefs: None) -> Iterator[None]:
    """Check that the test leaves the tracer unchanged and nothing mounted."""
    before = tracer.state()
    yield
    assert tracer.state() == before
    assert not list(private.run_directory().glob("*.json"))
    assert f"{private.run_directory()}/mount." not in Path("/proc/mounts").read_text()


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
