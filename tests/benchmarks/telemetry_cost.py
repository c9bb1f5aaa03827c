"""Measure the cost of telemetry: IOPS with and without, and CPU time of a sample.

Run as root: PYTHONPATH=scripts python tests/benchmarks/telemetry_cost.py [PAIRS [SECONDS]]   (default 20 pairs of 4 s)

The device is a loop device over memory, so the processors limit fio, which is where telemetry could cost speed. Each
pair is a run with and a run without telemetry, in alternating order. The result is the median of the relative
differences with its distribution-free 95 % confidence interval. One sample per second is not measurable above the noise
of a shared machine. A second measurement therefore samples many times as often, and divides the result by that factor.
The bar: less than 1 %.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from drivelab.telemetry.sampler import FAST_S, Sampler, Source
from drivelab.telemetry.sources import sources_for

SIZE_MIB = 64
FACTOR = 50
"""The second measurement samples this many times as often."""
BAR_PCT = 1.0


@contextmanager
def device_in_memory() -> Iterator[str]:
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="telemetry-cost-") as file:
        file.truncate(SIZE_MIB << 20)
        command = ["losetup", "--find", "--show", file.name]
        device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def iops(device: str, seconds: float, sources: list[Source]) -> float:
    """Return fio's IOPS of random reads 4 KiB, while this process samples."""
    command = ["fio", "--name=cost", f"--filename={device}", "--direct=1", "--ioengine=libaio", "--rw=randread",
               "--bs=4k", "--iodepth=32", f"--runtime={seconds}", "--time_based", "--thread",
               "--output-format=json"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, Sampler(sources, Path(folder)) if sources else nullcontext():
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def differences_pct(device: str, pairs: int, seconds: float, sources: list[Source]) -> list[float]:
    """Return each pair's change of IOPS with telemetry in %; negative is slower."""
    differences = []
    for number in range(pairs):
        order = (sources, []) if number % 2 else ([], sources)
        rates = [iops(device, seconds, active) for active in order]
        without, with_telemetry = rates[::-1] if number % 2 else rates
        differences.append(100 * (with_telemetry / without - 1))
    return differences


def median_interval(values: list[float]) -> tuple[float, float]:
    """Return an interval of the median of at least 95 %, by order statistics."""
    ordered, count = sorted(values), len(values)
    below, rank = 0.0, 0
    while below + math.comb(count, rank) / 2**count <= 0.025:
        below += math.comb(count, rank) / 2**count
        rank += 1
    return ordered[max(rank - 1, 0)], ordered[-max(rank, 1)]


def print_change(name: str, values: list[float], divisor: int = 1) -> float:
    """Print a change; return the worst end of its interval as a loss in %."""
    scaled = [value / divisor for value in values]
    low, high = median_interval(scaled)
    median = statistics.median(scaled)
    print(f"{name}: IOPS change by {median:+.3f} % (median of {len(values)} pairs; 95 %: {low:+.3f} to {high:+.3f} %)")
    return -low


def cpu_us_per_sample(sources: list[Source], count: int = 2000) -> float:
    prompt = [source for source in sources if source.prompt]
    with tempfile.TemporaryDirectory() as folder, Sampler(prompt, Path(folder)) as sampler:
        begin_s = time.thread_time()
        for _ in range(count):
            sampler.edge()
        return 1e6 * (time.thread_time() - begin_s) / count


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
    print("processors:", os.cpu_count(), "load:", *os.getloadavg())
    with device_in_memory() as device:
        sources = sources_for(Path(device).name)
        used_us = cpu_us_per_sample(sources)
        print(f"sources: {', '.join(source.name for source in sources)}")
        print(
            f"a sample uses {used_us:.0f} us of CPU time, {used_us / 1e4 / FAST_S:.4f} % of one CPU at one per second"
        )
        often = [replace(each, period_s=each.period_s and each.period_s / FACTOR, prompt=False) for each in sources]
        print_change("at one sample per second", differences_pct(device, pairs, seconds, sources))
        name = f"at {FACTOR} per second, divided by {FACTOR}"
        worst = print_change(name, differences_pct(device, pairs, seconds, often), FACTOR)
    print(f"less than {BAR_PCT:g} %: {'yes' if worst < BAR_PCT else 'NO'}")
    return 0 if worst < BAR_PCT else 1


if __name__ == "__main__":
    sys.exit(main())
