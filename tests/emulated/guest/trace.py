"""Traces a drive with the project's own blktrace back end while fio reads, writes and flushes and blkdiscard discards.

Argument: path of the drive. Leaves the raw files and fio's JSON in /tmp/trace.tar, prints what was lost as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from drivelab.trace.blktrace import Blktrace


def settle(name: str) -> None:
    """Wait for the last requests: udev reads a drive again when those who wrote to it have closed it."""
    subprocess.run(["udevadm", "settle"], check=True)
    while any(map(int, Path(f"/sys/class/block/{name}/inflight").read_text().split())):
        time.sleep(0.01)


device = str(Path(sys.argv[1]).resolve())
output = Path("/tmp/trace")
output.mkdir()
backend = Blktrace(device, output / "trace")
backend.start()
try:
    subprocess.run(
        ["fio", "--name=mix", f"--filename={device}", "--rw=randrw", "--bs=4k", "--direct=1", "--ioengine=libaio",
         "--iodepth=4", "--number_ios=600", "--size=8M", "--fsync=100", "--thread", "--output-format=json",
         f"--output={output}/fio.json"],
        check=True,
    )  # fmt: skip
    subprocess.run(["blkdiscard", "--offset=8MiB", "--length=1MiB", device], check=True)
    settle(Path(device).name)
    lost = backend.stop()
finally:
    backend.abandon()
subprocess.run(["tar", "-cf", "/tmp/trace.tar", "-C", str(output), "."], check=True)
print(json.dumps({kind: count for kind, count in lost.items() if count}))
