"""Measure the conversion of fio's logs of single I/Os to Parquet, against pandas.

    python tests/benchmarks/io_log_rate.py [ROWS [TURNS]]      (default 10 million rows, 2 turns)

The log has an offset in each line (`log_offset`). It was just written, so it is read from memory. Each conversion is a
separate process, pinned to one CPU, with one Arrow thread; drivelab and pandas take turns. Time is CPU time of the
process with kernel work, so other load hardly matters. Memory is the largest resident set. pandas reads the whole file
and writes it with its defaults. The bars: 2.5 million rows per second and 400 MiB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

BAR_ROWS_S = 2.5e6
BAR_MIB = 400
CHUNK = 1 << 18
COMMON = """
import json, resource, sys, time
from pathlib import Path
import pyarrow as pa
pa.set_cpu_count(1)
pa.set_io_thread_count(1)
path, output = Path(sys.argv[1]), Path(sys.argv[2])
"""
OURS = """
from drivelab.imported.fio_log import convert
began = time.process_time()
rows = convert(path, output).rows
"""
PANDAS = """
import pandas as pd
began = time.process_time()
names = ["time_ms", "latency_ns", "direction", "block_size_bytes", "offset_bytes", "priority"]
frame = pd.read_csv(path, names=names, skipinitialspace=True)
frame.to_parquet(output)
rows = len(frame)
"""
REPORT = """
seconds = time.process_time() - began
print(json.dumps([rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def generate(path: Path, rows: int) -> None:
    """Write a log of random 4 KiB I/Os, 70 % reads, at 200 k IOPS."""
    random = np.random.default_rng(1)
    with path.open("w") as file:
        for begin in range(0, rows, CHUNK):
            count = min(CHUNK, rows - begin)
            columns = (
                (np.arange(begin, begin + count) // 200).tolist(),
                random.lognormal(11.3, 0.6, count).astype(int).tolist(),
                (random.random(count) < 0.3).astype(int).tolist(),
                (random.integers(0, 1 << 28, count) * 4096).tolist(),
            )
            file.write("".join(f"{t}, {v}, {d}, 4096, {o}, 0\n" for t, v, d, o in zip(*columns, strict=True)))


def measure(program: str, path: Path) -> tuple[int, float, float]:
    """Convert in a separate process; return rows, CPU seconds and peak MiB."""
    cpu = str(min(os.sched_getaffinity(0)))
    script = COMMON + program + REPORT
    command = ["taskset", "-c", cpu, sys.executable, "-c", script, str(path), str(path.with_suffix(".parquet"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, seconds, peak_mib = json.loads(done.stdout)
    return rows, seconds, peak_mib


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    rates, peaks, faster, smaller = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job_lat.1.log"
        generate(path, rows)
        print(f"{rows} rows, {path.stat().st_size / 1e6:.0f} MB")
        for _ in range(turns):
            converted, seconds, peak_mib = measure(OURS, path)
            assert converted == rows
            size_mb = path.with_suffix(".parquet").stat().st_size / 1e6
            _, theirs_s, theirs_mib = measure(PANDAS, path)
            rates.append(rows / seconds)
            peaks.append(peak_mib)
            faster.append(theirs_s / seconds)
            smaller.append(theirs_mib / peak_mib)
    print(
        f"{median(rates) / 1e6:.2f} M rows/s of CPU, peak {median(peaks):.0f} MiB, Parquet of {size_mb:.0f} MB; pandas "
        f"takes {median(faster):.1f} times the time and {median(smaller):.1f} times the memory"
    )
    good = median(rates) >= BAR_ROWS_S and median(peaks) < BAR_MIB
    print(f"at least {BAR_ROWS_S / 1e6:g} M rows/s in less than {BAR_MIB} MiB:", "yes" if good else "NO")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
