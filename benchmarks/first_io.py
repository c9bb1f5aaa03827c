"""Compare the time to fio's first I/O: from the start of fio, and from the release of a prepared fio.

Usage: sudo python benchmarks/first_io.py [PAIRS]   (default 10)
Each pair runs the same job on a loop device over a file in memory; the device's counter shows the first I/O. The bar:
a released fio needs at most a tenth of the time, in the median of the pairs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from drivelab.fio.job import job_text
from drivelab.fio.job_run import choose_engine, prepare, run_fio
from drivelab.plan.cell import Cell

SIZE = 1 << 26
CELL = Cell("random", 100, 4096, threads=1, queue_depth=4, runtime_s=0.5, rate_iops=2000.0)
LIMIT_S = 30.0


def reads(device: str) -> str:
    return Path("/sys/class/block", Path(device).name, "stat").read_text().split()[0]


def first_io_s(device: str, job: str, *, is_prepared: bool) -> float:
    """Return the seconds from start or release to the first I/O."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fio = prepare(job, folder, device) if is_prepared else None
        if fio is not None and not fio.is_held(LIMIT_S):
            raise SystemExit("the prepared fio is not held")
        before, seen_s = reads(device), 0.0

        def watch() -> None:
            nonlocal seen_s
            while reads(device) == before:
                time.sleep(50e-6)
            seen_s = time.monotonic()

        thread = threading.Thread(target=watch)
        thread.start()
        timing = run_fio(None, job, folder, runtime_s=CELL.runtime_s, prepared=fio)
        thread.join()
        return seen_s - timing.started_s


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.truncate(SIZE)
        device = subprocess.run(
            ["losetup", "--find", "--show", file.name], check=True, capture_output=True, text=True
        ).stdout.strip()
        try:
            job = job_text(CELL, device, choose_engine(device, device), SIZE, 512, 7)
            times = [[first_io_s(device, job, is_prepared=way) for way in (False, True)] for _ in range(pairs)]
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)
    started_ms, released_ms = (1000 * statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(released / started for started, released in times)
    print(f"{pairs} pairs: first I/O {started_ms:.1f} ms after a start, {released_ms:.2f} ms after a release")
    print(f"median ratio {ratio:.4f}")
    return 0 if ratio <= 0.1 else 1


if __name__ == "__main__":
    sys.exit(main())
