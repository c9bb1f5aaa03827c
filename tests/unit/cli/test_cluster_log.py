"""A run reports how Slurm ended its jobs; the logs are in the format of Snakemake 9.27 and Slurm 22.05."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.workflow.failures import ended_jobs, reported

GROUP = """\
[Sun Nov 22 07:46:54 2026]
    message: Error in group chain
    log: {slurm}/22.log (check log file(s) for error details)
    jobs:
        rule precondition:
            jobid: 8
            log: logs/precondition/op28/pts-iops/bcde8dddc429-run1.log (check log file(s) for error details)
        rule measure:
            jobid: 6
            log: logs/measure/op28/pts-iops/bcde8dddc429-run1.log (check log file(s) for error details)
Logfile {slurm}/22.log:
    [Sun Nov 22 07:46:54 2026]
    Error in rule measure:
        message: None
        jobid: 6
        log: logs/measure/op28/pts-iops/bcde8dddc429-run1.log (check log file(s) for error details)
    [Sun Nov 22 07:46:54 2026]
    Error in rule precondition:
        message: None
        jobid: 8
        log: logs/precondition/op28/pts-iops/bcde8dddc429-run1.log (check log file(s) for error details)
"""
SINGLE = """\
Error in rule tables:
    message: SLURM-job '31' failed, SLURM status is: 'TIMEOUT'. Detailed failure reason unavailable
Error in rule summary:
    message: SLURM-job '32' failed, SLURM status is: 'FAILED'. Detailed failure reason unavailable
"""
KEPT = "finished measurements are kept, run again to continue"


def end_messages(folder: Path, log: str) -> list[str]:
    """Return the messages at the end of a run."""
    text = log.format(slurm=folder)
    return reported(text)


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for rule in ("precondition", "measure"):
        path = Path(f"logs/{rule}/op28/pts-iops/bcde8dddc429-run1.log")
        path.parent.mkdir(parents=True)
        path.touch()


@pytest.mark.parametrize(
    ("slurm", "end"),
    [
        ("srun: error: Node failure on host1\n", "ended because its host host1 failed"),
        ("slurmstepd: error: *** JOB 22 ON host1 CANCELLED AT 2026-11-22T07:41:10 ***\n", "was cancelled"),
        (
            "slurmstepd: error: *** JOB 22 ON host1 CANCELLED AT 2026-11-22T07:41:10 DUE TO TIME LIMIT ***\n",
            "was ended by its time limit",
        ),
    ],
)
def test_chain_ended_by_slurm_gives_one_message(tmp_path: Path, slurm: str, end: str) -> None:
    (tmp_path / "22.log").write_text(slurm)
    assert end_messages(tmp_path, GROUP) == [f"drivelab: job 22 of Slurm (op28/pts-iops) {end}; {KEPT}"]


def test_chain_that_never_started_names_the_deadline(tmp_path: Path) -> None:
    (message,) = end_messages(tmp_path, GROUP)
    assert message.startswith("drivelab: job 22 of Slurm (op28/pts-iops) never started: ")
    assert "'wait_min'" in message


def test_chain_with_unexplained_end_names_the_log(tmp_path: Path) -> None:
    (tmp_path / "22.log").write_text("")
    assert end_messages(tmp_path, GROUP) == [
        f"drivelab: job 22 of Slurm (op28/pts-iops) ended without a message (log {tmp_path}/22.log); {KEPT}"
    ]


def test_only_the_reason_of_a_failed_stage_is_reported(tmp_path: Path) -> None:
    (tmp_path / "22.log").write_text("")
    message = "drivelab: drive 'op28' has serial B, the sheet says A"
    Path("logs/measure/op28/pts-iops/bcde8dddc429-run1.log").write_text(f"{message}\n")
    assert end_messages(tmp_path, GROUP) == [message]


def test_single_job_is_reported_with_its_status_unless_it_logs_a_reason(tmp_path: Path) -> None:
    assert list(ended_jobs(SINGLE)) == [f"drivelab: job 31 of Slurm ended as TIMEOUT; {KEPT}"]
