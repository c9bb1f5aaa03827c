"""Fake drives backed by files, installed in all modules; tests judge their answers and content."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_drives import FakeAta, FakeNvme, FakeScsi


@pytest.fixture
def nvme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvme:
    drive = FakeNvme(tmp_path / "nvme0n1")
    drive.install(monkeypatch)
    return drive


@pytest.fixture
def ata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeAta:
    drive = FakeAta(tmp_path / "sdz")
    drive.install(monkeypatch)
    return drive


@pytest.fixture
def scsi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeScsi:
    drive = FakeScsi(tmp_path / "sdz")
    drive.install(monkeypatch)
    return drive
