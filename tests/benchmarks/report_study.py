"""From recordings to the report of four drives and ten protocols, on one core: time, memory and size.

python tests/benchmarks/report_study.py [FOLDER]

FOLDER keeps the study, which is measured on the virtual clock if it is not there yet. Snakemake runs the workflow as it
does for a user, one job after another. Each step says its seconds by the clock and of CPU (of all its processes), the
memory of the largest process and the number of jobs:

* all that is not there yet: recordings where they are missing, then all targets with PNG and PDF;
* report from recordings: nothing but recordings is there, all tables and figures are made;
* report from tables, all figures drawn: all tables are there, no figure;
* report from tables of recordings and figures: what is made of single recordings and drives is there, and the figures;
  what is made of all of them (summary, differences, exclusions …) is not;
* report alone: all tables and figures are there;
* PDF alone: the PDF of the PTS pages, with all else there.

Beside a figure stands its bar, if it has one; the exit status is 1 when a bar is missed.
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
    """Of Snakemake."""

    wall_s: float
    most_mb: float
    said: str
    cpu_s: float


def workflow(project: Path, *targets: str, png: bool = False) -> Run:
    """A run on the first core that this process may use."""
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
    said = done.stdout.read()
    _, status, used = os.wait4(done.pid, 0)
    if status:
        sys.exit(said)
    return Run(time.perf_counter() - began_s, used.ru_maxrss * 1024 / 1e6, said, used.ru_utime + used.ru_stime)


def jobs(said: str) -> int:
    """How many jobs Snakemake ran."""
    found = re.search(r"^total +(\d+)", said, re.M)
    return int(found[1]) if found else 0


def project(folder: Path) -> Path:
    """A copy of the project with the study, measured."""
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "config/study.yaml").write_text(STUDY)
    return folder


def remove(results: Path, *names: str) -> None:
    for name in names:
        shutil.rmtree(results / name, ignore_errors=True)


def judged(figure: float, unit: str, bar: float | None) -> tuple[str, bool]:
    """A figure with its bar, in words, and whether it is below it."""
    met = bar is None or figure < bar
    against = "" if bar is None else f" ({'<' if met else 'MISSES'} {bar:g})"
    return f"{f'{figure:.1f} {unit}{against}':<22}", met


def told(what: str, run: Run, most_s: float | None = None, most_mb: float | None = None) -> bool:
    """Print a step; whether it keeps to its bars."""
    wall, in_time = judged(run.wall_s, "s", most_s)
    memory, in_memory = judged(run.most_mb, "MB", most_mb)
    print(f"{what:<52}{wall} {run.cpu_s:7.1f} s CPU   {memory} {jobs(run.said):5d} jobs", flush=True)
    return in_time and in_memory


def main() -> None:
    met = []
    with tempfile.TemporaryDirectory() as temporary:
        study = project(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
        results = study / "results"
        told("all that is not there yet", workflow(study, "all", png=True))
        remove(results, "tables", "figures", "report")
        met.append(told("report from recordings", workflow(study, REPORT), most_s=60, most_mb=600))
        remove(results, "figures", "report")
        told("report from tables, all figures drawn", workflow(study, REPORT))
        for name in ("summary", "deltas", "conditions", "differences", "exclusions"):
            (results / f"tables/{name}.parquet").unlink()
        remove(results, "report")
        met.append(told("report from tables of recordings and figures", workflow(study, REPORT), most_s=15))
        remove(results, "report")
        met.append(told("report alone", workflow(study, REPORT), most_s=15))
        met.append(told("PDF alone", workflow(study, PDF), most_mb=600))
        size, small = judged((results / "report/index.html").stat().st_size / 1e6, "MB", 10)
        met.append(small)
        print(f"report: {size.rstrip()} with {len(list((results / 'figures').rglob('*.svg')))} figures")
    if not all(met):
        sys.exit("a bar was missed")


if __name__ == "__main__":
    main()
