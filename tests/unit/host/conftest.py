"""Simulated hosts, with programs that act on them instead of the real host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from made_up_hosts import Build, lay_out, machine_of, programs

from drivelab.host.machine import Machine


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Return a function that builds a host from files; scripts replace programs that could change the real host."""

    machines: list[Path] = []

    def make(files: Mapping[str, str], timers: str = "", *, synchronised: bool | None = True) -> Machine:
        root = tmp_path / f"host{len(machines)}"
        machines.append(root)
        lay_out(root, files)
        (root / "timers").write_text("".join(f"{unit}\n" for unit in sorted(timers.split())))
        monkeypatch.setenv("PATH", f"{programs(root)}:{os.environ['PATH']}")
        return machine_of(root, synchronised=synchronised)

    return make


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run directory for this test only."""
    folder = tmp_path / "run"
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(folder))
    return folder
