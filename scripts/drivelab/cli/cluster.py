"""Submit the jobs of a study to a cluster: what `drivelab run --profile` does differently."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.plan.places import IS_INSTALLED
from drivelab.plan.yaml_file import load_yaml
from drivelab.workflow.fleet_part import SAID

_PACKAGES = Path(sys.prefix) / "cluster"
"""Where './drivelab setup cluster' installs the executor, apart from the environment of local studies."""
_EXECUTOR = "snakemake_executor_plugin_slurm"
_CHAINS = ("rule_chain_", "rule_drive_")
"""Prefixes of the comments of submissions that use a drive: one chain, or all chains of a fleet's drive."""
_SQUEUE = ("squeue", "--me", "--noheader", "--format", "%i|%T|%j|%Z|%k")


class Submission:
    """Snakemake with the profile of a cluster."""

    def __init__(self, profile: Path, campaign: Campaign) -> None:
        """Raises UserError if the profile is invalid or its executor is not installed."""
        self._is_slurm = load_yaml(profile / "config.yaml").get("executor") == "slurm"
        if self._is_slurm and not (_PACKAGES / "stamp").exists() and find_spec(_EXECUTOR) is None:
            remedy = "install 'drivelab[slurm]' with pip" if IS_INSTALLED else "run './drivelab setup cluster'"
            raise UserError(f"{profile}: the packages that submit jobs to Slurm are not installed; {remedy}")
        self._profile = profile
        # Part of each Slurm job's name: it identifies the jobs that a killed run left.
        self._prefix = f"drivelab-{re.sub('[^A-Za-z0-9-]', '-', campaign.study.name)}"[:50]

    def arguments(self, cores: int) -> list[str]:
        """Return arguments for snakemake; `cores` limits the jobs that run on this host."""
        named = ["--slurm-jobname-prefix", self._prefix] if self._is_slurm else []
        return ["--profile", str(self._profile), "--local-cores", str(cores), *named]

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with the executor's packages on PYTHONPATH."""
        before = environment.get("PYTHONPATH")
        return {**environment, "PYTHONPATH": f"{_PACKAGES}:{before}" if before else str(_PACKAGES)}

    def clear_queue(self) -> list[str]:
        """Cancel the jobs that a killed run left in the queue, except running chains; return sentences that say so.

        Two analyses of one recording would write the same files. A chain that has not started is submitted again.
        """
        jobs = self._queue()
        at_work = [job for job, is_at_work in jobs.items() if is_at_work]
        others = [job for job in jobs if job not in at_work]
        sentences = []
        if others:
            programs.run(["scancel", *others])
            sentences.append(f"A killed run left jobs in the queue; cancelled: jobs {', '.join(others)}.")
        if at_work:
            sentences.append(f"Jobs of a killed run are still running; waiting for: jobs {', '.join(at_work)}.")
        return sentences

    def cancel(self) -> list[str]:
        """Cancel all jobs of this run, running chains included; return a sentence that says so.

        An interrupted Snakemake does not cancel the jobs whose state it is querying at that moment.
        """
        try:
            jobs = list(self._queue())
        except UserError as error:
            return [f"The jobs in the queue were not cancelled: {error}"]
        if not jobs:
            return []
        programs.run(["scancel", *jobs])
        return [f"Cancelled in Slurm: jobs {', '.join(jobs)}."]

    def _queue(self) -> dict[str, bool]:
        """Return the unfinished jobs of the study, and whether each is a running chain.

        Raises UserError if Slurm does not answer.
        """
        if not self._is_slurm:
            return {}
        done = programs.run(_SQUEUE)
        if done.returncode != 0:
            message = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(
                f"Slurm does not answer ({message}); check that 'squeue' works on this host, then run again"
            )
        jobs = {}
        for line in done.stdout.splitlines():
            job, state, name, folder, comment = line.split("|", 4)
            ours = re.fullmatch(rf"{self._prefix}_[0-9a-f-]{{36}}", name) and Path(folder) == Path.cwd()
            if ours and state != "COMPLETING":
                jobs[job] = comment.startswith(_CHAINS) and state == "RUNNING"
        return jobs


_SINGLE = re.compile(r"SLURM-job '(\d+)' failed.*?SLURM status is: '(\w+)'")
_GROUP = re.compile(r"message: Error in group \w+\n +log: (\S+/(\d+)\.log)\b.*\n +jobs:\n((?: {8}.*\n)+)")
"""A failed chain: Slurm's log, the job number, and the jobs of the chain."""
_LOG = re.compile(r"^ +log: ([^\s,]+)", re.MULTILINE)
_LOST_HOST = re.compile(r"srun: error: Node failure on (\S+)")
_CANCELLED = re.compile(r"\*\*\* (?:JOB|STEP) .*? CANCELLED AT \S+(?: DUE to ([A-Z ]+))?", re.IGNORECASE)
_RESUME = "finished measurements are kept, run again to continue"


@dataclass(frozen=True)
class Chain:
    """A failed submission of several jobs."""

    job: str
    """Job number in Slurm."""
    log: Path
    """Log of Slurm and of the Snakemake in the job; missing if the job never started."""
    parts: tuple[str, ...]
    """Logs of the jobs in the submission."""

    @property
    def is_unexplained(self) -> bool:
        """Whether no part has logged why it failed."""
        texts = (Path(log).read_text(errors="replace") for log in self.parts if Path(log).exists())
        return not any(SAID in text or "Traceback " in text for text in texts)

    def sentence(self) -> str:
        """Return how the chain ended, as far as Slurm's log shows."""
        return f"{SAID}job {self.job} of Slurm ({self._what()}) {self._end()}; {_RESUME}"

    def _what(self) -> str:
        """Return the chain's measurements, such as `op7/pts-iops`."""
        places = (Path(log).with_suffix("").parts for log in self.parts)
        return ", ".join(dict.fromkeys("/".join(parts[-3:-1]) for parts in places))

    def _end(self) -> str:
        if not self.log.exists():
            return (
                "never started: it was cancelled, or its host was not free by the deadline ('wait_min' in the "
                "profile's cluster.yaml)"
            )
        text = self.log.read_text(errors="replace")
        if lost := _LOST_HOST.search(text):
            return f"ended because its host {lost[1]} failed"
        if cancelled := _CANCELLED.search(text):
            return f"was ended by its {cancelled[1].lower().strip()}" if cancelled[1] else "was cancelled"
        return f"ended without a message (log {self.log})"


def failed_chains(log: str) -> list[Chain]:
    """Return the failed submissions of several jobs, from Snakemake's log."""
    return list(dict.fromkeys(Chain(job, Path(path), tuple(_LOG.findall(parts))) for path, job, parts in
                              _GROUP.findall(log)))  # fmt: skip


def ended_jobs(log: str) -> Iterator[str]:
    """Yield a sentence for each job that the cluster ended; jobs that log a reason are skipped."""
    for job, status in dict.fromkeys(_SINGLE.findall(log)):
        if status != "FAILED":  # such a job logs its own reason
            yield f"{SAID}job {job} of Slurm ended as {status}; {_RESUME}"
    for chain in failed_chains(log):
        if chain.is_unexplained:
            yield chain.sentence()
