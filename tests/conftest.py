"""What all tests share: the project's folder, and a copy of its configuration to change."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from project_folders import FolderWatch

# How long an example takes is the host's affair: other tests use it too.
settings.register_profile("shared-host", deadline=None)
settings.load_profile("shared-host")

# A shell without job control starts what runs in its background with SIGINT ignored, and that is inherited: programs
# that tests end by SIGINT would not hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def _folder_watch() -> Iterator[FolderWatch | None]:
    """The watch over the project's own folders, in `.ci/run` alone: elsewhere people use them during a test run."""
    if "DRIVELAB_TEST_STRICT" not in os.environ:
        yield None
        return
    watch = FolderWatch(ROOT)
    yield watch
    _fail_if_touched(watch)
    watch.close()


@pytest.fixture(autouse=True)
def _project_folders_untouched(_folder_watch: FolderWatch | None) -> Iterator[None]:
    """Fail a test during which the project's own folders were used. With several workers, it may be another test."""
    yield
    if _folder_watch is not None:
        _fail_if_touched(_folder_watch)


def _fail_if_touched(watch: FolderWatch) -> None:
    if touched := watch.touched():
        pytest.fail(f"a test used the project's own folders: {', '.join(touched[:10])}")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the project's configuration and traces, as the current folder; results go there too."""
    for name in ("config", "traces"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
