"""Quick looks on real files and devices: what they leave, what they touch, and what they refuse."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from loops import image, looped, mounted
from waits import wait_until

from drivelab.campaign.planning import Campaign
from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.plan.drive_sheet import SheetRow
from drivelab.run import guest

MIB = 1 << 20
RUN = """
import sys
from pathlib import Path
import drivelab.cli.start.quick as quick
from drivelab.cli.main import main
quick.project_or_home = lambda: Path(sys.argv[1])
sys.exit(main(["quick", *sys.argv[2:]]))
"""
"""A quick look in a project of the test, as a process to kill."""


@pytest.fixture
def short(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose quick looks take seconds: one round without a warm-up."""
    monkeypatch.setattr("drivelab.cli.start.quick.project_or_home", lambda: project)
    for name in ("quick", "quick-reads"):
        path = project / f"config/protocols/{name}.yaml"
        text = path.read_text().replace("cold_rounds: 1", "cold_rounds: 0").replace("runtime: 2s", "runtime: 200ms")
        text = text.replace("relative_standard_error: {threshold: 2%, metric: iops}", "rounds: 1")
        text = text.replace("runtime: 5s", "runtime: 200ms").replace("time: 15s", "time: 100ms")
        path.write_text(text.replace("time: 60s", "time: 2s"))
    return project


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "my data"
    folder.mkdir()
    (folder / "letter.txt").write_text("Dear Sir")
    return folder


def nameless_bytes(folder: Path) -> int:
    """Return the bytes of the files without a name in a folder, which live as long as a process has them open."""
    found = {}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # the process has ended, or is another user's
            if link.readlink().parent == folder and (about := link.stat()).st_nlink == 0:
                found[about.st_ino] = about.st_blocks * 512
    return sum(found.values())


def test_a_folder_keeps_what_is_in_it(
    short: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivelab.quick.session.disturbances", lambda disks: ("the machine is busy",))
    assert main(["quick", str(folder), "--size", "32MiB", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    (place,) = result["places"]
    busy, *_, rough = result["warnings"]
    assert busy.startswith("The machine is busy. ")
    assert "he test file has only 32 MiB" in rough
    assert "The machine is busy. " in (short / result["page"]).read_text()
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]
    assert (folder / "letter.txt").read_text() == "Dear Sir"
    assert len(place["values"]) == 10
    assert all(value["value"] > 0 for value in place["values"])
    assert place["sustained_write"]["written_bytes"] > 0
    recording = short / "results/quick/recordings" / place["recording"]
    (sustained,) = recording.glob("cells/*-soak-part1/job.fio")
    assert "time_based=1\n" in sustained.read_text(), "fio must begin again at the end of the file"
    commit = next(path for path in recording.glob("cells/*/job.fio") if "sync=sync" in path.read_text())
    assert "file_append=1" in commit.read_text()
    identity = json.loads((recording / "identity.json").read_text())
    assert identity["kind"] == "file"
    assert identity["capacity_bytes"] == 32 * MIB
    for path in recording.glob("cells/*/job.fio"):
        job = path.read_text()
        assert job.startswith(f"# {folder} (file ")
        assert "filename=/proc/self/fd/" in job  # no name that anything else could have


def test_a_killed_look_leaves_nothing(short: Path, folder: Path) -> None:
    command = [sys.executable, "-c", RUN, str(short), str(folder), "--size", "128MiB"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        parts = short / "results/quick/recordings"
        wait_until(lambda: any(parts.glob("*/*/*.part/cells/*/job.fio")), process)
        assert nameless_bytes(folder) > 100 * MIB
        process.send_signal(signal.SIGKILL)
    # fio dies with its parent, and the kernel frees a file without a name when its last user ends.
    wait_until(lambda: nameless_bytes(folder) == 0)
    assert [path.name for path in folder.iterdir()] == ["letter.txt"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A loop device over a file of random data."""
    file = tmp_path / "disk.img"
    file.write_bytes(os.urandom(32 * MIB))
    with looped(file) as device:
        yield device, file


def test_a_device_is_only_read(short: Path, disk: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    device, image = disk
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    written = Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[6]
    assert main(["quick", device, "--size", "16MiB", "--json"]) == 0
    (place,) = json.loads(capsys.readouterr().out)["places"]
    assert place["measurement"].startswith("quick-reads")
    assert "not purged" in place["labels"]
    assert hashlib.sha256(image.read_bytes()).hexdigest() == digest
    assert Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[6] == written
    recording = short / "results/quick/recordings" / place["recording"]
    assert all("--readonly" in path.read_text() for path in recording.glob("cells/*/command"))
    assert all(f"size={16 * MIB}\n" in path.read_text() for path in recording.glob("cells/*/job.fio"))


@pytest.fixture
def memory() -> Iterator[str]:
    """A new zram device with random data."""
    control = Path("/sys/class/zram-control")
    if not os.access(control / "hot_remove", os.W_OK):
        pytest.skip("no zram device can be made and removed")
    number = (control / "hot_add").read_text().strip()
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(str(32 * MIB))
        device = f"/dev/zram{number}"
        wait_until(lambda: os.access(device, os.W_OK))
        Path(device).write_bytes(os.urandom(32 * MIB))
        yield device
    finally:
        (control / "hot_remove").write_text(number)


def test_a_device_in_memory_is_no_drive(short: Path, memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quick", memory, "--size", "16MiB", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    (place,) = result["places"]
    assert place["class"] == "memory"
    assert any(warning.startswith("This place is memory, not a drive. ") for warning in result["warnings"])
    assert place["measurement"].startswith("quick-reads")
    assert len(place["values"]) == 4


def test_a_study_never_writes_to_a_device_that_is_listed_for_reading(
    short: Path, disk: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    device, image = disk
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    serial = guest.identifier(Path(device).name)
    (short / "config/own.tsv").write_text(
        f"drive\tdevice\tserial\tdestructive\tnote\tkind\nx\t{device}\t{serial}\tyes\t\tread-only\n"
    )
    (short / "config/own.yaml").write_text(
        "name: own\ndrives: [x]\ndrives_sheet: config/own.tsv\nmeasurements: [{protocol: quick}]\n"
    )
    with pytest.raises(UserError, match="the protocol writes, and the sheet lists this device for reading only"):
        Campaign.load("config/own.yaml")
    assert hashlib.sha256(image.read_bytes()).hexdigest() == digest


def row(folder: Path, **fields: object) -> SheetRow:
    values = {"drive": "x", "device": str(folder), "serial": guest.file_system(folder, "x"), "destructive": False,
              "note": "", "source": "sheet line 2", "kind": "file", "size_bytes": 16 * MIB}  # fmt: skip
    return SheetRow(**{**values, **fields})  # type: ignore[arg-type]


def test_a_folder_on_another_file_system_is_refused(folder: Path) -> None:
    with (
        pytest.raises(UserError, match=r"is on file system .*Perhaps the right file system is not mounted"),
        guest.opened(row(folder, serial="another")),
    ):
        pass


def test_space_is_left_on_a_small_file_system(tmp_path: Path) -> None:
    """A file system of 64 MiB has room for a file of 16 MiB and its appends, and not for one of 48 MiB."""
    with looped(image(tmp_path / "small.img", 64)) as device, mounted(device, tmp_path / "mounted") as folder:
        with guest.opened(row(folder)) as opened:
            assert opened.capacity_bytes == 16 * MIB
            assert os.fstat(opened.descriptor).st_nlink == 0
        with (
            pytest.raises(UserError, match="a file of 48 MiB leaves too little space"),
            guest.opened(row(folder, size_bytes=48 * MIB)),
        ):
            pass


def test_without_nameless_files_the_file_loses_its_name_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS and FUSE have no O_TMPFILE."""
    real = os.open

    def without(path: object, flags: int, *args: object, **options: object) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return real(path, flags, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", without)
    descriptor = guest.nameless(folder, "x")
    try:
        assert os.write(descriptor, b"x") == 1
        assert os.fstat(descriptor).st_nlink == 0
        assert [path.name for path in folder.iterdir()] == ["letter.txt"]
    finally:
        os.close(descriptor)
