"""A small study on the virtual clock whose three drives are attached to the two hosts of a Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from mini_project import Project
from slurm import Slurm
from waiting import wait_until

from drivelab.recording.writer import read_journal

DRIVES = {"op7": "host0", "op28": "host1", "op7-512e": "host0"}
"""Drives and the hosts that they are attached to."""
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
_HEAD = "drive\tdevice\tserial\tdestructive\tnote\thost\n"


class ClusterProject(Project):
    """The project, its study, and Slurm to run it."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        super().__init__(folder)
        self.slurm = slurm
        self._started: list[subprocess.Popen[str]] = []
        (folder / "config/mini.yaml").write_text(_STUDY)
        self.edit("profiles/slurm/config.yaml", "status-checks: 10", "status-checks: 1")
        rows = (f"{one}\tvirtual:{one}\tVIRTUAL-{one.upper()}\tyes\t\t{host}\n" for one, host in DRIVES.items())
        (folder / "config/spread.tsv").write_text(_HEAD + "".join(rows))

    @property
    def environment(self) -> dict[str, str]:
        mine = {**super().environment}
        mine["PYTHONPATH"] += f":{Path(__file__).parent / 'polling'}"
        return {**mine, "SLURM_CONF": self.slurm.environment["SLURM_CONF"],
                "PATH": f"{self.slurm.folder}/bin:{mine['PATH']}:/usr/sbin:/sbin"}  # fmt: skip

    def start(self) -> subprocess.Popen[str]:
        """`drivelab run` with the profile of Slurm."""
        code = "import sys; from drivelab.cli.main import main; sys.exit(main())"
        return self._start(["-c", code, "run", "--profile", "profiles/slurm", "config/mini.yaml"], self.environment)

    def measure(self) -> subprocess.Popen[str]:
        """Plain Snakemake with that profile, up to the recordings."""
        environment = self.environment
        environment["PYTHONPATH"] += f":{sys.prefix}/cluster"
        return self._start(["-m", "snakemake", "--profile", "profiles/slurm", "--config", "study=config/mini.yaml",
                            "--until", "measure", "--nocolor"], environment)  # fmt: skip

    def _start(self, arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._started.append(process)
        return process

    def end(self) -> None:
        """Kill what a test that has failed left at work."""
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def move(self, drive: str, host: str) -> None:
        """Attach a drive to another host."""
        name = f"VIRTUAL-{drive.upper()}"
        self.edit("config/spread.tsv", f"{name}\tyes\t\t{DRIVES[drive]}\n", f"{name}\tyes\t\t{host}\n")

    def ended(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Exit status and output."""
        output = process.communicate()[0]
        return process.returncode, output

    def hold_in_the_middle(self, drive: str) -> int:
        """Wait until a drive is being measured, and stop the stage that does it between two cells; its process."""
        found: list[int] = []

        def measuring() -> bool:
            found[:] = self._stages(drive)
            return bool(found and self.journal(drive, "cell"))

        wait_until(measuring, f"a cell of {drive}")
        os.kill(found[0], signal.SIGSTOP)
        assert not self.is_recorded(drive), "the measurement was over before it was stopped"
        return found[0]

    def journal(self, drive: str, event: str) -> list[dict[str, Any]]:
        """Lines of one kind in the journals of a drive, of finished recordings and of others."""
        paths = (self.folder / "results/recordings").glob(f"{drive}/*/*/journal.jsonl")
        lines = [line for path in paths for line in read_journal(path.parent)]
        return [line for line in lines if line["event"] == event]

    def is_recorded(self, drive: str) -> bool:
        return any((self.folder / "results/recordings").glob(f"{drive}/*/*/recording.json"))

    def _stages(self, drive: str) -> list[int]:
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                words = (directory / "cmdline").read_text().split("\0")
                here = (directory / "cwd").resolve() == self.folder
            except OSError:
                continue
            if here and words[2:3] == ["measure"] and any(f"plans/{drive}/" in one for one in words):
                found.append(int(directory.name))
        return found
