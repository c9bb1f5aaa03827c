"""Records of zram devices, with a kernel interface of files; tests/drives/test_own_zram.py has real devices."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from drivelab.fio.own_zram import own_zram

NUMBER = "987654"
"""No host has as many zram devices."""


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel interface that always gives a new device the same number."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    folder = tmp_path / "zram-control"
    folder.mkdir()
    (folder / "hot_add").write_text(f"{NUMBER}\n")
    (folder / "hot_remove").touch()
    return folder


def test_the_record_of_a_running_measurement_is_kept(control: Path, tmp_path: Path) -> None:
    """Its device is gone, for example after `zramctl --reset`, so the kernel gives the number again."""
    record = tmp_path / f"run/null-targets/zram{NUMBER}.json"
    record.parent.mkdir(parents=True)
    record.write_text("theirs")
    with record.open() as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        for _ in range(2):
            with own_zram(1 << 20, control) as (name, reason):
                assert name is None
                assert reason == "no zram device can be made: Resource temporarily unavailable"
            assert (control / "hot_remove").read_text() == NUMBER
            assert record.read_text() == "theirs"


def test_a_device_that_cannot_be_used_leaves_no_record_and_no_lock(control: Path, tmp_path: Path) -> None:
    for _ in range(2):
        with own_zram(1 << 20, control) as (name, reason):
            assert name is None
            assert reason == "no zram device can be made: No such file or directory"
        assert list((tmp_path / "run/null-targets").glob("*.json")) == []
        assert (control / "hot_remove").read_text() == NUMBER
