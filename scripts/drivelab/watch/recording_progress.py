"""Progress of a measurement, from its plan and its journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drivelab.criteria.steady_state import SteadyState, determine
from drivelab.plan.cell import Cell, rounds_at_most
from drivelab.plan.loop_cells import matches
from drivelab.run.history import LoopHistory

Journal = Sequence[Mapping[str, Any]]
_SHOWN_ROUNDS = 12
_METRICS = {"iops": "IOPS", "bandwidth_mib_s": "MiB/s", "mean_latency_us": "µs"}


def loop_progress(subject: Mapping[str, Any], journal: Journal) -> dict[str, Any] | None:
    """Return round, cell and tracked variables of the present or last loop, or None without a loop.

    The keys: `round`, `rounds` (at most; exactly with `fixed`), `cold`, `cell`, `cells`, `workload`, `ended` (the
    loop's outcome) and `variables` from `tracked_variables`.
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
    at, index = place or (max((line["round"] for line in lines if line["event"] == "cell"), default=1), len(cells) - 1)
    until = fields["until"]
    return {
        "round": at if history.is_cold(at) else at - cold,
        "rounds": cold if history.is_cold(at) else rounds_at_most(until),
        "fixed": "rounds" in until,
        "cold": history.is_cold(at),
        "cell": index + 1,
        "cells": len(cells),
        "workload": Cell(**cells[index]).label,
        "ended": next((_outcome(line) for line in lines if line["event"] == "loop"), None),
        "variables": tracked_variables(cells, until, lines, cold, fields.get("order") == "cells"),
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


def tracked_variables(
    cells: Sequence[Mapping[str, Any]], until: Mapping[str, Any], lines: Journal, cold: int, cells_apart: bool
) -> list[dict[str, Any]]:
    """Return the steady-state determination of each tracked variable over its last rounds.

    The keys: `name`, `unit`, `values` (the last twelve rounds), `first_round` (of them) and `window` (its number of
    rounds). With at least two rounds since an interruption also: `from_round` (of the window), `average`, `data_pct`
    and `slope_pct` (the excursions) with their limits, `band` and `line` (both ends over the window), and `steady`.
    """
    wanted = [
        (index, variable["metric"])
        for variable in until.get("track", ())
        for index, cell in enumerate(cells)
        if matches(cell, variable)
    ]
    return [_variable(cells[i], i, metric, until, lines, cold, cells_apart) for i, metric in wanted]


def _variable(
    cell: Mapping[str, Any], index: int, metric: str, until: Mapping[str, Any], lines: Journal, cold: int, apart: bool
) -> dict[str, Any]:
    values: list[float] = []
    not_before = 1
    others: dict[int, int] = {}
    for line in lines:
        if line["event"] == "cell":
            others[line["cell"]] = others.get(line["cell"], 0) + 1
            if line["cell"] == index:
                values.append(float(line["metrics"][metric]))
        elif line["event"] == "gap":  # the interrupted round is never in the window
            not_before = 1 + (others.get(index, 0) if apart else max(others.values(), default=0))
    values, not_before = values[cold:], max(not_before - cold, 1)
    first = max(len(values) - _SHOWN_ROUNDS, 0)
    variable: dict[str, Any] = {
        "name": Cell(**cell).label,
        "unit": _METRICS.get(metric, metric),
        "values": values[first:],
        "first_round": first + 1,
        "window": until["window"],
    }
    since = values[not_before - 1 :]
    if len(since) > 1 and all(value > 0 for value in since):
        state = determine(since, window=until["window"], data_excursion=until["data_excursion"],
                          slope_excursion=until["slope_excursion"], first_round=not_before)  # fmt: skip
        variable |= _determination(state, until, max(len(values) - until["window"] + 1, not_before), len(values))
    return variable


def _determination(state: SteadyState, until: Mapping[str, Any], first: int, last: int) -> dict[str, Any]:
    half = state.allowed_data_excursion / 2
    return {
        "from_round": first,
        "average": state.average,
        "band": [state.average - half, state.average + half],
        "line": [state.intercept + state.slope * first, state.intercept + state.slope * last],
        "data_pct": 100 * state.measured_data_excursion / state.average,
        "data_allowed_pct": 100 * until["data_excursion"],
        "slope_pct": 100 * state.measured_slope_excursion / state.average,
        "slope_allowed_pct": 100 * until["slope_excursion"],
        "steady": state.steady,
    }
