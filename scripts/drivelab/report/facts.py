"""Named values of the header block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drivelab.report.inputs import Row
from drivelab.report.numbers import MISSING
from drivelab.report.view import Fact


def fact(name: str, value: str, tone: str = "") -> Fact:
    """A value, marked where it is missing."""
    return Fact(name, value, tone or ("missing" if value == MISSING else ""))


def given(name: str, value: str, nothing: str = MISSING) -> tuple[Fact, ...]:
    """A fact that only some tests have."""
    return () if value in ("", nothing, MISSING) else (fact(name, value),)


def nothing_if_planned(plans: Sequence[Row], nothing: str) -> str:
    """What is not in a plan was not done; what an import does not say is not known."""
    return nothing if any(isinstance(plan.get("condition"), Mapping) for plan in plans) else MISSING
