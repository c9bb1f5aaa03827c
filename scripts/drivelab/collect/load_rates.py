"""Make the table `load_rates` from the evidence of load steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from drivelab.core.grouping import grouped
from drivelab.criteria.taint import KERNEL, OWN
from drivelab.plan.cell import Cell
from drivelab.replay.evaluation.load_rate import rate_facts, read_requests
from drivelab.tables.replay_schemas import LOAD_RATES

_OF_A_LINE = ("step", "phase", "phase_value", "phase_pass", "rate", "rate_iops", "trace")


def load_rates(
    recording: Path,
    journal: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
    key: Mapping[str, Any],
    telemetry: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> pd.DataFrame:
    """Return the table, a row for each rate in the order of the search; empty without a load step.

    Outcomes and values come from the times of the requests, not from the journal. `steps` are those of the plan; `key`
    has the columns that identify the recording; `telemetry` returns the telemetry columns of a line. Raises UserError
    if the evidence of a measurement is missing or damaged.
    """
    lines = [line for line in journal if line["event"] == "load"]
    rows = []
    for measured in grouped(lines, lambda line: (line["step"], line["rate"])).values():
        first, fields = measured[0], steps[measured[0]["step"]]["load"]
        cell, limit = Cell(**fields["cell"]), fields["limit"]
        requests = [read_requests(recording / line["directory"]) for line in measured]
        rows.append(
            {
                **key,
                **{name: first.get(name) for name in _OF_A_LINE},
                "workload": cell.workload,
                "arrivals": fields["arrivals"],
                "percentile": limit["percentile"],
                "limit_us": limit["response_time_us"],
                "measurements": len(measured),
                "threads": cell.threads,
                "queue_depth": cell.queue_depth,
                **rate_facts(requests, limit["percentile"], limit["response_time_us"]),
                "counted": True,
                "directories": [line["directory"] for line in measured],
                **telemetry(_whole(measured)),
            }
        )
    return pa.Table.from_pylist(rows, schema=LOAD_RATES).to_pandas()


def _whole(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a line for all measurements of a rate: their whole time, and the sums of their counted writes."""
    times = {"started_s": lines[0].get("started_s"), "ended_s": lines[-1].get("ended_s")}
    counts = {
        name: {kind: sum(line[name].get(kind, 0) for line in lines) for kind in {*lines[0][name], *lines[-1][name]}}
        for name in (KERNEL, OWN)
        if all(name in line for line in lines)
    }
    return {**times, **counts}
