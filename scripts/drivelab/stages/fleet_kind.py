"""Whether a study is run drive by drive, each drive as a part with results of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from drivelab.config.study import PARTS, Study
from drivelab.errors import UserError
from drivelab.plan.plan import Plan

LARGE = 1000
"""Recordings above which a study is run drive by drive: to plan more in one piece takes minutes."""


def is_fleet(study: Study, plans: Sequence[Plan], captured: Callable[[], Iterable[str]]) -> bool:
    """Whether a study is run drive by drive: as it says, or else if it is large and was not begun in one piece.

    `captured` tells the traces that would be captured when they are needed. Raises UserError where the drives cannot be
    measured apart, and where what is recorded would be measured again.
    """
    whole, parts = ((study.results / one).is_dir() for one in ("recordings", PARTS))
    if study.fleet is None:
        large = len(plans) > LARGE and len(study.drives) > 1 and not _obstacle(plans, captured)
        return parts or (large and not whole)
    if study.fleet and (reason := _obstacle(plans, captured)):
        raise UserError(f"{study.path}: key 'fleet' is yes, but {reason}")
    if (study.fleet and whole) or (not study.fleet and parts):
        begun = "in one piece" if whole else "drive by drive"
        raise UserError(
            f"{study.path}: key 'fleet' is {'yes' if study.fleet else 'no'}, but {study.results} holds recordings of "
            f"this study, begun {begun}, which would all be measured again; leave the key out, or name other 'results'"
        )
    return study.fleet


def in_part(plan: Plan, study: Study) -> Plan:
    """A plan of a fleet, whose results lie with its drive's."""
    moved = Plan(plan.subject, {**plan.context, "results": str(study.results / PARTS / plan.sheet_drive)})
    moved.__dict__["digest"] = plan.digest  # of the same subject: to make it takes most of the time of a large study
    return moved


def _obstacle(plans: Iterable[Plan], captured: Callable[[], Iterable[str]]) -> str | None:
    """Why the drives of a study cannot be measured apart."""
    for plan in plans:
        if "simultaneous" in plan.subject:
            return f"'{plan.measurement}' measures several drives at the same time; make that a study of its own"
    for name in captured():
        return f"each drive would replay a capture of its own of trace '{name}'; capture it before, and name its file"
    return None
