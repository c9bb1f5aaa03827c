"""Convert a finished recording to `cells`, `latency_bins`, `series`, `telemetry` and replay tables."""

from __future__ import annotations

import math
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
from drivelab.collect.cell_rows import Clock, Rows, bin_rows, columns_by_workload, load_rates, result_columns
from drivelab.collect.inventory import is_virtual
from drivelab.collect.replays import replay_tables
from drivelab.collect.soundness_of_cells import check_place, judge, readable_result, readable_slices, unsound_seconds
from drivelab.collect.soundness_of_runs import application_runs
from drivelab.collect.telemetry_table import cell_columns, telemetry_table
from drivelab.core.errors import UserError
from drivelab.criteria.host_limit import CPUS, LEAST_S, cpu_use, host_limit
from drivelab.criteria.taint import DEFAULT, KERNEL, OWN, Limits, foreign_writes
from drivelab.fio.result import FioResult
from drivelab.fio.series import read_series
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.tables.labels import STEADY_STATE, Steps, cell_labels
from drivelab.tables.schemas import SCHEMAS
from drivelab.telemetry.sampler import read_samples
from drivelab.telemetry.time_window import Timeline

_NAMES = ("busiest_cpus_pct", "interrupt_cpus_pct", "host_limit")


def host_limit_columns(
    plan: Plan,
    cell: Cell,
    result: FioResult,
    facts: Mapping[str, Any],
    telemetry: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the columns of a cell; all are null where the question does not apply.

    That is on the virtual clock, where no host took part, and for a virtual drive, which is a program on the host. All
    slices of a soak share the CPU use of the soak, except that of fio's threads.
    """
    if plan.virtual or plan.clock == "virtual":
        return dict.fromkeys(_NAMES)
    use = cpu_use(facts, cell.total_threads, _threads_pct(result), telemetry.get("load_pct"))
    judged = math.isfinite(result.iops)  # damaged evidence may have any value
    values = (use.busiest_pct, use.interrupt_pct, host_limit(use) if judged else None)
    return dict(zip(_NAMES, values, strict=True))


def _threads_pct(result: FioResult) -> float | None:
    """Return the CPU time of fio's threads, in percent of each; None for a short run and for damaged evidence."""
    share_pct = result.user_cpu_pct + result.system_cpu_pct
    return share_pct if math.isfinite(share_pct) and result.runtime_s >= LEAST_S else None


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
    key, steps = _key(recording, plan, reduced), Steps(plan.subject["condition"], plan.subject["measure"])
    rows: dict[str, Rows] = {"cells": [], "latency_bins": [], "series": []}
    clock, timeline = Clock(), Timeline(read_samples(recording))
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
                telemetry_columns = _power_and_taint(timeline, timed, limits)
                columns = {
                    **result_columns(cell, result, facts, clock, gap),
                    **columns_by_workload(cell, result if unsound is None else None),
                    **telemetry_columns,
                    **host_limit_columns(plan, cell, result, facts, telemetry_columns),
                }
                rows["cells"].append({**at, **planned, **columns, **evidence})
                rows["latency_bins"] += bin_rows(at, cell, result)
            workload = Cell(**line["workload"]).workload
            at = {**key, **_first_place(line), "workload": workload, **steps.turn(line["step"])}
            rows["series"] += [{**at, **second} for second in seconds.rows]
        elif line["event"] == "replay":
            replays.append(line)
        elif line["event"] == "tainted" and "workload" in line:
            clock.pass_over(readable_result(recording, line, Cell(**line["workload"]))[0], line)
    for row, reason in duplicated(measured).items():
        rows["cells"][row]["unsound"] = reason
    frames = {name: pd.DataFrame(records, columns=SCHEMAS[name].names) for name, records in rows.items()}
    frames["cells"]["cell_label"] = cell_labels(frames["cells"])
    frames = judge(frames, plan)

    def telemetry(line: Mapping[str, Any]) -> dict[str, Any]:
        return cell_columns(_telemetry(timeline, line), limits)

    measure = plan.subject["measure"]
    return {
        **frames,
        **replay_tables(recording, replays, measure, key, telemetry),
        "application_runs": application_runs(journal, measure, key, telemetry),
        "load_rates": load_rates(recording, journal, measure, key, telemetry),
        "telemetry": telemetry_table(recording, key),
    }


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


def _key(recording: Path, plan: Plan, reduced: bool) -> dict[str, Any]:
    return {
        "recording": plan.recording,
        "drive": plan.drive,
        "serial": plan.subject["drive"]["serial"],
        "protocol": plan.subject["protocol"],
        "measurement": plan.measurement,
        "run": plan.run,
        "reduced": reduced,
        "virtual": is_virtual(recording, plan),
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
        facts = {name: line[name] for name in ("steal_pct", "gap_ms", KERNEL, OWN, CPUS) if name in line}
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
