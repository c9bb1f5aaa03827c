"""Measure the rate of decoding block traces, on one core and on two.

    python benchmarks/decode_rate.py [--events 30000000] [--folder FOLDER] [--core 0]

Makes its trace with make_trace.py and removes it. The bars: 12 million events per second on one core for 30 million
events, with a peak below 500 MB. The speed-up on two cores is printed too. Its goal of 1.8 is not part of the exit
status, as it needs an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from make_trace import make_trace

LEAST_RATE = 12e6
MOST_MB = 500
LEAST_SPEED_UP = 1.8
PAIRS = 3
DECODE = """
import json, re, resource, sys, time
from pathlib import Path
import pandas  # pyarrow imports it at its first use
from drivelab.trace.decode import decode
before, began_s = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
summary = decode(Path(sys.argv[1]), Path(sys.argv[2]))
wall_s, after = time.perf_counter() - began_s, resource.getrusage(resource.RUSAGE_SELF)
cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
peak_kb = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps({"events": summary["events"], "requests": summary["requests"], "unmatched": summary["unmatched"],
                  "lost": summary["lost"], "wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_kb / 1024}))
"""


@dataclass(frozen=True)
class Run:
    events: int
    wall_s: float
    cpu_s: float

    @property
    def rate(self) -> float:
        """Events per second of CPU time."""
        return self.events / self.cpu_s

    def __str__(self) -> str:
        wall = self.events / self.wall_s / 1e6
        return f"{self.rate / 1e6:.2f} M events/s of CPU time, {wall:.2f} of elapsed time ({self.wall_s:.1f} s)"


def by_drivelab(folder: Path, output: Path) -> tuple[Run, float]:
    """Decode in a separate process, after imports; also return its peak in MB."""
    done = subprocess.run(
        [sys.executable, "-c", DECODE, str(folder), str(output)], capture_output=True, text=True, check=True
    )
    body = json.loads(done.stdout)
    if body["unmatched"] or body["lost"]:
        raise RuntimeError(f"the decoder lost events: {body}")
    print(f"  {body['events']} events, {body['requests']} requests, {output.stat().st_size / 1e6:.0f} MB of Parquet")
    return Run(body["events"], body["wall_s"], body["cpu_s"]), body["peak_mb"]


def speed_up(folder: Path, output: Path, cores: list[int]) -> float:
    """Return the median ratio of the elapsed times on one core and on two, in pairs."""
    ratios = []
    for _ in range(PAIRS):
        elapsed_s = []
        for chosen in ({cores[0]}, set(cores)):
            os.sched_setaffinity(0, chosen)
            elapsed_s.append(by_drivelab(folder, output)[0].wall_s)
        ratios.append(elapsed_s[0] / elapsed_s[1])
    return statistics.median(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(description="Rate of decoding block traces.")
    parser.add_argument("--events", type=int, default=30_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where to make the traces")
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    chosen = parser.parse_args()
    others = sorted(os.sched_getaffinity(0) - {chosen.core})
    os.sched_setaffinity(0, {chosen.core})
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        folder, output = Path(scratch) / "trace", Path(scratch) / "out.parquet"
        print(f"trace of {make_trace(folder, chosen.events)} events")
        run, peak_mb = by_drivelab(folder, output)
        print(f"  drivelab: {run} (bar {LEAST_RATE / 1e6:.0f}); peak {peak_mb:.0f} MB (bar {MOST_MB})")
        if others:
            ratio_of_two = speed_up(folder, output, [chosen.core, others[0]])
            print(
                f"  two cores: {ratio_of_two:.2f} times the rate of one (goal {LEAST_SPEED_UP}); load "
                f"{os.getloadavg()[0]:.1f}"
            )
    return 0 if run.rate >= LEAST_RATE and peak_mb < MOST_MB else 1


if __name__ == "__main__":
    sys.exit(main())
