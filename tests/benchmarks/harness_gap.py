"""Measure the gap between cells of a loop, from the end of fio to the start, or the release, of the next.

Usage: python tests/benchmarks/harness_gap.py [RESULTS]   (default results; measure on a wall clock first)
Reads finished recordings. A prepared fio issues its first I/O about 0.2 ms after its release, one that only starts
then about 0.3 s later. The bar, for prepared cells on a quiet machine: median at most 2 ms, 99th percentile at most
5 ms.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from drivelab.recording.writer import read_journal


def main() -> int:
    results = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    lines = [
        line
        for journal in results.glob("recordings/*/*/*/journal.jsonl")
        for line in read_journal(journal.parent)
        if line["event"] == "cell" and "gap_ms" in line
    ]
    if not lines:
        print(f"{results}: no recording has two cells; run ./drivelab demo first", file=sys.stderr)
        return 2
    fits = True
    for is_prepared, kind in ((True, "prepared"), (False, "not prepared")):
        gaps = sorted(line["gap_ms"] for line in lines if line.get("prepared", False) == is_prepared)
        if gaps:
            median_ms, p99_ms = statistics.median(gaps), gaps[int(0.99 * len(gaps))]
            print(
                f"{kind}: {len(gaps)} gaps, median {median_ms:.2f} ms, p99 {p99_ms:.2f} ms, largest {gaps[-1]:.2f} ms"
            )
            fits = fits and (not is_prepared or _fits(gaps))
    return 0 if fits else 1


def _fits(gaps: Sequence[float]) -> bool:
    return statistics.median(gaps) <= 2 and gaps[int(0.99 * len(gaps))] <= 5


if __name__ == "__main__":
    sys.exit(main())
