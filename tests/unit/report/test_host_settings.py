from __future__ import annotations

from typing import Any

from drivelab.report.sections.comparison import host_settings

GOVERNOR = {"name": "CPU governor", "scope": "host", "state": "powersave", "wanted": "performance", "effect": "why"}
SCHEDULER = {"name": "I/O scheduler", "scope": "nvme0n1", "state": "bfq", "wanted": "none", "effect": "why"}


def plans(*settings: list[dict[str, str]] | None) -> list[dict[str, Any]]:
    return [
        {"recording": f"r{number}", "drive": f"d{number}", "scenario": "synthetic", "settings": of_plan}
        for number, of_plan in enumerate(settings)
    ]


def test_each_deviation_has_a_row_with_its_recordings() -> None:
    (table,) = host_settings(plans([GOVERNOR, SCHEDULER], [GOVERNOR]))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["CPU governor", "powersave", "performance", "why", "all"],
        ["I/O scheduler", "bfq", "none", "why", "1 of 2"],
    ]
    assert [row[0].small for row in table.rows] == ["host", "drive d0"]
    assert "synthetic" in table.caption


def test_settings_without_deviations_have_one_row_and_unchecked_ones_no_table() -> None:
    (table,) = host_settings(plans([]))
    assert table.rows[0][1].text == "as wanted"
    assert not list(host_settings(plans(None)))
