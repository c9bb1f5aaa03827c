"""What the jobs that failed in a run of Snakemake say of themselves."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

_FAILED_JOB = re.compile(r"^ *Error in rule (\w+):\n(?: +.*\n)*? +log: ([^\s,]+)", re.MULTILINE)
SAID = "drivelab: "
"""Before each sentence."""


def sentences(snakemake_log: str, together: Collection[str] = ()) -> list[str]:
    """The sentences with which jobs failed, or which of them ended without any; none where the log tells of no job.

    Jobs with their logs in `together` fail all when one of them does: nothing is said of those that say nothing.
    """
    jobs = dict.fromkeys(_FAILED_JOB.findall(snakemake_log))
    return [one for rule, log in jobs for one in _words_of(rule, Path(log), may_be_silent=log in together)]


def _words_of(rule: str, log: Path, *, may_be_silent: bool) -> list[str]:
    """What a failed job says of itself; a fault of drivelab's own ends in a traceback, a killed process in nothing."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    said = [line for line in lines if line.startswith(SAID)]
    if said:
        return said
    if any(line.startswith("Traceback ") for line in lines):
        return [f"{SAID}rule {rule} failed by a fault of drivelab's own: {lines[-1]}; please report it with {log}"]
    if may_be_silent:
        return []
    return [
        f"{SAID}rule {rule} ended without a word, as a process does that is killed (log {log}); "
        "what is finished is kept, run again to go on"
    ]
