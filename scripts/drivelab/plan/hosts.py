"""Which plans of a study belong to this host and which to others, and the order in which a host measures them."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.grouping import grouped
from drivelab.plan.places import COMMAND
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST, Study

_HEAD = ("drive", "host", "to measure", "type there, in a copy of this project")


def this_host() -> str:
    """Return this host's name as in the table `hosts`; within a Slurm job, Slurm's name of the node."""
    return os.environ.get("SLURMD_NODENAME") or platform.node()


def is_here(plan: Plan) -> bool:
    """Return whether this host may run a plan."""
    return host_of(plan) in (ANY_HOST, this_host())


def host_of(plan: Plan) -> str:
    """Return the host of a plan: its platform's host, else the drive's host, else ANY_HOST."""
    of_platform = str(plan.subject.get("platform", {}).get("host", ANY_HOST))
    return of_platform if of_platform != ANY_HOST else str(plan.context.get("host", ANY_HOST))


def refuse_elsewhere(plan: Plan) -> None:
    """Raise UserError if a plan is for another host."""
    if not is_here(plan):
        raise UserError(
            f"{plan.recording} belongs to host '{host_of(plan)}', but this is '{this_host()}'; run the study "
            "there, or copy its recording from there. Nothing was written."
        )


def still_elsewhere(plans: Iterable[Plan], study: Path) -> str:
    """Return a table of the drives that other hosts still measure, and what to type there; empty if there are none."""
    to_do = grouped(plans, lambda plan: (plan.drive, host_of(plan)))
    if not to_do:
        return ""
    command = f"{COMMAND} run {study}"
    rows = [(drive, host, str(len(left)), command) for (drive, host), left in to_do.items()]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    lines = [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in (_HEAD, *rows)
    ]
    folder = f"{next(iter(to_do.values()))[0].context['results']}/recordings"
    return "\n".join(
        [f"Left out until the recordings of these hosts are in {folder}:", *(f"  {line}" for line in lines)]
    )


def scenarios(study: Study, plans: Iterable[Plan]) -> list[str]:
    """Return the scenarios of the plans that this host runs.

    Raises UserError when the study applies host settings and the scenarios differ: a host has one scenario at a time.
    """
    names = list(dict.fromkeys(str(plan.subject["scenario"]) for plan in plans if is_here(plan)))
    if len(names) > 1 and study.host_settings == "apply":
        raise UserError(
            f"{study.path}: key 'host_settings' is apply, but the platforms of this host need the scenarios "
            f"{' and '.join(names)}, and a run sets the host only once; use 'check', or one study for each scenario"
        )
    return names


def positions(plans: Iterable[Plan], seed: int | None) -> dict[str, int]:
    """Return the position of each recording among the recordings of its host, from 0.

    Without a seed the plans keep their order. With a seed they form randomised complete blocks (Montgomery, Design and
    Analysis of Experiments, chapter 4): a run is a block with every combination once, in random order. So drift over
    time - the room warms up, the drives wear - spreads over all drives, and differences between blocks are the same for
    all drives.
    """
    hosts = grouped(plans, host_of)
    if seed is not None:
        for host, of_host in hosts.items():
            of_host.sort(key=lambda plan, host=host: (plan.run, _lot(seed, host, plan), plan.recording))  # type: ignore[misc]
    return {plan.recording: position for of_host in hosts.values() for position, plan in enumerate(of_host)}


def _lot(seed: int, host: str, plan: Plan) -> bytes:
    """Return a hash for sorting: the same on every machine, and unchanged when other drives are added.

    Drives that are measured at the same time share one hash.
    """
    drives = plan.subject.get("simultaneous") or plan.sheet_drive
    platform = plan.subject.get("platform", {}).get("name", "")
    return hashlib.sha256(repr((seed, host, plan.run, plan.measurement, platform, drives)).encode()).digest()
