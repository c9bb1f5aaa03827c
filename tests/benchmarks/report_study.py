"""Measure time, memory and size of the report of four drives and ten protocols.

python tests/benchmarks/report_study.py [FOLDER]

FOLDER keeps the study; missing recordings are measured on the virtual clock. Snakemake runs the workflow as for a user,
one job after another, on one core. Each step prints its elapsed and CPU seconds (of all its processes), the memory of
the largest process and the number of jobs:

* all that is missing: missing recordings, then all targets with PNG and PDF;
* report from recordings: only recordings exist; all tables and figures are made;
* report from tables, all figures drawn: all tables exist, but no figure;
* report from tables of recordings and figures: figures and tables of single recordings and drives exist; joint tables
  (summary, differences, exclusions …) do not;
* report alone: all tables and figures exist;
* PDF alone: the PDF of the PTS pages; all other files exist.

A number is printed with its bar, if it has one; the exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("config", "traces", "workflow", "profiles", "scripts")
STUDY = """\
name: four-by-ten
title: Four virtual drives through ten protocols
results: results
clock: virtual
basis: op7
drives: [op7, op28, op7-512e, op28-512e]
traces:
  sqlite: {shipped: sqlite-inserts}
measurements:
  - {protocol: pts-iops, scale: demo}
  - {protocol: pts-throughput, scale: demo}
  - {protocol: pts-latency, scale: demo}
  - {protocol: pts-write-saturation, scale: demo}
  - {protocol: pts-idle-recovery, scale: demo}
  - {protocol: pts-cross-stimulus-recovery, scale: demo}
  - {protocol: pts-composite-block-workload, scale: demo}
  - {protocol: qos-nines, scale: demo}
  - {protocol: stec-read-shares, scale: demo}
  - {protocol: trace-replay, scale: demo, trace: sqlite}
"""
REPORT, PDF = "results/report/index.html", "results/report/pts-pages.pdf"


class Run(NamedTuple):
    """Result of a run of Snakemake."""

    wall_s: float
    most_mb: float
    output: str
    cpu_s: float


def workflow(project: Path, *targets: str, png: bool = False) -> Run:
    """Run the workflow on the first core available to this process."""
    config = ["study=config/study.yaml", *(() if png else ("png=no",))]
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nocolor", "--config", *config, "--", *targets]
    environment = {**os.environ, "PYTHONPATH": str(project / "scripts"),
                   "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # fmt: skip
    core = min(os.sched_getaffinity(0))
    began_s = time.perf_counter()
    done = subprocess.Popen(
        command,
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    assert done.stdout is not None
    output = done.stdout.read()
    _, status, used = os.wait4(done.pid, 0)
    if status:
        sys.exit(output)
    return Run(time.perf_counter() - began_s, used.ru_maxrss * 1024 / 1e6, output, used.ru_utime + used.ru_stime)


def jobs(output: str) -> int:
    """Return the number of jobs that Snakemake ran."""
    total = re.search(r"^total +(\d+)", output, re.M)
    return int(total[1]) if total else 0


def project(folder: Path) -> Path:
    """Copy the project and add the study."""
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "config/study.yaml").write_text(STUDY)
    return folder


def remove(results: Path, *names: str) -> None:
    for name in names:
        shutil.rmtree(results / name, ignore_errors=True)


def judged(figure: float, unit: str, bar: float | None) -> tuple[str, bool]:
    """Format a number with its bar; also return whether it is below the bar."""
    met = bar is None or figure < bar
    against = "" if bar is None else f" ({'<' if met else 'MISSES'} {bar:g})"
    return f"{f'{figure:.1f} {unit}{against}':<22}", met


def print_step(step: str, run: Run, most_s: float | None = None, most_mb: float | None = None) -> bool:
    """Print a step; return whether it meets its bars."""
    wall, in_time = judged(run.wall_s, "s", most_s)
    memory, in_memory = judged(run.most_mb, "MB", most_mb)
    print(f"{step:<52}{wall} {run.cpu_s:7.1f} s CPU   {memory} {jobs(run.said):5d} jobs", flush=True)
    return in_time and in_memory


def main() -> None:
    met = []
    with tempfile.TemporaryDirectory() as temporary:
        study = project(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
        results = study / "results"
        print_step("all that is missing", workflow(study, "all", png=True))
        remove(results, "tables", "figures", "report")
        met.append(print_step("report from recordings", workflow(study, REPORT), most_s=60, most_mb=600))
        remove(results, "figures", "report")
        print_step("report from tables, all figures drawn", workflow(study, REPORT))
        for name in ("summary", "deltas", "conditions", "differences", "exclusions"):
            (results / f"tables/{name}.parquet").unlink()
        remove(results, "report")
        met.append(print_step("report from tables of recordings and figures", workflow(study, REPORT), most_s=15))
        remove(results, "report")
        met.append(print_step("report alone", workflow(study, REPORT), most_s=15))
        met.append(print_step("PDF alone", workflow(study, PDF), most_mb=600))
        size, small = judged((results / "report/index.html").stat().st_size / 1e6, "MB", 10)
        met.append(small)
        print(f"report: {size.rstrip()} with {len(list((results / 'figures').rglob('*.svg')))} figures")
    if not all(met):
        sys.exit("a bar was missed")


if __name__ == "__main__":
    main()
