"""How a run tells what Slurm did to its jobs; the logs are as Snakemake 9.27 and Slurm 22.05 write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.cli.cluster_log import ended_jobs, failed_chains
from drivelab.stages.failures import sentences

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
KEPT = "what is finished is kept, run again to go on"


def told(folder: Path, log: str) -> list[str]:
    """What the end of a run says."""
    whole = log.format(slurm=folder)
    together = {one for chain in failed_chains(whole) for one in chain.parts}
    return [*sentences(whole, together), *ended_jobs(whole)]


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
def test_a_chain_that_slurm_ended_is_one_sentence(tmp_path: Path, slurm: str, end: str) -> None:
    (tmp_path / "22.log").write_text(slurm)
    assert told(tmp_path, GROUP) == [f"drivelab: job 22 of Slurm (op28/pts-iops) {end}; {KEPT}"]


def test_a_chain_that_never_began_names_the_deadline(tmp_path: Path) -> None:
    (said,) = told(tmp_path, GROUP)
    assert said.startswith("drivelab: job 22 of Slurm (op28/pts-iops) never began: ")
    assert "'wait_min'" in said


def test_a_chain_whose_end_nobody_tells_names_the_log(tmp_path: Path) -> None:
    (tmp_path / "22.log").write_text("")
    assert told(tmp_path, GROUP) == [
        f"drivelab: job 22 of Slurm (op28/pts-iops) ended without a word (log {tmp_path}/22.log); {KEPT}"
    ]


def test_a_stage_of_a_chain_that_says_why_it_failed_speaks_alone(tmp_path: Path) -> None:
    (tmp_path / "22.log").write_text("")
    said = "drivelab: drive 'op28' has serial B, the sheet says A"
    Path("logs/measure/op28/pts-iops/bcde8dddc429-run1.log").write_text(f"{said}\n")
    assert told(tmp_path, GROUP) == [said]


def test_a_fault_of_our_own_in_a_chain_is_told_alone(tmp_path: Path) -> None:
    (tmp_path / "22.log").write_text("")
    Path("logs/measure/op28/pts-iops/bcde8dddc429-run1.log").write_text(
        "Traceback (most recent call last):\nKeyError: 1\n"
    )
    (said,) = told(tmp_path, GROUP)
    assert "rule measure failed by a fault of drivelab's own: KeyError: 1" in said


def test_a_single_job_is_told_with_its_status_unless_it_says_itself(tmp_path: Path) -> None:
    assert list(ended_jobs(SINGLE)) == [f"drivelab: job 31 of Slurm ended as TIMEOUT; {KEPT}"]
