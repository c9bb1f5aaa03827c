"""Measure time and memory to prepare a replay.

    python tests/benchmarks/prepare_rate.py [REQUESTS]

The trace is the synthetic one of characterise_rate.py: random and sequential accesses to 1 TiB with merges and flushes.
It is prepared for a drive that it fits, for a drive of a quarter of the size, and with all computations: the trace's
own depth, the order of processes, compaction.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from characterise_rate import CAPACITY_BYTES, write_trace

from drivelab.plan.replay_choice import MappingChoice, ReplayChoice, TimingChoice
from drivelab.replay.prepare import prepare

CHOICES = {
    "original, exact": (ReplayChoice(), CAPACITY_BYTES * 2),
    "original, modulo": (ReplayChoice(), CAPACITY_BYTES // 4),
    "as soon as possible, compact, in order of the trace": (
        ReplayChoice(TimingChoice("asap"), MappingChoice("compact", gap_bytes=0), "trace"),
        CAPACITY_BYTES,
    ),
}


def measure(path: Path, name: str) -> None:
    """Prepare in a separate process, to measure its peak memory alone."""
    choice, capacity_bytes = CHOICES[name]
    began_s = time.perf_counter()
    prepared = prepare(path, path.with_name("prepared"), choice, capacity_bytes, 4096)
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
        for name in CHOICES:
            subprocess.run([sys.executable, __file__, "--measure", str(path), name], check=True)
            for file in Path(folder).glob("prepared*"):  # replacing it takes time
                file.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), sys.argv[3])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
