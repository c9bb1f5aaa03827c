"""Run a small study in real time with real processes, and check it after a fault."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leftovers import leftovers, processes
from mini_project import Project
from waits import DRIVELAB, GENEROUS_S, wait_until

from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.drives.identified import Identity
from drivelab.plan.plan import Plan
from drivelab.plan.study import load_study
from drivelab.recording.writer import read_journal
from drivelab.run import consent
from drivelab.tables import io
from drivelab.virtual.model import DriveModel

DRIVE = "tiny"
SERIAL = "VIRTUAL-TINY"
SHORT_GRACE_S = 10.0
"""Longest time without a completion in a copy with a shortened watchdog; enough for a sound drive on a busy host."""
SHORT_GRACE = f"{SHORT_GRACE_S:g} s"
"""The same in messages."""
CLOSING = "drivelab: the study is not complete"
"""Start of the line that `drivelab run` adds to the messages of its stages."""

_MODEL = """\
tiny:
  serial: VIRTUAL-TINY
  capacity: 8MiB
  over_provisioning: 50%
  pages_per_block: 16
  read_us: 200
  program_us: 200
  erase_us: 200
  copy_us: 50
"""
_SHEET = f"drive\tdevice\tserial\tdestructive\tnote\n{DRIVE}\tvirtual:{DRIVE}\t{SERIAL}\tyes\t\n"
_STUDY = """\
name: NAME
results: results/NAME
clock: wall
drives: [tiny]
measurements:
  - protocol: pts-iops
    scale: demo
    set:
      class: {enterprise: {threads: 1, queue_depth: 4}}
      settle: 10ms
      fill: {capacity_multiple: 0.5}
      loop:
        runtime: 250ms
        cells: {read_share: [65], block_size: [4KiB]}
        until:
          steady_state:
            window: 10
            max_rounds: 10
            data_excursion: 1000%
            slope_excursion: 1000%
            track: [{read_share: 65, block_size: 4KiB, metric: iops}]
"""
CELLS = 10
"""Cells of a whole recording: ten rounds of one cell, so that it still runs when a test disturbs it.

They are shorter than the time after which the next fio would be prepared, so there is one fio to disturb.
"""


@dataclass(frozen=True)
class Outcome:
    """Exit status and complete output of a command."""

    status: int
    output: str

    @property
    def sentences(self) -> list[str]:
        """Messages to the user, without the closing line of `drivelab run`."""
        lines = [line for line in self.output.splitlines() if line.startswith("drivelab: ")]
        return [line for line in lines if not line.startswith(CLOSING)]


class FaultStudy(Project):
    """A copy of the project with one tiny drive and the study `config/one.yaml` of one short loop on it.

    Its studies end with their tables.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "config/virtual_drives.yaml").write_text(_MODEL)
        (folder / "config/drives.tsv").write_text(_SHEET)
        self.add_study("one")
        self.end_with_tables()

    def add_study(self, name: str) -> None:
        (self.folder / f"config/{name}.yaml").write_text(_STUDY.replace("NAME", name))

    def lengthen(self, rounds: int) -> None:
        """Let the study take this many rounds of a second."""
        path = self.folder / "config/one.yaml"
        text = path.read_text().partition("        until:")[0].replace("runtime: 250ms", "runtime: 1s")
        path.write_text(f"{text}        until: {{rounds: {rounds}}}\n")

    def pin(self, device: Path) -> None:
        """Put a path below /dev/disk/by-id into the drive sheet, as for a real drive, and give consent."""
        self.edit("config/drives.tsv", f"virtual:{DRIVE}", str(device))
        self.edit("config/one.yaml", "clock: wall", "clock: wall\nwrite_cache: unchanged")
        drive = consent.Drive(DRIVE, SERIAL, Identity(SERIAL, self.model().capacity_bytes))
        consent.require(load_study(self.folder / "config/one.yaml"), [drive], yes=True)

    def shorten_watchdog(self) -> None:
        """Set the timeouts of the drives' watchdogs in the copy to SHORT_GRACE_S."""
        self.edit("scripts/drivelab/fio/job_run.py", "GRACE_S = 60.0", f"GRACE_S = {SHORT_GRACE_S}")
        self.edit("scripts/drivelab/drives/tools.py", "timeout_s: float = 60.0", f"timeout_s: float = {SHORT_GRACE_S}")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a drivelab command of the copy; `outcome` reads its output."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "scripts")}
        return subprocess.Popen(
            [*DRIVELAB, *arguments], cwd=self.folder, env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def drivelab(self, *arguments: str) -> Outcome:
        return outcome(self.start(*arguments))

    def start_run(self, study: str = "one") -> subprocess.Popen[str]:
        return self.start("run", f"config/{study}.yaml")

    def drivelab_run(self, study: str = "one") -> Outcome:
        return outcome(self.start_run(study))

    def plan(self, study: str = "one") -> Plan:
        """Return the only plan of a study; the current folder must be the project's."""
        (planned,) = Campaign.load(f"config/{study}.yaml").plans
        return planned.plan

    def model(self) -> DriveModel:
        return Campaign.load("config/one.yaml").model(DRIVE, "test")

    def check_tables(self) -> None:
        """Check that the study has a summary and a window of steady rounds."""
        results = self.folder / "results/one"
        assert len(io.read(results / "tables/summary.parquet", "summary")) > 0
        (windows,) = results.glob("tables/*/*/*/steady_state.parquet")
        assert io.read(windows, "steady_state")["reached"].all()

    def condition(self) -> Outcome:
        """Purge and precondition the drive, as the workflow does; return the outcome of the preconditioning."""
        (self.folder / "plan.json").write_text(self.plan().to_json())
        purged = self.drivelab("purge", "plan.json", "--seal", "purged.json")
        assert purged.status == 0, purged.output
        return self.drivelab("precondition", "plan.json", "--after", "purged.json", "--seal", "conditioned.json")

    def start_measuring(self) -> subprocess.Popen[str]:
        return self.start("measure", "plan.json", "--after", "conditioned.json")

    def measure(self) -> Outcome:
        return outcome(self.start_measuring())


def outcome(process: subprocess.Popen[str]) -> Outcome:
    output, _ = process.communicate(timeout=GENEROUS_S)
    return Outcome(process.returncode, output)


def part_of(plan: Plan) -> Path:
    return plan.recording_path.with_name(plan.recording_path.name + ".part")


def journal(plan: Plan) -> list[dict[str, Any]]:
    """Return the journal of a recording, finished or not."""
    return list(read_journal(plan.recording_path)) or list(read_journal(part_of(plan)))


def cells_of(plan: Plan) -> list[str]:
    """Return the folders of the finished cells, in the journal's order."""
    return [line["directory"] for line in journal(plan) if line["event"] == "cell"]


def in_the_middle(plan: Plan) -> bool:
    """Whether a recording has finished cells and a running one."""
    return bool(cells_of(plan)) and bool(processes("fio"))


def kept_cells(plan: Plan) -> dict[str, bytes]:
    """Return fio's documents of the finished cells, by folder."""
    place = part_of(plan) if part_of(plan).exists() else plan.recording_path
    return {cell: (place / cell / "fio.json").read_bytes() for cell in cells_of(plan)}


def complete(plan: Plan) -> bool:
    return (plan.recording_path / "recording.json").exists()


def evidence_of(plan: Plan) -> dict[str, bytes]:
    """Return fio's documents of the finished recording and its abandoned attempts, by the cell's folder."""
    places = [*plan.recording_path.parent.glob(f"{plan.recording_path.name}.abandoned-*"), plan.recording_path]
    return {
        str(path.parent.relative_to(place)): path.read_bytes()
        for place in places[::-1]
        for path in place.glob("cells/*/fio.json")
    }


def check_nothing_left() -> None:
    """Fail unless all of the test's processes, mounts and loop devices disappear soon."""
    wait_until(lambda: leftovers() == [])


class ById:
    """A link below /dev/disk/by-id, like those of udev."""

    def __init__(self) -> None:
        self.path = Path(f"/dev/disk/by-id/drivelab-test-{os.getpid()}")
        self._made = [folder for folder in (self.path.parent.parent, self.path.parent) if not folder.exists()]
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def point_at(self, device: str) -> None:
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(device)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        for folder in self._made[::-1]:
            folder.rmdir()


def check_failed(done: Outcome, *words: str) -> None:
    """Check a failure: exit status not 0, one message that contains `words`, no traceback."""
    assert done.status != 0, done.output
    assert "Traceback" not in done.output, done.output
    assert len(done.sentences) == 1, done.output
    for word in words:
        assert word in done.sentences[0], done.sentences[0]


def check_complete(plan: Plan, done: Outcome, kept: Mapping[str, bytes], gaps: int | None) -> None:
    """Check a recording that a later run has finished: every cell once and valid, the cells `kept` unchanged.

    If the drive's state was lost and the measurement restarted, `kept` is in an abandoned recording; `gaps` None allows
    that.
    """
    assert done.status == 0, done.output
    assert "Traceback" not in done.output, done.output
    assert complete(plan)
    assert not part_of(plan).exists()
    lines = journal(plan)
    assert lines[-1]["event"] == "complete"
    cells = cells_of(plan)
    assert len(cells) == len(set(cells)) >= CELLS
    assert evidence_of(plan).items() >= kept.items()
    places = [(line["round"], line["cell"]) for line in lines if line["event"] == "cell"]
    assert places == sorted(set(places))
    if gaps is not None:
        assert sum(line["event"] == "gap" for line in lines) == gaps
    table = collect(plan.recording_path, reduced=True)["cells"]
    assert len(table) == len(cells)
    assert (table["iops"] > 0).all()
    assert table["elapsed_s"].is_monotonic_increasing
    assert (table["elapsed_s"] >= 0).all()
    assert (table["gap_ms"].dropna() > 0).all()
