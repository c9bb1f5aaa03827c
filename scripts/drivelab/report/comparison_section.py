"""The comparison of the drives: all deltas and all other differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from drivelab.report.header import array_state, capacity, fill, fio, idle_after_purge, memory, purge
from drivelab.report.inputs import Inputs, Row, each, main_question
from drivelab.report.numbers import (
    DASH,
    MISSING,
    TIMES,
    capital,
    is_missing,
    number,
    quantity,
    share,
    size,
    text,
)
from drivelab.report.sections.comparison_tables import capacity_tables, deltas_tables, differences_tables, size_tables
from drivelab.report.sections.replay_result import basis_scores, relative_score, score_formula
from drivelab.report.sections.scores import set_scores_table
from drivelab.report.sections.steadiness import variation_table
from drivelab.report.table_fields import duration_cell, number_cell, size_cell, summary_cell, value_cell
from drivelab.report.view import Cell, Column, Table


def host_settings(inputs: Inputs) -> Table | None:
    """Return a row for each setting and state; None if all recordings used the virtual clock."""
    checked = [plan for plan in inputs.plans if plan.get("settings") is not None]
    if not checked:
        return None
    recordings_by_state: dict[tuple[str, ...], list[str]] = {}
    for plan in checked:
        for row in plan["settings"]:
            scope = "host" if row["scope"] == "host" else f"drive {plan['drive']}"
            key = (row["name"], scope, row["state"], row["wanted"], row["effect"])
            recordings_by_state.setdefault(key, []).append(plan["recording"])
    rows = [
        (
            Cell(name, small=scope),
            Cell(state, tone="mark"),
            Cell(wanted),
            Cell(effect),
            Cell("all" if len(set(recordings)) == len(checked) else f"{len(set(recordings))} of {len(checked)}"),
        )
        for (name, scope, state, wanted, effect), recordings in recordings_by_state.items()
    ]
    if not rows:
        rows = [(Cell("All settings"), Cell("as wanted"), Cell(""), Cell(""), Cell("all"))]
    scenarios = ", ".join(dict.fromkeys(str(plan.get("scenario")) for plan in checked))
    return Table(
        id="host-settings",
        caption=f"Host settings that differ from the scenario ({scenarios})",
        columns=tuple(Column(name, numeric=False) for name in ("Setting", "State", "Wanted", "Effect", "Recordings")),
        rows=tuple(rows),
        note="Run 'drivelab doctor' to see all settings and how to change them. With 'host_settings: apply', the study "
        "changes what can be changed while it runs.",
    )


_IDENTITY = {"Serial", "Device", "Host"}
"""Facts that identify drives and hosts; they always differ."""

_DRIVE: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "Model": ("model", text),
    "Serial": ("serial", text),
    "Firmware": ("firmware", text),
    "Capacity": ("capacity_bytes", capacity),
    "Logical block": ("logical_block_bytes", size),
    "Transport": ("transport", text),
    "LBA format": ("lba_format", text),
    "Link": ("link", text),
    "Fastest link": ("link_max", text),
    "Over-provisioning": ("over_provisioning_pct", lambda value: quantity(value, "%")),
    "Virtual": ("virtual", lambda value: text(value) if is_missing(value) else "yes" if value else "no"),
    "Device": ("device", text),
}
_HOST: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "Host": ("host", text),
    "CPU": ("cpu", text),
    "Cores": ("cores", number),
    "Memory": ("memory_bytes", memory),
    "Kernel": ("kernel", text),
    "Operating system": ("os", text),
    "fio": ("fio", fio),
    "drivelab": ("drivelab", text),
    "Python": ("python", text),
}


def comparison_tables(inputs: Inputs) -> tuple[Table, ...]:
    """Return deltas by measurement, values by capacity and block size, other differences, and traces."""
    tables = [set_scores_table(inputs), *differences_tables(inputs)]
    for name in inputs.measurements:
        tables += [
            table and replace(table, group=name)
            for table in (scores(inputs, name), *deltas_tables(inputs, name), variation_table(inputs, name))
        ]
    tables += [*capacity_tables(inputs), *size_tables(inputs)]
    tables = [
        replace(table, question=main_question(inputs, table.group)) if table and table.group and not table.question
        else table for table in tables
    ]  # fmt: skip
    drives = {
        name: {k: each(show, inputs.drive(name).get(c)) for k, (c, show) in _DRIVE.items()} for name in inputs.drives
    }
    hosts = {
        f"{text(row.get('host'))}{f' ({place})' if place > 1 else ''}": {
            k: show(row.get(c)) for k, (c, show) in _HOST.items()
        }
        for place, row in enumerate(inputs.tables["hosts"], start=1)
    }
    tables += [
        _attributes("differences-drives", "Differences between drives", drives),
        _settings(inputs),
        _attributes(
            "differences-hosts", "Differences between hosts" if len(hosts) > 1 else "Host (same for all drives)", hosts
        ),
        host_settings(inputs),
        _traces(inputs),
    ]
    return tuple(table for table in tables if table is not None)


def scores(inputs: Inputs, measurement: str) -> Table | None:
    """Return the scores of all drives, also as multiples of the basis; None for a test without scores."""
    rows = [row for row in inputs.tables["summary"] if (row["measurement"], row["metric"]) == (measurement, "score")]
    if not rows:
        return None
    basis = basis_scores(inputs, measurement)
    by_place = {(row["cell_label"], row["drive"]): row for row in rows}

    def cell(label: str, drive: str) -> Cell:
        row = by_place.get((label, drive))
        if row is None:
            return Cell(DASH)
        return summary_cell(row, f"{relative_score(row, basis[label]).text} {TIMES}" if label in basis else "")

    multiples = f" Below: multiple of the score of {inputs.study.get('basis')}, the basis." if basis else ""
    return Table(
        id=f"scores-{inputs.measurements.index(measurement) + 1}",
        caption=f"{measurement}: scores",
        columns=(Column("", numeric=False), *map(Column, inputs.drives)),
        rows=tuple(
            (Cell(capital(str(label))), *(cell(label, drive) for drive in inputs.drives))
            for label in dict.fromkeys(row["cell_label"] for row in rows)
        ),
        note=f"{score_formula(rows)}{multiples}".strip(),
        sources=inputs.sources(name for row in rows for name in row["recordings"]),
    )


def _attributes(anchor: str, caption: str, columns: Mapping[str, Mapping[str, str]]) -> Table | None:
    """Return the attributes of drives or hosts that differ; a note has those that are the same or not recorded."""
    if not columns:
        return None
    rows, same, missing = [], [], []
    several = len(columns) > 1
    for name in next(iter(columns.values())):
        values = [attributes[name] for attributes in columns.values()]
        if set(values) == {MISSING}:
            missing.append(name)
        elif several and len(set(values)) == 1:
            same.append(f"{name} {values[0]}")
        else:
            cells = [Cell(value, tone="missing" if value == MISSING else "") for value in values]
            mark = Cell("identity") if name in _IDENTITY else Cell("differs", tone="mark")
            rows.append((Cell(name), *cells, *([mark] if several else [])))
    last = [Column("Differs?", numeric=False)] if several else []
    notes = ["An unintended difference may explain a delta."] if several else []
    notes += [f"The same: {'; '.join(same)}."] if same else []
    notes += [f"Not recorded: {', '.join(missing)}."] if missing else []
    return Table(
        id=anchor,
        caption=caption,
        columns=(Column("", numeric=False), *(Column(name, numeric=False) for name in columns), *last),
        rows=tuple(rows),
        note=" ".join(notes),
    )


def _settings(inputs: Inputs) -> Table | None:
    """Return the settings of each measurement that differ between drives; None for one drive."""
    if len(inputs.drives) < 2:
        return None
    rows = []
    for measurement in inputs.measurements:
        by_drive = {drive: inputs.plans_of((drive, measurement)) for drive in inputs.drives}
        present = {drive: plans for drive, plans in by_drive.items() if plans}
        facets = {drive: _facets(plans[0]) for drive, plans in present.items()}
        for name in dict.fromkeys(name for of_drive in facets.values() for name in of_drive):
            values = [
                facets[drive].get(name, MISSING) if drive in facets else "not measured" for drive in inputs.drives
            ]
            if len({of_drive.get(name, MISSING) for of_drive in facets.values()}) > 1:
                rows.append((Cell(f"{measurement}: {name}"), *map(Cell, values)))
    if not rows:
        rows = [(Cell("All settings of all measurements"), *(Cell("same") for _ in inputs.drives))]
    return Table(
        id="differences-settings",
        caption="Settings that differ between the drives",
        columns=(Column("Setting", numeric=False), *(Column(drive, numeric=False) for drive in inputs.drives)),
        rows=tuple(rows),
    )


def _facets(plan: Row) -> dict[str, str]:
    drive_class = plan.get("class") or {}
    protocol = plan.get("protocol") or {}
    return {
        "protocol": text(protocol.get("title") if isinstance(protocol, Mapping) else protocol),
        **{name.replace("_", " "): share(v) if name == "active_range" else text(v) for name, v in drive_class.items()},
        "purge": text(purge(plan.get("condition"))),
        "idle after the purge": idle_after_purge(plan.get("condition")),
        "preconditioning": text(fill(plan.get("condition"))),
        "state of the array": text(array_state(plan.get("condition"))),
        "data pattern": text(plan.get("data_pattern")),
        "engine": text(plan.get("engine")),
        "clock": text(plan.get("clock")),
        "alterations of the protocol": "; ".join(plan.get("reduced_why") or ()) or "none",
    }


def _traces(inputs: Inputs) -> Table | None:
    traces = inputs.tables["traces"]
    if not traces:
        return None
    names = ("Trace", "Application", "Source", "Requests", "Reads", "Writes", "Flushes", "Discards", "Read", "Written",
             "Footprint", "Duration", "Lost")  # fmt: skip
    return Table(
        id="traces-table",
        caption="Traces",
        columns=tuple(Column(name, numeric=place > 2) for place, name in enumerate(names)),
        rows=tuple(
            (
                Cell(str(row["trace"])),
                Cell(text(row["application"])),
                Cell(text(row["source"])),
                *(value_cell(row[name]) for name in ("requests", "reads", "writes", "flushes", "discards")),
                *(size_cell(row[name]) for name in ("read_bytes", "write_bytes", "footprint_bytes")),
                duration_cell(row["duration_s"]),
                number_cell(row["lost"], tone="bad" if row["lossy"] else ""),
            )
            for row in traces
        ),
        note=f"This host cannot capture traces, so shipped traces replace them: {reason}."
        if not is_missing(reason := inputs.study.get("cannot_capture"))
        else "",
    )
