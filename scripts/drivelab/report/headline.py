"""The few numbers that matter, as the report's own sentences, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.report.inputs import Inputs
from drivelab.report.verdict import headline_deltas, headlines
from drivelab.tables import io


def first_headlines(tables: Mapping[str, Path | Sequence[Path]], basis: str, most: int = 3) -> list[str]:
    """The first headline of each measurement, at most `most`; values of the drive alone if it is the only one.

    `tables` gives the paths of `summary`, `deltas`, `steady_state` and `replays`.
    """
    inputs = Inputs.of({name: io.read(paths, name) for name, paths in tables.items()}, {"basis": basis}, ())
    chosen: dict[str, str] = {}
    for delta, headline in zip(headline_deltas(inputs), headlines(inputs), strict=True):
        chosen.setdefault(str(delta["measurement"]), f"{headline.delta:>8}  {headline.sentence}")
    alone = [] if chosen else inputs.tables["summary"]
    for row in sorted(alone, key=lambda row: _place(inputs.tracked(row["measurement"]), row)):
        value = f"{row['cell_label']} {row['metric']}: {row['value']:,.6g} {row['unit']} ({row['verdict']})"
        chosen.setdefault(str(row["measurement"]), value)
    return [f"{name}{_caveats(inputs, name)}: {text}" for name, text in list(chosen.items())[:most]]


def _place(tracked: Sequence[tuple[str, str]], row: Mapping[str, Any]) -> int:
    """Of a value among those that the protocol tracks, in its order; others come after them."""
    variable = (row["cell_label"], row["metric"])
    return tracked.index(variable) if variable in tracked else len(tracked)


def _caveats(inputs: Inputs, measurement: str) -> str:
    """What must not be left out where a number stands alone."""
    rows = [row for row in inputs.tables["summary"] if row["measurement"] == measurement]
    told = {
        "reduced": any(row["reduced"] for row in rows),
        "virtual drives": any(row["virtual"] for row in rows),
        "virtual clock": any(row["clock"] == "virtual" for row in rows),
    }
    words = ", ".join(word for word, applies in told.items() if applies)
    return f" ({words})" if words else ""
