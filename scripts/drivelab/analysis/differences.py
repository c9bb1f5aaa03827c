"""Ceteris paribus: of each compared pair, what differs beside the results, and whether it was meant to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pandas as pd

from drivelab.errors import UserError
from drivelab.tables.schemas import SCHEMAS

KINDS = ("drive", "host", "setting", "protocol", "time")
ALWAYS = ("time",)
"""Kinds of facets that no two recordings share."""
OF_DRIVES = ("drive",)
OF_PLATFORMS = ("host", "setting", "scenario", "write cache")
"""What a study's platforms are told apart by."""
NOT_RECORDED = "not recorded"
STEPS = "steps"
"""The facet whose value is a digest: that it differs says something, the value nothing."""
_SEVERAL = " | "
"""Between the values of recordings that are pooled."""


def differences_table(
    conditions: pd.DataFrame, pairs: Iterable[tuple[str, str]], intended: Collection[str] | None = None
) -> pd.DataFrame:
    """Table `differences` from table `conditions`: for each pair of basis and comparison, every facet not the same.

    A pair is of what the column `drive` holds, and is compared in each measurement that both have. Values of several
    recordings are joined; a facet that only one side has is NOT_RECORDED on the other. `intended` are facets or kinds
    of them that are meant to differ; if None, those that follow from the pair: see `intended_by`. Kinds in ALWAYS are
    meant to at any rate. Raises UserError for one that is intended and neither a kind nor a facet of any recording.
    """
    by_side = _values(conditions)
    kinds = {one.facet: one.kind for one in conditions[["facet", "kind"]].drop_duplicates().itertuples()}
    for one in intended or ():
        if kinds and one not in (*KINDS, *kinds):
            raise UserError(
                f"'{one}' is intended to differ, which is no facet of any recording and no kind of them; choose among "
                f"{', '.join((*KINDS, *kinds))}"
            )
    measured = list(dict.fromkeys(conditions["measurement"]))
    rows = []
    for basis, comparison in pairs:
        meant = {*ALWAYS, *(intended_by(basis, comparison) if intended is None else intended)}
        for measurement in measured:
            sides = [by_side.get((measurement, one)) for one in (basis, comparison)]
            if sides[0] is None or sides[1] is None:
                continue
            key = {"measurement": measurement, "basis": basis, "comparison": comparison}
            for facet in dict.fromkeys([*sides[0], *sides[1]]):
                values = [side.get(facet, NOT_RECORDED) for side in sides if side is not None]
                if values[0] != values[1]:
                    kind = kinds[facet]
                    told = {"facet": facet, "kind": kind, "basis_value": values[0], "comparison_value": values[1]}
                    rows.append({**key, **told, "intended": kind in meant or facet in meant})
    return pd.DataFrame(rows, columns=SCHEMAS["differences"].names).astype({"intended": bool})


def intended_by(basis: str, comparison: str) -> tuple[str, ...]:
    """Facets and kinds that two subjects, drives or DRIVE@PLATFORM, are meant to differ in."""
    drives, platforms = ({one.partition("@")[part] for one in (basis, comparison)} for part in (0, 2))
    return (OF_DRIVES if len(drives) > 1 else ()) + (OF_PLATFORMS if len(platforms) > 1 else ())


def differing(facet: str, basis_value: object, comparison_value: object) -> str:
    """That a facet is not the same, in words: `kernel differs: 6.1 and 6.6`."""
    if facet == STEPS:
        return "the steps of the protocol differ"
    return f"{facet} differs: {basis_value} and {comparison_value}"


def _values(conditions: pd.DataFrame) -> Mapping[tuple[str, str], Mapping[str, str]]:
    """By measurement and drive: value by facet, in the order of the table."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in conditions.itertuples():
        facets = found.setdefault((one.measurement, one.drive), {})
        facets.setdefault(one.facet, []).append(one.value)
    return {
        side: {facet: _SEVERAL.join(sorted(set(values))) for facet, values in facets.items()}
        for side, facets in found.items()
    }
