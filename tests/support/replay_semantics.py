"""Check an engine's results against the rules of a schedule, without sharing code with an engine.

Written for correctness, not speed: about 100,000 records a second at small depths.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from math import inf

from drivelab.replay.engine_records import COMPLETED, ISSUED, NOT_ISSUED, Records

WAITED_DEPTH, WAITED_DEPENDENCY = 1, 2


@dataclass(frozen=True)
class Rules:
    """The engine's options."""

    depth_limit: int
    runtime_ns: int | None = None
    goes_on: bool = False
    """Whether the engine continues after a failed request."""
    tolerance_ns: int = 0
    """Time tolerance of a real-time engine, which cannot separate due requests from nearly due ones."""
    threads: int = 1
    """Issuing threads. Each requests its place before it issues, so several may do so in another order."""
    lateness_ns: int | None = None
    """Largest delay of a due request with its turn and a free slot; None for no limit, in real time."""


@dataclass(frozen=True)
class _Request:
    index: int
    issue_ns: int
    complete_ns: float
    due_ns: float
    deadline_ns: int
    depends: bool
    limit: int
    waited: int
    in_flight: int


def violations(schedule: Records, results: Records, rules: Rules) -> list[str]:
    """Return all violations of the rules in the results, as sentences; empty if there are none.

    `results` come from an engine that has ended.
    """
    result: list[str] = []
    requests = _requests(schedule, results, rules.depth_limit, result)
    issued = list(_in_order(requests))
    result += _too_early(issued)
    result += _out_of_order(requests, issued, rules.tolerance_ns)
    result += _in_flight(issued, rules)
    result += _after_the_end(issued, results, rules)
    return result


def _requests(schedule: Records, results: Records, depth_limit: int, found: list[str]) -> list[_Request]:
    requests: list[_Request] = []
    plan = [tuple(row) for row in schedule[["deadline_ns", "think_ns", "after", "depth"]].tolist()]
    rows = results.tolist()
    for index, (issue_ns, complete_ns, _, state, waited, in_flight) in enumerate(rows):
        deadline_ns, think_ns, after, depth = plan[index]
        due_ns: float = deadline_ns
        if after:
            ended = rows[after - 1][3] == COMPLETED
            due_ns = max(deadline_ns, rows[after - 1][1] + think_ns) if ended else inf
        if state not in (NOT_ISSUED, ISSUED, COMPLETED):
            found.append(f"{index}: unknown state {state}")
        if state == NOT_ISSUED and (issue_ns or complete_ns or waited or in_flight):
            found.append(f"{index}: was not issued, but has results")
        if state == COMPLETED and complete_ns < issue_ns:
            found.append(f"{index}: completed at {complete_ns} before it was issued at {issue_ns}")
        requests.append(
            _Request(index, -1 if state == NOT_ISSUED else issue_ns, complete_ns if state == COMPLETED else inf, due_ns,
                     deadline_ns, after > 0, min(depth or depth_limit, depth_limit), waited, in_flight)
        )  # fmt: skip
    return requests


def _in_order(requests: list[_Request]) -> Iterator[_Request]:
    """Yield the issued requests in order; within one instant by their count in flight, else passed requests first."""
    independent = [request.index for request in requests if not request.depends]
    gone: set[int] = set()
    turn = 0
    issued = sorted((request for request in requests if request.issue_ns >= 0), key=lambda request: request.issue_ns)
    for _, at_once in groupby(issued, key=lambda request: request.issue_ns):
        together = sorted(at_once, key=lambda request: request.in_flight)
        counted_up = len({request.in_flight for request in together}) == len(together)
        while together:
            reached = independent[turn] if turn < len(independent) else len(requests)
            passed = [request for request in together if request.depends and request.index < reached]
            first = min(passed or together, key=lambda request: (request.due_ns if passed else 0.0, request.index))
            first = together[0] if counted_up else first
            together.remove(first)
            gone.add(first.index)
            while turn < len(independent) and independent[turn] in gone:
                turn += 1
            yield first


def _too_early(issued: list[_Request]) -> Iterator[str]:
    for request in issued:
        if request.issue_ns < request.deadline_ns:
            yield f"{request.index}: issued at {request.issue_ns} before its deadline {request.deadline_ns}"
        elif request.issue_ns < request.due_ns:
            yield f"{request.index}: issued at {request.issue_ns}, but its dependency made it due at {request.due_ns}"


def _out_of_order(requests: list[_Request], issued: list[_Request], tolerance_ns: int) -> Iterator[str]:
    """Yield violations of the order of issue.

    Requests are issued in the order of the file. Dependent requests that the file has passed are issued as soon as they
    are due, the earliest due first, then by the order of the file. Requests at one instant have no order.
    """
    independent = [request for request in requests if not request.depends]
    passed: list[tuple[float, int]] = []  # heap of due time and index
    gone: set[int] = set()
    turn = seen = 0
    for _, at_once in groupby(issued, key=lambda request: request.issue_ns):
        together = list(at_once)
        reached = (
            independent[turn].index if turn < len(independent) else len(requests)
        )  # position of the file before them
        while seen < reached:
            if requests[seen].depends:
                heappush(passed, (requests[seen].due_ns, seen))
            seen += 1
        gone |= {request.index for request in together}
        while turn < len(independent) and independent[turn].index in gone:
            turn += 1
        head = independent[turn] if turn < len(independent) else None
        while passed and passed[0][1] in gone:
            heappop(passed)
        for request in together:
            surely_ns = request.issue_ns - tolerance_ns
            if head is not None and head.index < request.index and head.due_ns <= surely_ns:
                due = f"{head.index}, which was due at {head.due_ns}"
                yield f"{request.index}: issued at {request.issue_ns} before {due}"
            if (
                passed
                and passed[0][0] <= surely_ns
                and not (request.depends and (request.due_ns, request.index) < passed[0])
            ):
                due_ns, index = passed[0]
                yield f"{request.index}: issued at {request.issue_ns} before {index}, which was due at {due_ns}"


def _in_flight(issued: list[_Request], rules: Rules) -> Iterator[str]:
    """Yield violations of depth and flags and, if requested, unneeded delays, in one pass in the order of issue."""
    ends: list[float] = []  # completion times so far, ascending, without long past ones
    held_ns = before_ns = 0.0
    issues_ns = [request.issue_ns for request in issued]
    for place, request in enumerate(issued):
        least = len(ends) - bisect_right(ends, request.issue_ns) + 1
        most = len(ends) - bisect_right(ends, request.issue_ns - 1 - rules.tolerance_ns) + 1
        if rules.threads > 1:
            least = max(1, least - (place - bisect_left(issues_ns, request.issue_ns - rules.tolerance_ns)))
            most += bisect_right(issues_ns, request.issue_ns + rules.tolerance_ns) - place - 1
        if least > request.limit:
            yield f"{request.index}: {least} in flight, but {request.limit} are allowed"
        if not least <= request.in_flight <= most:
            yield f"{request.index}: reports {request.in_flight} in flight, but there were {least} to {most}"
        place_ns = ends[-request.limit] if len(ends) >= request.limit else 0.0
        held_ns = max(held_ns, place_ns)
        yield from _flag(request, held_ns, rules.tolerance_ns)
        earliest_ns = max(request.due_ns, before_ns, place_ns)
        if rules.lateness_ns is not None and request.issue_ns - earliest_ns > rules.lateness_ns:
            yield f"{request.index}: issued at {request.issue_ns}, but nothing delayed it after {earliest_ns}"
        before_ns = request.issue_ns
        del ends[: bisect_right(ends, request.issue_ns - 1 - rules.tolerance_ns)]
        insort(ends, request.complete_ns)


def _flag(request: _Request, held_ns: float, tolerance_ns: int) -> Iterator[str]:
    """Yield a violation of the flag `waited`; until `held_ns` a full queue delayed this or an earlier request."""
    prefix = f"{request.index}: has waited = {request.waited}"
    if request.waited not in (0, WAITED_DEPTH, WAITED_DEPENDENCY):
        yield f"{prefix}, an unknown value"
    elif request.due_ns > request.deadline_ns:
        delay_ns = request.due_ns - request.deadline_ns
        if request.waited != WAITED_DEPENDENCY and delay_ns > tolerance_ns:
            yield f"{prefix}, but its dependency made it due {delay_ns} ns after its deadline"
    elif request.waited == WAITED_DEPENDENCY:
        yield f"{prefix}, but no dependency made it due later than its deadline"
    elif request.waited == 0 and held_ns - request.due_ns > tolerance_ns:
        yield f"{prefix}, but the queue was full for {held_ns - request.due_ns} ns"
    elif request.waited == WAITED_DEPTH and held_ns <= request.due_ns - tolerance_ns:
        yield f"{prefix}, but the queue had a free slot from {held_ns} on and it was due at {request.due_ns}"


def _after_the_end(issued: list[_Request], results: Records, rules: Rules) -> Iterator[str]:
    ends_ns: float = inf if rules.runtime_ns is None else rules.runtime_ns - 1
    why = "the time was over"
    failed = results["complete_ns"][(results["state"] == COMPLETED) & (results["result"] < 0)]
    if len(failed) and not rules.goes_on and int(failed.min()) < ends_ns:
        ends_ns, why = int(failed.min()), "a request had failed"
    for request in issued:
        if request.issue_ns > ends_ns + rules.tolerance_ns:
            yield f"{request.index}: issued at {request.issue_ns} although {why}"
