"""Measure the expansion of the shipped protocols, in this and in a new process.

python tests/benchmarks/protocol_expand.py [REPEATS]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from drivelab.plan.grammar import load, resolve

PROTOCOLS = sorted((Path(__file__).resolve().parents[2] / "config/protocols").glob("*.yaml"))
COLD = """\
import sys, time
from pathlib import Path
from drivelab.plan.grammar import load, resolve
began_s = time.perf_counter()
resolve(load(Path(sys.argv[1])), "enterprise", None, {}, "benchmark")
print(time.perf_counter() - began_s)
"""


def warm_s(path: Path) -> float:
    """Return the time from file to steps, for one drive class at full length."""
    began_s = time.perf_counter()
    resolve(load(path), "enterprise", None, {}, "benchmark")
    return time.perf_counter() - began_s


def cold_s(path: Path) -> float:
    """Return the same time in a new process, without the imports."""
    return float(
        subprocess.run([sys.executable, "-c", COLD, str(path)], capture_output=True, check=True, text=True).stdout
    )


def main(repeats: int) -> None:
    warm = {path.stem: statistics.median(warm_s(path) for _ in range(repeats)) for path in PROTOCOLS}
    slowest = sorted(warm, key=lambda name: -warm[name])[:3]
    for name in slowest:
        cold = [cold_s(next(path for path in PROTOCOLS if path.stem == name)) for _ in range(repeats)]
        print(f"{name}: {1000 * warm[name]:.1f} ms, first in a process {1000 * statistics.median(cold):.1f} ms "
              f"(at most {1000 * max(cold):.1f} ms)")  # fmt: skip
    print(f"all {len(PROTOCOLS)}: {1000 * sum(warm.values()):.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
