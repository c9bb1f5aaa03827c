"""What measurements asked of the drive, value by value: only what was asked alike can be compared."""

from __future__ import annotations

import re

import pandas as pd

from drivelab.analysis.delta_doubts import ASKED, LOAD, NOT_KNOWN
from drivelab.analysis.labels import demand
from drivelab.tables.schemas import SCHEMAS

_Asked = tuple[str, pd.DataFrame, pd.DataFrame]
_PLACE = ["measurement", "cell_label", "metric"]
_IN_LABEL = re.compile(r"\bT\d+Q\d+\b")


def asked(summary: pd.DataFrame, cells: pd.DataFrame, conditions: pd.DataFrame, *, measured: bool) -> pd.DataFrame:
    """Columns of ASKED for the rows of table `summary`, with its index, from the tables of the same recordings.

    The load is threads and depth of the cells of a value, NOT_KNOWN where there are none and nothing was `measured`
    here, null where the drive or an application chose it, or where the name of the cell has it. The others are of
    table `conditions`, as they are there.
    """
    loads: dict[tuple[str, str], set[str]] = {}
    for one in cells.loc[cells["point"].isna(), ["recording", "cell_label", "threads", "queue_depth"]].itertuples():
        loads.setdefault((one.recording, one.cell_label), set()).add(demand(one.threads, one.queue_depth))
    facets = conditions.set_index(["recording", "facet"])["value"].to_dict()
    rows = []
    for one in summary.itertuples():
        found = sorted(set().union(*(loads.get((name, one.cell_label), set()) for name in one.recordings)))
        chosen = measured or _IN_LABEL.search(one.cell_label)
        row = {LOAD: " or ".join(found) or (None if chosen else NOT_KNOWN)}
        for facet in ASKED[1:]:
            values = sorted({facets[name, facet] for name in one.recordings if (name, facet) in facets})
            row[facet] = " or ".join(values) or None
        rows.append(row)
    return pd.DataFrame(rows, index=summary.index, columns=list(ASKED), dtype=object)


def differing_loads(basis: _Asked, comparison: _Asked, *, meant: bool) -> pd.DataFrame:
    """Rows of table `differences`, one for each measurement in which values that both sides have were asked with other
    loads. A side is its name, its table `summary` and what `asked` says of it; a load that is not known is left out."""
    names = {"basis": basis[0], "comparison": comparison[0]}
    both = [summary[_PLACE].assign(load=of[LOAD]) for _, summary, of in (basis, comparison)]
    pairs = both[0].merge(both[1], on=_PLACE, suffixes=("_basis", "_comparison")).dropna()
    known = (pairs[["load_basis", "load_comparison"]] != NOT_KNOWN).all(axis=1)
    rows = []
    for measurement, of in pairs[known & (pairs["load_basis"] != pairs["load_comparison"])].groupby("measurement"):
        values = {f"{side}_value": " | ".join(sorted(set(of[f"load_{side}"]))) for side in names}
        rows.append(
            {"measurement": measurement, **names, "facet": LOAD, "kind": "protocol", **values, "intended": meant}
        )
    return pd.DataFrame(rows, columns=SCHEMAS["differences"].names).astype({"intended": bool})
