"""A study on a real Slurm: three drives on two hosts, while processes, jobs and hosts are killed."""

from __future__ import annotations

import os
import signal

from cluster_project import DRIVES, ClusterProject
from slurm import Slurm
from waits import wait_until


def test_a_killed_study_resumes_and_measures_nothing_twice(project: ClusterProject, slurm: Slurm) -> None:
    project.hold("op7", "op28")
    first = project.start()
    held = [project.held(drive) for drive in ("op7", "op28")]
    assert not project.journal("op7-512e", "purge"), "a host measures its drives in the study's order"
    project.kill(first)

    second = project.start()
    pending = ["squeue", "-h", "-t", "PENDING"]
    wait_until(lambda: slurm.ask(*pending).count("\n") == 2, tell=project.tell)
    for pid in held:
        os.kill(pid, signal.SIGCONT)
    status, output = project.ended(second)
    assert status == 0, output
    assert "Jobs of a killed run are still running" in output
    assert "Done in" in output
    assert (project.folder / "results/report/index.html").exists()
    for drive in DRIVES:
        assert project.is_recorded(drive)
        cells = [line["directory"] for line in project.journal(drive, "cell")]
        assert len(cells) == len(set(cells))
        for event in ("purge", "measure"):
            assert len(project.journal(drive, event)) == 1, f"'{event}' of {drive} ran again"
        assert not project.journal(drive, "gap")
    assert project.to_do() == {}
    # The two held chains, and those that waited for them, are one submission each.
    assert {job["NodeList"] for job in slurm.completed()[:2]} == {"host0", "host1"}
    assert all(job["JobState"] == "COMPLETED" for job in slurm.completed())


def test_an_interrupted_run_empties_the_queue_and_says_so(project: ClusterProject, slurm: Slurm) -> None:
    before = len(slurm.completed())
    project.hold("op7", "op28")
    run = project.start("env", "--ignore-signal=INT")  # like a background job of a script
    for drive in ("op7", "op28"):
        project.held(drive)
    run.terminate()
    status, output = project.ended(run)
    assert status == 130
    assert "Cancelled in Slurm: jobs " in output
    assert "interrupted; finished measurements are kept, run again to continue" in output
    wait_until(lambda: not slurm.ask("squeue", "-h"), tell=project.tell)
    chains = [job for job in slurm.completed()[before:] if job["JobState"] == "CANCELLED"]
    assert {job["NodeList"] for job in chains} >= {"host0", "host1"}
    assert not project.is_recorded("op7")
    assert not project.is_recorded("op28")


def test_the_next_run_measures_a_drive_whose_job_or_host_died(project: ClusterProject, slurm: Slurm) -> None:
    project.hold("op7", "op28")
    first = project.measure()
    for drive in ("op7", "op28"):
        project.held(drive)
    (job,) = slurm.ask("squeue", "-h", "-w", "host0", "-o", "%i").split()
    slurm.ask("scancel", job)
    slurm.kill_host("host1")
    status, output = project.ended(first)
    assert status != 0
    assert {"CANCELLED", "NODE_FAIL"} <= {job["JobState"] for job in slurm.completed()}, output
    assert project.is_recorded("op7-512e"), "failures of other drives must not stop it"
    assert not project.is_recorded("op7")
    assert not project.is_recorded("op28")

    finished, jobs = project.evidence(), len(slurm.completed())
    begun = {drive: project.journal(drive, "cell") for drive in DRIVES}
    project.move("op28", "host0")
    status, output = project.ended(project.measure())
    slurm.start_host("host1")
    assert status == 0, output
    assert [job["NodeList"] for job in slurm.completed()[jobs:]] == ["host0", "host0"]
    assert finished.items() <= project.evidence().items()
    for drive in DRIVES:
        assert project.is_recorded(drive)
        cells = project.journal(drive, "cell")
        assert cells[: len(begun[drive])] == begun[drive]
        assert len({cell["directory"] for cell in cells}) == len(cells)
        assert len(project.journal(drive, "purge")) == 1
