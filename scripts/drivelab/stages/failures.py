"""Error messages of the jobs that failed in a Snakemake run."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

_FAILED_JOB = re.compile(r"^ *Error in rule (\w+):\n(?: +.*\n)*? +log: ([^\s,]+)", re.MULTILINE)
SAID = "drivelab: "
"""Prefix of each error message."""


def sentences(snakemake_log: str, together: Collection[str] = ()) -> list[str]:
    """Return the error messages of failed jobs; for a job without a message, say so.

    Jobs with their logs in `together` all fail when one of them does: those without a message are left out. Returns an
    empty list if the log names no failed job.
    """
    jobs = dict.fromkeys(_FAILED_JOB.findall(snakemake_log))
    return [message for rule, log in jobs for message in _messages(rule, Path(log), may_be_silent=log in together)]


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
