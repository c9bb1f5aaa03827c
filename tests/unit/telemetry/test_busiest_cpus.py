"""Read how busy each CPU was."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.telemetry.host import busiest_cpus, cpu_times

STAT = """\
cpu  130 0 200 500 0 10 60 0 0 0
cpu0 100 0 100 200 0 10 50 0 0 0
cpu1 30 0 100 300 5 0 10 7 0 0
intr 1234 0 9
"""


def test_busy_is_all_but_idle_waiting_and_stolen_time(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text(STAT)
    assert cpu_times(tmp_path) == {"cpu0": (460, 260, 60), "cpu1": (452, 140, 10)}
    assert cpu_times(tmp_path / "missing") == {}


def test_the_busiest_cpu_comes_first() -> None:
    before = {"cpu0": (0, 0, 0), "cpu1": (100, 50, 0)}
    after = {"cpu0": (100, 20, 5), "cpu1": (200, 140, 40)}
    assert busiest_cpus(before, after) == {"count": 2, "busiest": [[90.0, 40.0], [20.0, 5.0]]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"cpu0": (0, 0, 0)}, {"cpu0": (49, 20, 5)}),
        ({"cpu0": (0, 0, 0)}, {"cpu0": (100, 20, 5), "cpu1": (100, 20, 5)}),
        ({"cpu0": (0, 90, 0)}, {"cpu0": (100, 20, 5)}),
    ],
)
def test_too_short_a_time_and_other_cpus_say_nothing(
    before: dict[str, tuple[int, int, int]], after: dict[str, tuple[int, int, int]]
) -> None:
    assert busiest_cpus(before, after) is None
