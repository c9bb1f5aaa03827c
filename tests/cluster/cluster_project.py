"""A small study on the virtual clock with three drives on the two hosts of a Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from mini_project import Project
from slurm import Slurm
from waits import DRIVELAB, wait_until

from drivelab.core.programs import process_state
from drivelab.recording.writer import read_journal

DRIVES = {"op7": "host0", "op28": "host1", "op7-512e": "host0"}
"""Drives and their hosts."""
_STUDY = """\
name: mini
results: results
clock: virtual
basis: op7
drives: [op7, op28, op7-512e]
drives_sheet: config/spread.tsv
measurements:
  - protocol: pts-iops
    scale: demo
    set:
      loop:
        runtime: 100ms
        cells: {read_share: [100, 65, 35, 0], block_size: [4KiB, 8KiB, 16KiB, 32KiB, 64KiB]}
        until: {steady_state: {track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}
"""
_LONGEST_RUN_S = 1200.0
_HEAD = "drive\tdevice\tserial\tdestructive\tnote\thost\n"


class ClusterProject(Project):
    """The project with its study, and the Slurm that runs it."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        super().__init__(folder)
        self.slurm = slurm
        self._started: list[subprocess.Popen[bytes]] = []
        self._log = folder / "run.log"
        (folder / "config/mini.yaml").write_text(_STUDY)
        self.edit("profiles/slurm/config.yaml", "status-checks: 10", "status-checks: 1")
        self.make_held()
        rows = (f"{drive}\tvirtual:{drive}\tVIRTUAL-{drive.upper()}\tyes\t\t{host}\n" for drive, host in DRIVES.items())
        (folder / "config/spread.tsv").write_text(_HEAD + "".join(rows))

    @property
    def environment(self) -> dict[str, str]:
        mine = {**super().environment}
        mine["PYTHONPATH"] += f":{Path(__file__).parent / 'polling'}"
        return {**mine, "SLURM_CONF": self.slurm.environment["SLURM_CONF"],
                "PATH": f"{self.slurm.folder}/bin:{mine['PATH']}:/usr/sbin:/sbin"}  # fmt: skip

    def start(self, *before: str) -> subprocess.Popen[bytes]:
        """Start `drivelab run` with the Slurm profile; `before` precedes the command."""
        command = [*before, *DRIVELAB, "run", "--profile", "profiles/slurm", "config/mini.yaml"]
        return self._start(command, self.environment)

    def measure(self) -> subprocess.Popen[bytes]:
        """Start plain Snakemake with the Slurm profile, up to the recordings."""
        environment = self.environment
        environment["PYTHONPATH"] += f":{sys.prefix}/cluster"
        command = [sys.executable, "-m", "snakemake", "--profile", "profiles/slurm", "--nocolor"]
        return self._start([*command, "--config", "study=config/mini.yaml", "--until", "measure"], environment)

    def _start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as output:
            process = subprocess.Popen(command, cwd=self.folder, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       start_new_session=True)  # fmt: skip
        self._started.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        """Kill processes that a failed test left running."""
        for process in self._started:
            if process.poll() is None:
                self.kill(process)
        self.slurm.ask("scancel", "--user=root")
        for drive in DRIVES:
            for pid in self._stages(drive):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.slurm.ask("squeue", "-h"), tell=self.tell)

    def move(self, drive: str, host: str) -> None:
        """Attach a drive to another host."""
        name = f"VIRTUAL-{drive.upper()}"
        self.edit("config/spread.tsv", f"{name}\tyes\t\t{DRIVES[drive]}\n", f"{name}\tyes\t\t{host}\n")

    def ended(self, process: subprocess.Popen[bytes]) -> tuple[int, str]:
        """Wait for a process; return its exit status and output."""
        try:
            process.wait(timeout=_LONGEST_RUN_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run has not ended after {_LONGEST_RUN_S} s\n{self.tell()}") from None
        return process.returncode, self._log.read_text()

    def hold(self, *drives: str) -> None:
        """Make the stages that measure these drives stop after their first cell."""
        for drive in drives:
            (self.folder / "hold" / drive).touch()

    def held(self, drive: str) -> int:
        """Wait until the stage that measures a drive has stopped; return its process ID."""
        pids: list[int] = []

        def is_stopped() -> bool:
            pids[:] = [pid for pid in self._stages(drive) if process_state(pid)[0] == "T"]
            assert pids or self._started[-1].poll() is None, self.tell()
            return bool(pids)

        wait_until(is_stopped, tell=self.tell)
        assert len(self.journal(drive, "cell")) == 1
        return pids[0]

    def tell(self) -> str:
        """Return the output of the run and of Slurm, for a failed test."""
        controller = (self.slurm.folder / "slurmctld.log").read_text().splitlines()[-40:]
        answers = [self.slurm.ask(*command) for command in (["squeue", "-l"], ["sinfo", "-N", "-l"])]
        return "\n".join([self._log.read_text(), *answers, *controller])

    def journal(self, drive: str, event: str) -> list[dict[str, Any]]:
        """Return the lines of an event from all journals of a drive, finished or not."""
        paths = (self.folder / "results/recordings").glob(f"{drive}/*/*/journal.jsonl")
        lines = [line for path in paths for line in read_journal(path.parent)]
        return [line for line in lines if line["event"] == event]

    def is_recorded(self, drive: str) -> bool:
        return any((self.folder / "results/recordings").glob(f"{drive}/*/*/recording.json"))

    def _stages(self, drive: str) -> list[int]:
        pids = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                words = (directory / "cmdline").read_text().split("\0")
                here = (directory / "cwd").resolve() == self.folder
            except OSError:
                continue
            if here and words[2:3] == ["measure"] and any(f"plans/{drive}/" in text for text in words):
                pids.append(int(directory.name))
        return pids
