"""How the looks at a place changed over time."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from drivelab.analysis.values.quick_look import SHOWN, Shown, Value, values_of
from drivelab.core.errors import UserError
from drivelab.core.terminal import console, strip
from drivelab.core.units import counted
from drivelab.explore.row_selection import catalogue
from drivelab.plan.places import COMMAND
from drivelab.plan.plan import Plan
from drivelab.quick.result import value_mapping
from drivelab.quick.study import STUDY
from drivelab.quick.view import amount, apart, change
from drivelab.tables import io

_MOST_COLUMNS, _STRIP = 3, 10
"""Looks with a column, so that the table fits in 80 characters, and the width of the strip chart of all looks."""


@dataclass(frozen=True)
class Look:
    """One earlier look."""

    date: str
    measurement: str
    values: dict[Shown, Value]


@dataclass(frozen=True)
class History:
    """All looks at one place, oldest first."""

    name: str
    path: str
    looks: Sequence[Look]


def histories(results: Path, wanted: Sequence[str] = ()) -> list[History]:
    """Return the history of each place in a results folder, or of those in `wanted`: by path or by name.

    Raises UserError if there are no looks.
    """
    if not (results / "recordings").is_dir():
        raise UserError(f"there are no quick looks yet. To take the first, run: {COMMAND} quick .")
    places: dict[str, list[tuple[str, Plan]]] = {}
    for row in catalogue(results).sort_values("started").itertuples():
        plan = Plan.read(results / "recordings" / row.recording / "plan.json")
        places.setdefault(str(plan.context["device"]), []).append((str(row.started), plan))
    for name in wanted:
        if not any(name in (place, plans[0][1].drive) for place, plans in places.items()):
            command = f"{COMMAND} quick {shlex.quote(name)}"
            raise UserError(f"there is no quick look at {name} yet. To take the first, run: {command}")
    if wanted:
        places = {place: plans for place, plans in places.items() if {place, plans[0][1].drive} & set(wanted)}
    return [
        History(plans[-1][1].drive, place, [_look(results, started, plan) for started, plan in plans])
        for place, plans in places.items()
    ]


def _look(results: Path, started: str, plan: Plan) -> Look:
    folder = results / "tables" / plan.recording
    cells, bins = (_table(folder / f"{name}.parquet", name) for name in ("cells", "latency_bins"))
    return Look(started[:16].replace("T", " "), plan.measurement, {v.shown: v for v in values_of(cells, bins)})


def _table(path: Path, name: str) -> pd.DataFrame:
    if not path.exists():
        raise UserError(f"{path}: the table is missing. To make it again, run: {COMMAND} run {STUDY}")
    return io.read(path, name)


def as_mapping(history: History) -> dict[str, Any]:
    """Return a history for JSON."""
    return {
        "name": history.name,
        "place": history.path,
        "looks": [
            {"date": look.date, "measurement": look.measurement,
             "values": [value_mapping(value) for value in look.values.values()]}
            for look in history.looks
        ],
    }  # fmt: skip


def show(history: History) -> None:
    """Print a history in 80 columns: a line for each look, then a strip chart of each test."""
    screen = console(highlight=False)
    screen.print(f"{history.name}: {history.path}, {counted(len(history.looks), 'look')}", style="bold", markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("test", no_wrap=True, min_width=27)
    recent = history.looks[-_MOST_COLUMNS:]
    for look in recent:
        table.add_column(Text(look.date.replace(" ", "\n")), justify="right", no_wrap=True)
    table.add_column("all looks", no_wrap=True)
    for shown in SHOWN:
        values = [look.values.get(shown) for look in history.looks]
        known = [value.value for value in values if value is not None]
        if known:
            texts = ["" if value is None else amount(value.value, shown.metric) for value in values[-_MOST_COLUMNS:]]
            table.add_row(shown.words, *texts, Text(strip(known, _STRIP), style="cyan"))
    screen.print(table)
    if text := _since(history.looks):
        screen.print(text, markup=False)
    screen.print("In the strips, the oldest look is left; for a time, taller is slower.", style="dim")
    if len({look.measurement for look in history.looks}) > 1:
        names = ", ".join(dict.fromkeys(look.measurement for look in history.looks))
        screen.print(f"The looks differ in time or size: {names}.", markup=False)


def _since(looks: Sequence[Look]) -> str:
    """Say what changed in the last look since the one before with the same settings; empty if there is none."""
    last = looks[-1]
    before = next((look for look in looks[-2::-1] if look.measurement == last.measurement), None)
    if before is None:
        return ""
    pairs = [(before.values[shown], value) for shown, value in last.values.items() if shown in before.values]
    changes = ", ".join(f"{new.shown.words} {change(old, new)}" for old, new in pairs if apart(old, new))
    if not changes:
        return f"No change since {before.date} is larger than the spread of the rounds."
    return f"Changed since {before.date} by more than the spread of the rounds: {changes}."
