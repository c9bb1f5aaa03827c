"""What an engine's results say about it, held against the rules of a schedule; shares no code with any engine.

Written to be right rather than fast: some 100,000 records a second at small depths.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from math import inf

from drivelab.replay.records import COMPLETED, ISSUED, NOT_ISSUED, Records

WAITED_DEPTH, WAITED_DEPENDENCY = 1, 2


@dataclass(frozen=True)
class Rules:
    """What the engine was told."""

    depth_limit: int
    runtime_ns: int | None = None
    goes_on: bool = False
    """After a failed request."""
    tolerance_ns: int = 0
    """For what an engine in real time cannot do at once: tell what is due from what is about to be."""
    lateness_ns: int | None = None
    """A request may go so much later than due, behind its turn and with a place free; None: no limit, in real time."""


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
    """All that the results show to be against the rules, a sentence each; empty if they are sound.

    `results` may be more records than the schedule has (it then repeats), of an engine that has ended.
    """
    found: list[str] = []
    requests = _requests(schedule, results, rules.depth_limit, found)
    issued = list(_in_order(requests))
    found += _too_early(issued)
    found += _out_of_order(requests, issued, rules.tolerance_ns)
    found += _in_flight(issued, rules)
    found += _after_the_end(issued, results, rules)
    return found


def _requests(schedule: Records, results: Records, depth_limit: int, found: list[str]) -> list[_Request]:
    requests: list[_Request] = []
    count = len(schedule)
    plan = [tuple(row) for row in schedule[["deadline_ns", "think_ns", "after", "depth"]].tolist()]
    rows = results.tolist()
    for index, (issue_ns, complete_ns, _, state, waited, in_flight) in enumerate(rows):
        deadline_ns, think_ns, after, depth = plan[index % count]
        due_ns: float = deadline_ns
        if after:
            ended = rows[after - 1][3] == COMPLETED
            due_ns = max(deadline_ns, rows[after - 1][1] + think_ns) if ended else inf
        if state not in (NOT_ISSUED, ISSUED, COMPLETED):
            found.append(f"{index}: there is no state {state}")
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
    """Those that were issued; at one instant as they were counted, else first those that the file had passed by."""
    independent = [one.index for one in requests if not one.depends]
    gone: set[int] = set()
    turn = 0
    issued = sorted((one for one in requests if one.issue_ns >= 0), key=lambda one: one.issue_ns)
    for _, at_once in groupby(issued, key=lambda one: one.issue_ns):
        together = sorted(at_once, key=lambda one: one.in_flight)
        counted_up = len({one.in_flight for one in together}) == len(together)
        while together:
            reached = independent[turn] if turn < len(independent) else len(requests)
            passed = [one for one in together if one.depends and one.index < reached]
            first = min(passed or together, key=lambda one: (one.due_ns if passed else 0.0, one.index))
            first = together[0] if counted_up else first
            together.remove(first)
            gone.add(first.index)
            while turn < len(independent) and independent[turn] in gone:
                turn += 1
            yield first


def _too_early(issued: list[_Request]) -> Iterator[str]:
    for one in issued:
        if one.issue_ns < one.deadline_ns:
            yield f"{one.index}: issued at {one.issue_ns} before its deadline {one.deadline_ns}"
        elif one.issue_ns < one.due_ns:
            yield f"{one.index}: issued at {one.issue_ns}, but its dependency made it due at {one.due_ns}"


def _out_of_order(requests: list[_Request], issued: list[_Request], tolerance_ns: int) -> Iterator[str]:
    """The file is taken in its order. Those that depend on others and were passed by go as soon as they are due.

    Of several of those the one that was due first goes, of equals the first of the file. At one instant all is one.
    """
    independent = [one for one in requests if not one.depends]
    passed: list[tuple[float, int]] = []  # heap of due time and index
    gone: set[int] = set()
    turn = seen = 0
    for _, at_once in groupby(issued, key=lambda one: one.issue_ns):
        together = list(at_once)
        reached = independent[turn].index if turn < len(independent) else len(requests)  # by the file before them
        while seen < reached:
            if requests[seen].depends:
                heappush(passed, (requests[seen].due_ns, seen))
            seen += 1
        gone |= {one.index for one in together}
        while turn < len(independent) and independent[turn].index in gone:
            turn += 1
        head = independent[turn] if turn < len(independent) else None
        while passed and passed[0][1] in gone:
            heappop(passed)
        for one in together:
            surely_ns = one.issue_ns - tolerance_ns
            if head is not None and head.index < one.index and head.due_ns <= surely_ns:
                yield f"{one.index}: issued at {one.issue_ns} before {head.index}, which was due at {head.due_ns}"
            if passed and passed[0][0] <= surely_ns and not (one.depends and (one.due_ns, one.index) < passed[0]):
                due_ns, index = passed[0]
                yield f"{one.index}: issued at {one.issue_ns} before {index}, which was due at {due_ns}"


def _in_flight(issued: list[_Request], rules: Rules) -> Iterator[str]:
    """Depth, flags and, where asked for, idleness: one sweep in the order of issue."""
    ends: list[float] = []  # of those issued so far, ascending; long gone ones removed
    held_ns = before_ns = 0.0
    for one in issued:
        least = len(ends) - bisect_right(ends, one.issue_ns) + 1
        most = len(ends) - bisect_right(ends, one.issue_ns - 1 - rules.tolerance_ns) + 1
        if least > one.limit:
            yield f"{one.index}: {least} in flight, {one.limit} are allowed"
        if not least <= one.in_flight <= most:
            yield f"{one.index}: tells of {one.in_flight} in flight, there were {least} to {most}"
        place_ns = ends[-one.limit] if len(ends) >= one.limit else 0.0
        held_ns = max(held_ns, place_ns)
        yield from _flag(one, held_ns, rules.tolerance_ns)
        earliest_ns = max(one.due_ns, before_ns, place_ns)
        if rules.lateness_ns is not None and one.issue_ns - earliest_ns > rules.lateness_ns:
            yield f"{one.index}: issued at {one.issue_ns}, nothing held it up after {earliest_ns}"
        before_ns = one.issue_ns
        del ends[: bisect_right(ends, one.issue_ns - 1 - rules.tolerance_ns)]
        insort(ends, one.complete_ns)


def _flag(one: _Request, held_ns: float, tolerance_ns: int) -> Iterator[str]:
    """`held_ns`: until when the lack of a place held up this one or those before it."""
    told = f"{one.index}: has waited = {one.waited}"
    if one.waited not in (0, WAITED_DEPTH, WAITED_DEPENDENCY):
        yield f"{told}, which means nothing"
    elif one.due_ns > one.deadline_ns:
        if one.waited != WAITED_DEPENDENCY and one.due_ns - one.deadline_ns > tolerance_ns:
            yield f"{told}, but its dependency made it due {one.due_ns - one.deadline_ns} ns after its deadline"
    elif one.waited == WAITED_DEPENDENCY:
        yield f"{told}, but no dependency made it due later than its deadline"
    elif one.waited == 0 and held_ns - one.due_ns > tolerance_ns:
        yield f"{told}, but for {held_ns - one.due_ns} ns there was no place for it or for those before it"
    elif one.waited == WAITED_DEPTH and held_ns <= one.due_ns - tolerance_ns:
        yield f"{told}, but there was a place from {held_ns} on and it was due at {one.due_ns}"


def _after_the_end(issued: list[_Request], results: Records, rules: Rules) -> Iterator[str]:
    ends_ns: float = inf if rules.runtime_ns is None else rules.runtime_ns - 1
    why = "the time was up"
    failed = results["complete_ns"][(results["state"] == COMPLETED) & (results["result"] < 0)]
    if len(failed) and not rules.goes_on and int(failed.min()) < ends_ns:
        ends_ns, why = int(failed.min()), "a request had failed"
    for one in issued:
        if one.issue_ns > ends_ns + rules.tolerance_ns:
            yield f"{one.index}: issued at {one.issue_ns} although {why}"
