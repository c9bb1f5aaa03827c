"""Say whether the host was the limit of a cell."""

from __future__ import annotations

import math

import pytest

from drivelab.criteria.host_limit import CPUS, UNKNOWN, CpuUse, cpu_use, host_limit, most_severe


@pytest.mark.parametrize(
    ("use", "limited"),
    [
        (CpuUse(90.0), False),
        (CpuUse(90.1), True),
        (CpuUse(50.0, 95.0, 40.0), True),
        (CpuUse(50.0, 90.0, 40.0), False),
        (UNKNOWN, False),
    ],
)
def test_busy_cpus_limit_a_cell(use: CpuUse, limited: bool) -> None:
    assert (host_limit(use) is not None) is limited


def test_reasons_say_what_the_number_means() -> None:
    assert host_limit(CpuUse(97.4)) == "fio's threads used 97 % of a CPU each, so the drive may be faster"
    busy = "the busiest CPUs were 99 % busy, 61 % with interrupts, so the drive may be faster"
    assert host_limit(CpuUse(20.0, 99.0, 61.0)) == busy


def test_as_many_of_the_busiest_cpus_count_as_there_are_threads() -> None:
    facts = {CPUS: {"count": 4, "busiest": [[100.0, 60.0], [80.0, 0.0], [2.0, 0.0], [0.0, 0.0]]}}
    assert cpu_use(facts, 1, None, 0.0) == CpuUse(None, 100.0, 60.0)
    assert cpu_use(facts, 2, 70.0, 0.0) == CpuUse(70.0, 90.0, 30.0)
    assert cpu_use(facts, 64, None, 0.0).busiest_pct == pytest.approx(45.5)


def test_a_cpu_that_others_used_shows_nothing() -> None:
    facts = {CPUS: {"count": 4, "busiest": [[100.0, 0.0], [30.0, 0.0], [0.0, 0.0], [0.0, 0.0]]}}
    assert cpu_use(facts, 1, None, 25.0).busiest_pct == 0.0, "another program may have kept this CPU busy alone"
    assert cpu_use(facts, 1, 30.0, None) == CpuUse(30.0), "nobody knows what others used"
    assert cpu_use({}, 1, 30.0, 0.0) == CpuUse(30.0)


def test_reasons_of_many_cells_are_the_first() -> None:
    texts = [None, math.nan, "91 %", "91 %", "95 %"]
    assert most_severe(texts) == "91 % (and similar cells)"
    assert most_severe([most_severe(texts), "95 %"]) == most_severe(texts)
    assert most_severe(["91 %", "91 %"]) == "91 %"
    assert most_severe([None, math.nan]) is None
