"""Explain from the logs of Snakemake and Slurm how Slurm ended the failed jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drivelab.stages.failures import SAID

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
