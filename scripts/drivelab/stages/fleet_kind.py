"""Decide whether a study runs drive by drive, each drive as a part with its own results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from drivelab.config.study import PARTS, Study
from drivelab.errors import UserError
from drivelab.plan.plan import Plan

LARGE = 1000
"""Recordings above which a study runs drive by drive: planning more in one piece takes minutes."""


def is_fleet(study: Study, plans: Sequence[Plan], captured: Callable[[], Iterable[str]]) -> bool:
    """Return whether a study runs drive by drive: by its key, or if it is large and was not started in one piece.

    `captured` returns the traces to capture during the run. Raises UserError if the drives cannot be measured
    separately, or if existing recordings would be measured again.
    """
    whole, parts = ((study.results / folder).is_dir() for folder in ("recordings", PARTS))
    if study.fleet is None:
        large = len(plans) > LARGE and len(study.drives) > 1 and not _obstacle(plans, captured)
        return parts or (large and not whole)
    if study.fleet and (reason := _obstacle(plans, captured)):
        raise UserError(f"{study.path}: key 'fleet' is yes, but {reason}")
    if (study.fleet and whole) or (not study.fleet and parts):
        mode = "in one piece" if whole else "drive by drive"
        raise UserError(
            f"{study.path}: key 'fleet' is {'yes' if study.fleet else 'no'}, but {study.results} holds recordings of "
            f"this study, started {mode}, which would all be measured again; remove the key, or name other 'results'"
        )
    return study.fleet


def in_part(plan: Plan, study: Study) -> Plan:
    """Return the plan with the results folder of its drive's part."""
    moved = Plan(plan.subject, {**plan.context, "results": str(study.results / PARTS / plan.sheet_drive)})
    moved.__dict__["digest"] = plan.digest  # same subject; saves most of a large study's planning time
    return moved


def _obstacle(plans: Iterable[Plan], captured: Callable[[], Iterable[str]]) -> str | None:
    """Return why the drives of a study cannot be measured separately, or None."""
    for plan in plans:
        if "simultaneous" in plan.subject:
            return f"'{plan.measurement}' measures several drives at the same time; put it in a separate study"
    for name in captured():
        return f"each drive would replay a different capture of trace '{name}'; capture it beforehand and name its file"
    return None
