"""Tables of a sweep over threads and queue depths, and of the points chosen from it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandas as pd

from drivelab.analysis.values.recovery import CrossStimulus, StimulusRecovery, cross_stimulus, idle_recovery
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.measurement_outcome import taint_note
from drivelab.report.numbers import DASH, capital, duration, heading, is_missing, quantity
from drivelab.report.table_fields import duration_cell, number_cell, size_cell, summary_cell, value_cell
from drivelab.report.view import Cell, Column, Table
from drivelab.tables.labels import demand

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


def recovery_tables(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield both kinds of tables for every recording; nothing for a test without such steps."""
    all_cells = inputs.frame_of("cells", key)
    for _, cells in all_cells.groupby("recording", sort=False) if len(all_cells) else ():
        suffix = "" if cells["run"].iloc[0] == 1 else f"-run{cells['run'].iloc[0]}"
        yield from _stimulus(inputs, key, cells, suffix)
        yield from _idle(inputs, key, cells, suffix)


def _stimulus(inputs: Inputs, key: Key, cells: pd.DataFrame, suffix: str) -> Iterator[Table]:
    recoveries = cross_stimulus(cells)
    if not recoveries:
        return
    soaks = cells[(cells["kind"] == "soak")].sort_values(["step", "round"])
    parts = [part for _, part in soaks.groupby("step")]
    names = ("Part", "Duration", "Written", "Mean throughput, MiB/s", "First slice, MiB/s", "Last slice, MiB/s",
             "Mean latency, last slice, µs", "Maximum latency, µs")  # fmt: skip
    yield Table(
        id=f"{inputs.anchors[key]}-stimulus{suffix}",
        caption="Cross stimulus recovery (XSR)",
        columns=tuple(Column(name, numeric=place > 0) for place, name in enumerate(names)),
        rows=tuple(
            (
                Cell(f"Part {place}", small=str(part["workload"].iloc[0])),
                duration_cell(part["runtime_s"].sum()),
                size_cell(part["bytes_written"].sum()),
                value_cell((part["bandwidth_mib_s"] * part["runtime_s"]).sum() / part["runtime_s"].sum()),
                value_cell(part["bandwidth_mib_s"].iloc[0]),
                value_cell(part["bandwidth_mib_s"].iloc[-1]),
                value_cell(part["mean_latency_us"].iloc[-1]),
                value_cell(part["max_latency_us"].max()),
            )
            for place, part in enumerate(parts, start=1)
        ),
        note=" ".join(map(_sentence, recoveries)),
        sources=inputs.sources(cells["recording"]),
    )


def _sentence(recovery: CrossStimulus) -> str:
    """Describe the recovery to both levels: the mean of the PTS, and the settled level."""
    mean = f"its earlier mean throughput ({quantity(recovery.level, 'MiB/s')}, fresh start included)"
    settled = f"its settled level ({quantity(recovery.usual, 'MiB/s')} or more)"
    to_mean = f"recovered to {mean} {_within(recovery.recovery)}" if recovery.recovery else f"NOT recovered to {mean}"
    to_settled = f"back at {settled} {_within(recovery.settled)}" if recovery.settled else f"NOT back at {settled}"
    return f"{recovery.workload} after {recovery.stimulus}: {to_mean}; {to_settled}."


def _within(recovery: StimulusRecovery) -> str:
    earlier = ", or earlier in an excluded slice" * recovery.at_most
    return f"within {duration(recovery.time_s)}, in slice {recovery.slice_number}{earlier}"


def _idle(inputs: Inputs, key: Key, cells: pd.DataFrame, suffix: str) -> Iterator[Table]:
    waits = idle_recovery(cells[cells["phase_value"].notna() | (cells["kind"] == "soak")])
    waits = waits[waits["phase_value"].notna()]
    if waits.empty:
        return
    names = ("Idle before each burst", "Bursts", "Mean of the bursts, IOPS", "First burst, IOPS", "Last burst, IOPS",
             "Baseline before, IOPS", "Mean to baseline")  # fmt: skip
    yield Table(
        id=f"{inputs.anchors[key]}-idle{suffix}",
        caption="Host idle recovery (HIR)",
        columns=tuple(Column(name, numeric=place > 0) for place, name in enumerate(names)),
        rows=tuple(
            (
                duration_cell(row.wait_s),
                number_cell(row.bursts),
                value_cell(row.mean_iops),
                value_cell(row.first_iops),
                value_cell(row.last_iops),
                value_cell(row.baseline_iops),
                Cell(DASH if is_missing(row.ratio) else f"{row.ratio:.2f}"),
            )
            for row in waits.itertuples()
        ),
        note="The first burst follows the baseline without idle time and is excluded. Baseline: average of the last "
        "fifth of the preceding stretch without pauses. A ratio above 1 shows what the drive gained in idle time. "
        + taint_note(cells.to_dict("records")),
        sources=inputs.sources(cells["recording"]),
    )
