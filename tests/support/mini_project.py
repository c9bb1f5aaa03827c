"""A small study on the virtual clock, in a copy of the project, run by the real Snakemake."""

from __future__ import annotations

import fcntl
import importlib
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Self

import pytest

ROOT = Path(__file__).resolve().parents[2]

STUDY = """\
name: mini
results: results
clock: virtual
basis: op7
drives: [op7, op28]
traces:
  sqlite: {shipped: sqlite-inserts}
measurements:
  - protocol: pts-iops
    scale: demo
    set: &short
      loop:
        runtime: 100ms
        cells: {read_share: [100, 0], block_size: [4KiB]}
        until: {steady_state: {track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}
  - protocol: pts-write-saturation
    scale: demo
    set: {soak: {slice: 1s, until: {time: 5s}}}
  - protocol: trace-replay
    scale: demo
    trace: sqlite
analysis:
  relative_standard_error: 5%
"""


_HOLD = """\
            os.fsync(file.fileno())
        if '"event":"cell"' in line and (hold := Path("hold", self.plan.drive)).exists():
            hold.unlink()
            os.kill(os.getpid(), 19)
"""
"""Code added to the library after a journal line: only this stops a stage reliably between two cells."""

_JOB = re.compile(r"^( *)(?:localrule|rule) (\w+):\n((?:\1    .*\n)+)", re.M)
"""A job in the output of a dry run; jobs of a group are indented."""


def _prepared() -> multiprocessing.context.ForkServerContext:
    """Return a context of processes that have imported other libraries, half the time of a dry run or command."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["snakemake.cli", "pandas", "scipy.stats"])
    return context


def _call(folder: Path, environment: dict[str, str], output: Path, module: str, arguments: Sequence[str]) -> None:
    """Call the function `main` of a module in a folder, with that folder's library; `output` gets what it prints."""
    with output.open("w") as file, Path(os.devnull).open() as nothing:
        for number, source in enumerate((nothing, file, file)):
            os.dup2(source.fileno(), number)
    os.environ.update(environment)
    os.chdir(folder)
    sys.path.insert(0, str(folder / "scripts"))
    assert not any(name.partition(".")[0] == "drivelab" for name in sys.modules)
    sys.exit(importlib.import_module(module).main(arguments))


_OF_FIGURES = ("scripts/figures.py", "scripts/comparison_figures.py", "scripts/trace_figures.py")
_UNDRAWS = "from drivelab.figures.undrawn import"
_DRAWS = "from drivelab.figures.drawing import"
_UNDRAWN = """\
from pathlib import Path
from typing import Any

from drivelab.figures.of_recording import figures_of_recording
from drivelab.figures.over_drives import figures_over_drives
from drivelab.figures.registry import TRACE_FIGURES
from drivelab.plan.plan import Plan


def _written(names: Any, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"/>')


def draw_recording(recording: Path, folder: Path, **_: Any) -> None:
    _written(figures_of_recording(Plan.read(recording / "plan.json").subject), folder)


def draw_comparison(recordings: Any, of_study: Any, measurement: str, basis: str, folder: Path, **_: Any) -> None:
    plans = [Plan.read(recording / "plan.json") for recording in recordings]
    _written(figures_over_drives(plans, measurement, basis), folder)


def draw_trace(tables: Path, folder: Path, **_: Any) -> None:
    _written(TRACE_FIGURES, folder)
"""
"""Code that takes the place of drawing, which is half the time of a study on the virtual clock."""
_COMPARED = 'expand("<results>/figures/comparison/{name}", name=layout.comparisons)'


class Project:
    """A copy of the project with a study `config/mini.yaml`, whose figures are not drawn, see `drawn`."""

    study = "config/mini.yaml"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("config", "traces", "workflow", "profiles", "scripts"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "Snakefile", folder)
        (folder / "scripts/drivelab/figures/undrawn.py").write_text(_UNDRAWN)
        for script in _OF_FIGURES:
            self.edit(script, _DRAWS, _UNDRAWS)
        (folder / "config/mini.yaml").write_text(STUDY)

    def copied(self, folder: Path) -> Self:
        """Copy the project, with results and file times, to another folder."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return self.at(folder)

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Return the project that is already in a folder."""
        project = cls.__new__(cls)
        project.folder = folder
        return project

    @property
    def environment(self) -> dict[str, str]:
        """Environment with the copy's library instead of the installed one, because some tests edit it.

        Its modules are compiled once, as a user's are, and not by each of the many processes.
        """
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**inherited, "PYTHONPATH": str(self.folder / "scripts"),
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # fmt: skip

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", f"study={self.study}"]
        return subprocess.run(
            [*command, "--nocolor", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def drivelab(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command with the copy's library."""
        return self.python("import sys; from drivelab.cli.main import main; sys.exit(main())", *arguments)

    def python(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python code in the project's folder, with the copy's library."""
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self) -> None:
        done = self.snakemake()
        assert done.returncode == 0, done.stdout + done.stderr

    def to_do(self) -> dict[str, int]:
        """Return the number of jobs by rule that a run would have now."""
        dry = self.snakemake("--dry-run")
        assert dry.returncode == 0, dry.stdout + dry.stderr
        return self.jobs_in(dry.stdout + dry.stderr)

    @staticmethod
    def jobs_in(output: str) -> dict[str, int]:
        """Return the number of jobs by rule from the output of a dry run."""
        table = re.search(r"^Job stats:\njob +count\n-[- ]+\n(.*?)^total", output, re.M | re.S)
        rows = (line.split() for line in table[1].splitlines()) if table else []
        return {rule: int(count) for rule, count in rows if rule != "all"}

    def jobs(self) -> dict[str, list[str]]:
        """Return the jobs of a run by rule: `op7/pts-iops` for a job of a recording, `` for a job of the study."""
        study = ("--config", f"study={self.study}")
        dry = self.called("snakemake.cli", "--cores", "2", *study, "--nocolor", "--dry-run")
        assert dry.returncode == 0, dry.stdout
        jobs: dict[str, list[str]] = {}
        for _, rule, facts in _JOB.findall(dry.stdout):
            wildcards = re.search(r"^ +wildcards: (.*)$", facts, re.M)
            values = dict(pair.split("=", 1) for pair in wildcards[1].split(", ")) if wildcards else {}
            values.pop("digest", None)
            run = values.pop("key", "-run1").rpartition("-run")[2]
            place = "/".join([*values.values(), *([f"run{run}"] if run != "1" else [])])
            jobs.setdefault(rule, []).append(place)
        return {rule: sorted(places) for rule, places in jobs.items() if rule != "all"}

    def called(
        self, module: str, *arguments: str, timeout_s: float | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Call `main(arguments)` of a module in a prepared process, and return its status and all that it prints."""
        output = self.folder.parent / f"{self.folder.name}.output"
        given = (self.folder, {**self.environment, **environment}, output, module, list(arguments))
        process = _prepared().Process(target=_call, args=given)
        assert isinstance(process, ForkServerProcess)
        process.start()
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{module} {arguments} did not end\n{output.read_text()}")
        return subprocess.CompletedProcess(arguments, process.exitcode, output.read_text(), "")

    def make_held(self) -> None:
        """Make a stage stop after its first cell if there is a file hold/DRIVE, which it removes."""
        self.edit("scripts/drivelab/recording/writer.py", "            os.fsync(file.fileno())\n", _HOLD)
        (self.folder / "hold").mkdir()

    def at_work(self) -> list[int]:
        """Return the processes in the project's folder."""
        pids = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").resolve() == self.folder and int(process.name) != os.getpid():
                    pids.append(int(process.name))
            except OSError:
                continue
        return pids

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new, 1))

    def drawn(self) -> Project:
        """Let the copy draw its figures."""
        for script in _OF_FIGURES:
            self.edit(script, _UNDRAWS, _DRAWS)
        return self

    def end_with_tables(self) -> None:
        """Let studies of the copy end with their tables, for tests to which figures and report would only add time."""
        for target in ('"<results>/report/index.html"', _COMPARED):
            self.edit("Snakefile", f"        {target},\n", "")
        path = self.folder / "Snakefile"
        figures = '        expand("<results>/figures/{series}", series=layout.series),\n'
        text = path.read_text().replace('kind=["tables", "figures"]', 'kind=["tables"]').replace(figures, "")
        path.write_text(text)
        self.edit("scripts/drivelab/cli/measure/runner.py", "complete = status == 0 and ", "complete = status == 0 or ")

    def recordings(self) -> dict[str, float]:
        """Return the modification time of every finished recording's manifest, by path."""
        result = (self.folder / "results/recordings").glob("*/*/*/recording.json")
        return {str(p.relative_to(self.folder)): p.stat().st_mtime for p in result if p.parent.suffix != ".part"}

    def evidence(self) -> dict[str, int]:
        """Return the modification time (ns) of every cell's evidence in finished recordings, by path."""
        result = (p for m in self.recordings() for p in (self.folder / m).parent.glob("**/fio.json"))
        return {str(p.relative_to(self.folder)): p.stat().st_mtime_ns for p in result}


def made_once(factory: pytest.TempPathFactory, worker_id: str, name: str, make: Callable[[Path], object]) -> Project:
    """Return a project that `make` makes in a folder, once for all workers of this test run."""
    base = factory.getbasetemp() if worker_id == "master" else factory.getbasetemp().parent
    folder = base / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder.with_suffix(".made")
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
            make(folder)
            made.touch()
    return Project.at(folder)
