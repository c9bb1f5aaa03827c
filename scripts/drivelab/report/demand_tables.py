"""Tables of a sweep over threads and queue depths, and of the points chosen from it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from drivelab.analysis.labels import demand
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.number_cells import number_cell, summary_cell, value_cell
from drivelab.report.numbers import DASH, capital, heading, is_missing, quantity
from drivelab.report.view import Cell, Column, Table

_LABEL = re.compile(r"(?P<workload>.*) T(?P<threads>\d+)Q(?P<depth>\d+)(?P<turn>,.*)?")
_METRICS = ("iops", "mean_latency_us")
_FEWEST_POINTS = 3


def demand_tables(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield IOPS and mean latency by threads and queue depth, for each workload of a sweep."""
    groups: dict[tuple[str, str], dict[tuple[int, int], Row]] = {}
    for row in inputs.of_key("summary", key):
        match = _LABEL.fullmatch(row["cell_label"])
        if match and row["metric"] in _METRICS:
            name = match["workload"] + (match["turn"] or "")
            groups.setdefault((name, row["metric"]), {})[int(match["threads"]), int(match["depth"])] = row
    for place, ((workload, metric), points) in enumerate(groups.items()):
        threads, depths = ({point[axis] for point in points} for axis in (0, 1))
        if len(points) < _FEWEST_POINTS:
            continue
        first = next(iter(points.values()))
        yield Table(
            id=f"{inputs.anchors[key]}-demand-{place}",
            caption=f"{capital(heading(metric, first['unit']))}: threads by queue depth per thread, {workload} "
            f"({first['statistic']})",
            columns=(Column("Threads", numeric=False), *(Column(f"Q{depth}") for depth in sorted(depths))),
            rows=tuple(
                (Cell(str(count)), *(summary_cell(points.get((count, depth))) for depth in sorted(depths)))
                for count in sorted(threads)
            ),
            sources=inputs.sources(name for row in points.values() for name in row["recordings"]),
        )


def point_table(inputs: Inputs, key: Key) -> Table | None:
    """Return the points that a measurement chose from its sweep; None if it chose none."""
    plans = [plan for plan in inputs.plans_of(key) if plan.get("points")]
    if not plans:
        return None
    several = len(plans) > 1
    limits = dict.fromkeys(quantity(float(point["response_time_us"]) / 1000, "ms")
                           for plan in plans for point in plan["points"])  # fmt: skip
    return Table(
        id=f"{inputs.anchors[key]}-points",
        caption="Points chosen from the sweep",
        columns=(
            Column("Point", numeric=False),
            Column("Threads"),
            Column("Queue depth per thread"),
            Column("IOPS"),
            Column("Mean latency, µs"),
            Column(f"Mean latency below {' or '.join(limits)}", numeric=False),
        ),
        rows=tuple(
            (
                Cell(str(point["name"]).upper() + (f", run {plan['run']}" if several else ""),
                     small=demand(int(point["threads"]), int(point["queue_depth"]))),
                number_cell(point["threads"]),
                number_cell(point["queue_depth"]),
                value_cell(point["iops"]),
                value_cell(point["mean_latency_us"]),
                _limit(point),
            )
            for plan in plans
            for point in plan["points"]
        ),
        note="MAX: highest IOPS with a mean latency below the limit; if all are above it, the lowest latency. MIN: "
        "lowest demand. MID: IOPS nearest to the middle of MIN and MAX. drivelab chose the points during the "
        "measurement, from the sweep's window, and then tested each with these threads and depths.",
        sources=inputs.sources(plan["recording"] for plan in plans),
    )  # fmt: skip


def _limit(point: Row) -> Cell:
    if is_missing(point.get("limit_met")):
        return Cell(DASH)
    return Cell("yes", tone="good") if point["limit_met"] else Cell("NO", tone="bad")
