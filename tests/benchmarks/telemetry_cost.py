"""What telemetry costs: IOPS of fio with and without it, in pairs, and CPU time of a sample.

Run as root: PYTHONPATH=scripts python tests/benchmarks/telemetry_cost.py [PAIRS [SECONDS]]   (default 20 pairs of 4 s)

The device is a loop device over memory, so that fio is limited by the processors, which is where telemetry could hurt.
Each pair is a run with and one without, in alternating order; the figure is the median of the relative differences with
its distribution-free 95 % confidence interval. As one sample a second is too little to be seen above the noise of a
shared machine, the same is done at many times the cadence too, and its figure divided by that factor.
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

from drivelab.telemetry.sampler import Sampler
from drivelab.telemetry.source import FAST_S, Source
from drivelab.telemetry.sources import sources_for

SIZE_MIB = 64
FACTOR = 50
"""How many times more often than in a measurement samples are taken for the second figure."""
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
    """Random reads of 4 KiB by fio, while this process samples as a measuring process does."""
    command = ["fio", "--name=cost", f"--filename={device}", "--direct=1", "--ioengine=libaio", "--rw=randread",
               "--bs=4k", "--iodepth=32", f"--runtime={seconds}", "--time_based", "--thread",
               "--output-format=json"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, Sampler(sources, Path(folder)) if sources else nullcontext():
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def differences_pct(device: str, pairs: int, seconds: float, sources: list[Source]) -> list[float]:
    """Of each pair: IOPS with telemetry against those without it; negative is slower."""
    found = []
    for number in range(pairs):
        order = (sources, []) if number % 2 else ([], sources)
        rates = [iops(device, seconds, one) for one in order]
        without, with_telemetry = rates[::-1] if number % 2 else rates
        found.append(100 * (with_telemetry / without - 1))
    return found


def median_interval(values: list[float]) -> tuple[float, float]:
    """Of the median, 95 % or a little more, by order statistics: the binomial distribution of a fair coin."""
    ordered, count = sorted(values), len(values)
    below, rank = 0.0, 0
    while below + math.comb(count, rank) / 2**count <= 0.025:
        below += math.comb(count, rank) / 2**count
        rank += 1
    return ordered[max(rank - 1, 0)], ordered[-max(rank, 1)]


def told(name: str, values: list[float], divisor: int = 1) -> float:
    """Print a figure; returns the least favourable end of its interval as a loss, percent."""
    scaled = [value / divisor for value in values]
    low, high = median_interval(scaled)
    median = statistics.median(scaled)
    print(f"{name}: IOPS change by {median:+.3f} % (median of {len(values)} pairs; 95 %: {low:+.3f} to {high:+.3f} %)")
    return -low


def cpu_us_a_sample(sources: list[Source], count: int = 2000) -> float:
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
        used_us = cpu_us_a_sample(sources)
        print(f"sources: {', '.join(source.name for source in sources)}")
        print(f"a sample takes {used_us:.0f} us of CPU time: {used_us / 1e4 / FAST_S:.4f} % of one CPU at one a second")
        often = [replace(one, period_s=one.period_s and one.period_s / FACTOR, prompt=False) for one in sources]
        told("at one sample a second", differences_pct(device, pairs, seconds, sources))
        worst = told(f"at {FACTOR} a second, by {FACTOR}", differences_pct(device, pairs, seconds, often), FACTOR)
    print(f"less than {BAR_PCT:g} %: {'yes' if worst < BAR_PCT else 'NO'}")
    return 0 if worst < BAR_PCT else 1


if __name__ == "__main__":
    sys.exit(main())
