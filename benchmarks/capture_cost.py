"""Measure the cost of a capture: fio, random write 4 KiB, QD32, with and without.

Run as root: python benchmarks/capture_cost.py [PAIRS]. Each pair is a run without and a run with tracing, in
alternating order, on the same loop device over a file in memory. This is the fastest device on any Linux and so the
worst case. Prints the median of the pairs' ratios of IOPS with a 95 % confidence interval (Student's t over the
logarithms of the ratios): for drivelab's capture, and for two runs without tracing, which show the noise.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scipy import stats

from drivelab.trace.capturing.capture import capture

SIZE = 256 << 20
RUNTIME_S = 3


def fio(device: str, output: Path) -> list[str]:
    """Return fio's command; fio writes JSON to `output`."""
    return [
        "fio", "--name=cost", f"--filename={device}", "--rw=randwrite", "--bs=4k", "--iodepth=32", "--direct=1",
        "--ioengine=libaio", "--time_based", f"--runtime={RUNTIME_S}", "--output-format=json", f"--output={output}",
    ]  # fmt: skip


def iops(output: Path) -> float:
    return float(json.loads(output.read_text())["jobs"][0]["write"]["iops"])


def untraced(device: str, folder: Path) -> float:
    """Return IOPS without tracing."""
    subprocess.run(fio(device, folder / "fio.json"), check=True)
    return iops(folder / "fio.json")


def traced(device: str, folder: Path) -> float:
    """Return IOPS during a drivelab capture."""
    capture(device, fio(device, folder / "fio.json"), folder / "raw", backend="ftrace")
    return iops(folder / "fio.json")


WAYS: dict[str, Callable[[str, Path], float]] = {"drivelab capture": traced, "no tracing": untraced}


@contextmanager
def loop_device() -> Iterator[str]:
    """Yield a loop device over a file in memory."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.truncate(SIZE)
        command = ["losetup", "--find", "--show", "--sector-size", "4096", file.name]
        device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def pair(device: str, way: Callable[[str, Path], float], way_first: bool) -> float:
    """Return the ratio of IOPS with a tracer to IOPS without."""
    rates: list[float] = []
    for measure in (way, untraced) if way_first else (untraced, way):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            rates.append(measure(device, Path(folder)))
    return rates[0] / rates[1] if way_first else rates[1] / rates[0]


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean ratio, from logarithms."""
    logs = [math.log(ratio) for ratio in ratios]
    half = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.mean(logs)
    return math.exp(mean - half), math.exp(mean + half)


def main() -> None:
    """Measure all tracers and print their cost."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with loop_device() as device:
        print(f"without tracing: {untraced_median(device):.0f} IOPS")
        for name, way in WAYS.items():
            ratios = [pair(device, way, bool(index % 2)) for index in range(pairs)]
            low, high = interval(ratios)
            print(f"{name}: {statistics.median(ratios):.2f} of the IOPS without; 95 %: {low:.2f} to {high:.2f}")


def untraced_median(device: str) -> float:
    """Return the median IOPS of three runs without tracing, after a warm-up run."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return statistics.median([untraced(device, Path(folder)) for _ in range(4)][1:])


if __name__ == "__main__":
    main()
