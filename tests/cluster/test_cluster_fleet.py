"""A fleet on a real Slurm: each drive is one job on its host, which runs all chains of the drive."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_project import ClusterProject
from slurm import Slurm
from waiting import wait_until

from drivelab.recording.writer import read_journal

RECORDINGS = {"op7": 2, "op28": 1}
"""Number of recordings of each drive at the end."""
_SOAK = """\
  - protocol: pts-write-saturation
    scale: demo
    drives: [op7]
    set: {soak: {slice: 1s, until: {time: 5s}}}
"""


class ClusterFleet(ClusterProject):
    """A fleet of two drives from the other tests' study, one on each host."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        super().__init__(folder, slurm)
        self.edit(self.study, "drives: [op7, op28, op7-512e]", "fleet: true\ndrives: [op7, op28]")
        self.edit(self.study, "read_share: [100, 65, 35, 0], block_size: [4KiB, 8KiB, 16KiB, 32KiB, 64KiB]",
                  "read_share: [100, 0], block_size: [4KiB]")  # fmt: skip
        with (folder / self.study).open("a") as study:
            study.write(_SOAK)

    def journal(self, drive: str, event: str) -> list[dict[str, Any]]:
        paths = (self.folder / f"results/drives/{drive}/recordings").glob("*/*/*/journal.jsonl")
        return [line for path in paths for line in read_journal(path.parent) if line["event"] == event]

    def is_recorded(self, drive: str) -> bool:
        manifests = (self.folder / f"results/drives/{drive}/recordings").glob("*/*/*/recording.json")
        return len(list(manifests)) == RECORDINGS[drive]


@pytest.fixture
def fleet(slurm: Slurm, tmp_path: Path) -> Iterator[ClusterFleet]:
    cluster_fleet = ClusterFleet(tmp_path / "project", slurm)
    yield cluster_fleet
    cluster_fleet.end()


def test_a_killed_fleet_resumes_with_one_job_per_drive(fleet: ClusterFleet, slurm: Slurm) -> None:
    before = len(slurm.completed())
    fleet.hold(*RECORDINGS)
    first = fleet.start()
    held = [fleet.held(drive) for drive in RECORDINGS]
    fleet.kill(first)

    second = fleet.start()
    wait_until(lambda: slurm.ask("squeue", "-h", "-t", "PENDING").count("\n") == 2, "the drives again", fleet.tell)
    for pid in held:
        os.kill(pid, signal.SIGCONT)
    status, output = fleet.ended(second)
    assert status == 0, output
    assert "Jobs of a killed run are still running" in output
    assert "Done in" in output
    for drive in RECORDINGS:
        assert fleet.is_recorded(drive)
        cells = [line["directory"] for line in fleet.journal(drive, "cell")]
        assert len(cells) == len(set(cells))
        assert len(fleet.journal(drive, "measure")) == RECORDINGS[drive]
        assert not fleet.journal(drive, "gap")
    assert fleet.to_do() == {}
    jobs = slurm.completed()[before:]
    assert all(job["JobState"] == "COMPLETED" for job in jobs)
    assert {job["NodeList"] for job in jobs[:2]} == {"host0", "host1"}
