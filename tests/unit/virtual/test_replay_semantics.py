"""The checker of engines finds every kind of offence: sound results, each spoilt in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from replay_semantics import Rules, violations

from drivelab.replay.records import RESULT_RECORD, SCHEDULE_RECORD, Records

RULES = Rules(depth_limit=2, lateness_ns=0)


def schedule(*rows: dict[str, int]) -> Records:
    records = np.zeros(len(rows), SCHEDULE_RECORD)
    for record, row in zip(records, rows, strict=True):
        for name, value in row.items():
            record[name] = value
    return records


def results(*rows: tuple[int, int, int, int]) -> Records:
    """Issue and completion in ns, waited, in flight."""
    return np.array([(begin, end, 0, 2, waited, depth) for begin, end, waited, depth in rows], RESULT_RECORD)


PLAN = schedule(
    {"deadline_ns": 0},
    {"deadline_ns": 10},
    {"deadline_ns": 20, "after": 1, "think_ns": 50},
    {"deadline_ns": 30},
    {"deadline_ns": 400, "depth": 1},
    {"deadline_ns": 410},
)
SOUND = results(
    (0, 100, 0, 1), (10, 140, 0, 2), (150, 250, 2, 2), (100, 200, 1, 2), (400, 500, 0, 1), (410, 510, 0, 2)
)  # fmt: skip


def spoil(index: int, **fields: Any) -> Records:
    spoilt = SOUND.copy()
    for name, value in fields.items():
        spoilt[index][name] = value
    return spoilt


def test_sound_results_keep_the_rules() -> None:
    assert violations(PLAN, SOUND, RULES) == []


@pytest.mark.parametrize(
    ("spoilt", "offence"),
    [
        (spoil(5, issue_ns=409), "5: issued at 409 before its deadline 410"),
        (spoil(2, issue_ns=149), "2: issued at 149, but its dependency made it due at 150"),
        (spoil(0, state=1), "2: issued at 150, but its dependency made it due at inf"),
        (spoil(4, issue_ns=415), "5: issued at 410 before 4, which was due at 400"),
        (spoil(3, issue_ns=99), "3: 3 in flight, 2 are allowed"),
        (spoil(3, complete_ns=401), "4: 2 in flight, 1 are allowed"),
        (spoil(5, in_flight=1), "5: tells of 1 in flight, there were 2 to 2"),
        (spoil(2, waited=1), "2: has waited = 1, but its dependency made it due 130 ns after its deadline"),
        (spoil(5, waited=2), "5: has waited = 2, but no dependency made it due later than its deadline"),
        (spoil(3, waited=0), "3: has waited = 0, but for 70 ns there was no place for it or for those before it"),
        (spoil(5, waited=1), "5: has waited = 1, but there was a place from 250 on and it was due at 410"),
        (spoil(5, waited=3), "5: has waited = 3, which means nothing"),
        (spoil(5, issue_ns=411), "5: issued at 411, nothing held it up after 410"),
        (spoil(1, complete_ns=9), "1: completed at 9 before it was issued at 10"),
        (spoil(5, state=0), "5: was not issued, but has results"),
        (spoil(5, state=3), "5: there is no state 3"),
        (spoil(0, result=-5), "4: issued at 400 although a request had failed"),
    ],
)  # fmt: skip
def test_every_offence_is_found(spoilt: Records, offence: str) -> None:
    found = violations(PLAN, spoilt, RULES)
    assert offence in found


def test_the_end_of_the_runtime() -> None:
    assert violations(PLAN, SOUND, replace(RULES, runtime_ns=411)) == []
    assert violations(PLAN, SOUND, replace(RULES, runtime_ns=410)) == [
        "5: issued at 410 although the time was up"
    ]  # fmt: skip


def test_an_engine_may_go_on_after_a_failure() -> None:
    assert violations(PLAN, spoil(0, result=-5), replace(RULES, goes_on=True)) == []


def test_a_tolerance_forgives_what_cannot_be_told_apart() -> None:
    spoilt = spoil(4, issue_ns=415)
    assert violations(PLAN, spoilt, replace(RULES, tolerance_ns=11, lateness_ns=None)) != []  # its depth is 1
    assert violations(PLAN, spoil(3, waited=0), replace(RULES, tolerance_ns=70)) == []
    assert violations(PLAN, spoil(3, waited=0), replace(RULES, tolerance_ns=69)) != []


def test_those_held_up_behind_another_have_waited_too() -> None:
    plan = schedule({}, {}, {"deadline_ns": 10}, {"deadline_ns": 20})
    sound = results((0, 100, 0, 1), (0, 100, 0, 2), (100, 200, 1, 1), (100, 200, 1, 2))
    assert violations(plan, sound, RULES) == []
    sound[3]["waited"] = 0
    assert len(violations(plan, sound, RULES)) == 1


def test_a_schedule_that_repeats() -> None:
    plan = schedule({"depth": 1}, {"depth": 1})
    sound = results((0, 5, 0, 1), (5, 9, 1, 1), (9, 12, 1, 1))
    assert violations(plan, sound, RULES) == []
    assert violations(plan, results((0, 5, 0, 1), (5, 9, 1, 1), (8, 12, 1, 2)), RULES) != []
