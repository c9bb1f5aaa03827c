"""The values of one selection of recordings, pooled as in the table `summary`, and their workload facets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.doubts import LOAD, NOT_KNOWN, WORKLOAD_FACETS
from drivelab.analysis.exclusions import WHOLE, exclusions_table, left_out
from drivelab.analysis.study_tables import BIN_COLUMNS, COUNTED
from drivelab.analysis.values.summary import summary_table
from drivelab.collect.conditions import conditions
from drivelab.criteria.repeats import THRESHOLD_PCT
from drivelab.explore.row_selection import Selector
from drivelab.imported import IMPORTED
from drivelab.plan.places import ROOT
from drivelab.plan.yaml_file import load_yaml
from drivelab.report.numbers import loaded
from drivelab.tables import io
from drivelab.tables.labels import demand
from drivelab.tables.schemas import SCHEMAS

_PLACE = ["measurement", "cell_label", "metric"]
_IN_LABEL = re.compile(r"\bT\d+Q\d+\b")


@dataclass(frozen=True)
class Side:
    """Values of one selector: tables in which its text, `name`, is the drive."""

    name: str
    summary: pd.DataFrame
    conditions: pd.DataFrame
    exclusions: pd.DataFrame
    workloads: pd.DataFrame
    """Columns of `drivelab.analysis.deltas.doubts.WORKLOAD_FACETS`, with the index of `summary`."""
    cells: pd.DataFrame
    """Table `cells` of the recordings that count."""
    folder: Path
    """The results folder."""
    started: Mapping[str, str] = field(default_factory=dict)
    """When each recording began, ISO 8601; a day, or `not recorded`, of imported ones."""


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


def differing_loads(basis: Side, comparison: Side, *, intended: bool) -> pd.DataFrame:
    """Return rows of table `differences` for measurements with different loads; unknown loads are left out."""
    both = [side.summary[_PLACE].assign(load=side.workloads[LOAD]) for side in (basis, comparison)]
    pairs = both[0].merge(both[1], on=_PLACE, suffixes=("_basis", "_comparison")).dropna()
    known = (pairs[["load_basis", "load_comparison"]] != NOT_KNOWN).all(axis=1)
    differing = pairs[known & (pairs["load_basis"] != pairs["load_comparison"])]
    rows = [
        {"measurement": measurement, "basis": basis.name, "comparison": comparison.name, "facet": LOAD,
         "kind": "protocol", "intended": intended,
         **{f"{side}_value": " | ".join(sorted(set(values[f"load_{side}"]))) for side in ("basis", "comparison")}}
        for measurement, values in differing.groupby("measurement")
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=SCHEMAS["differences"].names).astype({"intended": bool})


def side_of(selector: Selector, results: Path, chosen: pd.DataFrame, rse_threshold_pct: float = THRESHOLD_PCT) -> Side:
    """Return the values of the recordings `chosen` by `select`.

    Of a measurement, only recordings by the latest plan count; the others are among the exclusions.
    """
    is_import = (results / IMPORTED).exists()
    tables = _of_import(results, chosen) if is_import else _of_recordings(results, chosen, rse_threshold_pct)
    summary, known, exclusions, cells = tables
    facets = workload_facets(summary, cells, known, measured=not is_import)
    name, started = selector.text, dict(zip(chosen["recording"], chosen["started"], strict=True))
    return Side(name, summary.assign(drive=name), known.assign(drive=name), exclusions, facets, cells, results, started)


_Tables = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]
"""Summary, conditions, exclusions and cells."""


def _of_import(results: Path, chosen: pd.DataFrame) -> _Tables:
    names = set(chosen["recording"])
    summary, known, cells = (
        io.read([path] if (path := results / f"tables/{table}.parquet").exists() or table != "cells" else [], table)
        for table in ("summary", "conditions", "cells")
    )
    summary = summary[[bool(names & set(recordings)) for recordings in summary["recordings"]]]
    no_exclusions = pd.DataFrame(columns=SCHEMAS["exclusions"].names)
    return summary, known[known["recording"].isin(names)], no_exclusions, cells[cells["recording"].isin(names)]


def _of_recordings(results: Path, chosen: pd.DataFrame, rse_threshold_pct: float) -> _Tables:
    other_plans = _by_other_plans(chosen)
    kept = chosen[~chosen["recording"].isin({row["recording"] for row in other_plans})]
    paths = {recording: results / "tables" / recording for recording in kept["recording"]}
    tables = {table: io.read([path / f"{table}.parquet" for path in paths.values()], table) for table in COUNTED}
    judged = {name: tables[name] for name in ("replays", "application_runs", "load_rates")}
    exclusions = exclusions_table(tables["cells"], kept, other_plans, **judged)
    gone = left_out(exclusions)
    counted = [recording for recording in kept["recording"] if recording not in gone]
    tables = {table: rows[rows["recording"].isin(counted)] for table, rows in tables.items()}
    cells = tables["cells"]
    bin_files = [paths[recording] / "latency_bins.parquet" for recording in counted]
    bins = io.read_part(bin_files, "latency_bins", BIN_COLUMNS, ("kind", "soak"))
    scores = {cell.measurement: _score_of(cell.protocol) for cell in cells.drop_duplicates("measurement").itertuples()}
    summary = summary_table(**tables, rse_threshold_pct=rse_threshold_pct, soak_bins=bins, scores=scores)
    altered = {name: ["shortened or altered"] for name in cells.loc[cells["reduced"], "recording"].unique()}
    known = conditions([results / "recordings" / recording for recording in counted], altered, cells)
    return summary, known, exclusions, cells


def _by_other_plans(chosen: pd.DataFrame) -> list[dict[str, Any]]:
    """Return exclusions for recordings by another plan than the latest."""
    rows = []
    for _, recordings in chosen.groupby("measurement", sort=False):
        latest = recordings.sort_values("finished", kind="stable").iloc[-1]
        for recording in recordings[recordings["digest"] != latest["digest"]].to_dict("records"):
            key = {name: recording[name] for name in ("recording", "drive", "measurement")}
            words = f"made by another plan; not pooled with the latest, {latest['recording']}"
            rows.append({**key, "place": WHOLE, "fault": "mixed versions", "words": words})
    return rows


def _score_of(protocol: str) -> dict[str, str]:
    """Return the `analysis` key of a protocol. The result is empty if the protocol no longer exists."""
    path = ROOT / "config/protocols" / f"{protocol}.yaml"
    return dict(load_yaml(path).get("analysis", {})) if path.exists() else {}
