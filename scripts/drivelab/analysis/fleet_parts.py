"""The tables of a fleet, built part by part to limit memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.deltas.differences import differences_table
from drivelab.analysis.deltas.inference import adjusted
from drivelab.analysis.deltas.judging import judged
from drivelab.analysis.exclusions import counted
from drivelab.analysis.fleet_statistics import FROM_SUMMARY, deviations_table, drive_columns, hosts_table, spread_table
from drivelab.analysis.verdict import NOT_STEADY, STEADY
from drivelab.collect.inventory import UNKNOWN
from drivelab.plan.plan import drive_in_sheet
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

_P_VALUES = ("p_value", "equivalence_p")
_COUNTS = ("values", "faulty", "not_steady", "tainted", "outlying")


def fleet_tables(outcomes: Sequence[Mapping[str, Any]], margin_pct: float) -> dict[str, pd.DataFrame]:
    """Return the tables `fleet_drives`, `fleet_spread`, `fleet_deviations` and `fleet_hosts`.

    `outcomes` come from `drivelab.workflow.fleet`, one for each drive of the study. Only drives with a finished
    part contribute values: a failed part may hold outdated tables.
    """
    parts = measured(outcomes)
    values = io.read_columns([part / "tables/summary.parquet" for part in parts.values()], "summary", FROM_SUMMARY)
    deviations = deviations_table(values, margin_pct, _tracked(values, parts))
    facts = pd.DataFrame([row for outcome in outcomes for row in _facts(outcome, parts.get(outcome["drive"]))])
    drives = facts.merge(drive_columns(deviations), how="left", left_on="drive", right_index=True)
    for name in _COUNTS:
        drives[name] = drives[name].fillna(0).astype(int)
    for name in ("reduced", "virtual"):
        drives[name] = drives[name] == True  # noqa: E712 - may be null
    return {
        "fleet_drives": drives[SCHEMAS["fleet_drives"].names],
        "fleet_spread": spread_table(deviations),
        "fleet_deviations": deviations,
        "fleet_hosts": hosts_table(deviations, drives.set_index("drive")["hosts"]),
    }


def measured(outcomes: Iterable[Mapping[str, Any]]) -> dict[str, Path]:
    """Return the results folder of each drive whose part of the study succeeded."""
    return {outcome["drive"]: Path(outcome["results"]) for outcome in outcomes if outcome["state"] == "measured"}


def _tracked(values: pd.DataFrame, parts: Mapping[str, Path]) -> dict[str, list[tuple[str, str]]]:
    """Return the tracked variables of each measurement in the protocol's order, from one recording of its first drive.

    A measurement whose table `steady_state` was deleted has none: drivelab does not rebuild it for one recording.
    """
    variables = {}
    tracked = values[values["verdict"].isin((STEADY, NOT_STEADY))].drop_duplicates("measurement")
    for drive, measurement in zip(tracked["drive"], tracked["measurement"], strict=True):
        folder = parts[drive_in_sheet(drive)] / "tables"
        columns = ["drive", "recordings"]
        rows = io.read_part([folder / "summary.parquet"], "summary", columns, ("measurement", measurement))
        recordings = [name for names in rows.loc[rows["drive"] == drive, "recordings"] for name in names]
        paths = (folder / name / "steady_state.parquet" for name in dict.fromkeys(recordings))
        if path := next(filter(Path.is_file, paths), None):
            table = io.read_columns([path], "steady_state", ("variable", "metric"))
            variables[measurement] = list(dict.fromkeys(zip(table["variable"], table["metric"], strict=True)))
    return variables


def write_deltas(
    outcomes: Iterable[Mapping[str, Any]], basis: str, output: Path, comparison: Mapping[str, Any], intended: Any
) -> None:
    """Write `deltas` and `differences` of every drive against the basis, as `output`/DRIVE/deltas.parquet.

    `comparison` and `intended` are as in `drivelab.analysis.deltas.deltas` and `differences`. p-values are adjusted for
    the comparisons of all drives together, so the verdicts follow after all tables are written. Without a measured
    basis there are no deltas.
    """
    output.mkdir(parents=True, exist_ok=True)
    parts = measured(outcomes)
    basis_part = parts.get(drive_in_sheet(basis))
    reference = None if basis_part is None else _side(basis_part, basis)
    if reference is None or reference[0].empty:
        return
    written, families = [], []
    for drive, part in parts.items():
        summary, conditions = _side(part, basis, others=True)
        if summary.empty:
            continue
        pairs = [(basis, name) for name in dict.fromkeys(summary["drive"])]
        differences = differences_table(pd.concat([reference[1], conditions], ignore_index=True), pairs, intended)
        both = pd.concat([reference[0], summary], ignore_index=True)
        table = deltas_table(both, basis, differences=differences, **comparison)
        io.write(differences, output / drive / "differences.parquet", "differences")
        io.write(table, output / drive / "deltas.parquet", "deltas")
        written.append(output / drive / "deltas.parquet")
        families.append(_family(table))
    if written:
        _decide(written, pd.concat(families, ignore_index=True), comparison["confidence_pct"])


def by_measurement(outcomes: Iterable[Mapping[str, Any]]) -> Iterator[pd.DataFrame]:
    """Yield table `summary` of all measured drives, measurement by measurement, to limit memory."""
    paths = [part / "tables/summary.parquet" for part in measured(outcomes).values()]
    for measurement in io.read_columns(paths, "summary", ["measurement"])["measurement"].unique():
        yield io.read_part(paths, "summary", SCHEMAS["summary"].names, ("measurement", measurement))


def _side(part: Path, basis: str, others: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `summary` and `conditions` of the basis or, with `others`, of the other drives of a part."""
    exclusions = io.read(part / "tables/exclusions.parquet", "exclusions")
    tables = [io.read(part / f"tables/{name}.parquet", name) for name in ("summary", "conditions")]
    summary, conditions = (table[(table["drive"] == basis) ^ others].reset_index(drop=True) for table in tables)
    return summary, counted(conditions, exclusions)


def _family(deltas: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of `deltas` that the adjustment needs, with p-values of testable pairs only."""
    testable = deltas["p_adjusted"].notna()
    p_values = {name: deltas[name].where(testable).astype(np.float64) for name in _P_VALUES}
    return deltas[["comparison", "measurement", "cell_label", "metric"]].assign(**p_values)


def _decide(written: Sequence[Path], family: pd.DataFrame, confidence_pct: float) -> None:
    cells = [family[name] for name in ("comparison", "measurement", "cell_label")]
    alpha = 1 - confidence_pct / 100
    difference, equivalence = (
        adjusted(family[name], cells, family["metric"], level)
        for name, level in zip(_P_VALUES, (alpha, alpha / 2), strict=True)
    )
    begin = 0
    for path in written:
        table = io.read(path, "deltas")
        rows = slice(begin, begin + len(table))
        if len(table):
            of_table = difference.part(rows, table.index), equivalence.part(rows, table.index)
            io.write(judged(table, *of_table, confidence_pct), path, "deltas")
        begin += len(table)


def _facts(outcome: Mapping[str, Any], part: Path | None) -> list[dict[str, Any]]:
    """Return the facts of `fleet_drives` for a part's subjects: the drive, or the drive on each platform."""
    known = {
        "state": outcome["state"],
        "reason": "; ".join(outcome["reasons"]) or None,
        "recordings": outcome["recordings"],
        "planned": outcome["planned"],
    }
    if part is None:
        unknown = dict.fromkeys(("hosts", "model", "serial", "firmware"), UNKNOWN)
        return [{**known, **unknown, "drive": outcome["drive"], "excluded": 0}]
    drives, hosts = (io.read(part / f"tables/{name}.parquet", name) for name in ("drives", "hosts"))
    exclusions = io.read(part / "tables/exclusions.parquet", "exclusions")
    of_drive = {name: _joined(drives[name]) for name in ("model", "serial", "firmware")}
    return [
        {**known, **of_drive, "drive": subject, "hosts": _joined(hosts["host"]),
         "excluded": int((exclusions["drive"] == subject).sum())}
        for subject in outcome["subjects"]
    ]  # fmt: skip


def _joined(values: pd.Series) -> str:
    return " and ".join(dict.fromkeys(map(str, values.dropna()))) or UNKNOWN
