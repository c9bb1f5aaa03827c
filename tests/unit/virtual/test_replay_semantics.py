"""The checker of replay engines finds every kind of violation: valid results, each altered in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from replay_semantics import Rules, violations

from drivelab.replay.engine_records import RESULT_RECORD, SCHEDULE_RECORD, Records

RULES = Rules(depth_limit=2, lateness_ns=0)


def schedule(*rows: dict[str, int]) -> Records:
    records = np.zeros(len(rows), SCHEDULE_RECORD)
    for record, row in zip(records, rows, strict=True):
        for name, value in row.items():
            record[name] = value
    return records


def results(*rows: tuple[int, int, int, int]) -> Records:
    """Make results from issue and completion in ns, waited, in flight."""
    return np.array([(begin, end, 0, 2, waited, depth) for begin, end, waited, depth in rows], RESULT_RECORD)


PLAN = schedule(
    {"deadline_ns": 0},
    {"deadline_ns": 10},
    {"deadline_ns": 20, "after": 1, "think_ns": 50},
    {"deadline_ns": 30},
    {"deadline_ns": 400, "depth": 1},
    {"deadline_ns": 410},
)
VALID = results(
    (0, 100, 0, 1), (10, 140, 0, 2), (150, 250, 2, 2), (100, 200, 1, 2), (400, 500, 0, 1), (410, 510, 0, 2)
)  # fmt: skip


def altered(index: int, **fields: Any) -> Records:
    changed = VALID.copy()
    for name, value in fields.items():
        changed[index][name] = value
    return changed


def test_valid_results_follow_the_rules() -> None:
    assert violations(PLAN, VALID, RULES) == []


@pytest.mark.parametrize(
    ("changed", "violation"),
    [
        (altered(5, issue_ns=409), "5: issued at 409 before its deadline 410"),
        (altered(2, issue_ns=149), "2: issued at 149, but its dependency made it due at 150"),
        (altered(0, state=1), "2: issued at 150, but its dependency made it due at inf"),
        (altered(4, issue_ns=415), "5: issued at 410 before 4, which was due at 400"),
        (altered(3, issue_ns=99), "3: 3 in flight, but 2 are allowed"),
        (altered(3, complete_ns=401), "4: 2 in flight, but 1 are allowed"),
        (altered(5, in_flight=1), "5: reports 1 in flight, but there were 2 to 2"),
        (altered(2, waited=1), "2: has waited = 1, but its dependency made it due 130 ns after its deadline"),
        (altered(5, waited=2), "5: has waited = 2, but no dependency made it due later than its deadline"),
        (altered(3, waited=0), "3: has waited = 0, but the queue was full for 70 ns"),
        (altered(5, waited=1), "5: has waited = 1, but the queue had a free slot from 250 on and it was due at 410"),
        (altered(5, waited=3), "5: has waited = 3, an unknown value"),
        (altered(5, issue_ns=411), "5: issued at 411, but nothing delayed it after 410"),
        (altered(1, complete_ns=9), "1: completed at 9 before it was issued at 10"),
        (altered(5, state=0), "5: was not issued, but has results"),
        (altered(5, state=3), "5: unknown state 3"),
        (altered(0, result=-5), "4: issued at 400 although a request had failed"),
    ],
)  # fmt: skip
def test_every_violation_is_found(changed: Records, violation: str) -> None:
    assert violation in violations(PLAN, changed, RULES)


def test_the_end_of_the_runtime() -> None:
    assert violations(PLAN, VALID, replace(RULES, runtime_ns=411)) == []
    assert violations(PLAN, VALID, replace(RULES, runtime_ns=410)) == [
        "5: issued at 410 although the time was over"
    ]  # fmt: skip


def test_an_engine_may_continue_after_a_failure() -> None:
    assert violations(PLAN, altered(0, result=-5), replace(RULES, goes_on=True)) == []


def test_a_tolerance_accepts_small_differences() -> None:
    changed = altered(4, issue_ns=415)
    assert violations(PLAN, changed, replace(RULES, tolerance_ns=11, lateness_ns=None)) != []  # its depth is 1
    assert violations(PLAN, altered(3, waited=0), replace(RULES, tolerance_ns=70)) == []
    assert violations(PLAN, altered(3, waited=0), replace(RULES, tolerance_ns=69)) != []


def test_requests_behind_a_blocked_one_count_as_waiting() -> None:
    plan = schedule({}, {}, {"deadline_ns": 10}, {"deadline_ns": 20})
    valid = results((0, 100, 0, 1), (0, 100, 0, 2), (100, 200, 1, 1), (100, 200, 1, 2))
    assert violations(plan, valid, RULES) == []
    valid[3]["waited"] = 0
    assert len(violations(plan, valid, RULES)) == 1
