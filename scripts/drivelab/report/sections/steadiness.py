"""Steady state of a test, the reliability of its values, and what makes them vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from drivelab.analysis.deltas.variation import HOSTS, RECORDINGS, ROUNDS, SOURCES, SPECIMENS
from drivelab.report.banners import within
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.numbers import MISSING, heading, is_missing, names, number, percent
from drivelab.report.table_fields import number_cell, percent_cell
from drivelab.report.view import Cell, Column, Fact, Table

if TYPE_CHECKING:
    import pandas as pd


def fact(name: str, value: str, tone: str = "") -> Fact:
    """Return a named value; mark it if it is missing."""
    return Fact(name, value, tone or ("missing" if value == MISSING else ""))


def given(name: str, value: str, nothing: str = MISSING) -> tuple[Fact, ...]:
    """Return a fact that only some tests have, or nothing if the value is missing or equals `nothing`."""
    return () if value in ("", nothing, MISSING) else (fact(name, value),)


def nothing_if_planned(plans: Sequence[Row], nothing: str) -> str:
    """Return `nothing` for a plan (what it omits was not done), else "not recorded" (an import)."""
    return nothing if any(isinstance(plan.get("condition"), Mapping) for plan in plans) else MISSING


_FEW = 3


def steadiness(inputs: Inputs, key: Key) -> tuple[Fact, ...]:
    """Return the steady-state facts of loops and soaks; without such a rule, the verdicts on the values."""
    windows, soaks = inputs.of_key("steady_state", key), _soaks(inputs.frame_of("cells", key))
    values = _verdicts(inputs.of_key("summary", key))
    if not windows and not soaks:
        stop = nothing_if_planned(inputs.plans_of(key), "no steady-state rule in this test")
        return (fact("Reached", stop), *values)
    missed = [row["variable"] for row in windows if not row["reached"]] + [name for name, span in soaks if not span]
    some = f": {names(list(dict.fromkeys(missed)))}" if len(missed) < len(windows) + len(soaks) else ""
    rounds = dict.fromkeys(f"{row['window_start']} to {row['window_end']} of {row['rounds']}" for row in windows)
    spans = [*([f"rounds {'; '.join(rounds)}"] if rounds else []), *dict.fromkeys(span for _, span in soaks if span)]
    reached = fact("Reached", f"NO{some}" if missed else "YES", "bad" if missed else "good")
    facts = (reached, *given("Window", "; ".join(spans)))
    if not windows:
        return (*facts, *values)
    return (
        *facts,
        fact("Variables", f"{sum(map(within, windows))} of {len(windows)} within the limits"),
        fact(
            "Largest residual drift",
            percent(max((r["residual_drift_pct"] for r in windows), key=_magnitude), signed=True),
        ),
    )


def _soaks(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """Return (label, window) of each soak with a steady-state rule; the window is empty if not reached."""
    if not {"ended_by", "cell_label"} <= set(cells):
        return []
    soaks = []
    for (_, label), slices in cells[cells["ended_by"].notna()].groupby(["recording", "cell_label"], sort=False):
        window = slices.loc[slices["in_window"].astype(bool), "round"]
        span = f"slices {window.min()} to {window.max()} of {slices['round'].max()}"
        soaks.append((str(label), span if (slices["ended_by"] == "steady state").all() else ""))
    return soaks


def _verdicts(summary: list[Row]) -> tuple[Fact, ...]:
    """Return the verdicts on the values; name the cells if the verdicts differ."""
    cells_by_verdict: dict[str, dict[str, None]] = {}
    for row in summary:
        if not is_missing(row.get("verdict")):
            cells_by_verdict.setdefault(str(row["verdict"]), {})[str(row["cell_label"])] = None
    if len(cells_by_verdict) < 2:
        return (fact("Values are", next(iter(cells_by_verdict), MISSING)),)
    return tuple(fact(f"Values: {verdict}", _few(list(cells))) for verdict, cells in cells_by_verdict.items())


def _few(cells: list[str]) -> str:
    return "; ".join([*cells[:_FEW], *([f"and {len(cells) - _FEW} more"] if len(cells) > _FEW else [])])


def _magnitude(value: Any) -> float:
    return -1.0 if is_missing(value) else abs(float(value))


_COUNTED = {ROUNDS: "rounds", RECORDINGS: "recordings", SPECIMENS: "drives", HOSTS: "platforms"}
"""What `n` counts, by source."""


def variation_table(inputs: Inputs, measurement: str) -> Table | None:
    """Return the standard deviations of a test by source; None without any."""
    rows = [row for row in inputs.tables["variation"] if row["measurement"] == measurement]
    if not rows:
        return None
    return Table(
        id=f"variation-{inputs.measurements.index(measurement) + 1}",
        caption=f"{measurement}: what makes the values vary",
        columns=(
            Column("", numeric=False),
            Column("Source", numeric=False),
            Column("Standard deviation"),
            Column("95 % interval"),
            Column("Cells"),
            Column("From"),
        ),
        rows=tuple(
            (
                Cell(str(row["subject"]), small=heading(row["metric"], None)),
                Cell(SOURCES[row["source"]]),
                percent_cell(row["sd_pct"]),
                Cell(f"{percent(row['low_pct'])} to {percent(row['high_pct'])}"),
                number_cell(row["cells"]),
                Cell(f"{number(row['n'])} {_COUNTED[row['source']]}"),
            )
            for row in rows
        ),
        note="Of one value, each beyond what the sources before explain; rounds that correlate look more alike than "
        "they are. More recordings reduce only what recordings cause; a claim about a model rests on specimens.",
        collapsed=True,
    )
