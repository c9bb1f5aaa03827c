"""Progress of a measurement, from its plan and its journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drivelab.criteria.steady_state import determine
from drivelab.plan.cell import rounds_at_most
from drivelab.plan.loop_cells import matches
from drivelab.run.history import LoopHistory

Journal = Sequence[Mapping[str, Any]]


def loop_progress(subject: Mapping[str, Any], journal: Journal) -> dict[str, Any] | None:
    """Return the progress of the present or last loop, or None without a loop.

    The keys: `round`, `rounds` (at most; exactly with `fixed`), `cold`, `ended` (the loop's outcome) and `steady`: for
    each tracked variable whether it is.
    """
    steps = [
        (step, dict(entry["loop"])) for step, entry in enumerate(subject.get("measure", ())) if "loop" in entry
    ]  # fmt: skip
    started = [(step, fields) for step, fields in steps if any(_is_of(line, step) for line in journal)]
    if not started:
        return None
    step, fields = started[-1]
    lines = [line for line in journal if _is_of(line, step) or line.get("event") == "gap"]
    cells = _cells(fields, lines)
    if not cells or "until" not in fields:
        return None
    history = LoopHistory(cells, fields).follow(lines, step)
    place = history.following()
    cold = history.cold_rounds
    at = place[0] if place else max((line["round"] for line in lines if line["event"] == "cell"), default=1)
    until = fields["until"]
    return {
        "round": at if history.is_cold(at) else at - cold,
        "rounds": cold if history.is_cold(at) else rounds_at_most(until),
        "fixed": "rounds" in until,
        "cold": history.is_cold(at),
        "ended": next((_outcome(line) for line in lines if line["event"] == "loop"), None),
        "steady": _steady(cells, until, lines, cold, fields.get("order") == "cells"),
    }


def _is_of(line: Mapping[str, Any], step: int) -> bool:
    return line.get("event") in ("cell", "loop", "streams") and line.get("step") == step


def _cells(fields: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the loop's cells from the plan; from the journal, if they are a trace's streams."""
    streams = next((line["cells"] for line in lines if line["event"] == "streams"), ())
    return list(fields.get("cells", streams))


def _outcome(line: Mapping[str, Any]) -> str:
    for key, goal in (("steady", "steady state"), ("agreed", "agreement")):
        if key in line:
            return f"{goal} reached" if line[key] else f"{goal} not reached"
    return "all rounds measured"


def _steady(
    cells: Sequence[Mapping[str, Any]], until: Mapping[str, Any], lines: Journal, cold: int, cells_apart: bool
) -> list[bool]:
    """Return for each tracked variable whether its last rounds are steady."""
    return [
        _is_steady(index, variable["metric"], until, lines, cold, cells_apart)
        for variable in until.get("track", ())
        for index, cell in enumerate(cells)
        if matches(cell, variable)
    ]


def _is_steady(
    index: int, metric: str, until: Mapping[str, Any], lines: Journal, cold: int, cells_apart: bool
) -> bool:  # fmt: skip
    values: list[float] = []
    before = 0  # rounds that began before the last interruption: an interrupted round is never in the window
    measured: dict[int, int] = {}
    for line in lines:
        if line["event"] == "cell":
            measured[line["cell"]] = measured.get(line["cell"], 0) + 1
            if line["cell"] == index:
                values.append(float(line["metrics"][metric]))
        elif line["event"] == "gap":
            before = measured.get(index, 0) if cells_apart else max(measured.values(), default=0)
    since = values[max(cold, before) :]
    if len(since) < 2 or not all(value > 0 for value in since):
        return False
    return determine(since, window=until["window"], data_excursion=until["data_excursion"],
                     slope_excursion=until["slope_excursion"]).steady  # fmt: skip
