"""Measure the gap between cells of a loop, from the end of fio to its next start.

Usage: python tests/benchmarks/harness_gap.py [RESULTS]   (default results; run ./drivelab demo first)
Reads finished recordings. The bar: a median of at most 5 ms. TKperf has 2.0 ms, bench-fio 8.0 ms.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from drivelab.recording.writer import read_journal


def main() -> int:
    results = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    gaps = [
        line["gap_ms"]
        for journal in results.glob("recordings/*/*/*/journal.jsonl")
        for line in read_journal(journal.parent)
        if line["event"] == "cell" and "gap_ms" in line
    ]
    if not gaps:
        print(f"{results}: no recording has two cells; run ./drivelab demo first", file=sys.stderr)
        return 2
    gaps.sort()
    median_ms = statistics.median(gaps)
    print(
        f"{len(gaps)} gaps: median {median_ms:.2f} ms, "
        f"p95 {gaps[int(0.95 * len(gaps))]:.2f} ms, largest {gaps[-1]:.2f} ms"
    )
    return 0 if median_ms <= 5 else 1


if __name__ == "__main__":
    sys.exit(main())
