"""List the differences of two compared sides, and whether they are intended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pandas as pd

from drivelab.core.errors import UserError
from drivelab.tables.schemas import SCHEMAS

KINDS = ("drive", "file system", "host", "setting", "protocol", "time")
ALWAYS = ("time",)
"""Kinds of facets that differ between any two recordings."""
OF_DRIVES = ("drive",)
OF_PLATFORMS = ("host", "setting", "scenario", "write cache", "file system")
"""Facets and kinds that distinguish the platforms of a study."""
NOT_RECORDED = "not recorded"
STEPS = "steps"
"""The facet whose value is a digest: only whether it differs is informative."""
_SEVERAL = " | "
"""Separates the values of pooled recordings."""


def differences_table(
    conditions: pd.DataFrame, pairs: Iterable[tuple[str, str]], intended: Collection[str] | None = None
) -> pd.DataFrame:
    """Make table `differences`: every facet of `conditions` that differs in a pair.

    `pairs` are (basis, comparison) as in the column `drive`; they are compared in each measurement that both have.
    Values of several recordings are joined. A facet that only one side has is NOT_RECORDED on the other. `intended` are
    the facets or kinds of facets that are meant to differ; None means those that `intended_by` gives for the pair.
    Kinds in ALWAYS are always intended. Raises UserError for an intended name that is neither a kind nor a facet of any
    recording.
    """
    by_side = _values(conditions)
    kinds = {row.facet: row.kind for row in conditions[["facet", "kind"]].drop_duplicates().itertuples()}
    for name in intended or ():
        if kinds and name not in (*KINDS, *kinds):
            raise UserError(
                f"'{name}' is listed as an intended difference, but is neither a facet of a recording nor a kind of "
                f"facets; choose among {', '.join((*KINDS, *kinds))}"
            )
    measured = list(dict.fromkeys(conditions["measurement"]))
    rows = []
    for basis, comparison in pairs:
        expected = {*ALWAYS, *(intended_by(basis, comparison) if intended is None else intended)}
        for measurement in measured:
            sides = [by_side.get((measurement, drive)) for drive in (basis, comparison)]
            if sides[0] is None or sides[1] is None:
                continue
            key = {"measurement": measurement, "basis": basis, "comparison": comparison}
            for facet in dict.fromkeys([*sides[0], *sides[1]]):
                values = [side.get(facet, NOT_RECORDED) for side in sides if side is not None]
                if values[0] != values[1]:
                    kind = kinds[facet]
                    difference = {"facet": facet, "kind": kind, "basis_value": values[0], "comparison_value": values[1]}
                    rows.append({**key, **difference, "intended": kind in expected or facet in expected})
    return pd.DataFrame(rows, columns=SCHEMAS["differences"].names).astype({"intended": bool})


def intended_by(basis: str, comparison: str) -> tuple[str, ...]:
    """Return the facets and kinds that are meant to differ between two subjects.

    A subject is DRIVE or DRIVE@PLATFORM.
    """
    drives, platforms = ({subject.partition("@")[part] for subject in (basis, comparison)} for part in (0, 2))
    return (OF_DRIVES if len(drives) > 1 else ()) + (OF_PLATFORMS if len(platforms) > 1 else ())


def differing(facet: str, basis_value: object, comparison_value: object) -> str:
    """Describe a difference in words, such as `kernel differs: 6.1 and 6.6`."""
    if facet == STEPS:
        return "the steps of the protocol differ"
    return f"{facet} differs: {basis_value} and {comparison_value}"


def _values(conditions: pd.DataFrame) -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Return {(measurement, drive): {facet: value}}, in the order of the table."""
    by_side: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in conditions.itertuples():
        facets = by_side.setdefault((row.measurement, row.drive), {})
        facets.setdefault(row.facet, []).append(row.value)
    return {
        side: {facet: _SEVERAL.join(sorted(set(values))) for facet, values in facets.items()}
        for side, facets in by_side.items()
    }
