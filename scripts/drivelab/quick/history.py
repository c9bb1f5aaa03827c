"""How the looks at a place changed over time."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from drivelab.analysis.values.quick_look import SHOWN, Shown, Value, values_of
from drivelab.core.errors import UserError
from drivelab.core.grouping import grouped
from drivelab.core.terminal import console, strip
from drivelab.core.units import counted
from drivelab.explore.row_selection import catalogue
from drivelab.plan.places import COMMAND
from drivelab.plan.plan import Plan
from drivelab.quick.study import STUDY
from drivelab.quick.view import amount, apart, change, row, table
from drivelab.recording.folders import tables_folder
from drivelab.tables import io

_MOST_COLUMNS, _STRIP = 3, 10
"""Looks with a column, so that the table fits in 80 characters, and the width of the strip chart of all looks."""


@dataclass(frozen=True)
class Look:
    """One earlier look."""

    place: str
    name: str
    """Name of the place in the sheet of quick looks."""
    date: str
    measurement: str
    values: dict[Shown, Value]

    @classmethod
    def read(cls, recording: Path, started: str) -> Look:
        """Read the look of a recording; raises UserError if its tables are missing."""
        plan, tables = Plan.read(recording / "plan.json"), []
        for table_name in ("cells", "latency_bins"):
            path = tables_folder(recording) / f"{table_name}.parquet"
            if not path.exists():
                raise UserError(f"{path}: the table is missing. To make it again, run: {COMMAND} run {STUDY}")
            tables.append(io.read(path, table_name))
        values = {value.shown: value for value in values_of(*tables)}
        date = started[:16].replace("T", " ")
        return cls(str(plan.context["device"]), plan.drive, date, plan.measurement, values)

    def to_mapping(self) -> dict[str, Any]:
        """Return the look for JSON."""
        return {"date": self.date, "measurement": self.measurement, "values": list(map(row, self.values.values()))}


def histories(results: Path, wanted: Sequence[str] = ()) -> list[list[Look]]:
    """Return the looks at each place in a results folder, oldest first, or at those in `wanted`: by path or by name.

    Raises UserError if there are none.
    """
    if not (results / "recordings").is_dir():
        raise UserError(f"there are no quick looks yet. To take the first, run: {COMMAND} quick .")
    rows = catalogue(results).sort_values("started").itertuples()
    looks = [Look.read(results / "recordings" / row.recording, str(row.started)) for row in rows]
    for name in wanted:
        if not any(name in (look.place, look.name) for look in looks):
            command = f"{COMMAND} quick {shlex.quote(name)}"
            raise UserError(f"there is no quick look at {name} yet. To take the first, run: {command}")
    chosen = [look for look in looks if not wanted or {look.place, look.name} & set(wanted)]
    return list(grouped(chosen, lambda look: look.place).values())


def show(looks: Sequence[Look]) -> None:
    """Print the looks at one place in 80 columns: the last ones as columns, and a strip chart of all for each test."""
    screen, last = console(highlight=False), looks[-1]
    screen.print(f"{last.name}: {last.place}, {counted(len(looks), 'look')}", style="bold", markup=False)
    recent = looks[-_MOST_COLUMNS:]
    shown_table = table(*(look.date.replace(" ", "\n") for look in recent), "all looks")
    for shown in SHOWN:
        values = [look.values.get(shown) for look in looks]
        known = [value.value for value in values if value is not None]
        if known:
            texts = ["" if value is None else amount(value.value, shown.metric) for value in values[-_MOST_COLUMNS:]]
            shown_table.add_row(shown.words, *texts, Text(strip(known, _STRIP), style="cyan", justify="left"))
    screen.print(shown_table)
    for line in _remarks(looks):
        screen.print(line, markup=False)


def _remarks(looks: Sequence[Look]) -> list[str]:
    """Say what changed in the last look since the one before with the same settings, and how to read the table."""
    last, lines = looks[-1], []
    before = next((look for look in looks[-2::-1] if look.measurement == last.measurement), None)
    if before is not None:
        pairs = [(before.values[shown], value) for shown, value in last.values.items() if shown in before.values]
        changes = ", ".join(f"{new.shown.words} {change(old, new)}" for old, new in pairs if apart(old, new))
        by = "by more than the spread of the rounds"
        lines = [
            f"Changed since {before.date} {by}: {changes}." if changes else f"Nothing changed since {before.date} {by}."
        ]
    lines.append("In the strips, the oldest look is left; for a time, taller is slower.")
    if len(names := dict.fromkeys(look.measurement for look in looks)) > 1:
        lines.append(f"The looks differ in time or size: {', '.join(names)}.")
    return lines
