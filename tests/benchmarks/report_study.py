"""Measure time, memory and size of the report of four drives and ten protocols, or of many drives.

python tests/benchmarks/report_study.py [--drives N] [FOLDER]

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

With `--drives N`, the study has N drives and three measurements. The only step is the report from
recordings. Use another FOLDER than for four drives.

A number is printed with its bar, if it has one; the exit status is 1 when a bar is missed.
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


def project(folder: Path, drives: int | None) -> Path:
    """Copy the project and add the study: of four drives, or of this many."""
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "config/study.yaml").write_text(STUDY if drives is None else many_drives(folder / "config", drives))
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


def remove(results: Path, *names: str) -> None:
    for name in names:
        shutil.rmtree(results / name, ignore_errors=True)


def judged(figure: float, unit: str, bar: float | None) -> tuple[str, bool]:
    """Format a number with its bar; also return whether it is below the bar."""
    met = bar is None or figure < bar
    against = "" if bar is None else f" ({'<' if met else 'MISSES'} {bar:g})"
    return f"{f'{figure:.1f} {unit}{against}':<22}", met


def print_step(step: str, run: Run, most_cpu_s: float | None = None, most_mb: float | None = None) -> bool:
    """Print a step; return whether it meets its bars."""
    cpu, in_time = judged(run.cpu_s, "s CPU", most_cpu_s)
    memory, in_memory = judged(run.most_mb, "MB", most_mb)
    print(f"{step:<48}{run.wall_s:7.1f} s   {cpu} {memory} {jobs(run.output):5d} jobs", flush=True)
    return in_time and in_memory


def print_page(results: Path, most_mb: float) -> bool:
    """Print the size of the report; return whether it meets its bar."""
    size, small = judged((results / "report/index.html").stat().st_size / 1e6, "MB", most_mb)
    print(f"report: {size.rstrip()} with {len(list((results / 'figures').rglob('*.svg')))} figures")
    return small


def measure_many(study: Path, drives: int) -> list[bool]:
    """Measure the report of many drives; return which bars are met."""
    record(study)
    remove(study / "results", "tables", "figures", "report")
    run = workflow(study, REPORT)
    met = print_step("report from recordings", run, most_cpu_s=5.0 * drives, most_mb=1200)
    print(f"{run.cpu_s / drives:.2f} s CPU per drive")
    return [met, print_page(study / "results", 15)]


def measure_four(study: Path) -> list[bool]:
    """Measure all steps of the report of four drives; return which bars are met."""
    results = study / "results"
    print_step("all that is missing", workflow(study, "all", png=True))
    remove(results, "tables", "figures", "report")
    met = [print_step("report from recordings", workflow(study, REPORT), most_cpu_s=40, most_mb=600)]
    remove(results, "figures", "report")
    print_step("report from tables, all figures drawn", workflow(study, REPORT))
    for name in ("summary", "deltas", "conditions", "differences", "exclusions"):
        (results / f"tables/{name}.parquet").unlink()
    remove(results, "report")
    met.append(print_step("report from tables of recordings and figures", workflow(study, REPORT), most_cpu_s=15))
    remove(results, "report")
    met.append(print_step("report alone", workflow(study, REPORT), most_cpu_s=15))
    met.append(print_step("PDF alone", workflow(study, PDF), most_mb=600))
    return [*met, print_page(results, 10)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--drives", type=int, metavar="N", help="measure the report of N drives and three measurements")
    parser.add_argument("folder", nargs="?", type=Path, help="keep the study here (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        study = project(options.folder or Path(temporary), options.drives)
        met = measure_four(study) if options.drives is None else measure_many(study, options.drives)
    if not all(met):
        sys.exit("a bar was missed")


if __name__ == "__main__":
    main()
