"""The runs of an application."""

from __future__ import annotations

from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.number_cells import number_cell, size_cell, value_cell
from drivelab.report.numbers import DASH, is_missing
from drivelab.report.taint import taint_mark, taint_note
from drivelab.report.view import Cell, Column, Table

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
