"""Measure the IOPS ceiling of a virtual drive's server, and its memory.

Run as root: PYTHONPATH=scripts python tests/benchmarks/virtual_ceiling.py [SECONDS [REPEATS]]
The time model is off for the ceiling. With the model on, it also prints how exactly a read of 75 us is timed.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

ENGINE = "libaio"
BASE = {"serial": "CEILING", "capacity": "64MiB", "over_provisioning": "28%", "slc_cache": "0B"}


def fio(device: str, pattern: str, depth: int, seconds: float) -> dict[str, Any]:
    """Run fio with 4 KiB I/Os; return the JSON of the direction."""
    command = ["fio", "--name=ceiling", f"--filename={device}", "--direct=1", f"--ioengine={ENGINE}", f"--rw={pattern}",
               "--bs=4k", f"--iodepth={depth}", f"--runtime={seconds}", "--time_based", "--lat_percentiles=1",
               "--output-format=json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    part: dict[str, Any] = json.loads(done.stdout)["jobs"][0]["read" if pattern == "randread" else "write"]
    return part


def memory_mib(pid: int) -> float:
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) / 1024


def ceiling(seconds: float, repeats: int) -> None:
    drive = manage.start("ceiling", DriveModel.from_mapping("ceiling", {**BASE, "enabled": False}))
    try:
        for depth in (1, 32):
            for pattern in ("randread", "randwrite"):
                rates = [fio(drive.device, pattern, depth, seconds)["iops"] for _ in range(repeats)]
                middle = statistics.median(rates)
                print(f"{pattern:9} depth {depth:2}: median {middle:.0f} IOPS, {min(rates):.0f} to {max(rates):.0f}")
        print(f"memory of the server: {memory_mib(drive.pid):.0f} MiB resident")
    finally:
        manage.stop("ceiling")


def accuracy(seconds: float, repeats: int) -> None:
    times = {"read_us": 75, "command_us": 0, "transfer_us": 0}
    drive = manage.start("accuracy", DriveModel.from_mapping("accuracy", {**BASE, **times}))
    try:
        # Reading an unwritten page does not access the flash.
        subprocess.run(["fio", "--name=fill", f"--filename={drive.device}", "--direct=1", "--rw=write", "--bs=128k"],
                       capture_output=True, check=True)  # fmt: skip
        for _ in range(repeats):
            percentiles = fio(drive.device, "randread", 1, seconds)["lat_ns"]["percentile"]
            p50, p99 = percentiles["50.000000"] / 1000, percentiles["99.000000"] / 1000
            print(f"read of 75 us: p50 {p50:.0f} us, p99 {p99:.0f} us")
    finally:
        manage.stop("accuracy")


if __name__ == "__main__":
    duration_s = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print("processors:", os.cpu_count(), "load:", *os.getloadavg())
    with tempfile.TemporaryDirectory() as directory:
        os.environ["DRIVELAB_RUN_DIR"] = directory
        ceiling(duration_s, count)
        accuracy(duration_s, count)
