"""Compute all tables of a recording from its files, without its stored tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from drivelab.analysis.detectors import findings_table
from drivelab.analysis.values.saturation_table import saturation_table
from drivelab.collect import inventory
from drivelab.collect.collect import collect
from drivelab.core.files import whole_folder
from drivelab.criteria.taint import Limits
from drivelab.plan.plan import Plan
from drivelab.recording.folders import tables_folder
from drivelab.tables import io
from drivelab.tables.windows import windows_table


def recording_tables(recording: Path, *, reduced: bool, limits: Limits | None = None) -> dict[str, pd.DataFrame]:
    """Return the tables of `collect` and `steady_state`, by name; arguments and errors as in `collect`.

    Without `limits` of taint, those of the plan count.
    """
    plan = Plan.read(recording / "plan.json")
    tables = collect(recording, reduced, limits or Limits.from_mapping(plan.context.get("taint", {})))
    until = {number: step["loop"]["until"] for number, step in enumerate(plan.subject["measure"]) if "loop" in step}
    return {**tables, "steady_state": windows_table(tables["cells"], until)}


def write_tables(recording: Path, *, reduced: bool, limits: Limits | None = None) -> dict[str, pd.DataFrame]:
    """Write all tables of a recording where a study has them, and return them; arguments as in `recording_tables`."""
    tables, drive = recording_tables(recording, reduced=reduced, limits=limits), inventory.drives([recording])
    capacities = dict(zip(drive["drive"], drive["capacity_bytes"].astype(int), strict=True))
    tables |= {"findings": findings_table(tables), "saturation": saturation_table(tables["cells"], capacities)}
    with whole_folder(tables_folder(recording)) as folder:
        for name, table in tables.items():
            io.write(table, folder / f"{name}.parquet", name)
    return tables
