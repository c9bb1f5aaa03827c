"""What the jobs that failed in a run of Snakemake say of themselves."""

from __future__ import annotations

import re
from pathlib import Path

_FAILED_JOB = re.compile(r"^ *Error in rule (\w+):\n(?: +.*\n)*? +log: ([^\s,]+)", re.MULTILINE)
SAID = "drivelab: "
"""Before each sentence."""


def sentences(snakemake_log: str) -> list[str]:
    """The sentences with which jobs failed, or which of them ended without any; none where the log tells of no job."""
    jobs = dict.fromkeys(_FAILED_JOB.findall(snakemake_log))
    return [sentence for rule, log in jobs for sentence in _words_of(rule, Path(log))]


def _words_of(rule: str, log: Path) -> list[str]:
    """What a failed job says of itself; a fault of drivelab's own ends in a traceback, a killed process in nothing."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    said = [line for line in lines if line.startswith(SAID)]
    if said:
        return said
    if any(line.startswith("Traceback ") for line in lines):
        return [f"{SAID}rule {rule} failed by a fault of drivelab's own: {lines[-1]}; please report it with {log}"]
    return [
        f"{SAID}rule {rule} ended without a word, as a process does that is killed (log {log}); "
        "what is finished is kept, run again to go on"
    ]
