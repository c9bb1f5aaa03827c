"""Traces a drive with the project's own back ends while fio, dd and blkdiscard make requests of every kind.

Argument: path of the drive. Leaves the raw files and fio's JSON in /tmp/trace.tar, and the pages of ftrace's ring as
the kernel gave them in /tmp/ring.tar: there is no numpy here to convert them. Prints JSON: what blktrace lost, what
was lost when it was killed, and what by the capture after that.
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
from drivelab.trace.blktrace import Blktrace
from drivelab.trace.capturing.disk import Disk
from drivelab.trace.ftrace import Ftrace

disk = Disk(Path(sys.argv[1]).resolve().name)
queue = Path(f"/sys/class/block/{disk.name}/queue")
output = Path("/tmp/trace")


def dd(*arguments: str) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={disk.device}", *arguments], check=True, capture_output=True)


def settle() -> None:
    """Wait for the last requests: udev reads a drive again when those who wrote to it have closed it."""
    subprocess.run(["udevadm", "settle"], check=True)
    disk.settle()


def work(folder: Path) -> None:
    """600 reads and writes with flushes, one discard, 2 MiB of pages that merge, 2 MiB in pieces of 64 KiB."""
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
    """Kinds of losses of a capture."""
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
    """Trace with ftrace, and keep the ring's pages in the place of records."""
    folder.mkdir()
    facts: dict[str, object] = {"number": disk.number}

    class Kept(types.ModuleType):
        DamagedError = ValueError

        @staticmethod
        def page_bytes(text: str) -> int:
            found = re.search(r"char data;\s*offset:(\d+);\s*size:(\d+);", text)
            assert found is not None
            facts["page_bytes"] = int(found[1]) + int(found[2])
            return int(found[1]) + int(found[2])

        @staticmethod
        def convert(source: Path, size: int, device: int, out: object) -> types.SimpleNamespace:
            shutil.copy(source, source.with_name(f"pages.{source.name.rpartition('.')[2]}"))
            counted = ("events", "completions", "empty_completions", "empty_queued", "missed", "entries")
            return types.SimpleNamespace(**dict.fromkeys(counted, 0))

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
    facts["processes"] = {str(pid): name for pid, name in backend.processes().items()}
    (folder / "capture.json").write_text(json.dumps(facts))


lost = [trace(output), trace(Path("/tmp/killed"), kill=True), trace(Path("/tmp/again"))]
subprocess.run(["tar", "-cf", "/tmp/trace.tar", "-C", str(output), "."], check=True)
keep_pages(Path("/tmp/ring"))
subprocess.run(["tar", "-cf", "/tmp/ring.tar", "-C", "/tmp/ring", "."], check=True)
print(json.dumps(lost))
