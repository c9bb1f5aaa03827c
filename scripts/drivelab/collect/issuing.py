"""How the cells of a recording issue their I/Os: facets from the plan's steps and from fio's jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.criteria.inert import DIRECT, FILE_SYSTEM, PAGE_CACHE
from drivelab.fio.consistency import sections_of_job
from drivelab.plan.cell import submission


def io_path(path: Path, journal: Sequence[Mapping[str, Any]]) -> str | None:
    """Return how the measured I/Os reached the drive; several ways are joined, None if one is not recorded.

    Of each step, one job of fio is read: all jobs of a step have the same options in this respect, but for synchronous
    writes, which go through the page cache on any drive.
    """
    ways = {_of_job(directory) for directory in _jobs(path, journal)}
    for line in journal:
        if line["event"] in ("replay", "load"):  # both replay engines refuse a target without O_DIRECT
            ways.add(DIRECT)
        elif line["event"] == "application":  # with a remark, a replay replaced the application
            ways.add(DIRECT if "remark" in line else FILE_SYSTEM)
    known = [way for way in ways if way is not None]
    return " | ".join(sorted(known)) if known and len(known) == len(ways) else None


def _jobs(path: Path, journal: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Return the folder of one job of fio of each step."""
    jobs = {
        line["step"]: path / line["directory"]
        for line in journal
        if line["event"] in ("cell", "soak") and not line["workload"].get("synchronous")
    }
    return list(jobs.values())


def cpus(path: Path, journal: Sequence[Mapping[str, Any]]) -> str | None:
    """Return who chose the CPUs of fio's threads; None if a job is missing."""
    ways = set()
    for directory in _jobs(path, journal):
        sections = sections_of_job(directory)
        if not sections:
            return None
        bound = any("cpus_allowed" in options for options in sections)
        ways.add("one for each, near the drive" if bound else "left to the scheduler")
    return " | ".join(sorted(ways)) or "no fio"


def _of_job(directory: Path) -> str | None:
    sections = sections_of_job(directory)
    if not sections:
        return None
    return DIRECT if all(options.get("direct") == "1" for options in sections) else PAGE_CACHE


def entropies(part: Any) -> set[str]:
    """Return the entropies in a plan's steps whose data are not fully random."""
    if isinstance(part, Mapping):
        own = {f"{100 * part['entropy']:g} % random"} if part.get("entropy") is not None else set()
        own |= {"random, buffers reused"} if part.get("reuse_buffers") else set()
        return own.union(*map(entropies, part.values()))
    return set().union(*map(entropies, part)) if isinstance(part, list | tuple) else set()


def submissions(part: Any) -> set[str]:
    """Return how the cells in a plan's steps submit I/Os, where it differs from fio's defaults."""
    if isinstance(part, Mapping):
        words = ", ".join(submission(part))
        own = {words} if words else set()
        return own.union(*map(submissions, part.values()))
    return set().union(*map(submissions, part)) if isinstance(part, list | tuple) else set()
