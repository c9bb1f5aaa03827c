"""List the differences of two compared sides, and whether they are intended."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pandas as pd

from drivelab.core.errors import UserError
from drivelab.core.units import counted
from drivelab.criteria.inert import CANNOT_ACT, cannot_act
from drivelab.tables.schemas import SCHEMAS

KINDS = ("drive", "file system", "host", "setting", "protocol", "time")
ALWAYS = ("time", CANNOT_ACT)
"""Kinds of differences that are never unintended: those between any two recordings, and those without effect."""
OF_DRIVES = ("drive",)
OF_PLATFORMS = ("host", "setting", "scenario", "write cache", "file system")
"""Facets and kinds that distinguish the platforms of a study."""
NOT_RECORDED = "not recorded"
STEPS = "steps"
"""The facet whose value is a digest: only whether it differs is informative."""
FIO_OPTION, OTHER_OPTIONS = "fio: ", "fio: other options"
"""Prefix of the facets of fio's options, and the facet with the value of all that a side does not list."""
_SEVERAL = " | "
"""Separates the values of pooled recordings."""


def differences_table(
    conditions: pd.DataFrame, pairs: Iterable[tuple[str, str]], intended: Collection[str] | None = None
) -> pd.DataFrame:
    """Make table `differences`: every facet of `conditions` that differs in a pair, or is not recorded.

    `pairs` are (basis, comparison) as in the column `drive`; they are compared in each measurement that both have.
    Values of several recordings are joined. A facet that only one side has is NOT_RECORDED on the other, and
    an option of fio has the value of its OTHER_OPTIONS. `unknown`
    tells rows that are not recorded from those that differ. A difference that cannot act, see
    `drivelab.criteria.inert`, has the kind CANNOT_ACT. `intended` are the facets or kinds of facets that are meant to
    differ; None means those that `intended_by` gives for the pair. Kinds in ALWAYS are always intended. Raises
    UserError for an intended name that is neither a kind nor a facet of any recording.
    """
    of_facets = conditions.groupby(["measurement", "drive", "facet"], sort=False)["value"]
    by_side: dict[tuple[str, str], dict[str, str]] = {}
    for (measurement, drive, facet), values_of in of_facets:
        by_side.setdefault((measurement, drive), {})[facet] = _SEVERAL.join(sorted(set(values_of)))
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
            sides = [by_side.get((measurement, drive), {}) for drive in (basis, comparison)]
            if not all(sides):
                continue
            key = {"measurement": measurement, "basis": basis, "comparison": comparison}
            for facet in dict.fromkeys([*sides[0], *sides[1]]):
                unlisted = OTHER_OPTIONS if facet.startswith(FIO_OPTION) else facet
                values = [side.get(facet, side.get(unlisted, NOT_RECORDED)) for side in sides]
                if values[0] != values[1] or unknown(*values):
                    kind = CANNOT_ACT if cannot_act(facet, *sides) else kinds[facet]
                    difference = {"facet": facet, "kind": kind, "basis_value": values[0], "comparison_value": values[1]}
                    rows.append({**key, **difference, "intended": kind in expected or facet in expected})
    return pd.DataFrame(rows, columns=SCHEMAS["differences"].names).astype({"intended": bool})


def intended_by(basis: str, comparison: str) -> tuple[str, ...]:
    """Return the facets and kinds that are meant to differ between two subjects.

    A subject is DRIVE or DRIVE@PLATFORM.
    """
    drives, platforms = ({subject.partition("@")[part] for subject in (basis, comparison)} for part in (0, 2))
    return (OF_DRIVES if len(drives) > 1 else ()) + (OF_PLATFORMS if len(platforms) > 1 else ())


def unknown(basis_value: object, comparison_value: object) -> bool:
    """Return whether a condition is not recorded on one or both sides, so that it may differ.

    If only some of a side's recordings have it, the recorded values decide as far as they can.
    """
    sides = [set(str(value).split(_SEVERAL)) for value in (basis_value, comparison_value)]
    recorded = [side - {NOT_RECORDED} for side in sides]
    return recorded != sides and (not all(recorded) or recorded[0] == recorded[1])


def known_differences(differences: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of table `differences` that differ."""
    return differences[~_unknown(differences)]


def not_recorded(differences: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of table `differences` that are not recorded on one or both sides."""
    return differences[_unknown(differences)]


def _unknown(differences: pd.DataFrame) -> pd.Series:
    values = zip(differences["basis_value"], differences["comparison_value"], strict=True)
    return pd.Series([unknown(*both) for both in values], index=differences.index, dtype=bool)


def not_recorded_words(count: int) -> str:
    """Return how many conditions are not recorded, as `12 conditions are not recorded on one or both sides`."""
    return f"{counted(count, 'condition')} {'is' if count == 1 else 'are'} not recorded on one or both sides"


def forbidden(differences: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of table `differences` that a study with `unintended: forbid` does not accept.

    A condition that only one side recorded is not known to be equal. One that neither side recorded is accepted,
    because no recording has all conditions.
    """
    return differences[
        ~differences["intended"].astype(bool) & (differences["basis_value"] != differences["comparison_value"])
    ]


def differing(facet: str, basis_value: object, comparison_value: object) -> str:
    """Describe a difference in words, such as `kernel differs: 6.1 and 6.6`."""
    if unknown(basis_value, comparison_value):
        return f"{facet} is not recorded for all recordings: {basis_value} and {comparison_value}"
    if facet == STEPS:
        return "the steps of the protocol differ"
    return f"{facet} differs: {basis_value} and {comparison_value}"
