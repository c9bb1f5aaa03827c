"""Measure time and memory of publishing many archives, and their growth.

    python tests/benchmarks/publish_sites.py [FEWER MORE [PAIRS]]

Default: sites of 100 and 1,000 archives in 5 pairs. The archives are small and made up: each has two drives,
of 20 models in all, measured by two of ten protocols. Half of the studies have three recordings, the others one.
Each run is a process of its own. A pair publishes both sites one after the other, in alternating order. The result is
the median ratio of peak memory (MORE to FEWER), with the range over the pairs. The bar: at most 1.5 times the memory
for ten times the archives. A run that finds everything published, and the sizes of the pages, are measured too. Exit
status 1 if a bar is missed.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[1] / "support"
sys.path.insert(0, str(SUPPORT))

MOST_RATIO = 1.5
MOST_S = 600
MOST_PAGE_BYTES = 16 << 20
"""Bar for the largest page: the one that compares, which holds all values."""


def make(folder: Path, count: int) -> None:
    from made_archives import Result, made_archive

    folder.mkdir()
    for number in range(count):
        results = [
            Result(
                f"d{drive}", f"Maker M{(number + 7 * drive) % 20}", f"F{number % 3}",
                f"protocol-{(number + part) % 10}",
                1 + (number % 17) / 50, 1 + 2 * (number % 2), f"20{10 + number % 15}-01-01", seed=str(number),
            )
            for drive in (1, 2) for part in (0, 1)
        ]  # fmt: skip
        made_archive(folder / f"s{number:04}.tar.gz", *results)


def publish(archives: Path, site: Path) -> None:
    from drivelab.publish import site as sites

    sites.publish(sorted(archives.iterdir()), site)


def measured(step: Callable[[], None]) -> tuple[float, float]:
    """Run a step in a separate process; return CPU seconds and MiB of peak memory."""
    child = os.fork()
    if not child:
        step()
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit("a step failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(counts: list[int], pairs: int, folder: Path) -> int:
    for count in counts:
        measured(lambda count=count: make(folder / str(count), count))  # type: ignore[misc]
    ratios, missed = [], 0
    for pair in range(pairs):
        memory = {}
        for count in counts if pair % 2 else counts[::-1]:
            site = folder / f"site-{pair}-{count}"
            cpu_s, memory[count] = measured(lambda count=count, site=site: publish(folder / str(count), site))  # type: ignore[misc]
            missed += cpu_s > MOST_S
            print(f"{count} archives: {cpu_s:.1f} s of CPU, {memory[count]:.0f} MiB", flush=True)
        ratios.append(memory[counts[1]] / memory[counts[0]])
    ratio = statistics.median(ratios)
    missed += ratio > MOST_RATIO
    print(f"memory: {ratio:.2f} times ({min(ratios):.2f} to {max(ratios):.2f}, {pairs} pairs; bar {MOST_RATIO})")
    site = folder / f"site-0-{counts[1]}"
    cpu_s, mib = measured(lambda: publish(folder / str(counts[1]), site))
    print(f"again, nothing new: {cpu_s:.1f} s of CPU, {mib:.0f} MiB")
    sizes = {path.name: path.stat().st_size for path in (*site.glob("*.*"), *site.glob("models/*"))}
    largest = max(sizes, key=lambda name: sizes[name])
    missed += sizes[largest] > MOST_PAGE_BYTES
    total = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(f"largest page {largest}: {sizes[largest] / 2**20:.2f} MiB (bar {MOST_PAGE_BYTES >> 20} MiB); "
          f"site {total / 2**20:.1f} MiB")  # fmt: skip
    return int(missed > 0)


if __name__ == "__main__":
    numbers = list(map(int, sys.argv[1:]))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(numbers[:2] or [100, 1000], *(numbers[2:3] or [5]), Path(temporary)))
