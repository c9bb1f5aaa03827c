"""Measure the fidelity of replays: drivelab's engine, fio's read_iolog and btreplay.

Run as root: python benchmarks/replay_fidelity.py [--seconds 4] [--repeats 3]. Each repeat replays 4 KiB reads at
10,000 per second (Poisson) with each replayer, one after the other, on the same loop device over a file in memory. The
first replayer changes with every repeat. The plan is compared with the requests that the kernel's tracer saw queued
(k-th of an offset). Prints Markdown: medians over the repeats.

Only drivelab's engine reports its start, so its errors are relative to its plan. For the others, the median of their
offsets from the plan counts as their start, so only deviations from it are errors; this favours them. Errors are
absolute, by percentile.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from capture_cost import SIZE, loop_device
from make_trace import RECORD

from drivelab.core.errors import UserError
from drivelab.drives.target import named
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay import native
from drivelab.replay.engine_records import make_results, open_results, open_schedule
from drivelab.replay.native import EngineOptions
from drivelab.replay.prepare import Prepared, prepare
from drivelab.trace import records
from drivelab.trace.capturing.capture import capture
from drivelab.trace.decode import FIRST_EVENT_MONOTONIC, decode
from drivelab.trace.parquet_schema import FLAGS, OPERATIONS, REQUESTS, TraceWriter, open_trace

BLOCK_BYTES = 4096
MEAN_GAP_NS = 100_000
LATENCY_NS = 60_000
"""Latency of each request in the trace; fio gets as many jobs as requests overlap."""
QUEUED = 1 << (16 + 4)
"""Category of queue events (BLK_TC_QUEUE), which btrecord selects."""
CLOSE_US = 50
BUSY = ("another drivelab", "another program")
"""Parts of the errors of a capture while another tracer is active."""
QUIET_LOAD = 1.5
PATIENCE_S = 300.0
FINE = ["--max-bunch-time=10000", "--max-pkts=256"]
"""Options of btrecord: bunches of requests within 10 us, instead of 8 within 10 ms."""
Floats = npt.NDArray[np.float64]
Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class Case:
    """The workload, prepared for all replayers."""

    prepared: Prepared
    plan: Records
    device: str


def write_workload(path: Path, seconds: float) -> None:
    """Write a trace of the reads without losses; offsets repeat rarely."""
    dice, rows, places = np.random.default_rng(1), round(seconds * 1e9 / MEAN_GAP_NS), SIZE // BLOCK_BYTES
    queue_ns = np.cumsum(dice.exponential(MEAN_GAP_NS, rows)).astype(np.int64)
    order = np.concatenate([dice.permutation(places) for _ in range(-(-rows // places))])
    columns = {
        "queue_ns": queue_ns, "dispatch_ns": queue_ns + 1000, "complete_ns": queue_ns + LATENCY_NS,
        "operation": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), list(OPERATIONS)),
        "offset_bytes": order[:rows] * BLOCK_BYTES, "length_bytes": np.full(rows, BLOCK_BYTES),
        "process": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["made-up"]),
        "dispatch_id": np.arange(rows), "pieces": np.ones(rows, np.int32),
        **dict.fromkeys(FLAGS, np.zeros(rows, np.bool_)),
        **dict.fromkeys(("pid", "cpu", "error", "requeues"), np.zeros(rows, np.int32)),
    }  # fmt: skip
    with TraceWriter(path) as writer:
        writer.write(pa.table({name: columns[name] for name in REQUESTS.names}, schema=REQUESTS))
        writer.finish({"source": "made up for a benchmark"})


def fio(case: Case, folder: Path) -> list[str]:
    lines = [f"{due_ns // 1000} {case.device} read {offset} {BLOCK_BYTES}\n"
             for due_ns, offset in case.plan[["deadline_ns", "offset_bytes"]].tolist()]  # fmt: skip
    begin, end = (f"0 {case.device} add\n0 {case.device} open\n", f"{lines[-1].split()[0]} {case.device} close\n")
    (folder / "plan.iolog").write_text("".join(["fio version 3 iolog\n", begin, *lines, end]))
    return ["fio", "--name=replay", "--read_iolog=plan.iolog", "--ioengine=libaio", "--iodepth=64", "--direct=1",
            "--allow_file_create=0", "--output=fio.txt"]  # fmt: skip


def btreplay(case: Case, folder: Path) -> list[str]:
    """Return btreplay's command with a timeout: it sometimes hangs after the end.

    btrecord makes its input from queue events that name the device as their source: version 1.2.0 crashes when it reads
    a map file (option -M).
    """
    events = np.zeros(len(case.plan), RECORD)
    events["magic"], events["device"] = records.MAGIC | 7, 259 << 20
    events["sequence"], events["time_ns"] = np.arange(len(events)) + 1, case.plan["deadline_ns"] + 1_000_000
    events["sector"] = case.plan["offset_bytes"] // records.SECTOR_BYTES
    events["bytes"] = BLOCK_BYTES
    events["action"] = records.ACTIONS.index("Q") | QUEUED | records.READ
    name = Path(case.device).name
    events.tofile(folder / f"{name}.blktrace.0")
    subprocess.run(["btrecord", *FINE, "-d", str(folder), "-D", str(folder), name], check=True, capture_output=True)
    longest_s = 5 + 1.2 * case.prepared.issue_span_s
    return ["timeout", "--signal=KILL", f"{longest_s:.0f}", "btreplay", "-W", "-d", ".", name]


def by_drivelab(case: Case, folder: Path) -> Floats:
    """Return how late each request was queued, in ns; NaN if it never was."""
    results, header = folder / native.RESULTS, open_schedule(case.prepared.schedule).header
    make_results(results, header["count"], header["checksum"])
    with named(Path(case.device), destroy=True) as target:
        command = native.command(target.path, target.identity, case.prepared.schedule, results, EngineOptions())
        queue_ns = watch(case, command, folder)
    return queue_ns - open_results(results).header["start_monotonic_ns"] - case.plan["deadline_ns"]


def by_another(command: Callable[[Case, Path], list[str]]) -> Callable[[Case, Path], Floats]:
    """Return a function that returns how late each request was queued, in ns, relative to the median."""

    def late_ns(case: Case, folder: Path) -> Floats:
        found = watch(case, command(case, folder), folder) - case.plan["deadline_ns"]
        return found - np.nanmedian(found)

    return late_ns


WAYS: dict[str, Callable[[Case, Path], Floats]] = {
    "drivelab": by_drivelab,
    "btreplay, bunches of 10 us": by_another(btreplay),
    "fio --read_iolog, libaio": by_another(fio),
}


def watch(case: Case, command: list[str], folder: Path) -> Floats:
    """Return queue times of the plan's requests (CLOCK_MONOTONIC, ns); NaN for those that the kernel never saw."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            capture(case.device, command, folder / "raw", cwd=folder, backend="ftrace")
            break
        except UserError as error:
            if time.monotonic() > until_s or not any(cause in str(error) for cause in BUSY):
                raise
            time.sleep(2)
    decode(folder / "raw", folder / "seen.parquet")
    seen: dict[int, deque[float]] = defaultdict(deque)
    with open_trace(folder / "seen.parquet") as trace:
        for row in (row for batch in trace.batches() for row in batch.to_pylist()):
            if (row["operation"], row["length_bytes"]) == ("read", BLOCK_BYTES):
                seen[row["offset_bytes"]].append(row["queue_ns"] + trace.provenance[FIRST_EVENT_MONOTONIC])
    return np.array([found.popleft() if (found := seen[offset]) else np.nan for offset in case.plan["offset_bytes"]])


def measures(case: Case, late_ns: Floats) -> dict[str, float]:
    """Return all metrics of one replay."""
    known = ~np.isnan(late_ns)
    deadline_ns, error_us = case.plan["deadline_ns"][known].astype(np.float64), np.abs(late_ns[known]) / 1000
    return {
        "duration ratio": float(np.ptp(deadline_ns + late_ns[known]) / np.ptp(deadline_ns)),
        **{f"p{percent} us": float(np.percentile(error_us, percent)) for percent in (50, 99)},
        f"within {CLOSE_US} us %": 100 * float((error_us <= CLOSE_US).mean()),
        "lost": float((~known).sum()),
    }


def wait_for_quiet() -> None:
    """Wait until the load is low, at most PATIENCE_S, and print it."""
    until_s = time.monotonic() + PATIENCE_S
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < until_s:
        time.sleep(2)
    loads = os.getloadavg()
    print(f"load {loads[0]:.2f} at the start{'' if loads[0] <= QUIET_LOAD else ': NOT QUIET'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare replayers.")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    wait_for_quiet()
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, loop_device() as device:
        subprocess.run(["dd", "if=/dev/zero", f"of={device}", "bs=1M", f"count={SIZE >> 20}", "oflag=direct",
                        "status=none"], check=True)  # fmt: skip
        write_workload(Path(folder) / "trace.parquet", chosen.seconds)
        prepared = prepare(Path(folder) / "trace.parquet", Path(folder) / "plan", ReplayChoice(), SIZE, BLOCK_BYTES)
        case = Case(prepared, open_schedule(prepared.schedule).records, device)
        for repeat in range(chosen.repeats):
            names = list(WAYS)
            for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    runs[name].append(measures(case, WAYS[name](case, Path(scratch))))
    columns = list(runs["drivelab"][0])
    print("| | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for name, values in runs.items():
        cells = [f"{np.median([run[column] for run in values]):.4g}" for column in columns]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
