"""Tables of a sweep over threads and queue depths, of the points chosen from it, and of recoveries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd

from drivelab.analysis.values.recovery import CrossStimulus, StimulusRecovery, cross_stimulus, idle_recovery
from drivelab.report.document import Cell, Table
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.marks import taint_note
from drivelab.report.numbers import DASH, capital, duration, heading, is_missing, quantity
from drivelab.report.sections.values import summary_cell
from drivelab.report.table import Field, PageTable, Rows, durations, fields, of_each, sizes, table, told_apart, words
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
        if len(points) < _FEWEST_POINTS:
            continue
        first = next(iter(points.values()))
        yield table(
            f"{inputs.anchors[key]}-demand-{place}",
            f"{capital(heading(metric, first['unit']))}: threads by queue depth per thread, {workload} "
            f"({first['statistic']})",
            (words("Threads", str), *of_each(sorted({depth for _, depth in points}), partial(_at, points), "Q{}")),
            sorted({count for count, _ in points}),
            sources=inputs.sources_of(points.values()),
        )


def _at(points: Mapping[tuple[int, int], Row], depth: int, threads: int) -> Cell:
    return summary_cell(points.get((threads, depth)))


def _points(inputs: Inputs, key: Key) -> Rows:
    """Select the points that a measurement chose from its sweep."""
    points = [{**point, "recording": plan["recording"], "run": plan["run"]}
              for plan in inputs.plans_of(key) for point in plan.get("points") or ()]  # fmt: skip
    return told_apart(points, "run", ", run {}")


def _point_fields(points: Rows) -> Iterator[Field]:
    limits = dict.fromkeys(quantity(float(point["response_time_us"]) / 1000, "ms") for point in points)
    yield words("Point", _point)
    yield from fields(threads="Threads", queue_depth="Queue depth per thread", iops="IOPS",
                      mean_latency_us="Mean latency, µs")  # fmt: skip
    yield words(f"Mean latency below {' or '.join(limits)}", _limit)


def _point(point: Row) -> Cell:
    return Cell(f"{str(point['name']).upper()}{point['of']}", demand(int(point["threads"]), int(point["queue_depth"])))


def _limit(point: Row) -> Cell:
    if is_missing(point.get("limit_met")):
        return Cell(DASH)
    return Cell("yes", tone="good") if point["limit_met"] else Cell("NO", tone="bad")


point_table = PageTable(
    "points", "Points chosen from the sweep", _points, _point_fields,
    "MAX: highest IOPS with a mean latency below the limit; if all are above it, the lowest latency. MIN: "
    "lowest demand. MID: IOPS nearest to the middle of MIN and MAX. drivelab chose the points during the "
    "measurement, from the sweep's window, and then tested each with these threads and depths.",
)  # fmt: skip


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
    parts = [
        {
            "part": f"Part {place}", "workload": part["workload"].iloc[0], "runtime_s": part["runtime_s"].sum(),
            "bytes_written": part["bytes_written"].sum(),
            "mean": (part["bandwidth_mib_s"] * part["runtime_s"]).sum() / part["runtime_s"].sum(),
            "first": part["bandwidth_mib_s"].iloc[0], "last": part["bandwidth_mib_s"].iloc[-1],
            "mean_latency_us": part["mean_latency_us"].iloc[-1], "max_latency_us": part["max_latency_us"].max(),
        }
        for place, (_, part) in enumerate(soaks.groupby("step"), start=1)
    ]  # fmt: skip
    yield table(
        f"{inputs.anchors[key]}-stimulus{suffix}",
        "Cross stimulus recovery (XSR)",
        (
            words("Part", "part", "workload"), *durations(runtime_s="Duration"), *sizes(bytes_written="Written"),
            *fields(mean="Mean throughput, MiB/s", first="First slice, MiB/s", last="Last slice, MiB/s",
                    mean_latency_us="Mean latency, last slice, µs", max_latency_us="Maximum latency, µs"),
        ),
        parts,
        " ".join(map(_sentence, recoveries)),
        sources=inputs.sources(cells["recording"]),
    )  # fmt: skip


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
    yield table(
        f"{inputs.anchors[key]}-idle{suffix}",
        "Host idle recovery (HIR)",
        (
            words("Idle before each burst", lambda row: duration(row["wait_s"])),
            *fields(bursts="Bursts", mean_iops="Mean of the bursts, IOPS", first_iops="First burst, IOPS",
                    last_iops="Last burst, IOPS", baseline_iops="Baseline before, IOPS"),
            Field("Mean to baseline", "ratio", "{:.2f}".format, missing=DASH),
        ),
        rows_of(waits),
        "The first burst follows the baseline without idle time and is excluded. Baseline: average of the last fifth "
        "of the preceding stretch without pauses. A ratio above 1 shows what the drive gained in idle time. "
        + taint_note(rows_of(cells)),
        sources=inputs.sources(cells["recording"]),
    )  # fmt: skip
