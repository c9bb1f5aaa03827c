"""The jobs that measure several drives at the same time, for the workflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drivelab.plan.plan import Plan


@dataclass(frozen=True)
class Simultaneous:
    """Files and drives of one such job; all lists have the same order of drives."""

    recordings: list[str]
    plans: list[str]
    seals: list[str]
    traces: list[str]
    manifests: list[str]
    log: str
    drives: list[str]


def simultaneous_jobs(plans: Iterable[Plan], path: Callable[[str], str]) -> list[Simultaneous]:
    """Return a job for each measurement, run and platform; `path` makes paths like `Layout.path`."""
    groups: dict[tuple[str, int, str], list[Plan]] = {}
    for plan in plans:
        if serials := plan.subject.get("simultaneous"):
            place = f"{','.join(serials)}@{plan.drive.partition('@')[2]}"
            groups.setdefault((plan.measurement, plan.run, place), []).append(plan)
    return [_job(group, path) for group in groups.values()]


def _job(plans: list[Plan], path: Callable[[str], str]) -> Simultaneous:
    def paths(pattern: str) -> list[str]:
        return [path(pattern.replace("RECORDING", plan.recording)) for plan in plans]

    return Simultaneous(
        recordings=[plan.recording for plan in plans],
        plans=paths("plans/RECORDING.json"),
        seals=paths("seals/RECORDING.precondition.json"),
        traces=list(plans[0].context.get("trace_paths", [])),
        manifests=paths("recordings/RECORDING/recording.json"),
        log=paths("logs/measure_together/RECORDING.log")[0],
        drives=[plan.sheet_drive for plan in plans],
    )
