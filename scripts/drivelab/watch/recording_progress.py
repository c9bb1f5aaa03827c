"""Progress of a measurement, from its plan and its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    loops = [(step, entry["loop"]) for step, entry in enumerate(subject.get("measure", ())) if "loop" in entry]
    started = {line.get("step") for line in journal if line.get("event") in ("cell", "loop", "streams")}
    nothing: tuple[int, dict[str, Any]] = (0, {})
    step, fields = next(((step, fields) for step, fields in reversed(loops) if step in started), nothing)
    lines = [line for line in journal if line.get("event") == "gap" or line.get("step") == step]
    streams = next((line["cells"] for line in lines if line["event"] == "streams"), ())  # of a trace
    cells, until = list(fields.get("cells", streams)), fields.get("until")
    if not cells or until is None:
        return None
    history = LoopHistory(cells, fields).follow(lines, step)
    following, cold = history.following(), history.cold_rounds
    at = following[0] if following else max((line["round"] for line in lines if line["event"] == "cell"), default=1)
    ended = next((line for line in lines if line["event"] == "loop"), None)
    return {
        "round": at if history.is_cold(at) else at - cold,
        "rounds": cold if history.is_cold(at) else rounds_at_most(until),
        "fixed": "rounds" in until,
        "cold": history.is_cold(at),
        "ended": None if ended is None else _outcome(ended),
        "steady": _steady(cells, until, lines, cold, fields.get("order") == "cells"),
    }


def _outcome(line: Mapping[str, Any]) -> str:
    for key, goal in (("steady", "steady state"), ("agreed", "agreement")):
        if key in line:
            return f"{goal} reached" if line[key] else f"{goal} not reached"
    return "all rounds measured"


def _steady(
    cells: Sequence[Mapping[str, Any]], until: Mapping[str, Any], lines: Journal, cold: int, cells_apart: bool
) -> list[bool]:
    """Return for each tracked variable whether its last rounds are steady.

    Rounds that began before the last interruption are never in the window.
    """
    done: list[list[Mapping[str, float]]] = [[] for _ in cells]
    before = [0] * len(cells)
    for line in lines:
        if line["event"] == "cell":
            done[line["cell"]].append(line["metrics"])
        elif line["event"] == "gap":
            counts = list(map(len, done))
            before = counts if cells_apart else [max(counts)] * len(cells)
    tracked = [
        [float(metrics[variable["metric"]]) for metrics in done[index][max(cold, before[index]) :]]
        for variable in until.get("track", ())
        for index, cell in enumerate(cells)
        if matches(cell, variable)
    ]
    rule = {name: until[name] for name in ("window", "data_excursion", "slope_excursion") if name in until}
    return [
        len(values) > 1 and all(value > 0 for value in values) and determine(values, **rule).steady
        for values in tracked
    ]
