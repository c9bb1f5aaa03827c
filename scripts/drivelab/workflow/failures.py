"""Why the jobs of a run failed, from the logs of Snakemake and of a cluster."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

_FAILED_JOB = re.compile(r"^ *Error in rule (\w+):\n(?: +.*\n)*? +log: ([^\s,]+)", re.MULTILINE)
SAID = "drivelab: "
"""Prefix of each error message."""
_SINGLE = re.compile(r"SLURM-job '(\d+)' failed.*?SLURM status is: '(\w+)'")
_GROUP = re.compile(r"message: Error in group \w+\n +log: (\S+/(\d+)\.log)\b.*\n +jobs:\n((?: {8}.*\n)+)")
"""A failed chain: Slurm's log, the job number, and the jobs of the chain."""
_LOG = re.compile(r"^ +log: ([^\s,]+)", re.MULTILINE)
_LOST_HOST = re.compile(r"srun: error: Node failure on (\S+)")
_CANCELLED = re.compile(r"\*\*\* (?:JOB|STEP) .*? CANCELLED AT \S+(?: DUE to ([A-Z ]+))?", re.IGNORECASE)
_RESUME = "finished measurements are kept, run again to continue"
_LEAST_FREE_BYTES = 2**20
"""Less than the evidence of one cell takes."""
_LAST_LINES = 25
"""Lines shown of a log in which no job gives a reason."""
_MOST_SENTENCES = 20
"""Sentences shown of a failed run: a thousand drives may fail alike."""


def explain(logs: Path, status: int) -> None:
    """Print why stages failed, or the end of the log if no job gave a reason."""
    log_text = (logs / "snakemake.log").read_text(errors="replace")
    sentences = reported(log_text)
    if shutil.disk_usage(logs).free < _LEAST_FREE_BYTES:
        sentences = [f"{SAID}{logs.parent}: No space left on device; free some space and run again to continue"]
    if status < 0:
        sentences.append(f"{SAID}Snakemake was killed by signal {-status}; {_RESUME}")
    if len(sentences) > _MOST_SENTENCES:
        sentences = [
            *sentences[:_MOST_SENTENCES],
            f"{SAID}{len(sentences) - _MOST_SENTENCES} more messages like these are in the log",
        ]
    if not sentences:
        summary = f"{SAID}Snakemake ended with status {status}, but none of its jobs failed; end of its log:"
        sentences = [summary, *log_text.splitlines()[-_LAST_LINES:]]
    print("\n".join(sentences), file=sys.stderr)
    print(
        f"{SAID}the study is not complete; finished measurements are kept. Log: {logs}/snakemake.log",
        file=sys.stderr,
    )


def reported(log: str) -> list[str]:
    """Return a sentence for each failed job and for each job that the cluster ended, from Snakemake's log.

    A job without a message is named, except in a chain, of which all jobs fail when one of them does.
    """
    in_chains = {part for failed in _failed_chains(log) for part in failed.parts}
    jobs = dict.fromkeys(_FAILED_JOB.findall(log))
    messages = (_messages(rule, Path(path), may_be_silent=path in in_chains) for rule, path in jobs)
    return [*chain.from_iterable(messages), *ended_jobs(log)]


def _messages(rule: str, log: Path, *, may_be_silent: bool) -> list[str]:
    """Return the messages of a failed job; a bug in drivelab leaves a traceback, a killed process leaves nothing."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    messages = [line for line in lines if line.startswith(SAID)]
    if messages:
        return messages
    if any(line.startswith("Traceback ") for line in lines):
        return [f"{SAID}rule {rule} failed because of a bug in drivelab: {lines[-1]}; please report it with {log}"]
    if may_be_silent:
        return []
    return [
        f"{SAID}rule {rule} ended without a message; the process was probably killed (log {log}). "
        "Finished work is kept; run again to continue"
    ]


@dataclass(frozen=True)
class _Chain:
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
        places = (Path(log).parts for log in self.parts)
        what = ", ".join(dict.fromkeys("/".join(parts[-3:-1]) for parts in places))  # such as `op7/pts-iops`
        return f"{SAID}job {self.job} of Slurm ({what}) {self._end()}; {_RESUME}"

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


def _failed_chains(log: str) -> list[_Chain]:
    """Return the failed submissions of several jobs, from Snakemake's log."""
    return list(dict.fromkeys(_Chain(job, Path(path), tuple(_LOG.findall(parts))) for path, job, parts in
                              _GROUP.findall(log)))  # fmt: skip


def ended_jobs(log: str) -> Iterator[str]:
    """Yield a sentence for each job that the cluster ended; jobs that log a reason are skipped."""
    for job, status in dict.fromkeys(_SINGLE.findall(log)):
        if status != "FAILED":  # such a job logs its own reason
            yield f"{SAID}job {job} of Slurm ended as {status}; {_RESUME}"
    for failed in _failed_chains(log):
        if failed.is_unexplained:
            yield failed.sentence()
