"""Measure time and memory of a virtual fleet from the first run to its report.

    python tests/benchmarks/fleet_run.py [DRIVES [FOLDER]]

Default: 100 drives with two short measurements each, on the virtual clock, by `drivelab run`. FOLDER keeps the project
with the output of the run (`said.txt`); an interrupted run resumes. The outer Snakemake and the workflow of one drive
must each stay below a bar of memory, and nothing may be left to do at the end; otherwise the exit status is 1.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[1] / "support"
sys.path.insert(0, str(SUPPORT))

from fleet_project import fleet_project  # noqa: E402
from mini_project import Project  # noqa: E402

MOST_MIB = 500


def main(count: int, folder: Path) -> int:
    project = Project.__new__(Project)
    project.folder = folder
    if not (folder / "Snakefile").exists():
        project = fleet_project(folder, count, slow=7)
    began_s, cpu_s = time.monotonic(), _cpu_s()
    done = project.drivelab("run", project.study, "--cores", "2")
    (folder / "said.txt").write_text(done.stdout + done.stderr)
    print(f"run: exit status {done.returncode}, {time.monotonic() - began_s:.0f} s, {_cpu_s() - cpu_s:.0f} s of CPU")
    most_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process: {most_mib:.0f} MiB (bar {MOST_MIB})")
    outcomes = [json.loads(path.read_text()) for path in (folder / "results/drives").glob("*/outcome.*.json")]
    measured = sum(outcome["state"] == "measured" for outcome in outcomes)
    report = folder / "results/report/index.html"
    size = f"of {report.stat().st_size / 2**20:.2f} MiB" if report.exists() else "is missing"
    print(f"{measured} of {count} drives measured, report {size}: {report}")
    began_s = time.monotonic()
    to_do = project.to_do()
    print(f"afterwards: {to_do or 'nothing'} to do, checked in {time.monotonic() - began_s:.1f} s")
    return int(done.returncode != 0 or measured < count or bool(to_do) or most_mib > MOST_MIB)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    drives = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if len(sys.argv) > 2:
        sys.exit(main(drives, Path(sys.argv[2])))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(drives, Path(temporary) / "project"))
