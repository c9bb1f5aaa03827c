"""What all tests share: the project's folder, and a copy of its configuration to change."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is the host's affair: other tests use it too.
settings.register_profile("shared-host", deadline=None)
settings.load_profile("shared-host")

# A shell without job control starts what runs in its background with SIGINT ignored, and that is inherited: programs
# that tests end by SIGINT would not hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the project's configuration and traces, as the current folder; results go there too."""
    for name in ("config", "traces"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
