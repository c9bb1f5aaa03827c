from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from drivelab.report.comparison_section import host_settings

GOVERNOR = {"name": "CPU governor", "scope": "host", "state": "powersave", "wanted": "performance", "effect": "why"}
SCHEDULER = {"name": "I/O scheduler", "scope": "nvme0n1", "state": "bfq", "wanted": "none", "effect": "why"}


def inputs(*plans: list[dict[str, str]] | None) -> Any:
    return SimpleNamespace(
        plans=[
            {"recording": f"r{n}", "drive": f"d{n}", "scenario": "synthetic", "settings": settings}
            for n, settings in enumerate(plans)
        ]
    )


def test_each_deviation_has_a_row_with_its_recordings() -> None:
    table = host_settings(inputs([GOVERNOR, SCHEDULER], [GOVERNOR]))
    assert table is not None
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["CPU governor", "powersave", "performance", "why", "all"],
        ["I/O scheduler", "bfq", "none", "why", "1 of 2"],
    ]
    assert [row[0].small for row in table.rows] == ["host", "drive d0"]
    assert "synthetic" in table.caption


def test_unchecked_settings_have_no_table() -> None:
    assert host_settings(inputs(None)) is None


def test_settings_without_deviations_have_one_row() -> None:
    table = host_settings(inputs([]))
    assert table is not None
    assert table.rows[0][1].text == "as wanted"
