"""Trace a drive with drivelab's back ends while fio, dd and blkdiscard make requests of every kind.

Argument: path of the drive. Writes the raw files and fio's JSON to /tmp/trace.tar, and the unconverted pages of
ftrace's ring to /tmp/ring.tar, because the guest has no numpy to convert them. Prints JSON: the losses of blktrace, of
a killed blktrace, and of the capture after that.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

from drivelab.trace import capturing
from drivelab.trace.capturing import blktrace
from drivelab.trace.capturing.blktrace import Blktrace
from drivelab.trace.capturing.disk import Disk
from drivelab.trace.capturing.ftrace import Ftrace

disk = Disk(Path(sys.argv[1]).resolve().name)
queue = Path(f"/sys/class/block/{disk.name}/queue")
output = Path("/tmp/trace")
blktrace.START_S = 120.0  # this machine may be very slow


def dd(*arguments: str) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={disk.device}", *arguments], check=True, capture_output=True)


def settle() -> None:
    """Wait for the last requests, because udev rereads a drive when its writers have closed it."""
    subprocess.run(["udevadm", "settle"], check=True)
    disk.settle()


def work(folder: Path) -> None:
    """Make 600 reads and writes with flushes, a discard, 2 MiB of merging pages, and 2 MiB in 64 KiB pieces."""
    subprocess.run(
        ["fio", "--name=mix", f"--filename={disk.device}", "--rw=randrw", "--bs=4k", "--direct=1", "--ioengine=libaio",
         "--iodepth=4", "--number_ios=600", "--size=8M", "--fsync=100", "--thread", "--output-format=json",
         f"--output={folder}/fio.json"],
        check=True,
    )  # fmt: skip
    subprocess.run(["blkdiscard", "--offset=8MiB", "--length=1MiB", disk.device], check=True)
    dd("bs=1M", "count=2", "seek=16", "conv=fsync,notrunc")
    before = (queue / "max_sectors_kb").read_text()
    (queue / "max_sectors_kb").write_text("64")
    dd("bs=1M", "count=2", "seek=24", "oflag=direct", "conv=notrunc")
    (queue / "max_sectors_kb").write_text(before)


def trace(folder: Path, *, kill: bool = False) -> dict[str, int]:
    """Capture the work; return the losses by kind."""
    folder.mkdir()
    backend = Blktrace(disk, folder / "trace")
    backend.start()
    try:
        if kill:
            assert backend._process is not None
            backend._process.kill()
        work(folder)
        settle()
        lost = backend.stop()
    finally:
        backend.abandon()
    return {kind: count for kind, count in lost.items() if count}


def keep_pages(folder: Path) -> None:
    """Trace with ftrace, and keep the ring's pages instead of records."""
    folder.mkdir()
    facts: dict[str, object] = {"number": disk.number}

    class Kept(types.ModuleType):
        DamagedError = ValueError

        @staticmethod
        def page_bytes(text: str) -> int:
            match = re.search(r"char data;\s*offset:(\d+);\s*size:(\d+);", text)
            assert match is not None
            facts["page_bytes"] = int(match[1]) + int(match[2])
            return int(match[1]) + int(match[2])

        @staticmethod
        def convert(source: Path, size: int, device: int, out: object) -> tuple[int, int]:
            shutil.copy(source, source.with_name(f"pages.{source.name.rpartition('.')[2]}"))
            return 0, 0

    capturing.ring = Kept("ring")  # type: ignore[attr-defined]
    subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=False, capture_output=True)
    backend = Ftrace(disk, folder / "trace")
    backend.start()
    try:
        work(folder)
        settle()
        facts["lost"] = {kind: count for kind, count in backend.stop().items() if count and kind != "read_by_others"}
    finally:
        backend.abandon()
    facts["processes"] = {str(pid): name for pid, name in backend.processes.items()}
    (folder / "capture.json").write_text(json.dumps(facts))


lost = [trace(output), trace(Path("/tmp/killed"), kill=True), trace(Path("/tmp/again"))]
subprocess.run(["tar", "-cf", "/tmp/trace.tar", "-C", str(output), "."], check=True)
keep_pages(Path("/tmp/ring"))
subprocess.run(["tar", "-cf", "/tmp/ring.tar", "-C", "/tmp/ring", "."], check=True)
print(json.dumps(lost))
