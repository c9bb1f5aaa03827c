"""Measure time and memory to evaluate a replay on one core.

    python tests/benchmarks/replay_report_rate.py [REQUESTS]

Writes a synthetic plan and engine results to a temporary folder first. Then joins them to an outcome, and makes report
and tables, each in a separate process.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.replay.engine_records import COMPLETED, FINISHED, RESULT_RECORD, RESULTS_HEADER, make_results
from drivelab.replay.planner import PLANNED, PlannedWriter
from drivelab.trace.parquet_schema import BATCH_ROWS, OPERATIONS

PREPARED: dict[str, Any] = {
    "choice": {"timing": {"mode": "original"}, "mapping": {"method": "auto"}, "dependencies": "none"},
    "mapping": {"method": "exact"}, "trace_duration_s": 1.0, "issue_span_s": 1.0, "lost": 0,
}  # fmt: skip
PROCESSES = [f"process-{number}" for number in range(200)]


def write_synthetic(folder: Path, requests: int) -> None:
    random, written, now_ns = np.random.default_rng(1), 0, 0
    make_results(folder / "results.bin", requests, 1)
    with PlannedWriter(folder / "planned.parquet") as writer, (folder / "results.bin").open("r+b") as results:
        header = np.fromfile(results, RESULTS_HEADER, 1)
        header["state"] = FINISHED
        results.seek(0)
        results.write(header.tobytes())
        results.seek(4096)
        while written < requests:
            rows = min(BATCH_ROWS, requests - written)
            gap_ns = np.where(random.random(rows) < 0.02, 2_000_000, random.integers(0, 8000, rows))
            deadline_ns = now_ns + np.cumsum(gap_ns)
            operation = random.choice(4, rows, p=(0.57, 0.4, 0.02, 0.01)).astype(np.int8)
            length = np.where(operation == 2, 0, random.choice(np.array([4, 8, 16, 64, 256]) << 10, rows))
            columns = {
                "deadline_ns": deadline_ns, "trace_queue_ns": deadline_ns, "length_bytes": length,
                "operation": pa.DictionaryArray.from_arrays(operation, list(OPERATIONS)),
                "process": pa.DictionaryArray.from_arrays(random.integers(0, 200, rows).astype(np.int32), PROCESSES),
                "offset_bytes": random.integers(0, 1 << 28, rows) << 12, "after": np.full(rows, -1),
                "trace_latency_ns": random.gamma(2.0, 60_000, rows).astype(np.int64),
                **dict.fromkeys(("fua", "preflush", "sync", "meta", "readahead"), np.zeros(rows, np.bool_)),
                **dict.fromkeys(("pid", "cpu"), np.zeros(rows, np.int32)),
            }  # fmt: skip
            writer.write(pa.table({name: columns[name] for name in PLANNED.names}, schema=PLANNED))
            record = np.zeros(rows, RESULT_RECORD)
            record["issue_ns"] = deadline_ns + random.gamma(1.0, 4000, rows).astype(np.int64)
            record["complete_ns"] = record["issue_ns"] + random.gamma(2.0, 50_000, rows).astype(np.uint64)
            record["result"], record["state"], record["in_flight"] = np.where(operation < 2, length, 0), COMPLETED, 1
            results.write(record.tobytes())
            written, now_ns = written + rows, int(deadline_ns[-1])
        writer.finish(PREPARED)


def measure(step: str, folder: Path) -> None:
    """Run a step in a separate process: its peak memory, with Python and libraries."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    from drivelab.replay.evaluation.fidelity import issue_error_bins, latency_bins
    from drivelab.replay.evaluation.over_time import over_time
    from drivelab.replay.evaluation.replay_report import report
    from drivelab.replay.outcome import read_outcome, write_outcome

    outcome = folder / "outcome.parquet"
    before_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began_s = time.perf_counter()
    if step == "outcome":
        write_outcome(folder / "planned.parquet", folder / "results.bin", outcome, {})
    elif step == "report":
        report(outcome, PREPARED, "native")
    else:
        columns = ("operation", "preflush", "length_bytes", "deadline_ns", "issue_ns", "complete_ns", "error")
        requests = read_outcome(outcome, [*columns, "trace_latency_ns"])
        for function in (latency_bins, issue_error_bins, over_time):
            function(requests)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"{step}: {time.perf_counter() - began_s:.1f} s, {used.ru_maxrss / 1024:.0f} MiB peak "
        f"({before_mib:.0f} MiB before)", flush=True,
    )  # fmt: skip


def main(requests: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_synthetic(Path(folder), requests)
        print(f"{requests:,} requests on one core", flush=True)
        for step in ("outcome", "report", "tables"):
            subprocess.run([sys.executable, __file__, "--measure", step, folder], check=True)
        print(f"outcome.parquet: {(Path(folder) / 'outcome.parquet').stat().st_size / requests:.1f} B per request")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], Path(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
