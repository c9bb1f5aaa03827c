"""Find the workload facets of values, which must be equal for a comparison."""

from __future__ import annotations

import re

import pandas as pd

from drivelab.analysis.deltas.doubts import LOAD, NOT_KNOWN, WORKLOAD_FACETS
from drivelab.report.sentences import loaded
from drivelab.tables.labels import demand
from drivelab.tables.schemas import SCHEMAS

_Side = tuple[str, pd.DataFrame, pd.DataFrame]
_PLACE = ["measurement", "cell_label", "metric"]
_IN_LABEL = re.compile(r"\bT\d+Q\d+\b")


def workload_facets(
    summary: pd.DataFrame, cells: pd.DataFrame, conditions: pd.DataFrame, *, measured: bool
) -> pd.DataFrame:
    """Return the columns of WORKLOAD_FACETS for the rows of table `summary`.

    All tables are of the same recordings. The load is threads and queue depth of the cells of a value. It is null where
    the drive or an application chose it, or where the cell label has it. It is NOT_KNOWN for imported values (not
    `measured` here) without cells. The other facets come from table `conditions`.
    """
    loads: dict[tuple[str, str], set[str]] = {}
    for cell in cells.loc[cells["point"].isna(), ["recording", "cell_label", "threads", "queue_depth"]].itertuples():
        loads.setdefault((cell.recording, cell.cell_label), set()).add(demand(cell.threads, cell.queue_depth))
    facets = conditions.set_index(["recording", "facet"])["value"].to_dict()
    rows = []
    for value in summary.itertuples():
        known = sorted(set().union(*(loads.get((name, value.cell_label), set()) for name in value.recordings)))
        needs_none = measured or _IN_LABEL.search(value.cell_label)
        row = {LOAD: " or ".join(known) or (None if needs_none else NOT_KNOWN)}
        for facet in WORKLOAD_FACETS[1:]:
            settings = sorted({facets[name, facet] for name in value.recordings if (name, facet) in facets})
            row[facet] = " or ".join(settings) or None
        rows.append(row)
    return pd.DataFrame(rows, index=summary.index, columns=list(WORKLOAD_FACETS), dtype=object)


def named_by_load(summary: pd.DataFrame, facets: pd.DataFrame, others: frozenset[str]) -> pd.DataFrame:
    """Return the summary with the load in each cell label that has it among the labels `others` of the other side.

    A label has the load only if its recording has the workload at several loads, so one cell may have two labels.
    """
    labels = []
    for label, load in zip(summary["cell_label"], facets[LOAD], strict=True):
        full = loaded(label, load)
        labels.append(full if label not in others and full in others else label)
    return summary.assign(cell_label=labels)


def differing_loads(basis: _Side, comparison: _Side, *, intended: bool) -> pd.DataFrame:
    """Return rows of table `differences` for measurements with different loads.

    A side is its name, its table `summary` and its `workload_facets`. Unknown loads are left out.
    """
    names = {"basis": basis[0], "comparison": comparison[0]}
    both = [summary[_PLACE].assign(load=facets[LOAD]) for _, summary, facets in (basis, comparison)]
    pairs = both[0].merge(both[1], on=_PLACE, suffixes=("_basis", "_comparison")).dropna()
    known = (pairs[["load_basis", "load_comparison"]] != NOT_KNOWN).all(axis=1)
    rows = []
    differing = pairs[known & (pairs["load_basis"] != pairs["load_comparison"])]
    for measurement, values in differing.groupby("measurement"):
        loads = {f"{side}_value": " | ".join(sorted(set(values[f"load_{side}"]))) for side in names}
        rows.append(
            {"measurement": measurement, **names, "facet": LOAD, "kind": "protocol", **loads, "intended": intended}
        )
    return pd.DataFrame(rows, columns=SCHEMAS["differences"].names).astype({"intended": bool})
