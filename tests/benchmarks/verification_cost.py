"""Measure what verification costs a replay: lateness, latency and rate of the engine, and the time of the comparison.

Run as root: python tests/benchmarks/verification_cost.py [--requests 40000] [--repeats 5]. Each repeat replays each
workload in three ways, one after the other, on the same loop device over a file in memory: without verification; with
data that names its write; and verified, so that the engine also looks at what reads return. The first way changes with
every repeat. Prints Markdown: medians over the repeats.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from capture_cost import SIZE, loop_device

from drivelab.core import programs
from drivelab.drives.target import named
from drivelab.replay import native
from drivelab.replay.engine_records import (
    OPERATION_CODES,
    SCHEDULE_RECORD,
    Records,
    ScheduleWriter,
    make_results,
    open_results,
    open_schedule,
)
from drivelab.replay.native import EngineOptions
from drivelab.replay.verify.data_requests import NEVER, PENDING, Requests
from drivelab.replay.verify.read_check import judge_reads
from drivelab.replay.verify.read_origins import make_origins, read_origins

BLOCK = 4096
KIB = 1024
WAYS = ("plain", "data that names its write", "verified")
WORKLOADS = {
    "10,000/s, 4 KiB, 70 % reads": (10_000, 4 * KIB, 0),
    "10,000/s, 32 KiB, 70 % reads": (10_000, 32 * KIB, 0),
    "as soon as possible, 4 KiB, QD32": (0, 4 * KIB, 32),
    "as soon as possible, 128 KiB, QD8": (0, 128 * KIB, 8),
}
"""Requests per second, with exponential gaps (0: no deadlines), their length, and the queue depth (0: any)."""


def records_of(requests: int, rate: int, length: int, depth: int) -> Records:
    random = np.random.default_rng(1)
    records = np.zeros(requests, SCHEDULE_RECORD)
    reads = random.random(requests) < 0.7
    records["operation"] = np.where(reads, OPERATION_CODES["read"], OPERATION_CODES["write"])
    records["length_bytes"], records["depth"] = length, depth
    records["offset_bytes"] = random.integers(0, (SIZE // 2) // length, requests) * length
    if rate:
        records["deadline_ns"] = np.cumsum(random.exponential(1e9 / rate, requests)).astype(np.uint64)
    return records


def replay(device: str, schedule: Path, folder: Path, way: str) -> Records:
    folder.mkdir()
    results, origins = folder / native.RESULTS, folder / "origins.bin"
    header = open_schedule(schedule).header
    make_results(results, header["count"], header["checksum"])
    if way == "verified":
        make_origins(origins, schedule)
    options = EngineOptions(seed=7, exact_data=way != "plain")
    with named(Path(device), destroy=True) as target:
        command = native.command(target.path, target.identity, schedule, results, options,
                                 origins if way == "verified" else None)  # fmt: skip
        programs.run_program(command, folder, lambda elapsed_s: None)
    mapped = open_results(results)
    assert mapped.header["completed"] == header["count"], (folder / "stderr").read_text()
    return mapped.records


def judge(folder: Path, plan: Records, results: Records) -> tuple[float, dict[str, int]]:
    """Return the seconds to judge the reads, and the counts."""
    begin, length = plan["offset_bytes"].astype(np.int64), plan["length_bytes"].astype(np.int64)
    issued, complete = results["issue_ns"].astype(np.int64), results["complete_ns"].astype(np.int64)
    every = np.ones(len(plan), np.bool_)
    requests = Requests(plan["operation"].astype(np.int64), begin, begin + length, np.maximum(issued, NEVER),
                        np.minimum(complete, PENDING), ~every, every)  # fmt: skip
    began_s = time.perf_counter()
    counts = judge_reads(requests, read_origins(folder / "origins.bin", len(plan)), BLOCK)
    return time.perf_counter() - began_s, counts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    values: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    judged: list[str] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory, loop_device() as device:
        for name, (rate, length, depth) in WORKLOADS.items():
            plan = records_of(options.requests if length < 128 * KIB else options.requests // 8, rate, length, depth)
            schedule = Path(memory) / f"{length}-{rate}.schedule"
            with ScheduleWriter(schedule, SIZE, BLOCK) as writer:
                writer.write(plan)
            for repeat in range(options.repeats):
                for way in (*WAYS[repeat % 3 :], *WAYS[: repeat % 3]):
                    with tempfile.TemporaryDirectory(dir=memory) as folder:
                        results = replay(device, schedule, Path(folder) / "run", way)
                        issue, complete = results["issue_ns"].astype(float), results["complete_ns"].astype(float)
                        late_us = (issue - plan["deadline_ns"]) / 1000
                        for percent in (50, 90, 99):
                            values[name, way, f"late {percent}"].append(float(np.percentile(late_us, percent)))
                        values[name, way, "latency"].append(float((complete - issue).mean()) / 1000)
                        values[name, way, "rate"].append(len(plan) / (complete.max() - issue.min()) * 1e9)
                        if way == "verified":
                            seconds, counts = judge(Path(folder) / "run", plan, results)
                            assert counts["lost"] == counts["torn"] == counts["unseen_blocks"] == 0, counts
                            values[name, way, "judge"].append(seconds / counts["checked_blocks"] * 1e6)
            judged.append(f"{name}: {statistics.median(values[name, 'verified', 'judge']):.2f} s per million blocks")
    print("| | | issue error, µs, 50 % | 90 % | 99 % | mean latency, µs | requests/s |\n|---|---|---|---|---|---|---|")
    for name in WORKLOADS:
        for way in WAYS:
            late = [f"{statistics.median(values[name, way, f'late {percent}']):.1f}" if WORKLOADS[name][0] else "-"
                    for percent in (50, 90, 99)]  # fmt: skip
            latency, rate = (statistics.median(values[name, way, value]) for value in ("latency", "rate"))
            print(f"| {name} | {way} | {' | '.join(late)} | {latency:.1f} | {rate:,.0f} |")
    print("\nComparison after the replay:", *judged, sep="\n* ")


if __name__ == "__main__":
    main()
