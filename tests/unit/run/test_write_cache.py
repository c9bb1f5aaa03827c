"""A stage sets the write cache as the study says, and restores it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.drives import write_cache as drives_write_cache
from drivelab.drives.guard import ApprovedDevice
from drivelab.drives.identified import Identity
from drivelab.host.temporary import Undo, Write
from drivelab.run.write_cache import as_wanted

DRIVE = ApprovedDevice("/dev/sdz", "sdz", "S/N 1", None, identity=Identity("S/N 1", 512))


class Cache:
    """A fake cache_type file of sysfs."""

    def __init__(self, file: Path, word: str) -> None:
        self.file = file
        file.write_text(word)

    def state(self, name: str) -> str | None:
        return {"write back": "on", "write through": "off", "absent": "none"}.get(self.file.read_text().strip())

    def undo_of(self, device: ApprovedDevice, on: bool) -> Undo:
        return Write(str(self.file), self.file.read_text())

    def change(self, device: ApprovedDevice, on: bool) -> None:
        self.file.write_text("write back" if on else "write through")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    cache = Cache(tmp_path / "cache_type", "write back")
    for name in ("state", "undo_of", "change"):
        monkeypatch.setattr(drives_write_cache, name, getattr(cache, name))
    return cache


def test_set_and_restored_also_after_a_failure(cache: Cache) -> None:
    with as_wanted(DRIVE, "off"):
        assert cache.state("sdz") == "off"
    assert cache.state("sdz") == "on"
    with pytest.raises(RuntimeError), as_wanted(DRIVE, "off"):
        raise RuntimeError
    assert cache.state("sdz") == "on"


@pytest.mark.parametrize(("word", "wanted"), [("write back", "on"), ("write through", "off"), ("absent", "off"),
                                              ("absent", "on"), ("write back", None)])  # fmt: skip
def test_a_write_cache_in_the_right_state_is_not_changed(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, word: str, wanted: str | None
) -> None:
    cache.file.write_text(word)
    monkeypatch.setattr(drives_write_cache, "change", lambda device, on: pytest.fail("was changed"))
    with as_wanted(DRIVE, wanted):
        assert cache.file.read_text() == word
    assert cache.file.read_text() == word


def test_a_drive_that_does_not_report_is_refused(cache: Cache) -> None:
    cache.file.write_text("?")
    with pytest.raises(UserError, match=r"/dev/sdz does not report.*write_cache: unchanged"), as_wanted(DRIVE, "off"):
        pytest.fail("was entered")


def test_the_write_cache_of_a_virtual_drive_is_not_changed(cache: Cache) -> None:
    with as_wanted(ApprovedDevice("/dev/loop0", "loop0", "V", "op7", identity=Identity("V", 512)), "off"):
        assert cache.state("") == "on"
