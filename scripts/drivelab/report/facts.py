"""Named values of the header block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drivelab.report.inputs import Row
from drivelab.report.numbers import MISSING
from drivelab.report.view import Fact


def fact(name: str, value: str, tone: str = "") -> Fact:
    """Return a named value; mark it if it is missing."""
    return Fact(name, value, tone or ("missing" if value == MISSING else ""))


def given(name: str, value: str, nothing: str = MISSING) -> tuple[Fact, ...]:
    """Return a fact that only some tests have, or nothing if the value is missing or equals `nothing`."""
    return () if value in ("", nothing, MISSING) else (fact(name, value),)


def nothing_if_planned(plans: Sequence[Row], nothing: str) -> str:
    """Return `nothing` for a plan (what it omits was not done), else "not recorded" (an import)."""
    return nothing if any(isinstance(plan.get("condition"), Mapping) for plan in plans) else MISSING
