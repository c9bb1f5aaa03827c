"""How the looks at a place changed over time."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drivelab.analysis.values.quick_look import SHOWN, Shown, Value, values_of
from drivelab.core.errors import UserError
from drivelab.core.grouping import grouped
from drivelab.core.terminal import print_table, say, strip
from drivelab.core.units import counted
from drivelab.explore.row_selection import catalogue
from drivelab.plan.places import COMMAND
from drivelab.plan.plan import Plan
from drivelab.quick.view import amount, change, row
from drivelab.recording.folders import tables_folder
from drivelab.tables import io

_MOST_COLUMNS, _STRIP = 3, 10
"""Looks with a column, so that the table fits in 80 characters, and the width of the strip chart of all looks."""

Values = Mapping[Shown, Value]


class Past(NamedTuple):
    """One look at a place."""

    plan: Plan
    date: str
    values: Values

    @property
    def names(self) -> set[str]:
        """Return the path of the place, and its name in the sheet of quick looks."""
        return {str(self.plan.context["device"]), self.plan.drive}


def as_mapping(looks: Sequence[Past]) -> dict[str, Any]:
    """Return looks that can be compared for JSON."""
    plan = looks[-1].plan
    of_looks = [{"date": look.date, "values": list(map(row, look.values.values()))} for look in looks]
    return {"name": plan.drive, "place": plan.context["device"], "measurement": plan.measurement, "looks": of_looks}


def histories(results: Path, wanted: Sequence[str] = ()) -> list[list[Past]]:
    """Return the looks in a results folder that can be compared: of one place with the same settings, oldest first.

    With `wanted`, only those at these places, by path or by name. Raises UserError if there are none.
    """
    looks = list(_looks(results)) if (results / "recordings").is_dir() else []
    for name in wanted or ["."] * (not looks):
        if not any(name in look.names for look in looks):
            at = f" at {name}" if wanted else ""
            command = f"{COMMAND} quick {shlex.quote(name)}"
            raise UserError(f"there is no quick look{at} yet. To take the first, run: {command}")
    chosen = [look for look in looks if not wanted or look.names & set(wanted)]
    return list(grouped(chosen, lambda look: (look.plan.context["device"], look.plan.measurement)).values())


def _looks(results: Path) -> Iterator[Past]:
    for known in catalogue(results).sort_values("started").itertuples():
        recording = results / "recordings" / known.recording
        paths = [tables_folder(recording) / f"{name}.parquet" for name in ("cells", "latency_bins")]
        if all(path.exists() for path in paths):  # else the look was interrupted at its end
            values = values_of(*(io.read(path, path.stem) for path in paths))
            date = str(known.started)[:16].replace("T", " ")
            yield Past(Plan.read(recording / "plan.json"), date, {value.shown: value for value in values})


def show(looks: Sequence[Past]) -> None:
    """Print looks in 80 columns: the last ones as columns, and a strip chart of all for each test."""
    plan, dates = looks[-1].plan, [look.date.replace(" ", "\n") for look in looks[-_MOST_COLUMNS:]]
    say(f"{plan.drive}: {plan.context['device']}, {counted(len(looks), 'look')} of {plan.measurement}")
    rows = []
    for shown in SHOWN:
        values = [look.values.get(shown) for look in looks]
        if known := [value.value for value in values if value is not None]:
            texts = ["" if value is None else amount(value.value, shown.metric) for value in values[-_MOST_COLUMNS:]]
            rows.append([shown.words, *texts, strip(known, _STRIP)])
    print_table(["test", *dates, "all looks"], rows, dates)
    if len(looks) > 1:
        found = ", ".join(changes([look.values for look in looks])) or "nothing"
        say(f"Changed in the last look, beyond the scatter of those before: {found}.")
    say("In the strips, the oldest look is left; for a time, taller is slower.")


def changes(looks: Sequence[Values]) -> list[str]:
    """Return what changed in the last look since the one before: tests beyond all earlier looks and their spreads."""
    *before, last = looks
    found = []
    for shown, value in last.items():
        earlier = [look[shown] for look in before if shown in look]
        if len({old.value < value.value for old in earlier}) == 1 and all(map(value.apart, earlier)):
            found.append(f"{shown.words} {change(earlier[-1], value)}")
    return found
