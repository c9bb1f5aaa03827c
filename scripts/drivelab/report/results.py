"""The tables of a page: steady-state determination, then the results in the order of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from drivelab.core.units import parse_size, time_scale
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.measurement_outcome import (
    host_limit_of,
    marks,
    notes,
    taint_mark,
    taint_note,
    taint_reasons,
    tainted,
)
from drivelab.report.numbers import (
    DASH,
    capital,
    heading,
    is_missing,
    metric_order,
    unit_of,
)
from drivelab.report.sections.all_numbers import all_numbers
from drivelab.report.sections.demand_tables import demand_tables, point_table, recovery_tables
from drivelab.report.sections.determination import in_windows
from drivelab.report.sections.load_tables import load_tables
from drivelab.report.sections.replay_fidelity import fidelity_table, mapping_table
from drivelab.report.sections.replay_result import passes_table
from drivelab.report.sections.replay_runs import operations_table, run_latencies_table, runs_table, streams_table
from drivelab.report.sections.saturation import saturation_table, soaks_table
from drivelab.report.sections.scores import best_runs_table, merit_table, nines_table
from drivelab.report.table_fields import number_cell, scaled_cell, size_cell, summary_cell, value_cell
from drivelab.report.view import Cell, Column, Table
from drivelab.tables.labels import loads_of

_TIMED = (
    "Duration: from the start of the command until all of its writes are on the drive. Each run gets a new file "
    "system; creating it is not timed."
)
_SIMULATED = (
    "Duration: that of the replay that replaces the application. A request waits for the same requests as in the "
    "application's processes, so the replay is never shorter than the trace."
)


def application_runs_table(inputs: Inputs, key: Key) -> Table | None:
    """Return a row for every run; None without runs."""
    runs = inputs.of_key("application_runs", key)
    if not runs:
        return None
    names = ("Run", "Counted", "Duration, s", "Command, s", "Final sync, s", "Read", "Written", "CPU, user, s",
             "CPU, system, s", "Exit status", "Program")  # fmt: skip
    texts = {"Run", "Counted", "Program"}
    return Table(
        id=f"{inputs.anchors[key]}-applications",
        caption="Every run of the application",
        columns=tuple(Column(name, numeric=name not in texts) for name in names),
        rows=tuple(
            (
                Cell(_name(row), small=str(row["application"])),
                Cell("yes" if row["counted"] else "no", small=taint_mark(row)),
                value_cell(row["duration_s"]),
                *(_known(row[name]) for name in ("command_s", "sync_s")),
                *(size_cell(row[name]) for name in ("read_bytes", "write_bytes")),
                *(_known(row[name]) for name in ("user_s", "system_s", "exit_status")),
                _program(row),
            )
            for row in runs
        ),
        note=" ".join(
            [
                _SIMULATED if any(not is_missing(row["simulated_from"]) for row in runs) else _TIMED,
                taint_note(runs),
            ]
        ).strip(),
        sources=inputs.sources(row["recording"] for row in runs),
    )


def _name(run: Row) -> str:
    temper = "cold" if run["cold"] else "warm"
    phase = "" if is_missing(run["phase"]) else f"{run['phase']} {int(run['phase_pass'])}, "
    return f"{phase}{run['repeat']}, {temper}"


def _known(value: object) -> Cell:
    return Cell(DASH) if is_missing(value) else number_cell(value)


def _program(run: Row) -> Cell:
    if is_missing(run["simulated_from"]):
        return Cell("the application")
    return Cell("SIMULATED", small=f"replay of its trace '{run['simulated_from']}'; no application ran", tone="bad")


_LABEL = re.compile(r"(RND|SEQ) (\d+(?:B|KiB|MiB|GiB)) (\d+)/(\d+)(?: T\d+Q\d+)?")


def matrices(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield tables of block size by R/W mix for the tracked metrics, or for all if none is tracked.

    A tracked latency also gets IOPS and the maximum of the cells in the window (PTS latency test). Cells at several
    loads, as in an import, have a table for each load, which its caption names.
    """
    loads = {label: f", {load}" for (_, label), load in loads_of(inputs.frame_of("cells", key)).items()}
    if len(set(loads.values())) == 1:
        loads = {}
    tracked = {metric for _, metric in inputs.tracked(key[1])}
    summary = inputs.of_key("summary", key)
    if "mean_latency_us" in tracked:
        tracked.add("iops")
        summary = [*summary, *_maxima(inputs, key)]
        tracked.add("max_latency_us")
    groups: dict[tuple[str, str, str, str], dict[tuple[int, str], Row]] = {}
    for row in summary:
        match = _LABEL.fullmatch(row["cell_label"])
        if match and (row["metric"] in tracked or not tracked):
            load = loads.get(row["cell_label"], "")
            group = groups.setdefault((row["metric"], match[1], row["statistic"], load), {})
            group[parse_size(match[2]), f"{match[3]}/{match[4]}"] = row
    for (metric, pattern, statistic, load), cells in sorted(groups.items(), key=lambda item: metric_order(item[0][0])):
        if len(cells) < 2:
            continue
        sizes = sorted({block for block, _ in cells})
        mixes = sorted({mix for _, mix in cells}, key=lambda mix: int(mix.partition("/")[0]))
        labels = {block: row["cell_label"].split()[1] for (block, _), row in cells.items()}
        first = next(iter(cells.values()))
        stored = unit_of(metric, first["unit"])
        divisor, unit = time_scale([row["value"] for row in cells.values() if not is_missing(row["value"])], stored)
        subject = capital(heading(metric, first["unit"]).removesuffix(stored) + unit)
        access = "random" if pattern == "RND" else "sequential"
        yield Table(
            id=f"{inputs.anchors[key]}-{metric.replace('_', '-')}-{pattern.lower()}{load.replace(', ', '-').lower()}",
            caption=f"{subject}: block size by R/W mix %, {access} access{load} ({statistic})",
            columns=(
                Column("Block size", numeric=False),
                *(Column(mix, download=f"{mix}, {stored}" if unit != stored else "") for mix in mixes),
            ),
            rows=tuple(
                (Cell(labels[block]), *(_matrix_cell(cells.get((block, mix)), divisor) for mix in mixes))
                for block in sizes
            ),
            note=notes(cells.values()),
            sources=inputs.sources(name for row in cells.values() for name in row["recordings"]),
        )


def _matrix_cell(row: Row | None, divisor: float) -> Cell:
    return scaled_cell(summary_cell(row, marks(row)), divisor)


def _maxima(inputs: Inputs, key: Key) -> Iterator[Row]:
    """Yield the maximum latency of each cell in the window, as rows like those of the summary."""
    cells = in_windows(inputs, key).dropna(subset="max_latency_us")
    for label, rows in cells.groupby("cell_label", sort=False):
        yield {
            "cell_label": label,
            "metric": "max_latency_us",
            "unit": "us",
            "statistic": "maximum in the window",
            "value": rows["max_latency_us"].max(),
            "taint_reason": taint_reasons(tainted(rows_of(rows))) or None,
            "host_limit": host_limit_of(rows_of(rows)),
            "recordings": list(rows["recording"].unique()),
            "evidence": list(rows["recording"] + "/" + rows["directory"]) if "directory" in rows else [],
        }


def result_tables(inputs: Inputs, key: Key) -> tuple[Table, ...]:
    """Return the result tables: block size by R/W mix, special tables, all values."""
    return (
        *matrices(inputs, key),
        *demand_tables(inputs, key),
        *recovery_tables(inputs, key),
        *load_tables(inputs, key),
        *(
            table
            for table in (
                point_table(inputs, key),
                merit_table(inputs, key),
                best_runs_table(inputs, key),
                nines_table(inputs, key),
                saturation_table(inputs, key),
                soaks_table(inputs, key),
                fidelity_table(inputs, key),
                passes_table(inputs, key),
                mapping_table(inputs, key),
                operations_table(inputs, key),
                streams_table(inputs, key),
                streams_table(inputs, key, "process"),
                runs_table(inputs, key),
                run_latencies_table(inputs, key),
                application_runs_table(inputs, key),
                all_numbers(inputs, key),
            )
            if table
        ),
    )
