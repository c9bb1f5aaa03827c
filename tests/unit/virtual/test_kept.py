from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from flash_checks import check
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.virtual import kept_state
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES, DriveModel

PAGES = 256
MODEL = DriveModel.from_mapping(
    "tiny",
    {
        "serial": "TINY",
        "capacity": "1MiB",
        "over_provisioning": "25%",
        "pages_per_block": 8,
        "dies": 2,
        "slc_cache": "80KiB",
        "write_buffer": "16KiB",
    },
)
WALL_S = 1.8e9
steps = st.lists(
    st.tuples(st.sampled_from(["write", "write", "trim"]), st.integers(0, PAGES - 1), st.integers(1, 20)), max_size=150
)


class Drive:
    """A flash drive with its data, as in a server."""

    def __init__(self, model: DriveModel = MODEL) -> None:
        self.flash = FlashDrive(model)
        self.data = bytearray(model.capacity_bytes)
        self.now_us = 5e9

    def do(self, operation: str, page: int, pages: int, fill: int) -> None:
        offset, length = page * PAGE_BYTES, min(pages, PAGES - page) * PAGE_BYTES
        self.now_us = self.flash.submit(self.now_us, operation, offset, length)
        self.data[offset : offset + length] = bytes([fill if operation == "write" else 0]) * length

    def file(self) -> bytes:
        return b"".join(kept_state.dump(self.flash, memoryview(self.data), self.now_us, WALL_S))


def used() -> Drive:
    """Return a drive overwritten until garbage collection works."""
    drive, rng = Drive(), Random(1)
    for i in range(600):
        drive.do("write", rng.randrange(PAGES), 1, 1 + i % 255)
    return drive


def load(file: bytes, model: DriveModel = MODEL, now_us: float = 5e9, wall_s: float = WALL_S) -> Drive:
    drive = Drive(model)
    drive.flash = kept_state.load(file, model, memoryview(drive.data), now_us, wall_s)
    drive.now_us = now_us
    return drive


@settings(deadline=None, max_examples=60)
@given(steps)
def test_a_saved_drive_is_restored_exactly(history: list[tuple[str, int, int]]) -> None:
    drive = Drive()
    for fill, step in enumerate(history):
        drive.do(*step, fill=1 + fill % 255)
    again = load(drive.file(), now_us=drive.now_us)
    assert again.data == drive.data
    assert again.flash.dump() == drive.flash.dump()
    check(again.flash)
    assert again.file() == drive.file()


def test_only_mapped_data_is_written() -> None:
    drive = Drive()
    empty = len(drive.file())
    drive.do("write", 3, 2, 255)
    drive.do("write", 100, 5, 255)
    drive.do("trim", 101, 1, 0)
    assert 6 * PAGE_BYTES <= len(drive.file()) - empty < 7 * PAGE_BYTES


@pytest.mark.parametrize("pause_s", [0.0, 7.0])
def test_the_time_while_saved_is_idle_time(pause_s: float) -> None:
    """After a reboot, with a new clock, all requests take as long as on a drive that kept running."""
    drive = used()
    again = load(drive.file(), now_us=1e6, wall_s=WALL_S + pause_s)
    resumed_us, own_us = 1e6, drive.now_us + 1e6 * pause_s
    rng = Random(2)
    for _ in range(300):
        offset = rng.randrange(PAGES) * PAGE_BYTES
        done_us = again.flash.submit(resumed_us, "write", offset, PAGE_BYTES)
        expected_us = drive.flash.submit(own_us, "write", offset, PAGE_BYTES)
        assert done_us - resumed_us == pytest.approx(expected_us - own_us, abs=0.01)
        resumed_us, own_us = done_us, expected_us
    assert again.flash.counters() == drive.flash.counters()


def test_a_calendar_set_back_counts_as_no_pause() -> None:
    drive = used()
    assert load(drive.file(), now_us=drive.now_us, wall_s=0.0).flash.dump() == drive.flash.dump()


@pytest.mark.parametrize(
    "change",
    [
        lambda file: b"",
        lambda file: bytes(4),
        lambda file: file[:-1],
        lambda file: file[: len(file) // 2],
        lambda file: file + b"\0",
        lambda file: file.replace(b'"format": 2', b'"format": 1'),
        lambda file: file[:-5000] + bytes([file[-5000] ^ 1]) + file[-4999:],
    ],
    ids=["empty", "zeros", "short by a byte", "half", "long", "another format", "a flipped bit"],
)
def test_a_damaged_file_is_refused_and_loads_no_data(change: Callable[[bytes], bytes]) -> None:
    data = bytearray(MODEL.capacity_bytes)
    with pytest.raises(ValueError):  # noqa: PT011
        kept_state.load(change(used().file()), MODEL, memoryview(data), 5e9, WALL_S)
    assert not any(data)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_flipped_bit_is_detected(data: st.DataObject) -> None:
    file = bytearray(FILE)
    at = data.draw(st.integers(0, len(file) - 1))
    file[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError):  # noqa: PT011
        load(bytes(file))


FILE = used().file()


def test_another_format_with_a_correct_checksum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_state, "_FORMAT", 3)
    file = used().file()
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format is not 2"):
        load(file)


@pytest.mark.parametrize("change", [{"serial": "OTHER"}, {"over_provisioning": 0.5}, {"capacity_bytes": 2 << 20}])
def test_another_model_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="another model"):
        load(FILE, replace(MODEL, **change))  # type: ignore[arg-type]


def test_write_and_read(tmp_path: Path) -> None:
    file, drive = kept_state.kept_file(tmp_path, "x"), used()
    assert file == tmp_path / "x.flash"
    kept_state.write(file, drive.flash, memoryview(drive.data), drive.now_us)
    assert [path.name for path in tmp_path.iterdir()] == ["x.flash"]
    again = Drive()
    flash = kept_state.read(file, MODEL, memoryview(again.data), drive.now_us)
    assert flash is not None
    assert (flash.counters(), again.data) == (drive.flash.counters(), drive.data)
    assert kept_state.read(file, replace(MODEL, serial="OTHER"), memoryview(again.data), 0.0) is None
    assert kept_state.read(tmp_path / "none", MODEL, memoryview(again.data), 0.0) is None


def test_a_failed_write_keeps_only_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, drive = kept_state.kept_file(tmp_path, "x"), used()
    file.write_bytes(b"old")

    def full(*_: object) -> list[bytes]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_state, "dump", full)
    with pytest.raises(OSError, match="No space"):
        kept_state.write(file, drive.flash, memoryview(drive.data), drive.now_us)
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.flash"]


def test_discard_also_removes_a_partial_file(tmp_path: Path) -> None:
    file = kept_state.kept_file(tmp_path, "x")
    for name in ("x.flash", "x.flash.part", "y.flash"):
        (tmp_path / name).write_bytes(b"")
    kept_state.discard(file)
    kept_state.discard(file)
    assert [path.name for path in tmp_path.iterdir()] == ["y.flash"]
