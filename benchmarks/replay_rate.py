"""Measure the rate of drivelab's engine without deadlines, against fio.

Run as root: python benchmarks/replay_rate.py [--pairs 5] [--seconds 2]. Random reads and writes of 4 KiB run at
depths 1, 8, 32 and 128 on a loop device over a file in memory. Each pair is a replay without deadlines, and fio with
io_uring and registered file and buffers, at the same depth for the same time, in alternating order. Prints the median
of the pairs' ratios of requests per second with a 95 % confidence interval (Student's t over the logarithms of the
ratios), and that of two runs of fio, which shows the noise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from capture_cost import SIZE, interval, loop_device
from replay_fidelity import wait_for_quiet

from drivelab.drives.target import Target, named
from drivelab.replay import native
from drivelab.replay.engine_records import OPERATION_CODES, SCHEDULE_RECORD, ScheduleWriter, open_results
from drivelab.replay.native import EngineOptions, engine_report

BLOCK_BYTES = 4096
DEPTHS = (1, 8, 32, 128)
ROUND = 1 << 18
"""Requests of a schedule that are made at once."""
MOST_PER_S = 2_000_000


def write_schedule(path: Path, requests: int, operation: str, depth: int) -> None:
    """Write random requests of BLOCK_BYTES, all due at once."""
    dice = np.random.default_rng(1)
    with ScheduleWriter(path, SIZE, BLOCK_BYTES) as writer:
        for first in range(0, requests, ROUND):
            rows = min(ROUND, requests - first)
            records = np.zeros(rows, SCHEDULE_RECORD)
            records["offset_bytes"] = dice.integers(0, SIZE // BLOCK_BYTES, rows) * BLOCK_BYTES
            records["length_bytes"], records["depth"] = BLOCK_BYTES, depth
            records["operation"] = OPERATION_CODES[operation]
            writer.write(records)


def drivelab(target: Target, operation: str, depth: int, seconds: float) -> float:
    """Return requests per second."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        write_schedule(folder / "asap.schedule", int(MOST_PER_S * seconds), operation, depth)
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


def main() -> None:
    parser = argparse.ArgumentParser(description="Rate of the replay engine.")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    chosen = parser.parse_args()
    wait_for_quiet()
    with loop_device() as loop:
        subprocess.run(["dd", "if=/dev/zero", f"of={loop}", "bs=1M", "oflag=direct", f"count={SIZE >> 20}",
                        "status=none"], check=True)  # fmt: skip
        with named(Path(loop), destroy=True) as target:
            compare(target, chosen.pairs, chosen.seconds)


if __name__ == "__main__":
    main()
