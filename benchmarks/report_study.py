"""Measure time, memory and size of the report of many drives, from their recordings.

python benchmarks/report_study.py [--drives 100] [FOLDER]

FOLDER keeps the study of three measurements; missing recordings are made on the virtual clock. Snakemake runs the
workflow as for a user, one job after another, on one core. Prints the elapsed and CPU seconds of all processes, the
memory of the largest, the number of jobs and the size of the page, with their bars; the exit status is 1 when one is
missed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import yaml

from drivelab.campaign.planning import Campaign
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("config", "traces", "workflow", "profiles", "scripts")
MANY = """\
name: many
title: Many virtual drives
results: results
clock: virtual
basis: d1
drives: [{names}]
drives_sheet: config/many.tsv
measurements:
  - {{protocol: pts-iops, scale: demo}}
  - {{protocol: pts-latency, scale: demo}}
  - {{protocol: pts-write-saturation, scale: demo}}
"""
REPORT = "results/report/index.html"


class Run(NamedTuple):
    """Result of a run of Snakemake."""

    wall_s: float
    most_mb: float
    output: str
    cpu_s: float


def workflow(project: Path, target: str) -> Run:
    """Run the workflow on the first core available to this process."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nocolor", "--config", "study=config/study.yaml",
               "png=no", "--", target]  # fmt: skip
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


def project(folder: Path, drives: int) -> Path:
    """Copy the project and add the study of this many drives."""
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "config/study.yaml").write_text(many_drives(folder / "config", drives))
    return folder


def many_drives(config: Path, count: int) -> str:
    """Return the study of many drives; add the drives, whose flash differs by a few percent.

    They are ten times slower and smaller than op7: fewer requests to simulate, but as many cells and seconds.
    """
    names = [f"d{number}" for number in range(1, count + 1)]
    rows = [f"{name}\tvirtual:{name}\tMANY-{name}\tyes\t" for name in names]
    (config / "many.tsv").write_text("\n".join(["drive\tdevice\tserial\tdestructive\tnote", *rows, ""]))
    file = config / "virtual_drives.yaml"
    models = yaml.safe_load(file.read_text())
    slow = models["op7"] | {"capacity": "16MiB", "slc_cache": "12MiB"}
    slow |= {key: 10 * value for key, value in slow.items() if key.endswith("_us") and key != "idle_after_us"}
    times_us = {name: 6800 + 70 * (number % 20) for number, name in enumerate(names)}
    many = {name: slow | {"serial": f"MANY-{name}", "program_us": time} for name, time in times_us.items()}
    file.write_text(yaml.safe_dump(models | many))
    return MANY.format(names=", ".join(names))


def record(study: Path) -> None:
    """Make the missing recordings in this process, much faster than the workflow's three processes for each."""
    seals = {stage: study / f"results/{stage}.json" for stage in ("purge", "precondition")}
    with contextlib.chdir(study):
        for planned in Campaign.load("config/study.yaml").plans:
            if not (planned.plan.recording_path / "recording.json").exists():
                purge(planned.plan, seals["purge"])
                precondition(planned.plan, seals["purge"], seals["precondition"])
                measure(planned.plan, seals["precondition"])
    for seal in seals.values():
        seal.unlink(missing_ok=True)


def judged(figure: float, unit: str, bar: float) -> bool:
    """Print a number with its bar; return whether it is below the bar."""
    print(f"{figure:.1f} {unit} ({'<' if figure < bar else 'MISSES'} {bar:g})", flush=True)
    return figure < bar


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--drives", type=int, metavar="N", default=100)
    parser.add_argument("folder", nargs="?", type=Path, help="keep the study here (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        study = project(options.folder or Path(temporary), options.drives)
        record(study)
        results = study / "results"
        for name in ("tables", "figures", "report"):
            shutil.rmtree(results / name, ignore_errors=True)
        run = workflow(study, REPORT)
        print(
            f"{jobs(run.output)} jobs in {run.wall_s:.1f} s, {len(list((results / 'figures').rglob('*.svg')))} figures"
        )
        met = [
            judged(run.cpu_s / options.drives, "s CPU per drive", 5.0),
            judged(run.most_mb, "MB", 1200),
            judged((study / REPORT).stat().st_size / 1e6, "MB of report", 15),
        ]
    if not all(met):
        sys.exit("a bar was missed")


if __name__ == "__main__":
    main()
