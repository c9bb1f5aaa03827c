"""From recordings to the report of four drives and ten protocols, on one core: time, memory and size.

python tests/benchmarks/report_study.py [FOLDER]

FOLDER keeps the study, which is measured on the virtual clock if it is not there yet. The workflow's own rules and
scripts run, by Snakemake, one after another; but in one process, so that what is told is the work and not the start of
a Python for each of its jobs, which is told apart.
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
ONE_PROCESS = """\
import runpy, sys
from snakemake.cli import main
from snakemake.script import PythonScript

def execute_script(self, name, edit=False):
    paths = list(sys.path)  # every script adds to them, which is nothing in a process of its own
    try:
        runpy.run_path(name, run_name="__main__")
    finally:
        sys.path[:] = paths

PythonScript.execute_script = execute_script
main(sys.argv[1:])
"""


def workflow(project: Path, *targets: str, one_process: bool = True, png: bool = False) -> tuple[float, float, str]:
    """Seconds, MiB at most, and what Snakemake said; of a run on the first core that this process may use."""
    head = ["-c", ONE_PROCESS] if one_process else ["-m", "snakemake"]
    config = ["study=config/study.yaml", *(() if png else ("png=no",))]
    command = [sys.executable, *head, "--cores", "1", "--nocolor", "--config", *config, "--", *targets]
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
    return time.perf_counter() - began_s, used.ru_maxrss / 1024, said


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


def told(what: str, run: tuple[float, float, str]) -> None:
    seconds, most_mib, said = run
    print(f"{what:<58}{seconds:8.1f} s {most_mib:7.0f} MiB {jobs(said):6d} jobs", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        study = project(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
        results = study / "results"
        told("all that is not there yet, a process for each job", workflow(study, "all", one_process=False, png=True))
        remove(results, "tables", "figures", "report")
        told("report from recordings", workflow(study, REPORT))
        remove(results, "figures", "report")
        told("report from tables, all figures drawn", workflow(study, REPORT))
        for name in ("summary", "deltas", "conditions", "differences", "exclusions"):
            (results / f"tables/{name}.parquet").unlink()
        remove(results, "report")
        told("report from tables of recordings and figures", workflow(study, REPORT))
        remove(results, "report")
        told("report alone", workflow(study, REPORT))
        told("PDF alone", workflow(study, PDF))
        size_mb = (results / "report/index.html").stat().st_size / 1e6
        figures = len(list((results / "figures").rglob("*.svg")))
        print(f"report: {size_mb:.1f} MB with {figures} figures")


if __name__ == "__main__":
    main()
