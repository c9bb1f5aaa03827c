"""Say whether the host was the limit of a cell."""

from __future__ import annotations

import math

import pytest

from drivelab.criteria.host_limit import (
    CPUS,
    UNKNOWN,
    Ceiling,
    CpuUse,
    cpu_use,
    host_limits,
    is_host_limited,
    most_severe,
    without_causes,
)

LOW, HIGH = {"iops": 100_000, "bounds": ["at least"]}, {"iops": 400_000, "bounds": ["at most"]}
BOTH = {"iops": 300_000, "bounds": ["at least", "at most"]}


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], Ceiling()),
        ([LOW], Ceiling(100_000, None)),
        ([HIGH], Ceiling(None, 400_000)),
        ([LOW, HIGH], Ceiling(100_000, 400_000)),
        ([BOTH, HIGH, LOW], Ceiling(300_000, 300_000)),
        ([{"iops": 500_000, "bounds": ["at least"]}, HIGH], Ceiling(500_000, 500_000)),
    ],
)
def test_the_narrowest_range_of_all_targets_counts(results: list[dict[str, object]], expected: Ceiling) -> None:
    assert Ceiling.of(results) == expected


@pytest.mark.parametrize(
    ("ceiling", "iops", "limited"),
    [
        (Ceiling(), 1e9, None),
        (Ceiling(None, 400_000), 320_000, True),
        (Ceiling(None, 400_000), 319_999, None),
        (Ceiling(None, 400_000), 440_001, None),
        (Ceiling(100_000, None), 79_999, False),
        (Ceiling(100_000, None), 80_000, None),
        (Ceiling(100_000, None), 1e9, None),
        (Ceiling(100_000, 400_000), 79_999, False),
        (Ceiling(100_000, 400_000), 200_000, None),
        (Ceiling(300_000, 300_000), 240_000, True),
        (Ceiling(300_000, 300_000), 239_999, False),
    ],
)
def test_a_lower_bound_never_shows_a_limit_and_an_upper_bound_never_excludes_one(
    ceiling: Ceiling, iops: float, limited: bool | None
) -> None:
    assert is_host_limited(iops, ceiling, UNKNOWN) is limited
    assert bool(host_limits(iops, ceiling, UNKNOWN)) is (limited is True)


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
def test_busy_cpus_limit_a_cell_far_below_the_ceiling(use: CpuUse, limited: bool) -> None:
    assert is_host_limited(1000, Ceiling(100_000, 400_000), use) is limited


def test_reasons_say_what_the_number_means() -> None:
    reasons = host_limits(390_000, Ceiling(None, 412_345), CpuUse(97.4))
    assert reasons == [
        "ceiling: the host gives at most 412,000 IOPS at this load, so the drive may be faster",
        "cpu: fio's threads used 97 % of a CPU each, so the drive may be faster",
    ]
    assert without_causes("; ".join(reasons)).startswith("the host gives at most 412,000 IOPS at this load")
    (busy,) = host_limits(1, Ceiling(), CpuUse(20.0, 99.0, 61.0))
    assert busy == "cpu: the busiest CPUs were 99 % busy, 61 % with interrupts, so the drive may be faster"


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


def test_reasons_of_many_cells_are_one_of_each_cause() -> None:
    texts = [None, math.nan, "ceiling: a; cpu: 91 %", "ceiling: a", "cpu: 95 %"]
    assert most_severe(texts) == "ceiling: a; cpu: 91 % (and similar cells)"
    assert most_severe([most_severe(texts), "cpu: 95 %"]) == most_severe(texts)
    assert most_severe([None, math.nan]) is None
