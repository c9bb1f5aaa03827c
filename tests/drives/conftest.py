"""Virtual drives in real time, in a run directory of the test's own; skipped where the machine cannot have them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel


@pytest.fixture(scope="session")
def _possible() -> str | None:
    return manage.possible()


@pytest.fixture
def backing_files_known() -> None:
    """Skip where a replay onto a file is refused, as any loop device may be over it."""
    if os.geteuid() != 0 and any(Path("/sys/block").glob("loop*/loop")):
        pytest.skip("loop devices are attached, and only root can ask whether one is over the test's file")


@pytest.fixture
def run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _possible: str | None) -> Iterator[Path]:
    """Where the drives of a test have their records; all of them are stopped after the test."""
    if _possible is not None:
        pytest.skip(_possible)
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    yield tmp_path / "virtual"
    manage.stop(force=True)


@pytest.fixture
def model() -> DriveModel:
    """A small drive without a cache, so that it does nothing by itself."""
    return DriveModel.from_mapping(
        "test", {"serial": "TEST-1", "capacity": "16MiB", "over_provisioning": "28%", "slc_cache": "0B"}
    )


@pytest.fixture
def drive(run_directory: Path, model: DriveModel) -> manage.VirtualDrive:
    """The drive `test`, running."""
    return manage.start("test", model)
