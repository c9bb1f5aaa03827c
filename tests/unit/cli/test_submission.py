"""A run on a cluster handles the jobs of its study in Slurm's queue."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from drivelab.cli.measure import cluster

RUN = "drivelab-mini_00000000-0000-0000-0000-000000000000"
CHAIN = "rule_chain_measure_precondition_purge"


class Queue:
    """Stand-ins for Slurm's programs: squeue prints a file, scancel logs the cancelled jobs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.answers()
        self._write("scancel", f'echo "$@" >> {folder}/cancelled')

    def _write(self, name: str, line: str) -> None:
        (self._folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (self._folder / name).chmod(0o755)

    def has(self, *lines: str) -> None:
        (self._folder / "queue").write_text("".join(f"{line}\n" for line in lines))

    def answers(self) -> None:
        self._write("squeue", f"cat {self._folder}/queue")

    def fails(self) -> None:
        self._write("squeue", "echo no controller >&2; exit 1")

    @property
    def cancelled(self) -> str:
        path = self._folder / "cancelled"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Queue:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return Queue(tmp_path)


@pytest.fixture
def submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cluster.Submission:
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/stamp").touch()
    monkeypatch.setattr(cluster, "_PACKAGES", tmp_path / "packages")
    (tmp_path / "config.yaml").write_text("executor: slurm\n")
    campaign = SimpleNamespace(study=SimpleNamespace(name="mini"))
    return cluster.Submission(tmp_path, cast(Any, campaign))


def line(job: int, state: str, comment: str, *, name: str = RUN, folder: Path | None = None) -> str:
    return f"{job}|{state}|{name}|{folder or Path.cwd()}|{comment}"


def test_running_chains_of_a_killed_run_continue_and_others_are_cancelled(
    submission: cluster.Submission, queue: Queue
) -> None:
    queue.has(line(1, "RUNNING", CHAIN), line(2, "PENDING", CHAIN), line(3, "RUNNING", "rule_tables_x"))
    assert submission.clear_queue() == [
        "A killed run left jobs in the queue; cancelled: jobs 2, 3.",
        "Jobs of a killed run are still running; waiting for: jobs 1.",
    ]
    assert queue.cancelled == "2 3\n"


def test_interrupted_run_cancels_only_its_own_jobs(submission: cluster.Submission, queue: Queue) -> None:
    queue.has(
        line(1, "RUNNING", CHAIN),
        line(2, "PENDING", "rule_tables_x"),
        line(3, "COMPLETING", CHAIN),
        line(4, "RUNNING", CHAIN, name=RUN.replace("mini", "other")),
        line(5, "RUNNING", CHAIN, folder=Path("/elsewhere")),
    )
    assert submission.cancel() == ["Cancelled in Slurm: jobs 1, 2."]
    assert queue.cancelled == "1 2\n"


def test_interrupted_run_reports_that_slurm_did_not_answer(submission: cluster.Submission, queue: Queue) -> None:
    queue.fails()
    (message,) = submission.cancel()
    assert message.startswith("The jobs in the queue were not cancelled: Slurm does not answer (no controller)")


@pytest.mark.parametrize(
    ("settings", "partition"),
    [
        ("", ""),
        ("default-resources: {slurm_partition: night}\n", "night"),
        ("default-resources: [slurm_partition=night]\n", None),
        ("set-resources: {purge: {slurm_partition: night}}\n", None),
    ],
)
def test_the_partition_of_all_jobs_is_known(
    submission: cluster.Submission, tmp_path: Path, settings: str, partition: str | None
) -> None:
    """`submission` has set up the packages."""
    (tmp_path / "config.yaml").write_text(f"executor: slurm\n{settings}")
    campaign = SimpleNamespace(study=SimpleNamespace(name="mini"))
    assert cluster.Submission(tmp_path, cast(Any, campaign)).partition == partition


def test_a_run_says_once_that_slurm_forgot_its_jobs(submission: cluster.Submission, queue: Queue) -> None:
    queue.has(line(1, "RUNNING", "rule_tables_x"))
    assert submission.missed(0) == []
    queue.has()
    assert [submission.missed(now_s) for now_s in (30, 61, 600, 655)] == [[]] * 4
    queue.has(line(2, "PENDING", "rule_report"))
    assert submission.missed(720) == []
    queue.has()
    assert submission.missed(780) == []
    queue.fails()
    assert submission.missed(1400) == []
    queue.answers()
    (said,) = submission.missed(1460)
    assert "Press Ctrl-C and run again" in said
    assert submission.missed(3000) == []
