"""Points of a plan: threads and queue depth chosen from the results of an earlier loop of the same measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from math import fsum
from typing import Any

from drivelab.analysis.points import Candidate, choose
from drivelab.errors import UserError
from drivelab.protocol.loop_cells import matches
from drivelab.stages.cell import Bench

_DEMAND = ("threads", "queue_depth")


def resolved(bench: Bench, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a loop's or a soak's fields with the threads and queue depth of its point, if it has one."""
    if "point" not in fields:
        return fields
    chosen = demand(bench, fields["point"])
    at_point = {key: chosen[key] for key in _DEMAND}
    if "cells" in fields:
        return {**fields, "cells": [{**at_point, **cell} for cell in fields["cells"]]}
    return {**fields, "cell": {**at_point, **fields["cell"]}}


def demand(bench: Bench, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return `threads` and `queue_depth` of a point of the plan, and a `title`.

    They are chosen once, from the cells of the point's loop, averaged over the rounds of the steady-state window, or
    over all counted rounds of a loop with another stop rule. The journal keeps the choice. Raises UserError when no
    cell of the loop matches the point.
    """
    recording = bench.recording
    journal = recording.journal()
    key = {name: point[name] for name in ("step", "name", "of", "response_time_us")}
    points = (entry for entry in journal if entry["event"] == "point")
    line = next((entry for entry in points if all(entry[name] == value for name, value in key.items())), None)
    if line is None:
        loop = bench.plan.subject["measure"][point["step"]]["loop"]
        matching = candidates(journal, point, loop["until"].get("window"))
        if not matching:
            raise UserError(
                f"{bench.plan.measurement}: no cell of step {point['step'] + 1} matches its point '{point['name']}' "
                f"({_criteria(point['of'])}); change the point's 'of'"
            )
        chosen = choose(point["name"], matching, point["response_time_us"])
        line = {**key, **asdict(chosen), "limit_met": chosen.mean_latency_us < point["response_time_us"]}
        recording.append("point", **line)
    title = f"point {point['name'].upper()}, T{line['threads']}Q{line['queue_depth']}"
    return {"threads": line["threads"], "queue_depth": line["queue_depth"], "title": title}


def candidates(journal: Iterable[Mapping[str, Any]], point: Mapping[str, Any], window: int | None) -> list[Candidate]:
    """Return the cells of the point's loop that match its `of`, each averaged over its last `window` counted rounds.

    Without a window, all counted rounds are averaged. A field that `of` lacks matches any value.
    """
    rounds: dict[int, list[Mapping[str, Any]]] = {}
    for line in journal:
        counts = line["event"] == "cell" and line["step"] == point["step"] and not line.get("cold")
        if counts and matches(line["workload"], point["of"]):
            rounds.setdefault(line["cell"], []).append(line)
    return [_average(lines if window is None else lines[-window:]) for _, lines in sorted(rounds.items())]


def _average(lines: list[Mapping[str, Any]]) -> Candidate:
    cell, count = lines[0]["workload"], len(lines)
    iops, latency_us = (fsum(line["metrics"][name] for line in lines) / count for name in ("iops", "mean_latency_us"))
    return Candidate(cell["threads"], cell["queue_depth"], iops, latency_us)


def _criteria(of: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in of.items()) or "any cell"
