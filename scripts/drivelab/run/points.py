"""Points of a plan: threads and queue depth chosen from the results of an earlier loop of the same measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

from drivelab.core.errors import UserError
from drivelab.plan.loop_cells import matches
from drivelab.run.fio_cell import Bench

NAMES = ("max", "mid", "min")


@dataclass(frozen=True)
class Candidate:
    """A cell of the sweep with its results."""

    threads: int
    queue_depth: int
    iops: float
    mean_latency_us: float

    @property
    def outstanding(self) -> int:
        """Return the outstanding I/Os of all threads together."""
        return self.threads * self.queue_depth


def choose(name: str, candidates: Sequence[Candidate], response_time_us: float) -> Candidate:
    """Return the candidate that is `max`, `mid` or `min`.

    If no candidate is below `response_time_us`, MAX is the one with the lowest mean latency. MID keeps the limit too,
    and has no more outstanding I/Os than MAX. Of equal candidates, the one with fewer outstanding I/Os wins, then fewer
    threads, then lower latency. Raises ValueError without candidates, and for another name.
    """
    if not candidates:
        raise ValueError("there are no candidates")
    least = min(candidates, key=_demand)
    within = [cell for cell in candidates if cell.mean_latency_us < response_time_us]
    most = min(within, key=lambda cell: (-cell.iops, *_demand(cell)), default=None)
    if most is None:
        most = min(candidates, key=lambda cell: (cell.mean_latency_us, *_demand(cell)))
    if name == "max":
        return most
    if name == "min":
        return least
    if name != "mid":
        raise ValueError(f"there is no point '{name}'; use one of {', '.join(NAMES)}")
    middle = (most.iops + least.iops) / 2
    between = [cell for cell in within if cell.outstanding <= most.outstanding] or [most]
    return min(between, key=lambda cell: (abs(cell.iops - middle), *_demand(cell)))


def _demand(cell: Candidate) -> tuple[float, ...]:
    return cell.outstanding, cell.threads, cell.mean_latency_us, -cell.iops


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
