"""Compute all tables of a recording from its files, without its stored tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from drivelab.collect.collect import collect
from drivelab.criteria.taint import Limits
from drivelab.plan.plan import Plan
from drivelab.tables.windows import windows_table


def recording_tables(recording: Path, *, reduced: bool) -> dict[str, pd.DataFrame]:
    """Return the tables of `collect` and `steady_state`, by name; arguments and errors as in `collect`.

    The limits of taint are those of the plan.
    """
    plan = Plan.read(recording / "plan.json")
    tables = collect(recording, reduced, Limits.from_mapping(plan.context.get("taint", {})))
    until = {number: step["loop"]["until"] for number, step in enumerate(plan.subject["measure"]) if "loop" in step}
    return {**tables, "steady_state": windows_table(tables["cells"], until)}
