"""Convert a finished recording to `cells`, `latency_bins`, `series`, `telemetry` and replay tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.collect.belonging import (
    against_checksums,
    duplicated,
    fio_of,
    foreign_devices,
    left_out,
    of_other_version,
    refused_unreadable,
)
from drivelab.collect.replays import replay_tables
from drivelab.collect.soundness_of_cells import check_place, judge, readable_result, readable_slices, unsound_seconds
from drivelab.collect.soundness_of_runs import application_runs
from drivelab.collect.telemetry_table import cell_columns, telemetry_table
from drivelab.core.errors import UserError
from drivelab.criteria.taint import DEFAULT, KERNEL, OWN, Limits, foreign_writes
from drivelab.fio.document import Direction
from drivelab.fio.result import FioResult, by_workload
from drivelab.fio.series import read_series
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import directions_of, names_of_workloads, workloads_of
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.tables.labels import STEADY_STATE, Steps, cell_labels
from drivelab.tables.schemas import SCHEMAS
from drivelab.telemetry.log import read_samples
from drivelab.telemetry.time_window import Timeline

Rows = list[dict[str, Any]]


def collect(recording: Path, reduced: bool, limits: Limits = DEFAULT) -> dict[str, pd.DataFrame]:
    """Return the tables of one recording by name; a missing kind of measurement gives an empty table.

    `reduced` says whether the protocol was shortened or altered; the plan alone does not contain the full-length one.
    A cell beyond `limits` is tainted. A cell with invalid evidence has `unsound` set, and neither latency bins nor
    series. A bad line in fio's one-second logs also makes the cell unsound, or the slices of a soak at that second.

    Nothing counts of a recording that was altered after the measurement. Raises UserError if the folder holds a
    different recording than its name says, or if altered files can no longer be read.
    """
    reason = against_checksums(recording)
    with refused_unreadable(recording, reason):
        check_place(recording)
        return left_out(_tables(recording, reduced, limits), reason)


def _tables(recording: Path, reduced: bool, limits: Limits) -> dict[str, pd.DataFrame]:
    plan = Plan.read(recording / "plan.json")
    key, steps = _key(plan, reduced), Steps(plan.subject["condition"], plan.subject["measure"])
    rows: dict[str, Rows] = {"cells": [], "latency_bins": [], "series": []}
    clock, timeline = _Clock(), Timeline(read_samples(recording))
    replays: list[Mapping[str, Any]] = []
    after_gap, soaks_after_gap = False, dict[str, bool]()
    journal = list(read_journal(recording))
    if not journal:
        raise UserError(
            f"{recording}: its journal is empty; restore it from a copy, or delete the folder to measure again"
        )
    version = fio_of(recording)
    foreign, measured = foreign_devices(recording, plan, journal), list[tuple[str, FioResult, str | None]]()
    for line in journal:
        if line["event"] == "gap":
            after_gap = True
        elif line["event"] == "soak-begins":
            soaks_after_gap[line["directory"]], after_gap = after_gap, False
        elif line["event"] in _READERS:
            # An interrupted part gets its line at resume, so the gap in the journal comes after its slices.
            is_soak = line["event"] == "soak"
            resumed, after_gap = (soaks_after_gap[line["directory"]], after_gap) if is_soak else (after_gap, False)
            items, before_s = list(_READERS[line["event"]](recording, line)), 0.0
            seconds = read_series(recording / line["directory"])
            for number, (place, cell, result, unsound, facts) in enumerate(items):
                gap = resumed and number == 0
                after_s = before_s + (result.runtime_s if math.isfinite(result.runtime_s) else 0.0)
                last = number == len(items) - 1
                unsound = (
                    foreign.get(line["directory"])
                    or unsound
                    or unsound_seconds(seconds.bad, before_s, None if last else after_s)
                    or of_other_version(result, version)
                )
                before_s = after_s
                measured.append((line["directory"], result, unsound))
                at = {**key, **place, "workload": cell.workload, **steps.turn(line["step"])}
                planned = {**steps.planned(line["step"], cell), "cold": bool(line.get("cold", False))}
                timed = _timed(facts, result) if plan.clock == "virtual" else facts
                evidence = {"directory": line["directory"], "unsound": unsound}
                columns = {
                    **_cell_columns(cell, result, facts, clock, gap),
                    **_columns_by_workload(cell, result if unsound is None else None),
                    **_power_and_taint(timeline, timed, limits),
                }
                rows["cells"].append({**at, **planned, **columns, **evidence})
                rows["latency_bins"] += _bin_rows(at, cell, result)
            workload = Cell(**line["workload"]).workload
            at = {**key, **_first_place(line), "workload": workload, **steps.turn(line["step"])}
            rows["series"] += [{**at, **second} for second in seconds.rows]
        elif line["event"] == "replay":
            replays.append(line)
        elif line["event"] == "tainted":
            clock.pass_over(readable_result(recording, line, Cell(**line["workload"]))[0], line)
    for row, reason in duplicated(measured).items():
        rows["cells"][row]["unsound"] = reason
    frames = {name: pd.DataFrame(records, columns=SCHEMAS[name].names) for name, records in rows.items()}
    frames["cells"]["cell_label"] = cell_labels(frames["cells"])
    frames = judge(frames, plan)

    def telemetry(line: Mapping[str, Any]) -> dict[str, Any]:
        return cell_columns(_telemetry(timeline, line), limits)

    of_replays = replay_tables(recording, replays, key, telemetry)
    runs = application_runs(journal, plan.subject["measure"], key, telemetry)
    return {**frames, **of_replays, "application_runs": runs, "telemetry": telemetry_table(recording, key)}


def _timed(facts: Mapping[str, Any], result: FioResult) -> Mapping[str, Any]:
    """Add begin and end of a cell from its evidence: the journal has no virtual times.

    Older recordings without telemetry have the steal time instead and stay unchanged.
    """
    if "steal_pct" in facts or not math.isfinite(result.runtime_s):
        return facts
    started_s = result.started.timestamp()
    return {"started_s": started_s, "ended_s": started_s + result.runtime_s, **facts}


def _telemetry(timeline: Timeline, facts: Mapping[str, Any]) -> dict[str, float]:
    """Return the telemetry of a cell, and foreign writes if the journal has the counts.

    Older recordings without telemetry have only the steal time.
    """
    if facts.get("started_s") is None:
        return ({"steal_pct": facts["steal_pct"]} if "steal_pct" in facts else {}) | foreign_writes(facts)
    return timeline.summarise(facts["started_s"], facts["ended_s"]) | foreign_writes(facts)


def _power_and_taint(timeline: Timeline, facts: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Return the telemetry columns of a cell, and the source of its power."""
    columns: dict[str, Any] = cell_columns(_telemetry(timeline, facts), limits)
    if columns["power_w"] is None:
        return {**columns, "power_source": None}
    metered = timeline.around("meter_power_w", facts["started_s"], facts["ended_s"])[1]
    return {**columns, "power_source": "meter" if metered else "drive"}


class _Clock:
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


def _key(plan: Plan, reduced: bool) -> dict[str, Any]:
    return {
        "recording": plan.recording,
        "drive": plan.drive,
        "serial": plan.subject["drive"]["serial"],
        "protocol": plan.subject["protocol"],
        "measurement": plan.measurement,
        "run": plan.run,
        "reduced": reduced,
        "virtual": plan.virtual,
        "clock": plan.clock,
    }


_Item = tuple[dict[str, Any], Cell, FioResult, str | None, Mapping[str, Any]]
"""Place, cell, result, why it is unsound or None, and facts from the journal."""


def _loop_cell(recording: Path, line: Mapping[str, Any]) -> Iterator[_Item]:
    cell = Cell(**line["workload"])
    yield _first_place(line), cell, *readable_result(recording, line, cell), line


def _soak_slices(recording: Path, line: Mapping[str, Any]) -> Iterator[_Item]:
    cell = Cell(**line["workload"])
    first, last = _window(line)
    before_s = 0.0
    for number, result, unsound in readable_slices(recording, line, cell):
        facts = {name: line[name] for name in ("steal_pct", "gap_ms", KERNEL, OWN) if name in line}
        if number > line["first_slice"]:
            facts.pop("gap_ms", None)
        facts["ended_by"], facts["in_window"] = line.get("ended_by"), first <= number <= last
        if line.get("started_s") is not None:
            facts["started_s"] = line["started_s"] + before_s
            facts["ended_s"] = facts["started_s"] + result.runtime_s
            before_s += result.runtime_s
        yield {**_first_place(line), "round": number}, cell, result, unsound, facts


def _window(line: Mapping[str, Any]) -> tuple[int, int]:
    """Return first and last slice of the window of a soak; an empty span without steady state."""
    numbers = [value["slice"] for value in line["window"]] if line.get("ended_by") == STEADY_STATE else []
    return (min(numbers), max(numbers)) if numbers else (1, 0)


_READERS = {"cell": _loop_cell, "soak": _soak_slices}


def _first_place(line: Mapping[str, Any]) -> dict[str, Any]:
    if line["event"] == "cell":
        return {"step": line["step"], "kind": "loop", "round": line["round"], "cell": line["cell"]}
    return {"step": line["step"], "kind": "soak", "round": line["first_slice"], "cell": 0}


def _cell_columns(
    cell: Cell, result: FioResult, facts: Mapping[str, Any], clock: _Clock, after_gap: bool
) -> dict[str, Any]:
    started_s = clock.pass_over(result, facts)
    percentiles = result.percentiles_us(50, 90, 99, 99.9, 99.99, 99.999, 99.9999)
    return {
        **_workload_columns(cell),
        "started": pd.Timestamp(started_s, unit="s", tz="UTC").floor("ms"),
        "elapsed_s": clock.elapsed_s,
        "runtime_s": result.runtime_s,
        "read_ios": result.read.ios,
        "write_ios": result.write.ios,
        "iops": result.iops,
        "read_iops": result.read.iops,
        "write_iops": result.write.iops,
        "bandwidth_mib_s": result.bandwidth_mib_s,
        "read_bandwidth_mib_s": result.read.bandwidth_mib_s,
        "write_bandwidth_mib_s": result.write.bandwidth_mib_s,
        "mean_latency_us": result.mean_latency_us,
        "min_latency_us": result.min_latency_us,
        "max_latency_us": result.max_latency_us,
        **dict(
            zip(
                (f"p{nines}_latency_us" for nines in ("50", "90", "99", "999", "9999", "99999", "999999")),
                percentiles,
                strict=True,
            )
        ),
        "read_mean_latency_us": result.read.mean_latency_us,
        "write_mean_latency_us": result.write.mean_latency_us,
        "bytes_written": result.write.bytes,
        "bytes_written_total": clock.bytes_written,
        "user_cpu_pct": result.user_cpu_pct,
        "system_cpu_pct": result.system_cpu_pct,
        "gap_ms": facts.get("gap_ms", math.nan),
        "idle_ms": facts.get("idle_ms", math.nan),
        "after_gap": after_gap,
        "ended_by": facts.get("ended_by"),
        "in_window": facts.get("in_window", False),
    }


def _workload_columns(cell: Cell) -> dict[str, Any]:
    return {
        "pattern": cell.pattern,
        "read_share_pct": cell.read_share,
        "block_size_bytes": cell.block_size_bytes,
        "block_size_max_bytes": cell.block_size_max_bytes,
        "threads": cell.threads,
        "queue_depth": cell.queue_depth,
        "alignment_offset_bytes": cell.alignment_offset_bytes,
        "range_bytes": cell.range_bytes,
        "range_start": cell.range_start,
        "range_share": cell.range_share,
        "segments": cell.segments,
        "rate_iops": cell.rate_iops,
        "entropy": cell.entropy,
        "beside": None if cell.beside is None else " and ".join(Cell(**other).label for other in cell.beside),
    }


def _columns_by_workload(cell: Cell, result: FioResult | None) -> dict[str, Any]:
    """Return a value for each of several simultaneous workloads; null for one workload and for an unsound cell."""
    names = ("ios", "iops", "bandwidth_mib_s", "mean_latency_us", "max_latency_us")
    if cell.beside is None or result is None:
        return {"workloads": None, **{f"workload_{name}": None for name in names}}
    parts = by_workload(result, cell)
    values = {f"workload_{name}": [float(getattr(part, name)) for part in parts] for name in names}
    return {"workloads": names_of_workloads(cell), **values}


def _bin_rows(key: Mapping[str, Any], cell: Cell, result: FioResult) -> Rows:
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
