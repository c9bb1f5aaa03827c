"""Extract the parts of a study's results that kills must not change."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from drivelab.recording.writer import read_journal
from drivelab.telemetry.sampler import read_samples

INTERRUPTED = re.compile(r"\.interrupted-\d+$")
_LEFT = re.compile(r"\.(interrupted|abandoned)-\d+$")
_ALWAYS = (".run.lock", ".snakemake_timestamp")
_OF_THE_RUN = {"resumed", "failed", "gap", "measure", "scenario", "complete"}
"""Journal lines about the run, not about the measurement."""
_OF_THE_TIME = {"at", "started_s", "ended_s"}


def essence(recording: Path) -> dict[str, Any]:
    """Return the parts of a virtual-clock recording that follow from its plan alone.

    These are the journal's lines about the measurement, and the digest of each cell's evidence by path. If conditioning
    was repeated, the last one counts.
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
    telemetry = list(read_samples(recording))
    return {"journal": journal, "soaks": sorted(soaks), "evidence": evidence, "telemetry": telemetry}


def interrupted(recording: Path) -> list[str]:
    """Return folders of cells and fills that were interrupted, or discarded with their measurement.

    Measurements that failed twice by a drive fault, and whose drive was then used for another, are excluded.
    """
    abandoned = {
        folder: list(read_journal(folder)) for folder in recording.parent.glob(f"{recording.name}.abandoned-*")
    }
    thrown_away = (
        f"{folder.name}/{line['directory']}"
        for folder, lines in abandoned.items()
        for line in lines
        if line["event"] in ("cell", "fill") and not _ended_by_fault(lines)
    )
    left = (str(path.relative_to(recording)) for path in recording.rglob("*") if INTERRUPTED.search(path.name))
    return [*left, *thrown_away]


def _ended_by_fault(lines: list[dict[str, Any]]) -> bool:
    failures = sum(line["event"] == "failed" for line in lines)
    return failures > 1 and lines[-2]["event"] == "failed" and lines[-1]["reason"].startswith("the drive was used for ")


def unfinished(results: Path) -> list[str]:
    """Return temporary files and folders of running or killed processes, except interrupted or abandoned evidence."""
    return [
        str(path.relative_to(results))
        for path in results.rglob("*")
        if (path.name.startswith(".") and path.name not in _ALWAYS) or path.name.endswith(".part")
        if not any(_LEFT.search(part) for part in path.parts)
    ]
