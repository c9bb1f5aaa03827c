"""Tables of sweeps, of the points chosen from them, of soaks and recoveries, and of loads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pandas as pd

from drivelab.analysis.detectors.drift import LEAST_DRIFT_PCT
from drivelab.analysis.values.load_values import LoadAnswer, load_answers
from drivelab.analysis.values.recovery import CrossStimulus, StimulusRecovery, cross_stimulus, idle_recovery
from drivelab.analysis.values.saturation_values import LEAST_DROP
from drivelab.criteria.rate_search import PASSES
from drivelab.criteria.tail_interval import CONFIDENCE, WARM_UP
from drivelab.plan.loops import time_words
from drivelab.report.document import Cell, Table
from drivelab.report.inputs import Inputs, Key, Row, Several, each, rows_of
from drivelab.report.marks import taint_mark, taint_note
from drivelab.report.numbers import DASH, amount, capital, duration, heading, is_missing, number, percent, quantity
from drivelab.report.sections.values import summary_cell
from drivelab.report.table import Field, PageTable, Rows, cell, fields, of_each, signed, table, told_apart, words
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
    yield words("Point", lambda point: f"{str(point['name']).upper()}{point['of']}",
                lambda point: demand(int(point["threads"]), int(point["queue_depth"])))  # fmt: skip
    yield from fields(threads="Threads", queue_depth="Queue depth per thread", iops="IOPS",
                      mean_latency_us="Mean latency, µs")  # fmt: skip
    met = {None: Cell(DASH), True: Cell("yes", tone="good"), False: Cell("NO", tone="bad")}
    yield words(f"Mean latency below {' or '.join(limits)}", lambda point: met[point.get("limit_met")])


point_table = PageTable(
    "points", "Points chosen from the sweep", _points, _point_fields,
    "MAX: highest IOPS with a mean latency below the limit; if all are above it, the lowest latency. MIN: "
    "lowest demand. MID: IOPS nearest to the middle of MIN and MAX. drivelab chose the points during the "
    "measurement, from the sweep's window, and then tested each with these threads and depths.",
)  # fmt: skip


def _by_run(inputs: Inputs, key: Key) -> dict[str, pd.DataFrame]:
    """Return the cells of each recording by its run in words, which is empty for the only one."""
    cells = inputs.frame_of("cells", key)
    parts = [part for _, part in cells.groupby("recording", sort=False)] if len(cells) else []
    return {f", run {part['run'].iloc[0]}" if len(parts) > 1 else "": part for part in parts}


def _soaks(inputs: Inputs, key: Key) -> Rows:
    """Select a row for each soak step; its slices are rows of `cells`."""
    capacity_bytes = inputs.drive(key[0]).get("capacity_bytes")
    return [
        _soak(part.sort_values("round"), run, capacity_bytes)
        for run, cells in _by_run(inputs, key).items()
        for _, part in cells[cells["kind"] == "soak"].groupby("step")
    ]


def _soak(part: pd.DataFrame, run: str, capacity_bytes: Any) -> Row:
    first, last, written_bytes = part.iloc[0], part.iloc[-1], int(part["bytes_written"].sum())
    turn = "" if is_missing(first.get("phase_value")) else f", {first['phase']} {first['phase_value']}"
    runtime_s = part["runtime_s"].sum()
    return {
        **first, "part": f"Part {int(first['step']) + 1}{turn}{run}", "of_run": run, "slices": len(part),
        "demand": demand(int(first["threads"]), int(first["queue_depth"])),
        "runtime_s": runtime_s, "bytes_written": written_bytes,
        "drive_fills": None if is_missing(capacity_bytes) else _drive_fills(written_bytes, capacity_bytes),
        "first_iops": first["iops"], "highest_iops": part["iops"].max(), "lowest_iops": part["iops"].min(),
        "last_iops": last["iops"], "mean_latency_us": last["mean_latency_us"],
        "max_latency_us": part["max_latency_us"].max(), "cells": rows_of(part),
    }  # fmt: skip


def _drive_fills(written_bytes: int, capacity_bytes: Any) -> float | Cell:
    if isinstance(capacity_bytes, Several):
        return Cell(each(lambda size_bytes: number(written_bytes / size_bytes), capacity_bytes))
    return float(written_bytes / capacity_bytes)


def _note_on(rows: Rows) -> str:
    return taint_note(cell for row in rows for cell in row["cells"])


_PART = words("Part", "part", lambda row: f"{row['workload']} {row['demand']}")
_VOLUME = (*fields(duration, runtime_s="Duration"), *fields(amount, bytes_written="Written"))
_LATENCIES = tuple(fields(mean_latency_us="Mean latency, last slice, µs", max_latency_us="Maximum latency, µs"))
soaks_table = PageTable(
    "soaks", "Soaks, from first to last slice", _soaks,
    (
        _PART, *fields(slices="Slices"), *_VOLUME,
        *fields(drive_fills="Drive fills", first_iops="IOPS, first slice", highest_iops="IOPS, highest",
                lowest_iops="IOPS, lowest", last_iops="IOPS, last slice"), *_LATENCIES,
    ),
    lambda rows: "A drive fill is the user capacity written once by the host. Highest and lowest are single slices. "
    + _note_on(rows),
)  # fmt: skip


def _stimuli(inputs: Inputs, key: Key) -> Rows:
    """Select the soaks of the recordings in which a workload returns after another one, with the `recoveries`."""
    recoveries = {run: cross_stimulus(cells) for run, cells in _by_run(inputs, key).items()}
    return [{**row, "recoveries": recoveries[row["of_run"]]} for row in _soaks(inputs, key)
            if recoveries[row["of_run"]]]  # fmt: skip


def _mean_mib_s(row: Row) -> float:
    return float(sum(cell["bandwidth_mib_s"] * cell["runtime_s"] for cell in row["cells"]) / row["runtime_s"])


def _recoveries(rows: Rows) -> str:
    by_run = {row["of_run"]: row["recoveries"] for row in rows}
    return " ".join(_sentence(recovery, run) for run, recoveries in by_run.items() for recovery in recoveries)


def _sentence(recovery: CrossStimulus, run: str) -> str:
    """Describe the recovery to both levels: the mean of the PTS, and the settled level."""
    mean = f"its earlier mean throughput ({quantity(recovery.level, 'MiB/s')}, fresh start included)"
    settled = f"its settled level ({quantity(recovery.usual, 'MiB/s')} or more)"
    to_mean = f"recovered to {mean} {_within(recovery.recovery)}" if recovery.recovery else f"NOT recovered to {mean}"
    to_settled = f"back at {settled} {_within(recovery.settled)}" if recovery.settled else f"NOT back at {settled}"
    return f"{recovery.workload} after {recovery.stimulus}{run}: {to_mean}; {to_settled}."


def _within(recovery: StimulusRecovery) -> str:
    earlier = ", or earlier in an excluded slice" * recovery.at_most
    return f"within {duration(recovery.time_s)}, in slice {recovery.slice_number}{earlier}"


def _waits(inputs: Inputs, key: Key) -> Rows:
    """Select a row for each wait between bursts, with the run and the `cells` of its recording."""
    rows: list[Row] = []
    for run, cells in _by_run(inputs, key).items():
        waits = idle_recovery(cells[cells["phase_value"].notna() | (cells["kind"] == "soak")])
        of_run = {"of_run": run, "recording": cells["recording"].iloc[0], "cells": rows_of(cells)}
        rows += [{**wait, **of_run} for wait in rows_of(waits[waits["phase_value"].notna()])]
    return rows


RECOVERY_TABLES = (
    PageTable(
        "stimulus", "Cross stimulus recovery (XSR)", _stimuli,
        (
            _PART, *_VOLUME, Field("Mean throughput, MiB/s", _mean_mib_s),
            Field("First slice, MiB/s", lambda row: row["cells"][0]["bandwidth_mib_s"]),
            Field("Last slice, MiB/s", lambda row: row["cells"][-1]["bandwidth_mib_s"]), *_LATENCIES,
        ),
        _recoveries,
    ),
    PageTable(
        "idle", "Host idle recovery (HIR)", _waits,
        (
            words("Idle before each burst", lambda row: f"{duration(row['wait_s'])}{row['of_run']}"),
            *fields(bursts="Bursts", mean_iops="Mean of the bursts, IOPS", first_iops="First burst, IOPS",
                    last_iops="Last burst, IOPS", baseline_iops="Baseline before, IOPS"),
            Field("Mean to baseline", "ratio", "{:.2f}".format, missing=DASH),
        ),
        lambda waits: "The first burst follows the baseline without idle time and is excluded. Baseline: average of "
        "the last fifth of the preceding stretch without pauses. A ratio above 1 shows what the drive gained in idle "
        f"time. {_note_on(list({row['recording']: row for row in waits}.values()))}",
    ),
)  # fmt: skip


def _level(row: Row) -> str:
    """Return the range of the level and its drift; say so if the drift makes it unsteady."""
    level_range = f"{number(row['level_low_iops'])}{DASH}{number(row['level_high_iops'])}"
    drift_pct = row["level_drift_pct"]
    if is_missing(drift_pct):
        return level_range
    drifts = not row["level_steady"] and abs(drift_pct) >= LEAST_DRIFT_PCT
    trend = f"still {'rises' if drift_pct > 0 else 'falls'}, " if drifts else ""
    return f"{level_range}, {trend}drift {percent(drift_pct, True)}"


saturation_table = PageTable(
    "saturation", "Write saturation: the cliff, and the level after it",
    lambda inputs, key: told_apart(inputs.of_key("saturation", key), "run", ", run {}"),
    (
        words("Soak", lambda row: Cell(f"{row['cell_label']}{row['of']}", f"{row['slices']} slices")),
        words("Cliff", lambda row: "yes" if row["cliff"] else "none found"),
        Field("Cliff after", "cliff_time_s", duration, missing=DASH),
        Field("Written at the cliff", "cliff_bytes", amount, missing=DASH),
        *fields(number, DASH, cliff_drive_fills="Drive fills at the cliff", iops_before="IOPS before",
                iops_after="IOPS after"),
        Field("Level, IOPS", "level_iops", small=_level),
        *fields(percent, level_variation_pct="Variation of the level"),
        Field("Drift of the level", "level_drift_pct", signed,
              lambda row: "steady" if row["level_steady"] else "NOT steady",
              lambda row: "" if row["level_steady"] else "bad"),
        *fields(level_from_drive_fills="Level from, drive fills", drive_fills="Drive fills, all"),
    ),
    f"Cliff: where the IOPS first fall for good, by a factor of {LEAST_DROP:g} or more. The fall may take one slice or "
    "many; the cliff is at its steepest point. A rate that wanders and ends that much lower has a cliff too. IOPS "
    "before: average up to the cliff. IOPS after: average of the last fifth of the soak. Level: average over the "
    "counted slices; below it, the lowest and highest of five equal parts and the drift. Variation: standard deviation "
    "of the slices. Drift: rise of the least-squares line. Both are relative to the mean. Steady: the level keeps the "
    f"PTS limits and drifts by less than {LEAST_DRIFT_PCT:g} %; the PTS limits alone allow more drift. A drive fill is "
    "the user capacity written once by the host.",
)  # fmt: skip


def _answers(inputs: Inputs, key: Key) -> Rows:
    """Select the `answer` of each load with its `run`, which is empty for a single load, and its `recordings`."""
    rates = inputs.frame_of("load_rates", key)
    answers = list(load_answers(rates)) if len(rates) else []
    rows = []
    for answer in answers:
        first = answer.rates.iloc[0]
        run = f"run {first['run']}, step {int(first['step']) + 1}" if len(answers) > 1 else ""
        rows.append({"answer": answer, "run": run, "recordings": answer.rates["recording"]})
    return rows


def _doubts(answer: LoadAnswer) -> Cell:
    """Return the doubts about the rates at the limit, and about undecided rates between them."""
    found = answer.found
    rates = (found.passing_iops, found.failing_iops, *found.undecided)
    of_rates = [_doubts_of(row) for row in rows_of(answer.rates) if row["rate_iops"] in rates]
    doubts = dict.fromkeys(doubt for doubts in of_rates for doubt in doubts)
    return Cell("; ".join(doubts) or "none", tone="bad" if doubts else "")


def _doubts_of(row: Row) -> list[str]:
    return [*map(str, row["doubts"]), *filter(None, [taint_mark(row)])]


def _response(row: Row) -> Cell:
    low = DASH if is_missing(row["low_us"]) else time_words(row["low_us"])
    high = "no upper end" if is_missing(row["high_us"]) else time_words(row["high_us"])
    return cell(row["response_us"], time_words, f"{low} to {high}", missing="not served")


LOAD_TABLES = (
    PageTable(
        "load-answer", "Most IOPS within the limit", _answers,
        (
            words("Load", lambda row: Cell(row["answer"].label, row["run"])),
            words("Answer", lambda row: Cell(
                row["answer"].sentence(), tone="bad" * (row["answer"].found.passing_iops is None))),
            Field("Highest that passes, IOPS", lambda row: row["answer"].found.passing_iops, missing=DASH),
            Field("Lowest that fails, IOPS", lambda row: row["answer"].found.failing_iops, missing=DASH),
            words("Doubts", lambda row: _doubts(row["answer"])),
        ),
        "The answer is an interval: from the highest rate that passes to the lowest that fails. A rate passes if the "
        f"whole {100 * CONFIDENCE:g} % interval of the percentile lies below the limit, and fails if it lies above. "
        "The answer holds for the runtime of a rate, on a drive in the state that the protocol prepares.",
    ),
    PageTable(
        "load-rates", "Every rate of the search",
        lambda inputs, key: [
            {**rate, "of": row["run"]} for row in _answers(inputs, key) for rate in rows_of(row["answer"].rates)
        ],
        (
            *fields(rate_iops="Offered, IOPS"),
            words("Outcome", "outcome", lambda row: "; ".join([*_doubts_of(row), *filter(None, [row["of"]])]),
                  lambda row: "" if row["outcome"] == PASSES else "mark"),
            *fields(achieved_iops="Completed, IOPS"),
            Field("Response time", _response),
            *fields(time_words, DASH, p50_response_us="Median", p99_response_us="p99", max_response_us="Maximum"),
            *fields(requests="Requests", effective_requests="Effective requests"),
            *fields(time_words, DASH, late_issue_us="Late issue"),
            *fields(percent, depth_limited_pct="Waited for depth"),
            *fields(most_in_flight="Most in flight"),
        ),
        "A response time counts from when the request is due, so it includes the time in a queue. Below the response "
        "time of the limited percentile: its interval. Requests in one queue are late together, so they hold less "
        "information than independent ones; effective requests are the independent requests that hold as much. The "
        f"first {100 * WARM_UP:g} % of the requests of a measurement do not count. Late issue: the same percentile of "
        "the host's own delay. Waited for depth: share of the requests that found the most allowed requests in flight.",
        collapsed_above=24,
    ),
)  # fmt: skip
"""Tables of the loads of a test: the answers, then the rates."""
STEP_TABLES = (demand_tables, *RECOVERY_TABLES, *LOAD_TABLES, point_table)
SOAK_TABLES = (saturation_table, soaks_table)
