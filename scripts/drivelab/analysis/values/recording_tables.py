"""Compute all tables of a recording from its files, without its stored tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from drivelab.analysis.detectors import findings_table
from drivelab.analysis.values.saturation_table import saturation_table
from drivelab.collect import inventory
from drivelab.collect.collect import collect
from drivelab.criteria.taint import Limits
from drivelab.plan.plan import Plan
from drivelab.tables.windows import windows_table


def recording_tables(recording: Path, *, reduced: bool, limits: Limits | None = None) -> dict[str, pd.DataFrame]:
    """Return the tables of `collect` and `steady_state`, by name; arguments and errors as in `collect`.

    Without `limits` of taint, those of the plan count.
    """
    plan = Plan.read(recording / "plan.json")
    tables = collect(recording, reduced, limits or Limits.from_mapping(plan.context.get("taint", {})))
    until = {number: step["loop"]["until"] for number, step in enumerate(plan.subject["measure"]) if "loop" in step}
    return {**tables, "steady_state": windows_table(tables["cells"], until)}


def found_in(recording: Path, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables `findings` and `saturation` of a recording with these tables."""
    drive = inventory.drives([recording])
    capacities = dict(zip(drive["drive"], drive["capacity_bytes"].astype(int), strict=True))
    return {"findings": findings_table(tables), "saturation": saturation_table(tables["cells"], capacities)}
