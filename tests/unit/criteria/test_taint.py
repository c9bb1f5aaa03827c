"""What taints a cell, and whether the host was its limit; the table of outcomes has each disturbance."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.criteria.host_limit import CPUS, UNKNOWN, CpuUse, cpu_use, host_limit
from drivelab.criteria.taint import (
    DEFAULT,
    KERNEL,
    Limits,
    digest,
    foreign_writes,
    own_writes,
    taints,
    throttled,
    worst,
)

QUIET = {
    "temperature_min_c": 40.0, "temperature_mean_c": 41.0, "temperature_max_c": 42.0, "temperature_limit_c": 70.0,
    "temperature_alarm": 0.0, "steal_pct": 0.1, "load_pct": 3.0, "thermal_1_transitions": 0.0, "thermal_1_s": 0.0,
}  # fmt: skip


def test_unknown_telemetry_gives_no_taint() -> None:
    assert taints({}, DEFAULT) == []
    assert throttled({"load_pct": 3.0}) is None
    assert throttled({"temperature_max_c": 90.0}) is None, "a temperature without a limit is not enough"


def test_stolen_time_and_load_taint_only_above_their_limits() -> None:
    assert taints(QUIET | {"steal_pct": 5.0, "load_pct": 25.0}, DEFAULT) == []
    assert taints(QUIET | {"steal_pct": 17.2, "load_pct": 43.4}, DEFAULT) == [
        "steal: 17 % of the CPU time was stolen by the hypervisor",
        "load: others used 43 % of the host's CPU time",
    ]
    assert taints(QUIET | {"steal_pct": 17.2}, Limits(20.0, 25.0)) == []


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
def test_more_disturbance_or_lower_limits_never_remove_a_taint(
    load: float, steal: float, more: float, less: float
) -> None:
    summary = {"load_pct": load, "steal_pct": steal}
    result = taints(summary, DEFAULT)
    assert len(taints({"load_pct": load + more, "steal_pct": steal + more}, DEFAULT)) >= len(result)
    assert len(taints(summary, Limits(DEFAULT.steal_pct - less, DEFAULT.load_pct - less))) >= len(result)


def test_limits_of_a_study_may_be_partial() -> None:
    assert Limits.from_mapping({"load_pct": 50.0, "remeasure": 2}) == Limits(DEFAULT.steal_pct, 50.0)


def test_a_reason_without_a_size_is_no_worse_in_any_cell() -> None:
    array = taints({"array_other": 1.0}, DEFAULT)
    assert digest(array * 3) == [f"{array[0]}, in 3 cells"]
    assert worst(array * 3) == digest(digest(array * 3) * 2) == array


MIB = 1 << 20


@pytest.mark.parametrize("of", [{}, own_writes(MIB), {KERNEL: {"written_bytes": MIB, "discarded_bytes": 0}}])
def test_without_both_counts_nothing_is_reported(of: dict[str, Any]) -> None:
    assert foreign_writes(of) == {}
    assert taints(foreign_writes(of), DEFAULT) == []


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
