"""Measure rate and memory of drivelab's engine without deadlines, against fio, and its errors with deadlines.

Run as root: python tests/benchmarks/replay_rate.py [--pairs 5] [--seconds 2] [--memory-requests 10000000]. Random reads
and writes of 4 KiB run at depths 1, 8, 32 and 128 on a loop device over a file in memory. Each pair is a replay without
deadlines, and fio with io_uring and registered file and buffers, at the same depth for the same time, in alternating
order. Prints the median of the pairs' ratios of requests per second with a 95 % confidence interval (Student's t over
the logarithms of the ratios), and that of two runs of fio, which shows the noise.

Errors are those of the issue times by the engine's own records, in reads of 4 KiB at equal intervals.

Memory is read from /proc/PID/status of an engine that runs the long schedule: the peak of all resident pages (VmHWM,
with mapped files) and the maximum of anonymous pages (RssAnon).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from capture_cost import SIZE, interval, loop_device
from replay_fidelity import wait_for_quiet

from drivelab.drives.target import Target, named
from drivelab.replay import native
from drivelab.replay.engine_records import (  # fmt: skip
    OPERATION_CODES,
    RESULTS_HEADER,
    SCHEDULE_RECORD,
    ScheduleWriter,
    make_results,
    open_results,
    open_schedule,
)
from drivelab.replay.native import EngineOptions, engine_report

BLOCK_BYTES = 4096
DEPTHS = (1, 8, 32, 128)
ROUND = 1 << 18
"""Requests of a schedule that are made at once."""
MOST_PER_S = 2_000_000
STATUS = ("VmHWM", "RssAnon")
PACES = ((10_000, 1), (100_000, 1), (500_000, 1), (500_000, 2))
"""Requests per second and issuing threads."""


def write_schedule(path: Path, requests: int, operation: str, *, depth: int, gap_ns: int = 0) -> None:
    """Write random requests of BLOCK_BYTES, due at intervals of `gap_ns`."""
    dice = np.random.default_rng(1)
    with ScheduleWriter(path, SIZE, BLOCK_BYTES) as writer:
        for first in range(0, requests, ROUND):
            rows = min(ROUND, requests - first)
            records = np.zeros(rows, SCHEDULE_RECORD)
            records["deadline_ns"] = (first + np.arange(rows)) * gap_ns
            records["offset_bytes"] = dice.integers(0, SIZE // BLOCK_BYTES, rows) * BLOCK_BYTES
            records["length_bytes"], records["depth"] = BLOCK_BYTES, depth
            records["operation"] = OPERATION_CODES[operation]
            writer.write(records)


def drivelab(target: Target, operation: str, depth: int, seconds: float) -> float:
    """Return requests per second."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        write_schedule(folder / "asap.schedule", int(MOST_PER_S * seconds), operation, depth=depth)
        options = EngineOptions(depth_limit=depth, runtime_s=seconds)
        native.run_engine(target.path, target.identity, folder / "asap.schedule", folder, options)
        assert engine_report(folder)["state"] == "time is up", engine_report(folder)
        header = open_results(folder / native.RESULTS).header
        return float(header["completed"] / (header["end_ns"] / 1e9))


def fio(target: Target, operation: str, depth: int, seconds: float) -> float:
    """Return requests per second."""
    command = [
        "fio", "--name=rate", f"--filename={target.path}", f"--rw=rand{operation}", f"--bs={BLOCK_BYTES}",
        f"--size={SIZE}", "--ioengine=io_uring", "--direct=1", "--registerfiles=1", "--fixedbufs=1",
        f"--iodepth={depth}", "--thread", "--time_based", f"--runtime={seconds:g}", "--norandommap",
        "--output-format=json",
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["jobs"][0][operation]["iops"])


def compare(target: Target, pairs: int, seconds: float) -> None:
    """Print a row of Markdown for each operation and depth."""
    print(
        "| operation | depth | drivelab IOPS | fio IOPS | ratio | 95 % | fio/fio |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    for operation in ("read", "write"):
        for depth in DEPTHS:
            ours, theirs, noise = [], [], []
            for index in range(pairs):
                ways = (drivelab, fio) if index % 2 else (fio, drivelab)
                rates = {way: way(target, operation, depth, seconds) for way in ways}
                ours.append(rates[drivelab])
                theirs.append(rates[fio])
                noise.append(fio(target, operation, depth, seconds) / rates[fio])
            ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
            low, high = interval(ratios)
            print(
                f"| {operation} | {depth} | {statistics.median(ours):,.0f} | {statistics.median(theirs):,.0f} | "
                f"{statistics.median(ratios):.2f} | {low:.2f} to {high:.2f} | {statistics.median(noise):.2f} |",
                flush=True,
            )


def punctuality(target: Target, seconds: float) -> None:
    """Print a row of Markdown for each of PACES."""
    print("| IOPS | threads | error p50 us | p99 us | p99.9 us | duration ratio |\n|---:|---:|---:|---:|---:|---:|")
    for iops, threads in PACES:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
            folder = Path(name)
            gap_ns = 1_000_000_000 // iops
            write_schedule(folder / "paced.schedule", int(iops * seconds), "read", depth=0, gap_ns=gap_ns)
            native.run_engine(target.path, target.identity, folder / "paced.schedule", folder,
                              EngineOptions(threads=threads))  # fmt: skip
            issue_ns = open_results(folder / native.RESULTS).records["issue_ns"].astype(np.float64)
        planned_ns = np.arange(len(issue_ns)) * float(gap_ns)
        p50, p99, p999 = np.percentile(np.abs(issue_ns - planned_ns), (50, 99, 99.9)) / 1000
        ratio = np.ptp(issue_ns) / np.ptp(planned_ns)
        print(f"| {iops:,} | {threads} | {p50:.2f} | {p99:.1f} | {p999:.0f} | {ratio:.5f} |", flush=True)


def memory(target: Target, requests: int, depth: int) -> dict[str, int]:
    """Return maxima of STATUS in KiB of an engine that replays a long schedule."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        schedule, results = Path(name) / "long.schedule", Path(name) / native.RESULTS
        write_schedule(schedule, requests, "read", depth=depth)
        header = open_schedule(schedule).header
        make_results(results, requests, header["checksum"])
        os.sync()
        command = native.command(target.path, target.identity, schedule, results, EngineOptions())
        greatest = dict.fromkeys(STATUS, 0)
        with subprocess.Popen(command) as engine:
            while engine.poll() is None:
                status = Path(f"/proc/{engine.pid}/status").read_text()
                for line in status.splitlines():
                    key, _, value = line.partition(":")
                    if key in greatest:
                        greatest[key] = max(greatest[key], int(value.split()[0]))
                time.sleep(0.02)
        end = np.fromfile(results, RESULTS_HEADER, 1)[0]
        assert end["completed"] == requests, end
        print(f"{requests:,} requests at depth {depth}: {requests / end['end_ns'] * 1e9:,.0f} per second", flush=True)
    return greatest


def main() -> None:
    parser = argparse.ArgumentParser(description="Rate and memory of the replay engine.")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--memory-requests", type=int, default=10_000_000)
    chosen = parser.parse_args()
    wait_for_quiet()
    with loop_device() as loop:
        subprocess.run(["dd", "if=/dev/zero", f"of={loop}", "bs=1M", "oflag=direct", f"count={SIZE >> 20}",
                        "status=none"], check=True)  # fmt: skip
        with named(Path(loop), destroy=True) as target:
            print("\n### Loop device\n")
            compare(target, chosen.pairs, chosen.seconds)
            print("\n### Errors\n")
            punctuality(target, chosen.seconds)
            print("\n### Memory\n")
            for depth in DEPTHS[1], DEPTHS[-1]:
                peak = memory(target, chosen.memory_requests, depth)
                print(", ".join(f"{name} {value / 1024:.1f} MiB" for name, value in peak.items()), flush=True)


if __name__ == "__main__":
    main()
