"""The few numbers that matter, as the report's own sentences, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

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
    for row in sorted(
        alone, key=lambda row: (row["cell_label"], row["metric"]) not in inputs.tracked(row["measurement"])
    ):
        value = f"{row['cell_label']} {row['metric']}: {row['value']:,.6g} {row['unit']} ({row['verdict']})"
        chosen.setdefault(str(row["measurement"]), value)
    return [f"{measurement}: {text}" for measurement, text in list(chosen.items())[:most]]
