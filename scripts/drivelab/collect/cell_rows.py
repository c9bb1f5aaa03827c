"""Columns of `cells` and rows of `latency_bins` from the result of one cell, and the table `load_rates`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from drivelab.core.grouping import grouped
from drivelab.criteria.taint import KERNEL, OWN
from drivelab.fio.document import Direction
from drivelab.fio.result import FioResult, by_workload
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import directions_of, names_of_workloads, workloads_of
from drivelab.replay.evaluation.load_rate import rate_facts, read_requests
from drivelab.tables.replay_schemas import LOAD_RATES

Rows = list[dict[str, Any]]
_OF_WORKLOAD = (
    "pattern", "block_size_bytes", "block_size_max_bytes", "threads", "queue_depth", "alignment_offset_bytes",
    "range_bytes", "range_start", "range_share", "segments", "rate_iops", "entropy",
)  # fmt: skip
"""Columns that are fields of a cell with the same name."""
PERCENTILES = {
    f"p{str(percent).replace('.', '')}_latency_us": percent for percent in (50, 90, 99, 99.9, 99.99, 99.999, 99.9999)
}


class Clock:
    """Seconds since the first cell, and bytes written since then.

    Times come from the measuring process's clock, which ignores steps of the host's clock; on the virtual clock, from
    fio's time of day. If the clock was set back between two processes, the elapsed time does not advance.
    """

    def __init__(self) -> None:
        self._first_s: float | None = None
        self.elapsed_s = 0.0
        self.bytes_written = 0

    def pass_over(self, result: FioResult, facts: Mapping[str, Any]) -> float:
        """Count a cell and return its start, Unix time in seconds."""
        started_s = facts.get("started_s")
        started_s = result.started.timestamp() if started_s is None else float(started_s)
        self._first_s = started_s if self._first_s is None else self._first_s
        self.elapsed_s = max(self.elapsed_s, started_s - self._first_s)
        if math.isfinite(result.write.bytes):  # damaged evidence may have any value
            self.bytes_written += max(int(result.write.bytes), 0)
        return started_s


def result_columns(
    cell: Cell, result: FioResult, facts: Mapping[str, Any], clock: Clock, after_gap: bool
) -> dict[str, Any]:
    """Return the columns of workload, time and result of a cell; count it on the clock."""
    started_s = clock.pass_over(result, facts)
    return {
        **workload_columns(cell),
        "started": pd.Timestamp(started_s, unit="s", tz="UTC").floor("ms"),
        "elapsed_s": clock.elapsed_s,
        **number_columns(result),
        "min_latency_us": result.min_latency_us,
        **dict(zip(PERCENTILES, result.percentiles_us(*PERCENTILES.values()), strict=True)),
        "bytes_written_total": clock.bytes_written,
        "gap_ms": facts.get("gap_ms", math.nan),
        "idle_ms": facts.get("idle_ms", math.nan),
        "after_gap": after_gap,
        "ended_by": facts.get("ended_by"),
        "in_window": facts.get("in_window", False),
    }


_NUMBERS = ("runtime_s", "iops", "bandwidth_mib_s", "mean_latency_us", "max_latency_us", "user_cpu_pct",
            "system_cpu_pct")  # fmt: skip
_OF_DIRECTION = ("ios", "iops", "bandwidth_mib_s", "mean_latency_us")


def number_columns(result: FioResult) -> dict[str, Any]:
    """Return the columns of the numbers that any output of fio has."""
    return {
        **{name: getattr(result, name) for name in _NUMBERS},
        **{f"read_{name}": getattr(result.read, name) for name in _OF_DIRECTION},
        **{f"write_{name}": getattr(result.write, name) for name in _OF_DIRECTION},
        "bytes_written": result.write.bytes,
    }


def workload_columns(cell: Cell) -> dict[str, Any]:
    """Return the columns of a cell's workload."""
    beside = None if cell.beside is None else " and ".join(Cell(**other).label for other in cell.beside)
    return {**{name: getattr(cell, name) for name in _OF_WORKLOAD}, "read_share_pct": cell.read_share, "beside": beside}


def columns_by_workload(cell: Cell, result: FioResult | None) -> dict[str, Any]:
    """Return a value for each of several simultaneous workloads; null for one workload and for an unsound cell."""
    names = ("ios", "iops", "bandwidth_mib_s", "mean_latency_us", "max_latency_us")
    if cell.beside is None or result is None:
        return {"workloads": None, **{f"workload_{name}": None for name in names}}
    parts = by_workload(result, cell)
    values = {f"workload_{name}": [float(getattr(part, name)) for part in parts] for name in names}
    return {"workloads": names_of_workloads(cell), **values}


def bin_rows(key: Mapping[str, Any], cell: Cell, result: FioResult) -> Rows:
    """Return the rows of table `latency_bins` of a cell, each with `key`."""
    place = {
        **key,
        "pattern": cell.pattern,
        "read_share_pct": cell.read_share,
        "block_size_bytes": cell.block_size_bytes,
    }
    rows: Rows = []
    apart = len(result.parts) if result.parts else len(directions_of(cell) or ())
    several = cell.beside is not None and apart == len(workloads_of(cell))  # damaged evidence may lack a workload
    for number, part in enumerate(by_workload(result, cell) if several else (result,), 1):
        of_part = {**place, "part": number if several else None}
        for direction in part.directions:
            if direction not in result.directions:
                continue  # trims beside reads or writes
            rows += _rows_of_direction({**of_part, "direction": direction}, part.directions[direction])
    return rows


def _rows_of_direction(place: Mapping[str, Any], part: Direction) -> Iterator[dict[str, Any]]:
    most_ns = round(1000 * part.max_latency_us) if math.isfinite(part.max_latency_us) else max(part.bins, default=0)
    capped: Counter[int] = Counter()
    for latency_ns, count in sorted(part.bins.items()):
        capped[min(latency_ns, most_ns)] += count
    yield from ({**place, "latency_ns": latency_ns, "count": count} for latency_ns, count in capped.items())


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
