"""Measure the import rate of trace formats on one core, and the peak memory.

    python benchmarks/import_rate.py [ROWS [FORMAT …]]      (default 3 million rows, all formats)

A separate process, pinned to one CPU with one Arrow thread, imports each format to Parquet. The file was just written,
so it is read from memory. Time is CPU time of the process, with all threads and kernel work, so other load hardly
matters. The bar: 3 million rows per second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

BAR_ROWS_S = 3e6
CHUNK = 1 << 18
Columns = tuple[list[int], list[bool], list[int], list[int], list[int]]
"""Time in us, read or not, offset in sectors, length in sectors, response time in us."""

LINES: dict[str, Callable[..., str]] = {
    "msr": lambda t, r, o, n, w: (
        f"{128166372003061629 + 10 * t},usr,0,{'Read' if r else 'Write'},{o * 512},{n * 512},{w * 10}\n"
    ),
    "spc": lambda t, r, o, n, w: f"0,{o},{n * 512},{'r' if r else 'w'},{t // 10**6}.{t % 10**6:06d}\n",
    "fiu": lambda t, r, o, n, w: f"{t * 1000} 20782 gzip {o} {n} {'R' if r else 'W'} 6 0 {o:032x}\n",
    "alibaba": lambda t, r, o, n, w: f"419,{'R' if r else 'W'},{o * 512},{n * 512},{1577808144360767 + t}\n",
    "tencent": lambda t, r, o, n, w: f"{1538323199 + t // 10**6},{o},{n},{0 if r else 1},2313\n",
    "systor17": lambda t, r, o, n, w: (
        f"{1456095145 + t // 10**6}.{t % 10**6:06d}000,0.{w:06d}000,{'R' if r else 'W'},0,{o * 512},{n * 512}\n"
    ),
}
CHILD = """
import json, resource, sys, time
from pathlib import Path
import pyarrow as pa
pa.set_cpu_count(1)
pa.set_io_thread_count(1)
from drivelab.trace.formats.common.importing import import_trace
began = time.process_time()
rows = import_trace(Path(sys.argv[1]), Path(sys.argv[2]), format_name=sys.argv[3]).rows
seconds = time.process_time() - began
print(json.dumps([rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def requests(rows: int) -> Iterator[Columns]:
    """Yield random requests in time order."""
    random = np.random.default_rng(1)
    now = 0
    for begin in range(0, rows, CHUNK):
        count = min(CHUNK, rows - begin)
        times = now + np.cumsum(random.integers(0, 1000, count))
        now = int(times[-1])
        yield (
            times.tolist(),
            (random.random(count) < 0.7).tolist(),
            random.integers(0, 1 << 31, count).tolist(),
            random.choice([8, 16, 128], count).tolist(),
            random.integers(50, 100_000, count).tolist(),
        )


def generate(path: Path, name: str, rows: int) -> None:
    """Write a file of that format."""
    line = LINES[name]
    with path.open("w") as file:
        for columns in requests(rows):
            file.write("".join(map(line, *columns)))


def measure(path: Path, name: str) -> tuple[int, float, float]:
    """Import in a separate process; return rows, CPU seconds and peak MB."""
    cpu = str(min(os.sched_getaffinity(0)))
    command = ["taskset", "-c", cpu, sys.executable, "-c", CHILD, str(path), str(path.with_suffix(".parquet")), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, seconds, peak_kib = json.loads(done.stdout)
    return rows, seconds, peak_kib / 1024


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
    slow = []
    for name in sys.argv[2:] or LINES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace"
            generate(path, name, rows)
            imported, seconds, peak_mb = measure(path, name)
            size_mb = path.stat().st_size / 1e6
        assert imported == rows
        rate = rows / seconds
        print(
            f"{name}: {rows} rows ({size_mb:.0f} MB) in {seconds:.2f} s of CPU: {rate / 1e6:.2f} M rows/s, "
            f"peak {peak_mb:.0f} MiB"
        )
        if rate < BAR_ROWS_S:
            slow.append(name)
    print("at least 3 M rows/s:", f"NO: {', '.join(slow)}" if slow else "yes")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
