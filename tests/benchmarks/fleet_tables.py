"""Measure time and memory of a fleet's tables and report, and their growth.

    python tests/benchmarks/fleet_tables.py [FEWER MORE]

Uses synthetic tables of the fleet's parts. Default: 250 and 1,000 drives, ten protocols with 18 values each, three
recordings behind each value. Each step and size runs in a separate process. The exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).resolve().parents[1] / "support"
sys.path.insert(0, str(SUPPORT))

MOST_MIB = 1024
MOST_S = 300
MOST_REPORT_BYTES = 10 << 20
MOST_MIB_PER_DRIVE = 0.5
"""Bar for memory growth; the written data of a drive takes about 0.1 MiB in memory."""
STUDY: dict[str, Any] = {
    "name": "made", "title": "A made fleet", "basis": "d1", "clock_reason": None, "altered": [], "elsewhere": [],
    "comparison": {"margin_pct": 5.0, "confidence_pct": 95.0, "unintended": "show"}, "intended": None,
}  # fmt: skip
TABLES = ("fleet_drives", "fleet_spread", "fleet_deviations", "fleet_hosts")


def make(folder: Path, count: int) -> None:
    from made_fleet import made_fleet

    (folder / "outcomes.json").write_text(json.dumps(made_fleet(folder, count)))


def tables(folder: Path, _: int) -> None:
    from drivelab.analysis.fleet_parts import fleet_tables
    from drivelab.tables import io

    for name, table in fleet_tables(json.loads((folder / "outcomes.json").read_text()), 5.0).items():
        io.write(table, folder / f"tables/{name}.parquet", name)


def deltas(folder: Path, _: int) -> None:
    from drivelab.analysis.fleet_parts import write_deltas

    outcomes = json.loads((folder / "outcomes.json").read_text())
    write_deltas(outcomes, STUDY["basis"], folder / "tables/deltas", STUDY["comparison"], None)


def report(folder: Path, _: int) -> None:
    from drivelab.report.fleet_page import write_report

    paths = {name: folder / f"tables/{name}.parquet" for name in TABLES}
    outcomes = json.loads((folder / "outcomes.json").read_text())
    write_report({**paths, "deltas": folder / "tables/deltas"}, outcomes, STUDY, folder / "report.html")


def measured(step: Any, folder: Path, count: int) -> tuple[float, float]:
    """Run a step in a separate process; return CPU seconds and MiB of memory."""
    child = os.fork()
    if not child:
        step(folder, count)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{step.__name__} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(counts: list[int], folder: Path) -> int:
    missed, memory = 0, {}
    for count in counts:
        place = folder / str(count)
        place.mkdir()
        measured(make, place, count)
        for step in (tables, deltas, report):
            cpu_s, memory[step.__name__, count] = measured(step, place, count)
            mib = memory[step.__name__, count]
            bad = cpu_s > MOST_S or mib > MOST_MIB
            missed += bad
            print(f"{count} drives, {step.__name__}: {cpu_s:.1f} s of CPU, {mib:.0f} MiB"
                  f" (bars {MOST_S} s, {MOST_MIB} MiB){' MISSED' if bad else ''}", flush=True)  # fmt: skip
        size = (place / "report.html").stat().st_size
        missed += size > MOST_REPORT_BYTES
        print(f"{count} drives, report of {size / 2**20:.2f} MiB (bar {MOST_REPORT_BYTES >> 20} MiB)")
    for step in ("tables", "deltas", "report"):
        growth = (memory[step, counts[-1]] - memory[step, counts[0]]) / (counts[-1] - counts[0])
        missed += growth > MOST_MIB_PER_DRIVE
        print(f"{step}: {growth:.2f} MiB more per drive (bar {MOST_MIB_PER_DRIVE} MiB)")
    return int(missed > 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(list(map(int, sys.argv[1:])) or [250, 1000], Path(temporary)))
