"""The main results for the terminal, in the report's sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.report.inputs import Inputs
from drivelab.report.numbers import is_missing
from drivelab.report.verdict import headline_deltas, headlines
from drivelab.tables import io


def first_headlines(tables: Mapping[str, Path | Sequence[Path]], basis: str, most: int = 3) -> list[str]:
    """Return the first headline of each measurement, at most `most`; for a single drive, its values.

    `tables` gives the paths of `summary`, `deltas`, `steady_state` and `replays`.
    """
    inputs = Inputs.of({name: io.read(paths, name) for name, paths in tables.items()}, {"basis": basis}, ())
    chosen: dict[str, tuple[str, str, str]] = {}
    for delta, headline in zip(headline_deltas(inputs), headlines(inputs), strict=True):
        text = f"{headline.delta:>8}  {headline.sentence}"
        chosen.setdefault(str(delta["measurement"]), (delta["cell_label"], delta["metric"], text))
    single_drive = [] if chosen else inputs.tables["summary"]
    for row in sorted(single_drive, key=lambda row: _place(inputs.tracked(row["measurement"]), row)):
        text = f"{row['cell_label']} {row['metric']}: {row['value']:,.6g} {row['unit']} ({row['verdict']})"
        chosen.setdefault(str(row["measurement"]), (row["cell_label"], row["metric"], text))
    return [f"{name}{_caveats(inputs, name, *value)}: {text}" for name, (*value, text) in list(chosen.items())[:most]]


def _place(tracked: Sequence[tuple[str, str]], row: Mapping[str, Any]) -> int:
    """Return a value's place among the tracked variables, in the protocol's order; others come last."""
    variable = (row["cell_label"], row["metric"])
    return tracked.index(variable) if variable in tracked else len(tracked)


def _caveats(inputs: Inputs, *value: str) -> str:
    """Return the caveats that must accompany a number shown alone; `value` is measurement, cell label and metric."""
    names = ("measurement", "cell_label", "metric")
    rows = [row for row in inputs.tables["summary"] if tuple(row[name] for name in names) == value]
    caveats = {
        "reduced": any(row["reduced"] for row in rows),
        "virtual drives": any(row["virtual"] for row in rows),
        "virtual clock": any(row["clock"] == "virtual" for row in rows),
        "tainted": any(not is_missing(row["taint_reason"]) for row in rows),
        "single recording": any(len(row["recordings"]) == 1 for row in rows),
    }
    applicable = ", ".join(caveat for caveat, applies in caveats.items() if applies)
    return f" ({applicable})" if applicable else ""
