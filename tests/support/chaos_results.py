"""What must be the same of a study however often it was killed, and what may not."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from drivelab.recording.writer import read_journal
from drivelab.telemetry.log import read_samples

INTERRUPTED = re.compile(r"\.interrupted-\d+$")
_LEFT = re.compile(r"\.(interrupted|abandoned)-\d+$")
_OF_THE_RUN = {"resumed", "failed", "gap", "measure", "scenario", "complete"}
"""Lines that tell of the run, not of what was measured."""
_OF_THE_TIME = {"at", "started_s", "ended_s"}


def essence(recording: Path) -> dict[str, Any]:
    """Of a recording on the virtual clock what follows from its plan alone: the journal's lines without what tells of
    the run, and the digest of each cell's evidence by its path; of conditioning that was repeated the last.
    """
    lines = [line for line in read_journal(recording) if line["event"] not in _OF_THE_RUN]
    begins = [number for number, line in enumerate(lines) if line["event"] == "purge"]
    kept = [line for line in lines[begins[-1] :] if line["event"] not in ("verdict", "seal")]
    soaks = {line["directory"]: line for line in kept if line["event"] == "soak-begins"}
    journal = [
        {key: value for key, value in line.items() if key not in _OF_THE_TIME}
        for line in kept
        if line["event"] != "soak-begins"
    ]
    evidence = {
        str(path.relative_to(recording)): hashlib.sha256(path.read_bytes()).hexdigest()
        for top in ("cells", "condition")
        for path in sorted((recording / top).rglob("*"))
        if path.is_file() and not any(INTERRUPTED.search(part) for part in path.relative_to(recording).parts)
    }
    told = list(read_samples(recording))
    return {"journal": journal, "soaks": sorted(soaks), "evidence": evidence, "telemetry": told}


def interrupted(recording: Path) -> list[str]:
    """Folders of cells and fills that were interrupted, or thrown away with the measurement that they belonged to.

    Without those of one that failed twice, since its drive did, and whose drive was used for another then.
    """
    abandoned = {one: list(read_journal(one)) for one in recording.parent.glob(f"{recording.name}.abandoned-*")}
    thrown_away = (
        f"{one.name}/{line['directory']}"
        for one, lines in abandoned.items()
        for line in lines
        if line["event"] in ("cell", "fill") and not _ended_by_fault(lines)
    )
    left = (str(one.relative_to(recording)) for one in recording.rglob("*") if INTERRUPTED.search(one.name))
    return [*left, *thrown_away]


def _ended_by_fault(lines: list[dict[str, Any]]) -> bool:
    failures = sum(line["event"] == "failed" for line in lines)
    return failures > 1 and lines[-2]["event"] == "failed" and lines[-1]["reason"].startswith("the drive was used for ")


def unfinished(results: Path) -> list[str]:
    """Files and folders that only a process under way may have, or one that was killed; evidence that was interrupted
    or abandoned is as it was left."""
    return [
        str(path.relative_to(results))
        for path in results.rglob("*")
        if (path.name.startswith(".") and path.name != ".run.lock") or path.name.endswith(".part")
        if not any(_LEFT.search(part) for part in path.parts)
    ]
