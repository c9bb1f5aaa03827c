"""Tables of a sweep over threads and queue depths, and of the points that were chosen from it."""

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
    """For each workload of a sweep: threads by queue depth, of IOPS and of mean latency."""
    groups: dict[tuple[str, str], dict[tuple[int, int], Row]] = {}
    for row in inputs.of_key("summary", key):
        match = _LABEL.fullmatch(row["cell_label"])
        if match and row["metric"] in _METRICS:
            name = match["workload"] + (match["turn"] or "")
            groups.setdefault((name, row["metric"]), {})[int(match["threads"]), int(match["depth"])] = row
    for place, ((workload, metric), found) in enumerate(groups.items()):
        threads, depths = ({point[axis] for point in found} for axis in (0, 1))
        if len(found) < _FEWEST_POINTS:
            continue
        first = next(iter(found.values()))
        yield Table(
            id=f"{inputs.anchors[key]}-demand-{place}",
            caption=f"{capital(heading(metric, first['unit']))}: threads by queue depth of each, {workload} "
            f"({first['statistic']})",
            columns=(Column("Threads", numeric=False), *(Column(f"Q{depth}") for depth in sorted(depths))),
            rows=tuple(
                (Cell(str(one)), *(_value(found.get((one, depth))) for depth in sorted(depths)))
                for one in sorted(threads)
            ),
            sources=inputs.sources(name for row in found.values() for name in row["recordings"]),
        )


def _value(row: Row | None) -> Cell:
    return summary_cell(row)


def point_table(inputs: Inputs, key: Key) -> Table | None:
    """The points that a measurement chose and went on with; None where it chose none."""
    plans = [plan for plan in inputs.plans_of(key) if plan.get("points")]
    if not plans:
        return None
    several = len(plans) > 1
    limits = dict.fromkeys(quantity(float(one["response_time_us"]) / 1000, "ms")
                           for plan in plans for one in plan["points"])  # fmt: skip
    return Table(
        id=f"{inputs.anchors[key]}-points",
        caption="Points chosen from the sweep",
        columns=(
            Column("Point", numeric=False),
            Column("Threads"),
            Column("Queue depth of each"),
            Column("IOPS"),
            Column("Mean latency, µs"),
            Column(f"Mean latency below {' or '.join(limits)}", numeric=False),
        ),
        rows=tuple(
            (
                Cell(str(one["name"]).upper() + (f", run {plan['run']}" if several else ""),
                     small=demand(int(one["threads"]), int(one["queue_depth"]))),
                number_cell(one["threads"]),
                number_cell(one["queue_depth"]),
                value_cell(one["iops"]),
                value_cell(one["mean_latency_us"]),
                _limit(one),
            )
            for plan in plans
            for one in plan["points"]
        ),
        note="MAX: the most IOPS with a mean latency below the limit (where none is, the least latency). MIN: the "
        "least demand. MID: the IOPS nearest to the middle of the two. Chosen while the measurement ran, from the "
        "sweep's window; the tests at the points follow with the threads and depths given here.",
        sources=inputs.sources(plan["recording"] for plan in plans),
    )  # fmt: skip


def _limit(point: Row) -> Cell:
    if is_missing(point.get("limit_met")):
        return Cell(DASH)
    return Cell("yes", tone="good") if point["limit_met"] else Cell("NO", tone="bad")
