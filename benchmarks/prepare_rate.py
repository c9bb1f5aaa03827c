"""Measure time and memory to prepare a replay.

    python benchmarks/prepare_rate.py [REQUESTS]

The synthetic trace has 8 sequential streams among skewed random accesses to 1 TiB, 4 KiB to 256 KiB, in bursts, with
flushes, discards, merges, and completions out of order. It is prepared for a drive that it fits, and for a drive of a
quarter of the size.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay.prepare import prepare
from drivelab.trace.parquet_schema import BATCH_ROWS, FLAGS, OPERATIONS, REQUESTS, TraceWriter

CAPACITY_BYTES = 1 << 40
SIZES_BYTES = np.array([4, 8, 16, 32, 64, 128, 256], np.int64) << 10
SIZE_SHARES = (0.55, 0.12, 0.1, 0.08, 0.07, 0.05, 0.03)
STREAMS = 8
CAPACITIES_BYTES = {
    "exact": CAPACITY_BYTES * 2,
    "modulo": CAPACITY_BYTES // 4,
}


def write_trace(path: Path, requests: int) -> None:
    random, now_ns, written = np.random.default_rng(1), 0, 0
    heads = random.integers(0, CAPACITY_BYTES >> 21, STREAMS) << 20
    with TraceWriter(path) as writer:
        while written < requests:
            rows = min(BATCH_ROWS, requests - written)
            queue_ns = now_ns + np.cumsum(
                np.where(random.random(rows) < 0.02, 2_000_000, random.integers(0, 8000, rows))
            )
            operation = random.choice(4, rows, p=(0.57, 0.4, 0.02, 0.01)).astype(np.int8)
            length = random.choice(SIZES_BYTES, rows, p=SIZE_SHARES)
            skewed = (CAPACITY_BYTES >> 12) * random.random(rows) ** 6
            offset = skewed.astype(np.int64) << 12
            stream = random.integers(0, STREAMS, rows)
            for number in range(STREAMS):
                chosen = np.flatnonzero((stream == number) & (random.random(rows) < 0.3) & (operation == number % 2))
                offset[chosen] = heads[number] + np.cumsum(length[chosen]) - length[chosen]
                heads[number] = (heads[number] + length[chosen].sum()) % (CAPACITY_BYTES >> 1)
            flush = operation == OPERATIONS.index("flush")
            offset[flush] = length[flush] = 0
            dispatch_id = written + np.arange(rows) // 2 * 2 * (random.random(rows) < 0.1)
            dispatch_id = np.where(dispatch_id == written, written + np.arange(rows), dispatch_id)
            dispatch_ns = queue_ns + random.integers(1000, 9000, rows)
            table = {
                "queue_ns": queue_ns,
                "dispatch_ns": dispatch_ns,
                "complete_ns": dispatch_ns + random.gamma(2.0, 60_000, rows).astype(np.int64),
                "operation": pa.DictionaryArray.from_arrays(operation, list(OPERATIONS)),
                **{flag: random.random(rows) < 0.1 for flag in FLAGS},
                "offset_bytes": offset,
                "length_bytes": length,
                "process": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["made"]),
                "pid": np.ones(rows, np.int32),
                "cpu": np.zeros(rows, np.int32),
                "error": np.zeros(rows, np.int32),
                "dispatch_id": dispatch_id,
                "pieces": np.ones(rows, np.int32),
                "requeues": np.zeros(rows, np.int32),
            }
            writer.write(pa.table(table, schema=REQUESTS))
            written, now_ns = written + rows, int(queue_ns[-1])
        writer.finish(
            {"application": "synthetic", "backend": "benchmark", "lost": {}, "capacity_bytes": CAPACITY_BYTES}
        )


def measure(path: Path, name: str) -> None:
    """Prepare in a separate process, to measure its peak memory alone."""
    began_s = time.perf_counter()
    prepared = prepare(path, path.with_name("prepared"), ReplayChoice(), CAPACITIES_BYTES[name], 4096)
    elapsed_s = time.perf_counter() - began_s
    used = resource.getrusage(resource.RUSAGE_SELF)
    requests = prepared.mapping.requests_in_trace
    schedule_mib, rows_mib = (file.stat().st_size / 2**20 for file in (prepared.schedule, prepared.planned))
    print(
        f"{name}: {requests:,} requests to {prepared.requests:,} records in {elapsed_s:.1f} s "
        f"({requests / elapsed_s:,.0f} per second), {used.ru_utime + used.ru_stime:.1f} s of CPU, "
        f"{used.ru_maxrss / 1024:.0f} MiB peak; {schedule_mib:.0f} MiB of schedule, {rows_mib:.0f} MiB of rows"
    )


def main(requests: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.parquet"
        write_trace(path, requests)
        for name in CAPACITIES_BYTES:
            subprocess.run([sys.executable, __file__, "--measure", str(path), name], check=True)
            for file in Path(folder).glob("prepared*"):  # replacing it takes time
                file.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), sys.argv[3])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
