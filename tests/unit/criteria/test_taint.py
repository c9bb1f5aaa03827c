"""Describe what taints a cell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.criteria.taint import DEFAULT, Limits, causes, digest, taints, throttled, told, worst

QUIET = {
    "temperature_min_c": 40.0, "temperature_mean_c": 41.0, "temperature_max_c": 42.0, "temperature_limit_c": 70.0,
    "temperature_alarm": 0.0, "steal_pct": 0.1, "load_pct": 3.0, "thermal_1_transitions": 0.0, "thermal_1_s": 0.0,
}  # fmt: skip


def test_a_quiet_cell_has_no_taint() -> None:
    assert taints(QUIET, DEFAULT) == []
    assert throttled(QUIET) is False


def test_unknown_telemetry_gives_no_taint() -> None:
    assert taints({}, DEFAULT) == []
    assert throttled({"load_pct": 3.0}) is None
    assert throttled({"temperature_max_c": 90.0}) is None, "a temperature without a limit is not enough"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"thermal_1_transitions": 2.0}, "it slowed down lightly 2 times (thermal management temperature 1)"),
        ({"thermal_2_transitions": 1.0}, "it slowed down heavily 1 times (thermal management temperature 2)"),
        ({"thermal_1_s": 12.0}, "it was slowed down lightly for 12 s"),
        ({"thermal_2_s": 7.0}, "it was slowed down heavily for 7 s"),
        ({"warning_temperature_min": 1.0}, "it was above its warning temperature for 1 min"),
        ({"critical_temperature_min": 1.0}, "it was above its critical temperature for 1 min"),
        ({"temperature_max_c": 70.0}, "the drive reached 70 °C, it warns from 70 °C"),
        ({"temperature_alarm": 1.0}, "the drive raised its temperature alarm"),
    ],
)
def test_a_drive_that_was_too_hot(changed: dict[str, float], reason: str) -> None:
    assert taints(QUIET | changed, DEFAULT) == [f"throttled: {reason}"]
    assert throttled(QUIET | changed) is True


def test_an_array_in_another_state() -> None:
    reason = "array: it was in another state than the measurement asks for"
    assert taints(QUIET | {"array_other": 1.0}, DEFAULT) == [reason]
    assert taints(QUIET | {"array_other": 0.0}, DEFAULT) == []


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


def test_many_reasons_are_shortened() -> None:
    texts = [
        "load: others used 30 % of the host's CPU time",
        "steal: 6 % of the CPU time was stolen by the hypervisor; load: others used 100 % of the host's CPU time",
        "load: others used 43 % of the host's CPU time",
    ]
    assert digest(texts) == [
        "load: others used 100 % of the host's CPU time at worst, in 3 cells",
        "steal: 6 % of the CPU time was stolen by the hypervisor",
    ]
    of_values = [f"load: others used {n} % of the host's CPU time at worst, in 5 cells" for n in (30, 89)]
    assert digest(of_values) == ["load: others used 89 % of the host's CPU time at worst"], "values share cells"
    assert worst(texts)[0] == "load: others used 100 % of the host's CPU time at worst"
    assert causes(texts) == ["load", "steal"]
    assert told([]) is None
    assert told(["a", "b"]) == "a; b"


def test_a_reason_without_a_size_is_no_worse_in_any_cell() -> None:
    array = taints({"array_other": 1.0}, DEFAULT)
    assert digest(array * 3) == [f"{array[0]}, in 3 cells"]
    assert worst(array * 3) == digest(digest(array * 3) * 2) == array
