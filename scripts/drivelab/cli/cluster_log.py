"""What Slurm did to the jobs that failed, from the logs that Snakemake and Slurm leave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drivelab.stages.failures import SAID

_SINGLE = re.compile(r"SLURM-job '(\d+)' failed.*?SLURM status is: '(\w+)'")
_GROUP = re.compile(r"message: Error in group \w+\n +log: (\S+/(\d+)\.log)\b.*\n +jobs:\n((?: {8}.*\n)+)")
"""A chain that failed: Slurm's log, the job, and what the chain consists of."""
_LOG = re.compile(r"^ +log: ([^\s,]+)", re.MULTILINE)
_LOST_HOST = re.compile(r"srun: error: Node failure on (\S+)")
_CANCELLED = re.compile(r"\*\*\* (?:JOB|STEP) .*? CANCELLED AT \S+(?: DUE to ([A-Z ]+))?", re.IGNORECASE)
_GO_ON = "what is finished is kept, run again to go on"


@dataclass(frozen=True)
class Chain:
    """A submission of several jobs that failed."""

    job: str
    """Its number in Slurm."""
    log: Path
    """What Slurm and the Snakemake in the job wrote; there is none if it never began."""
    parts: tuple[str, ...]
    """Logs of the jobs that it consists of."""

    @property
    def said_nothing(self) -> bool:
        """Whether no part has said why it failed."""
        texts = (Path(one).read_text(errors="replace") for one in self.parts if Path(one).exists())
        return not any(SAID in text or "Traceback " in text for text in texts)

    def sentence(self) -> str:
        """How it ended, as far as Slurm's log tells."""
        return f"{SAID}job {self.job} of Slurm ({self._what()}) {self._end()}; {_GO_ON}"

    def _what(self) -> str:
        """Such as `op7/pts-iops`."""
        places = (Path(one).with_suffix("").parts for one in self.parts)
        return ", ".join(dict.fromkeys("/".join(parts[-3:-1]) for parts in places))

    def _end(self) -> str:
        if not self.log.exists():
            return (
                "never began: it was cancelled, or its host was not free by the deadline ('wait_min' in the profile's "
                "cluster.yaml)"
            )
        text = self.log.read_text(errors="replace")
        if lost := _LOST_HOST.search(text):
            return f"ended because its host {lost[1]} failed"
        if cancelled := _CANCELLED.search(text):
            return f"was ended by its {cancelled[1].lower().strip()}" if cancelled[1] else "was cancelled"
        return f"ended without a word (log {self.log})"


def failed_chains(log: str) -> list[Chain]:
    """Submissions of several jobs that failed, from Snakemake's log."""
    return list(dict.fromkeys(Chain(job, Path(path), tuple(_LOG.findall(parts))) for path, job, parts in
                              _GROUP.findall(log)))  # fmt: skip


def ended_jobs(log: str) -> Iterator[str]:
    """A sentence for each job that the cluster ended, from Snakemake's log; none where a job says itself why."""
    for job, status in dict.fromkeys(_SINGLE.findall(log)):
        if status != "FAILED":  # says so itself
            yield f"{SAID}job {job} of Slurm ended as {status}; {_GO_ON}"
    for chain in failed_chains(log):
        if chain.said_nothing:
            yield chain.sentence()
