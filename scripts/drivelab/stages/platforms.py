"""Platforms: which plans of a study are for this host, and which for another one."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable

from drivelab.config.study import ANY_HOST, Study
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.writer import MANIFEST
from drivelab.words import counted


def this_host() -> str:
    """As in the table `hosts`; within a job of Slurm, what Slurm calls the node."""
    return os.environ.get("SLURMD_NODENAME") or platform.node()


def is_here(plan: Plan) -> bool:
    """Whether this host may carry out a plan."""
    return host_of(plan) in (ANY_HOST, this_host())


def host_of(plan: Plan) -> str:
    """The host that a plan is for: its platform's, else the one that the drive is attached to, else ANY_HOST."""
    of_platform = str(plan.subject.get("platform", {}).get("host", ANY_HOST))
    return of_platform if of_platform != ANY_HOST else str(plan.context.get("host", ANY_HOST))


def is_recorded(plan: Plan) -> bool:
    """Whether the recording is there, made here or copied from where it was made."""
    return (plan.recording_path / MANIFEST).exists()


def refuse_elsewhere(plan: Plan) -> None:
    """Raise UserError if a plan is for another host."""
    if not is_here(plan):
        raise UserError(
            f"{plan.recording}: is to be measured on host '{host_of(plan)}', this is '{this_host()}'; run the study "
            "there, or copy its recording from there. Nothing was written."
        )


def still_elsewhere(plans: Iterable[Plan]) -> str:
    """In a sentence for each host, what is still to be measured there; empty if nothing is."""
    to_do: dict[str, list[Plan]] = {}
    for plan in plans:
        to_do.setdefault(host_of(plan), []).append(plan)
    return " ".join(
        f"Still to be measured on host '{host}', and left out until its recordings are in {_folder(plans)}: "
        f"{', '.join(dict.fromkeys(plan.drive for plan in plans))} ({counted(len(plans), 'measurement')})."
        for host, plans in to_do.items()
    )


def scenarios(study: Study, plans: Iterable[Plan]) -> list[str]:
    """Scenarios of the plans that this host carries out.

    Raises UserError when the study wants the host to be set and they differ: a host is in one scenario at a time.
    """
    found = list(dict.fromkeys(str(plan.subject["scenario"]) for plan in plans if is_here(plan)))
    if len(found) > 1 and study.host_settings == "apply":
        raise UserError(
            f"{study.path}: key 'host_settings' is apply, but the platforms of this host want the scenarios "
            f"{' and '.join(found)}, and it is set once for the whole run; use 'check', or a study for each scenario"
        )
    return found


def _folder(plans: list[Plan]) -> str:
    return str(plans[0].context["results"]) + "/recordings"
